"""From beliefs to memories: what a defender with the memory of memory.py should do against B_line.

A memory holds less than a belief. Games are played, in which the belief is followed beside the memory; for each
*situation* (all that the memory can distinguish) the expected regrets of every action are summed up over the beliefs
behind it. The action with the least sum is the lesson of that situation. The first games follow the plan, the others
the lessons learned so far, so that the sums are those of situations that such a defender meets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.defenders.bline.beliefs import UNEXPANDED, Beliefs, Task, full, sight_of
from workflow_rl.defenders.bline.graph import EMPTY
from workflow_rl.defenders.bline.moves import best_move, expand, follow, move_with, worth
from workflow_rl.defenders.bline.plan import LENGTH, Plan, Starts, try_games
from workflow_rl.defenders.expert import advise
from workflow_rl.engine.bits import wide
from workflow_rl.engine.chance import sample, seed_one
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import FIRST_PROGRAM
from workflow_rl.engine.state import State, compromised_hosts
from workflow_rl.engine.step import begin_one, step_one
from workflow_rl.envs.memory import (
    B_LINE,
    MEMORY_DTYPE,
    N_HOST_DECOY,
    N_HOSTS,
    N_WORDS,
    Memory,
    begin,
    full_action,
    remember,
    view_action,
    write_bits,
)
from workflow_rl.training.actor import find
from workflow_rl.training.compliance import EPISODE_DTYPE, due_type

IDLE_RESTORE = 15.0  # regret, in tenths, of a Restore where red cannot be: its price and lost decoys
FIRST_RESTORE = N_HOST_DECOY - N_HOSTS


class Lessons(NamedTuple):
    """Situations with the regrets of every action of the host-decoy view; arrays are longer than they are filled."""

    size: np.ndarray  # (1,) int64
    slots: np.ndarray  # (2**k,) int32: open hash table of the keys
    keys: np.ndarray  # (n, N_WORDS) int64
    regrets: np.ndarray  # (n, N_HOST_DECOY) float64: sums
    times: np.ndarray  # (n,) int64
    best: np.ndarray  # (n,) int64: the lesson, EMPTY if not drawn yet


def make_lessons(capacity: int = 1 << 18) -> Lessons:
    """No lessons yet."""
    return Lessons(
        np.zeros(1, np.int64), np.full(2 * capacity, EMPTY, np.int32), np.zeros((capacity, N_WORDS), np.int64),
        np.zeros((capacity, N_HOST_DECOY)), np.zeros(capacity, np.int64), np.full(capacity, EMPTY, np.int64),
    )  # fmt: skip


def draw(lessons: Lessons) -> None:
    """Draws the lesson of every situation."""
    n = int(lessons.size[0])
    lessons.best[:n] = lessons.regrets[:n].argmin(axis=1)


@compiled
def note(lessons: Lessons, key: np.ndarray, b: Beliefs, node: int, discount: float) -> None:
    """Adds the regrets of all actions in a belief to those of a situation."""
    slot = find(lessons.slots, lessons.keys, key)
    if lessons.slots[slot] == EMPTY:
        if lessons.size[0] == lessons.keys.shape[0]:
            return
        lessons.slots[slot] = lessons.size[0]
        lessons.keys[lessons.size[0]] = key
        lessons.size[0] += 1
    row = lessons.slots[slot]
    first = b.first_move[node]
    sleep = worth(b, first, discount)  # of a belief's moves the first is Sleep
    for choice in range(N_HOST_DECOY):
        lessons.regrets[row, choice] += sleep + (IDLE_RESTORE if choice >= FIRST_RESTORE else 0.0)
    for move in range(first + 1, first + b.n_moves[node]):
        choice = view_action(wide(b.action[move]))
        usual = sleep + (IDLE_RESTORE if choice >= FIRST_RESTORE else 0.0)
        lessons.regrets[row, choice] += worth(b, wide(move), discount) - usual
    lessons.times[row] += 1


@compiled
def learned(m: Memory, key: np.ndarray, lessons: Lessons, leaderboard: bool) -> int:
    """The lesson of the situation, or the expert's advice where there is none."""
    row = lessons.slots[find(lessons.slots, lessons.keys, key)]
    if m.foe == B_LINE and row != EMPTY and lessons.best[row] != EMPTY:
        return wide(full_action(m, lessons.best[row]))
    return wide(advise(m, leaderboard)[0])


