"""The whole environment in two cache lines: one record of :data:`STATE_DTYPE` per environment."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import HOSTS, RED_ACTIONS, RED_AGENTS

State: TypeAlias = Any
"""A record of :data:`STATE_DTYPE`, as Numba sees it; rules change it in place."""

BLINE, MEANDER, SLEEPER = (RED_AGENTS.index(name) for name in ("bline", "meander", "sleep"))
NOBODY = -1  # no host
RED_SLEEPS = RED_ACTIONS.index("Sleep")
FAILED, SUCCEEDED, UNKNOWN = 0, 1, 2  # what red learns about its action
NO_EXPLOIT = -1
# Result of an exploit: a session, a decoy answered, no suitable service listens, no route, the service cannot be
# exploited, red knows no port of the host. NO_RESULT: red did something else.
NO_RESULT, SESSION, DECOY_ANSWERED, NOTHING_THERE, UNROUTABLE, NOT_EXPLOITABLE, NO_OPTION = range(-1, 6)

# Signed but for the generator: Numba would turn a mixture of signed and unsigned numbers into floats. Sets of hosts and
# ports are 16-bit masks. Large fields first, so that a state fills exactly two cache lines.
STATE_DTYPE = np.dtype(
    [
        ("rng", np.uint64),  # this environment's own generator (chance.py); kept over a reset
        ("observation", np.int64),  # what blue saw last: bit 4 * host + k is bit k of the host's four (observe.py)
        ("step", np.int32),  # steps played in this episode
        ("decoys", np.int16, HOSTS),  # set of decoys on each host
        ("ports", np.int16, HOSTS),  # set of ports of each host that red remembers; empty: never scanned
        # sets of hosts: where red is privileged, has user sessions that Remove kills or does not kill (never beside a
        # privileged one), left a file, and what blue restored at any time in this episode
        ("privileged", np.int16),
        ("traced", np.int16),
        ("untraced", np.int16),
        ("malware", np.int16),
        ("restored", np.int16),
        # Meander: hosts whose address or name it knows, that it scanned, exploited, escalated on, mapped
        ("addresses", np.int16),
        ("names", np.int16),
        ("scanned", np.int16),
        ("exploited", np.int16),
        ("escalated", np.int16),
        ("mapped", np.int16),
        ("subnets", np.int8),  # set of subnets that Meander knows
        ("swept", np.int8),
        # B_line
        ("lines_done", np.int16),  # set of program lines executed in this episode
        ("line", np.int8),
        ("user", np.int8),  # its user host
        ("red", np.int8),  # BLINE, MEANDER or SLEEPER; kept over a reset
        ("green_acts", np.int8),  # kept over a reset
        ("service_down", np.int8),
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
        ("candidates", np.int16),  # hosts from which red picked its target
        ("repaired", np.int16),  # hosts that were compromised before blue's action and not after it
    ],
    align=True,
)


def allocate(n_envs: int) -> np.ndarray:
    """Returns ``n_envs`` states, not yet reset; shape (n_envs,)."""
    return np.zeros(n_envs, STATE_DTYPE)


@compiled
def reset_one(s: State, t: Any) -> None:
    """Start of an episode; the generator, the red agent and the kind of green agent are kept."""
    home = 1 << t.foothold
    s.step = 0
    s.observation = 0
    s.privileged, s.traced, s.untraced, s.malware, s.restored = home, 0, 0, 0, 0
    s.service_down = 0
    for host in range(HOSTS):
        s.decoys[host] = 0
        s.ports[host] = 0
    s.red_action, s.red_target, s.red_success, s.scan_empty = RED_SLEEPS, NOBODY, UNKNOWN, 0
    s.line, s.lines_done, s.user = 0, 0, NOBODY
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
