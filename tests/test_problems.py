"""The test of the search outside cyber defence: exact optima, equal budgets, the same figures from the same seed."""

from __future__ import annotations

from dataclasses import asdict
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from benchmarks.problem_optima import KINDS, FlowShop, LinearOrdering, QuadraticAssignment, make_problem
from benchmarks.problems import STRATEGIES, Row, instance, ours, play, summary

UNREACHABLE = float("inf")  # as the optimum: the whole budget is spent


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "seed"), [(5, 0), (5, 1), (6, 2), (6, 3)])
def test_the_exact_optimum_is_the_best_of_all_orders(kind: str, n: int, seed: int) -> None:
    problem = make_problem(kind, n, seed)
    assert problem.optimum() == max(problem.value(order) for order in permutations(range(n)))


def test_values_are_those_computed_by_hand() -> None:
    rng = np.random.default_rng(0)
    linear, assignment, shop = LinearOrdering(3, rng), QuadraticAssignment(3, rng), FlowShop(3, rng)
    m, d, f = linear.matrix, assignment.distances, assignment.flows
    assert linear.value((2, 0, 1)) == m[2, 0] + m[2, 1] + m[0, 1]
    assert assignment.value((2, 0, 1)) == -(d[0, 1] * f[2, 0] + d[0, 2] * f[2, 1] + d[1, 2] * f[0, 1])
    shop.times[:] = [[1, 1, 1, 1, 1], [1, 5, 1, 1, 1], [2, 1, 1, 1, 1]]
    assert shop.value((0, 1, 2)) == -11  # job 1 leaves machine 2 at 7, job 2 follows one behind on the last four
    assert shop.value((1, 0, 2)) == -11


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_spends_its_budget_and_no_more_and_never_gets_worse(name: str) -> None:
    trace = play(STRATEGIES[name](6, 15, 0), make_problem("flow_shop", 6, 0), 15, UNREACHABLE)
    assert len(trace.best) == 15
    assert trace.best == sorted(trace.best)
    assert 1 < trace.different <= 15


def test_a_search_ends_at_the_optimum_and_keeps_it() -> None:
    problem = make_problem("flow_shop", 5, 1)
    trace = play(STRATEGIES["local_search"](5, 500, 0), problem, 500, problem.optimum())
    assert len(trace.best) < 500
    assert trace.after(500) == trace.best[-1] == problem.optimum()


def test_gp_ucb_solves_a_linear_ordering_of_six_items() -> None:
    problem = make_problem("linear_ordering", 6, 0)
    assert play(ours("gp-ucb", 6, 0), problem, 40, problem.optimum()).best[-1] == problem.optimum()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_figures(kind: str) -> None:
    def figures() -> dict[str, Any]:
        return {key: value for key, value in asdict(instance(kind, 5, 3, (12, 20))).items() if key != "seconds"}

    first = figures()
    assert first == figures()
    assert all(first["gaps"][name]["20"] <= first["gaps"][name]["12"] for name in STRATEGIES if name != "annealing")


def test_differences_are_paired_by_instance() -> None:
    gaps = [(0.1, 0.3), (0.4, 0.6), (0.0, 0.2)]
    rows = [
        Row("flow_shop", 8, seed, 0.0, -1.0, {name: {"50": gp if name == "gp_ucb" else other} for name in STRATEGIES},
            50, 50, 1.0)
        for seed, (gp, other) in enumerate(gaps)
    ]  # fmt: skip
    found = summary(rows)
    assert found["gp_ucb"]["50"]["solved"] == pytest.approx(1 / 3)
    assert found["random"]["50"]["gp_ucb_minus_this"] == pytest.approx(-0.2)
    assert found["random"]["50"]["difference_error"] == pytest.approx(0.0, abs=1e-12)