class Played(NamedTuple):
    """What games leave behind."""

    episodes: np.ndarray  # (games,) EPISODE_DTYPE
    met: np.ndarray  # (n,) int64: beliefs that were expanded in the games
    n_met: np.ndarray  # (1,) int64


@compiled
def play_step(s: State, task: Task, action: int, episode: np.ndarray) -> None:
    """Plays a step and counts it."""
    t, masks = task.world.tables[0], task.world.masks
    before = compromised_hosts(s, t)
    episode.total += step_one(s, t, action, sample(s)) / 10.0
    if s.repaired:
        episode.repairs += 1
        if task.order.shape[0] and wide(s.repaired) & masks[due_type(task.order, masks, before)] == 0:
            episode.violations += 1


@compiled
def first_belief(starts: Starts, observation: int) -> int:
    """The belief after a first observation, or EMPTY."""
    for k in range(starts.nodes.shape[0]):
        if starts.observations[k] == observation:
            return wide(starts.nodes[k])
    return EMPTY


@compiled
def play_games(
    plan: Plan, lessons: Lessons, by_plan: bool, noted: bool, seeds: np.ndarray, takeover: np.ndarray,
    memory: np.ndarray, played: Played,
) -> None:  # fmt: skip
    """Plays a game of each seed by the plan or by the lessons; ``noted``: adds what the beliefs say to the lessons."""
    b, task, room, m, key = plan.beliefs, plan.task, plan.room, memory[0], np.zeros(N_WORDS, np.int64)
    s = room.states[2]
    for i in range(seeds.shape[0]):
        s.red, s.green_acts = FIRST_PROGRAM, 0
        seed_one(s, seeds[i])
        begin_one(s, task.world.tables[0], takeover)
        begin(m, s.observation[0])
        node = first_belief(plan.starts, s.observation[0])
        for _ in range(LENGTH):
            write_bits(m, key)
            action = learned(m, key, lessons, task.world.leaderboard)
            if node != EMPTY:
                if b.first_move[node] == UNEXPANDED:
                    played.met[played.n_met[0] % played.met.shape[0]] = node
                    played.n_met[0] += 1
                    expand(b, task, node, room)
                planned = best_move(b, node, task.discount)
                if m.foe == B_LINE:
                    action = wide(b.action[planned]) if by_plan else action
                    if noted:
                        note(lessons, key, b, node, task.discount)
            play_step(s, task, action, played.episodes[i])
            if node != EMPTY:
                move = move_with(b, task, node, action, room)
                node = EMPTY if full(b) else follow(b, move, sight_of(s.observation[0]))
            remember(m, action, s.observation[0])


def play(
    plan: Plan, lessons: Lessons, by_plan: bool, noted: bool, games: int, seed: int, takeover: tuple[int, int] = (0, 0)
) -> tuple[np.ndarray, np.ndarray]:
    """Games of 100 steps; returns their episodes (games,) and the beliefs that were not met before."""
    seeds = np.random.SeedSequence([seed, *takeover]).generate_state(games, np.uint64)
    played = Played(np.zeros(games, EPISODE_DTYPE), np.zeros(1 << 16, np.int64), np.zeros(1, np.int64))
    rows = np.array([*takeover, 0], np.int32)
    play_games(plan, lessons, by_plan, noted, seeds, rows, np.zeros(1, MEMORY_DTYPE), played)
    return played.episodes, played.met[: min(int(played.n_met[0]), len(played.met))]


def learn(plan: Plan, takeovers: tuple[tuple[int, int], ...], rounds: int, games: int, seed: int) -> Lessons:
    """Lessons from ``games`` games of each takeover and round; the first round follows the plan."""
    lessons = make_lessons()
    for number in range(rounds):
        for takeover in takeovers:
            _, met = play(plan, lessons, number == 0, True, games, seed + number, takeover)
            if len(met):
                chances = np.full(len(met), 1.0 / len(met))
                try_games(plan.beliefs, plan.task, met, chances, 4 * len(met), LENGTH // 2, number, plan.room)
        draw(lessons)
    return lessons
