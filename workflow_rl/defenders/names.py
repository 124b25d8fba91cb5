"""Resolves and evaluates policies by name: a reference defender, the champion, a file or a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from workflow_rl.config import CHALLENGE_LENGTHS, parse_takeover
from workflow_rl.defenders.protocol import ANCHORS, REFERENCE_POLICIES, evaluate_table, reference_policy
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import chosen_network, in_words
from workflow_rl.envs.blue import Policy, Progress
from workflow_rl.envs.cyborg_sim import NATIVE, Backend, check_backend
from workflow_rl.envs.game import Games
from workflow_rl.errors import UserError, check_choice
from workflow_rl.runs import Json

CHAMPION = "champion"
BY_NAME = (*REFERENCE_POLICIES, CHAMPION)
DATA = Path(__file__).parent / "weights"  # of the bundled champions
DEFAULT_EPISODES = {"native": 1000, "cyborg": 100}  # the challenge's own evaluation plays 100
LIVE_BLUES = ("random", "reactive-remove", CHAMPION)  # defenders of lockstep games
ROUNDING = 1e-9


@dataclass(frozen=True)
class Asked:
    """A requested evaluation; an edition or takeover of None means that of the policy."""

    policy: str
    red_agents: str
    episodes: int
    network: Network
    seed: int = 0
    edition: str | None = None
    takeover: str | None = None
    workflow: str = ""
    greedy: bool = False
    green: str = "sleep"


def evaluate_named(asked: Asked, backend: Backend = NATIVE, progress: Progress = lambda _: None) -> Json:
    """Evaluates a policy by name, in the form of :func:`workflow_rl.envs.blue.table_of`.

    A reference defender plays the current edition without a takeover unless the request says otherwise.
    """
    policy, network = asked.policy, asked.network
    edition, takeover = edition_of(policy, asked.edition, network), takeover_of(policy, asked.takeover, network)
    check_backend(backend, edition)
    if policy in REFERENCE_POLICIES:
        if asked.workflow or asked.greedy:
            raise UserError(f"{policy} is a reference defender: it takes neither a workflow nor --greedy.")
        blue = reference_policy(policy, network, edition)
        games = Games(network, asked.red_agents, edition, max(CHALLENGE_LENGTHS), takeover, asked.green)
        table = evaluate_table(blue, games, asked.episodes, asked.seed, progress, backend)
    else:
        from workflow_rl.training.evaluation import challenge_games, evaluate_policy_file  # late: it imports torch

        fresh = challenge_games(network, asked.red_agents, edition, asked.episodes, asked.seed, asked.greedy, takeover)
        fresh = replace(fresh, games=replace(fresh.games, green_agent=asked.green))
        path = policy_path(policy, edition, network, workflow=asked.workflow)
        table = evaluate_policy_file(path, asked.workflow, fresh, backend, progress)
    about: Json = {"policy": policy, "edition": edition, "takeover": takeover, "backend": backend.name}
    about |= {"episodes": asked.episodes, "seed": asked.seed, "network": network.name, "green_agent": asked.green}
    if backend.name == "cyborg":
        from workflow_rl.envs.cyborg_sim import load_cyborg

        about["cyborg"] = load_cyborg(backend.cyborg_path).name
    return about | table


def challenge(asked: Asked, backend: Backend, progress: Progress) -> Json:
    """The challenge's table: every red agent at 30, 50 and 100 steps.

    On CybORG the table also has the engine's figures (``native``) and the differences in standard errors.
    """
    if asked.network.digest != as_network(CAGE2).digest:
        raise UserError(f"the challenge's protocol is that of CAGE Challenge 2, not of {in_words(asked.network)}.")
    asked = replace(asked, red_agents=",".join(asked.network.red_agents), takeover="0")
    table = evaluate_named(asked, backend, progress)
    table |= {"protocol": "challenge", "anchors": ANCHORS.get(table["edition"], {})}
    if backend.name == "native":
        return table
    native = evaluate_named(replace(asked, episodes=max(asked.episodes, DEFAULT_EPISODES["native"])))
    names = ("episodes", "cells", "total", "total_standard_error", "obedience")
    table["native"] = {name: native[name] for name in names if name in native}
    table["difference"] = differences(table["cells"], native["cells"])
    return table


def differences(left: Json, right: Json) -> dict[str, dict[str, float | None]]:
    """:func:`in_standard_errors` for each red agent and length of two tables."""
    return {
        red: {length: in_standard_errors(cell, right[red][length]) for length, cell in row.items()}
        for red, row in left.items()
    }


def in_standard_errors(left: Json, right: Json) -> float | None:
    """Difference of the means of two cells in its standard errors; None if both samples have no variance but differ.

    The variance is pooled over both samples, so that a small sample without variance does not count as certain.
    """
    n, m = left["episodes"], right["episodes"]
    spread = (n - 1) * left["standard_deviation"] ** 2 + (m - 1) * right["standard_deviation"] ** 2
    error = math.sqrt(spread / (n + m - 2) * (1 / n + 1 / m))
    apart = float(left["mean"] - right["mean"])
    if abs(apart) < ROUNDING:
        return 0.0
    return apart / error if error > ROUNDING else None


def blue_named(
    policy: str | Path, workflow: str, network: Network, edition: str = "", any_edition: bool = False
) -> Policy:
    """A defender by name (a reference policy or the champion), or the trained policy of a file or run.

    Args:
        policy: the name or path; a Path is never a name.
        workflow: the workflow that a universal policy is conditioned on.
        network: the network to defend.
        edition: the edition of the games; default: the network's first.
        any_edition: accept a policy that was trained for another edition.
    """
    edition = edition or next(iter(network.editions))
    if policy in REFERENCE_POLICIES:
        return reference_policy(str(policy), network, edition)
    from workflow_rl.training.evaluation import policy_of

    path = policy if isinstance(policy, Path) else policy_path(policy, edition, network, workflow=workflow)
    return policy_of(path, workflow, network, "" if any_edition else edition)


def live_blues(network: Network) -> tuple[str, ...]:
    """The defenders of lockstep games unless others are named: the champion only where it was trained."""
    own = network.digest == as_network(CAGE2).digest
    return LIVE_BLUES if own else tuple(name for name in LIVE_BLUES if name != CHAMPION)


def edition_of(policy: str, edition: str | None, network: Network, names: tuple[str, ...] = BY_NAME) -> str:
    """The requested edition, else that of the policy; the network's first one for a defender in ``names``."""
    if edition is not None:
        return check_choice("edition", edition, network.editions)
    if policy in names:
        return next(iter(network.editions))
    from workflow_rl.training.policy_file import load_policy

    return load_policy(policy_path(policy, "", network, names), network).edition


