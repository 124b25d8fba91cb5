"""Search over orders by ask and tell: GP-UCB, and plain strategies to compare it with.

    suggestion = search.suggest(1, pending)[0]      # an order to evaluate; pending ones are being evaluated
    search.observe(suggestion.order, value, error)  # the outcome

A suggestion is a function of the items, the settings, the observations in any sequence and the pending orders. There is
no clock and no hidden generator, so the same observations give the same suggestions on every machine. Larger values are
better.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workflow_rl.config import check_strategy
from workflow_rl.errors import UserError
from workflow_rl.search.gp import Order, OrderGP, features
from workflow_rl.search.orders import Value, all_orders, best_of, climb, nth_order, unpredictability

MOST_EXHAUSTIVE = 8  # items up to which all orders are compared; 40,320
MOST_AT_ONCE = 7  # items up to which several are chosen among all orders; 5,040
MOST_ITEMS = 12
POOL = 2048  # orders among which several are chosen at once, beyond that
DESIGN = "design: tells the effects of pairs apart"
DOUBTED = "again: its value is far below what all others predict, so its training may have failed"


@dataclass(frozen=True)
class Observation:
    """A value of an order, and its standard error."""

    order: Order
    value: float
    standard_error: float


@dataclass(frozen=True)
class Suggestion:
    """An order to evaluate, the reason for the choice, and the model's prediction if the strategy has a model."""

    order: Order
    reason: str = ""
    mean: float | None = None
    sigma: float | None = None
    bound: float | None = None


class OrderSearch(ABC):
    """Ask and tell: the base of all strategies, also of users' own, which define :meth:`propose`.

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
            suggestion = self.propose(waiting)
            if suggestion is None:
                break
            suggestions.append(suggestion)
            waiting.append(suggestion.order)
        return suggestions

    @abstractmethod
    def propose(self, pending: list[Order]) -> Suggestion | None:
        """One order to evaluate while the pending ones are evaluated; None: there are no more.

        It must follow from the items, the seed, the observations and the pending orders, or a resumed run would differ.
        """

    @property
    def seen(self) -> list[Order]:
        """The observed orders."""
        return [observation.order for observation in self.observations]

    def rng(self, pending: list[Order]) -> np.random.Generator:
        """A generator for the next suggestion."""
        return np.random.default_rng([self.seed, len(self.observations) + len(pending)])

    def model(self) -> OrderGP:
        """The process given all believed observations, for any strategy; sorted: their sequence does not matter."""
        found = sorted(self.observations, key=lambda o: (o.order, o.value, o.standard_error))
        failed = _fitted(self.items, tuple(found)).failed()
        return _fitted(self.items, tuple(one for one, wrong in zip(found, failed, strict=True) if not wrong))


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
            number = best_of(bounds, self.rng(pending))
            mean, sigma, bound = (float(array[number]) for array in (candidates.mean, candidates.sigma, bounds))
            order = orders[number]
            reason = self._reason(order, mean, seen, pending)
            suggestions.append(Suggestion(order, reason, mean, sigma, bound) if seen else Suggestion(order, reason))
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

        climb(value, self.items, self.rng(pending), sorted({*self.seen}))
        return sorted(found, key=lambda order: (-found[order], order))[:POOL]

    def propose(self, pending: list[Order]) -> Suggestion:
        """The order of highest bound; at first one of the design, and again one whose value is doubted."""
        model, rng, seen = self.model().with_pending(pending), self.rng(pending), self.seen
        design = len(seen) + len(pending) < self.n_initial
        doubted = [one for one in self.model().doubtful() if (seen + pending).count(one) == 1] if not design else []
        if design:
            order = self._highest(lambda some: unpredictability(some, sorted(seen + pending), self.items), rng, [])
        elif doubted:
            order = doubted[0]
        else:
            order = self._highest(lambda some: model.upper_bound(some, self.beta), rng, sorted({*seen}))
        if not seen:
            return Suggestion(order, DESIGN if design else "first: nothing is known yet")
        mean, sigma = (float(array[0]) for array in model.predict([order]))
        reason = DESIGN if design else DOUBTED if doubted else self._reason(order, mean, seen, pending)
        return Suggestion(order, reason, mean, sigma, mean + self.beta * sigma)

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

    def propose(self, pending: list[Order]) -> Suggestion:
        """A random order."""
        return Suggestion(tuple(self.items[i] for i in self.rng(pending).permutation(len(self.items))), "random")


class RoundRobinSearch(OrderSearch):
    """All orders in a sequence that the seed decides, over and over."""

    def propose(self, pending: list[Order]) -> Suggestion:
        """The next order of the sequence."""
        total = math.factorial(len(self.items))
        rng = np.random.default_rng([self.seed])
        step = int(rng.integers(total))
        while math.gcd(step, total) != 1:  # then number -> start + step * number visits each order once
            step += 1
        number = int(rng.integers(total)) + step * (len(self.observations) + len(pending))
        return Suggestion(nth_order(self.items, number % total), "round-robin")


class ExhaustiveSearch(OrderSearch):
    """Every order once, in lexicographic sequence; then there are no more."""

    def propose(self, pending: list[Order]) -> Suggestion | None:
        """The next order, as long as there is one."""
        number = len(self.observations) + len(pending)
        more = number < math.factorial(len(self.items))
        return Suggestion(nth_order(self.items, number), "exhaustive") if more else None


class OwnSearch(OrderSearch):
    """A user's own strategy: every call of it is checked, and its faults become sentences.

    Args:
        name: ``package.module:Class``, a subclass of :class:`OrderSearch`.
        items: the items to be ordered.
        seed: breaks ties.
    """

    def __init__(self, name: str, items: Sequence[str], seed: int = 0) -> None:
        super().__init__(items, seed)
        self.name, kind = name, _imported(name)
        with self._guarded():
            self.own = kind(self.items, seed)

    def observe(self, order: Sequence[str], value: float, standard_error: float) -> None:
        """Tells the outcome of an evaluation."""
        super().observe(order, value, standard_error)
        with self._guarded():
            self.own.observe(order, value, standard_error)

    def propose(self, pending: list[Order]) -> Suggestion | None:
        """One order of the user's strategy, if it is an order."""
        with self._guarded():
            found = self.own.propose(list(pending))
        if found is None:
            return None
        order = getattr(found, "order", found)
        is_order = isinstance(order, (list, tuple)) and sorted(map(str, order)) == sorted(self.items)
        if not isinstance(found, Suggestion) or not is_order:
            raise UserError(f"strategy {self.name} must suggest an order of {', '.join(self.items)}, not {order!r}.")
        with self._guarded():
            predicted = [float("nan" if value is None else value) for value in (found.mean, found.sigma, found.bound)]
        known = predicted if all(map(math.isfinite, predicted)) else []
        return Suggestion(tuple(map(str, found.order)), str(found.reason), *known)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with _sentence(f"strategy {self.name} failed"):
            yield


