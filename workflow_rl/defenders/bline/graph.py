"""All games against B_line as one graph of keys (states.py), found and played through by the engine itself.

A step is two moves. Blue's leads from a state to the state that red finds, one of few, for most of the 145 actions do
nothing that matters. Red's leads to the next states, each with its chance; it is the engine's step in which blue
sleeps. Both kinds of states have keys of the same form, and often the same state is both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workflow_rl.defenders.bline.states import Reduction, coming_line, decode, encode, target_of
from workflow_rl.engine.bits import count, has, lowest, wide, word
from workflow_rl.engine.chance import ABSENT, Chance, mix
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.effects import act_blue
from workflow_rl.engine.network import FIRST_PROGRAM
from workflow_rl.engine.state import NOBODY, State, allocate, reset_one
from workflow_rl.engine.step import step_one
from workflow_rl.engine.tables import DRAW_RANGE, DRAWN, EXPLOIT, Tables
from workflow_rl.envs.memory import SLEEP

EMPTY = -1
NOT_MET, WAITING = -2, -1  # instead of the first move of a state: blue never has to move there; not yet looked at
UNKNOWN_STEPS = 2  # in which blue moves before red has drawn its user host
ROOM = 4096  # states, moves and outcomes that one state can add at most


class Graph(NamedTuple):
    """States 0 .. sizes[0] - 1 by key, with blue's moves and red's outcomes; arrays are longer than they are filled."""

    sizes: (
        np.ndarray
    )  # (6,) int64: states, moves, outcomes, length of the queue, irregular outcomes, states of two steps
    slots: np.ndarray  # (2**k,) int32: open hash table of the keys
    keys: np.ndarray  # (capacity,) int64
    queue: np.ndarray  # (capacity,) int32: states where blue has to move, by the step in which they can come first
    first_move: np.ndarray  # (capacity,) int64
    n_moves: np.ndarray  # (capacity,) uint8
    first_outcome: np.ndarray  # (capacity,) int64; EMPTY: red never has to move here
    n_outcomes: np.ndarray  # (capacity,) uint8
    reward: np.ndarray  # (capacity,) float64: expected, of red's move, in tenths
    after: np.ndarray  # (moves,) int32: the state that red finds
    action: np.ndarray  # (moves,) uint8
    price: np.ndarray  # (moves,) uint8: what the action costs, in tenths
    next: np.ndarray  # (outcomes,) int32
    chance: np.ndarray  # (outcomes,) float64


STATES, MOVES, OUTCOMES, QUEUED, IRREGULAR, EARLY = range(6)


@compiled
def slot_of(slots: np.ndarray, keys: np.ndarray, key: int) -> int:
    """Slot of ``key``, or the free slot where it belongs."""
    mask = slots.shape[0] - 1
    slot = wide(mix(word(key)) & word(mask))
    while slots[slot] != EMPTY and keys[slots[slot]] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def number_of(g: Graph, key: int) -> int:
    """The state with this key, a new one if there was none."""
    slot = slot_of(g.slots, g.keys, key)
    if g.slots[slot] == EMPTY:
        new = g.sizes[STATES]
        g.sizes[STATES] += 1
        g.slots[slot] = new
        g.keys[new], g.first_move[new], g.first_outcome[new] = key, NOT_MET, EMPTY
    return wide(g.slots[slot])


@compiled
def worth_trying(s: State, t: Tables, action: int) -> bool:
    """Can the action change anything that matters? Remove needs a traced session."""
    return t.restores[action] != 0 or t.places[action] != 0 or t.removes[action] & s.traced != 0


@compiled
def find_moves(x: int, g: Graph, t: Tables, r: Reduction, scratch: np.ndarray) -> None:
    """Blue's moves in state ``x``: the states that can be brought about, each by its cheapest action."""
    base, s = scratch[0], scratch[1]
    decode(g.keys[x], base, t, r)
    touched = r.touched[base.picked[0]]
    first = g.sizes[MOVES]
    g.first_move[x] = first
    for action in range(t.n_actions):
        if action != SLEEP and not (has(touched, wide(t.action_host[action])) and worth_trying(base, t, action)):
            continue
        scratch[1] = base
        act_blue(s, t, action)
        y = number_of(g, encode(s, t, r))
        price = t.price_restore if t.restores[action] else 0
        known = False
        for move in range(first, g.sizes[MOVES]):  # decoys come before Restore, so the first is the cheapest
            known = known or g.after[move] == y
        if not known:
            g.after[g.sizes[MOVES]], g.action[g.sizes[MOVES]], g.price[g.sizes[MOVES]] = y, action, price
            g.sizes[MOVES] += 1
    g.n_moves[x] = g.sizes[MOVES] - first


@compiled
def options_of(s: State, t: Tables) -> tuple[int, int]:
    """The user hosts and the exploits among which chance will choose in the next step, as sets; {0}: no choice."""
    line = coming_line(s, t)
    users = wide(t.line_from[line]) if t.line_target[line] == DRAWN and s.picked[0] == NOBODY else wide(1)
    exploits = wide(1)
    if t.line_action[line] == EXPLOIT:
        exploits = max(exploits, wide(t.options[s.ports[target_of(s, t, line)]]))
    return users, exploits


@compiled
def chance_of_exploit(t: Tables, exploits: int, exploit: int) -> float:
    """How likely red takes this one of its options."""
    others = count(exploits) - 1
    best = t.best_exploit / DRAW_RANGE
    if others == 0:
        return 1.0
    return best if exploit == lowest(exploits) else (1.0 - best) / others


