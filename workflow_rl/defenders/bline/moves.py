"""Blue's moves in a belief, and the beliefs to which they lead."""

from __future__ import annotations

import numpy as np

from workflow_rl.defenders.bline.beliefs import (
    EDGES,
    MOST,
    MOVES,
    N_SIGHTS,
    UNEXPANDED,
    Beliefs,
    Room,
    Task,
    belief_number,
    play_on,
    regret,
)
from workflow_rl.defenders.bline.graph import EMPTY
from workflow_rl.engine.bits import has, wide, word
from workflow_rl.engine.chance import mix
from workflow_rl.engine.compiled import compiled, compiled_once
from workflow_rl.engine.state import State, compromised_hosts
from workflow_rl.envs.memory import (
    APACHE,
    FIRST_DECOY,
    MOST_DECOYS,
    N_HOSTS,
    NOBODY,
    REMOVE,
    RESTORE,
    SLEEP,
    USEFUL,
    VSFTPD,
)

ROOM_OF_ONE = 64  # outcomes of one state at most
TIE = 1e-6  # tenths by which a move must be better than one that comes before it


@compiled_once
def add_move(b: Beliefs, task: Task, node: int, action: int, room: Room) -> int:
    """Adds the move with its edges; returns its number."""
    first, n, total, at, cost = b.first[node], wide(b.width[node]), 0.0, 0, 0.0
    for k in range(first, first + n):
        total += b.share[k]
    for k in range(first, first + n):
        if at + ROOM_OF_ONE > MOST:
            break
        share, begin = b.share[k] / total, at
        cost += share * regret(b, task, wide(b.member[k]), action, room)
        at = play_on(b, task, wide(b.member[k]), action, at, False, room)
        for i in range(begin, at):
            room.chances[i] *= share
    move: int = wide(b.sizes[MOVES])
    b.sizes[MOVES] += 1
    b.action[move], b.cost[move], b.first_edge[move] = action, cost, b.sizes[EDGES]
    add_edges(b, at, room)
    b.n_edges[move] = b.sizes[EDGES] - b.first_edge[move]
    return move


@compiled
def add_edges(b: Beliefs, n: int, room: Room) -> None:
    """Adds an edge for each sight among the first ``n`` outcomes in the room."""
    members, chances = np.empty(n, np.int64), np.empty(n)
    for sight in range(N_SIGHTS):
        different, total = 0, 0.0
        for i in range(n):
            if room.sights[i] != sight:
                continue
            total += room.chances[i]
            k = 0
            while k < different and members[k] != room.members[i]:
                k += 1
            if k == different:
                members[k], chances[k] = room.members[i], 0.0
                different += 1
            chances[k] += room.chances[i]
        if different:
            edge = b.sizes[EDGES]
            b.sizes[EDGES] += 1
            b.child[edge] = belief_number(b, members[:different], chances[:different] / total)
            b.chance[edge], b.sight[edge] = total, sight


@compiled
def decoy_for(s: State, host: int) -> int:
    """The action that places the most useful missing decoy on the host; Sleep if none is missing."""
    there = wide(s.decoys[host])
    for i in range(MOST_DECOYS):
        decoy = USEFUL[host, i]
        if decoy != NOBODY and not has(there, decoy) and not (decoy == APACHE and has(there, VSFTPD)):
            action: int = wide(FIRST_DECOY + N_HOSTS * decoy + host)
            return action
    return SLEEP


@compiled
def candidates(b: Beliefs, task: Task, node: int, actions: np.ndarray) -> int:
    """Writes the actions that can matter in a belief, Sleep first; returns how many."""
    t, hosts, traced, held, restored = task.world.tables[0], wide(0), wide(0), wide(0), wide(-1)
    first = b.first[node]
    for k in range(first, first + b.width[node]):
        s = b.states[b.member[k]]
        hosts |= wide(task.world.reduction.touched[s.picked[0]])
        traced |= wide(s.traced)
        held |= wide(compromised_hosts(s, t))
        restored &= wide(s.restored)
    s = b.states[b.member[first]]  # decoys are blue's own, so the same in all states
    actions[0], n = SLEEP, 1
    for host in range(N_HOSTS):
        if not has(hosts, host):
            continue
        if has(traced, host):
            actions[n] = REMOVE + host
            n += 1
        if has(held, host) or has(task.spoils & ~restored, host):
            actions[n] = RESTORE + host
            n += 1
        decoy = decoy_for(s, host)
        if decoy != SLEEP:
            actions[n] = decoy
            n += 1
    return n


@compiled_once
def expand(b: Beliefs, task: Task, node: int, room: Room) -> None:
    """Adds all moves of a belief, unless it has them."""
    if b.first_move[node] != UNEXPANDED:
        return
    n, first = candidates(b, task, node, room.actions), b.sizes[MOVES]
    for k in range(n):
        add_move(b, task, node, room.actions[k], room)
    b.first_move[node], b.n_moves[node] = first, n


@compiled
def worth(b: Beliefs, move: int, discount: float) -> float:
    """Expected regrets of a move and of what follows it."""
    total = 0.0
    for edge in range(b.first_edge[move], b.first_edge[move] + b.n_edges[move]):
        total += b.chance[edge] * b.value[b.child[edge]]
    return float(b.cost[move] + discount * total)


@compiled_once
def best_move(b: Beliefs, node: int, discount: float) -> tuple[int, float]:
    """The move of least regret in an expanded belief, and that regret."""
    least, best = np.inf, wide(0)
    for move in range(b.first_move[node], b.first_move[node] + b.n_moves[node]):
        this = worth(b, move, discount)
        if this < least - TIE:
            least, best = this, wide(move)
    return best, least


@compiled_once
def move_with(b: Beliefs, task: Task, node: int, action: int, room: Room) -> int:
    """The move with this action in an expanded belief, also one that is not among the candidates."""
    found: int = EMPTY
    for move in range(b.first_move[node], b.first_move[node] + b.n_moves[node]):
        if b.action[move] == action:
            found = wide(move)
    if found != EMPTY:
        return found
    key, last = node * 256 + action, b.other_slots.shape[0] - 1
    slot = wide(mix(word(key)) & word(last))
    while b.other_slots[slot] != EMPTY and b.other_slots[slot] != key:
        slot = (slot + 1) & last
    if b.other_slots[slot] == EMPTY:
        b.other_slots[slot], b.other_moves[slot] = key, add_move(b, task, node, action, room)
    return wide(b.other_moves[slot])


@compiled
def follow(b: Beliefs, move: int, sight: int) -> int:
    """The belief after a move and what was seen; EMPTY if that was not to be expected."""
    found: int = EMPTY
    for edge in range(b.first_edge[move], b.first_edge[move] + b.n_edges[move]):
        if b.sight[edge] == sight:
            found = wide(b.child[edge])
    return found
