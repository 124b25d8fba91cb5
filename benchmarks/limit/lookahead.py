"""A defender that looks ahead when it decides, with no more knowledge than blue has: an upper mark for rules.

It keeps *particles*: true states that fit everything that blue saw and did. In each step other actions than the
expert's are tried in games that begin in these states and go on by the expert's rules, all with the same luck. The
games are spent by sequential halving: after each round the better half of the actions is kept. An action is taken
instead of the expert's if it is ahead by enough standard errors. Blue is told neither the attacker nor the length of
the game, so both attackers are among the first particles, and the games ahead have a horizon of their own.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from workflow_rl.defenders.expert import NO_ORDER, advise
from workflow_rl.engine.bits import has, wide, word
from workflow_rl.engine.chance import mix, sample, seed_one
from workflow_rl.engine.compiled import compiled, compiled_once
from workflow_rl.engine.network import FIRST_PROGRAM, MEANDER
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.state import State, allocate, reset_one, sessions
from workflow_rl.engine.step import step_one
from workflow_rl.engine.tables import Tables, compile_tables
from workflow_rl.envs.inference import begin, remember
from workflow_rl.envs.memory import (
    ANALYSE,
    ANY_HOST,
    FIRST_DECOY,
    MEMORY_DTYPE,
    N_HOST_DECOY,
    N_HOSTS,
    OP_SERVER0,
    REMOVE,
    RESTORE,
    SLEEP,
    Memory,
    full_action,
)

LENGTH = 100  # steps of a game
PURPOSE, JURY = 41, 2000  # of the luck by which games are judged afterwards, and particles
PASSES, LAST_PASSES = 8, 200  # over the particles: to find as many as there were, and to find one at all
CLEARLY_WORSE = 1.0  # standard errors by which an action must be behind to be dropped even from the better half
NOTE_DTYPE = np.dtype(
    [
        ("usual", np.int64),  # the expert's action, its rule, and the action that was taken
        ("rule", np.int64),
        ("action", np.int64),
        ("gain", np.float64),  # by which it was ahead, in points within the horizon; 0 if it is the expert's
        ("fitting", np.int64),  # particles that fitted the observation after the step; 0: none, or given up before
        ("bline", np.float64),  # share of B_line among the particles before the step
        ("memory", MEMORY_DTYPE),  # before the step
    ],
    align=True,
)


class Look(NamedTuple):
    """How far and how often to look ahead."""

    rollouts: int  # games ahead for one decision; 0: the expert itself
    particles: int = 1000
    horizon: int = 40
    discount: float = 1.0
    sure: float = 2.0  # standard errors by which an action must be ahead of the expert's


class Planner(NamedTuple):
    """What a decision needs but for the situation."""

    tables: np.ndarray
    leaderboard: bool
    look: Look


class Hosts(NamedTuple):
    """Sets of hosts of which something holds in any particle."""

    held: int  # red has a session
    traced: int  # red has a session that Remove ends
    malware: int  # red left a file
    unscanned: int  # red may still scan it


@compiled
def begin_particles(kept: np.ndarray, t: Tables) -> None:
    """The start of a game against either attacker."""
    for i in range(len(kept)):
        kept[i].red = MEANDER if i % 2 else FIRST_PROGRAM
        reset_one(kept[i], t)


@compiled
def follow(kept: np.ndarray, found: np.ndarray, t: Tables, action: int, seen: int, luck: int) -> int:
    """Writes to ``found`` where the particles ``kept`` are after blue's action, if blue then sees ``seen``.

    Returns how many different tries fitted, at most as many as there are particles; copies fill up the rest.
    """
    n, fitting = len(kept), 0
    for i in range(LAST_PASSES * n):
        if fitting == n or (fitting and i >= PASSES * n):
            break
        found[fitting] = kept[i % n]
        seed_one(found[fitting], luck + word(i))
        step_one(found[fitting], t, action, sample(found[fitting]))
        if found[fitting].observation[0] == seen:
            fitting += 1
    for i in range(fitting, n if fitting else 0):
        found[i] = found[i % fitting]
    return fitting


@compiled
def any_hosts(kept: np.ndarray) -> Hosts:
    """What holds in any particle."""
    held, traced, malware, unscanned = 0, 0, 0, 0
    for i in range(len(kept)):
        s = kept[i]
        held |= wide(sessions(s))
        traced |= wide(s.traced)
        malware |= wide(s.malware)
        unscanned |= ~wide(s.scanned) if s.red == MEANDER else -1
    return Hosts(held, traced, malware, unscanned)


@compiled
def matters(m: Memory, action: int, hosts: Hosts, leaderboard: bool) -> bool:
    """Could the action make a difference in any particle?"""
    if action == SLEEP:
        return True
    host = (action - ANALYSE) % N_HOSTS
    if not has(ANY_HOST, host):
        return False
    if action >= RESTORE:  # a first Restore protects the service and, in one edition, breaks an exploit
        return has(hosts.held, host) or ((leaderboard or host == OP_SERVER0) and not has(m.restored, host))
    if action >= FIRST_DECOY:
        return has(hosts.unscanned, host)
    if action >= REMOVE:
        return has(hosts.traced, host)
    return has(hosts.malware, host) and not has(m.observation, 4 * host + 3)


@compiled
def candidates(m: Memory, usual: int, kept: np.ndarray, leaderboard: bool, actions: np.ndarray) -> int:
    """Writes the actions worth a try, but for the expert's ``usual`` one; returns their number."""
    hosts, n = any_hosts(kept), 0
    for choice in range(N_HOST_DECOY):
        action = wide(full_action(m, choice))
        if action != usual and (choice == 0 or action != SLEEP) and matters(m, action, hosts, leaderboard):
            actions[n] = action
            n += 1
    return n


