"""The start of an episode: what the first observation tells of an attack that blue takes over.

The remembered column shows detected break-ins. B_line breaks in to one user host, then its Enterprise host, Enterprise2
and Op_Server0, so that the last of them implies the others; Meander scans all user hosts before it attacks one. As in
memory.py, the same source runs compiled and in an exported agent.
"""

from __future__ import annotations

import numpy as np  # noqa: F401 (an exported agent finds its place by this line)

from workflow_rl.engine.compiled import compiled
from workflow_rl.envs.memory import (
    B_LINE,
    CLEANING,
    DEFENDER,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    MEANDER,
    N_HOSTS,
    NOBODY,
    OP_HOST0,
    OP_HOST1,
    OP_HOST2,
    OP_SERVER0,
    SCAN,
    SLEEP,
    STEPS_TOLD,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
    Memory,
    b_line_target,
    believed_hosts,
    follow_b_line,
    forget,
    note_event,
    remember,
    seen_activity,
)

ENTERPRISE = 1 << ENTERPRISE0 | 1 << ENTERPRISE1 | 1 << ENTERPRISE2
USERS = 1 << USER1 | 1 << USER2 | 1 << USER3 | 1 << USER4
NOT_B_LINE = 1 << DEFENDER | 1 << USER0 | 1 << OP_HOST0 | 1 << OP_HOST1 | 1 << OP_HOST2


@compiled
def begin(m: Memory, observation: int) -> None:
    """Starts an episode; after a takeover, the first observation already shows the attack."""
    forget(m)
    if observation == 0:
        return
    believed = believed_hosts(observation)
    host, activity = seen_activity(observation)
    if believed == 0 and host >= USER0:
        remember(m, SLEEP, observation)
        return
    m.observation, m.step, m.incident = observation, STEPS_TOLD, CLEANING
    known = believed | 1 << host if host != NOBODY else believed
    if by_meander(known):
        infer_meander(m, believed, known)
    else:
        infer_b_line(m, believed, known)
    if host != NOBODY:
        if activity == SCAN:
            m.scanned &= ~(1 << host)
        note_event(m, host, activity)
        if m.foe == B_LINE:
            follow_b_line(m, host, activity, NOBODY, NOBODY)


@compiled
def by_meander(known: int) -> bool:
    """Are there hosts with traces of red that B_line would not have touched?"""
    users = known & USERS
    first, second = known & (1 << USER1 | 1 << USER2), known & (1 << USER3 | 1 << USER4)
    one, other = (known >> ENTERPRISE1) & 1 == 1, (known >> ENTERPRISE0) & 1 == 1
    apart = (first != 0 and other) or (second != 0 and one) or (one and other)
    return known & NOT_B_LINE != 0 or users & (users - 1) != 0 or apart


@compiled
def infer_meander(m: Memory, believed: int, known: int) -> None:
    """Meander: what it has scanned, and where it may have broken in without a trace."""
    m.foe, m.scanned = MEANDER, USERS | 1 << USER0 | believed
    for host in range(USER1, N_HOSTS):
        if (believed >> host) & 1:
            m.scanned |= 1 << b_line_target(host)
    if believed & ENTERPRISE:
        m.scanned |= ENTERPRISE | 1 << DEFENDER
    m.again = believed & ~(1 << DEFENDER | 1 << USER0)
    if known & (1 << OP_SERVER0):
        m.again |= 1 << ENTERPRISE2  # only there does red learn the address
        m.scanned |= 1 << OP_SERVER0
    if m.again & ENTERPRISE:
        m.again |= USERS  # it took its time, and one in twenty break-ins is not detected


@compiled
def infer_b_line(m: Memory, believed: int, known: int) -> None:
    """B_line: its user host, its position, and the hosts that it must have taken on its way."""
    gateway = ENTERPRISE0 if known & (1 << ENTERPRISE0 | 1 << USER3 | 1 << USER4) else ENTERPRISE1
    m.foe, m.user = B_LINE, USER3 if gateway == ENTERPRISE0 else USER2  # the likelier one of an undetected break-in
    unsure = 1 << USER3 | 1 << USER4 if gateway == ENTERPRISE0 else 1 << USER1 | 1 << USER2
    for host in range(USER1, N_HOSTS):
        if (known >> host) & 1:
            m.user, unsure = host, 1 << host
            m.scanned = unsure
    m.line, m.success, m.again = 3, 1, unsure
    if known & (1 << gateway | 1 << ENTERPRISE2 | 1 << OP_SERVER0):
        m.rooted = 1
    if (believed >> gateway) & 1 or known & (1 << ENTERPRISE2 | 1 << OP_SERVER0):
        m.again |= 1 << gateway
        m.line = 6
    if (believed >> ENTERPRISE2) & 1 or known & (1 << OP_SERVER0):
        m.again |= 1 << ENTERPRISE2
        m.line = 10
    if (believed >> OP_SERVER0) & 1:
        m.again |= 1 << OP_SERVER0
        m.line = 14
    m.scanned |= m.again & ~USERS
