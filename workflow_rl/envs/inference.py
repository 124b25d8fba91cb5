"""What blue infers from its observations: in every step, and from the first look at an attack that it takes over.

The remembered column shows detected break-ins. B_line breaks in to one user host, then its Enterprise host, Enterprise2
and Op_Server0, so that the last of them implies the others; Meander scans all user hosts before it attacks one. As in
memory.py, the same source runs compiled and in an exported agent.
"""

from __future__ import annotations

from workflow_rl.engine.compiled import compiled
from workflow_rl.envs.memory import (
    ACTIVE,
    B_LINE,
    CLEANED,
    CLEANING,
    DEFENDER,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    EXPLOIT,
    LONG_AGO,
    LONGEST_IDLE,
    MEANDER,
    N_HOSTS,
    NOBODY,
    OP_HOST0,
    OP_HOST1,
    OP_HOST2,
    OP_SERVER0,
    SCAN,
    SLEEP,
    SOMEONE,
    STEPS_TOLD,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
    Memory,
    b_line_target,
    believed_hosts,
    forget,
    next_line,
    note_action,
    note_event,
    seen_activity,
    unclean_hosts,
)

ENTERPRISE = 1 << ENTERPRISE0 | 1 << ENTERPRISE1 | 1 << ENTERPRISE2
USERS = 1 << USER1 | 1 << USER2 | 1 << USER3 | 1 << USER4
NOT_B_LINE = 1 << DEFENDER | 1 << USER0 | 1 << OP_HOST0 | 1 << OP_HOST1 | 1 << OP_HOST2


@compiled
def remember(m: Memory, action: int, observation: int) -> None:
    """Updates the memory with blue's action (0 .. 144) and the packed observation that followed it."""
    m.observation = observation
    m.step = min(m.step + 1, STEPS_TOLD)
    m.fixed_age = min(m.fixed_age + 1, LONG_AGO)
    placed, fixed = note_action(m, action)
    active = observation & ACTIVE
    if active & (active - 1) and not m.noisy:
        hear_noise(m)
    host, activity = seen_activity(observation)
    if m.noisy and activity != EXPLOIT:
        host = NOBODY
    for i in range(N_HOSTS):
        m.idle[i] = 0 if i == host else min(m.idle[i] + 1, LONGEST_IDLE)
    for i in range(2):
        m.age[i] = min(m.age[i] + 1, LONG_AGO)
    if host != NOBODY:
        note_event(m, host, activity)
    users = m.scanned >> USER0
    if users & 1 or users & (users - 1):
        m.foe = MEANDER  # activity on User0 or two user hosts: B_line attacks only one
    elif m.step >= STEPS_TOLD and users:
        m.foe = B_LINE
    elif m.user == NOBODY and activity == EXPLOIT:  # taken over after an undetected break-in
        m.foe, m.user, m.incident = B_LINE, USER3 if host == ENTERPRISE0 else USER2, CLEANED
    if m.user > USER0 and not m.noisy:
        follow_b_line(m, host, activity, placed, fixed)
    if m.incident == CLEANING and unclean_hosts(m) == 0:
        m.incident = CLEANED


@compiled
def hear_noise(m: Memory) -> None:
    """Two hosts are active at once, so somebody else scans: forgets what scans have told and notes only exploits."""
    m.noisy, m.scanned = 1, believed_hosts(m.observation)
    m.foe, m.user, m.line, m.success, m.rooted = SOMEONE, NOBODY, 0, 0, 0
    for host in range(USER1, N_HOSTS):
        if (m.scanned >> host) & 1:
            m.user = host
    if m.incident != CLEANING:
        m.again = 0


@compiled
def follow_b_line(m: Memory, host: int, activity: int, placed: int, fixed: int) -> None:
    """Infers B_line's position in its program from this step; ``host`` is NOBODY if nothing was observed."""
    line, gateway = next_line(m), b_line_target(m.user)
    broke_in = 1 if activity == EXPLOIT else 0
    if host == m.user:
        m.line, m.success = (1, 1) if m.line == 0 else (2, broke_in)
    elif host == gateway:
        scan = not broke_in and (line == 4 or m.line == 2 or m.line == 3)
        m.line, m.success = (4, 1) if scan else (5, broke_in)
    elif host == ENTERPRISE2:
        m.line, m.success = (8, 1) if not broke_in and m.line <= 7 else (9, broke_in)
    elif host == OP_SERVER0:
        m.line, m.success = (11, 1) if not broke_in and m.line <= 10 else (12, broke_in)
    elif line == 4 and placed != gateway:
        m.line, m.success = 2, 0  # a scan would have been observed: B_line lost its user host and failed to retake it
    else:  # an escalation fails if the host has just been fixed; an exploit without a trace has failed
        target = m.user if line == 3 else gateway if line == 6 else ENTERPRISE2 if line == 10 else OP_SERVER0
        held = line == 3 or line == 6 or line == 10 or line >= 13
        exploit = line == 2 or line == 5 or line == 9 or line == 12
        lost = m.line == 14 and line == 13  # Impact has failed
        m.line, m.success = line, 0 if exploit or lost or (held and fixed == target) else 1
    if m.line == 4:
        m.rooted = 1


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
