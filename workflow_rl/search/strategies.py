"""Search over orders by ask and tell: GP-UCB, and plain strategies to compare it with.

    suggestion = search.suggest(1, pending)[0]      # an order to evaluate; pending ones are being evaluated
    search.observe(suggestion.order, value, error)  # the outcome

A suggestion is a function of the items, the settings, the observations in any sequence and the pending orders. There is
no clock and no hidden generator, so the same observations give the same suggestions on every machine. Larger values are
better.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import permutations

import numpy as np
import torch

from workflow_rl.config import STRATEGIES
from workflow_rl.errors import UserError
from workflow_rl.search.climb import Value, best_of, climb
from workflow_rl.search.gp import Order, OrderGP, features

MOST_EXHAUSTIVE = 8  # items up to which all orders are compared; 40,320
MOST_AT_ONCE = 7  # items up to which several are chosen among all orders; 5,040
MOST_ITEMS = 12
POOL = 2048  # orders among which several are chosen at once, beyond that
DESIGN_RIDGE = 0.1
DESIGN = "design: tells the effects of pairs apart"


@dataclass(frozen=True)
class Observation:
    """A value of an order, and its standard error."""

    order: Order
    value: float
    standard_error: float


@dataclass(frozen=True)
class Suggestion:
    """An order to evaluate, the model's prediction if the strategy has a model, and the reason for the choice."""

    order: Order
    mean: float | None
    sigma: float | None
    bound: float | None
    reason: str


class OrderSearch(ABC):
    """Ask and tell.

    Args:
        items: the items to be ordered.
        seed: breaks ties.
    """

    def __init__(self, items: Sequence[str], seed: int = 0) -> None:
        self.items, self.seed = tuple(items), seed
        if seed < 0:
            raise UserError(f"seed must be at least 0, not {seed}.")
        if len(set(self.items)) != len(self.items) or not 2 <= len(self.items) <= MOST_ITEMS:
            raise UserError(f"a search needs 2 to {MOST_ITEMS} different items, not {', '.join(map(str, items))}.")
        self.observations: list[Observation] = []

    def observe(self, order: Sequence[str], value: float, standard_error: float) -> None:
        """Tells the outcome of an evaluation."""
        order = tuple(order)
        if sorted(order) != sorted(self.items):
            raise UserError(f"{','.join(order)} is not an order of {', '.join(self.items)}.")
        if not (math.isfinite(value) and math.isfinite(standard_error) and standard_error >= 0):
            wrong = f"value {value} and standard error {standard_error}"
            raise UserError(f"{wrong} must be finite, the error not negative.")
        self.observations.append(Observation(order, float(value), float(standard_error)))

    def suggest(self, k: int = 1, pending: Sequence[Sequence[str]] = ()) -> list[Suggestion]:
        """Asks for ``k`` orders to be evaluated in parallel; fewer if the strategy has no more."""
        if k < 1:
            raise UserError(f"the number of suggestions must be at least 1, not {k}.")
        waiting = [tuple(order) for order in pending]
        suggestions: list[Suggestion] = []
        for _ in range(k):
            suggestion = self._next(waiting)
            if suggestion is None:
                break
            suggestions.append(suggestion)
            waiting.append(suggestion.order)
        return suggestions

    @abstractmethod
    def _next(self, pending: list[Order]) -> Suggestion | None:
        """One order."""

    @property
    def seen(self) -> list[Order]:
        """The observed orders."""
        return [observation.order for observation in self.observations]

    def _rng(self, pending: list[Order]) -> np.random.Generator:
        return np.random.default_rng([self.seed, len(self.observations) + len(pending)])

    def model(self) -> OrderGP:
        """The process given all observations, for any strategy; sorted, so that their sequence does not matter."""
        found = sorted(self.observations, key=lambda o: (o.order, o.value, o.standard_error))
        return _fitted(self.items, tuple(found))


