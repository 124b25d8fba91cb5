"""Deliberately broken rules: one table entry or one branch at a time. A replay must notice each of them.

``benchmarks/mutations.py`` changes *every* table entry; these are the ones worth a test each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network

SCENARIO: Network = load_network()


@dataclass(frozen=True)
class TableMutant:
    """Changes one entry of the compiled tables."""

    name: str
    change: Callable[[np.ndarray], None]
    edition: str = "current"


@dataclass(frozen=True)
class SourceMutant:
    """Changes one branch of a compiled source file."""

    name: str
    file: str
    old: str
    new: str
    edition: str = "current"


def _set(field: str, index: int | tuple[int, ...], value: int) -> Callable[[np.ndarray], None]:
    def change(tables: np.ndarray) -> None:
        assert tables[0][field][index] != value, "the mutant is no mutant"
        tables[0][field][index] = value

    return change


def _set_scalar(field: str, value: int) -> Callable[[np.ndarray], None]:
    def change(tables: np.ndarray) -> None:
        assert tables[0][field] != value, "the mutant is no mutant"
        tables[0][field] = value

    return change


def _flip(field: str, index: int, bit: int) -> Callable[[np.ndarray], None]:
    def change(tables: np.ndarray) -> None:
        tables[0][field][index] ^= 1 << bit

    return change


def _host(name: str) -> int:
    return SCENARIO.host_names.index(name)


def _exploit(name: str) -> int:
    return [exploit.name for exploit in SCENARIO.exploits].index(name)


def _decoy(name: str) -> int:
    return [decoy.name for decoy in SCENARIO.decoys].index(name)


def _port(number: int) -> int:
    return SCENARIO.ports.index(number)


def _price(host: str) -> Callable[[np.ndarray], None]:
    def change(tables: np.ndarray) -> None:
        number, bit = divmod(_host(host), 8)
        for byte in range(256):
            if byte >> bit & 1:
                tables[0]["prices"][number, byte] += 1

    return change


TABLE_MUTANTS = [
    TableMutant("Enterprise1 costs 1.1", _price("Enterprise1")),
    TableMutant("User4 costs 0.2", _price("User4")),
    TableMutant("a Restore is free", _set_scalar("price_restore", 0)),
    TableMutant("the service costs 9.9 while it is down", _set_scalar("price_service_down", 99)),
    TableMutant("BlueKeep on Enterprise1 yields a user session", _set("outcome", (_host("Enterprise1"), _exploit("BlueKeep")), 2)),
    TableMutant("EternalBlue works on Enterprise2", _set("outcome", (_host("Enterprise2"), _exploit("EternalBlue")), 1)),
    TableMutant("HTTPSRFI on User3 is privileged at once", _set("outcome", (_host("User3"), _exploit("HTTPSRFI")), 1)),
    TableMutant("SSH can be guessed on Defender", _set("outcome", (_host("Defender"), _exploit("SSHBruteForce")), 3)),
    TableMutant("BlueKeep works on User3", _set("outcome", (_host("User3"), _exploit("BlueKeep")), 1)),
    TableMutant("Op_Server0 can always be reached", _set("gateways", SCENARIO.subnet_names.index("Operational"), 0)),
    TableMutant("Vsftpd needs port 80 free", _set("needs_free", SCENARIO.action_index("DecoyVsftpd", "Enterprise0"), 1 << _port(80))),
    TableMutant("Femitter fits Linux hosts", _flip("decoys_for_os", _host("Enterprise0"), _decoy("Femitter"))),
    TableMutant("Femitter does not fit Enterprise2", _flip("decoys_for_os", _host("Enterprise2"), _decoy("Femitter"))),
    TableMutant("Apache does not answer HTTPRFI", _flip("answered_by", _exploit("HTTPRFI"), _decoy("Apache"))),
    TableMutant("User2 listens on port 22", _flip("genuine_ports", _host("User2"), _port(22))),
    TableMutant("Enterprise1 does not listen on 443", _flip("genuine_ports", _host("Enterprise1"), _port(443))),
    TableMutant("an ssh login leaves two records", _set_scalar("records_accepted", 2)),
    TableMutant("a refused ssh attempt leaves two records", _set_scalar("records_refused", 2)),
    TableMutant("an exploit on a decoy leaves three records", _set_scalar("records_decoy", 3)),
    TableMutant("User2 reveals Enterprise0", _set("reveals", _host("User2"), 1 << _host("Enterprise0"))),
    TableMutant("Enterprise2 reveals nothing", _set("reveals", _host("Enterprise2"), 0)),
    TableMutant("B_line goes on to line 3 after a failed exploit", _set("line_failure", 2, 3)),
    TableMutant("B_line goes back to line 2 from a failed line 6", _set("line_failure", 6, 2)),
    TableMutant("B_line goes back to line 8 from a failed line 10", _set("line_failure", 10, 8)),
    TableMutant("B_line does not restart after an empty scan", _set("line_unless_scanned", 12, -1)),
    TableMutant("Meander retakes Enterprise before Operational", lambda tables: tables[0]["retakes"][:2].__setitem__(slice(None), tables[0]["retakes"][1::-1].copy())),
    TableMutant("Meander retakes nothing", lambda tables: tables[0]["retakes"].fill(0)),
    TableMutant("a scan forgets nothing", _set_scalar("scan_forgets", 0)),
    TableMutant("a scan forgets in the leaderboard edition", _set_scalar("scan_forgets", 1), "leaderboard"),
    TableMutant("HarakaRCE dies with a Restore", _set("broken_by_restore", _exploit("HarakaRCE"), 1)),
    TableMutant("HarakaRCE survives a Restore in the leaderboard edition", _set("broken_by_restore", _exploit("HarakaRCE"), 0), "leaderboard"),
    TableMutant("red starts on User1", _set_scalar("foothold", _host("User1"))),
    TableMutant("Analyse of Enterprise1 finds nothing", _set("analyses", SCENARIO.action_index("Analyse", "Enterprise1"), 0)),
]  # fmt: skip

SOURCE_MUTANTS = [
    SourceMutant("Restore leaves decoys", "effects.py", "decoys = 0 if restored else decoys", "decoys = decoys"),
    SourceMutant("Restore leaves malware", "effects.py", "s.malware &= ~restored", "s.malware &= ~(restored & 0)"),
    SourceMutant("Remove makes the column No", "effects.py", "(doubted if suspected else 0)", "0"),
    SourceMutant("a detected session is not traced", "effects.py", "s.traced = s.traced | here if detected else s.traced & ~here", "s.traced = s.traced & ~here"),
    SourceMutant("Impact works after a Restore of the server", "effects.py", "and not has(s.restored, host):\n        s.service_down", ":\n        s.service_down"),
    SourceMutant("an unreachable scan fails", "effects.py", "    if s.scan_empty:\n", "    if s.scan_empty:\n        s.red_success = FAILED\n"),
    SourceMutant("a second exploit lowers the level", "effects.py", "privileged_before = has(s.privileged, host)", "privileged_before = False\n    s.privileged &= ~here"),
    SourceMutant("a decoy placed in the same step hides nothing", "observe.py", "ACTIVITY_NONE if decoy_placed else ACTIVITY_SCAN", "ACTIVITY_SCAN"),
    SourceMutant("an exploit is not remembered as User", "observe.py", "observation = believe(observation, records.host, BELIEF_USER)", "observation = observation"),
    SourceMutant("Analyse sees what red does in the same step", "step.py", "    if found_malware", "    if s.malware & t.analyses[action] != 0"),
    SourceMutant("Meander keeps a host after a failed escalation", "opponents.py", "        s.escalated &= ~target\n        if s.mapped", "        if s.mapped"),
    SourceMutant("Meander may escalate where it was mapped and not exploited", "opponents.py", "& (~s.mapped | s.exploited)", ""),
    SourceMutant("B_line restarts after every empty scan", "opponents.py", " and not has(s.lines_done, line)", ""),
]  # fmt: skip
