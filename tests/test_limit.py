"""The limit of defence: exact against B_line, an estimate against Meander."""

from __future__ import annotations

import itertools
import json
from functools import cache

import numpy as np
import pytest

from benchmarks.limit.bline_limit import Solution, bline_limit, in_order, simulate, solve
from benchmarks.limit.meander_estimate import Rules, meander_estimate, returns_of
from benchmarks.limit.meander_rules import Patience
from benchmarks.limits import limits_from_study
from benchmarks.results import RESULTS
from workflow_rl.cli.common import too_good
from workflow_rl.defenders.bline.graph import STATES
from workflow_rl.defenders.bline.orders import find_repairs, orders_of
from workflow_rl.defenders.bline.states import keys_of
from workflow_rl.defenders.protocol import evaluate, reference_policy
from workflow_rl.engine import Draw, force
from workflow_rl.engine.chance import ABSENT
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.state import NO_EXPLOIT, allocate
from workflow_rl.engine.step import reset_envs, step_envs_with
from workflow_rl.engine.tables import DRAW_RANGE, compile_tables
from workflow_rl.envs.blue import cell_of
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.takeover import takeover_rows
from workflow_rl.errors import UserError
from workflow_rl.training.limits import LIMITS, limit_of

EDITIONS = ("current", "leaderboard")
HORIZON = 17  # B_line needs 15 steps to its last line
N_ACTIONS, N_EXPLOITS = 145, 8
TAKEOVERS = (0, 7, 14)


@cache
def solution(edition: str) -> Solution:
    network = load_network()
    return solve(compile_tables(network, edition), network, HORIZON, keep_all=True, takeovers=TAKEOVERS)


def rows_of(states: np.ndarray, solved: Solution) -> np.ndarray:
    """The numbers of states (n,) in the graph; all must be there."""
    keys = solved.graph.keys[: solved.graph.sizes[STATES]]
    order = np.argsort(keys)
    wanted = keys_of(states, solved.tables, solved.reduction)
    rows: np.ndarray = order[np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)]
    assert np.array_equal(keys[rows], wanted)
    return rows


def games_of_a_careless_defender(solved: Solution, n_games: int, seed: int) -> list[np.ndarray]:
    """True states, unreduced, before each step: some defenders do nothing, some anything at all, some in between."""
    generator, states, rewards = np.random.default_rng(seed), allocate(n_games), np.zeros(n_games)
    reset_envs(
        states,
        solved.tables,
        takeover_rows(0, n_games),
        np.ones(n_games, bool),
        np.arange(n_games, dtype=np.uint64),
        True,
    )
    seen = []
    for _ in range(HORIZON - 1):
        seen.append(states.copy())
        actions = generator.integers(N_ACTIONS, size=n_games)
        actions[generator.random(n_games) < np.linspace(0, 1, n_games)] = 0
        step_envs_with(states, solved.tables, actions, generator.integers(DRAW_RANGE, size=(n_games, 4)), rewards)
    return seen


