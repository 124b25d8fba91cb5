"""Chance: the draws of one step, and the only code that turns random numbers into them.

A draw is either a *number* (0 .. 2**32 - 1, uniform), which the rules map to an outcome, or a *forced outcome*. Forcing
the outcomes that were recorded in another simulator replays its game exactly.

    draw            a number means                                    forced outcomes
    pick            index into red's candidates                       the host
    exploit         the best option, or which of the others           the exploit
    detected        below the threshold: detected                     0 or 1
    green           sleep, or index into the hosts green scans        the host, or GREEN_SLEEPS

The rules mark the step ``irregular`` when they need a draw whose forced outcome is impossible.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from workflow_rl.engine.bits import count, has, lowest, nth, wide, word
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.state import State
from workflow_rl.engine.tables import DRAW_RANGE, Tables

ABSENT = 200  # forced: no such draw was recorded in this step
GREEN_SLEEPS = 201
NOT_FORCED = -1


class Draw(IntEnum):
    """Columns of an array of draws, shape (n_envs, 4)."""

    PICK = 0
    EXPLOIT = 1
    DETECTED = 2
    GREEN = 3


class Chance(NamedTuple):
    """The draws of one environment in one step."""

    pick: int
    exploit: int
    detected: int
    green: int


def force(outcome: Any) -> Any:
    """The draw that has ``outcome``; also for arrays."""
    return -1 - outcome


@compiled
def forced(draw: int) -> int:
    """The outcome that ``draw`` forces, or NOT_FORCED."""
    return -1 - draw if draw < 0 else NOT_FORCED


@compiled
def mix(z: int) -> int:
    """The finaliser of splitmix64: scatters neighbouring numbers over all 64 bits."""
    z = (z ^ (z >> word(30))) * word(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> word(27))) * word(0x94D049BB133111EB)
    return z ^ (z >> word(31))


@compiled
def seed_one(s: State, seed: int) -> None:
    """Starts the environment's generator; equal seeds give equal games."""
    s.rng = mix(word(seed) + word(0x9E3779B97F4A7C15))


@compiled
def sample(s: State) -> Chance:
    """Draws the four numbers of one step from the environment's generator, used or not."""
    first = s.rng + word(0x9E3779B97F4A7C15)
    second = first + word(0x9E3779B97F4A7C15)
    s.rng = second
    a, b = mix(first), mix(second)
    low, half = word(DRAW_RANGE - 1), word(32)
    return Chance(wide(a >> half), wide(a & low), wide(b >> half), wide(b & low))


@compiled
def pick_member(s: State, candidates: int, draw: int) -> int:
    """A member of ``candidates`` (not empty), all equally likely."""
    host = forced(draw)
    if host == NOT_FORCED:
        return nth(candidates, (draw * count(candidates)) >> 32)
    if host == ABSENT or not has(candidates, host):
        s.irregular = 1
        return lowest(candidates)
    return host


@compiled
def pick_exploit(s: State, t: Tables, options: int, draw: int) -> int:
    """One of the exploits in ``options`` (not empty): the best with probability ``best_exploit``, else any other."""
    choice = forced(draw)
    if choice != NOT_FORCED:
        if choice == ABSENT or not has(options, choice):
            s.irregular = 1
            return lowest(options)
        return choice
    others = count(options) - 1
    if others == 0 or draw < t.best_exploit:
        return lowest(options)
    return nth(options, 1 + (draw - t.best_exploit) * others // (DRAW_RANGE - t.best_exploit))


@compiled
def is_detected(s: State, t: Tables, draw: int) -> bool:
    """Is a new shell session reported to blue?"""
    outcome = forced(draw)
    if outcome == NOT_FORCED:
        return draw < t.detected
    if outcome > 1:
        s.irregular = 1
    return outcome == 1


@compiled
def pick_green(s: State, t: Tables, draw: int) -> int:
    """The host that an active green agent scans, or GREEN_SLEEPS."""
    host = forced(draw)
    if host == NOT_FORCED:
        if draw < t.green_sleeps:
            return GREEN_SLEEPS
        members = count(t.green_hosts)
        return nth(t.green_hosts, (draw - t.green_sleeps) * members // (DRAW_RANGE - t.green_sleeps))
    if host != GREEN_SLEEPS and (host == ABSENT or not has(t.green_hosts, host)):
        s.irregular = 1
        return GREEN_SLEEPS
    return host
