"""The process on orders, and the strategies behind ask and tell."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
import torch
from botorch.optim.fit import fit_gpytorch_mll_scipy
from linear_operator.utils.errors import NotPSDError

from workflow_rl.config import STRATEGIES
from workflow_rl.errors import UserError
from workflow_rl.search import gp as order_gp
from workflow_rl.search.gp import MallowsKernel, Order, OrderGP, features, pair_swaps
from workflow_rl.search.orders import all_orders, climb, nth_order, unpredictability
from workflow_rl.search.strategies import GPUCBSearch, OrderSearch, Suggestion, make_search

ITEMS = ("defender", "enterprise", "op_server", "op_host", "user")
ORDERS = list(permutations(ITEMS))


def truth(order: Order) -> float:
    return 4.0 * (order.index("enterprise") < order.index("user")) - 20.0


def informed(n: int = 14, seed: int = 0, items: Order = ITEMS, strategy: str = "gp-ucb") -> OrderSearch:
    """A search that has seen some random orders."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(0, 1, math.comb(len(items), 2))
    search = make_search(strategy, items, seed)
    for _ in range(n):
        order = tuple(items[i] for i in rng.permutation(len(items)))
        value = float(features([order], items).numpy()[0] @ effects)
        search.observe(order, value + 0.2 * rng.standard_normal(), 0.1)
    return search


def hand_kernel(a: Order, b: Order, weights: np.ndarray, items: Order = ITEMS) -> float:
    """exp(-sum of the weights of the pairs on which two orders disagree), by counting."""
    total = 0.0
    for weight, (x, y) in zip(weights, combinations(items, 2), strict=True):
        total += weight * ((a.index(x) < a.index(y)) != (b.index(x) < b.index(y)))
    return math.exp(-total)


def test_the_kernel_is_the_formula_and_positive_definite_for_all_120_orders() -> None:
    kernel = MallowsKernel(10)
    weights = np.linspace(0.02, 1.5, 10)
    kernel.initialize(raw_weights=torch.from_numpy(np.log(weights)))
    matrix = kernel(features(ORDERS, ITEMS)).to_dense().detach().numpy()
    for i, j in ((0, 0), (0, 119), (3, 77), (50, 51), (119, 20)):
        assert matrix[i, j] == pytest.approx(hand_kernel(ORDERS[i], ORDERS[j], weights), rel=1e-12)
    diagonal = kernel(features(ORDERS, ITEMS), diag=True).detach().numpy()
    assert np.allclose(diagonal, 1.0)
    assert np.linalg.eigvalsh(matrix).min() > 1e-6


def test_prediction_and_bound_are_those_of_a_gp_written_by_hand() -> None:
    search = informed()
    gp = search.model()
    seen, values, errors = gp.orders, gp.values, gp.errors
    scale, weights = gp.scale, gp.weights
    outputscale = float(gp._kernel.outputscale.detach()) * scale**2
    mean = gp.centre + scale * gp._mean
    noise = errors**2 + gp.training_noise**2
    k = outputscale * np.array([[hand_kernel(a, b, weights) for b in seen] for a in seen]) + np.diag(noise)
    some = ORDERS[::7]
    cross = outputscale * np.array([[hand_kernel(a, b, weights) for b in seen] for a in some])
    wanted = mean + cross @ np.linalg.solve(k, values - mean)
    variance = outputscale - np.einsum("ij,ji->i", cross, np.linalg.solve(k, cross.T))
    found, sigma = gp.predict(some)
    assert np.allclose(found, wanted, atol=1e-6)
    assert np.allclose(sigma, np.sqrt(variance), atol=1e-6)
    for beta in (0.0, 2.0, 3.5):
        assert np.allclose(gp.upper_bound(some, beta), wanted + beta * np.sqrt(variance), atol=1e-5)
    contrast = np.array([1.0, -1.0])
    difference, error = gp.contrast([some[0], some[3]], contrast)
    both = outputscale * np.array(
        [[hand_kernel(a, b, weights) for b in (some[0], some[3])] for a in (some[0], some[3])]
    )
    posterior = both - cross[[0, 3]] @ np.linalg.solve(k, cross[[0, 3]].T)
    assert difference == pytest.approx(wanted[0] - wanted[3], abs=1e-6)
    assert error == pytest.approx(math.sqrt(contrast @ posterior @ contrast), abs=1e-6)


