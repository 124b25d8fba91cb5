"""What each action of blue and red does to the true state."""

from __future__ import annotations

from workflow_rl.engine.bits import has, wide
from workflow_rl.engine.chance import Chance, is_detected, pick_exploit
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import SECOND_COPY
from workflow_rl.engine.observe import (
    BELIEF_PRIVILEGED,
    BELIEFS_UNKNOWN,
    Records,
    keeps_copies,
    listening_ports,
    no_records,
    place_of,
    records_on,
    scan_records,
    without_copies,
    word_of,
)
from workflow_rl.engine.state import (
    DECOY_ANSWERED,
    FAILED,
    NO_OPTION,
    NOT_EXPLOITABLE,
    NOTHING_THERE,
    SESSION,
    SUCCEEDED,
    UNROUTABLE,
    State,
    sessions,
)
from workflow_rl.engine.tables import (
    NO_SERVICE,
    REFUSES,
    YIELDS_LOGIN,
    YIELDS_PRIVILEGED,
    YIELDS_PRIVILEGED_LOGIN,
    Tables,
)


@compiled
def act_blue(s: State, t: Tables, action: int) -> bool:
    """Blue's action: Remove, Restore or a decoy; returns whether a decoy was placed.

    It has no branches: the processor could not predict which verb blue plays.
    """
    host = wide(t.action_host[action])
    removed, restored = t.removes[action], t.restores[action]
    s.traced &= ~(removed | restored)
    s.untraced &= ~restored
    s.privileged = (s.privileged & ~restored) | (1 << t.foothold)
    s.malware &= ~restored
    s.restored |= restored
    s.service_down &= ~(restored >> t.service_host)

    decoys = s.decoys[host]
    decoys = 0 if restored else decoys
    taken = (t.genuine_ports[host] | t.decoy_ports[without_copies(s, decoys)]) & t.needs_free[action]
    fitting = t.places[action] & t.decoys_for_os[host]
    placed = 0 if taken else fitting
    s.decoys[host] = decoys | placed
    if keeps_copies(s):
        s.decoys[host] |= (decoys & placed) << SECOND_COPY & t.copies

    i, column = word_of(s, host), BELIEF_PRIVILEGED << place_of(s, host)
    forgotten = column if removed | restored else 0
    doubted = column & BELIEFS_UNKNOWN if removed else 0
    suspected = s.observation[i] & forgotten
    s.observation[i] = (s.observation[i] & ~forgotten) | (doubted if suspected else 0)
    return placed != 0


@compiled
def reachable(s: State, t: Tables, subnet: int) -> bool:
    """Can red reach the subnet now?"""
    gateways = t.gateways[subnet]
    return gateways == 0 or sessions(s) & gateways != 0


@compiled
def sweep(s: State, t: Tables, subnet: int) -> None:
    """DiscoverRemoteSystems: red learns the addresses of a subnet that it knows."""
    s.red_success = SUCCEEDED if has(s.subnets, subnet) and reachable(s, t, subnet) else FAILED
    if s.red_success == SUCCEEDED:
        s.addresses |= t.subnet_hosts[subnet]


@compiled
def scan(s: State, t: Tables, host: int) -> Records:
    """DiscoverNetworkServices: red learns the ports that listen now; out of reach it "succeeds" with nothing."""
    s.scan_empty = 0
    if not has(s.addresses, host):
        s.red_success = FAILED
        return no_records()
    s.red_success = SUCCEEDED
    s.scan_empty = 0 if reachable(s, t, t.subnet[host]) else 1
    if s.scan_empty:
        return no_records()
    ports = listening_ports(s, t, host)
    s.ports[host] = ports if t.scan_forgets else s.ports[host] | ports
    return scan_records(s, t, host)


@compiled
def attack(s: State, t: Tables, host: int, chance: Chance) -> Records:
    """ExploitRemoteService: red chooses an exploit by the ports it *remembers* and tries it on those open *now*."""
    s.red_success = FAILED
    options = t.options[s.ports[host] & (t.options.shape[0] - 1)]
    if options == 0:
        s.exploit_result = NO_OPTION
        return no_records()
    exploit = pick_exploit(s, t, options, chance.exploit)
    s.exploit = exploit
    if not reachable(s, t, t.subnet[host]):
        s.exploit_result = UNROUTABLE
        return no_records()
    port = t.exploit_port[exploit]
    outcome = t.outcome[host, exploit]
    if outcome == NO_SERVICE:
        if s.decoys[host] & t.answered_by[exploit] == 0:
            s.exploit_result = NOTHING_THERE
            return no_records()
        s.exploit_result = DECOY_ANSWERED
        return records_on(host, t.records_refused if t.guesses[exploit] else t.records_decoy, port, 0)
    if outcome == REFUSES:
        s.exploit_result = NOT_EXPLOITABLE
        return records_on(host, t.records_refused, port, 0)
    if t.broken_by_restore[exploit] and has(s.restored, host):
        s.exploit_result = NOT_EXPLOITABLE
        return records_on(host, t.records_exploit, port, 0)
    s.red_success = SUCCEEDED
    s.exploit_result = SESSION
    s.names |= 1 << host
    return gain_session(s, t, host, outcome, port, chance)


@compiled
def gain_session(s: State, t: Tables, host: int, outcome: int, port: int, chance: Chance) -> Records:
    """A new session; a login is never traced, a shell if it is detected."""
    here = 1 << host
    privileged_before = has(s.privileged, host)
    if outcome >= YIELDS_LOGIN:
        if outcome == YIELDS_PRIVILEGED_LOGIN:
            hold_privileged(s, here)
        elif not privileged_before:
            s.traced &= ~here
            s.untraced |= here
        return records_on(host, t.records_accepted, port, 0)
    detected = is_detected(s, t, chance.detected)
    s.detected = 1 if detected else 0
    s.malware |= here
    if outcome == YIELDS_PRIVILEGED:
        hold_privileged(s, here)
    elif not privileged_before:
        s.traced = s.traced | here if detected else s.traced & ~here
        s.untraced = s.untraced & ~here if detected else s.untraced | here
    return records_on(host, t.records_exploit + s.detected, port, s.detected)


@compiled
def hold_privileged(s: State, here: int) -> None:
    """Red is privileged on the host in ``here``; its lesser sessions there no longer matter."""
    s.privileged |= here
    s.traced &= ~here
    s.untraced &= ~here


@compiled
def escalate(s: State, t: Tables, host: int) -> None:
    """PrivilegeEscalate: works wherever red has a session, and reveals what the host knows."""
    here = 1 << host
    if not has(sessions(s), host):
        s.red_success = FAILED
        return
    s.red_success = SUCCEEDED
    if not has(s.privileged, host):
        hold_privileged(s, here)
        s.malware |= here
    s.addresses |= t.reveals[host]
    s.subnets |= 1 << t.subnet[host]


@compiled
def impact(s: State, host: int) -> None:
    """Impact: stops the operational service, unless its host was ever restored."""
    s.red_success = SUCCEEDED if has(sessions(s), host) else FAILED
    if s.red_success == SUCCEEDED and not has(s.restored, host):
        s.service_down = 1
