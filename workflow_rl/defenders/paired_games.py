"""Improves the expert by paired games: in situations that really occur, is another action better?

The current teacher (teacher.py: the expert and the exceptions found so far) plays many games. A situation is everything
that a defender can distinguish. For each common situation some of the true states behind it are stored. From each
state two games are played to the end with common random numbers: one starts with the teacher's action, the other with
an alternative, and both continue with the teacher. An alternative that is better by two standard errors of the paired
differences, twice with independent random numbers, becomes an exception. The standard errors are conditional on the
stored states, so some exceptions are due to the choice of states; only fresh games measure the value of a round. Each
step is weighted by the number of the challenge's lengths (30, 50, 100) that contain it, so that the objective is the
sum of the official cells.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS, TrainConfig, check_jobs
from workflow_rl.defenders.expert import NO_ORDER
from workflow_rl.defenders.teacher import NO_EXCEPTIONS, Exceptions, make_exceptions, teach
from workflow_rl.engine.bits import wide, word
from workflow_rl.engine.chance import mix, sample, seed_one
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import RED_AGENTS
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.state import State, allocate, reset_one
from workflow_rl.engine.step import step_one
from workflow_rl.engine.tables import Tables, compile_tables
from workflow_rl.envs.inference import remember
from workflow_rl.envs.memory import (
    MEMORY_DTYPE,
    N_BITS,
    N_HOST_DECOY,
    N_WORDS,
    SLEEP,
    Memory,
    forget,
    full_action,
    write_bits,
)
from workflow_rl.errors import UserError
from workflow_rl.runs import Json, read_tensors, write_tensors
from workflow_rl.training.actor import EMPTY, find

N_STEPS = max(CHALLENGE_LENGTHS)
TEACHER = "teacher.safetensors"
PURPOSE = 31  # part of the games' seeds
WEIGHTS = (np.arange(N_STEPS)[:, None] < np.array(CHALLENGE_LENGTHS)).sum(axis=1)  # (N_STEPS,): 3, 2 or 1
KEPT = 128  # true states stored per situation
GLANCE, LOOK = 16, 512  # pairs after which an action that is not better is dropped, and pairs of a decision
SURE = 2.0  # standard errors by which an action must be better, twice, with independent random numbers


@compiled
def step_taught(s: State, t: Tables, m: Memory, key: np.ndarray, leaderboard: bool, exceptions: Exceptions) -> None:
    """One step with the teacher's action in the situation ``key``."""
    action = teach(m, key, leaderboard, exceptions, NO_ORDER)
    step_one(s, t, action, sample(s))
    remember(m, action, s.observation[0])


@compiled
def count_situations(
    states: np.ndarray, tables: np.ndarray, memory: np.ndarray, leaderboard: bool, exceptions: Exceptions,
    slots: np.ndarray, keys: np.ndarray, counts: np.ndarray,
) -> int:  # fmt: skip
    """Plays a game in each environment; writes the keys and counts of the situations and returns their number."""
    t, m, key, n_rows = tables[0], memory[0], np.zeros(N_WORDS, np.int64), 0
    for i in range(states.shape[0]):
        s = states[i]
        reset_one(s, t)
        forget(m)
        for _ in range(N_STEPS):
            write_bits(m, key)
            slot = find(slots, keys, key)
            if slots[slot] == EMPTY and n_rows < keys.shape[0]:
                slots[slot] = n_rows
                keys[n_rows] = key
                n_rows += 1
            if slots[slot] != EMPTY:
                counts[slots[slot]] += 1
            step_taught(s, t, m, key, leaderboard, exceptions)
    return n_rows


@compiled
def play_on(
    s: State, t: Tables, m: Memory, first: int, leaderboard: bool, exceptions: Exceptions, weights: np.ndarray,
    key: np.ndarray,
) -> float:  # fmt: skip
    """Weighted return, in tenths, of action ``first`` and then the teacher's; changes state and memory."""
    total: float = 0.0
    action = first
    while True:
        total += weights[s.step] * step_one(s, t, action, sample(s))
        if s.step >= N_STEPS:
            return total
        remember(m, action, s.observation[0])
        write_bits(m, key)
        action = teach(m, key, leaderboard, exceptions, NO_ORDER)