@compiled_once
def play_on(s: State, m: Memory, first: int, steps: int, p: Planner) -> float:
    """Return, in tenths, of action ``first`` and then the expert's in ``steps`` steps; changes state and memory."""
    total, weight, action = 0.0, 1.0, wide(first)
    for _ in range(steps):
        total += weight * step_one(s, p.tables[0], action, sample(s))
        weight *= p.look.discount
        remember(m, action, s.observation[0])
        action = wide(advise(m, p.leaderboard, NO_ORDER)[0])
    return total


class Desk(NamedTuple):
    """Room to work in."""

    s: np.ndarray
    m: np.ndarray
    actions: np.ndarray  # those that are still compared
    sums: np.ndarray  # of what each was ahead of the expert's action, in tenths
    squares: np.ndarray


@compiled
def try_out(kept: np.ndarray, m: Memory, action: int, number: int, luck: int, p: Planner, d: Desk) -> float:
    """The return of an action in the game ahead ``number``: the same particle and luck for every action."""
    d.s[0] = kept[number % len(kept)]
    d.m[0] = m
    seed_one(d.s[0], luck + word(number))
    return float(play_on(d.s[0], d.m[0], action, p.look.horizon, p))


@compiled
def keep_better(d: Desk, n: int, half: int) -> int:
    """Keeps at most ``half`` of the actions, best first, and none that is clearly behind or makes no difference."""
    order = np.argsort(-d.sums[:n])
    actions, sums, squares = d.actions[order], d.sums[order], d.squares[order]
    left = 0
    for i in range(min(n, half)):
        if squares[i] > 0 and sums[i] > -CLEARLY_WORSE * np.sqrt(squares[i]):
            d.actions[left], d.sums[left], d.squares[left] = actions[i], sums[i], squares[i]
            left += 1
    return left


