"""Orders: all of them, the one of a number, the least predictable one, and local search."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations

import numpy as np
import torch

from workflow_rl.search.gp import Order, features

N_STARTS = 32
TIE = 1e-9  # values closer than this are equal
DESIGN_RIDGE = 0.1

Value = Callable[..., np.ndarray]  # values of orders, or of their features


def climb(value: Value, items: Order, rng: np.random.Generator, starts: Sequence[Order] = ()) -> Order:
    """An order of highest value, by steepest ascent over swaps and moves of items, from ``starts`` and random orders.

    Args:
        value: values of orders.
        items: the items to be ordered.
        rng: for the random starts and for ties.
        starts: orders to climb from, of which the best are used.
    """
    steps = changes(len(items))
    here = [tuple(items[i] for i in rng.permutation(len(items))) for _ in range(N_STARTS)]
    if starts:
        here += [starts[i] for i in np.argsort(-value(list(starts)), kind="stable")[: N_STARTS // 4]]
    heights = value(here)
    climbing = list(range(len(here)))
    while climbing:
        around = [tuple(here[i][k] for k in places) for i in climbing for places in steps]
        found = value(around).reshape(len(climbing), len(steps))
        best = found.argmax(axis=1)
        gained = found.max(axis=1) > heights[climbing] + TIE
        for row, i in enumerate(climbing):
            if gained[row]:
                here[i], heights[i] = around[row * len(steps) + int(best[row])], found[row, best[row]]
        climbing = [i for row, i in enumerate(climbing) if gained[row]]
    return here[best_of(heights, rng)]


@cache
def changes(n: int) -> list[tuple[int, ...]]:
    """All swaps of two of ``n`` places and all moves of one to another place, as places of the items afterwards.

    >>> changes(3)
    [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    """
    found = set[tuple[int, ...]]()
    for a, b in permutations(range(n), 2):
        moved = [k for k in range(n) if k != a]
        moved.insert(b, a)
        swapped = list(range(n))
        swapped[a], swapped[b] = b, a
        found |= {tuple(moved), tuple(swapped)}
    return sorted(found)


def best_of(values: np.ndarray, rng: np.random.Generator) -> int:
    """Index of the highest value; ties are broken at random."""
    return int(rng.choice(np.flatnonzero(values >= values.max() - TIE * max(1.0, float(np.ptp(values))))))


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