class Question(NamedTuple):
    """The common data of a round's comparisons."""

    tables: np.ndarray
    leaderboard: bool
    exceptions: Exceptions
    weights: np.ndarray
    seen: np.ndarray  # (n,) int64: number of occurrences of each situation
    kept: np.ndarray  # (n, KEPT): true states
    memories: np.ndarray  # (n, KEPT)
    seed: int


@compiled
def keep_states(states: np.ndarray, memory: np.ndarray, q: Question, wanted: Exceptions) -> None:
    """Plays a game in each environment and stores a uniform sample of the true states of the ``wanted`` situations."""
    t, m, key = q.tables[0], memory[0], np.zeros(N_WORDS, np.int64)
    for i in range(states.shape[0]):
        s = states[i]
        reset_one(s, t)
        forget(m)
        for step in range(N_STEPS):
            write_bits(m, key)
            row = wanted.slots[find(wanted.slots, wanted.keys, key)]
            if row != EMPTY:
                place = q.seen[row]
                q.seen[row] += 1
                if place >= KEPT:  # reservoir sampling
                    place = wide(mix(s.rng ^ word(step)) >> word(1)) % q.seen[row]
                if place < KEPT:
                    q.kept[row, place] = s
                    q.memories[row, place] = m
            step_taught(s, t, m, key, q.leaderboard, q.exceptions)


@compiled
def play_pairs(q: Question, row: int, action: int, first: int, returns: np.ndarray) -> None:
    """Writes the returns of ``action`` in games ``first``, ``first + 1``, ... with common random numbers."""
    n = min(q.seen[row], KEPT)
    luck = mix(word(q.seed) ^ mix(word(row + 1)))
    s, m, key = q.kept[row, :1].copy(), q.memories[row, :1].copy(), np.zeros(N_WORDS, np.int64)
    for i in range(returns.shape[0]):
        s[0], m[0] = q.kept[row, (first + i) % n], q.memories[row, (first + i) % n]
        seed_one(s[0], luck + word(first + i))
        returns[i] = play_on(s[0], q.tables[0], m[0], action, q.leaderboard, q.exceptions, q.weights, key)


@compiled
def compare(q: Question, rows: np.ndarray, best: np.ndarray, gain: np.ndarray) -> None:
    """Writes the best action of each situation in ``rows`` (EMPTY for the teacher's) and its gain in tenths."""
    key, usual, other = np.zeros(N_WORDS, np.int64), np.empty(2 * LOOK), np.empty(2 * LOOK)
    for row in rows:
        m = q.memories[row, 0]
        write_bits(m, key)
        teachers = teach(m, key, q.leaderboard, q.exceptions, NO_ORDER)
        play_pairs(q, row, teachers, 0, usual)
        best[row], gain[row] = EMPTY, 0.0
        for choice in range(N_HOST_DECOY):
            action = wide(full_action(m, choice))
            if action == teachers or (choice > 0 and action == SLEEP):
                continue
            ahead, mean = True, 0.0
            for first, last, sure in ((0, GLANCE, 0.0), (GLANCE, LOOK, SURE), (LOOK, 2 * LOOK, SURE)):
                play_pairs(q, row, action, first, other[first:last])
                more = other[first:last] - usual[first:last]
                mean = more.mean()
                if mean <= sure * more.std() / np.sqrt(last - first):
                    ahead = False
                    break
            if ahead and mean > gain[row]:
                best[row], gain[row] = action, mean


