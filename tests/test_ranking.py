"""What a search found, what a table says, and how good the search is on tables whose truth is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.table_summary import between, cost_of_reversing, pair_effect
from benchmarks.table_summary import summary as summary_of
from tests.conftest import ROOT
from tests.helpers import assert_refused, run, run_json
from workflow_rl.engine.network_file import load_network
from workflow_rl.search.gp import Order
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.search.strategies import make_search
from workflow_rl.studies import bench_search
from workflow_rl.studies.bench_search import best_observed, chosen, large_objective, simulate, table_objective
from workflow_rl.studies.workflow_table import WorkflowTable, read_table
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.limits import limit_of

ITEMS = ("defender", "enterprise", "op_server", "op_host", "user")
ORDERS = tuple(permutations(ITEMS))
RESULTS = ROOT / "benchmarks" / "results"
LEVELS = np.array([-3.0, -1.0, 0.0, 1.5, 2.5])  # what starting points add to every workflow alike


def obeyed(compliance: float) -> Obedience:
    """Compliance and kept alike."""
    return Obedience(compliance, 0.01, compliance, 3.0, 5.0)


def evaluated(orders: list[Order], noise: float, seed: int = 0, effect: float = 4.0) -> list[Evaluated]:
    rng = np.random.default_rng(seed)
    found = []
    for order in orders:
        value = effect * (order.index("enterprise") < order.index("user")) - 24.0
        returns = value + LEVELS + noise * rng.standard_normal(5)
        found.append(Evaluated(order, tuple(returns.tolist()), (0.1,) * 5, obeyed(0.99)))
    return found


def some_orders(n: int, seed: int = 0) -> list[Order]:
    return [ORDERS[i] for i in np.random.default_rng(seed).permutation(120)[:n]]


def test_the_value_and_error_of_an_evaluation_are_those_of_a_mean() -> None:
    one = Evaluated(ORDERS[0], (1.0, 3.0), (0.3, 0.4), obeyed(1.0))
    assert one.value == 2.0
    assert one.standard_error == pytest.approx(0.25)  # sqrt(0.09 + 0.16) / 2


def test_what_a_starting_point_adds_to_all_workflows_cancels_in_comparisons() -> None:
    found = evaluated(some_orders(15), 0.3)
    flat = [Evaluated(e.order, tuple((np.array(e.returns) - LEVELS).tolist()), e.errors, obeyed(0.99)) for e in found]
    first, second = found[0].order, found[1].order
    with_levels = Posterior(ITEMS, found).difference([first], [second])
    without = Posterior(ITEMS, flat).difference([first], [second])
    assert with_levels == pytest.approx(without, abs=1e-6)
    assert (Posterior(ITEMS, found).level_error or 0.0) > 0.9  # it is told apart from the errors of comparisons


def test_the_pair_that_matters_is_named_with_its_effect_and_no_other() -> None:
    effects = Posterior(ITEMS, evaluated(some_orders(40), 0.4)).pair_effects()
    assert [(pair.first, pair.second) for pair in effects if pair.matters] == [("enterprise", "user")]
    assert effects[0].effect == pytest.approx(4.0, abs=3 * effects[0].standard_error)
    assert all(pair.effect >= 0 for pair in effects)


def test_without_an_effect_pairs_are_hardly_ever_named_and_nearly_all_workflows_are_equal() -> None:
    named, equal = 0, []
    for seed in range(30):
        posterior = Posterior(ITEMS, evaluated(some_orders(20, seed), 0.4, seed, effect=0.0))
        named += any(pair.matters for pair in posterior.pair_effects())
        equal += [place.equal for place in posterior.ranking(0.95)]
    assert named <= 3
    assert np.mean(equal) > 0.95


def test_equals_of_the_best_are_told_from_those_behind() -> None:
    ranking = Posterior(ITEMS, evaluated(some_orders(24), 0.3)).ranking(0.95)
    good = [place.order.index("enterprise") < place.order.index("user") for place in ranking]
    assert [place.equal for place in ranking] == good
    assert good == sorted(good, reverse=True)
    assert ranking[0].behind == 0.0
    assert ranking[-1].behind == pytest.approx(4.0, abs=1.0)


def test_a_difference_that_varies_between_starting_points_has_a_larger_error() -> None:
    def posterior(spread: float) -> Posterior:
        rows = []
        for order in some_orders(24):
            good = order.index("enterprise") < order.index("user")
            returns = (4.0 + spread * np.array([-2, -1, 0, 1, 2])) * good - 24.0
            rows.append(Evaluated(order, tuple(returns.tolist()), (0.1,) * 5, obeyed(0.99)))
        return Posterior(ITEMS, rows)

    steady, varying = (posterior(spread).pair_effects()[0] for spread in (0.0, 1.0))
    assert varying.standard_error == pytest.approx(math.sqrt(2.5 / 5), rel=0.2)  # deviation over the root of five
    assert steady.standard_error < 0.3 * varying.standard_error


def test_a_workflow_below_the_threshold_comes_last_however_good() -> None:
    found = evaluated(some_orders(8), 0.1)
    best = max(found, key=lambda e: e.value)
    found[found.index(best)] = Evaluated(best.order, best.returns, best.errors, obeyed(0.90))
    ranking = Posterior(ITEMS, found).ranking(0.95)
    assert ranking[-1].order == best.order
    assert not ranking[-1].follows
    assert not ranking[-1].equal
    assert all(place.follows for place in ranking[:-1])


def test_one_replicate_is_enough_for_a_ranking() -> None:
    found = [Evaluated(e.order, e.returns[:1], e.errors[:1], obeyed(0.99)) for e in evaluated(some_orders(6), 0.2)]
    posterior = Posterior(ITEMS, found)
    assert posterior.quantile() == pytest.approx(1.96, abs=0.01)
    assert posterior.level_error is None  # cannot be known
    assert len(posterior.ranking(0.95)) == 6


def table(effect: float = 4.0, noise: float = 0.5) -> WorkflowTable:
    found = evaluated(list(ORDERS), noise, effect=effect)
    return WorkflowTable(ORDERS, np.array([e.returns for e in found]), 0.1, ("enterprise", "op_server", "user"))


def test_a_table_tells_noise_from_differences() -> None:
    one = table()
    assert one.noise == pytest.approx(0.5, rel=0.1)
    assert one.standard_error == pytest.approx(one.noise / math.sqrt(5))
    assert between(one) == pytest.approx(2.0, rel=0.1)  # half of the workflows are 4 better
    assert between(table(effect=0.0)) < 0.1
    effect, error = pair_effect(one, "enterprise", "user")
    assert error == pytest.approx(one.noise / math.sqrt(5) * math.sqrt(2 / 24))  # 24 workflows on each side
    assert effect == pytest.approx(4.0, abs=4 * error + 0.05)
    for first, second in combinations(ITEMS, 2):
        if (first, second) != ("enterprise", "user"):
            assert abs(pair_effect(one, first, second)[0]) < 0.3


def test_workflows_that_are_the_same_task_have_the_same_true_return() -> None:
    one = table()
    by_task = one.by_task()
    assert set(by_task) == set(permutations(("enterprise", "op_server", "user")))
    for task, mean in by_task.items():
        own = [i for i, order in enumerate(ORDERS) if one.task_of(order) == task]
        assert len(own) == 20
        assert mean == pytest.approx(one.truth[own].mean())


def test_reversing_a_priority_costs_the_best_task_with_it_less_the_best_without() -> None:
    items = ("enterprise", "op_server", "user")
    returns = dict(zip(permutations(items), (-41, -52, -21, -25, -54, -34), strict=True))
    one = WorkflowTable(tuple(returns), np.array([[value, value] for value in returns.values()], float), 0.1, items)
    assert cost_of_reversing(one, "op_server", "enterprise") == -21 + 41
    assert cost_of_reversing(one, "enterprise", "user") == -21 + 25
    assert cost_of_reversing(one, "user", "enterprise") == -25 + 21


def test_a_table_of_tasks_is_an_objective_on_all_workflows() -> None:
    items = ("enterprise", "op_server", "user")
    returns = np.arange(12.0).reshape(6, 2)
    objective = table_objective(WorkflowTable(tuple(permutations(items)), returns, 0.1, items), ITEMS)
    assert set(objective.items) == set(ITEMS)
    values = objective.value([("defender", *items, "op_host"), items, ("user", "op_host", "op_server", "enterprise")])
    assert values.tolist() == [0.5, 0.5, 10.5]


def test_a_simulated_search_finds_the_decisive_pair_and_another_seed_differs() -> None:
    objective = table_objective(table(), ITEMS)
    choices = simulate(objective, "gp-ucb", 0, [4, 8, 12])
    assert len(choices) == 3
    assert objective.best - objective.value(choices[-1:])[0] < 0.3
    assert simulate(objective, "gp-ucb", 0, [4, 8, 12]) == choices
    assert simulate(objective, "gp-ucb", 1, [4, 8, 12]) != choices


def test_the_choice_is_by_the_posterior_or_without_a_model_by_the_mean_observed() -> None:
    search = make_search("random", ITEMS)
    for order, value in ((ORDERS[0], 1.0), (ORDERS[0], 3.0), (ORDERS[119], 2.5), (ORDERS[1], 2.2), (ORDERS[118], 0.0)):
        search.observe(order, value, 0.1)
    assert best_observed(search) == ORDERS[119]
    seen = sorted({observation.order for observation in search.observations})
    assert chosen(search) == seen[int(search.model().predict(seen)[0].argmax())]


def test_the_synthetic_table_knows_its_best_and_worst() -> None:
    objective = large_objective(3, 0.1)
    values = objective.value(list(permutations("ABCDEFGH")))
    assert (objective.worst, objective.best) == (values.min(), values.max())
    assert objective.noise == pytest.approx(0.1 * np.ptp(values))


def test_a_search_among_eight_types_is_judged_by_shares_of_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_search, "LARGE_EVALUATIONS", 12)
    monkeypatch.setattr(bench_search, "LARGE_LOOKS", (6, 12))
    found = bench_search.large_regret(0, 0.01)
    assert len(found.share) == 12
    assert all(0 <= share <= 1 for share in found.share)
    assert found.share[-1] < found.random_share
    assert 100 < found.random_first <= 20_000
    summary = bench_search.large_summary([replace(found, share=[0.5] * 11 + [last]) for last in (0.04, 0.06)], 0.01)
    assert summary.within_5_percent == 0.5
    assert summary.median_regret_percent == {"6": 50.0, "12": 5.0}


@pytest.mark.long
def test_bench_search_compares_the_strategies(tmp_path: Path) -> None:
    figures = run_json("bench", "search", "--seeds", "2", "--large-seeds", "0", "--jobs", "2",
                       "--table", RESULTS / "workflow_table_bline.json")  # fmt: skip
    found = figures["workflow_table_bline"]
    for strategy in ("gp-ucb", "random", "round-robin"):
        assert set(found[strategy]["median_regret"]) == {"5", "10", "20"}
        assert all(0 <= share <= 1 for share in found[strategy]["within_one_standard_error"].values())
    assert {"gp-ucb", "random", "round-robin", "random, best observed"} <= set(found)
    assert_refused(run("bench", "search", "--table", tmp_path / "nowhere.json"), "cannot be read")
    (tmp_path / "wrong.json").write_text('{"figures": {"table": {"workflows": ["a"]}}}', "utf-8")
    assert_refused(run("bench", "search", "--table", tmp_path / "wrong.json"), "not a table of workflows")
    partial = {"workflows": ["a,b", "b,c"], "mean_return": [[1, 2], [1, 2]], "standard_error": [[1]], "taken": []}
    (tmp_path / "wrong.json").write_text(json.dumps({"figures": {"table": partial}}), "utf-8")
    assert_refused(run("bench", "search", "--table", tmp_path / "wrong.json"), "not a table of all workflows")
    assert_refused(run("bench", "search", "--seeds", "0"), "must be at least 1")


@pytest.mark.parametrize(("red", "shape"), [("bline", (6, 10)), ("meander", (24, 4))])
def test_the_stored_tables_have_several_trainings_of_every_order_that_all_follow(
    red: str, shape: tuple[int, int]
) -> None:
    path = RESULTS / f"workflow_table_{red}.json"
    stored = json.loads(path.read_text("utf-8"))["figures"]
    assert read_table(path).returns.shape == shape
    for name in ("compliance", "kept"):
        assert np.array(stored["table"][name]).min() >= 0.95
    assert np.array(stored["table"]["repairs"]).min() >= 2
    assert stored["followed"] == stored["trainings"] == shape[0] * shape[1]
    fresh: Any = summary_of(read_table(path))
    for name in ("noise_of_one_training", "deviation_between_workflows", "best_task_return"):
        assert fresh[name] == pytest.approx(stored[name])
    assert fresh["pairs"] == [pytest.approx(pair) for pair in stored["pairs"]]


def test_against_meander_the_stored_table_shows_no_priority_that_matters_as_against_bline() -> None:
    largest = summary_of(read_table(RESULTS / "workflow_table_bline.json"))["pairs"][0]["effect"]
    summary = summary_of(read_table(RESULTS / "workflow_table_meander.json"))
    assert not any(pair["matters"] for pair in summary["ranking"]["pairs"])
    assert summary["ranking"]["n_equal_to_best"] == 24
    assert all(pair["effect"] < 0.1 * largest for pair in summary["pairs"])


def test_against_bline_the_stored_table_shows_that_only_enterprise_before_user_matters() -> None:
    found = read_table(RESULTS / "workflow_table_bline.json")
    pairs = summary_of(found)["ranking"]["pairs"]
    assert [(pair["first"], pair["second"]) for pair in pairs if pair["matters"]] == [("enterprise", "user")]
    equals = summary_of(found)["ranking"]["equal_to_best"]
    assert all(name.split(",").index("enterprise") < name.split(",").index("user") for name in equals)
    assert max(pair["effect"] for pair in pairs[1:]) < 0.1 * pairs[0]["effect"]


def test_in_incidents_every_order_of_the_stored_table_is_kept_and_none_is_better_than_its_limit() -> None:
    stored = json.loads((RESULTS / "workflow_table_bline_30.json").read_text("utf-8"))["figures"]["table"]
    own = read_table(RESULTS / "workflow_table_bline_30.json")
    assert own.returns.shape == (6, 5)
    assert min(map(min, stored["kept"])) >= 0.95
    assert min(map(min, stored["compliance"])) >= 0.98
    limits = [limit_of(order, "bline", "current", "30", 100, load_network()) or 0.0 for order in stored["workflows"]]
    assert all(0 < limit - mean <= 12 for limit, mean in zip(limits, own.truth.tolist(), strict=True))
    assert np.argsort(limits).tolist() == np.argsort(own.truth).tolist()  # the six rank as they do exactly


def test_in_incidents_of_meander_every_order_of_the_stored_table_is_kept() -> None:
    stored = json.loads((RESULTS / "workflow_table_meander_40.json").read_text("utf-8"))["figures"]
    assert len(stored["table"]["workflows"]) == stored["tasks"] == 24  # five workflows each
    assert min(map(min, stored["table"]["kept"])) >= 0.95
    assert stored["followed"] == stored["trainings"] == 72
