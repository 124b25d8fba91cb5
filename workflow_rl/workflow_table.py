"""A table of true returns: every workflow trained several times. What it says by itself, without any model."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.errors import UserError
from workflow_rl.order_gp import Order, pair_swaps


@dataclass(frozen=True)
class WorkflowTable:
    """Returns of all workflows; replicate r of each workflow shares its starting point and its games.

    Model: return = level + workflow + replicate + rest. ``truth`` is level + workflow, ``noise`` the rest's deviation.
    """

    orders: tuple[Order, ...]
    returns: np.ndarray  # (n_workflows, n_replicates)
    evaluation_error: float  # standard error of a single return from its evaluation episodes

    @property
    def truth(self) -> np.ndarray:
        """Mean return of each workflow; (n_workflows,)."""
        return np.asarray(self.returns.mean(axis=1))

    @property
    def noise(self) -> float:
        """Deviation of a single training from what its workflow and its replicate lead to expect."""
        rest = self.returns - self.truth[:, None] - self.returns.mean(axis=0) + self.returns.mean()
        n, r = self.returns.shape
        return math.sqrt(float((rest**2).sum()) / ((n - 1) * (r - 1)))

    @property
    def standard_error(self) -> float:
        """Standard error of a workflow's mean, for comparisons with others."""
        return self.noise / math.sqrt(self.returns.shape[1])

    @property
    def between(self) -> float:
        """Deviation of the true means of workflows: the spread of the means less what noise adds to it."""
        return math.sqrt(max(0.0, float(self.truth.var(ddof=1)) - self.standard_error**2))

    def pair_effect(self, first: str, second: str) -> tuple[float, float]:
        """Mean gain of ``first`` right before ``second`` over the reverse, and its standard error over replicates."""
        number = {order: i for i, order in enumerate(self.orders)}
        before, after = ([number[order] for order in side] for side in pair_swaps(self.orders[0], first, second))
        single = self.returns[before].mean(axis=0) - self.returns[after].mean(axis=0)
        return float(single.mean()), float(single.std(ddof=1) / math.sqrt(len(single)))

    def summary(self) -> dict[str, Any]:
        """The figures of the table."""
        pairs = []
        for first, second in combinations(self.orders[0], 2):
            effect, error = self.pair_effect(first, second)
            names = (first, second) if effect >= 0 else (second, first)
            pairs.append({"first": names[0], "second": names[1], "effect": abs(effect), "standard_error": error})
        best = int(self.truth.argmax())
        behind = self.returns[best] - self.returns  # (n_workflows, n_replicates)
        error = behind.std(axis=1, ddof=1) / math.sqrt(self.returns.shape[1])
        return {
            "workflows": len(self.orders),
            "replicates": self.returns.shape[1],
            "mean_return": float(self.truth.mean()),
            "best": ",".join(self.orders[best]),
            "best_return": float(self.truth[best]),
            "worst_return": float(self.truth.min()),
            "noise_of_one_training": self.noise,
            "standard_error": self.standard_error,
            "deviation_between_workflows": self.between,
            "deviation_between_starting_points": float(self.returns.mean(axis=0).std(ddof=1)),
            "equal_to_best": int((behind.mean(axis=1) <= 2.78 * error).sum()),
            "pairs": sorted(pairs, key=lambda pair: -float(pair["effect"])),
        }


def table_from_json(value: dict[str, Any]) -> WorkflowTable:
    """A table as it is stored."""
    orders = tuple(tuple(name.split(",")) for name in value["workflows"])
    errors = np.array(value["standard_error"], float)
    return WorkflowTable(orders, np.array(value["mean_return"], float), float(errors.mean()))


def read_table(path: Path) -> WorkflowTable:
    """The table of a stored result of ``python -m benchmarks.workflow_table``."""
    try:
        table = table_from_json(json.loads(path.read_text(encoding="utf-8"))["figures"]["table"])
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not a table of workflows.") from None
    shape = table.returns.shape
    whole = len(shape) == 2 and shape[0] == len(set(table.orders)) == math.factorial(len(table.orders[0]))
    if not whole or shape[1] < 2 or not np.isfinite(table.returns).all():
        raise UserError(f"{path}: not a table of all workflows with at least 2 trainings each.")
    return table
