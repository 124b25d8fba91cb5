"""What a table of true returns says: spread, tasks, pair effects, and the ranking that a search would give."""

from __future__ import annotations

import math
from dataclasses import asdict
from itertools import combinations
from typing import Any

from workflow_rl.search.gp import pair_swaps
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.studies.workflow_table import WorkflowTable
from workflow_rl.training.compliance import Obedience

FOLLOWED = Obedience(1.0, 0.0, 1.0, 1.0, 0.0)  # every workflow of a table is ranked


def between(table: WorkflowTable) -> float:
    """Deviation of the true means of workflows: the spread of the means less what noise adds to it."""
    return math.sqrt(max(0.0, float(table.truth.var(ddof=1)) - table.standard_error**2))


def cost_of_reversing(table: WorkflowTable, first: str, second: str) -> float:
    """How much less the best task returns that has ``second`` before ``first`` than the best with ``first`` first.

    This is what the finalists of a search measure (finalists.py).
    """
    by_task = table.by_task()
    before, after = (
        max(value for task, value in by_task.items() if (task.index(first) < task.index(second)) == ahead)
        for ahead in (True, False)
    )
    return before - after


def pair_effect(table: WorkflowTable, first: str, second: str) -> tuple[float, float]:
    """Mean gain of ``first`` right before ``second`` over the reverse, and its standard error by the noise."""
    number = {order: i for i, order in enumerate(table.orders)}
    before, after = ([number[order] for order in side] for side in pair_swaps(table.orders[0], first, second))
    effect = float(table.truth[before].mean() - table.truth[after].mean())
    return effect, table.standard_error * math.sqrt(1 / len(before) + 1 / len(after))


def summary(table: WorkflowTable) -> dict[str, Any]:
    """The figures of the table."""
    pairs = []
    for first, second in combinations(table.orders[0], 2):
        effect, error = pair_effect(table, first, second)
        names = (first, second) if effect >= 0 else (second, first)
        pairs.append({"first": names[0], "second": names[1], "effect": abs(effect), "standard_error": error})
    by_task = table.by_task()
    best_task = max(by_task, key=lambda task: by_task[task])
    return {
        "workflows": len(table.orders),
        "replicates": table.returns.shape[1],
        "tasks": len(by_task),
        "taken": list(table.taken),
        "mean_return": float(table.truth.mean()),
        "best_task": ",".join(best_task),
        "best_task_return": max(by_task.values()),
        "worst_task_return": min(by_task.values()),
        "reversed": [
            {"first": first, "second": second, "cost": cost_of_reversing(table, first, second)}
            for first, second in combinations(best_task, 2)
        ],
        "noise_of_one_training": table.noise,
        "standard_error": table.standard_error,
        "deviation_between_workflows": between(table),
        "deviation_between_starting_points": float(table.returns.mean(axis=0).std(ddof=1)),
        "pairs": sorted(pairs, key=lambda pair: -float(pair["effect"])),
        "ranking": _ranking(table),
    }


def _ranking(table: WorkflowTable) -> dict[str, Any]:
    """What the process makes of the whole table: the group of equals, and its pair effects."""
    errors = (table.evaluation_error,) * table.returns.shape[1]
    evaluated = [
        Evaluated(o, tuple(r), errors, FOLLOWED) for o, r in zip(table.orders, table.returns.tolist(), strict=True)
    ]
    posterior = Posterior(table.orders[0], evaluated)
    ranking = posterior.ranking(0.0)
    return {
        "best": ",".join(ranking[0].order),
        "best_return": ranking[0].mean,
        "best_error": ranking[0].error,
        "level_error": posterior.level_error,
        "equal_to_best": [",".join(place.order) for place in ranking if place.equal],
        "n_equal_to_best": sum(place.equal for place in ranking),
        "pairs": [asdict(pair) for pair in posterior.pair_effects()],
    }
