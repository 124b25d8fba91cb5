"""Games of defenders for the studies: returns at several lengths, and compliance where there is an order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.studies.statistics import summary
from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.defenders.names import blue_named
from workflow_rl.engine.network import RED_AGENTS, Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.observe import BELIEF_PRIVILEGED, BELIEF_USER, by_host
from workflow_rl.envs.blue import Policy, cell_of, view_of
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.views import with_view
from workflow_rl.training.compliance import FACTS, Compliance, Obedience
from workflow_rl.training.workflow import Workflow, all_workflows

BATCH = 2000  # games side by side
EVALUATION = 61  # purpose of the games' seeds


def play_games(
    blue: Policy,
    red: str,
    edition: str,
    lengths: Sequence[int],
    games: int,
    seed: int,
    green: str = "sleep",
    workflow: Workflow | None = None,
) -> dict[str, Any]:
    """Mean return over the first steps of each game, and compliance in the first 100 with a workflow.

    ``{"returns": {length: {mean, standard_error, ...}}}`` and the fields of :class:`Obedience`.
    """
    seeds = np.random.SeedSequence([seed, EVALUATION, RED_AGENTS.index(red)]).generate_state(games, np.uint64)
    generator = np.random.default_rng([seed, EVALUATION, RED_AGENTS.index(red), 1])
    sums, fixes = [], []
    for first in range(0, games, BATCH):
        n = min(BATCH, games - first)
        plain = CageVectorEnv(n, red_agent=red, edition=edition, max_steps=None, green_agent=green)
        with closing(with_view(plain, view_of(blue))) as envs:
            envs.reset(seed=seeds[first : first + n].tolist())
            found = _play_batch(envs, blue, lengths, generator, workflow)
        sums.append(found[0])
        fixes.append(found[1])
    returns, counts = np.concatenate(sums), np.concatenate(fixes)
    result: dict[str, Any] = {
        "returns": {str(n): asdict(cell_of(column)) for n, column in zip(lengths, returns.T, strict=True)}
    }
    if workflow:
        result |= asdict(Obedience.of(counts))
    return result


def _play_batch(
    envs: Any, blue: Policy, lengths: Sequence[int], generator: np.random.Generator, workflow: Workflow | None
) -> tuple[np.ndarray, np.ndarray]:
    n = envs.num_envs
    compliance = Compliance(envs.network, np.tile((workflow or all_workflows()[0]).indices(), (n, 1)), 0.0)
    total, returns, counts = np.zeros(n), np.empty((n, len(lengths))), compliance.episodes.copy()
    for step in range(1, max(lengths) + 1):
        _, rewards, _, _, infos = envs.step(blue(envs.packed_observations, generator))
        total += rewards
        if workflow and step <= max(CHALLENGE_LENGTHS):
            compliance.update(*(infos[name] for name in FACTS))
        for column, length in enumerate(lengths):
            if step == length:
                returns[:, column] = total
    return returns, compliance.episodes.copy() if workflow else counts


def greedy_priority(workflow: Workflow, remove_users: bool, network: Network | None = None) -> Policy:
    """Fixes the host of highest priority that looks compromised, and sleeps if none does.

    Red's foothold is left alone: no fix helps there. Of several hosts of a type the one of lowest index is taken.

    Args:
        workflow: the priorities.
        remove_users: Remove where only user access is believed, else always Restore.
        network: names and numbers of the challenge.
    """
    network = network or load_network()
    hosts = network.hosts
    order = sorted(range(len(hosts)), key=lambda index: (workflow.rank(hosts[index].unit_type), index))
    order = [index for index in order if hosts[index].name != network.red.foothold]
    first_host, sleep = network.host_names[0], network.action_index("Sleep")
    remove, restore = (network.action_index(verb, first_host) for verb in ("Remove", "Restore"))

    def act(packed: np.ndarray, _: np.random.Generator) -> np.ndarray:
        actions, beliefs = np.full(len(packed), sleep), by_host(packed, len(hosts)) & BELIEF_PRIVILEGED
        for host in reversed(order):
            belief = beliefs[:, host]
            verb = np.where((belief == BELIEF_USER) & remove_users, remove, restore)
            actions = np.where(belief != 0, verb + host, actions)
        return actions

    return act


def play(
    place: Path,
    blue: str,
    reds: list[str],
    games: int,
    seed: int,
    lengths: list[int] | None = None,
    edition: str = "current",
    green: str = "sleep",
    workflow: str = "",
    made_for: str = "",
) -> dict[str, Any]:
    """Games of a defender by name, or of the policy that the cell ``cell:KEY`` trained, against each red agent.

    Champion and expert are those of the edition that is played, unless ``made_for`` names another one.
    """
    name: str | Path = blue
    if blue.startswith("cell:"):
        name = place.with_name(f"{blue.removeprefix('cell:')}.safetensors")
    order = Workflow.parse(workflow) if workflow else None
    policy = blue_named(name, workflow, load_network(), made_for or edition, any_edition=isinstance(name, Path))
    chosen = lengths or list(CHALLENGE_LENGTHS)
    return {red: play_games(policy, red, edition, chosen, games, seed, green, order) for red in reds}


def play_greedy(reds: list[str], games: int, seed: int) -> dict[str, Any]:
    """The greedy rule for every workflow; the best one is chosen by other games than those it is judged by.

    ``{red: {variant: {"by_workflow": {order: return at 100}, "best": order, "games": of the best}}}``
    """
    found: dict[str, Any] = {}
    longest = max(CHALLENGE_LENGTHS)
    for red in reds:
        for variant in ("restore", "remove"):
            means = {}
            for workflow in all_workflows():
                rule = greedy_priority(workflow, variant == "remove")
                played = play_games(rule, red, "current", (longest,), games, seed + 1)
                means[str(workflow)] = played["returns"][str(longest)]["mean"]
            best = max(means, key=means.__getitem__)
            rule = greedy_priority(Workflow.parse(best), variant == "remove")
            judged = {
                other: play_games(rule, other, "current", CHALLENGE_LENGTHS, games, seed, workflow=Workflow.parse(best))
                for other in RED_AGENTS
            }
            found.setdefault(red, {})[variant] = {"by_workflow": means, "best": best, "games": judged}
    return found


def over_seeds(played: Sequence[dict[str, Any]], red: str, length: int) -> dict[str, Any]:
    """Summary of one cell of several policies' games."""
    return summary([one[red]["returns"][str(length)]["mean"] for one in played])
