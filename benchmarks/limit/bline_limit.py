"""The limit of defence against B_line: what a defender reaches that sees everything, exactly, for every horizon.

It knows the true state, what red remembers and will do next, and how many steps are left; it does not know the chance
to come, so red's user host not before red scans it. The rules do not depend on the time, so that one pass backwards
through the graph of all games (workflow_rl/defenders/bline) gives the best expected return for each number of steps to
go. The optimal policy is then played in the engine's own games, which must return what the pass said.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.defenders.bline.graph import (
    EARLY,
    EMPTY,
    STATES,
    UNKNOWN_STEPS,
    Graph,
    asleep,
    build,
    slot_of,
    worth_trying,
)
from workflow_rl.defenders.bline.orders import Repairs, due_by_held, find_repairs, free, orders_of
from workflow_rl.defenders.bline.states import Reduction, encode, reduction
from workflow_rl.defenders.bline.values import go_back
from workflow_rl.engine.bits import wide
from workflow_rl.engine.chance import sample, seed_one
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.effects import act_blue
from workflow_rl.engine.network import FIRST_PROGRAM, Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.state import State, allocate, compromised_hosts
from workflow_rl.engine.step import begin_one, step_one
from workflow_rl.engine.tables import Tables, compile_tables
from workflow_rl.envs.blue import cell_of
from workflow_rl.envs.takeover import takeover_rows
from workflow_rl.errors import UserError
from workflow_rl.training.compliance import NO_TYPE, due_type, type_masks

NOTHING_DUE = np.full(256, NO_TYPE, np.int8)  # by set of compromised types, where no order is kept
USERS = ("User1", "User2", "User3", "User4")
PURPOSE = 9  # of the games, for their seeds


class Solution(NamedTuple):
    """The graph and what is best in it."""

    graph: Graph
    reduction: Reduction
    tables: np.ndarray
    values: np.ndarray  # (horizon + 1, states kept) float64: return of the states, by the steps to go, in tenths
    choices: np.ndarray  # (horizon + 1, states) uint8: which of its moves
    starts: np.ndarray  # (takeovers, states) float64: the chance of each state when blue takes over
    expected: np.ndarray  # (horizon + 1, takeovers) float64: return from there


def solve(
    tables: np.ndarray, network: Network, horizon: int, keep_all: bool = False, takeovers: Sequence[int] = ()
) -> Solution:
    """The best play for every number of steps to go; values are kept of the states of the first steps, or of all.

    With ``takeovers`` the graph covers that many more steps, in which blue sleeps at first.
    """
    r = reduction(tables, network)
    graph = build(tables, r, horizon + max(takeovers, default=0))
    empty = np.zeros((horizon + 1, 0))
    room = Solution(graph, r, tables, empty, empty, asleep(graph, takeovers), empty)
    return _best_play(room, horizon, keep_all, free(graph), NOTHING_DUE)


def in_order(free_play: Solution, network: Network, repairs: Repairs, order: np.ndarray) -> Solution:
    """The best play that keeps an order (unit types as numbers, highest priority first), in the same graph."""
    keep_all = free_play.values.shape[1] == int(free_play.graph.sizes[STATES])
    due = due_by_held(order, len(network.unit_types))
    return _best_play(free_play, len(free_play.choices) - 1, keep_all, repairs, due)


def _best_play(room: Solution, horizon: int, keep_all: bool, repairs: Repairs, due: np.ndarray) -> Solution:
    """The best play in the graph and from the starts of ``room``."""
    graph, starts = room.graph, room.starts
    n = int(graph.sizes[STATES])
    value, after = np.zeros(n), np.zeros(n)
    choices = np.zeros((horizon + 1, n), np.uint8)
    values = np.zeros((horizon + 1, n if keep_all else int(graph.sizes[EARLY])))
    expected = np.zeros((horizon + 1, len(starts)))
    for h in range(1, horizon + 1):
        go_back(graph, repairs, due, value, after, choices[h])
        values[h], expected[h] = value[: values.shape[1]], starts @ value
    return room._replace(values=values, choices=choices, expected=expected)


@compiled
def best_action(s: State, t: Tables, g: Graph, r: Reduction, choice: np.ndarray, trial: np.ndarray) -> int:
    """The optimal action in a state of a real game; EMPTY: the graph does not have the state.

    The graph's own action may be meant for another decoy that is as good; then the action is taken that leads to where
    it leads.
    """
    x = g.slots[slot_of(g.slots, g.keys, encode(s, t, r))]
    if x == EMPTY or g.first_move[x] < 0:
        return EMPTY
    move = g.first_move[x] + choice[x]
    wanted, action = g.keys[g.after[move]], wide(g.action[move])
    other = -1
    while True:
        trial[0] = s
        act_blue(trial[0], t, action)
        if encode(trial[0], t, r) == wanted:
            return action
        other += 1
        while other < t.n_actions and not (t.places[other] and worth_trying(s, t, other)):
            other += 1
        if other >= t.n_actions:
            return EMPTY
        action = other


@compiled
def play(
    seeds: np.ndarray, tables: np.ndarray, g: Graph, r: Reduction, choices: np.ndarray, order: np.ndarray,
    masks: np.ndarray, takeover: np.ndarray, scratch: np.ndarray, returns: np.ndarray, opening: np.ndarray,
    repairs: np.ndarray,
) -> int:  # fmt: skip
    """Plays a game of each seed with sampled chance, as many steps as ``choices`` has rows after the first.

    ``takeover`` is that of :func:`~workflow_rl.engine.step.begin_one`.

    Returns the number of games played: all, unless one leaves the graph. ``opening`` has the first actions of the last
    game; in the challenge they are the same in all. ``repairs`` (2,) counts repairs and violations of the order, by the
    true states.
    """
    s, t = scratch[0], tables[0]
    for i in range(seeds.shape[0]):
        s.red = FIRST_PROGRAM
        seed_one(s, seeds[i])
        begin_one(s, t, takeover)
        total = 0
        for h in range(choices.shape[0] - 1, 0, -1):
            action = best_action(s, t, g, r, choices[h], scratch[1:])
            if action == EMPTY:
                return i
            if s.step < opening.shape[0]:
                opening[s.step] = action
            scratch[1] = s
            act_blue(scratch[1], t, action)
            before = compromised_hosts(s, t)
            gone = before & ~compromised_hosts(scratch[1], t)
            if gone:
                repairs[0] += 1
                repairs[1] += gone & masks[due_type(order, masks, before)] == 0
            total += step_one(s, t, action, sample(s))
        returns[i] = total / 10
    return seeds.shape[0]


class Simulated(NamedTuple):
    """Games of an optimal policy."""

    returns: np.ndarray  # (games,)
    opening: np.ndarray  # (UNKNOWN_STEPS,): its first actions
    repairs: int
    violations: int  # of the order by which the repairs were judged


def simulate(
    solution: Solution,
    network: Network,
    n_steps: int,
    games: int,
    seed: int,
    order: np.ndarray | None = None,
    takeover: int = 0,
) -> Simulated:
    """Plays the optimal policy in games of ``n_steps``; repairs are judged by the order (default: of the scenario)."""
    seeds = np.random.SeedSequence([seed, PURPOSE, n_steps]).generate_state(games, np.uint64)
    returns, opening, repairs = np.empty(games), np.zeros(UNKNOWN_STEPS, np.int64), np.zeros(2, np.int64)
    order = np.arange(len(network.unit_types)) if order is None else order
    played = play(
        seeds, solution.tables, solution.graph, solution.reduction, solution.choices[: n_steps + 1], order,
        type_masks(network), takeover_rows(takeover, 1)[0], allocate(2), returns, opening, repairs,
    )  # fmt: skip
    assert played == games
    return Simulated(returns, opening, int(repairs[0]), int(repairs[1]))


def reached_by_user(solution: Solution, horizon: int) -> list[float]:
    """What the best play reaches for each user host, in their order; it is the same play until red draws the host."""
    g, x, spent = solution.graph, 0, 0.0
    for h in range(horizon, horizon - UNKNOWN_STEPS, -1):
        move = int(g.first_move[x]) + int(solution.choices[h, x])
        y = int(g.after[move])
        spent += float(g.reward[y]) - float(g.price[move])
        coming = g.next[g.first_outcome[y] : g.first_outcome[y] + int(g.n_outcomes[y])]  # at last one for each host
        x = int(coming[0])
    reached: list[float] = ((spent + solution.values[horizon - UNKNOWN_STEPS, coming]) / 10).tolist()
    return reached


def bline_limit(
    edition: str = "current",
    horizon: int = max(CHALLENGE_LENGTHS),
    users: Sequence[str] = USERS,
    games: int = 20_000,
    seed: int = 0,
    lengths: Sequence[int] = CHALLENGE_LENGTHS,
    takeovers: Sequence[int] = (),
) -> dict[str, Any]:
    """The exact limit of defence against B_line for each horizon up to ``horizon``, and games that confirm it.

    Args:
        edition: the rules.
        horizon: the largest number of steps.
        users: the hosts from which red draws its user host; fewer than all is another, quicker question.
        games: how many confirm each length.
        seed: of these games.
        lengths: those confirmed, as far as the horizon allows; if none, the horizon itself.
        takeovers: the numbers of steps that red plays first, for the same values in incidents.

    Returns:
        ``values`` for 1 .. horizon steps; ``by_user``: what the best play reaches for each user host; ``confirmed``:
        the mean of the games and the exact value, and how the best play begins; ``orders``: the same for the best
        play that keeps each order of the types that red takes; ``cost_of_the_worst_order``; ``incidents``: ``free``
        and ``orders`` for each takeover; ``states``, ``seconds``.
    """
    began = time.perf_counter()
    if horizon <= UNKNOWN_STEPS:
        raise UserError(f"the horizon must be more than {UNKNOWN_STEPS} steps, not {horizon}.")
    network = load_network()
    tables, hosts = _tables(network, edition, set(users))
    solution = solve(tables, network, horizon, takeovers=takeovers)
    values = (solution.values[1:, 0] / 10).tolist()
    lengths = [length for length in lengths if length <= horizon] or [horizon]
    orders, incidents = _orders(solution, network, lengths, takeovers, games, seed)
    return {
        "edition": edition,
        "horizon": horizon,
        "values": values,
        "states": int(solution.graph.sizes[STATES]),
        "by_user": {str(n): dict(zip(hosts, reached_by_user(solution, n), strict=True)) for n in lengths},
        "confirmed": {str(n): _confirm(solution, network, n, games, seed, values[n - 1]) for n in lengths},
        "orders": orders,
        "cost_of_the_worst_order": {
            str(n): values[n - 1] - min(cells[str(n)]["exact"] for cells in orders.values()) for n in lengths
        },
        "incidents": incidents,
        "seconds": time.perf_counter() - began,
    }


def _tables(network: Network, edition: str, users: set[str]) -> tuple[np.ndarray, list[str]]:
    """The rules with red drawing its user host from ``users`` only, and these hosts in the order of the network."""
    allowed = network.red.programs["bline"].users
    if not users or users - set(allowed):
        raise UserError(f"the user hosts must be some of {', '.join(allowed)}, not {', '.join(sorted(users))}.")
    tables = compile_tables(network, edition)
    drawn = tables[0]["line_from"] != 0
    tables[0]["line_from"][drawn] = sum(1 << network.host_names.index(user) for user in users)
    return tables, sorted(users, key=network.host_names.index)


def _orders(
    free_play: Solution, network: Network, lengths: Sequence[int], takeovers: Sequence[int], games: int, seed: int
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """The exact worth of keeping each order of the types that red takes, at each length, and games that show it.

    Returns that of the challenge by order, and that of incidents by takeover, each with free play.
    """
    repairs = find_repairs(free_play.graph, free_play.tables, free_play.reduction, network)
    found: dict[str, dict[str, Any]] = {}
    incidents: dict[str, dict[str, Any]] = {str(steps): {"free": {}, "orders": {}} for steps in takeovers}

    def play(solution: Solution, order: np.ndarray | None, number: int | None) -> dict[str, Any]:
        after = 0 if number is None else takeovers[number]
        exact = (solution.values[:, 0] if number is None else solution.expected[:, number]) / 10
        return {str(n): _confirm(solution, network, n, games, seed, float(exact[n]), order, after) for n in lengths}

    for number, steps in enumerate(takeovers):
        incidents[str(steps)]["free"] = play(free_play, None, number)
    for name, order in orders_of(free_play.reduction, network).items():
        solution = in_order(free_play, network, repairs, order)
        found[name] = play(solution, order, None)
        for number, steps in enumerate(takeovers):
            incidents[str(steps)]["orders"][name] = play(solution, order, number)
    return found, incidents


def _confirm(
    solution: Solution, network: Network, length: int, games: int, seed: int, exact: float,
    order: np.ndarray | None = None, takeover: int = 0,
) -> dict[str, Any]:  # fmt: skip
    returns, opening, repairs, violations = simulate(solution, network, length, games, seed, order, takeover)
    cell = cell_of(returns)
    kept = {"repairs_per_game": repairs / games, "violations": violations} if order is not None else {}
    return kept | {
        "mean": cell.mean,
        "standard_error": cell.standard_error,
        "exact": exact,
        "difference_in_standard_errors": (cell.mean - exact) / cell.standard_error,
        "games": games,
        "opening": [" ".join(network.action_parts(action)).strip() for action in opening.tolist()],
    }
