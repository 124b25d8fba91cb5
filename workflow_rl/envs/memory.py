"""The memory of a defender: one small record per environment, derived only from blue's observations and actions.

This file has the record, what is noted in it, and its bits; inference.py updates it in every step.

Nothing here uses the true state, the opponent's name or the length of the episode. The same source runs compiled in the
rollout and as plain Python in an exported agent (export.py), so it must import nothing but numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workflow_rl.engine.compiled import compiled

Memory = Any
"""A record of :data:`MEMORY_DTYPE`; the functions change it in place."""

N_HOSTS = 13
DEFENDER, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_HOST0, OP_HOST1, OP_HOST2, OP_SERVER0 = range(8)
USER0, USER1, USER2, USER3, USER4 = range(8, N_HOSTS)
APACHE, FEMITTER, HARAKA, SMSS, SSHD, SVCHOST, TOMCAT, VSFTPD = range(8)
SLEEP, ANALYSE, REMOVE, FIRST_DECOY, RESTORE = 0, 2, 15, 28, 132  # the first action of each verb
NOBODY = -1
QUIET, SCAN, EXPLOIT = 0, 1, 3  # activity of a host, by its two bits
SOMEONE, B_LINE, MEANDER = 0, 1, 2  # the inferred attacker
NO_INCIDENT, CLEANING, CLEANED = 0, 1, 2
LONG_AGO = 3  # ages are capped here
LONGEST_IDLE = 26  # idle times of hosts are capped here
IDLE_TOLD = (8, 16, LONGEST_IDLE)

# Bit set of the decoys that fit each host, and the useful ones in the order in which they help most.
FITTING = np.array([197, 197, 2, 2, 197, 197, 197, 197, 105, 105, 83, 144, 128], np.int64)
_LINUX, _WINDOWS_SERVER, _USER = (HARAKA, TOMCAT, APACHE), (FEMITTER,), (TOMCAT, APACHE, SMSS, SVCHOST)
_USEFUL = (
    _LINUX, _LINUX, _WINDOWS_SERVER, _WINDOWS_SERVER, _LINUX, _LINUX, _LINUX, _LINUX, _USER, _USER,
    (FEMITTER, TOMCAT, APACHE, SSHD), (SSHD,), (),
)  # fmt: skip
MOST_DECOYS = 4
USEFUL = np.array([[*row, *[NOBODY] * (MOST_DECOYS - len(row))] for row in _USEFUL], np.int64)

ACTIVE = sum(1 << 4 * host for host in range(N_HOSTS))  # the bits of an observation that show activity
LOOKED = 1 << ENTERPRISE0 | 1 << ENTERPRISE1 | 1 << ENTERPRISE2 | 1 << OP_SERVER0  # analysed in turn amid noise
ANY_HOST = (1 << N_HOSTS) - 1 - (1 << DEFENDER) - (1 << USER0)

# B_line's program: the next line after a success and after a failure.
AFTER_SUCCESS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14], np.int64)
AFTER_FAILURE = np.array([0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13], np.int64)
N_LINES = 15

MEMORY_DTYPE = np.dtype(
    [
        ("observation", np.int64),  # the last packed observation
        ("step", np.int64),  # steps played, capped at STEPS_TOLD
        ("decoys", np.int64, N_HOSTS),  # set of decoys on each host
        ("bait", np.int64, N_HOSTS),  # set of decoys at the last scan of each host
        ("scanned", np.int64),  # set of hosts with any activity so far; amid noise: with an exploit
        # set of hosts that were active again since their last Restore or an Analyse that found nothing; in an incident
        # also those that may be held, amid noise those that blue has analysed in this round
        ("again", np.int64),
        ("idle", np.int64, N_HOSTS),  # steps since the last activity on each host or its Restore, capped
        ("restored", np.int64),  # set of hosts restored so far
        ("removed", np.int64),  # set of hosts with a Remove since their last exploit
        ("host", np.int64, 2),  # hosts of the last two events, newest first
        ("activity", np.int64, 2),  # their activities
        ("age", np.int64, 2),  # steps since then
        ("fixed", np.int64),  # host of the last Remove or Restore
        ("fixed_age", np.int64),  # steps since then
        ("foe", np.int64),  # SOMEONE, B_LINE or MEANDER
        ("user", np.int64),  # the user host that was scanned first
        ("line", np.int64),  # against B_line: the line that it has just executed
        ("success", np.int64),  # whether that line apparently succeeded
        ("rooted", np.int64),  # B_line moved on from its user host, so it must be privileged there
        ("noisy", np.int64),  # somebody else is active: scans say nothing about red
        ("incident", np.int64),  # whether blue took over an attack (inference.py): NO_INCIDENT, CLEANING or CLEANED
    ],
    align=True,
)
FIRST_BAIT = 2 * N_HOSTS + 1  # actions of the host-decoy view: Sleep; Analyse, Remove, a decoy, Restore of each host
N_HOST_DECOY = 4 * N_HOSTS + 1
STEPS_TOLD = 3  # the defender knows the time only in the first steps
N_DECOY_BITS = int(sum(len(row) for row in _USEFUL))
OBSERVATION_BITS = 52
WORD = 64
N_WORDS, SHORT_WORDS = 4, 2  # words of the whole and of the short memory
SMALL_BITS = OBSERVATION_BITS + 2 + N_LINES + 1 + 2 * 3
N_BITS = OBSERVATION_BITS + N_DECOY_BITS + 6 * N_HOSTS + 2 * (N_HOSTS + 1 + LONG_AGO + 1) + N_HOSTS + LONG_AGO + 2
N_BITS += N_LINES + 1 + STEPS_TOLD + 2 * len(IDLE_TOLD) + 2


@compiled
def forget(m: Memory) -> None:
    """Clears the memory at the start of an episode."""
    m.observation, m.step = 0, 0
    for host in range(N_HOSTS):
        m.decoys[host] = 0
        m.bait[host] = 0
        m.idle[host] = 0
    m.scanned, m.again, m.restored, m.removed = 0, 0, 0, 0
    for i in range(2):
        m.host[i], m.activity[i], m.age[i] = NOBODY, QUIET, LONG_AGO
    m.fixed, m.fixed_age = NOBODY, LONG_AGO
    m.foe, m.user, m.line, m.success, m.rooted = SOMEONE, NOBODY, 0, 0, 0
    m.noisy, m.incident = 0, NO_INCIDENT


@compiled
def believed_hosts(observation: int) -> int:
    """Set of the hosts to which red has user or privileged access, as far as blue has seen."""
    believed = 0
    for host in range(N_HOSTS):
        believed |= ((observation >> (4 * host + 3)) & 1) << host
    return believed


@compiled
def unclean_hosts(m: Memory) -> int:
    """In an incident: set of the hosts that red may hold, but for those where it does no harm."""
    unclean: int = (m.again | believed_hosts(m.observation)) & ANY_HOST
    return unclean


@compiled
def note_action(m: Memory, action: int) -> tuple[int, int]:
    """Records blue's action; returns the host on which a decoy was placed and the host that was fixed."""
    if action < ANALYSE:
        return NOBODY, NOBODY
    host = (action - ANALYSE) % N_HOSTS
    here = 1 << host
    if action >= RESTORE:
        m.decoys[host] = 0
        m.idle[host] = 0
        m.restored |= here
        m.removed &= ~here
        m.again &= ~here
        m.rooted = 0 if host == m.user else m.rooted
    elif action >= FIRST_DECOY:
        decoy = (action - FIRST_DECOY) // N_HOSTS
        if not fits(m, host, decoy):
            return NOBODY, NOBODY
        m.decoys[host] |= 1 << decoy
        return host, NOBODY
    elif action >= REMOVE:
        m.removed |= here
    else:
        if m.noisy and m.incident != CLEANING:
            m.again = (m.again | here) & (0 if (m.again | here) & LOOKED == LOOKED else -1)
        elif (m.observation >> (4 * host + 3)) & 1 == 0:
            m.again &= ~here
        return NOBODY, NOBODY
    m.fixed, m.fixed_age = host, 0
    return NOBODY, host


