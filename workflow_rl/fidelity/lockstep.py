"""Live lockstep: genuine CybORG plays, its chance is recorded, and the engine plays the same game step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np

from workflow_rl.engine.network import GREEN_AGENTS, RED_AGENTS
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.blue import Policy, view_of
from workflow_rl.envs.checks import check_seed
from workflow_rl.envs.cyborg_env import CyborgVectorEnv
from workflow_rl.envs.cyborg_sim import load_cyborg
from workflow_rl.envs.takeover import takeovers_of
from workflow_rl.envs.views import PLAIN, unpack_words, with_view
from workflow_rl.errors import UserError
from workflow_rl.fidelity.cyborg_recorder import Recorder
from workflow_rl.fidelity.replay import ReplayResult, replay
from workflow_rl.fidelity.traces import TRACE_RED_AGENTS, Trace

MOST_EPISODES = 1_000_000


def live_lockstep(
    n_episodes: int,
    blues: dict[str, Policy],
    red_agents: Sequence[str] = RED_AGENTS,
    green_agents: Sequence[str] = GREEN_AGENTS,
    max_steps: int = 100,
    seed: int = 0,
    jobs: int = 1,
    cyborg_path: str = "",
    progress: Callable[[int], None] = lambda _: None,
    takeover: str = "0",
) -> dict[str, Any]:
    """Plays ``n_episodes`` games of genuine CybORG and the same games in the engine, and counts steps that differ.

    The games are dealt out to all combinations of opponent, blue and green agent in turn, opponents first.

    Args:
        n_episodes: number of games.
        blues: defenders by name.
        red_agents: opponents.
        green_agents: ``sleep`` and ``active``, or one of them.
        max_steps: length of a game.
        seed: of the first game; every game has its own.
        jobs: processes.
        cyborg_path: a checkout of CybORG to use instead of csle-cyborg.
        progress: told how many more games are done.
        takeover: steps that red plays before blue acts, of a comma list the games of each combination take one in turn;
            they are compared too.
    """
    if not 1 <= n_episodes <= MOST_EPISODES:
        raise UserError(f"the number of games must be from 1 to {MOST_EPISODES}, not {n_episodes}.")
    kinds = list(product(green_agents, blues, red_agents))
    check_seed(seed)
    check_seed(seed + n_episodes - 1)
    package, network = load_cyborg(cyborg_path), load_network()
    total, games = ReplayResult(), []
    for kind, (green, blue, red) in enumerate(kinds[:n_episodes]):
        seeds = np.array([seed + number for number in range(kind, n_episodes, len(kinds))], np.uint64)
        options = {"red_agent": red, "green_agent": green, "edition": package.edition, "cyborg_path": cyborg_path}
        found = ReplayResult()
        size = min(jobs, len(seeds))
        plain = CyborgVectorEnv(size, max_steps=None, recorder=Recorder, **options)
        with closing(with_view(plain, view_of(blues[blue]))) as envs:
            for first in range(0, len(seeds), envs.num_envs):
                some = seeds[first : first + envs.num_envs]
                after = takeovers_of(takeover, np.resize((some - np.uint64(seed)) // np.uint64(len(kinds)), size))
                trace = _record(envs, blues[blue], red, some, max_steps, after)
                found.add(replay(trace, network, package.edition))
                progress(len(some))
        games.append({"red_agent": red, "green_agent": green, "blue": blue} | asdict(found))
        total.add(found)
    return {"cyborg": package.name, "edition": package.edition, **asdict(total), "games": games}


def _record(envs: Any, blue: Policy, red: str, seeds: np.ndarray, max_steps: int, takeovers: list[str]) -> Trace:
    """Plays one game in each environment (the first ones where there are fewer seeds) and returns the recording."""
    n, kept = envs.num_envs, len(seeds)
    played = np.resize(seeds, n)
    envs.reset(seed=played.tolist(), options={"takeover": takeovers})
    first = np.packbits(unpack_words(envs.unwrapped.packed_observations[:, None], PLAIN).astype(np.uint8), axis=1)
    openings = envs.unwrapped.envs.get_attr("opening")  # rows of the steps before the takeover
    for i, rows in enumerate(openings):
        if rows:  # blue sees what it would have seen; the first observation of such a game is nobody's
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
    arrays |= {
        "red_agent": np.full(kept, TRACE_RED_AGENTS.index(red), np.uint8),
        "n_steps": np.array(lengths, np.uint16),
        "obs0": first[:kept],
        "seed": seeds,
    }
    return Trace(f"live game against {red}, seeds {seeds[0]} to {seeds[-1]}", arrays)