class GPUCBSearch(OrderSearch):
    """The order with the highest upper confidence bound, mean + beta * sigma.

    Up to 8 items all orders are compared, beyond that a local search climbs from many starts. Pending orders are
    conditioned on: they count as observed at their expected values, which leaves the means and lowers sigma there.

    The first ``n_initial`` orders are a design instead: each is the order whose value a sum of pair effects would
    predict worst, so that the effects of the pairs can be estimated. Without a design the bound soon suggests only
    good orders, which have too much in common to show why they are good.

    >>> search = GPUCBSearch(("a", "b", "c"), beta=2.0, n_initial=2)
    >>> search.observe(("a", "b", "c"), 1.0, 0.1)
    >>> search.observe(("c", "b", "a"), 0.0, 0.1)
    >>> search.suggest(1)[0].order
    ('b', 'a', 'c')

    Args:
        items: the items to be ordered.
        beta: weight of sigma in the bound.
        seed: breaks ties.
        n_initial: number of orders of the design.
    """

    def __init__(self, items: Sequence[str], beta: float = 2.0, seed: int = 0, n_initial: int = 6) -> None:
        super().__init__(items, seed)
        if not 0 <= beta < math.inf:
            raise UserError(f"beta must be a number of at least 0, not {beta}.")
        if n_initial < 0:
            raise UserError(f"n_initial must be at least 0, not {n_initial}.")
        self.beta, self.n_initial = beta, n_initial

    def suggest(self, k: int = 1, pending: Sequence[Sequence[str]] = ()) -> list[Suggestion]:
        """Asks for ``k`` orders; beyond the design, several are chosen from one factorisation."""
        waiting = [tuple(order) for order in pending]
        first = min(k, max(1, self.n_initial - len(self.observations) - len(waiting)))
        found = super().suggest(first, waiting)
        if k > first:
            found += self._several(k - first, waiting + [suggestion.order for suggestion in found])
        return found

    def _several(self, k: int, pending: list[Order]) -> list[Suggestion]:
        """Orders of highest bound, one after the other: among all, or among the best before any was chosen."""
        model, seen = self.model().with_pending(pending), self.seen
        if len(self.items) > MOST_AT_ONCE:
            orders = self._pool(model, pending)
            x = features(orders, self.items)
        else:
            orders, x = all_orders(self.items)
        candidates, suggestions = model.over(x, k), list[Suggestion]()
        for _ in range(k):
            bounds = candidates.mean + self.beta * candidates.sigma
            number = best_of(bounds, self._rng(pending))
            mean, sigma, bound = (float(array[number]) for array in (candidates.mean, candidates.sigma, bounds))
            order = orders[number]
            reason = self._reason(order, mean, seen, pending)
            suggestions.append(Suggestion(order, mean, sigma, bound, reason) if seen else _plain(order, reason))
            candidates.choose(number)
            pending = [*pending, order]
        return suggestions

    def _pool(self, model: OrderGP, pending: list[Order]) -> list[Order]:
        """The best of all orders, or of all that a climb looked at, highest bound first."""
        if len(self.items) <= MOST_EXHAUSTIVE:
            orders, x = all_orders(self.items)
            return [orders[i] for i in np.argsort(-model.upper_bound(x, self.beta), kind="stable")[:POOL]]
        found: dict[Order, float] = {}

        def value(some: Sequence[Order]) -> np.ndarray:
            bounds = model.upper_bound(some, self.beta)
            found.update(zip(some, bounds.tolist(), strict=True))
            return bounds

        climb(value, self.items, self._rng(pending), sorted({*self.seen}))
        return sorted(found, key=lambda order: (-found[order], order))[:POOL]

    def _next(self, pending: list[Order]) -> Suggestion:
        model, rng, seen = self.model().with_pending(pending), self._rng(pending), self.seen
        design = len(seen) + len(pending) < self.n_initial
        if design:
            order = self._highest(lambda some: unpredictability(some, sorted(seen + pending), self.items), rng, [])
        else:
            order = self._highest(lambda some: model.upper_bound(some, self.beta), rng, sorted({*seen}))
        if not seen:
            return _plain(order, DESIGN if design else "first: nothing is known yet")
        mean, sigma = (float(array[0]) for array in model.predict([order]))
        reason = DESIGN if design else self._reason(order, mean, seen, pending)
        return Suggestion(order, mean, sigma, mean + self.beta * sigma, reason)

    def _highest(self, value: Value, rng: np.random.Generator, starts: list[Order]) -> Order:
        """The order of highest value among all, or the best that climbing finds."""
        if len(self.items) > MOST_EXHAUSTIVE:
            return climb(value, self.items, rng, starts)
        orders, x = all_orders(self.items)
        return orders[best_of(value(x), rng)]

    def _reason(self, order: Order, mean: float, seen: list[Order], pending: list[Order]) -> str:
        if order in seen or order in pending:
            return f"again: its bound is still the highest after visit {(seen + pending).count(order)}"
        if not seen:
            return "first: nothing is known yet"
        best = self.model().means_seen().max()
        return "promising: expected to be better than all seen" if mean > best else "uncertain: it may be the best"


