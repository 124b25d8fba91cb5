"""A rule-based defender. Every rule has a name and a reason, and the first rule that applies chooses the action.

It observes what every defender observes (memory.py), neither the opponent's name nor the length of the episode. It must
know the edition: in the leaderboard edition a Restore breaks HarakaRCE, and red remembers ports differently.

It can be told a repair order. Then it fixes no host while it has reason to believe that red holds one of higher
priority.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.compiled import compiled
from workflow_rl.envs.memory import (
    ANALYSE,
    APACHE,
    B_LINE,
    CLEANING,
    DEFENDER,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    EXPLOIT,
    FEMITTER,
    FIRST_DECOY,
    HARAKA,
    IDLE_TOLD,
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
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
    Memory,
    b_line_target,
    next_decoy,
    next_line,
    unclean_hosts,
)


class Rule(NamedTuple):
    """The name of a rule and the reason for it."""

    name: str
    reason: str


RULES = (
    Rule("wait", "every other action would cost more than it saves"),
    Rule("opening", "decoys on User2 before it is scanned make most attacks on it fail"),
    Rule("bait the way in", "red will attack this Enterprise host next, so it gets decoys before it is scanned"),
    Rule("clean a server", "Restore undoes a break-in at Enterprise or Operational before red can escalate"),
    Rule("silence after a hit", "an attack that looked like a scan and is followed by silence has succeeded"),
    Rule("unseen break-in", "on a host without decoys a second scan is an undetected exploit"),
    Rule("left alone", "red no longer touches this easy target, so it holds it: the Remove has failed"),
    Rule("red went on", "red scans Enterprise2 only when it is privileged on the host before it"),
    Rule("kill the session", "Remove ends a user session on a user host and costs nothing"),
    Rule("take it back", "red must be privileged here, and losing the host delays it for a long time"),
    Rule("spoil Haraka", "in this edition a Restore permanently breaks HarakaRCE, the main way into this host"),
    Rule("keep as a target", "restored before the escalation, the host remains a target on which red wastes time"),
    Rule("clean a user host", "restored after the escalation, the host is never attacked by Meander again"),
    Rule("bait the servers", "decoys placed before the first scan mislead Meander for the whole episode"),
    Rule("look after a hit", "a hit on a decoy may be an undetected break-in; Analyse shows the files that it leaves"),
    Rule("first things first", "the order demands this host before the one that needs a fix most"),
    Rule("clean up", "blue took over an attack, and red seems to hold this host"),
    Rule("let it pass", "B_line would attack this host again at once; restored after the escalation, it moves on"),
    Rule("look around", "somebody else scans, so that red may pass unnoticed; the files that it leaves are evidence"),
)
WAIT, OPENING, BAIT_WAY, CLEAN_SERVER, SILENCE, UNSEEN, LEFT_ALONE, WENT_ON, KILL, TAKE_BACK = range(10)
SPOIL, KEEP, CLEAN_USER, BAIT_SERVERS, LOOK_AFTER, FIRST_THINGS, CLEAN_UP, LET_GO, LOOK_AROUND = range(10, len(RULES))
# Numbers of the unit types in an order, and the type of each host.
ENTERPRISE_TYPE, OP_SERVER_TYPE, OP_HOST_TYPE, USER_TYPE = range(1, 5)
TYPES = np.array([0, 1, 1, 1, 3, 3, 3, 2, 4, 4, 4, 4, 4], np.int64)
DEAREST = np.array([OP_SERVER_TYPE, ENTERPRISE_TYPE, USER_TYPE, OP_HOST_TYPE])  # what costs most comes first
NO_ORDER = np.zeros(0, np.int64)
MAIN_BAIT = 1 << HARAKA | 1 << TOMCAT | 1 << APACHE


@compiled
def advise(m: Memory, leaderboard: bool, order: np.ndarray) -> tuple[int, int]:
    """The expert's action (0 .. 144) and the index of its rule.

    ``order`` are unit types, highest priority first; empty: no order.
    """
    if m.incident == CLEANING:
        action, rule = clean_up(m, order if len(order) else DEAREST)
        if rule == CLEAN_UP:
            return action, rule
    action, rule = choose(m, leaderboard)
    kept = obey(m, action, order, leaderboard)
    if kept != action:
        return kept, FIRST_THINGS
    return action, rule


@compiled
def obey(m: Memory, action: int, order: np.ndarray, leaderboard: bool) -> int:
    """The action, or instead of a fix out of order a Restore of what red seems to hold and comes first."""
    if action >= RESTORE or REMOVE <= action < FIRST_DECOY:
        due = due_host(m, order, TYPES[(action - ANALYSE) % N_HOSTS], leaderboard)
        return RESTORE + due if due != NOBODY else action
    return action


@compiled
def choose(m: Memory, leaderboard: bool) -> tuple[int, int]:
    """The action and the rule of the expert without an order."""
    if m.step <= 1:
        return FIRST_DECOY + N_HOSTS * (TOMCAT if m.step else FEMITTER) + USER2, OPENING
    if m.noisy:
        return amid_noise(m)
    if m.foe == MEANDER:
        return against_meander(m, leaderboard)
    if m.foe == B_LINE:
        return behind_b_line(m) if m.incident else against_b_line(m, leaderboard)
    if leaderboard and m.user == USER3:
        return RESTORE + USER3, SPOIL
    if m.user != NOBODY and next_decoy(m, b_line_target(m.user)) != SLEEP:
        return next_decoy(m, b_line_target(m.user)), BAIT_WAY
    return SLEEP, WAIT


@compiled
def clean_up(m: Memory, order: np.ndarray) -> tuple[int, int]:
    """After a takeover: restores what red seems to hold, in order."""
    unclean = unclean_hosts(m)
    for unit_type in order:
        for host in range(N_HOSTS - 1, DEFENDER, -1):
            if TYPES[host] == unit_type and holds(unclean, host):
                return RESTORE + host, CLEAN_UP
    return SLEEP, WAIT


@compiled
def due_host(m: Memory, order: np.ndarray, fixed: int, leaderboard: bool) -> int:
    """A host that red seems to hold and that has a higher priority than type ``fixed``, or NOBODY."""
    for unit_type in order:
        if unit_type == fixed:
            return NOBODY
        for host in range(ENTERPRISE0, N_HOSTS):
            # after a Remove, Analyse only finds old files
            left = m.noisy == 1 or (leaderboard and host == USER3 and m.idle[host] >= IDLE_TOLD[0])
            rooted = (m.foe == B_LINE and host == m.user and m.rooted == 1) or (left and holds(m.removed, host))
            if TYPES[host] == unit_type and host != USER0 and (rooted or compromised(m, host)):
                return host
    return NOBODY


@compiled
def holds(members: int, host: int) -> bool:
    """Is the host in the set?"""
    return (members >> host) & 1 == 1


@compiled
def compromised(m: Memory, host: int) -> bool:
    """Does blue believe that red has user or privileged access to the host?"""
    return holds(m.observation, 4 * host + 3)


@compiled
def just_seen(m: Memory, host: int, activity: int) -> bool:
    """Did the host show this activity in the last step?"""
    seen: bool = m.host[0] == host and m.age[0] == 0 and m.activity[0] == activity
    return seen


@compiled
def against_b_line(m: Memory, leaderboard: bool) -> tuple[int, int]:
    """B_line moves from its user host to Enterprise0 or 1, Enterprise2 and Op_Server0; a failure sends it back."""
    user, gateway, line = m.user, b_line_target(m.user), next_line(m)
    for host in (OP_SERVER0, ENTERPRISE2, gateway):
        if compromised(m, host):
            return RESTORE + host, CLEAN_SERVER
    if (line == 9 or line == 10 or m.line == 8) and (m.fixed != gateway or m.fixed_age > 2):
        return RESTORE + gateway, WENT_ON
    hit = m.host[0] == gateway and m.activity[0] == SCAN and m.age[0] == 1 and m.host[1] == gateway
    if hit and gateway == ENTERPRISE1 and m.line == 2 and m.fixed_age > 1:
        return RESTORE + gateway, SILENCE
    if leaderboard and user >= USER3 and not holds(m.restored, user):
        return RESTORE + user, SPOIL
    broke_in = m.line == 2 and m.success == 1
    if broke_in and holds(m.restored, user):
        return REMOVE + user, KILL
    bait = 1 << FEMITTER if gateway == ENTERPRISE1 else MAIN_BAIT
    remembered = leaderboard and m.bait[gateway] & bait == bait
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
def behind_b_line(m: Memory) -> tuple[int, int]:
    """After a takeover B_line remembers ports without decoys, and repeats an attack until it fails.

    Remove ends most sessions on Windows servers for nothing; if it did not, B_line gives itself away by moving on.
    """
    gateway, line = b_line_target(m.user), next_line(m)
    if m.host[0] == OP_SERVER0 and m.age[0] <= 1:
        restored = m.fixed == ENTERPRISE2 and m.fixed_age <= 1 and not holds(m.removed, ENTERPRISE2)
        if not restored or m.age[0] == 0:
            return RESTORE + (gateway if restored else ENTERPRISE2), WENT_ON
    if compromised(m, OP_SERVER0):
        return RESTORE + OP_SERVER0, CLEAN_SERVER
    if m.host[0] == ENTERPRISE2 and m.age[0] == 0 and holds(m.again, gateway):
        return RESTORE + gateway, WENT_ON
    for host in (ENTERPRISE2, gateway):
        fooled = m.bait[host] != 0
        if just_seen(m, host, EXPLOIT):
            if host == ENTERPRISE0 and not fooled:
                return SLEEP, LET_GO
            return (RESTORE + host, CLEAN_SERVER) if fooled else (REMOVE + host, KILL)
        if compromised(m, host):
            return RESTORE + host, CLEAN_SERVER
        if just_seen(m, host, SCAN) and not fooled and (m.line == 9 or m.line == 5):
            return RESTORE + host, UNSEEN
    if line != 5 and next_decoy(m, gateway) != SLEEP:
        return next_decoy(m, gateway), BAIT_WAY
    if not holds(m.scanned, ENTERPRISE2) and next_decoy(m, ENTERPRISE2) != SLEEP:
        return next_decoy(m, ENTERPRISE2), BAIT_WAY
    return SLEEP, WAIT


@compiled
def amid_noise(m: Memory) -> tuple[int, int]:
    """Somebody else scans, so only exploits and files tell where red is: blue looks for files whenever it has time."""
    for host in (OP_SERVER0, ENTERPRISE2, ENTERPRISE1, ENTERPRISE0, OP_HOST0, OP_HOST1, OP_HOST2):
        if compromised(m, host):
            return RESTORE + host, CLEAN_SERVER
    if m.foe == B_LINE and next_decoy(m, b_line_target(m.user)) != SLEEP:
        return next_decoy(m, b_line_target(m.user)), BAIT_WAY
    if m.foe == B_LINE and just_seen(m, m.user, EXPLOIT):
        return REMOVE + m.user, KILL
    for host in (USER1, USER3, USER4, USER2):
        doubtful = compromised(m, host) or holds(m.removed, host)
        if m.foe == MEANDER and doubtful and not just_seen(m, host, EXPLOIT):
            return RESTORE + host, CLEAN_USER
    for host in (ENTERPRISE1, ENTERPRISE0, ENTERPRISE2, USER2):
        useless = m.foe == MEANDER and holds(m.restored, host)  # Meander does not scan it again
        if next_decoy(m, host) != SLEEP and m.decoys[host] & (1 << APACHE) == 0 and not useless:
            return next_decoy(m, host), BAIT_SERVERS
    for host in (ENTERPRISE2, ENTERPRISE1, ENTERPRISE0, OP_SERVER0):
        if not holds(m.again, host):
            return ANALYSE + host, LOOK_AROUND
    return SLEEP, WAIT


@compiled
def against_meander(m: Memory, leaderboard: bool) -> tuple[int, int]:
    """Meander scans every host once, attacks each, and returns only to hosts where an escalation failed."""
    for host in (OP_SERVER0, ENTERPRISE2, ENTERPRISE1, ENTERPRISE0, OP_HOST0, OP_HOST1, OP_HOST2):
        if compromised(m, host):
            return RESTORE + host, CLEAN_SERVER
    action, rule = defend_easy_targets(m, leaderboard)
    if rule != WAIT:
        return action, rule
    for host in (ENTERPRISE1, ENTERPRISE2, USER2):
        if holds(m.restored, host) and m.decoys[host] == 0 and just_seen(m, host, SCAN):
            return RESTORE + host, UNSEEN
    if silent_break_in(m):
        return RESTORE + m.host[0], SILENCE
    for host in (USER2, ENTERPRISE1, ENTERPRISE0, ENTERPRISE2):
        full = holds(m.decoys[host], APACHE) or next_decoy(m, host) == SLEEP
        if not holds(m.scanned, host) and not full:
            return next_decoy(m, host), BAIT_SERVERS
    for host in (USER1, USER3, USER4, USER2):
        again = holds(m.again, host) and host != USER2 and not (leaderboard and host == USER3)
        if (compromised(m, host) or again) and not (m.host[0] == host and m.age[0] == 0):
            return RESTORE + host, CLEAN_USER
    for host in (USER2, ENTERPRISE1, ENTERPRISE2, USER3):
        silence = 1 if host == USER3 else 0  # nothing misleads red there, so that a failed attack is soon repeated
        hit = m.host[0] == host and m.activity[0] == SCAN and m.age[0] == silence and holds(m.again, host)
        if hit and not holds(m.removed, host) and (leaderboard or host != USER3):  # Remove leaves the files there
            return ANALYSE + host, LOOK_AFTER
    return SLEEP, WAIT


@compiled
def defend_easy_targets(m: Memory, leaderboard: bool) -> tuple[int, int]:
    """Meander may waste its time on User2 behind its decoys and, in the leaderboard edition, on User3."""
    if leaderboard and not holds(m.restored, USER3):
        return RESTORE + USER3, SPOIL
    if compromised(m, USER2) and just_seen(m, USER2, EXPLOIT):
        if leaderboard and m.decoys[USER2] != 0 and not holds(m.bait[USER2], APACHE):
            return SLEEP, WAIT
        if not holds(m.scanned, ENTERPRISE1) and (leaderboard or not holds(m.bait[USER2], APACHE)):
            return REMOVE + USER2, KILL  # if this fails, red reveals itself by moving on to Enterprise1
        return RESTORE + USER2, KEEP
    betrayed = just_seen(m, ENTERPRISE1, SCAN) and m.host[1] == USER2 and m.activity[1] == EXPLOIT
    if betrayed and holds(m.removed, USER2):
        return RESTORE + USER2, TAKE_BACK
    if leaderboard and just_seen(m, USER3, EXPLOIT):
        return REMOVE + USER3, KILL
    for host in (USER2, USER3):
        if m.idle[host] >= LONGEST_IDLE and holds(m.removed, host):
            return RESTORE + host, LEFT_ALONE
    return SLEEP, WAIT


@compiled
def silent_break_in(m: Memory) -> bool:
    """Was an attack on a Windows server followed by silence, which indicates an escalation?"""
    host = m.host[0]
    if (host != ENTERPRISE1 and host != ENTERPRISE2) or m.activity[0] != SCAN or not holds(m.again, host):
        return False
    silence = 1  # enough if every failed attack leaves a trace; two if restored hosts lack decoys
    for other in (USER2, ENTERPRISE0):
        if m.decoys[other] == 0 and holds(m.scanned, other):
            silence = 2
    found: bool = m.age[0] == silence and m.fixed_age > silence
    return found


@compiled
def _advise_all(
    memories: np.ndarray, leaderboard: bool, order: np.ndarray, actions: np.ndarray, rules: np.ndarray
) -> None:
    for i in range(len(memories)):
        actions[i], rules[i] = advise(memories[i], leaderboard, order)


def advice(memories: np.ndarray, leaderboard: bool, order: np.ndarray = NO_ORDER) -> tuple[np.ndarray, np.ndarray]:
    """The expert's actions (0 .. 144) and the indices of its rules for memories (n,)."""
    actions, rules = np.empty(len(memories), np.int64), np.empty(len(memories), np.int64)
    _advise_all(memories, leaderboard, order, actions, rules)
    return actions, rules
