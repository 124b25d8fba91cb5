"""A defender by rules: each has a name and a reason, the first that applies acts. Baseline, teacher and explanation.

It sees what every defender sees, through memory.py: neither the opponent's name nor the length of the episode. Only the
edition must be known, for a Restore breaks HarakaRCE in the leaderboard edition and red's port memory differs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.compiled import compiled
from workflow_rl.memory import (
    APACHE,
    B_LINE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    EXPLOIT,
    FEMITTER,
    FIRST_DECOY,
    HARAKA,
    LONGEST_IDLE,
    MEANDER,
    N_HOSTS,
    NOBODY,
    OP_HOST0,
    OP_HOST1,
    OP_HOST2,
    OP_SERVER0,
    REMOVE,
    RESTORE,
    SCAN,
    SLEEP,
    TOMCAT,
    USER1,
    USER2,
    USER3,
    USER4,
    Memory,
    b_line_target,
    next_decoy,
    next_line,
)


class Rule(NamedTuple):
    """Why the expert acts as it does."""

    name: str
    reason: str


RULES = (
    Rule("wait", "nothing to do that would not cost more than it saves"),
    Rule("opening", "decoys on User2 before anybody scans it: most attacks on it will then fail"),
    Rule("bait the way in", "from the scanned user host red goes on to this Enterprise host: decoys before its scan"),
    Rule("clean a server", "a break-in at Enterprise or Operational is undone before red can escalate"),
    Rule("silence after a hit", "an attack that looked like a scan and is followed by silence has worked"),
    Rule("unseen break-in", "where no decoy could have answered, what looks like a scan is an exploit that was not detected"),
    Rule("left alone", "an easy target that red has not touched for long is one that red holds"),
    Rule("red went on", "Enterprise2 is scanned only by a red that is privileged on the host before it"),
    Rule("kill the session", "a user session on a user host falls to Remove, which costs nothing"),
    Rule("take User2 back", "red must be privileged here; behind its decoys it will be held up for long"),
    Rule("spoil Haraka", "in this edition a Restore breaks HarakaRCE for good: the main way into this host"),
    Rule("keep as a target", "restored before the escalation the host stays a target on which red wastes its time"),
    Rule("clean a user host", "restored after the escalation, Meander never comes back to it"),
    Rule("bait the servers", "decoys before the first scan mislead Meander for the whole episode"),
)
(WAIT, OPENING, BAIT_WAY, CLEAN_SERVER, SILENCE, UNSEEN, ABSENT, WENT_ON, KILL, TAKE_BACK, SPOIL, KEEP, CLEAN_USER, BAIT_SERVERS) = (
    range(len(RULES))
)


@compiled
def advise(m: Memory, leaderboard: bool) -> tuple[int, int]:
    """The expert's action (0 .. 144) and the number of its rule."""
    if m.step == 0:
        return FIRST_DECOY + N_HOSTS * FEMITTER + USER2, OPENING
    if m.step == 1:
        return FIRST_DECOY + N_HOSTS * TOMCAT + USER2, OPENING
    if m.foe == MEANDER:
        return against_meander(m, leaderboard)
    if m.foe == B_LINE:
        return against_b_line(m, leaderboard)
    if leaderboard and m.user == USER3:
        return RESTORE + m.user, SPOIL
    if m.user != NOBODY and next_decoy(m, b_line_target(m.user)) != SLEEP:
        return next_decoy(m, b_line_target(m.user)), BAIT_WAY
    return SLEEP, WAIT


@compiled
def compromised(m: Memory, host: int) -> bool:
    """Does the host's remembered column say User or Privileged?"""
    believed: bool = (m.observation >> (4 * host + 3)) & 1 == 1
    return believed


@compiled
def just_seen(m: Memory, host: int) -> bool:
    """Was there activity on the host in the last step?"""
    seen: bool = m.host[0] == host and m.age[0] == 0
    return seen