class RandomSearch(OrderSearch):
    """A random order each time, independent of all others."""

    def _next(self, pending: list[Order]) -> Suggestion:
        return _plain(tuple(self.items[i] for i in self._rng(pending).permutation(len(self.items))), "random")


class RoundRobinSearch(OrderSearch):
    """All orders in a sequence that the seed decides, over and over."""

    def _next(self, pending: list[Order]) -> Suggestion:
        total = math.factorial(len(self.items))
        rng = np.random.default_rng([self.seed])
        step = int(rng.integers(total))
        while math.gcd(step, total) != 1:  # then number -> start + step * number visits each order once
            step += 1
        number = int(rng.integers(total)) + step * (len(self.observations) + len(pending))
        return _plain(nth_order(self.items, number % total), "round-robin")


class ExhaustiveSearch(OrderSearch):
    """Every order once, in lexicographic sequence; then there are no more."""

    def _next(self, pending: list[Order]) -> Suggestion | None:
        number = len(self.observations) + len(pending)
        more = number < math.factorial(len(self.items))
        return _plain(nth_order(self.items, number), "exhaustive") if more else None


def make_search(
    strategy: str, items: Sequence[str], seed: int = 0, beta: float = 2.0, n_initial: int = 6
) -> OrderSearch:
    """The search of that name."""
    if strategy == "gp-ucb":
        return GPUCBSearch(items, beta, seed, n_initial)
    kinds: dict[str, Callable[[Sequence[str], int], OrderSearch]] = {
        "random": RandomSearch,
        "round-robin": RoundRobinSearch,
        "exhaustive": ExhaustiveSearch,
    }
    if strategy not in kinds:
        raise UserError(f"unknown strategy {strategy!r}; allowed: {', '.join(STRATEGIES)}.")
    return kinds[strategy](items, seed)


def nth_order(items: Sequence[str], number: int) -> Order:
    """Order number ``number`` in lexicographic sequence.

    >>> nth_order("abc", 0), nth_order("abc", 5)
    (('a', 'b', 'c'), ('c', 'b', 'a'))
    """
    left, order = list(items), []
    for size in range(len(left) - 1, -1, -1):
        place, number = divmod(number, math.factorial(size))
        order.append(left.pop(place))
    return tuple(order)


@cache
def all_orders(items: Order) -> tuple[list[Order], torch.Tensor]:
    """All orders and their features."""
    orders = list(permutations(items))
    return orders, features(orders, items)


def unpredictability(orders: Sequence[Order] | torch.Tensor, seen: Sequence[Order], items: Order) -> np.ndarray:
    """Variance of the value of each order if values were a sum of pair effects with equal prior variances; (n,).

    With c(order) = 1 and +-1 for each pair: c' (ridge I + sum over seen of c c')^-1 c.
    """

    def codes(x: torch.Tensor) -> np.ndarray:
        return np.hstack([np.ones((len(x), 1)), 2 * x.numpy() - 1])

    own = codes(orders if isinstance(orders, torch.Tensor) else features(orders, items))
    before = codes(features(seen, items)) if seen else np.zeros((0, own.shape[1]))
    inverse = np.linalg.inv(DESIGN_RIDGE * np.eye(own.shape[1]) + before.T @ before)
    return np.asarray(np.einsum("ij,jk,ik->i", own, inverse, own))


def _plain(order: Order, reason: str) -> Suggestion:
    return Suggestion(order, None, None, None, reason)


@lru_cache(maxsize=8)
def _fitted(items: Order, observations: tuple[Observation, ...]) -> OrderGP:
    columns = ([getattr(o, name) for o in observations] for name in ("order", "value", "standard_error"))
    return OrderGP(items, *columns)
