"""Which of blue's moves break an order of repair, in the graph of all games against B_line.

A *repair* is a Remove or Restore that ended red's presence: its target was compromised before the step and is not after
blue's action. It is a *violation* if the unit type of its target is not the one of highest priority among the
compromised types. The reductions of states.py stay exact when violations are not allowed, for a key holds red's
level on every host that it can ever take:

* which types are compromised is a function of the key before blue's move;
* which host a move repaired is a function of the keys before and after it, so two actions that lead from one state to
  the same next one are both violations or neither, and may still stand for each other;
* actions that the graph leaves out (on hosts that red never takes, or Remove where it finds nothing) repair nothing.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from workflow_rl.defenders.bline.graph import MOVES, STATES, Graph, build
from workflow_rl.defenders.bline.states import Reduction, decode, reduction
from workflow_rl.engine.bits import has
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import Network
from workflow_rl.engine.state import allocate, compromised_hosts
from workflow_rl.engine.tables import compile_tables
from workflow_rl.training.compliance import NO_TYPE, due_type, type_masks


class Repairs(NamedTuple):
    """What an order needs to know about a graph."""

    held: np.ndarray  # (states,) uint8: set of unit types that are compromised before blue's move
    repaired: np.ndarray  # (moves,) int8: unit type that the move repairs, or NO_TYPE


@compiled
def _find(g: Graph, tables: np.ndarray, r: Reduction, masks: np.ndarray, scratch: np.ndarray, found: Repairs) -> None:
    t = tables[0]
    for x in range(g.sizes[STATES]):
        if g.first_move[x] < 0:
            continue
        decode(g.keys[x], scratch[0], t, r)
        before = compromised_hosts(scratch[0], t)
        for kind in range(masks.shape[0]):
            if before & masks[kind]:
                found.held[x] |= 1 << kind
        for move in range(g.first_move[x], g.first_move[x] + g.n_moves[x]):
            decode(g.keys[g.after[move]], scratch[1], t, r)
            gone = before & ~compromised_hosts(scratch[1], t)
            for kind in range(masks.shape[0]):
                if gone & masks[kind]:
                    found.repaired[move] = kind


def find_repairs(g: Graph, tables: np.ndarray, r: Reduction, network: Network) -> Repairs:
    """The compromised types of every state, and what every move repairs."""
    n, moves = int(g.sizes[STATES]), int(g.sizes[MOVES])
    found = Repairs(np.zeros(n, np.uint8), np.full(moves, NO_TYPE, np.int8))
    _find(g, tables, r, type_masks(network), allocate(2), found)
    return found


class World(NamedTuple):
    """All games against B_line under the rules of one edition."""

    tables: np.ndarray
    reduction: Reduction
    graph: Graph
    repairs: Repairs
    masks: np.ndarray  # hosts of each unit type
    leaderboard: bool


def all_games(network: Network, edition: str, horizon: int) -> World:
    """The graph of all games of up to ``horizon`` steps, which takes seconds to build."""
    tables = compile_tables(network, edition)
    reduced = reduction(tables, network)
    graph = build(tables, reduced, horizon)
    repairs = find_repairs(graph, tables, reduced, network)
    return World(tables, reduced, graph, repairs, type_masks(network), edition == "leaderboard")


def free(g: Graph) -> Repairs:
    """Nothing counts as a repair: every move is allowed."""
    return Repairs(np.zeros(int(g.sizes[STATES]), np.uint8), np.full(int(g.sizes[MOVES]), NO_TYPE, np.int8))


def due_by_held(order: np.ndarray, n_types: int) -> np.ndarray:
    """The type that is due for each set of compromised types, NO_TYPE for none; (2**n_types,) int8.

    >>> due_by_held(np.array([2, 0]), 3).tolist()
    [-1, 0, -1, 0, 2, 2, 2, 2]
    """
    single = 1 << np.arange(n_types)
    return np.array([due_type(order, single, held) for held in range(1 << n_types)], np.int8)


def orders_of(r: Reduction, network: Network) -> dict[str, np.ndarray]:
    """All orders of the unit types that red ever takes: names, and types as numbers."""
    masks = type_masks(network)
    taken = [kind for kind in range(len(masks)) if any(has(int(masks[kind]), int(host)) for host in r.hosts)]
    return {",".join(network.unit_types[kind] for kind in order): np.array(order) for order in permutations(taken)}
