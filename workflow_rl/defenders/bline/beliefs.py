"""What blue can know in a game against B_line: beliefs, the moves in them, and where these lead.

A *belief* is the distribution of the true state, given everything that blue did and saw. It is exact: the engine plays
each of its states on with every outcome of chance, and outcomes that look alike to blue form the next belief. Beliefs
have few states, most of them one or two, and the same beliefs come again and again, so that they can be numbered. A
move costs its expected *regret* (values.py), in tenths, and a price for each violation of an order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workflow_rl.defenders.bline.graph import EMPTY, chance_of_exploit, options_of, slot_of
from workflow_rl.defenders.bline.orders import World
from workflow_rl.defenders.bline.states import coming_line, encode
from workflow_rl.engine.bits import count, has, lowest, wide, word
from workflow_rl.engine.chance import ABSENT, Chance, mix
from workflow_rl.engine.compiled import compiled, compiled_once
from workflow_rl.engine.effects import act_blue
from workflow_rl.engine.network import FIRST_PROGRAM
from workflow_rl.engine.observe import BELIEF_NO
from workflow_rl.engine.state import NOBODY, State, allocate, compromised_hosts, state_dtype
from workflow_rl.engine.step import step_one
from workflow_rl.engine.tables import DRAW_RANGE
from workflow_rl.envs.memory import (
    EXPLOIT,
    N_HOSTS,
    seen_activity,
)
from workflow_rl.training.compliance import due_type

SHARES = 1024  # probabilities are rounded to so many parts of 1
MOST = 8192  # outcomes of a move that are looked at
MOST_ACTIONS = 3 * N_HOSTS + 1
N_SIGHTS = 2 * N_HOSTS + 1  # what blue sees of a step: nothing, or a scan or an exploit of a host
UNEXPANDED = -1
NODES, SHARED, MOVES, EDGES, STATES = range(5)


class Beliefs(NamedTuple):
    """Beliefs 0 .. sizes[NODES] - 1 with their moves; arrays are longer than they are filled."""

    sizes: np.ndarray  # (5,) int64: beliefs, their states, moves, edges, distinct states
    states: np.ndarray  # (states,) of state_dtype
    state_slots: np.ndarray  # (2**k,) int32: open hash table of the states
    state_marks: np.ndarray  # (states,) uint64
    state_values: np.ndarray  # (states,) float64: for a defender that sees everything
    slots: np.ndarray  # (2**k,) int32: open hash table of the beliefs
    marks: np.ndarray  # (nodes,) uint64
    first: np.ndarray  # (nodes,) int64
    width: np.ndarray  # (nodes,) int32
    member: np.ndarray  # (shared,) int32: states of a belief ...
    share: np.ndarray  # (shared,) int16: ... and their probabilities
    first_move: np.ndarray  # (nodes,) int64
    n_moves: np.ndarray  # (nodes,) int16
    action: np.ndarray  # (moves,) int16
    cost: np.ndarray  # (moves,) float32
    first_edge: np.ndarray  # (moves,) int64
    n_edges: np.ndarray  # (moves,) int16
    child: np.ndarray  # (edges,) int32
    chance: np.ndarray  # (edges,) float32
    sight: np.ndarray  # (edges,) int8
    value: np.ndarray  # (nodes,) float32: expected regrets to come, discounted; never more than the truth if 0 at first
    other_slots: np.ndarray  # (2**k,) int64: further moves, by belief and action
    other_moves: np.ndarray  # (2**k,) int64


class Task(NamedTuple):
    """What the moves are judged by."""

    world: World
    value: np.ndarray  # see steady_values
    after: np.ndarray
    order: np.ndarray  # unit types, highest priority first; may be empty
    price: float  # of a violation, in tenths
    spoils: int  # hosts on which a Restore can pay even if red is not there, as a set
    discount: float


class Room(NamedTuple):
    """Space for the work on one move."""

    states: np.ndarray  # (3,) of state_dtype
    sights: np.ndarray  # (MOST,) int64
    members: np.ndarray  # (MOST,) int64
    chances: np.ndarray  # (MOST,) float64
    actions: np.ndarray  # (MOST_ACTIONS,) int64


def make_room() -> Room:
    """Empty space."""
    sights, members, actions = (np.zeros(n, np.int64) for n in (MOST, MOST, MOST_ACTIONS))
    return Room(allocate(3), sights, members, np.zeros(MOST), actions)


def make_beliefs(scale: int = 1, first_value: float = 0.0) -> Beliefs:
    """No beliefs yet, with room for some hundred thousand times ``scale``."""
    nodes, states, shared, moves, edges = (scale << bits for bits in (19, 18, 21, 21, 22))
    return Beliefs(
        np.zeros(5, np.int64), np.zeros(states, state_dtype()), np.full(2 * states, EMPTY, np.int32),
        np.zeros(states, np.uint64), np.zeros(states), np.full(2 * nodes, EMPTY, np.int32), np.zeros(nodes, np.uint64),
        np.zeros(nodes, np.int64), np.zeros(nodes, np.int32), np.zeros(shared, np.int32), np.zeros(shared, np.int16),
        np.full(nodes, UNEXPANDED, np.int64), np.zeros(nodes, np.int16), np.zeros(moves, np.int16),
        np.zeros(moves, np.float32), np.zeros(moves, np.int64), np.zeros(moves, np.int16), np.zeros(edges, np.int32),
        np.zeros(edges, np.float32), np.zeros(edges, np.int8), np.full(nodes, first_value, np.float32),
        np.full(moves, EMPTY, np.int64), np.zeros(moves, np.int64),
    )  # fmt: skip


@compiled
def full(b: Beliefs) -> bool:
    """Is there too little room for another belief and all its moves?"""
    return bool(
        b.sizes[NODES] + 1024 > b.marks.shape[0]
        or b.sizes[SHARED] + (1 << 17) > b.member.shape[0]
        or 2 * b.sizes[MOVES] + 1024 > b.action.shape[0]
        or b.sizes[EDGES] + 1024 > b.child.shape[0]
        or b.sizes[STATES] + 4096 > b.states.shape[0]
    )


@compiled
def strip(s: State, task: Task, keep_observation: bool) -> None:
    """Removes from a state what can affect neither the games that follow nor what blue will see of them."""
    t, r = task.world.tables[0], task.world.reduction
    line = coming_line(s, t)
    done = 1 if line == r.guard or has(s.lines_done, r.guard) else 0
    touched = r.touched[s.picked[0]]
    picked, privileged, traced, untraced = s.picked[0], s.privileged, s.traced, s.untraced
    down, restored, seen = s.service_down, s.restored & r.spoiled, s.observation[0]
    for host in range(N_HOSTS):
        if not has(touched, host):
            s.decoys[host], s.ports[host] = 0, 0
    for i in range(r.hosts.shape[0]):
        if r.forgotten[line, done, i]:
            s.ports[r.hosts[i]] = 0
    s.rng, s.step, s.malware = 0, 0, 0
    s.observation[0] = seen if keep_observation else BELIEF_NO
    s.privileged, s.traced, s.untraced, s.restored, s.service_down = privileged, traced, untraced, restored, down
    s.line, s.red_success, s.scan_empty = r.origin[line, 0], r.origin[line, 1], 0
    s.lines_done = 1 << r.guard if done else 0
    s.picked[0], s.red, s.green_acts = picked, FIRST_PROGRAM, 0
    s.addresses, s.subnets = -1, -1  # B_line knows each place when it comes to its line
    s.names, s.scanned, s.exploited, s.escalated, s.mapped, s.swept = 0, 0, 0, 0, 0, 0
    s.red_action, s.red_target, s.exploit, s.exploit_result, s.detected = 0, NOBODY, 0, 0, 0
    s.candidates, s.irregular, s.repaired = 0, 0, 0


@compiled
def mark_of(s: State) -> Any:
    """A number by which stripped states are told apart."""
    mark = mix(word(s.observation[0]))
    sets = wide(s.privileged) & 0xFFFF | (wide(s.traced) & 0xFFFF) << 16 | (wide(s.untraced) & 0xFFFF) << 32
    mark = mix(mark ^ word(sets | (wide(s.restored) & 0xFFFF) << 48))
    rest = wide(s.line) | wide(s.red_success) << 8 | wide(s.service_down) << 12 | (wide(s.picked[0]) + 1) << 16
    mark = mix(mark ^ word(rest | wide(1 if s.lines_done else 0) << 24))
    for host in range(N_HOSTS):
        mark = mix(mark ^ word(wide(s.decoys[host]) & 0xFFFF | (wide(s.ports[host]) & 0xFFFF) << 16))
    return mark


@compiled_once
def state_number(b: Beliefs, task: Task, s: State) -> int:
    """The number of a stripped state, a new one if it was not met before."""
    mark, last = mark_of(s), b.state_slots.shape[0] - 1
    slot = wide(mark & word(last))
    while b.state_slots[slot] != EMPTY and b.state_marks[b.state_slots[slot]] != mark:
        slot = (slot + 1) & last
    if b.state_slots[slot] == EMPTY:
        new = b.sizes[STATES]
        b.sizes[STATES] += 1
        b.state_slots[slot], b.state_marks[new], b.states[new] = new, mark, s
        b.state_values[new] = task.value[graph_state(task, s)]
    found: int = wide(b.state_slots[slot])
    return found


@compiled
def graph_state(task: Task, s: State) -> int:
    """The number of a state in the graph of all games; of one that is not there, a large number that fails."""
    g = task.world.graph
    x = wide(g.slots[slot_of(g.slots, g.keys, encode(s, task.world.tables[0], task.world.reduction))])
    assert x != EMPTY
    found: int = x
    return found


@compiled
def sight_of(observation: int) -> int:
    """What blue sees of a step, 0 .. N_SIGHTS - 1; only red is active."""
    host, activity = seen_activity(observation)
    return 0 if host < 0 else 1 + 2 * host + (1 if activity == EXPLOIT else 0)


@compiled_once
def regret(b: Beliefs, task: Task, member: int, action: int, room: Room) -> float:
    """What an action loses in a state, in tenths: less than the best play can reach, or a violation."""
    t, s = task.world.tables[0], room.states[1]
    room.states[1] = b.states[member]
    before = compromised_hosts(s, t)
    act_blue(s, t, action)
    gone = before & ~compromised_hosts(s, t)
    price = t.price_restore if t.restores[action] else 0
    lost: float = b.state_values[member] + price - task.after[graph_state(task, s)]
    if gone and task.order.shape[0]:
        due = due_type(task.order, task.world.masks, before)
        lost += 0.0 if gone & task.world.masks[due] else task.price
    return lost


@compiled_once
def play_on(b: Beliefs, task: Task, member: int, action: int, at: int, keep: bool, room: Room) -> int:
    """Writes what can follow an action in a state, from place ``at`` of the room on; returns where that ends."""
    t, base, s = task.world.tables[0], room.states[0], room.states[1]
    room.states[0] = b.states[member]
    users, exploits = options_of(base, t)
    for user in range(lowest(users), N_HOSTS):
        for exploit in range(t.outcome.shape[1]):
            if not (has(users, user) and has(exploits, exploit)):
                continue
            for detected in (1, 0):
                room.states[1] = base
                step_one(s, t, action, Chance(-1 - user, -1 - exploit, -1 - detected, -1 - ABSENT))
                chance = chance_of_exploit(t, exploits, exploit) / count(users)
                drawn = s.detected >= 0
                if drawn:
                    sure = t.detected / DRAW_RANGE
                    chance *= sure if detected else 1.0 - sure
                room.sights[at] = sight_of(s.observation[0])
                strip(s, task, keep)
                room.members[at], room.chances[at] = state_number(b, task, s), chance
                at += 1
                if not drawn:
                    break
    return at


@compiled_once
def belief_number(b: Beliefs, members: np.ndarray, chances: np.ndarray) -> int:
    """The number of a belief from distinct states and their probabilities, a new one if it was not met before."""
    mark, n = word(0), 0
    in_order = np.argsort(members)
    shares = np.empty(members.shape[0], np.int64)
    for k in in_order:
        shares[k] = int(chances[k] * SHARES + 0.5)
        if shares[k]:
            mark = mix(mark ^ word(members[k] * 2 * SHARES + shares[k]))
            n += 1
    last = b.slots.shape[0] - 1
    slot = wide(mark & word(last))
    while b.slots[slot] != EMPTY and b.marks[b.slots[slot]] != mark:
        slot = (slot + 1) & last
    if b.slots[slot] == EMPTY:
        new = b.sizes[NODES]
        b.sizes[NODES] += 1
        b.slots[slot], b.marks[new], b.first[new], b.width[new] = new, mark, b.sizes[SHARED], n
        for k in in_order:
            if shares[k]:
                b.member[b.sizes[SHARED]], b.share[b.sizes[SHARED]] = members[k], shares[k]
                b.sizes[SHARED] += 1
    found: int = wide(b.slots[slot])
    return found