def every_outcome(states: np.ndarray, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of states (n,): next states (n, actions, draws), rewards in tenths, and chances: 0 for what cannot be drawn."""
    users = [host for host in range(13) if int(tables["line_from"][0, 1]) >> host & 1]
    draws = np.array(list(itertools.product(users, range(N_EXPLOITS), (0, 1), (ABSENT,))))
    shape = (len(states), N_ACTIONS, len(draws))
    after = np.broadcast_to(states[:, None, None], shape).reshape(-1).copy()
    actions = np.broadcast_to(np.arange(N_ACTIONS)[:, None], shape).reshape(-1).copy()
    rewards = np.zeros(len(after))
    step_envs_with(after, tables, actions, force(np.broadcast_to(draws, (*shape, 4)).reshape(-1, 4)), rewards)
    after, rewards = after.reshape(shape), rewards.reshape(shape)
    possible = after["irregular"] == 0
    by_exploit = possible.reshape(*shape[:2], len(users), N_EXPLOITS, 2)[:, :, 0].any(axis=3)
    n_options, best = by_exploit.sum(axis=2)[..., None], by_exploit.argmax(axis=2)[..., None]
    taken = np.where(
        n_options == 1, 1.0, np.where(draws[:, Draw.EXPLOIT] == best, 0.75, 0.25 / (n_options - 1 + 1e-99))
    )
    exploit = np.where(after["exploit"] == NO_EXPLOIT, 1 / N_EXPLOITS, taken)
    detected = np.choose(after["detected"] + 1, [0.5, 0.05, 0.95])
    chances = possible * exploit * detected / len(users)
    assert np.allclose(chances.sum(axis=2), 1)
    return after, 10 * rewards, chances


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_values_solve_bellmans_equation_of_the_unreduced_game_with_all_145_actions(edition: str) -> None:
    """With no steps to go the value is 0; so by induction the values are the optimum, where this holds."""
    solved = solution(edition)
    lines = set()
    for step, states in enumerate(games_of_a_careless_defender(solved, 8, seed=5)):
        after, rewards, chances = every_outcome(states, solved.tables)
        here, there = rows_of(states, solved), rows_of(after.reshape(-1), solved).reshape(after.shape)
        lines |= set(states["line"].tolist())
        assert (solved.graph.first_move[here] >= 0).all()
        for to_go in range(1, HORIZON - step + 1):
            best = (chances * (rewards + solved.values[to_go - 1, there])).sum(axis=2).max(axis=1)
            assert np.allclose(best, solved.values[to_go, here], rtol=0, atol=1e-6)
    assert lines == set(range(16))  # 15 of the program, and the one before the first step


ORDERS = (
    "enterprise,op_server,user", "enterprise,user,op_server", "op_server,enterprise,user", "op_server,user,enterprise",
    "user,enterprise,op_server", "user,op_server,enterprise",
)  # fmt: skip


@cache
def solution_in_order(edition: str, order: str) -> Solution:
    network, free_play = load_network(), solution(edition)
    repairs = find_repairs(free_play.graph, free_play.tables, free_play.reduction, network)
    return in_order(free_play, network, repairs, orders_of(free_play.reduction, network)[order])


def violates(states: np.ndarray, network: Network, order: str) -> np.ndarray:
    """Is each action a violation? From the true states and the rules in words; (n, actions) bool.

    Restore ends red's presence on its target, Remove does where red has only sessions that it can kill.
    """
    found = np.zeros((len(states), N_ACTIONS), bool)
    for row, state in enumerate(states):
        held = {
            host: "privileged"
            if state["privileged"] >> h & 1
            else "untraced"
            if state["untraced"] >> h & 1
            else "traced"
            for h, host in enumerate(network.host_names)
            if (state["privileged"] | state["traced"] | state["untraced"]) >> h & 1 and host != "User0"
        }
        types = {host.name: host.unit_type for host in network.hosts}
        due = next((kind for kind in order.split(",") if kind in {types[host] for host in held}), "")
        for action in range(N_ACTIONS):
            verb, host = network.action_parts(action)
            ends = verb == "Restore" or (verb == "Remove" and held.get(host) == "traced")
            found[row, action] = host in held and ends and types[host] != due
    return found


@pytest.mark.parametrize(
    ("edition", "order"),
    [
        ("current", ORDERS[-1]),
        *(pytest.param("current", order, marks=pytest.mark.long) for order in ORDERS[:-1]),
        *(pytest.param("leaderboard", order, marks=pytest.mark.long) for order in ORDERS),
    ],
)
def test_with_violations_taken_away_the_values_solve_bellmans_equation_of_the_unreduced_game(
    edition: str, order: str
) -> None:
    """So the reductions are exact with the constraint too."""
    solved, network, taken = solution_in_order(edition, order), load_network(), 0
    for step, states in enumerate(games_of_a_careless_defender(solved, 8, seed=5)):
        after, rewards, chances = every_outcome(states, solved.tables)
        here, there = rows_of(states, solved), rows_of(after.reshape(-1), solved).reshape(after.shape)
        forbidden = violates(states, network, order)
        taken += int(forbidden.sum())
        for to_go in range(1, HORIZON - step + 1):
            value = (chances * (rewards + solved.values[to_go - 1, there])).sum(axis=2)
            best = np.where(forbidden, -np.inf, value).max(axis=1)
            assert np.allclose(best, solved.values[to_go, here], rtol=0, atol=1e-6)
    assert taken > 0


def test_keeping_an_order_is_never_better_than_freedom_and_is_really_kept() -> None:
    network, free_play = load_network(), solution("current")
    assert tuple(orders_of(free_play.reduction, network)) == ORDERS
    for order in ORDERS:
        kept = solution_in_order("current", order)
        assert (kept.values[:, 0] <= free_play.values[:, 0] + 1e-6).all()
        numbers = orders_of(free_play.reduction, network)[order]
        played = simulate(kept, network, HORIZON, games=2000, seed=1, order=numbers)
        cell = cell_of(played.returns)
        assert abs(cell.mean - kept.values[HORIZON, 0] / 10) < 4 * cell.standard_error
        assert played.repairs > 0
        assert played.violations == 0


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_optimal_policy_returns_its_value_in_games_of_the_engine(edition: str) -> None:
    for length in (9, HORIZON):
        cell = cell_of(simulate(solution(edition), load_network(), length, games=4000, seed=1).returns)
        exact = solution(edition).values[length, 0] / 10
        assert abs(cell.mean - exact) < 4 * cell.standard_error


@pytest.mark.parametrize("edition", EDITIONS)
def test_blue_takes_over_each_state_as_often_as_in_games_in_which_it_slept(edition: str) -> None:
    solved = solution(edition)
    assert solved.starts.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(solved.expected[:, 0], solved.values[:, 0])  # after no steps it is the challenge
    for number, steps in enumerate(TAKEOVERS[1:], start=1):
        envs = CageVectorEnv(4000, edition=edition, takeover=steps)
        envs.reset(seed=9)
        rows = rows_of(envs.snapshot(), solved)
        assert set(rows.tolist()) <= set(np.flatnonzero(solved.starts[number]).tolist())
        for length in (5, HORIZON):
            found = cell_of(solved.values[length, rows])
            assert abs(found.mean - solved.expected[length, number]) < 4 * found.standard_error + 1e-9


def test_in_an_incident_all_orders_differ_one_is_nearly_as_good_as_freedom_and_games_agree() -> None:
    network, free_play, number = load_network(), solution("current"), len(TAKEOVERS) - 1
    worth = {}
    for order in ORDERS:
        kept = solution_in_order("current", order)
        worth[order] = kept.expected[HORIZON, number]
        numbers = orders_of(free_play.reduction, network)[order]
        played = simulate(kept, network, HORIZON, 2000, seed=1, order=numbers, takeover=TAKEOVERS[-1])
        cell = cell_of(played.returns)
        assert abs(cell.mean - worth[order] / 10) < 4 * cell.standard_error
        assert (played.violations, played.repairs > 0) == (0, True)
    free_worth = free_play.expected[HORIZON, number]
    assert max(worth.values()) <= free_worth < max(worth.values()) + 1.0  # a tenth of a point: freedom hardly helps
    assert max(worth, key=lambda order: worth[order]) == "op_server,enterprise,user"
    assert len({round(value, 3) for value in worth.values()}) == 6


@pytest.mark.parametrize("edition", EDITIONS)
def test_no_defender_that_must_look_beats_the_limit(edition: str) -> None:
    values = solution(edition).values[:, 0] / 10
    assert (np.diff(values) <= 0).all()
    for name in ("sleep", "reactive-restore", "reactive-remove", "expert"):
        blue = reference_policy(name, load_network(), edition)
        for length, cell in evaluate(blue, "bline", edition, 1000, (5, 11, HORIZON), seed=2).items():
            assert cell.mean < values[length] + 4 * cell.standard_error


def test_the_study_of_one_user_host_has_every_horizon_and_its_confirmation() -> None:
    result = bline_limit("leaderboard", 60, ("User4",), games=2000, takeovers=(12,))
    assert len(result["values"]) == 60
    assert list(result["confirmed"]) == ["30", "50"]
    for length, cell in result["confirmed"].items():
        assert cell["exact"] == result["values"][int(length) - 1]
        assert result["by_user"][length] == {"User4": pytest.approx(cell["exact"])}
        assert abs(cell["difference_in_standard_errors"]) < 4
    incident = result["incidents"]["12"]
    assert incident["free"]["50"]["exact"] >= max(cells["50"]["exact"] for cells in incident["orders"].values())
    assert all(abs(cell["difference_in_standard_errors"]) < 4 for cell in incident["free"].values())
    assert result["states"] < solution("leaderboard").graph.sizes[STATES]


def test_questions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UserError, match="not User0"):
        bline_limit("current", 10, ("User0",))
    with pytest.raises(UserError, match="more than 2 steps"):
        bline_limit("current", 2)


@pytest.mark.parametrize("edition", EDITIONS)
def test_against_meander_the_cheating_rules_are_far_ahead_of_the_expert(edition: str) -> None:
    result = meander_estimate(edition, games=4000, seed=5, ahead_games=0)
    expert = evaluate(reference_policy("expert", load_network(), edition), "meander", edition, 1000)
    for length, cell in expert.items():
        assert result["cells"][str(length)]["mean"] > cell.mean + 4 * cell.standard_error
    assert result["kind"] == "estimate"
    assert result["cells"] == meander_estimate(edition, games=4000, seed=5, ahead_games=0)["cells"]


def test_looking_ahead_mends_rules_that_were_spoiled() -> None:
    """Else it would mean nothing that it finds no better action than those of the rules."""
    tables = compile_tables(load_network(), "current")
    spoiled = Rules(tables, False, Patience(clean=99, keep=99))
    usual, changes = returns_of(spoiled, 30, 40, seed=3)
    assert changes == 0
    ahead, changes = returns_of(spoiled, 30, 40, seed=3, ahead=True)
    cell = cell_of(ahead - usual)
    assert changes > 40
    assert cell.mean > 4 * cell.standard_error


def test_a_defender_that_sees_everything_hardly_needs_an_order_against_meander() -> None:
    found = meander_estimate(games=50, ahead_games=0, lengths=(100,), order_games=300)
    means = {order: cells["100"]["mean"] for order, cells in found["orders"].items()}
    assert len(means) == 24
    assert max(means.values()) - min(means.values()) < 0.5
    first = {mean for order, mean in means.items() if order.index("enterprise") < order.index("user")}
    assert len(first) == 1  # nothing else was ever to be chosen


def test_the_limits_that_ship_are_those_of_the_stored_study() -> None:
    stored = json.loads((RESULTS / "study_limit.json").read_text("utf-8"))["figures"]
    assert json.loads(LIMITS.read_text("utf-8")) == limits_from_study(stored)
    order = "user,defender,enterprise,op_host,op_server"
    exact = stored["bline"]["current"]["incidents"]["30"]["orders"]["user,enterprise,op_server"]["100"]["exact"]
    assert limit_of(order, "bline", "current", "30", 100, load_network()) == pytest.approx(exact, abs=1e-4)
    spaced = "user, defender, enterprise,op_host,op_server"
    assert limit_of(spaced, "bline", "current", "30", 100, load_network()) == pytest.approx(exact, abs=1e-4)
    for other in (("meander", "current", "30", 100), ("bline", "current", "31", 100), ("bline", "current", "30", 60)):
        assert limit_of(order, *other, load_network()) is None


def test_a_return_beyond_the_limit_of_its_order_is_called_broken() -> None:
    assert too_good(-30.0, 1.0, -33.0) == (
        "-30.00 is better than the exact limit of the order, -33.00: it was broken in some games."
    )
    assert too_good(-30.0, 2.0, -33.0) == ""
    assert too_good(-30.0, 1.0, None) == ""
