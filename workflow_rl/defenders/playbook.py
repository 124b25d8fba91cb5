"""A defender's own playbook: the priorities that its repairs reveal, and the workflows that it follows unasked."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from workflow_rl.engine.network import Network
from workflow_rl.envs.blue import Policy, cell_of, check_episodes, view_of
from workflow_rl.envs.checks import check_seed
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.game import Games
from workflow_rl.envs.views import with_view
from workflow_rl.errors import check_choice
from workflow_rl.training.compliance import EPISODE_DTYPE, NO_TYPE, Obedience, type_masks
from workflow_rl.training.workflow import all_workflows

PURPOSE = 41  # part of the games' seeds
THRESHOLD = 0.95


@dataclass(frozen=True)
class Pair:
    """How often one unit type was repaired while the other was compromised, and the reverse."""

    first: str
    then: str
    times: int
    reversed: int


@dataclass(frozen=True)
class Playbook:
    """The priorities that a defender's repairs follow or violate, and those that never arise."""

    red_agent: str
    edition: str
    takeover: str
    episodes: int
    mean_return: float
    standard_error: float
    repairs: float  # per game
    pairs: list[Pair]
    kept: list[str]  # the followed workflows
    orders: dict[str, Obedience]  # all workflows


def read_playbook(
    policy: Policy, games: Games, n_episodes: int = 1500, seed: int = 0, threshold: float = THRESHOLD
) -> Playbook:
    """Plays games against one red agent and infers the defender's priorities from its repairs.

    A workflow counts as followed if its compliance and kept reach the ``threshold``.
    """
    red = games.network.red_number(check_choice("red agent", games.red_agent, games.network.red_agents))
    check_episodes(n_episodes)
    check_seed(seed)
    plain = CageVectorEnv(n_episodes, games.red_agent, games.edition, None, "sleep", games.network, games.takeover)
    envs = with_view(plain, view_of(policy))
    envs.reset(seed=np.random.SeedSequence([seed, red, PURPOSE]).generate_state(n_episodes, np.uint64).tolist())
    returns, fixes, counts = _play(envs, policy, np.random.default_rng([seed, red, PURPOSE]), games)
    cell, orders = cell_of(returns), _orders(counts, fixes, games.network)
    return Playbook(
        red_agent=games.red_agent, edition=games.edition, takeover=games.takeover, episodes=n_episodes,
        mean_return=cell.mean, standard_error=cell.standard_error, repairs=float(counts.sum() / n_episodes),
        pairs=_pairs(counts.sum(axis=0), games.network.unit_types),
        kept=[order for order, found in orders.items() if found.follows(threshold)], orders=orders,
    )  # fmt: skip


def _play(
    envs: Any, policy: Policy, generator: np.random.Generator, games: Games
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns (n,), fixes (n,), and repairs (n, n_types, 2**n_types) by type and set of compromised types."""
    n, n_types = envs.num_envs, len(games.network.unit_types)
    of_type = (type_masks(games.network)[:, None] >> np.arange(len(games.network.hosts)) & 1).astype(int)
    counts = np.zeros((n, n_types, 1 << n_types), np.int32)
    returns, fixes = np.zeros(n), np.zeros(n, int)
    for _ in range(games.max_steps):
        _, rewards, _, _, infos = envs.step(policy(envs.packed_observations, generator))
        returns += rewards
        fixes += infos["fixed_unit_type"] != NO_TYPE
        rows = np.flatnonzero(infos["repaired_unit_type"] != NO_TYPE)
        held = (infos["compromised_before"][rows] @ of_type.T > 0) @ (1 << np.arange(n_types))
        counts[rows, infos["repaired_unit_type"][rows], held] += 1
    return returns, fixes, counts


def _pairs(counts: np.ndarray, types: tuple[str, ...]) -> list[Pair]:
    """All pairs of types, the one more often repaired first in front, sorted by how often they arose."""
    held = np.arange(counts.shape[1])
    found = []
    for a, b in combinations(range(len(types)), 2):
        times = {first: int(counts[first, held >> second & 1 > 0].sum()) for first, second in ((a, b), (b, a))}
        first, second = (a, b) if times[a] >= times[b] else (b, a)
        found.append(Pair(types[first], types[second], times[first], times[second]))
    return sorted(found, key=lambda pair: -pair.times - pair.reversed)


def _orders(counts: np.ndarray, fixes: np.ndarray, network: Network) -> dict[str, Obedience]:
    """How well each workflow was followed, from counts (episodes, repaired type, set of compromised types)."""
    found = {}
    repairs = counts.sum(axis=(1, 2))
    sets = np.arange(counts.shape[2])
    for workflow in all_workflows(network):
        broken, before = np.zeros(counts.shape[1:], bool), 0
        for kind in workflow.indices().tolist():
            broken[kind] = sets & before != 0  # a type of higher priority was compromised
            before |= 1 << kind
        episodes = np.zeros(len(counts), EPISODE_DTYPE)
        episodes["repairs"], episodes["violations"] = repairs, counts[:, broken].sum(axis=1)
        episodes["idle"] = fixes - repairs
        found[str(workflow)] = Obedience.of(episodes)
    return found