def improve(
    edition: str, exceptions: Exceptions, seed: int, jobs: int = 1, n_games: int = 10_000, least: float = 0.002
) -> tuple[Exceptions, dict[str, float]]:
    """Runs one round; returns the old and new exceptions and figures of the round.

    Args:
        edition: the edition of the rules.
        exceptions: the exceptions found so far.
        seed: the seed of this round's games.
        jobs: the number of threads, which does not affect the result.
        n_games: the number of games against each of the two attackers.
        least: the minimum number of occurrences of a situation per game.
    """
    tables, leaderboard = compile_tables(as_network(CAGE2), edition), edition == "leaderboard"
    capacity = 1 << 19
    slots, keys = np.full(2 * capacity, EMPTY, np.int32), np.empty((capacity, N_WORDS), np.int64)
    counts, memory = np.zeros(capacity, np.int64), np.zeros(1, MEMORY_DTYPE)
    n_rows = count_situations(_games(n_games, seed, 0), tables, memory, leaderboard, exceptions, slots, keys, counts)
    common = np.flatnonzero(counts[:n_rows] >= max(2.0, least * n_games))
    wanted = make_exceptions(keys[common], np.zeros(len(common)))
    seen, memories = np.zeros(len(common), np.int64), np.zeros((len(common), KEPT), MEMORY_DTYPE)
    kept = allocate(len(common) * KEPT).reshape(len(common), KEPT)
    question = Question(tables, leaderboard, exceptions, WEIGHTS, seen, kept, memories, seed)
    keep_states(_games(n_games, seed, 1), memory, question, wanted)
    best, gain = np.full(len(common), EMPTY), np.zeros(len(common))
    rows = np.flatnonzero(seen >= KEPT // 4)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda part: compare(question, part, best, gain), np.array_split(rows, max(1, len(rows) // 16))))
    found = best != EMPTY
    known = dict(zip(map(bytes, exceptions.keys), exceptions.actions.tolist(), strict=True))
    known |= dict(zip(map(bytes, wanted.keys[found]), best[found].tolist(), strict=True))
    new = make_exceptions(np.array([np.frombuffer(key, np.int64) for key in known]), np.array(list(known.values())))
    figures = {"situations": float(len(rows)), "found": float(found.sum()), "exceptions": float(len(known))}
    return new, figures | {"expected_gain": float((gain * counts[common] / n_games).sum() / 10)}


def _games(n_games: int, seed: int, purpose: int) -> np.ndarray:
    """Initial states of ``n_games`` games against B_line and as many against Meander, alternating."""
    attackers = [RED_AGENTS.index(name) for name in ("bline", "meander")]
    states = allocate(n_games * len(attackers))
    states["red"] = np.resize(attackers, len(states))
    states["rng"] = np.random.SeedSequence([seed, purpose]).generate_state(len(states), np.uint64)
    return states


def improved_teacher(
    config: TrainConfig, folder: Path | None, note: Callable[[str], None] = lambda _: None
) -> Exceptions:
    """The exceptions after the configured number of rounds; saved in the run directory and resumed from there."""
    exceptions, done = NO_EXCEPTIONS, 0
    path = folder / TEACHER if folder else None
    if path and path.exists():
        exceptions, done = load_teacher(path, config)
    for number in range(done, config.improve_rounds):
        name = f"paired games, round {number + 1} of {config.improve_rounds}"
        note(f"{name}: this takes minutes")
        began = time.perf_counter()
        seed = np.random.SeedSequence([config.seed, PURPOSE, number]).generate_state(1, np.uint64)[0] >> np.uint64(1)
        exceptions, figures = improve(config.edition, exceptions, int(seed), check_jobs(None))
        note(
            f"{name}: {figures['situations']:,.0f} situations, better actions in {figures['found']:,.0f} of them, "
            f"{time.perf_counter() - began:.0f} s"
        )
        if path:
            about = _about(config) | {"rounds": number + 1}
            write_tensors(path, {"keys": exceptions.keys, "actions": exceptions.actions}, about)
    return exceptions


def _about(config: TrainConfig) -> Json:
    """The description that a teacher's file must have."""
    return {"format": "workflow_rl teacher 1", "edition": config.edition, "seed": config.seed, "n_bits": N_BITS}


def load_teacher(path: Path, config: TrainConfig) -> tuple[Exceptions, int]:
    """Exceptions and the number of completed rounds; rejects a file that is damaged or belongs to another task."""
    arrays, meta = read_tensors(path)
    rounds = meta.get("rounds") if isinstance(meta, dict) else None
    if not isinstance(rounds, int) or {name: meta.get(name) for name in _about(config)} != _about(config):
        raise UserError(f"{path} is not the teacher of this run's settings.")
    keys, actions = arrays.get("keys"), arrays.get("actions")
    if keys is None or actions is None or keys.dtype != np.int64 or keys.shape != (len(actions), N_WORDS):
        raise UserError(f"{path}: damaged, keys and actions do not fit.")
    if len(actions) and not 0 <= int(actions.min()) <= int(actions.max()) < as_network(CAGE2).n_actions:
        raise UserError(f"{path}: damaged, it contains invalid actions.")
    return make_exceptions(keys, actions), rounds
