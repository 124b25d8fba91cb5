"""Three problems over orders that have nothing to do with cyber defence, and their exact optima.

An order is a sequence of the numbers 0 to n - 1. Larger values are better, so costs are negative. All entries are whole
numbers: values are exact, and whether an order is optimal is a comparison of two numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from workflow_rl.engine.compiled import compiled

MACHINES = 5
MOST = 100  # entries are from 0 to 99, processing times from 1 to 99


class Problem(ABC):
    """An instance: the value of any order, and the highest value of all orders."""

    n: int

    @abstractmethod
    def value(self, order: Sequence[int]) -> float:
        """The value of an order."""

    @abstractmethod
    def optimum(self) -> float:
        """The highest value, by exact search."""


class LinearOrdering(Problem):
    """The sum of the entries above the diagonal of a matrix with ordered rows and columns: a sum of pair effects."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n, self.matrix = n, rng.integers(0, MOST, (n, n))

    def value(self, order: Sequence[int]) -> float:
        """The sum of the entries (a, b) over all pairs with a before b."""
        return float(np.triu(self.matrix[np.ix_(order, order)], 1).sum())

    def optimum(self) -> float:
        """By dynamic programming over the set of the first items: only which items came before matters for the next."""
        best, gained = np.zeros(1 << self.n), np.zeros((1 << self.n, self.n))  # entries (set, item), summed over set
        for members in range(1, 1 << self.n):
            inside = [item for item in range(self.n) if members >> item & 1]
            gained[members] = gained[members ^ 1 << inside[0]] + self.matrix[inside[0]]
            best[members] = max(best[members ^ 1 << last] + gained[members ^ 1 << last, last] for last in inside)
        return float(best[-1])


class QuadraticAssignment(Problem):
    """Items on positions: minus the sum over pairs of flow between the items times distance of their positions."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n = n
        self.distances, self.flows = (_symmetric(rng.integers(0, MOST, (n, n))) for _ in range(2))

    def value(self, order: Sequence[int]) -> float:
        """Minus the cost of the order, whose k-th item is at position k."""
        return -float((self.distances * self.flows[np.ix_(order, order)]).sum() / 2)

    def optimum(self) -> float:
        """By branch and bound."""
        return -float(least_cost(assignment_bound, (self.distances, self.flows, self._among_the_rest()), self.n))

    def _among_the_rest(self) -> np.ndarray:
        """A bound for pairs of items that are left, by the set of these: large flows meet small distances; (2^n,)."""
        bounds = np.zeros(1 << self.n, np.int64)
        for members in range(1 << self.n):
            left = [item for item in range(self.n) if members >> item & 1]
            flows = sorted(self.flows[a, b] for a, b in combinations(left, 2))
            places = range(self.n - len(left), self.n)
            distances = sorted((self.distances[a, b] for a, b in combinations(places, 2)), reverse=True)
            bounds[members] = np.dot(np.array(flows, np.int64), np.array(distances, np.int64))
        return bounds


class FlowShop(Problem):
    """Jobs that pass all machines in one sequence: minus the time when the last job leaves the last machine."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n, self.times = n, rng.integers(1, MOST, (n, MACHINES))

    def value(self, order: Sequence[int]) -> float:
        """Minus the makespan."""
        done = [0] * MACHINES
        for job in self.times[list(order)].tolist():
            free = 0
            for machine, time in enumerate(job):
                free = done[machine] = max(free, done[machine]) + time
        return -float(done[-1])

    def optimum(self) -> float:
        """By branch and bound."""
        return -float(least_cost(flow_shop_bound, (self.times,), self.n))


KINDS: dict[str, type[LinearOrdering | QuadraticAssignment | FlowShop]] = {
    "linear_ordering": LinearOrdering,
    "flow_shop": FlowShop,
    "quadratic_assignment": QuadraticAssignment,
}


def make_problem(kind: str, n: int, seed: int) -> Problem:
    """The instance of that kind, size and seed."""
    return KINDS[kind](n, np.random.default_rng([list(KINDS).index(kind), n, seed]))


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    upper = np.triu(matrix, 1)
    return upper + upper.T


@compiled
def least_cost(bound: Any, data: Any, n: int) -> int:
    """The lowest cost of all orders, depth first.

    ``bound(order, k, left, data)`` is at most the cost of every order that begins with the first k items; the others
    are ``left``. For a complete order it is the cost.
    """
    order, left = np.full(n, -1), np.ones(n, np.bool_)
    best, k = 1 << 62, 0
    while k >= 0:
        if order[k] >= 0:
            left[order[k]] = True
        item = order[k] + 1
        while item < n and not left[item]:
            item += 1
        if item == n:
            order[k] = -1
            k -= 1
            continue
        order[k], left[item] = item, False
        cost = bound(order, k + 1, left, data)
        if cost < best and k + 1 < n:
            k += 1
        elif cost < best:
            best = cost
    return best


@compiled
def assignment_bound(order: np.ndarray, k: int, left: np.ndarray, data: Any) -> int:
    """Cost among the placed items, the best place for each item left, and a bound for those left among themselves."""
    distances, flows, among_the_rest = data
    total, members = np.int64(0), 0
    for p in range(k):
        for q in range(p):
            total += distances[p, q] * flows[order[p], order[q]]
    for item in range(len(left)):
        if left[item]:
            members |= 1 << item
            least = np.int64(1) << 62
            for p in range(k, len(left)):
                cost = np.int64(0)
                for q in range(k):
                    cost += distances[p, q] * flows[item, order[q]]
                least = min(least, cost)
            total += least
    return total + among_the_rest[members]


@compiled
def flow_shop_bound(order: np.ndarray, k: int, left: np.ndarray, data: Any) -> int:
    """The latest machine, if it never waits from now on and the job that is fastest afterwards comes last."""
    times = data[0]
    machines = times.shape[1]
    done = np.zeros(machines, np.int64)
    for p in range(k):
        free = np.int64(0)
        for machine in range(machines):
            free = max(free, done[machine]) + times[order[p], machine]
            done[machine] = free
    latest = done[-1]
    for machine in range(machines):
        work, after = np.int64(0), np.int64(1) << 62
        for job in range(len(left)):
            if left[job]:
                work += times[job, machine]
                after = min(after, times[job, machine + 1 :].sum())
        if work > 0:
            latest = max(latest, done[machine] + work + after)
    return latest