@compiled
def fits(m: Memory, host: int, decoy: int) -> bool:
    """Can the decoy be placed on the host?"""
    there = m.decoys[host]
    if (FITTING[host] >> decoy) & 1 == 0:
        return False
    if decoy == APACHE and (there >> VSFTPD) & 1:
        return False
    return decoy == VSFTPD or (there >> decoy) & 1 == 0


@compiled
def next_decoy(m: Memory, host: int) -> int:
    """The action that places the most useful missing decoy on the host; Sleep if none is missing."""
    for i in range(MOST_DECOYS):
        decoy = USEFUL[host, i]
        if decoy != NOBODY and fits(m, host, decoy):
            action: int = FIRST_DECOY + N_HOSTS * decoy + host
            return action
    return SLEEP


@compiled
def full_action(m: Memory, action: int) -> int:
    """The action (0 .. 144) that an action of the host-decoy view stands for, given the memory."""
    host = (action - 1) % N_HOSTS
    if action >= FIRST_BAIT + N_HOSTS:
        return RESTORE + host
    if action >= FIRST_BAIT:
        return next_decoy(m, host)
    if action > N_HOSTS:
        return REMOVE + host
    return ANALYSE + host if action else SLEEP


@compiled
def view_action(action: int) -> int:
    """The action of the host-decoy view that stands for an action (0 .. 144)."""
    if action < ANALYSE:
        return 0
    host = (action - ANALYSE) % N_HOSTS
    verb = 3 if action >= RESTORE else 2 if action >= FIRST_DECOY else 1 if action >= REMOVE else 0
    return 1 + verb * N_HOSTS + host


@compiled
def seen_activity(observation: int) -> tuple[int, int]:
    """The active host and its activity; of several (a green agent scans too), the first exploit or the last scan."""
    host, activity = NOBODY, QUIET
    for i in range(N_HOSTS):
        seen = (observation >> (4 * i)) & EXPLOIT
        if seen and activity != EXPLOIT:
            host, activity = i, seen
    return host, activity


