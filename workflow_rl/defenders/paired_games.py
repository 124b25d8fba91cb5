"""Improves the expert by paired games: in situations that really occur, is another action better?

The current teacher (teacher.py: the expert and the exceptions found so far) plays many games. A situation is everything
that a defender can distinguish. For each common situation some of the true states behind it are stored. From each
state two games are played to the end with common random numbers: one starts with the teacher's action, the other with
an alternative, and both continue with the teacher. An alternative that is better by two standard errors of the paired
differences, twice with independent random numbers, becomes an exception. The pairs from one state are one observation
for the standard error (its clusters are the states). Each step is weighted by the number of the challenge's lengths
(30, 50, 100) that contain it, so that the objective is the sum of the official cells.
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
from workflow_rl.engine.tables import compile_tables
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


class Mix(NamedTuple):
    """The games of a round."""

    planned: bool = False  # against B_line there is a better teacher where green sleeps
    green: float = 0.0  # share of the games in which green acts


STANDARD = Mix()


class Play(NamedTuple):
    """What a game needs but for its state."""

    tables: np.ndarray
    leaderboard: bool
    exceptions: Exceptions
    weights: np.ndarray


@compiled
def step_taught(s: State, m: Memory, key: np.ndarray, p: Play) -> None:
    """One step with the teacher's action in the situation ``key``."""
    action = teach(m, key, p.leaderboard, p.exceptions, NO_ORDER)
    step_one(s, p.tables[0], action, sample(s))
    remember(m, action, s.observation[0])


@compiled
def count_situations(
    states: np.ndarray, memory: np.ndarray, p: Play, slots: np.ndarray, keys: np.ndarray, counts: np.ndarray
) -> int:  # fmt: skip
    """Plays a game in each environment; writes the keys and counts of the situations and returns their number."""
    m, key, n_rows = memory[0], np.zeros(N_WORDS, np.int64), 0
    for i in range(states.shape[0]):
        s = states[i]
        reset_one(s, p.tables[0])
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
            step_taught(s, m, key, p)
    return n_rows


@compiled
def play_on(s: State, m: Memory, first: int, p: Play, key: np.ndarray) -> float:
    """Weighted return, in tenths, of action ``first`` and then the teacher's; changes state and memory."""
    total: float = 0.0
    action, t = first, p.tables[0]
    while True:
        total += p.weights[s.step] * step_one(s, t, action, sample(s))
        if s.step >= N_STEPS:
            return total
        remember(m, action, s.observation[0])
        write_bits(m, key)
        action = teach(m, key, p.leaderboard, p.exceptions, NO_ORDER)


class Question(NamedTuple):
    """The common data of a round's comparisons."""

    play: Play
    seen: np.ndarray  # (n,) int64: number of occurrences of each situation
    kept: np.ndarray  # (n, KEPT): true states
    memories: np.ndarray  # (n, KEPT)
    seed: int


@compiled
def keep_states(states: np.ndarray, memory: np.ndarray, q: Question, wanted: Exceptions) -> None:
    """Plays a game in each environment and stores a uniform sample of the true states of the ``wanted`` situations."""
    m, key = memory[0], np.zeros(N_WORDS, np.int64)
    for i in range(states.shape[0]):
        s = states[i]
        reset_one(s, q.play.tables[0])
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
            step_taught(s, m, key, q.play)


@compiled
def play_pairs(q: Question, row: int, action: int, first: int, returns: np.ndarray) -> None:
    """Writes the returns of ``action`` in games ``first``, ``first + 1``, ... with common random numbers."""
    n = min(q.seen[row], KEPT)
    luck = mix(word(q.seed) ^ mix(word(row + 1)))
    s, m, key = q.kept[row, :1].copy(), q.memories[row, :1].copy(), np.zeros(N_WORDS, np.int64)
    for i in range(returns.shape[0]):
        s[0], m[0] = q.kept[row, (first + i) % n], q.memories[row, (first + i) % n]
        seed_one(s[0], luck + word(first + i))
        returns[i] = play_on(s[0], m[0], action, q.play, key)


@compiled
def clustered(values: np.ndarray, first: int, n_states: int) -> tuple[float, float]:
    """Mean of values, of which number i is from state (first + i) % n_states, and its standard error over states."""
    n, mean, sums = len(values), values.mean(), np.zeros(n_states)
    for i in range(n):
        sums[(first + i) % n_states] += values[i] - mean
    groups = min(n, n_states)
    return mean, np.sqrt((sums**2).sum() * groups / max(1, groups - 1)) / n


