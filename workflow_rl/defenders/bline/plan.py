"""The best play against B_line for a defender that sees only what blue sees, found by real-time dynamic programming.

Games are played from belief to belief. In each belief the move with the least expected regret is taken; beliefs that
were never met count as cheap, so the search goes there until it knows better. After each game the values of its beliefs
are computed again, last one first. With first values of 0 a value is never more than the least regret that any play can
reach (its lower bound); with larger ones, close to what a step usually costs, the search needs fewer games.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from workflow_rl.defenders.bline.beliefs import (
    UNEXPANDED,
    Beliefs,
    Room,
    Task,
    belief_number,
    full,
    make_beliefs,
    make_room,
    play_on,
    state_number,
    strip,
)
from workflow_rl.defenders.bline.moves import best_move, expand, move_with
from workflow_rl.defenders.bline.orders import World
from workflow_rl.defenders.bline.values import steady_values
from workflow_rl.defenders.expert import advice
from workflow_rl.engine.bits import wide, word
from workflow_rl.engine.chance import mix
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import FIRST_PROGRAM
from workflow_rl.engine.state import reset_one
from workflow_rl.envs.memory import B_LINE, MEMORY_DTYPE, SLEEP
from workflow_rl.envs.views import begin_some, remember_all

GOLDEN, SCALE = 0x9E3779B97F4A7C15, 2.0**-53
RARE = 1e-7  # first observations that are less likely are left out
LENGTH = 100  # steps of a game


class Starts(NamedTuple):
    """The beliefs with which blue takes over, by its first observation."""

    observations: np.ndarray  # (n,) int64
    nodes: np.ndarray  # (n,) int64
    chances: np.ndarray  # (n,)


class Plan(NamedTuple):
    """Beliefs with values, and where games begin."""

    task: Task
    beliefs: Beliefs
    room: Room
    starts: Starts
    roots: np.ndarray  # (n,) int64: the beliefs in which blue knows its opponent for the first time
    chances: np.ndarray  # (n,)


def make_task(world: World, order: np.ndarray, price: float, discount: float) -> Task:
    """The task to keep an order (unit types as numbers; empty: none) where a violation costs ``price`` points."""
    value, after = steady_values(world, order)
    row = world.tables[0]
    spoils = world.reduction.spoiled & ~(1 << int(row["foothold"]))
    return Task(world, value, after, np.asarray(order, np.int64), 10.0 * price, int(spoils), discount)


@compiled
def _start_state(b: Beliefs, task: Task, room: Room) -> int:
    s = room.states[1]
    s.red, s.green_acts = FIRST_PROGRAM, 0
    reset_one(s, task.world.tables[0])
    strip(s, task, True)
    return state_number(b, task, s)


@compiled
def _forget_observation(b: Beliefs, task: Task, member: int, room: Room) -> int:
    room.states[1] = b.states[member]
    strip(room.states[1], task, False)
    return state_number(b, task, room.states[1])


def find_starts(b: Beliefs, task: Task, room: Room, takeovers: Mapping[int, float]) -> Starts:
    """Beliefs after red has played alone for a number of steps, with the chance of each number."""
    now = {_start_state(b, task, room): 1.0}
    groups: dict[int, dict[int, float]] = {}
    for step in range(max(takeovers) + 1):
        if step in takeovers:
            for member, chance in now.items():
                group = groups.setdefault(int(b.states[member]["observation"][0]), {})
                plain = _forget_observation(b, task, member, room)
                group[plain] = group.get(plain, 0.0) + chance * takeovers[step]
        then: dict[int, float] = {}
        for member, chance in now.items():
            for i in range(play_on(b, task, member, SLEEP, 0, True, room)):
                other = int(room.members[i])
                then[other] = then.get(other, 0.0) + chance * float(room.chances[i])
        now = then
    found = []
    for seen, group in sorted(groups.items()):
        total = sum(group.values())
        if total > RARE:
            members, chances = np.array(list(group)), np.array(list(group.values())) / total
            found.append((seen, belief_number(b, members, chances), total))
    seen_first, nodes, likely = zip(*found, strict=True)
    return Starts(np.array(seen_first), np.array(nodes), np.array(likely))


def find_roots(b: Beliefs, task: Task, room: Room, starts: Starts) -> tuple[np.ndarray, np.ndarray]:
    """The beliefs after the expert's opening, in which it knows the opponent for the first time, with their chances."""
    todo = []
    for seen, node, chance in zip(*starts, strict=True):
        memory = np.zeros(1, MEMORY_DTYPE)
        begin_some(memory, np.array([seen]), np.ones(1, bool))
        todo.append((memory, int(node), float(chance)))
    roots: dict[int, float] = {}
    while todo:
        memory, node, chance = todo.pop()
        if memory[0]["foe"] == B_LINE:
            roots[node] = roots.get(node, 0.0) + chance
            continue
        expand(b, task, node, room)
        action = int(advice(memory, task.world.leaderboard, task.order)[0][0])
        move = move_with(b, task, node, action, room)
        for edge in range(int(b.first_edge[move]), int(b.first_edge[move]) + int(b.n_edges[move])):
            then = memory.copy()
            remember_all(then, np.array([action]), np.array([_observation(int(b.sight[edge]))]))
            todo.append((then, int(b.child[edge]), chance * float(b.chance[edge])))
    return np.array(list(roots)), np.array(list(roots.values()))