@compiled
def note_event(m: Memory, host: int, activity: int) -> None:
    """Records activity on a host."""
    here = 1 << host
    m.host[1], m.activity[1], m.age[1] = m.host[0], m.activity[0], m.age[0]
    m.host[0], m.activity[0], m.age[0] = host, activity, 0
    if not m.noisy:
        m.again |= m.scanned & here
    m.scanned |= here
    if activity == EXPLOIT:
        m.removed &= ~here
    else:
        m.bait[host] = m.decoys[host]
    if host >= USER0 and (m.user == NOBODY or (m.scanned >> m.user) & 1 == 0):
        m.user = host


@compiled
def b_line_target(user: int) -> int:
    """The Enterprise host that B_line attacks from its user host."""
    return ENTERPRISE1 if user <= USER2 else ENTERPRISE0


@compiled
def next_line(m: Memory) -> int:
    """The line that B_line will apparently execute next."""
    line: int = AFTER_SUCCESS[m.line] if m.success else AFTER_FAILURE[m.line]
    return line


@compiled
def put(words: np.ndarray, at: int, value: int) -> None:
    """Sets bit ``at`` of the words if ``value`` is not 0."""
    if value:
        bit = int(at)  # in an exported agent words are integers of any size, which numbers of numpy would overflow
        words[bit >> 6] |= 1 << (bit & 63)


@compiled
def put_set(words: np.ndarray, at: int, members: int) -> int:
    """Writes a set of hosts as one bit each; returns the position of the next bit."""
    for host in range(N_HOSTS):
        put(words, at + host, (members >> host) & 1)
    return at + N_HOSTS


@compiled
def write_bits(m: Memory, words: np.ndarray) -> None:
    """Writes the memory as the bits that a policy observes: the observation in word 0, the rest in 64-bit words.

    Two words hold the short memory, whose word 1 has the hosts that blue restored in this episode.
    """
    words[:] = 0
    words[0] = m.observation
    if len(words) == SHORT_WORDS:
        words[1] = m.restored
        return
    at = WORD
    bait, much = 0, 0
    for host in range(N_HOSTS):
        known, number = m.bait[host], 0
        for i in range(MOST_DECOYS):
            decoy = USEFUL[host, i]
            if decoy != NOBODY:
                put(words, at, (m.decoys[host] >> decoy) & 1)
                number += (known >> decoy) & 1
                at += 1
        bait |= 1 << host if number else 0
        much |= 1 << host if number >= 3 else 0
    for members in (bait, much, m.scanned, m.again, m.restored, m.removed):
        at = put_set(words, at, members)
    for i in range(2):
        at = put_set(words, at, 1 << m.host[i] if m.host[i] != NOBODY else 0)
        put(words, at, m.activity[i] == EXPLOIT)
        put(words, at + 1 + m.age[i], m.host[i] != NOBODY)
        at += 2 + LONG_AGO
    if m.fixed_age < LONG_AGO:
        put(words, at + m.fixed, 1)
        put(words, at + N_HOSTS + m.fixed_age, 1)
    at += N_HOSTS + LONG_AGO
    put(words, at, m.foe == B_LINE)
    put(words, at + 1, m.foe == MEANDER)
    if m.foe != MEANDER and m.user > USER0:
        put(words, at + 2 + next_line(m), 1)
        put(words, at + 2 + N_LINES, m.rooted)
    at += 3 + N_LINES
    if m.step < STEPS_TOLD or m.incident == CLEANING:  # no incident begins in the first steps
        put(words, at + (0 if m.incident else m.step), 1)
    at += STEPS_TOLD
    for host in (USER2, USER3):  # easy targets: if they have been idle for long, red controls them
        for limit in IDLE_TOLD:
            put(words, at, m.foe == MEANDER and (m.scanned >> host) & 1 and m.idle[host] >= limit)
            at += 1
    put(words, at, m.noisy)
    put(words, at + 1, m.incident)


@compiled
def write_small(m: Memory, words: np.ndarray) -> None:
    """Writes the small memory: the observation in word 0, and in word 1 the inferred attacker and B_line's next move.

    Unless the attacker is Meander: the line of its program that B_line will execute next, whether it is privileged on
    its user host, and of the three hosts on its way whether they have all useful decoys, and had one when scanned.
    """
    words[:] = 0
    words[0] = m.observation
    put(words, WORD, m.foe == B_LINE)
    put(words, WORD + 1, m.foe == MEANDER)
    if m.foe != MEANDER and m.user > USER0:
        at = WORD + 2
        put(words, at + next_line(m), 1)
        put(words, at + N_LINES, m.rooted)
        at += N_LINES + 1
        for host in (m.user, b_line_target(m.user), ENTERPRISE2):
            put(words, at, next_decoy(m, host) == SLEEP)
            put(words, at + 1, m.bait[host] != 0)
            at += 2
