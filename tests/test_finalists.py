"""The second stage of a search: who is finished, and what finished trainings are said to show."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from benchmarks.table_summary import FOLLOWED
from tests.test_ranking import ITEMS, evaluated, some_orders
from workflow_rl.engine.network_file import as_network, load_network
from workflow_rl.presets import make_config, make_search_config
from workflow_rl.search.finalists import (
    Finalist,
    Finished,
    choose_finalists,
    final_config,
    final_start,
    finalists_in,
    finalists_to_json,
    judge,
    reversals,
    settle,
)
from workflow_rl.search.findings import RankingRow, row_from_json
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.training.events import WorkflowResult

BEST = ("enterprise", "op_server", "user", "defender", "op_host")
RIVAL = ("op_server", "user", "enterprise", "defender", "op_host")
PAIR = ("enterprise", "user")


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    """Short trainings in which enterprise before user is worth four points."""
    return Posterior(ITEMS, evaluated(some_orders(20), 0.3))


def trained(order: tuple[str, ...], returns: list[float], kept: float) -> list[WorkflowResult]:
    about: dict[str, object] = {"workflow": ",".join(order), "updates": 9}
    about |= {"compliance": 0.99, "compliance_error": 0.001, "kept": kept, "repairs": 3.0, "idle_fixes": 2.0}
    return [row_from_json(WorkflowResult, about | {"mean_return": value}) for value in returns]


def finished(short: list[float], long: list[float], pair: tuple[str, ...] = (), kept: float = 0.99) -> Finished:
    order = RIVAL if pair else BEST
    results = {1: trained(order, short, kept), 2: trained(order, long, kept)}
    return Finished(Finalist(order, pair), results)


def test_the_finalists_are_the_best_and_the_best_with_each_of_the_largest_priorities_reversed(
    posterior: Posterior,
) -> None:
    best, *rivals = choose_finalists(posterior, 0.95, 3)
    assert best == Finalist(posterior.ranking(0.95)[0].order)
    assert len(rivals) == 2
    assert rivals[0].pair == PAIR  # by far the largest effect
    for rival in rivals:
        first, second = rival.pair
        assert best.order.index(first) < best.order.index(second)
        assert rival.order.index(second) < rival.order.index(first)
    moved = reversals(best.order, *PAIR)
    means = dict(zip(moved, posterior.gp.predict(moved)[0].tolist(), strict=True))
    assert means[rivals[0].order] == max(means.values())
    assert choose_finalists(posterior, 0.95, 1) == [best]
    few = choose_finalists(posterior, 0.95, 9, ("enterprise", "op_server", "user"))
    assert len(few) == 4  # red never takes the others, so no rival is trained for them
    assert all({*rival.pair} <= {"enterprise", "op_server", "user"} for rival in few[1:])


def test_a_rival_differs_from_the_best_by_one_type_that_was_moved() -> None:
    """So a bad order that the process has not seen through is never compared in the name of some pair."""
    for first, second in combinations(BEST, 2):
        orders = reversals(BEST, first, second)
        at, to = BEST.index(first), BEST.index(second)
        assert len(set(orders)) == len(orders) == (len(BEST) - to) + (at + 1) - (to == at + 1)  # both ways, one shared
        for order in orders:
            assert order.index(second) < order.index(first)
            assert any(
                [name for name in order if name != moved] == [name for name in BEST if name != moved]
                for moved in (first, second)
            )


def test_a_priority_that_helps_in_some_orders_and_hurts_in_others_gets_its_rival_all_the_same() -> None:
    """User before enterprise is worth two points with the server first and costs two with the server last."""

    def value(order: tuple[str, ...]) -> float:
        server, enterprise, user = (order.index(name) for name in ("op_server", "enterprise", "user"))
        helps = 1 if server < min(enterprise, user) else -1 if server > max(enterprise, user) else 0
        return 20.0 * (server < enterprise) + 8.0 * (server < user) + 2.0 * helps * (user < enterprise)

    noise = np.random.default_rng(3).normal(0.0, 0.05, (40, 2))
    found = [
        Evaluated(order, tuple(value(order) + noise[i]), (0.1, 0.1), FOLLOWED)
        for i, order in enumerate(some_orders(40))
    ]
    best, *rivals = choose_finalists(Posterior(ITEMS, found), 0.95, 4)
    assert value(best.order) == 30.0
    assert [set(rival.pair) for rival in rivals] == [
        {"op_server", "enterprise"}, {"op_server", "user"}, {"user", "enterprise"},
    ]  # fmt: skip


def test_a_priority_matters_if_its_effect_is_clear_after_both_lengths_and_stays(posterior: Posterior) -> None:
    best = finished([-14.5, -14.3], [-13.9, -13.7])
    (pair,) = judge([best, finished([-19.5, -19.1], [-19.0, -18.8], PAIR)], posterior, 0.95).pairs
    assert (pair.first, pair.second, pair.rival) == (*PAIR, ",".join(RIVAL))
    assert pair.effect == pytest.approx(-13.8 + 18.9)
    assert pair.half_as_long == pytest.approx(-14.4 + 19.3)
    noise = math.sqrt((0.02 + 0.02 + 0.08 + 0.02) / 4)  # variances of the four pairs of trainings
    assert pair.standard_error == pytest.approx(noise)  # of a difference of two means of two
    assert pair.interval == pytest.approx(2.7764 * noise, rel=1e-3)  # four degrees of freedom
    assert pair.matters


@pytest.mark.parametrize(
    ("short", "long", "why"),
    [
        ([-19.5, -19.1], [-15.6, -15.2], "less than half of it stays"),
        ([-14.6, -14.2], [-19.0, -18.8], "it was not there after half the training"),
        ([-10.0, -10.2], [-19.0, -18.8], "it had the other sign"),
        ([-18.0, -26.0], [-15.0, -23.0], "trainings of one workflow differ as much"),
    ],
)
def test_a_priority_does_not_matter_if(posterior: Posterior, short: list[float], long: list[float], why: str) -> None:
    best = finished([-14.5, -14.3], [-13.9, -13.7])
    (pair,) = judge([best, finished(short, long, PAIR)], posterior, 0.95).pairs
    assert not pair.matters, why


def test_an_effect_says_nothing_if_one_of_the_two_orders_was_not_kept(posterior: Posterior) -> None:
    best = finished([-14.5, -14.3], [-13.9, -13.7])
    loose = finished([-19.5, -19.1], [-19.0, -18.8], PAIR, kept=0.9)
    verdict = judge([best, loose], posterior, 0.95)
    assert not verdict.pairs[0].matters
    assert [row.followed for row in verdict.rows] == [True, False]
    assert verdict.best is best


def test_a_rival_that_turns_out_better_is_the_best_and_the_pair_is_named_the_other_way(posterior: Posterior) -> None:
    rival = finished([-14.0, -14.2], [-13.0, -13.2], PAIR)
    verdict = judge([finished([-19.5, -19.1], [-19.0, -18.8]), rival], posterior, 0.95)
    assert verdict.best is rival
    assert (verdict.pairs[0].first, verdict.pairs[0].second) == ("user", "enterprise")
    assert verdict.pairs[0].effect == pytest.approx(5.8)
    assert verdict.pairs[0].half_as_long == pytest.approx(5.2)
    assert verdict.pairs[0].matters


def test_a_priority_is_worth_the_best_finalist_that_has_it_less_the_best_that_reverses_it(
    posterior: Posterior,
) -> None:
    """The first one, best in short trainings, turns out to have a priority wrong."""
    orders = {
        ("op_server", "user", "enterprise", "defender", "op_host"): (-36.0, ()),
        ("op_server", "enterprise", "user", "defender", "op_host"): (-30.0, ("user", "enterprise")),
        ("enterprise", "op_server", "user", "defender", "op_host"): (-50.0, ("op_server", "enterprise")),
    }
    every = []
    for order, (value, pair) in orders.items():
        results = {n: trained(order, [value - 0.1, value + 0.1], 0.99) for n in (1, 2)}
        every.append(Finished(Finalist(order, pair), results))
    verdict = judge(every, posterior, 0.95)
    worth = {f"{pair.first} before {pair.second}": pair.effect for pair in verdict.pairs}
    assert worth == pytest.approx({"op_server before enterprise": 20.0, "enterprise before user": 6.0})
    assert all(pair.matters for pair in verdict.pairs)
    assert verdict.best == every[1]


def test_with_one_training_of_each_the_noise_is_what_the_process_learned(posterior: Posterior) -> None:
    verdict = judge([finished([-14.4], [-13.8]), finished([-19.3], [-18.9], PAIR)], posterior, 0.95)
    noise = posterior.gp.training_noise
    assert verdict.pairs[0].standard_error == pytest.approx(noise * math.sqrt(2))
    assert verdict.rows[0].standard_error == pytest.approx(noise)


def test_workflows_with_all_priorities_that_matter_are_equal_to_the_best(posterior: Posterior) -> None:
    both = [finished([-14.5, -14.3], [-13.9, -13.7]), finished([-19.5, -19.1], [-19.0, -18.8], PAIR)]
    orders = [",".join(order) for order in some_orders(8)]
    rows = [{"workflow": order, "follows": i != 0, "equal_to_best": False} for i, order in enumerate(orders)]
    found, winner = settle(posterior, [row_from_json(RankingRow, row) for row in rows], both, 0.95)
    assert winner is both[0]
    assert found.best == ",".join(BEST)
    good = [order for order in orders[1:] if order.index("enterprise") < order.index("user")]
    assert found.equal_to_best == good
    assert sum(pair.matters for pair in found.pair_weights) == 1
    assert len(found.pair_weights) == 10


def test_a_choice_can_be_read_from_the_log_and_a_damaged_one_is_none() -> None:
    chosen = [Finalist(BEST), Finalist(RIVAL, PAIR)]
    assert (
        finalists_in(
            [{"kind": "suggestion"}, {"kind": "finalists", "finalists": finalists_to_json(chosen)}], load_network()
        )
        == chosen
    )
    assert finalists_in([{"kind": "suggestion"}], load_network()) == []
    for damaged in (
        {"kind": "finalists"},
        {"kind": "finalists", "finalists": [["user"]]},
        {"kind": "finalists", "finalists": 3},
    ):
        assert finalists_in([damaged], load_network()) == []


def test_finalists_are_trained_as_the_preset_workflow_does_on_the_task_of_the_search() -> None:
    config = make_search_config(red_agent="meander", n_envs=50, lr=0.1, epochs=3, max_steps=30, edition="leaderboard")
    network = load_network()
    start = final_start(config, network)
    short, long = (final_config(config, network, BEST, 1, length, start) for length in (1, 2))
    preset = make_config("workflow", red_agent="meander")
    assert (short.lr, short.epochs, short.gamma, short.warm_start) == (preset.lr, preset.epochs, preset.gamma, "none")
    assert (short.n_envs, short.max_steps, short.edition) == (50, 30, "leaderboard")
    assert (short.max_episodes, long.max_episodes) == (1000, 2000)
    assert short.min_episodes == 1000
    assert short.seed == long.seed == final_config(config, network, RIVAL, 1, 1, "none").seed
    assert short.seed != final_config(config, network, BEST, 0, 1, "none").seed
    assert final_start(make_search_config(), network) == "general"


def test_with_many_hosts_finalists_are_trained_in_minibatches_as_a_training_of_that_network_is() -> None:
    plant = as_network("plant")
    config = make_search_config(hosts=len(plant.hosts), red_agent="meander")
    preset = make_config("workflow", hosts=len(plant.hosts), red_agent="meander")
    final = final_config(config, plant, plant.unit_types, 0, 1, final_start(config, plant))
    assert preset.minibatch > 0
    assert (final.actions, final.minibatch, final.epochs) == ("host-decoy", preset.minibatch, preset.epochs)
    assert make_config("workflow", red_agent="meander").minibatch == 0