def test_a_pair_that_matters_gets_weight_and_the_others_shrink() -> None:
    rng = np.random.default_rng(1)
    seen = [ORDERS[i] for i in rng.permutation(120)[:40]]
    gp = OrderGP(ITEMS, seen, [truth(order) + 0.3 * rng.standard_normal() for order in seen], [0.1] * 40)
    by_pair = dict(zip(combinations(ITEMS, 2), gp.weights, strict=True))
    decisive = by_pair.pop(("enterprise", "user"))
    assert decisive > 5 * max(by_pair.values())
    assert 0.15 < gp.training_noise < 0.5  # 0.28 is in the data beyond the known 0.1


def test_repeats_are_pooled_and_their_spread_is_training_noise() -> None:
    one = OrderGP(ITEMS, [ORDERS[0], ORDERS[60]], [1.0, 0.0], [0.1, 0.1])
    rng = np.random.default_rng(0)
    again = OrderGP(ITEMS, [ORDERS[0]] * 20 + [ORDERS[60]], [*(1.0 + 0.5 * rng.standard_normal(20)), 0.0], [0.1] * 21)
    assert again.predict([ORDERS[0]])[1][0] < one.predict([ORDERS[0]])[1][0]
    assert 0.25 < again.training_noise < 0.9


def test_pending_orders_leave_the_means_and_lower_the_deviations() -> None:
    gp = informed().model()
    pending = [ORDERS[5], ORDERS[99]]
    mean, sigma = gp.predict(ORDERS)
    mean_after, sigma_after = gp.with_pending(pending).predict(ORDERS)
    assert np.allclose(mean, mean_after, atol=1e-8)
    assert (sigma_after <= sigma + 1e-9).all()
    assert sigma_after[5] < 0.9 * sigma[5]


def test_pending_orders_count_as_if_they_had_been_observed_at_their_expected_values() -> None:
    gp = informed().model()
    pending = [ORDERS[3], ORDERS[3], ORDERS[90]]
    expected = gp.predict(pending)[0]
    seen = gp._with(gp._seen)  # the same process, told these values
    seen.orders, seen.values = gp.orders + pending, np.append(gp.values, expected)
    seen.errors = np.append(gp.errors, np.full(3, gp.errors.mean()))
    seen._seen = seen._factorise()
    for one, other in zip(gp.with_pending(pending).predict(ORDERS), seen.predict(ORDERS), strict=True):
        assert np.allclose(one, other, atol=1e-10)
    step = gp
    for order in pending:  # also one after the other
        step = step.with_pending([order])
    assert np.allclose(step.predict(ORDERS)[1], seen.predict(ORDERS)[1], atol=1e-10)


def test_of_very_many_observations_all_count_though_only_some_teach_the_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(order_gp, "MOST_FITTED", 20)
    values = [truth(order) for order in ORDERS]
    values[50] += 3.0
    gp = OrderGP(ITEMS, ORDERS, values, [0.05] * 120)
    means = gp.predict(ORDERS)[0]
    assert np.corrcoef(means, values)[0, 1] > 0.9
    assert means[50] - OrderGP(ITEMS, ORDERS, [truth(o) for o in ORDERS], [0.05] * 120).predict(ORDERS)[0][50] > 0.3


@pytest.mark.parametrize("n_initial", [0, 6, 20])
def test_several_suggestions_at_once_are_those_made_one_after_the_other(n_initial: int) -> None:
    search = GPUCBSearch(ITEMS, seed=3, n_initial=n_initial)
    for order in ORDERS[::9]:
        search.observe(order, truth(order), 0.2)
    pending = [ORDERS[1], ORDERS[44]]
    several, single = search.suggest(9, pending), list[Suggestion]()
    for _ in range(9):
        single += search.suggest(1, [*pending, *(suggestion.order for suggestion in single)])
    assert [s.order for s in several] == [s.order for s in single]
    assert [s.reason for s in several] == [s.reason for s in single]
    for one, other in zip(several, single, strict=True):
        assert (one.mean, one.sigma, one.bound) == pytest.approx((other.mean, other.sigma, other.bound), abs=1e-9)


def test_several_suggestions_among_very_many_orders_are_nearly_as_good_as_climbing_for_each() -> None:
    items, rng = tuple("abcdefgh"), np.random.default_rng(0)
    search = GPUCBSearch(items)
    effects = rng.normal(size=28)
    for _ in range(40):
        order = tuple(items[i] for i in rng.permutation(8))
        search.observe(order, float(effects @ features([order], items)[0].numpy()), 0.1)
    several = search.suggest(24)
    pending = list[Order]()
    for suggestion in several:
        best = search.suggest(1, pending)[0]
        assert suggestion.bound is not None
        assert best.bound is not None
        assert suggestion.bound > best.bound - 0.1 * search.model().scale
        pending.append(suggestion.order)


def test_means_at_what_was_seen_are_those_of_the_prediction() -> None:
    gp = informed().model()
    assert np.allclose(gp.means_seen(), gp.predict(gp.orders)[0], atol=1e-9)


