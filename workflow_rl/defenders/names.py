"""What commands do with the name of a policy: a reference defender, the champion, a file or a run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workflow_rl.config import CHALLENGE_LENGTHS, parse_takeover
from workflow_rl.defenders.protocol import REFERENCE_POLICIES, evaluate_table, reference_policy
from workflow_rl.engine.network import RED_AGENTS, Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.envs.blue import Policy, Progress
from workflow_rl.envs.env import NATIVE, Backend, check_backend
from workflow_rl.envs.game import Games
from workflow_rl.errors import UserError, check_choice

CHAMPION = "champion"
BY_NAME = (*REFERENCE_POLICIES, CHAMPION)
DATA = Path(__file__).parent
DEFAULT_EPISODES = {"native": 1000, "cyborg": 100}  # the challenge's own evaluation plays 100 of each
LIVE_BLUES = ("random", "reactive-remove", CHAMPION)  # of a lockstep: chance, a rule, and a trained policy
ROUNDING = 1e-9


@dataclass(frozen=True)
class Asked:
    """An evaluation as a person asks for it; an edition or a takeover of None is the policy's own."""

    policy: str
    red_agents: str
    episodes: int
    seed: int = 0
    edition: str | None = None
    takeover: str | None = None
    workflow: str = ""
    greedy: bool = False
    network: Network | Path | str = CAGE2


def evaluate_named(asked: Asked, backend: Backend = NATIVE, progress: Progress = lambda _: None) -> dict[str, Any]:
    """Evaluates a policy by name; see :func:`workflow_rl.envs.blue.table_of` for the form of the result.

    The edition of a reference defender is the current one, its takeover none.
    """
    policy, network = asked.policy, as_network(asked.network)
    edition, takeover = edition_of(policy, asked.edition), takeover_of(policy, asked.takeover)
    check_backend(backend, edition)
    if policy in REFERENCE_POLICIES:
        if asked.workflow or asked.greedy:
            raise UserError(f"{policy} is a reference defender: it takes neither a workflow nor --greedy.")
        blue = reference_policy(policy, network, edition)
        games = Games(network, asked.red_agents, edition, max(CHALLENGE_LENGTHS), takeover)
        table = evaluate_table(blue, games, asked.episodes, asked.seed, progress, backend)
    else:
        from workflow_rl.training.evaluation import challenge_games, evaluate_policy_file  # only now: it imports torch

        fresh = challenge_games(network, asked.red_agents, edition, asked.episodes, asked.seed, asked.greedy, takeover)
        table = evaluate_policy_file(policy_path(policy, edition), asked.workflow, fresh, backend, progress)
    about: dict[str, Any] = {"policy": policy, "edition": edition, "takeover": takeover, "backend": backend.name}
    about |= {"episodes": asked.episodes, "seed": asked.seed}
    if backend.name == "cyborg":
        from workflow_rl.envs.cyborg_sim import load_cyborg

        about["cyborg"] = load_cyborg(backend.cyborg_path).name
    return about | table


def challenge(asked: Asked, backend: Backend, progress: Progress) -> dict[str, Any]:
    """The challenge's table: every red agent at 30, 50 and 100 steps; on CybORG with the native engine's beside it.

    ``native`` has the engine's figures, ``difference`` how far the two are apart, in standard errors.
    """
    asked = replace(asked, red_agents=",".join(RED_AGENTS), takeover="0")
    table = evaluate_named(asked, backend, progress)
    table["protocol"] = "challenge"
    if backend.name == "native":
        return table
    native = evaluate_named(replace(asked, episodes=max(asked.episodes, DEFAULT_EPISODES["native"])))
    names = ("episodes", "cells", "total", "total_standard_error", "obedience")
    table["native"] = {name: native[name] for name in names if name in native}
    table["difference"] = differences(table["cells"], native["cells"])
    return table


def differences(left: dict[str, Any], right: dict[str, Any]) -> dict[str, dict[str, float | None]]:
    """For each red agent and length how far two tables are apart; see :func:`in_standard_errors`."""
    return {
        red: {length: in_standard_errors(cell, right[red][length]) for length, cell in row.items()}
        for red, row in left.items()
    }


def in_standard_errors(left: dict[str, Any], right: dict[str, Any]) -> float | None:
    """How far the means of two cells are apart, in standard errors of the difference; None: certainly apart.

    The deviation is taken from both samples together, as if they came from the same games; so a small sample that
    happens to have none does not count as certain.
    """
    n, m = left["episodes"], right["episodes"]
    spread = (n - 1) * left["standard_deviation"] ** 2 + (m - 1) * right["standard_deviation"] ** 2
    error = math.sqrt(spread / (n + m - 2) * (1 / n + 1 / m))
    apart = float(left["mean"] - right["mean"])
    if abs(apart) < ROUNDING:
        return 0.0
    return apart / error if error > ROUNDING else None


def blue_named(policy: str | Path, workflow: str, edition: str = "current", any_edition: bool = False) -> Policy:
    """A defender by name (a reference policy or the champion), or the network of a file or run.

    Args:
        policy: name or path; a Path is never a name.
        workflow: for a universal policy.
        edition: that of the games; a policy that was trained for another one is refused, unless
        any_edition: it does not matter how well it plays.
    """
    if policy in REFERENCE_POLICIES:
        return reference_policy(str(policy), edition=edition)
    from workflow_rl.training.evaluation import policy_of

    path = policy if isinstance(policy, Path) else policy_path(policy, edition)
    return policy_of(path, workflow, "" if any_edition else edition)


def edition_of(policy: str, edition: str | None, names: tuple[str, ...] = BY_NAME) -> str:
    """The edition that was asked for, else the policy's own; a defender by one of the ``names``: current."""
    editions = as_network(CAGE2).editions
    if edition is not None:
        return check_choice("edition", edition, editions)
    if policy in names:
        return next(iter(editions))
    from workflow_rl.training.policy_file import load_policy

    return load_policy(policy_path(policy, "", names)).edition


def check_workflow(policy: str, workflow: str) -> None:
    """Refuses a workflow for a policy that takes none, and none for one that needs it."""
    if policy in REFERENCE_POLICIES:
        if workflow:
            raise UserError(f"{policy} is a reference defender: it takes no workflow.")
        return
    from workflow_rl.training.evaluation import workflows_of_policy
    from workflow_rl.training.policy_file import load_policy

    file = load_policy(policy_path(policy, next(iter(as_network(CAGE2).editions))))
    if file.universal and not workflow:
        raise UserError("the policy follows any workflow: say which one with --workflow.")
    workflows_of_policy(file, workflow)


def takeover_of(policy: str, takeover: str | None) -> str:
    """The takeover that was asked for, else the policy's own; a defender by name was made for none."""
    if takeover is not None:
        parse_takeover(takeover)
        return takeover
    if policy in BY_NAME:
        return "0"
    from workflow_rl.training.policy_file import load_policy

    return load_policy(policy_path(policy, "")).takeover


def policy_path(policy: str, edition: str, names: tuple[str, ...] = BY_NAME) -> Path:
    """File or run of a trained policy; ``champion`` is the bundled one of the edition.

    Args:
        policy: ``champion`` or a path; a file of that name is ``./champion``.
        edition: of the champion.
        names: defenders that the caller accepts by name, for the message.
    """
    if policy == CHAMPION:
        return DATA / f"champion-{edition}.safetensors"
    if not Path(policy).exists():
        raise UserError(f"unknown policy {policy!r}; allowed: {', '.join(names)}, or the path of a run or policy file.")
    return Path(policy)
