"""The ranking of a search with its errors, and the effects of pairs of unit types.

Every evaluation has the same replicates: replicate r of each workflow starts from the same policy and plays the same
games. An effect of replicate r that is common to all workflows therefore cancels in comparisons. How much a
*difference* varies between replicates is measured: the process predicts it from the values of one replicate at a time.
The error of a difference is the root of the sum of two squares: the process's own deviation, and the standard error
over replicates. Both contain the noise of single trainings, which is thus counted twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import t

from workflow_rl.search.findings import PairEffect
from workflow_rl.search.gp import Order, OrderGP, pair_swaps
from workflow_rl.training.compliance import Obedience

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Evaluated:
    """The outcome of one evaluation of a workflow."""

    order: Order
    returns: tuple[float, ...]  # (n_replicates,)
    errors: tuple[float, ...]  # standard errors of the returns; (n_replicates,)
    obedience: Obedience

    @property
    def value(self) -> float:
        """Mean return over the replicates."""
        return float(np.mean(self.returns))

    @property
    def standard_error(self) -> float:
        """Standard error of the value from the evaluation episodes alone."""
        return math.sqrt(sum(error**2 for error in self.errors)) / len(self.errors)


@dataclass(frozen=True)
class Ranked:
    """A workflow's place: posterior mean, its error for comparisons, and its distance to the best."""

    order: Order
    mean: float
    error: float
    obedience: Obedience  # pooled over its evaluations
    visits: int
    follows: bool
    behind: float  # how much less than the best
    behind_error: float
    equal: bool  # followed, and statistically indistinguishable from the best


class Posterior:
    """The process after a search, and after each replicate of it alone.

    Args:
        items: the unit types.
        evaluated: all evaluations, each with the same number of replicates.
    """

    def __init__(self, items: Order, evaluated: Sequence[Evaluated]) -> None:
        self.items = items
        self.evaluated = sorted(evaluated, key=lambda e: (e.order, e.returns))
        self.gp = self._process()
        if (failed := self.gp.failed()).any():
            self.evaluated = [e for e, wrong in zip(self.evaluated, failed, strict=True) if not wrong]
            self.gp = self._process()
        table = np.array([e.returns for e in self.evaluated])  # (n, n_replicates)
        self.n_replicates = table.shape[1]
        levels = table.mean(axis=0)
        several = len(levels) > 1
        self.level_error = float(levels.std(ddof=1) / math.sqrt(len(levels))) if several else None
        centred = table - levels + levels.mean()
        self._by_replicate = [self.gp.with_values(column) for column in centred.T] if several else []

    def _process(self) -> OrderGP:
        columns = zip(*((e.order, e.value, e.standard_error) for e in self.evaluated), strict=True)
        return OrderGP(self.items, *map(list, columns))

    def quantile(self, comparisons: int = 1) -> float:
        """Number of standard errors that make a difference significant, at 95 % for that many comparisons together.

        Student's for few replicates, the normal distribution's for one; Bonferroni's correction.
        """
        freedom = self.n_replicates - 1 or math.inf
        return float(t.ppf(1 - (1 - CONFIDENCE) / 2 / comparisons, freedom))

    def difference(self, plus: Sequence[Order], minus: Sequence[Order]) -> tuple[float, float]:
        """Mean of f over ``plus`` less that over ``minus``, and its standard error."""
        orders = [*plus, *minus]
        weights = np.array([1 / len(plus)] * len(plus) + [-1 / len(minus)] * len(minus))
        mean, deviation = self.gp.contrast(orders, weights)
        if not self._by_replicate:
            return mean, deviation
        single = [weights @ gp.predict(orders)[0] for gp in self._by_replicate]
        return mean, math.hypot(deviation, float(np.std(single, ddof=1)) / math.sqrt(len(single)))

    def ranking(self, threshold: float) -> list[Ranked]:
        """All evaluated workflows: those that are followed first, best posterior mean first."""
        orders = sorted({e.order for e in self.evaluated})
        means, sigmas = self.gp.predict(orders)
        spread = np.zeros(len(orders))
        if self._by_replicate:
            single = np.array([gp.predict(orders)[0] for gp in self._by_replicate])  # (n_replicates, n)
            spread = single.std(axis=0, ddof=1) / math.sqrt(len(single))
        own = {order: [e.obedience for e in self.evaluated if e.order == order] for order in orders}
        pooled = {order: Obedience.pool(values) for order, values in own.items()}
        rows = sorted(
            (not pooled[order].follows(threshold), -mean, order, error)
            for order, mean, error in zip(orders, means, np.hypot(sigmas, spread), strict=True)
        )
        best = rows[0][2]
        ranking = []
        for unfollowed, negative, order, own_error in rows:
            behind, error = self.difference([best], [order]) if order != best else (0.0, 0.0)
            equal = not unfollowed and (order == best or behind < self.quantile() * error)
            place = (order, -float(negative), float(own_error), pooled[order], len(own[order]), not unfollowed)
            ranking.append(Ranked(*place, behind, error, equal))
        return ranking

    def pair_effects(self) -> list[PairEffect]:
        """The effect of each pair, largest first."""
        effects = []
        clear = self.quantile(math.comb(len(self.items), 2))
        for (first, second), weight in zip(combinations(self.items, 2), self.gp.weights, strict=True):
            effect, error = self.difference(*pair_swaps(self.items, first, second))
            names = (first, second) if effect >= 0 else (second, first)
            interval = self.quantile() * error
            effects.append(PairEffect(*names, abs(effect), error, interval, float(weight), abs(effect) > clear * error))
        return sorted(effects, key=lambda pair: -pair.effect)