@compiled
def compare(q: Question, rows: np.ndarray, best: np.ndarray, gain: np.ndarray) -> None:
    """Writes the best action of each situation in ``rows`` (EMPTY for the teacher's) and its gain in tenths."""
    key, usual, other = np.zeros(N_WORDS, np.int64), np.empty(2 * LOOK), np.empty(2 * LOOK)
    for row in rows:
        m = q.memories[row, 0]
        write_bits(m, key)
        teachers = teach(m, key, q.play.leaderboard, q.play.exceptions, NO_ORDER)
        play_pairs(q, row, teachers, 0, usual)
        best[row], gain[row] = EMPTY, 0.0
        for choice in range(N_HOST_DECOY):
            action = wide(full_action(m, choice))
            if action == teachers or (choice > 0 and action == SLEEP):
                continue
            ahead, mean = True, 0.0
            for first, last, sure in ((0, GLANCE, 0.0), (GLANCE, LOOK, SURE), (LOOK, 2 * LOOK, SURE)):
                play_pairs(q, row, action, first, other[first:last])
                mean, error = clustered(other[first:last] - usual[first:last], first, min(q.seen[row], KEPT))
                if mean <= sure * error:
                    ahead = False
                    break
            if ahead and mean > gain[row]:
                best[row], gain[row] = action, mean


def improve(
    edition: str, exceptions: Exceptions, seed: int, jobs: int = 1, n_games: int = 10_000, least: float = 0.002,
    mix_of: Mix = STANDARD,
) -> tuple[Exceptions, dict[str, float]]:  # fmt: skip
    """Runs one round; returns the old and new exceptions and figures of the round.

    Args:
        edition: the edition of the rules.
        exceptions: the exceptions found so far.
        seed: the seed of this round's games.
        jobs: the number of threads, which does not affect the result.
        n_games: the number of games against each attacker.
        least: the minimum number of occurrences of a situation per game.
        mix_of: the games.
    """
    tables = compile_tables(as_network(CAGE2), edition)
    play = Play(tables, edition == "leaderboard", exceptions, WEIGHTS)
    capacity = 1 << 19
    slots, keys = np.full(2 * capacity, EMPTY, np.int32), np.empty((capacity, N_WORDS), np.int64)
    counts, memory = np.zeros(capacity, np.int64), np.zeros(1, MEMORY_DTYPE)
    n_rows = count_situations(_games(n_games, seed, 0, mix_of), memory, play, slots, keys, counts)
    common = np.flatnonzero(counts[:n_rows] >= max(2.0, least * n_games))
    wanted = make_exceptions(keys[common], np.zeros(len(common)))
    seen, memories = np.zeros(len(common), np.int64), np.zeros((len(common), KEPT), MEMORY_DTYPE)
    kept = allocate(len(common) * KEPT).reshape(len(common), KEPT)
    question = Question(play, seen, kept, memories, seed)
    keep_states(_games(n_games, seed, 1, mix_of), memory, question, wanted)
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


def _games(n_games: int, seed: int, purpose: int, mix_of: Mix) -> np.ndarray:
    """Initial states of ``n_games`` games against each attacker, in turn."""
    attackers = [RED_AGENTS.index(name) for name in ("bline", "meander")]
    states = allocate(n_games * len(attackers))
    states["red"] = np.resize(attackers, len(states))
    states["rng"] = np.random.SeedSequence([seed, purpose]).generate_state(len(states), np.uint64)
    noisy = np.random.default_rng([seed, purpose, 1]).random(len(states)) < mix_of.green
    states["green_acts"] = noisy | (mix_of.planned & (states["red"] == attackers[0]))
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
        games = Mix(config.plan_games > 0, _share(config.green_agent))
        exceptions, figures = improve(config.edition, exceptions, int(seed), check_jobs(None), mix_of=games)
        note(
            f"{name}: {figures['situations']:,.0f} situations, better actions in {figures['found']:,.0f} of them, "
            f"{time.perf_counter() - began:.0f} s"
        )
        if path:
            about = _about(config) | {"rounds": number + 1}
            write_tensors(path, {"keys": exceptions.keys, "actions": exceptions.actions}, about)
    return exceptions


def _share(green_agents: str) -> float:
    """The share of a list's green agents that act.

    >>> _share("sleep,active,sleep,sleep")
    0.25
    """
    names = [name.strip() for name in green_agents.split(",")]
    return names.count("active") / len(names)


def _about(config: TrainConfig) -> Json:
    """The description that a teacher's file must have."""
    games = {"green_agent": config.green_agent, "planned": config.plan_games > 0}
    own = {"format": "workflow_rl teacher 2", "edition": config.edition, "seed": config.seed, "n_bits": N_BITS}
    return own | games


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
