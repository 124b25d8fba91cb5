"""Your own defender in the challenge's table: any function from observations to actions, or a converted policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS, check_jobs
from workflow_rl.defenders.names import DEFAULT_EPISODES
from workflow_rl.defenders.protocol import ANCHORS, PUBLISHED_EDITION, evaluate_table
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import in_words
from workflow_rl.envs.blue import Cell, OwnPolicy, Policy, Progress, check_episodes
from workflow_rl.envs.cyborg_sim import Backend, check_backend
from workflow_rl.envs.game import Games
from workflow_rl.errors import UserError, check_choice
from workflow_rl.runs import Json
from workflow_rl.training.evaluation import challenge_games, evaluate_trained, player_of
from workflow_rl.training.policy_file import PolicyFile, check_edition

AnyPolicy = PolicyFile | Callable[[np.ndarray], Any]
"""A policy of ours (``load_policy``, ``from_sb3``), or a function from an observation, or a batch, to actions."""


@dataclass(frozen=True)
class ChallengeTable:
    """Mean returns against every red agent at 30, 50 and 100 steps; ``str()`` is the table."""

    policy: str
    edition: str
    simulator: str
    episodes: int  # per red agent
    seed: int
    cells: Mapping[str, Mapping[int, Cell]]  # by red agent and length
    total: float  # sum of the means
    total_standard_error: float

    def __str__(self) -> str:
        """The table with its total, and what known defenders reach in the same edition."""
        about = f"{self.edition} edition, {self.simulator}, {self.episodes} games per red agent"
        lines = [f"{self.policy}: mean return ± standard error, {about}"]
        lines.append("steps" + "".join(f"{red:>17}" for red in self.cells))
        for length in CHALLENGE_LENGTHS:
            row = [own[length] for own in self.cells.values()]
            lines.append(f"{length:5}" + "".join(f"{f'{c.mean:.2f} ± {c.standard_error:.2f}':>17}" for c in row))
        lines.append(f"Total {self.total:.2f} ± {self.total_standard_error:.2f}")
        lines.append("For comparison, sums over the three lengths:")
        for name, known in ANCHORS.get(self.edition, {}).items():
            sums = ", ".join(f"{red} {sum(values):.2f}" for red, values in known.items())
            lines.append(f"  {name}: {sums}")
        if self.edition != PUBLISHED_EDITION:
            lines.append(f"The published scores are of the other edition: edition={PUBLISHED_EDITION!r}.")
        return "\n".join(lines)

    def to_json(self) -> Json:
        """Everything as plain values."""
        return asdict(self)


def challenge(
    policy: AnyPolicy, episodes: int | None = None, edition: str | None = None, batch: bool = False, seed: int = 0,
    backend: str = "native", cyborg_path: str = "", progress: Progress = lambda _: None,
) -> ChallengeTable:  # fmt: skip
    """The challenge's table of a defender, as ``workflow-rl evaluate --protocol challenge`` plays it.

        print(workflow_rl.challenge(lambda observation: 0))  # a defender that sleeps

    Args:
        policy: a function from an observation (52,) to an action; a method ``reset()``, if it has one, is called
            before every game. Or a policy of ours, e.g. from ``from_sb3``.
        episodes: games per red agent; default: 1000, on CybORG 100.
        edition: ``current`` or ``leaderboard``; default: the policy's own, else ``current``.
        batch: the function maps observations (n, 52) to actions (n,), which is much faster.
        seed: same seed, same games.
        backend: ``native``, or ``cyborg`` for genuine CybORG.
        cyborg_path: a checkout of CybORG to use instead of csle-cyborg.
        progress: called with the number of newly finished games.
    """
    network = as_network(CAGE2)
    rules = edition_for(policy, edition, network)
    blue, where = defender_of(policy, batch, network), Backend(backend, cyborg_path, check_jobs(None))
    check_backend(where, rules)
    games = DEFAULT_EPISODES[backend] if episodes is None else episodes
    check_episodes(games)
    found = returns_table(policy, blue, Games(network, "", rules, max(CHALLENGE_LENGTHS)), games, seed, where, progress)
    cells = {red: {int(n): Cell(**cell) for n, cell in row.items()} for red, row in found["cells"].items()}
    simulator = "native engine" if backend == "native" else "CybORG"
    return ChallengeTable(
        name_of(policy), rules, simulator, games, seed, cells, found["total"], found["total_standard_error"]
    )


def returns_table(
    policy: AnyPolicy, blue: Policy, games: Games, n_episodes: int, seed: int, backend: Backend,
    progress: Progress = lambda _: None,
) -> Json:  # fmt: skip
    """Mean returns of a defender against all red agents, in the form of :func:`workflow_rl.envs.blue.table_of`.

    Args:
        policy: the defender as the user gave it.
        blue: the same as a player.
        games: edition and takeover.
        n_episodes: games per red agent.
        seed: of the games.
        backend: the simulator.
        progress: called with the number of newly finished games.
    """
    reds = ",".join(games.network.red_agents)
    if isinstance(policy, PolicyFile):
        fresh = challenge_games(games.network, reds, games.edition, n_episodes, seed, False, games.takeover)
        return evaluate_trained(policy, "", fresh, backend, progress)
    every = Games(games.network, reds, games.edition, games.max_steps, games.takeover)
    return evaluate_table(blue, every, n_episodes, seed, progress, backend)


def defender_of(policy: object, batch: bool, network: Network) -> Policy:
    """What a user gave as a defender of the network, as a player."""
    if isinstance(policy, PolicyFile):
        own = as_network(policy.view.network)
        if own.digest != network.digest:
            raise UserError(f"the policy defends {in_words(own)}, not {in_words(network)}.")
        return player_of(policy)
    if not callable(policy):
        hint = "lambda observation: model.predict(observation)[0], or workflow_rl.from_sb3(model)"
        what = f"a function from an observation to an action, not {type(policy).__name__}"
        raise UserError(f"a policy must be {what}; for a model of stable-baselines3: {hint}.")
    return OwnPolicy(policy, network, batch)


def edition_for(policy: AnyPolicy, edition: str | None, network: Network) -> str:
    """The requested edition, else that of the policy, else the network's first."""
    if edition is None:
        return policy.edition if isinstance(policy, PolicyFile) else next(iter(network.editions))
    check_choice("edition", edition, network.editions)
    if isinstance(policy, PolicyFile):
        check_edition(policy, edition)
    return edition


def name_of(policy: AnyPolicy) -> str:
    """What a table calls the defender: the name of its function or class."""
    if isinstance(policy, PolicyFile):
        return policy.workflow or "the policy"
    name = str(getattr(policy, "__name__", type(policy).__name__))
    return "the policy" if name == "<lambda>" else name