def test_several_suggestions_at_once_are_different_orders_while_much_is_unknown() -> None:
    search = GPUCBSearch(ITEMS, n_initial=0)
    search.observe(ORDERS[0], 1.0, 0.1)
    search.observe(ORDERS[119], 0.0, 0.1)
    assert len({suggestion.order for suggestion in search.suggest(6)}) == 6


def test_pending_orders_change_what_is_suggested_next() -> None:
    search = informed(10)
    first = search.suggest(1)[0].order
    after = search.model().with_pending([first])
    assert after.predict([first])[1][0] < search.model().predict([first])[1][0]
    assert search.suggest(2)[1].order == search.suggest(1, [first])[0].order
    uncertain = GPUCBSearch(ITEMS, beta=20.0, n_initial=0)
    for observation in search.observations:
        uncertain.observe(observation.order, observation.value, observation.standard_error)
    before = uncertain.suggest(1)[0].order
    assert uncertain.suggest(1, [before])[0].order != before


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_observations_in_any_sequence_give_the_same_suggestions(strategy: str) -> None:
    one, other = informed(9, strategy=strategy), make_search(strategy, ITEMS, 0)
    for observation in reversed(one.observations):
        other.observe(observation.order, observation.value, observation.standard_error)
    assert one.suggest(3, [ORDERS[4]]) == other.suggest(3, [ORDERS[4]])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_suggests_orders_and_says_why(strategy: str) -> None:
    for suggestion in make_search(strategy, ITEMS, 3).suggest(5):
        assert sorted(suggestion.order) == sorted(ITEMS)
        assert suggestion.reason
        assert suggestion.bound is None  # nothing is known yet
    known = informed(8, strategy=strategy).suggest(1)[0]
    if strategy == "gp-ucb":
        assert known.mean is not None
        assert known.sigma is not None
        assert known.bound == pytest.approx(known.mean + 2.0 * known.sigma)
    else:
        assert known.bound is None


def test_the_suggestion_is_the_order_with_the_highest_bound() -> None:
    search = informed(12)
    suggestion = search.suggest(1)[0]
    bounds = search.model().upper_bound(ORDERS, 2.0)
    assert bounds.max() == pytest.approx(suggestion.bound, abs=1e-8)


def test_exhaustive_search_visits_every_order_once_and_ends_and_round_robin_begins_again() -> None:
    exhaustive, around = make_search("exhaustive", "abcd"), make_search("round-robin", "abcd", 5)
    assert [s.order for s in exhaustive.suggest(100)] == list(permutations("abcd"))
    orders = [s.order for s in around.suggest(48)]
    assert sorted(orders[:24]) == sorted(permutations("abcd"))
    assert orders[24:] == orders[:24]
    assert [s.order for s in make_search("round-robin", "abcd", 6).suggest(24)] != orders[:24]


def test_orders_are_numbered_in_lexicographic_sequence() -> None:
    assert [nth_order(ITEMS, number) for number in range(120)] == ORDERS


def test_the_first_orders_are_a_design_that_tells_all_pairs_apart() -> None:
    design = [suggestion.order for suggestion in GPUCBSearch(ITEMS, seed=2, n_initial=11).suggest(11)]
    codes = np.hstack([np.ones((11, 1)), 2 * features(design, ITEMS).numpy() - 1])
    assert np.linalg.matrix_rank(codes) == 11
    spread = unpredictability(ORDERS, design, ITEMS).mean()
    rng = np.random.default_rng(0)
    others = [unpredictability(ORDERS, [ORDERS[i] for i in rng.permutation(120)[:11]], ITEMS).mean() for _ in range(20)]
    assert spread < min(others)


def test_after_the_default_search_on_one_decisive_pair_it_is_the_one_with_the_largest_weight() -> None:
    search, rng = make_search("gp-ucb", ITEMS, 4), np.random.default_rng(4)
    for _ in range(16):
        order = search.suggest(1)[0].order
        search.observe(order, truth(order) + 0.3 * rng.standard_normal(), 0.15)
    heaviest = list(combinations(ITEMS, 2))[int(search.model().weights.argmax())]
    assert heaviest == ("enterprise", "user")
    assert truth(search.suggest(1)[0].order) == -16.0


@pytest.mark.parametrize("n_items", [6, pytest.param(7, marks=pytest.mark.long)])
def test_climbing_finds_the_exhaustive_optimum_of_the_bound_in_95_of_100_cases(n_items: int) -> None:
    items = tuple("abcdefg"[:n_items])
    orders, x = all_orders(items)
    number = {order: i for i, order in enumerate(orders)}
    hits = 0
    for seed in range(100):
        bounds = informed(15, seed, items).model().upper_bound(x, 2.0)
        found = climb(lambda some: bounds[[number[o] for o in some]], items, np.random.default_rng(seed))  # noqa: B023
        hits += bounds[number[found]] >= bounds.max() - 1e-9
    assert hits >= 95


