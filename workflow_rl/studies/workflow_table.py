"""A table of true returns: every workflow trained several times, and what it says."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from workflow_rl.errors import UserError
from workflow_rl.runs import parse_json
from workflow_rl.search.gp import Order, pair_swaps
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.search.strategies import MOST_EXHAUSTIVE
from workflow_rl.studies.results import Figures
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.workflow import unit_types

FOLLOWED = Obedience(1.0, 0.0, 1.0, 1.0, 0.0)  # every workflow of a table is ranked


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

    def task_of(self, order: Order) -> Order:
        """What an order asks for: the order of the types that this opponent ever takes."""
        return tuple(item for item in order if item in self.taken)

    def by_task(self) -> dict[Order, float]:
        """Mean return of each task over all orders that ask for it.

        Orders of the same task ask for the same repairs, so their true returns are equal and the differences of their
        means are noise.
        """
        means: dict[Order, list[float]] = {}
        for order, mean in zip(self.orders, self.truth.tolist(), strict=True):
            means.setdefault(self.task_of(order), []).append(mean)
        return {task: float(np.mean(own)) for task, own in means.items()}

    def cost_of_reversing(self, first: str, second: str) -> float:
        """How much less the best task returns that has ``second`` before ``first`` than the best with ``first`` first.

        This is what the finalists of a search measure (finalists.py).
        """
        by_task = self.by_task()
        before, after = (
            max(value for task, value in by_task.items() if (task.index(first) < task.index(second)) == ahead)
            for ahead in (True, False)
        )
        return before - after

    def pair_effect(self, first: str, second: str) -> tuple[float, float]:
        """Mean gain of ``first`` right before ``second`` over the reverse, and its standard error by the noise."""
        number = {order: i for i, order in enumerate(self.orders)}
        before, after = ([number[order] for order in side] for side in pair_swaps(self.orders[0], first, second))
        effect = float(self.truth[before].mean() - self.truth[after].mean())
        return effect, self.standard_error * math.sqrt(1 / len(before) + 1 / len(after))

    def summary(self) -> Figures:
        """The figures of the table."""
        pairs = []
        for first, second in combinations(self.orders[0], 2):
            effect, error = self.pair_effect(first, second)
            names = (first, second) if effect >= 0 else (second, first)
            pairs.append({"first": names[0], "second": names[1], "effect": abs(effect), "standard_error": error})
        by_task = self.by_task()
        best_task = max(by_task, key=lambda task: by_task[task])
        return {
            "workflows": len(self.orders),
            "replicates": self.returns.shape[1],
            "tasks": len(by_task),
            "taken": list(self.taken),
            "mean_return": float(self.truth.mean()),
            "best_task": ",".join(best_task),
            "best_task_return": max(by_task.values()),
            "worst_task_return": min(by_task.values()),
            "reversed": [
                {"first": first, "second": second, "cost": self.cost_of_reversing(first, second)}
                for first, second in combinations(best_task, 2)
            ],
            "noise_of_one_training": self.noise,
            "standard_error": self.standard_error,
            "deviation_between_workflows": self.between,
            "deviation_between_starting_points": float(self.returns.mean(axis=0).std(ddof=1)),
            "pairs": sorted(pairs, key=lambda pair: -float(pair["effect"])),
            "ranking": self._ranking(),
        }

    def _ranking(self) -> Figures:
        """What the process makes of the whole table: the group of equals, and its pair effects."""
        errors = (self.evaluation_error,) * self.returns.shape[1]
        evaluated = [
            Evaluated(o, tuple(r), errors, FOLLOWED) for o, r in zip(self.orders, self.returns.tolist(), strict=True)
        ]
        posterior = Posterior(self.orders[0], evaluated)
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


def table_from_json(value: Figures) -> WorkflowTable:
    """A table as it is stored."""
    orders = tuple(tuple(name.split(",")) for name in value["workflows"])
    errors = np.array(value["standard_error"], float)
    return WorkflowTable(orders, np.array(value["mean_return"], float), float(errors.mean()), tuple(value["taken"]))


def read_table(path: Path) -> WorkflowTable:
    """The table of a stored result of ``python -m benchmarks.workflow_table``."""
    try:
        table = table_from_json(parse_json(path.read_text(encoding="utf-8"))["figures"]["table"])
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not a table of workflows.") from None
    shape = table.returns.shape
    items = table.orders[0] if table.orders else ()
    few = 2 <= len(items) <= MOST_EXHAUSTIVE
    known = set(table.taken) <= set(items) <= set(unit_types())
    whole = (
        few
        and known
        and len(shape) == 2
        and shape[0] == len(table.orders)
        and set(table.orders) == set(permutations(items))
    )
    if not whole or shape[1] < 2 or not np.isfinite(table.returns).all():
        raise UserError(f"{path}: not a table of all workflows with at least 2 trainings each.")
    return table
