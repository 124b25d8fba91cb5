"""A defender's own playbook: what it repaired while what else was held, and the orders of repair that it so keeps."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from workflow_rl.engine.network import RED_AGENTS, Network, check_choice
from workflow_rl.envs.blue import Policy, cell_of, check_episodes, view_of
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.game import check_seed
from workflow_rl.envs.views import with_view
from workflow_rl.training.compliance import EPISODE_DTYPE, NO_TYPE, Obedience, type_masks
from workflow_rl.training.workflow import all_workflows

PURPOSE = 41  # of the games, for their seeds
THRESHOLD = 0.95


def read_playbook(
    policy: Policy,
    red_agent: str = "bline",
    edition: str = "current",
    takeover: str = "0",
    n_episodes: int = 1500,
    seed: int = 0,
    max_steps: int = 100,
    threshold: float = THRESHOLD,
) -> dict[str, Any]:
    """Plays games and says which priorities the repairs follow, which they break, and which never come up.

    Args:
        policy: any function from packed observations (n,) and a generator to actions (n,).
        red_agent: the opponent.
        edition: the rules.
        takeover: steps that red plays before.
        n_episodes: how many games.
        seed: of the games and of the policy's chance.
        max_steps: length of a game.
        threshold: compliance and kept at which an order counts as kept.

    Returns:
        ``pairs``: for two unit types how often each was repaired while the other was held; ``orders``: figures of every
        order, ``kept`` those that reach the threshold; ``mean_return``, ``standard_error``, ``repairs`` per game.
    """
    check_choice("red agent", red_agent, RED_AGENTS)
    check_episodes(n_episodes)
    check_seed(seed)
    plain = CageVectorEnv(n_episodes, red_agent=red_agent, edition=edition, max_steps=None, takeover=takeover)
    envs = with_view(plain, view_of(policy))
    types = envs.network.unit_types
    seeds = np.random.SeedSequence([seed, RED_AGENTS.index(red_agent), PURPOSE]).generate_state(n_episodes, np.uint64)
    generator = np.random.default_rng([seed, RED_AGENTS.index(red_agent), PURPOSE])
    envs.reset(seed=seeds.tolist())
    of_type = (type_masks(envs.network)[:, None] >> np.arange(len(envs.network.hosts)) & 1).astype(bool)
    counts = np.zeros((n_episodes, len(types), 1 << len(types)), np.int32)  # by repaired type and set of held ones
    returns, fixes = np.zeros(n_episodes), np.zeros(n_episodes, int)
    for _ in range(max_steps):
        _, rewards, _, _, infos = envs.step(policy(envs.packed_observations, generator))
        returns += rewards
        fixes += infos["fixed_unit_type"] != NO_TYPE
        rows = np.flatnonzero(infos["repaired_unit_type"] != NO_TYPE)
        held = (infos["compromised_before"][rows] @ of_type.T.astype(int) > 0) @ (1 << np.arange(len(types)))
        counts[rows, infos["repaired_unit_type"][rows], held] += 1
    cell, orders = cell_of(returns), _orders(counts, fixes, envs.network)
    kept = [order for order, found in orders.items() if found.follows(threshold)]
    return {
        "red_agent": red_agent,
        "edition": edition,
        "takeover": takeover,
        "episodes": n_episodes,
        "mean_return": cell.mean,
        "standard_error": cell.standard_error,
        "repairs": float(counts.sum() / n_episodes),
        "pairs": _pairs(counts.sum(axis=0), types),
        "kept": kept,
        "orders": {order: asdict(found) for order, found in orders.items()},
    }


def _pairs(counts: np.ndarray, types: tuple[str, ...]) -> list[dict[str, Any]]:
    """For each two types: what was repaired how often while the other was held; the type repaired first comes first."""
    held = np.arange(counts.shape[1])
    found = []
    for a, b in combinations(range(len(types)), 2):
        times = {first: int(counts[first, held >> second & 1 > 0].sum()) for first, second in ((a, b), (b, a))}
        first, second = (a, b) if times[a] >= times[b] else (b, a)
        found.append({"first": types[first], "then": types[second], "times": times[first], "reversed": times[second]})
    return sorted(found, key=lambda pair: -pair["times"] - pair["reversed"])


def _orders(counts: np.ndarray, fixes: np.ndarray, network: Network) -> dict[str, Obedience]:
    """How each order was kept, from counts (episodes, repaired type, set of held types)."""
    found = {}
    repairs = counts.sum(axis=(1, 2))
    sets = np.arange(counts.shape[2])
    for workflow in all_workflows(network):
        broken, before = np.zeros(counts.shape[1:], bool), 0
        for kind in workflow.indices().tolist():
            broken[kind] = sets & before != 0  # something of higher priority was held
            before |= 1 << kind
        episodes = np.zeros(len(counts), EPISODE_DTYPE)
        episodes["repairs"], episodes["violations"] = repairs, counts[:, broken].sum(axis=1)
        episodes["idle"] = fixes - repairs
        found[str(workflow)] = Obedience.of(episodes)
    return found
