"""Bounds of a task: the unit types that red ever compromises, and exact limits of workflows against B_line."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.runs import Json
from workflow_rl.training.compliance import type_masks

GAMES, STEPS, SEED = 2000, 100, 7


@cache
def taken_types(red_agent: str, edition: str, takeover: str) -> tuple[str, ...]:
    """Unit types with a host that red ever compromised, against an idle and against a random defender.

    >>> taken_types("bline", "current", "0")
    ('enterprise', 'op_server', 'user')
    """
    taken = 0
    for idle in (True, False):
        envs = CageVectorEnv(GAMES, red_agent=red_agent, edition=edition, takeover=takeover)
        envs.reset(seed=SEED)
        rng = np.random.default_rng(SEED)
        for _ in range(STEPS):
            actions = np.zeros(GAMES, int) if idle else rng.integers(envs.network.n_actions, size=GAMES)
            held = envs.step(actions)[4]["compromised_before"].any(axis=0)
            taken |= sum(1 << int(host) for host in np.flatnonzero(held))
    masks = zip(envs.network.unit_types, type_masks(envs.network), strict=True)
    return tuple(name for name, mask in masks if int(mask) & taken)


LIMITS = Path(__file__).parent / "limits.json"
SURE = 2.0  # standard errors by which a return must exceed the limit


def limits_from_study(figures: Json) -> Json:
    """The bundled form of the study ``limit``: by edition, takeover, order of the types that B_line takes, length."""
    found: Json = {}
    for edition, one in figures["bline"].items():
        by_takeover = {"0": one["orders"]} | {steps: cells["orders"] for steps, cells in one["incidents"].items()}
        found[edition] = {
            steps: {
                order: {length: round(cell["exact"], 4) for length, cell in cells.items()}
                for order, cells in orders.items()
            }
            for steps, orders in by_takeover.items()
        }
    return found


@cache
def _bundled() -> Json:
    found: Json = json.loads(LIMITS.read_text("utf-8"))
    return found


def limit_of(workflow: str, red_agent: str, edition: str, takeover: str, length: int) -> float | None:
    """The best return of a defender that sees the true state and follows the workflow; None if it is unknown.

    >>> limit_of("op_server,enterprise,user,defender,op_host", "bline", "current", "30", 100)
    -21.2395
    """
    orders = _bundled().get(edition, {}).get(takeover)
    if not workflow or red_agent != "bline" or orders is None:
        return None
    taken = next(iter(orders)).split(",")
    names = [kind.strip() for kind in workflow.split(",")]
    limit: float | None = orders.get(",".join(kind for kind in names if kind in taken), {}).get(str(length))
    return limit


def is_too_good(mean_return: float, standard_error: float, limit: float | None) -> bool:
    """Is the return significantly above the limit of the workflow?"""
    return limit is not None and mean_return > limit + SURE * standard_error