def check_workflow(policy: str, workflow: str, network: Network) -> None:
    """Rejects a workflow for a policy that takes none, and a missing one for a policy that needs it."""
    if policy in REFERENCE_POLICIES:
        if workflow:
            raise UserError(f"{policy} is a reference defender: it takes no workflow.")
        return
    from workflow_rl.training.evaluation import workflows_of_policy
    from workflow_rl.training.policy_file import load_policy

    file = load_policy(policy_path(policy, next(iter(network.editions)), network, workflow=workflow), network)
    if file.universal and not workflow:
        raise UserError("the policy follows any workflow: say which one with --workflow.")
    workflows_of_policy(file, workflow)


def takeover_of(policy: str, takeover: str | None, network: Network) -> str:
    """The requested takeover, else that of the policy; none for a defender by name."""
    if takeover is not None:
        parse_takeover(takeover)
        return takeover
    if policy in BY_NAME:
        return "0"
    from workflow_rl.training.policy_file import load_policy

    return load_policy(policy_path(policy, "", network), network).takeover


def policy_path(
    policy: str, edition: str, network: Network, names: tuple[str, ...] = BY_NAME, workflow: str = ""
) -> Path:
    """Path of a trained policy: the bundled champion of the edition, or a file or run.

    ``names`` are the defenders that the caller accepts by name, for the error message. With a ``workflow`` the champion
    is the obedient one.
    """
    if policy == CHAMPION:
        if network.digest != as_network(CAGE2).digest:
            raise UserError(f"{CHAMPION} was trained on CAGE Challenge 2; it cannot defend {in_words(network)}.")
        return DATA / f"{'obedient' if workflow else CHAMPION}-{edition}.safetensors"
    if not Path(policy).exists():
        raise UserError(f"unknown policy {policy!r}; allowed: {', '.join(names)}, or the path of a run or policy file.")
    return Path(policy)


def network_named(policy: str, given: str | None) -> Network:
    """The network that a defender by name or path is to defend: that of its run, the given one, or CAGE Challenge 2."""
    return chosen_network(Path(policy) if policy and policy not in BY_NAME else None, given)
