"""Live lockstep: genuine CybORG plays, its chance is recorded, and the engine plays the same game step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from workflow_rl.engine.network import GREEN_AGENTS, RED_AGENTS, Network
from workflow_rl.envs.blue import Policy, view_of
from workflow_rl.envs.checks import check_seed
from workflow_rl.envs.cyborg_sim import load_cyborg
from workflow_rl.envs.cyborg_vector import CyborgVectorEnv
from workflow_rl.envs.takeover import takeovers_of
from workflow_rl.envs.views import with_view
from workflow_rl.errors import UserError
from workflow_rl.fidelity.cyborg_recorder import Recorder
from workflow_rl.fidelity.replay import ReplayResult, replay
from workflow_rl.fidelity.traces import Trace, codes_of

MOST_EPISODES = 1_000_000


@dataclass(frozen=True)
class LiveGames:
    """Which games of genuine CybORG to play, and how.

    Args:
        n_episodes: number of games.
        red_agents: the opponents.
        green_agents: ``sleep`` and ``active``, or one of them.
        max_steps: length of a game.
        seed: seed of the first game; game i has ``seed + i``.
        jobs: number of processes; no result depends on it.
        cyborg_path: a checkout of CybORG to use instead of csle-cyborg.
        takeover: steps that red plays before blue acts; the games of one kind use the entries of a comma list in turn.
            These steps are compared as well.
    """

    n_episodes: int
    red_agents: Sequence[str] = RED_AGENTS
    green_agents: Sequence[str] = GREEN_AGENTS
    max_steps: int = 100
    seed: int = 0
    jobs: int = 1
    cyborg_path: str = ""
    takeover: str = "0"

    def __post_init__(self) -> None:
        if not 1 <= self.n_episodes <= MOST_EPISODES:
            raise UserError(f"the number of games must be from 1 to {MOST_EPISODES}, not {self.n_episodes}.")
        check_seed(self.seed)
        check_seed(self.seed + self.n_episodes - 1)


@dataclass
class KindResult(ReplayResult):
    """The games of one combination of red agent, green agent and defender."""

    red_agent: str = ""
    green_agent: str = ""
    blue: str = ""


@dataclass
class LockstepResult(ReplayResult):
    """All games together, and those of each kind."""

    cyborg: str = ""
    edition: str = ""
    games: list[KindResult] = field(default_factory=list)


def live_lockstep(
    live: LiveGames, blues: Mapping[str, Policy], network: Network, progress: Callable[[int], None] = lambda _: None
) -> LockstepResult:
    """Plays games of genuine CybORG and the same games in the engine, and counts the steps that differ.

    The kinds are all combinations of green agent, defender and red agent (which varies fastest); game i is of kind i
    modulo their number.

    Args:
        live: the games.
        blues: the defenders by name.
        network: the network that both simulators play.
        progress: called with the number of games that were finished since the last call.
    """
    package, kinds = load_cyborg(live.cyborg_path), list(product(live.green_agents, blues, live.red_agents))
    total = LockstepResult(cyborg=package.name, edition=package.edition)
    for number, (green, blue, red) in enumerate(kinds[: live.n_episodes]):
        rounds = np.arange((live.n_episodes - number - 1) // len(kinds) + 1)
        kind = KindResult(red_agent=red, green_agent=green, blue=blue)
        size = min(live.jobs, len(rounds))
        plain = CyborgVectorEnv(
            size, red, green_agent=green, edition=package.edition, cyborg_path=live.cyborg_path, network=network,
            max_steps=None, recorder=Recorder,
        )  # fmt: skip
        with closing(with_view(plain, view_of(blues[blue]))) as envs:
            for some in (rounds[first : first + size] for first in range(0, len(rounds), size)):
                seeds = np.array([live.seed + number + len(kinds) * int(i) for i in some], np.uint64)
                takeovers = takeovers_of(live.takeover, np.resize(some, size))
                trace = record_games(envs, blues[blue], red, seeds, live.max_steps, takeovers)
                kind.add(replay(trace, network, package.edition))
                progress(len(some))
        total.games.append(kind)
        total.add(kind)
    return total


def record_games(
    envs: Any, blue: Policy, red_agent: str, seeds: np.ndarray, max_steps: int, takeovers: list[str]
) -> Trace:
    """Plays one game for each seed, at most one per environment, and returns the recording."""
    n, kept = envs.num_envs, len(seeds)
    played = np.resize(seeds, n)
    envs.reset(seed=played.tolist(), options={"takeover": takeovers})
    first = np.packbits(envs.unwrapped.observations.astype(np.uint8), axis=1)
    openings = envs.unwrapped.envs.get_attr("opening")  # the rows of the steps before the takeover
    for i, rows in enumerate(openings):
        if rows:  # what blue sees at the takeover follows these steps; the observation after the reset is all zeros
            assert (first[i] == rows[-1]["obs"]).all()
            first[i] = 0
    generators = [np.random.default_rng([int(one), 7]) for one in played]
    games: list[list[dict[str, np.ndarray]]] = [list(rows) for rows in openings]
    for _ in range(max_steps):
        packed = envs.packed_observations
        actions = np.concatenate([blue(packed[i : i + 1], generator) for i, generator in enumerate(generators)])
        infos = envs.step(actions)[-1]
        step = {name: rows for name, rows in infos["record"].items() if not name.startswith("_")}
        for i, game in enumerate(games):
            game.append({name: rows[i] for name, rows in step.items()})
    lengths = [len(game) for game in games[:kept]]
    arrays = {
        name: np.stack([[row[name] for row in game + game[-1:] * (max(lengths) - len(game))] for game in games[:kept]])
        for name in step
    }
    network: Network = envs.unwrapped.network
    codes = codes_of(network)
    arrays |= {
        "red_agent": np.full(kept, codes.red_agents.index(red_agent), np.uint8),
        "n_steps": np.array(lengths, np.uint16),
        "obs0": first[:kept],
        "seed": seeds,
    }
    path = f"live game in {network.name} against {red_agent}, seeds {seeds[0]} to {seeds[-1]}"
    return Trace(path, arrays, codes, network.digest)