def _observation(sight: int) -> int:
    """An observation in which this is seen and nothing is remembered."""
    return 0 if sight == 0 else (3 if (sight - 1) % 2 else 1) << 4 * ((sight - 1) // 2)


@compiled
def pick(chances: np.ndarray, first: int, n: int, u: float) -> int:
    """One of the ``n`` numbers from ``first`` on, with the given chances."""
    for k in range(first, first + n - 1):
        if u < chances[k]:
            return k
        u -= chances[k]
    return first + n - 1


@compiled
def try_games(
    b: Beliefs, task: Task, roots: np.ndarray, chances: np.ndarray, n_games: int, length: int, seed: int, room: Room
) -> int:
    """Plays games from the ``roots`` and improves the values on the way; returns how many there was room for."""
    path, generator = np.zeros(length, np.int64), mix(word(seed))
    for game in range(n_games):
        generator += word(GOLDEN)
        node = wide(roots[pick(chances, 0, roots.shape[0], wide(mix(generator) >> word(11)) * SCALE)])
        for step in range(length):
            path[step] = node
            if b.first_move[node] == UNEXPANDED and full(b):
                return game
            expand(b, task, node, room)
            move, b.value[node] = best_move(b, node, task.discount)
            generator += word(GOLDEN)
            u = wide(mix(generator) >> word(11)) * SCALE
            node = wide(b.child[pick(b.chance, b.first_edge[move], b.n_edges[move], u)])
        for step in range(length - 1, -1, -1):
            _, b.value[path[step]] = best_move(b, path[step], task.discount)
    return n_games


def make_plan(
    task: Task, takeovers: Mapping[int, float], games: int, seed: int = 0, usual_cost: float = 0.0, scale: int = 1
) -> Plan:
    """Plans for games that blue takes over.

    Args:
        task: what the moves are judged by.
        takeovers: numbers of steps that red plays first, with their chances; 0 is the challenge.
        games: the number of games that are tried.
        seed: of these games.
        usual_cost: regret of a step, in tenths, that beliefs never met are expected to have; 0 for lower bounds.
        scale: room for beliefs.
    """
    beliefs, room = make_beliefs(scale, usual_cost / (1.0 - task.discount)), make_room()
    starts = find_starts(beliefs, task, room, takeovers)
    roots, chances = find_roots(beliefs, task, room, starts)
    try_games(beliefs, task, roots, chances / chances.sum(), games, LENGTH, seed, room)
    return Plan(task, beliefs, room, starts, roots, chances / chances.sum())


def least_regret(plan: Plan, steps: int) -> float:
    """A lower bound, in points, of what any play loses in ``steps`` steps against one that sees everything.

    It is the discounted mean per step, times the steps, and holds however well it was planned, if beliefs that were
    never met were expected to cost nothing.
    """
    discounted = float((plan.beliefs.value[plan.roots] * plan.chances).sum()) / 10
    return discounted * (1.0 - plan.task.discount) * steps
