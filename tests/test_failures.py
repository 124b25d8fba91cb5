"""Trainings that fail: a value that all others contradict is checked by a second one before it is believed."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from benchmarks.failures import FOLLOWED
from workflow_rl.search.gp import Order, OrderGP
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.search.strategies import DOUBTED, GPUCBSearch

ITEMS = tuple("abcd")
STUCK: Order = ("a", "c", "b", "d")


def value(order: Order) -> float:
    return -10.0 - 3.0 * (order.index("a") > order.index("b"))


def observed(extra: dict[Order, list[float]]) -> GPUCBSearch:
    """A search that saw every other order once, with little noise, and STUCK with the given values."""
    search, rng = GPUCBSearch(ITEMS, seed=1), np.random.default_rng(0)
    for order in permutations(ITEMS):
        for seen in extra.get(order, [value(order) + rng.normal(0, 0.1)]):
            search.observe(order, seen, 0.05)
    return search


def test_a_value_that_all_others_contradict_is_checked_by_a_second_training() -> None:
    suggestion = observed({STUCK: [-30.0]}).suggest(1)[0]
    assert (suggestion.order, suggestion.reason) == (STUCK, DOUBTED)
    assert observed({}).suggest(1)[0].reason != DOUBTED
    assert observed({STUCK: [-30.0]}).suggest(1, [STUCK])[0].reason != DOUBTED  # the check is already under way


def test_a_low_value_that_the_check_does_not_confirm_is_not_believed() -> None:
    model = observed({STUCK: [-30.0, -10.0]}).model()
    assert model.predict([STUCK])[0][0] == pytest.approx(-10.0, abs=0.5)
    assert model.training_noise < 1.0
    assert model.orders.count(STUCK) == 1


def test_a_low_value_that_the_check_confirms_is_believed_and_not_checked_again() -> None:
    search = observed({STUCK: [-30.0, -29.8]})
    assert search.model().orders.count(STUCK) == 2
    assert search.model().predict([STUCK])[0][0] < -25
    assert search.suggest(1)[0].reason != DOUBTED


def test_the_best_value_of_an_order_always_counts() -> None:
    rng = np.random.default_rng(3)
    orders = [order for order in permutations(ITEMS) for _ in range(2)]
    values = rng.standard_cauchy(len(orders)).tolist()
    failed = OrderGP(ITEMS, orders, values, [0.01] * len(orders)).failed()
    left = [order for order, wrong in zip(orders, failed, strict=True) if not wrong]
    assert failed.any()
    assert {*left} == {*orders}


def test_the_ranking_leaves_out_the_same_values_as_the_search() -> None:
    search = observed({STUCK: [-30.0, -10.0]})
    evaluated = [Evaluated(o.order, (o.value,), (o.standard_error,), FOLLOWED) for o in search.observations]
    posterior = Posterior(ITEMS, evaluated)
    assert len(posterior.evaluated) == len(evaluated) - 1
    place = next(row for row in posterior.ranking(0.95) if row.order == STUCK)
    assert place.mean == pytest.approx(-10.0, abs=0.5)
    clear = [(pair.first, pair.second) for pair in posterior.pair_effects() if pair.matters]
    assert clear == [("a", "b")]
