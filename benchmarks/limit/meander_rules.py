"""A defender against Meander that cheats: rules over the true state, red's memory and the steps left.

* Meander scans each host once: decoys that are there at that moment mislead it for the whole episode. The steps until
  it has its first session are enough for User2 and for the hosts that the user hosts reveal.
* Red escalates right after each exploit that works. A traced session is removed before, which costs nothing; on the
  servers anything else is restored before. Red then comes back, but mostly runs into a decoy it remembers.
* User2 behind its decoys, and User3 once a Restore has broken HarakaRCE (leaderboard edition), are targets on which red
  wastes its time: they too are taken back before red escalates.
* User1, User4 (and User3 in the current edition) fall anyway. They are restored after red has escalated, for it never
  comes back; if enough steps are left for that to pay.

Letting red escalate in Enterprise once, so that it finds Defender and tries in vain to take it, was not worth its
price; nor was a Restore of User4 before red escalates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.bits import count, has, lowest, wide
from workflow_rl.engine.chance import Chance
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.opponents import choose_meander
from workflow_rl.engine.state import State, sessions
from workflow_rl.engine.tables import ESCALATE, SCAN, Tables
from workflow_rl.envs.memory import (
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    FIRST_DECOY,
    N_HOSTS,
    OP_SERVER0,
    REMOVE,
    RESTORE,
    SLEEP,
    USEFUL,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
)

SERVERS = (1 << (OP_SERVER0 + 1)) - (1 << ENTERPRISE0)  # Enterprise and Operational
QUIET_STEPS = 9  # by then red has at most begun to take its first user host
# Decoys in the order in which they are placed while red has not scanned the host: host, number of decoys it has then.
FIRST_BAIT = np.array([(USER2, 4)], np.int64)
MORE_BAIT = np.array([(USER1, 2), (USER0, 2), (USER3, 1), (USER1, 4), (USER0, 4)], np.int64)
WAY_BAIT = np.array([(ENTERPRISE1, 1), (ENTERPRISE0, 3)], np.int64)
LAST_BAIT = np.array([(ENTERPRISE2, 1)], np.int64)


class Patience(NamedTuple):
    """Steps that must be left for a Restore to be paid for; found in games of other seeds than the estimate's."""

    clean: int = 11  # of a user host on which red is privileged
    keep: int = 9  # of User2 before red escalates, so that it stays a target on which red wastes its time
    spoil: int = 8  # likewise User3, where a Restore breaks HarakaRCE
    spoil_early: int = 40  # of User3 before red has tried it


@compiled
def next_bait(s: State, wanted: np.ndarray, hosts: int) -> int:
    """The next decoy on one of the ``hosts`` that red has not scanned; SLEEP: none is missing."""
    for i in range(wanted.shape[0]):
        host = wanted[i, 0]
        if has(s.scanned, host) or not has(hosts, host):
            continue
        for k in range(wanted[i, 1]):
            decoy = USEFUL[host, k]
            if not has(s.decoys[host], decoy):
                return wide(FIRST_DECOY + N_HOSTS * decoy + host)
    return SLEEP


@compiled
def missing(s: State) -> int:
    """How many decoys on the way from the user hosts are missing."""
    total = 0
    for i in range(WAY_BAIT.shape[0]):
        if not has(s.scanned, WAY_BAIT[i, 0]):
            total += WAY_BAIT[i, 1] - count(wide(s.decoys[WAY_BAIT[i, 0]]))
    return total


@compiled
def bait(s: State, coming: State) -> int:
    """A decoy that would come too late in the next step, or that there is time for now; SLEEP: none."""
    everywhere = (1 << N_HOSTS) - 1
    if coming.red_action == SCAN:
        action = next_bait(s, WAY_BAIT, wide(coming.candidates))
        if action == SLEEP:
            action = next_bait(s, LAST_BAIT, wide(coming.candidates))
        if action != SLEEP:
            return action
    action = next_bait(s, FIRST_BAIT, everywhere)
    if action == SLEEP and s.step + missing(s) < QUIET_STEPS:
        action = next_bait(s, MORE_BAIT, everywhere)
    if action == SLEEP and (s.step < QUIET_STEPS or coming.red_action == ESCALATE):
        action = next_bait(s, WAY_BAIT, everywhere)
    return action


@compiled
def accepts(host: int, to_go: int, p: Patience, leaderboard: bool) -> bool:
    """Is it better to let red escalate on this host?

    Elsewhere among the user hosts, for the exploit that red prefers there works nearly always, and once it has
    escalated and is thrown out, it never comes back.
    """
    if has(SERVERS, host):
        return False
    if host == USER2:
        return to_go < p.keep
    return not (host == USER3 and leaderboard and to_go >= p.spoil)


@compiled
def cheat(s: State, t: Tables, to_go: int, p: Patience, leaderboard: bool, trial: np.ndarray) -> int:
    """The action of the rules in a true state of a game against Meander with ``to_go`` steps left."""
    trial[0] = s
    coming = trial[0]
    choose_meander(coming, t, Chance(0, 0, 0, 0))
    if coming.red_action == ESCALATE:
        host = wide(coming.red_target)
        if has(s.traced, host):
            return REMOVE + host
        if has(sessions(s), host) and host != USER0 and not accepts(host, to_go, p, leaderboard):
            return RESTORE + host
    held = s.privileged & SERVERS
    if held and to_go > 1:
        return RESTORE + lowest(wide(held))
    action = bait(s, coming)
    if action != SLEEP:
        return action
    for host in (USER1, USER2, USER3, USER4):
        leaving = coming.red_action == ESCALATE and coming.red_target == host
        if has(s.privileged, host) and to_go >= p.clean and not leaving:
            return RESTORE + host
    if leaderboard and to_go >= p.spoil_early and not has(s.restored | s.exploited, USER3):
        return RESTORE + USER3
    action = next_bait(s, WAY_BAIT, (1 << N_HOSTS) - 1)
    return action if action != SLEEP else next_bait(s, LAST_BAIT, (1 << N_HOSTS) - 1)
