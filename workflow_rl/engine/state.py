"""The whole environment in one record: in a network like CAGE-2 two cache lines, in a larger one as wide as it needs.

There is one text of the rules. Numba compiles it for each of the records below: sets of hosts have 16, 32 or 64 bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np

from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import RED_ACTIONS, SMALL, Room

State: TypeAlias = Any
"""A record of :func:`state_dtype`, as Numba sees it; rules change it in place."""

NOBODY = -1  # no host
RED_SLEEPS = RED_ACTIONS.index("Sleep")
FAILED, SUCCEEDED, UNKNOWN = 0, 1, 2  # what red learns about its action
NO_EXPLOIT = -1
# Result of an exploit: a session, a decoy answered, no suitable service listens, no route, the service cannot be
# exploited, red knows no port of the host. NO_RESULT: red did something else.
NO_RESULT, SESSION, DECOY_ANSWERED, NOTHING_THERE, UNROUTABLE, NOT_EXPLOITABLE, NO_OPTION = range(-1, 6)


@cache
def state_dtype(room: Room = SMALL) -> np.dtype:
    """The record of one environment.

    Signed but for the generator: Numba would turn a mixture of signed and unsigned numbers into floats. Large fields
    first, so that a small state fills exactly two cache lines.
    """
    return np.dtype([*_truth(room), *_knowledge(room), *_last_move(room)], align=True)


def _truth(room: Room) -> list[Any]:
    return [
        ("rng", np.uint64),  # this environment's own generator (chance.py); kept over a reset
        # what blue saw last: bit 4 * host + k is bit k of the host's four (observe.py); 16 hosts a word
        ("observation", np.int64, room.words),
        ("step", np.int32),  # steps played in this episode
        ("decoys", np.int16, room.hosts),  # set of decoys on each host; from SECOND_COPY on, of second copies
        ("ports", room.of_ports, room.hosts),  # ports of each host that red remembers; empty: never scanned
        # sets of hosts: where red is privileged, has user sessions that Remove kills or does not kill (never beside a
        # privileged one), left a file, and what blue restored at any time in this episode
        ("privileged", room.of_hosts),
        ("traced", room.of_hosts),
        ("untraced", room.of_hosts),
        ("malware", room.of_hosts),
        ("restored", room.of_hosts),
    ]


def _knowledge(room: Room) -> list[Any]:
    """What red knows: hosts whose address or name it knows; Meander: hosts scanned, exploited, escalated on, mapped."""
    return [
        ("addresses", room.of_hosts),
        ("names", room.of_hosts),
        ("scanned", room.of_hosts),
        ("exploited", room.of_hosts),
        ("escalated", room.of_hosts),
        ("mapped", room.of_hosts),
        ("subnets", room.of_subnets),  # set of subnets that red knows
        ("swept", room.of_subnets),
        # a program
        ("lines_done", room.of_lines),  # set of its lines executed in this episode
        ("line", room.of_line),  # counted over all programs
        ("picked", np.int8, room.draws),  # hosts that it has drawn
        ("red", np.int8),  # number of the red agent; kept over a reset
        ("green_acts", np.int8),  # kept over a reset
        ("service_down", np.int8),
    ]


def _last_move(room: Room) -> list[Any]:
    return [
        # red's last action; targets are hosts, for a sweep subnets
        ("red_action", np.int8),
        ("red_target", np.int8),
        ("red_success", np.int8),
        ("scan_empty", np.int8),
        # what happened in the last step, for replay and display; no rule reads these
        ("exploit", np.int8),
        ("exploit_result", np.int8),
        ("detected", np.int8),  # -1: not drawn
        ("irregular", np.int8),  # an outcome was forced that the rules do not allow here (chance.py)
        ("candidates", room.of_hosts),  # hosts from which red picked its target
        ("repaired", room.of_hosts),  # hosts that were compromised before blue's action and not after it
    ]


def allocate(n_envs: int, room: Room = SMALL) -> np.ndarray:
    """Returns ``n_envs`` states, not yet reset; shape (n_envs,)."""
    return np.zeros(n_envs, state_dtype(room))


@compiled
def reset_one(s: State, t: Any) -> None:
    """Start of an episode; the generator, the red agent and the kind of green agent are kept."""
    home = 1 << t.foothold
    s.step = 0
    for i in range(s.observation.shape[0]):
        s.observation[i] = 0
    s.privileged, s.traced, s.untraced, s.malware, s.restored = home, 0, 0, 0, 0
    s.service_down = 0
    for host in range(s.decoys.shape[0]):
        s.decoys[host] = 0
        s.ports[host] = 0
    s.red_action, s.red_target, s.red_success, s.scan_empty = RED_SLEEPS, NOBODY, UNKNOWN, 0
    s.line, s.lines_done = t.first_line[s.red], 0
    for i in range(s.picked.shape[0]):
        s.picked[i] = NOBODY
    s.addresses, s.names = home, home
    s.scanned, s.exploited, s.escalated, s.mapped = 0, 0, 0, 0
    s.subnets, s.swept = 1 << t.subnet[t.foothold], 0
    s.exploit, s.exploit_result, s.detected, s.candidates, s.irregular = NO_EXPLOIT, NO_RESULT, -1, 0, 0
    s.repaired = 0


@compiled
def sessions(s: State) -> int:
    """Hosts on which red holds a session of any level."""
    return s.privileged | s.traced | s.untraced


@compiled
def compromised_hosts(s: State, t: Any) -> int:
    """Compromised hosts: those with any red session, except its permanent foothold."""
    return sessions(s) & ~(1 << t.foothold)
