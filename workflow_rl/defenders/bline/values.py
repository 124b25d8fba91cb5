"""The worth of every state of the games against B_line, for a defender that sees everything and keeps an order.

One pass backwards through the graph gives the best returns for one more step to go. After enough passes the values grow
by the same amount in each; the difference between the best move and another one, its *regret*, then no longer depends
on the number of steps to go.
"""

from __future__ import annotations

import numpy as np

from workflow_rl.defenders.bline.graph import EMPTY, STATES, Graph
from workflow_rl.defenders.bline.orders import Repairs, World, due_by_held
from workflow_rl.engine.compiled import compiled
from workflow_rl.training.compliance import NO_TYPE

TIE = 1e-9  # tenths by which an action must be better than one that comes before it
PASSES = 60  # backwards, until regrets no longer change


@compiled
def go_back(
    g: Graph, repairs: Repairs, due: np.ndarray, value: np.ndarray, after: np.ndarray, choice: np.ndarray
) -> None:
    """From the best returns with h steps to go (states,) to those with h + 1, and the moves that lead to them.

    Moves that repair another type than the one that is ``due`` (by the set of compromised types) are not allowed.
    """
    for y in range(g.sizes[STATES]):
        if g.first_outcome[y] != EMPTY:
            total = g.reward[y]
            for k in range(g.first_outcome[y], g.first_outcome[y] + g.n_outcomes[y]):
                total += g.chance[k] * value[g.next[k]]
            after[y] = total
    for x in range(g.sizes[STATES]):
        if g.first_move[x] >= 0:
            best, chosen = -np.inf, 0
            for k in range(g.n_moves[x]):
                move = g.first_move[x] + k
                this = after[g.after[move]] - g.price[move]
                allowed = repairs.repaired[move] == NO_TYPE or repairs.repaired[move] == due[repairs.held[x]]
                if allowed and this > best + TIE:
                    best, chosen = this, k
            value[x], choice[x] = best, chosen


def steady_values(world: World, order: np.ndarray, passes: int = PASSES) -> tuple[np.ndarray, np.ndarray]:
    """Values of blue's states and of red's, (states,) in tenths, where violations of the order are not allowed.

    An empty ``order`` allows everything. The regret of a move from state x to state y is value[x] + price - after[y].
    """
    n = int(world.graph.sizes[STATES])
    value, after, choice = np.zeros(n), np.zeros(n), np.zeros(n, np.uint8)
    n_types = len(world.masks)
    due = due_by_held(order, n_types) if len(order) else np.full(1 << n_types, NO_TYPE, np.int8)
    repairs = world.repairs
    if not len(order):
        repairs = Repairs(repairs.held, np.full(len(repairs.repaired), NO_TYPE, np.int8))
    for _ in range(passes):
        go_back(world.graph, repairs, due, value, after, choice)
    return value, after
