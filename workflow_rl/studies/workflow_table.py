"""A table of true returns: every order of the unit types that red takes, trained several times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.errors import UserError
from workflow_rl.runs import parse_json
from workflow_rl.search.gp import Order
from workflow_rl.search.strategies import MOST_EXHAUSTIVE


@dataclass(frozen=True)
class WorkflowTable:
    """Returns of all orders of some unit types, several trainings of each.

    Model: return = level + workflow + replicate + rest. ``truth`` is level + workflow, ``noise`` the rest's deviation.
    """

    orders: tuple[Order, ...]
    returns: np.ndarray  # (n_workflows, n_replicates)
    evaluation_error: float  # standard error of a single return from its evaluation episodes
    taken: tuple[str, ...]  # unit types that the red agent ever takes; the order of the others cannot matter

    @property
    def truth(self) -> np.ndarray:
        """Mean return of each workflow; (n_workflows,)."""
        return np.asarray(self.returns.mean(axis=1))

    @property
    def noise(self) -> float:
        """Standard deviation of a single training around the sum of its workflow's and its replicate's effects."""
        rest = self.returns - self.truth[:, None] - self.returns.mean(axis=0) + self.returns.mean()
        n, r = self.returns.shape
        return math.sqrt(float((rest**2).sum()) / ((n - 1) * (r - 1)))

    @property
    def standard_error(self) -> float:
        """Standard error of a workflow's mean, for comparisons with others."""
        return self.noise / math.sqrt(self.returns.shape[1])

    def task_of(self, order: Order) -> Order:
        """The part of an order that matters: the types that this opponent ever takes, in that order."""
        return tuple(item for item in order if item in self.taken)

    def by_task(self) -> dict[Order, float]:
        """Mean return of each task; orders of one task demand the same repairs, so their differences are noise."""
        means: dict[Order, list[float]] = {}
        for order, mean in zip(self.orders, self.truth.tolist(), strict=True):
            means.setdefault(self.task_of(order), []).append(mean)
        return {task: float(np.mean(own)) for task, own in means.items()}


def table_from_json(value: Any) -> WorkflowTable:
    """Reads a stored table."""
    orders = tuple(tuple(name.split(",")) for name in value["workflows"])
    errors = np.array(value["standard_error"], float)
    return WorkflowTable(orders, np.array(value["mean_return"], float), float(errors.mean()), tuple(value["taken"]))


def read_table(path: Path) -> WorkflowTable:
    """The table of a stored result of ``python -m benchmarks workflow_table``."""
    try:
        table = table_from_json(parse_json(path.read_text(encoding="utf-8"))["figures"]["table"])
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not a table of workflows.") from None
    shape = table.returns.shape
    items = table.orders[0] if table.orders else ()
    known = 2 <= len(items) <= MOST_EXHAUSTIVE and set(table.taken) <= set(items)
    whole = (
        known and len(shape) == 2 and shape[0] == len(table.orders) and set(table.orders) == set(permutations(items))
    )
    if not whole or shape[1] < 2 or not np.isfinite(table.returns).all():
        raise UserError(f"{path}: not a table of all workflows with at least 2 trainings each.")
    return table
