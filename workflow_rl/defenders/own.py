"""Your own defender in the challenge's table: any function from observations to actions, or a converted policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS, check_jobs, parse_takeover
from workflow_rl.defenders.names import DEFAULT_EPISODES
from workflow_rl.defenders.protocol import ANCHORS, PUBLISHED_EDITION, evaluate_table
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import in_words
from workflow_rl.envs.blue import Cell, OwnPolicy, Policy, Progress, check_episodes
from workflow_rl.envs.cyborg_sim import NATIVE, Backend, check_backend
from workflow_rl.envs.game import Games
from workflow_rl.errors import UserError, check_choice
from workflow_rl.runs import Json
from workflow_rl.training.evaluation import challenge_games, evaluate_trained, player_of
from workflow_rl.training.policy_file import PolicyFile, check_edition
from workflow_rl.training.workflow import Workflow

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
        lines.append("steps" + "".join(f"{red:>19}" for red in self.cells))
        for length in CHALLENGE_LENGTHS:
            row = [own[length] for own in self.cells.values()]
            lines.append(f"{length:5}" + "".join(f"{f'{c.mean:.2f} ± {c.standard_error:.2f}':>19}" for c in row))
        lines.append(f"Total {self.total:.2f} ± {self.total_standard_error:.2f}")
        lines.append("For comparison, sums over the three lengths:")
        for name, known in ANCHORS.get(self.edition, {}).items():
            sums = ", ".join(f"{red} {sum(values):.2f}" for red, values in known.items())
            lines.append(f"  {name}: {sums}")
        if self.edition != PUBLISHED_EDITION:
            lines.append(
                f"The published scores are of another edition; to compare, train with edition={PUBLISHED_EDITION!r}."
            )
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
    network, where = as_network(CAGE2), Backend(backend, cyborg_path, check_jobs(None))
    own = contender(policy, network, batch, edition, takeover="0")
    check_backend(where, own.edition)
    games = DEFAULT_EPISODES[backend] if episodes is None else episodes
    found = own.returns(network, games, seed, where, progress)
    cells = {red: {int(n): Cell(**cell) for n, cell in row.items()} for red, row in found["cells"].items()}
    simulator = "native engine" if backend == "native" else "CybORG"
    return ChallengeTable(
        own.name, own.edition, simulator, games, seed, cells, found["total"], found["total_standard_error"]
    )


@dataclass(frozen=True)
class Contender:
    """A defender as a user gave it (``given``) and as a player (``blue``), with what it is to play."""

    given: AnyPolicy
    blue: Policy
    name: str
    edition: str
    workflow: str  # by which its fixes are judged; empty: none
    takeover: str
    red_agents: tuple[str, ...]  # all of the network, first those that it was trained against

    @property
    def any_order(self) -> bool:
        """Is it a universal policy that was not told its workflow?"""
        return isinstance(self.given, PolicyFile) and self.given.universal and not self.workflow

    def returns(
        self, network: Network, n_episodes: int, seed: int, backend: Backend = NATIVE,
        progress: Progress = lambda _: None,
    ) -> Json:  # fmt: skip
        """Mean returns against all red agents, in the form of :func:`workflow_rl.envs.blue.table_of`."""
        check_episodes(n_episodes)
        reds = ",".join(network.red_agents)
        if isinstance(self.given, PolicyFile):
            fresh = challenge_games(network, reds, self.edition, n_episodes, seed, False, self.takeover)
            order = self.workflow if self.given.universal else ""
            return evaluate_trained(self.given, order, fresh, backend, progress)
        games = Games(network, reds, self.edition, max(CHALLENGE_LENGTHS), self.takeover)
        return evaluate_table(self.blue, games, n_episodes, seed, progress, backend)


def contender(
    policy: object, network: Network, batch: bool = False, edition: str | None = None, workflow: str = "",
    takeover: str | None = None,
) -> Contender:  # fmt: skip
    """What a user gave as a defender of the network.

    Args:
        policy: a policy of ours or a function.
        network: the network to defend.
        batch: whether the function takes many observations.
        edition: the rules; default: the policy's own, else the network's first.
        workflow: the order by which fixes are judged; default: the policy's own, else none.
        takeover: steps that red plays before blue; default: the policy's own, else 0.
    """
    rules = None if edition is None else check_choice("edition", edition, network.editions)
    order = str(Workflow.parse(workflow, network)) if workflow else ""
    reds, after = network.red_agents, "0" if takeover is None else takeover
    parse_takeover(after)
    if isinstance(policy, PolicyFile):
        own = as_network(policy.view.network)
        if own.digest != network.digest:
            raise UserError(f"the policy defends {in_words(own)}, not {in_words(network)}.")
        if rules is not None:
            check_edition(policy, rules)
        trained = sorted(reds, key=lambda red: red not in policy.red_agent.split(","))
        about = (policy.edition, order or policy.workflow, policy.takeover if takeover is None else takeover)
        return Contender(policy, player_of(policy, order), policy.workflow or "the policy", *about, tuple(trained))
    if not callable(policy):
        hint = "lambda observation: model.predict(observation)[0], or workflow_rl.from_sb3(model)"
        what = f"a function from an observation to an action, not {type(policy).__name__}"
        raise UserError(f"a policy must be {what}; for a model of stable-baselines3: {hint}.")
    name = str(getattr(policy, "__name__", type(policy).__name__))
    name, blue = "the policy" if name == "<lambda>" else name, OwnPolicy(policy, network, batch)
    return Contender(policy, blue, name, rules or next(iter(network.editions)), order, after, reds)