@compiled
def against_b_line(m: Memory, leaderboard: bool) -> tuple[int, int]:
    """B_line walks from its user host to Enterprise0 or 1, Enterprise2 and Op_Server0; a failure sends it back."""
    user, gateway, line = m.user, b_line_target(m.user), next_line(m)
    for host in (OP_SERVER0, ENTERPRISE2, gateway):
        if compromised(m, host):
            return RESTORE + host, CLEAN_SERVER
    if (line == 9 or line == 10 or m.line == 8) and (m.fixed != gateway or m.fixed_age > 2):
        return RESTORE + gateway, WENT_ON
    hit = m.host[0] == gateway and m.activity[0] == SCAN and m.age[0] == 1 and m.host[1] == gateway
    if hit and gateway == ENTERPRISE1 and m.line == 2 and m.fixed_age > 1:
        return RESTORE + gateway, SILENCE
    restored = (m.restored >> user) & 1 == 1
    if leaderboard and user >= USER3 and not restored:
        return RESTORE + user, SPOIL
    broke_in = m.line == 2 and m.success
    if broke_in and restored:
        return REMOVE + user, KILL
    wanted = 1 << FEMITTER if gateway == ENTERPRISE1 else 1 << HARAKA | 1 << TOMCAT | 1 << APACHE
    remembered = leaderboard and m.bait[gateway] & wanted == wanted
    if line != 5 and not remembered and next_decoy(m, gateway) != SLEEP:
        return next_decoy(m, gateway), BAIT_WAY
    if m.line == 4 and (user == USER2 or (leaderboard and user == USER3)):
        return RESTORE + user, TAKE_BACK
    if broke_in:
        return REMOVE + user, KILL
    if next_decoy(m, ENTERPRISE2) != SLEEP:
        return next_decoy(m, ENTERPRISE2), BAIT_WAY
    return SLEEP, WAIT


@compiled
def against_meander(m: Memory, leaderboard: bool) -> tuple[int, int]:
    """Meander scans every host once, takes what it can, and returns only where an escalation failed."""
    for host in (OP_SERVER0, ENTERPRISE2, ENTERPRISE1, ENTERPRISE0, OP_HOST0, OP_HOST1, OP_HOST2):
        if compromised(m, host):
            return RESTORE + host, CLEAN_SERVER
    if compromised(m, USER2) and just_seen(m, USER2):
        if (m.scanned >> ENTERPRISE1) & 1 == 0:
            return REMOVE + USER2, KILL  # if it was in vain, red will go on to Enterprise1 and betray itself
        return RESTORE + USER2, KEEP
    if just_seen(m, ENTERPRISE1) and m.host[1] == USER2 and m.activity[1] == EXPLOIT and (m.removed >> USER2) & 1:
        return RESTORE + USER2, TAKE_BACK
    if leaderboard and just_seen(m, USER3) and m.activity[0] == EXPLOIT:
        if (m.restored >> USER3) & 1:
            return REMOVE + USER3, KILL
        return RESTORE + USER3, SPOIL
    for host in (ENTERPRISE1, ENTERPRISE2, USER2):
        if just_seen(m, host) and m.activity[0] == SCAN and (m.restored >> host) & 1 and m.decoys[host] == 0:
            return RESTORE + host, UNSEEN
    windows = m.host[0] == ENTERPRISE1 or m.host[0] == ENTERPRISE2
    loud = (m.decoys[USER2] or not (m.scanned >> USER2) & 1) and (m.decoys[ENTERPRISE0] or not (m.scanned >> ENTERPRISE0) & 1)
    if windows and (m.again >> m.host[0]) & 1 and m.activity[0] == SCAN and m.age[0] == (1 if loud else 2) and m.fixed_age > m.age[0]:
        return RESTORE + m.host[0], SILENCE
    for host in (USER2, USER3):
        if m.idle[host] == LONGEST_IDLE and (m.scanned >> host) & 1 and ((host == USER2 and m.decoys[host]) or (host == USER3 and leaderboard and (m.restored >> host) & 1)):
            return RESTORE + host, ABSENT
    for host in (USER2, ENTERPRISE1, ENTERPRISE0, ENTERPRISE2):
        if (m.scanned >> host) & 1 == 0 and next_decoy(m, host) != SLEEP and m.decoys[host] & 1 << APACHE == 0:
            return next_decoy(m, host), BAIT_SERVERS
    for host in (USER1, USER3, USER4, USER2):
        again = (m.again >> host) & 1 and host != USER2 and not (leaderboard and host == USER3)
        if (compromised(m, host) or again) and not just_seen(m, host):
            return RESTORE + host, CLEAN_USER
    return SLEEP, WAIT


@compiled
def _advise_all(memories: np.ndarray, leaderboard: bool, actions: np.ndarray, rules: np.ndarray) -> None:
    for i in range(len(memories)):
        actions[i], rules[i] = advise(memories[i], leaderboard)


def advice(memories: np.ndarray, leaderboard: bool) -> tuple[np.ndarray, np.ndarray]:
    """The expert's actions (0 .. 144) and the numbers of its rules for memories (n,)."""
    actions, rules = np.empty(len(memories), np.int64), np.empty(len(memories), np.int64)
    _advise_all(memories, leaderboard, actions, rules)
    return actions, rules