@contextmanager
def _sentence(what: str) -> Iterator[None]:
    """Turns an error of users' code into a sentence with the place where it happened."""
    try:
        yield
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = " ".join([f"{type(error).__name__}:", *str(error).split()]).rstrip(":.")
        raise UserError(f"{what} ({last.filename}, line {last.lineno}): {said}.") from error


def _imported(name: str) -> type[OrderSearch]:
    """The class ``package.module:Class``, also one in the current directory, as for ``python -m``."""
    module, _, kind = name.partition(":")
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    try:
        missing = importlib.util.find_spec(module) is None
    except ModuleNotFoundError:  # of a parent
        missing = True
    if missing:
        raise UserError(f"strategy {name}: there is no module {module!r} here ({os.getcwd()}) or installed.")
    with _sentence(f"strategy {name} cannot be imported"):
        found = getattr(importlib.import_module(module), kind, None)
    if not isinstance(found, type) or not issubclass(found, OrderSearch):
        raise UserError(f"strategy {name} must be a subclass of workflow_rl.OrderSearch, not {found!r}.")
    return found


def make_search(
    strategy: str, items: Sequence[str], seed: int = 0, beta: float = 2.0, n_initial: int = 6
) -> OrderSearch:
    """The search of that name."""
    kinds: dict[str, Callable[[], OrderSearch]] = {
        "gp-ucb": lambda: GPUCBSearch(items, beta, seed, n_initial),
        "random": lambda: RandomSearch(items, seed),
        "round-robin": lambda: RoundRobinSearch(items, seed),
        "exhaustive": lambda: ExhaustiveSearch(items, seed),
    }
    check_strategy(strategy)
    return kinds[strategy]() if strategy in kinds else OwnSearch(strategy, items, seed)


@lru_cache(maxsize=8)
def _fitted(items: Order, observations: tuple[Observation, ...]) -> OrderGP:
    columns = ([getattr(o, name) for o in observations] for name in ("order", "value", "standard_error"))
    return OrderGP(items, *columns)