@compiled_once
def decide(kept: np.ndarray, m: Memory, usual: int, luck: int, p: Planner, d: Desk) -> tuple[int, float]:
    """The action that is best in games ahead, and by how many points it is ahead of the ``usual`` one."""
    n = candidates(m, usual, kept, p.leaderboard, d.actions)
    d.sums[:], d.squares[:] = 0.0, 0.0
    rounds = 1 + int(np.ceil(np.log2(max(1, n))))
    games = 0
    for _ in range(rounds):
        if n == 0:
            break
        more = max(2, p.look.rollouts // rounds // (n + 1))
        for number in range(games, games + more):
            base = try_out(kept, m, usual, number, luck, p, d)
            for i in range(n):
                ahead = try_out(kept, m, d.actions[i], number, luck, p, d) - base
                d.sums[i] += ahead
                d.squares[i] += ahead * ahead
        games += more
        n = keep_better(d, n, max(1, (n + 1) // 2))
    if n == 0:
        return usual, 0.0
    mean = d.sums[0] / games
    error = np.sqrt(max(0.0, d.squares[0] / games - mean * mean) / games)
    return (wide(d.actions[0]), mean / 10) if mean > p.look.sure * error else (usual, 0.0)


@compiled
def share_of_bline(kept: np.ndarray) -> float:
    """The share of B_line among the particles."""
    number = 0
    for i in range(len(kept)):
        number += kept[i].red == FIRST_PROGRAM
    return number / len(kept)


@compiled_once
def play(s: State, m: Memory, p: Planner, both: np.ndarray, d: Desk, seed: int, notes: np.ndarray) -> float:
    """Plays one game of LENGTH steps in ``s``, whose attacker and generator are set; returns its return.

    ``both`` (2, particles) is overwritten; ``seed`` is that of the planner's own luck.
    """
    t, total, fitting = p.tables[0], 0, len(both[0])
    kept, found = both[0], both[1]
    reset_one(s, t)
    begin(m, s.observation[0])
    begin_particles(kept, t)
    for step in range(LENGTH):
        usual, rule = advise(m, p.leaderboard, NO_ORDER)
        action, gain, luck = wide(usual), 0.0, mix(word(seed) + word(2 * step))
        if p.look.rollouts and fitting:
            action, gain = decide(kept, m, wide(usual), luck, p, d)
        note = notes[step]
        note.usual, note.rule, note.action, note.gain = usual, rule, action, gain
        note.memory = m
        note.bline = share_of_bline(kept) if fitting else np.nan
        total += step_one(s, t, action, sample(s))
        remember(m, action, s.observation[0])
        if p.look.rollouts and fitting:
            luck = mix(word(seed) + word(2 * step + 1))
            fitting = follow(kept, found, t, action, s.observation[0], luck)
            kept, found = found, kept
        note.fitting = fitting
    both[0] = kept
    return total / 10


@compiled_once
def advantages(
    notes: np.ndarray, p: Planner, both: np.ndarray, pairs: int, seed: int, d: Desk, gains: np.ndarray
) -> bool:
    """Writes by how many points each action of a game is better than the expert's, if the expert goes on after it.

    Both are played to the end of the game, in ``pairs`` games with the same luck. Particles and luck are others than
    those of the decisions. The mean over games of their sum over a game is what the planner gains over the expert; it
    varies far less than the difference of two games. Returns whether there always was a particle that fits.
    """
    t, kept, found = p.tables[0], both[0], both[1]
    begin_particles(kept, t)
    for step in range(LENGTH):
        note, luck, gains[step] = notes[step], mix(word(seed) + word(2 * step)), 0.0
        for number in range(pairs if note.action != note.usual else 0):
            for action, sign in ((note.action, 1), (note.usual, -1)):
                d.s[0], d.m[0] = kept[number % len(kept)], note.memory
                seed_one(d.s[0], luck + word(number))
                gains[step] += sign * play_on(d.s[0], d.m[0], action, LENGTH - step, p) / (10 * pairs)
        if step + 1 < LENGTH:
            luck = mix(word(seed) + word(2 * step + 1))
            if not follow(kept, found, t, note.action, notes[step + 1].memory.observation, luck):
                return False
            kept, found = found, kept
    return True


def make_planner(edition: str, look: Look) -> Planner:
    """A planner for one edition of CAGE-2."""
    return Planner(compile_tables(load_network(), edition), edition == "leaderboard", look)


def make_desk() -> Desk:
    """Room for decisions."""
    numbers = np.zeros(N_HOST_DECOY)
    return Desk(allocate(1), np.zeros(1, MEMORY_DTYPE), np.zeros(N_HOST_DECOY, np.int64), numbers, numbers.copy())


class Played(NamedTuple):
    """Games of a planner."""

    returns: np.ndarray  # (games,)
    notes: np.ndarray  # (games, LENGTH) of NOTE_DTYPE; of the expert alone, the last game's
    seconds: float  # of processor time
    last: np.ndarray  # (particles,): those after the last step of the last game
    state: Any  # the true state then


def play_games(planner: Planner, red: int, games: int, seed: int) -> Played:
    """Plays games against one attacker; equal seeds mean equal games, whatever the planner's settings."""
    states, memory, desk = allocate(1), np.zeros(1, MEMORY_DTYPE), make_desk()
    both = allocate(2 * planner.look.particles).reshape(2, planner.look.particles)
    returns, notes = np.empty(games), np.zeros((games if planner.look.rollouts else 1, LENGTH), NOTE_DTYPE)
    lucks = np.random.SeedSequence([seed, red]).generate_state(2 * games, np.uint64).reshape(2, games)
    began = time.process_time()
    for i in range(games):
        states["rng"], states["red"] = lucks[0, i], red
        returns[i] = play(states[0], memory[0], planner, both, desk, lucks[1, i], notes[i % len(notes)])
    return Played(returns, notes, time.process_time() - began, both[0], states[0])


def gains_of(planner: Planner, notes: np.ndarray, pairs: int, seed: int) -> np.ndarray:
    """The advantages (games, LENGTH) of the actions in ``notes``, in points; a game that could not be judged is nan."""
    whole = planner._replace(look=planner.look._replace(discount=1.0))
    gains, both, desk = np.zeros(notes.shape), allocate(2 * JURY).reshape(2, JURY), make_desk()
    for i, luck in enumerate(np.random.SeedSequence([seed, PURPOSE]).generate_state(len(notes), np.uint64)):
        if not advantages(notes[i], whole, both, pairs, luck, desk, gains[i]):
            gains[i] = np.nan
    return gains