@pytest.mark.parametrize("n_items", [8, 12])
def test_more_items_than_can_be_enumerated_are_searched_by_climbing(n_items: int) -> None:
    items = tuple("abcdefghijkl"[:n_items])
    search = informed(12, 1, items)
    suggestion = search.suggest(1)[0]
    assert sorted(suggestion.order) == list(items)
    rng = np.random.default_rng(0)
    others = [tuple(items[i] for i in rng.permutation(n_items)) for _ in range(300)]
    assert suggestion.bound is not None
    assert suggestion.bound > search.model().upper_bound(others, 2.0).max()


def test_pair_swaps_differ_in_nothing_but_the_pair() -> None:
    before, after = pair_swaps(ITEMS, "op_server", "user")
    assert len(before) == 24
    changed = (features(before, ITEMS) - features(after, ITEMS)).abs().sum(0)
    assert changed.tolist() == [24.0 if pair == ("op_server", "user") else 0.0 for pair in combinations(ITEMS, 2)]
    assert len(pair_swaps(tuple("abcdefgh"), "a", "b")[0]) == 120


def test_a_fit_whose_line_search_ends_early_is_used_as_it_is_and_nothing_random_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from botorch.optim import core

    minimize = getattr(core, "minimize_with_timeout")  # noqa: B009 (not exported)

    def early(*arguments: Any, **options: Any) -> Any:
        result = minimize(*arguments, **options)
        result.success, result.message, result.status = False, "ABNORMAL_TERMINATION_IN_LNSRCH", 2
        return result

    monkeypatch.setattr(core, "minimize_with_timeout", early)
    seen, values = ORDERS[::17], [truth(order) for order in ORDERS[::17]]
    state = torch.random.get_rng_state()
    one, other = (OrderGP(ITEMS, seen, values, [0.1] * len(seen)).predict(ORDERS)[0] for _ in range(2))
    assert np.array_equal(one, other)
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_process_that_saw_few_exact_values_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    gp = OrderGP(ITEMS, [ORDERS[0], ORDERS[50]], [1.0, 2.0], [0.0, 0.0])
    gp.with_pending([ORDERS[3]]).upper_bound(ORDERS, 2.0)
    gp.contrast([ORDERS[0], ORDERS[50]], np.array([1.0, -1.0]))
    assert [str(warning.message) for warning in recwarn if "workflow" not in str(warning.filename)] == []


def test_impossible_questions_are_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match="2 to 12 different items"):
        GPUCBSearch(("a", "a"))
    with pytest.raises(UserError, match="2 to 12 different items"):
        GPUCBSearch(tuple("abcdefghijklm"))
    with pytest.raises(UserError, match="beta must be"):
        GPUCBSearch(ITEMS, beta=-1.0)
    with pytest.raises(UserError, match="seed must be at least 0"):
        GPUCBSearch(ITEMS, seed=-1)
    with pytest.raises(UserError, match="unknown strategy 'luck'"):
        make_search("luck", ITEMS)
    search = GPUCBSearch(ITEMS)
    with pytest.raises(UserError, match="is not an order of"):
        search.observe(("user", "user"), 0.0, 0.1)
    with pytest.raises(UserError, match="must be finite"):
        search.observe(ORDERS[0], math.nan, 0.1)
    with pytest.raises(UserError, match="at least 1"):
        search.suggest(0)


def test_a_fit_whose_line_search_goes_too_far_is_made_again_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it happens after some hundred values without noise: the covariance cannot be factorised there."""
    bounds: list[Any] = []

    def fails_first(mll: Any, **options: Any) -> Any:
        bounds.append(options.get("bounds"))
        if len(bounds) == 1:
            for parameter in mll.parameters():
                parameter.data.fill_(torch.nan)
            raise NotPSDError("a step too far")
        return fit_gpytorch_mll_scipy(mll, **options)

    monkeypatch.setattr(order_gp, "fit_gpytorch_mll_scipy", fails_first)
    model = OrderGP(("a", "b", "c"), [("a", "b", "c"), ("b", "a", "c"), ("c", "b", "a")], [1.0, 0.0, -1.0], [0.1] * 3)
    assert bounds[0] is None
    assert bounds[1]
    mean, sigma = model.predict([("a", "b", "c"), ("c", "b", "a")])
    assert mean[0] > mean[1]
    assert (sigma > 0).all()