@compiled
def find_outcomes(y: int, g: Graph, t: Tables, r: Reduction, scratch: np.ndarray) -> None:
    """What red's move can lead to from state ``y``."""
    base, s = scratch[0], scratch[1]
    decode(g.keys[y], base, t, r)
    users, exploits = options_of(base, t)
    g.first_outcome[y], g.reward[y] = g.sizes[OUTCOMES], 0.0
    for user in range(lowest(users), 64):
        for exploit in range(64):
            if not (has(users, user) and has(exploits, exploit)):
                continue
            for detected in (1, 0):
                scratch[1] = base
                reward = step_one(s, t, SLEEP, Chance(-1 - user, -1 - exploit, -1 - detected, -1 - ABSENT))
                chance = chance_of_exploit(t, exploits, exploit) / count(users)
                if s.detected >= 0:
                    sure = t.detected / DRAW_RANGE
                    chance *= sure if detected else 1.0 - sure
                g.sizes[IRREGULAR] += s.irregular
                g.reward[y] += chance * reward
                add_outcome(y, number_of(g, encode(s, t, r)), chance, g)
                if s.detected < 0:  # not drawn
                    break
    g.n_outcomes[y] = g.sizes[OUTCOMES] - g.first_outcome[y]


@compiled
def add_outcome(y: int, z: int, chance: float, g: Graph) -> None:
    """Red's move in ``y`` leads to ``z``; blue has to move there in the next step."""
    for outcome in range(g.first_outcome[y], g.sizes[OUTCOMES]):
        if g.next[outcome] == z:
            g.chance[outcome] += chance
            return
    g.next[g.sizes[OUTCOMES]], g.chance[g.sizes[OUTCOMES]] = z, chance
    g.sizes[OUTCOMES] += 1
    if g.first_move[z] == NOT_MET:
        g.first_move[z] = WAITING
        g.queue[g.sizes[QUEUED]] = z
        g.sizes[QUEUED] += 1


@compiled
def explore(g: Graph, tables: np.ndarray, r: Reduction, scratch: np.ndarray, first: int, last: int) -> int:
    """Goes on from the states ``first`` .. ``last`` - 1 of the queue; returns where it stopped for want of room."""
    t = tables[0]
    for place in range(first, last):
        if (
            g.sizes[STATES] + ROOM > g.keys.shape[0]
            or g.sizes[MOVES] + ROOM > g.after.shape[0]
            or g.sizes[OUTCOMES] + ROOM > g.next.shape[0]
        ):
            return place
        x = wide(g.queue[place])
        find_moves(x, g, t, r, scratch)
        for move in range(g.first_move[x], g.sizes[MOVES]):
            if g.first_outcome[g.after[move]] == EMPTY:
                find_outcomes(wide(g.after[move]), g, t, r, scratch)
    return last


@compiled
def _start(g: Graph, tables: np.ndarray, r: Reduction, scratch: np.ndarray) -> None:
    scratch[0].red = FIRST_PROGRAM
    reset_one(scratch[0], tables[0])
    start = number_of(g, encode(scratch[0], tables[0], r))
    g.first_move[start] = WAITING
    g.queue[0], g.sizes[QUEUED] = start, 1


@compiled
def _hash(slots: np.ndarray, keys: np.ndarray, n: int) -> None:
    for row in range(n):
        slots[slot_of(slots, keys, keys[row])] = row


def build(tables: np.ndarray, r: Reduction, horizon: int) -> Graph:
    """The graph of all games of up to ``horizon`` steps; state 0 is the start."""
    g, scratch = _allocate(1 << 16, 1 << 18, 1 << 17), allocate(2)
    _start(g, tables, r, scratch)
    first = 0
    for step in range(horizon):
        last = int(g.sizes[QUEUED])
        while (first := explore(g, tables, r, scratch, first, last)) < last:
            g = _grow(g)
        if step < UNKNOWN_STEPS:
            g.sizes[EARLY] = g.sizes[STATES]
    assert g.sizes[IRREGULAR] == 0
    return g


def asleep(g: Graph, steps: Sequence[int]) -> np.ndarray:
    """The chance of each state if blue has slept for a number of steps from the start; (len(steps), states)."""
    chances = np.zeros((len(steps), int(g.sizes[STATES])))
    now = np.zeros(chances.shape[1])
    now[0] = 1.0
    for step in range(max(steps, default=0) + 1):
        chances[[taken == step for taken in steps]] = now
        then = np.zeros_like(now)
        for x in np.flatnonzero(now):
            y = g.after[g.first_move[x]]  # of a state's moves the first is Sleep
            coming = slice(int(g.first_outcome[y]), int(g.first_outcome[y]) + int(g.n_outcomes[y]))
            np.add.at(then, g.next[coming], now[x] * g.chance[coming])
        now = then
    return chances


def _allocate(states: int, moves: int, outcomes: int) -> Graph:
    return Graph(
        np.zeros(6, np.int64), np.full(2 * states, EMPTY, np.int32), np.empty(states, np.int64),
        np.empty(states, np.int32), np.full(states, NOT_MET, np.int64), np.zeros(states, np.uint8),
        np.full(states, EMPTY, np.int64), np.zeros(states, np.uint8), np.zeros(states), np.empty(moves, np.int32),
        np.empty(moves, np.uint8), np.empty(moves, np.uint8), np.empty(outcomes, np.int32), np.empty(outcomes),
    )  # fmt: skip


def _grow(g: Graph) -> Graph:
    """The same graph with room for twice as much of what is scarce."""
    lengths = [
        2 * len(array) if size + ROOM > len(array) else len(array)
        for array, size in ((g.keys, g.sizes[STATES]), (g.after, g.sizes[MOVES]), (g.next, g.sizes[OUTCOMES]))
    ]
    larger = _allocate(*lengths)
    for old, new in zip(g, larger, strict=True):
        if old is not g.slots:
            new[: len(old)] = old
    _hash(larger.slots, larger.keys, int(g.sizes[STATES]))
    return larger
