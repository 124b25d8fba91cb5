"""Changes every entry of the engine's tables, one at a time: which wrong entries does a replay notice?

    python -m benchmarks mutations ../shared/cage2-oracle

Replays all recordings of the folder and of its ``leaderboard`` subfolder with each mutant. The result lists every
mutant that goes unnoticed, with the reason where :func:`reason` can prove one from the scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import main
from workflow_rl.engine.network import Network, ProgramLine
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.tables import NO_SERVICE, SCAN, YIELDS_PRIVILEGED_LOGIN, compile_tables
from workflow_rl.errors import UserError
from workflow_rl.fidelity.replay import Replayer
from workflow_rl.fidelity.traces import Trace, load_trace


@dataclass(frozen=True)
class Mutant:
    """One entry of one table set to another value."""

    table: str
    entry: tuple[int, ...]
    value: int
    edition: str = "current"

    def __str__(self) -> str:
        place = "".join(f"[{i}]" for i in self.entry)
        return f"{self.table}{place} = {self.value}" + ("" if self.edition == "current" else f" ({self.edition})")

    def tables(self, network: Network) -> np.ndarray:
        """The tables with the wrong entry."""
        tables = compile_tables(network, self.edition)
        if self.table == "price":
            byte, bit = divmod(self.entry[0], 8)
            tables[0]["prices"][byte] += (np.arange(256) >> bit & 1).astype(np.int32)
        elif self.entry:
            tables[0][self.table][self.entry] = self.value
        else:
            tables[0][self.table] = self.value
        return tables


def mutants(network: Network) -> list[Mutant]:
    """Every single-entry change that stays within the meaning of its table."""
    unchanged = {edition: compile_tables(network, edition).tobytes() for edition in network.editions}
    found = dict.fromkeys([*_sets(network), *_numbers(network), *_actions(network), *_scalars(network)])
    return [mutant for mutant in found if mutant.tables(network).tobytes() != unchanged[mutant.edition]]


def _sets(network: Network) -> Iterator[Mutant]:
    """Tables of sets: each bit flipped."""
    tables = compile_tables(network)[0]
    hosts, decoys, ports = len(network.hosts), len(network.decoys), len(network.ports)
    sizes = {
        "genuine_ports": (range(hosts), ports),
        "reveals": (range(hosts), hosts),
        "decoys_for_os": (range(hosts), decoys),
        "subnet_hosts": (range(len(network.subnets)), hosts),
        "gateways": (range(len(network.subnets)), hosts),
        "answered_by": (range(len(network.exploits)), decoys),
        "retakes": (range(len(network.red.meander.retakes)), hosts),
        "options": (recorded_memories(network), len(network.exploits)),
        "decoy_ports": ([1 << decoy for decoy in range(decoys)], ports),
    }
    for name, (entries, bits) in sizes.items():
        for entry in entries:
            for bit in range(bits):
                yield Mutant(name, (entry,), int(tables[name][entry]) ^ 1 << bit)
    for bit in range(hosts):
        for line in np.flatnonzero(tables["line_from"]).tolist():
            yield Mutant("line_from", (line,), int(tables["line_from"][line]) ^ 1 << bit)
        yield Mutant("green_hosts", (), int(tables["green_hosts"]) ^ 1 << bit)


def _numbers(network: Network) -> Iterator[Mutant]:
    """Tables of numbers: each entry set to every other value."""
    hosts, lines, exploits = len(network.hosts), len(program_of(network)), len(network.exploits)
    drawing = np.flatnonzero(compile_tables(network)[0]["line_from"]).tolist()
    values = {
        "subnet": (range(hosts), range(len(network.subnets))),
        "guesses": (range(exploits), range(2)),
        "broken_by_restore": (range(exploits), range(2)),
        "line_action": (range(lines), range(1, 6)),
        "line_success": (range(lines), range(lines)),
        "line_failure": (range(lines), range(lines)),
        "line_unless_scanned": (range(lines), range(-1, lines)),
        "line_known": (drawing, range(2)),
        "line_redraws": (drawing, range(2)),
        "exploit_port": (range(exploits), [1 << port for port in range(len(network.ports))]),
        "genuine_sockets": (range(hosts), range(1, 9)),
    }
    for name, (entries, choices) in values.items():
        for entry in entries:
            for value in choices:
                yield Mutant(name, (entry,), value)
    for exploit in range(exploits):
        yield Mutant("broken_by_restore", (exploit,), 0, "leaderboard")
        for host in range(hosts):
            for outcome in range(YIELDS_PRIVILEGED_LOGIN + 1):
                yield Mutant("outcome", (host, exploit), outcome)


def _actions(network: Network) -> Iterator[Mutant]:
    """Blue's actions: each without its effect, on the next host, and each decoy with every other port."""
    tables = compile_tables(network)[0]
    for action in range(network.n_actions):
        for name in ("removes", "restores", "analyses", "places"):
            yield Mutant(name, (action,), 0)
        if tables["places"][action]:
            for port in range(len(network.ports)):
                yield Mutant("needs_free", (action,), 1 << port)
        if action >= len(network.blue.actions):
            yield Mutant("action_host", (action,), (int(tables["action_host"][action]) + 1) % len(network.hosts))


def _scalars(network: Network) -> Iterator[Mutant]:
    tables = compile_tables(network)[0]
    for host in range(len(network.hosts)):
        yield Mutant("price", (host,), 1)
        yield Mutant("foothold", (), host)
        yield Mutant("service_host", (), host)
    for name in ("price_restore", "price_service_down"):
        yield Mutant(name, (), int(tables[name]) + 1)
    for name in ("records_refused", "records_accepted", "records_decoy", "records_exploit"):
        for value in range(1, 13):
            yield Mutant(name, (), value)
    yield Mutant("scan_forgets", (), 0)
    yield Mutant("scan_forgets", (), 1, "leaderboard")
    for name in ("best_exploit", "detected", "green_sleeps"):
        yield Mutant(name, (), int(tables[name]) // 2)


def program_of(network: Network) -> tuple[ProgramLine, ...]:
    """The lines of B_line, the only program of the recordings."""
    return network.red.programs["bline"].program


def recorded_memories(network: Network) -> list[int]:
    """What red can remember of a host: nothing, or its genuine ports and those of decoys that fit there."""
    tables = compile_tables(network)[0]
    memories = {0}
    for host in range(len(network.hosts)):
        genuine, fitting = int(tables["genuine_ports"][host]), fitting_decoys(network, host)
        memories |= {genuine | int(tables["decoy_ports"][placed & fitting]) for placed in range(256)}
    return sorted(memories)


def fitting_decoys(network: Network, host: int) -> int:
    """Set of decoys that can ever stand on a host: right system, needed port not taken by a genuine service."""
    tables = compile_tables(network)[0]
    fitting = 0
    for d, decoy in enumerate(network.decoys):
        taken = tables["genuine_ports"][host] >> network.ports.index(decoy.needs_free) & 1
        if tables["decoys_for_os"][host] >> d & 1 and not taken:
            fitting |= 1 << d
    return fitting


def reason(mutant: Mutant, network: Network) -> str:
    """Why no replay of the stock agents can notice the mutant; empty if that cannot be told from the scenario."""
    for rule in (_reason_chance, _reason_blue, _reason_exploits, _reason_bline, _reason_network):
        if why := rule(mutant, network):
            return why
    return ""


def _reason_chance(mutant: Mutant, network: Network) -> str:
    if mutant.table in ("best_exploit", "detected", "green_sleeps", "line_from"):
        return "chance is forced in a replay; tests/test_free_play.py checks the probabilities"
    if mutant.table == "green_hosts":
        return "green sleeps in the recordings; tests/test_env.py checks the acting green"
    if mutant.table == "options":
        known = int(compile_tables(network)[0]["options"][mutant.entry[0]])
        if known.bit_count() > 1 or mutant.value & known == known:
            return "chance is forced; tests/test_replay.py checks how often each exploit is chosen"
    if mutant.table == "genuine_sockets":
        return "only 'three records or more' counts, and three ports always make three records"
    if mutant.table.startswith("records_") and (mutant.value >= 3) == (
        mutant.table in ("records_refused", "records_accepted")
    ):
        return "only 'three records or more' and 'fewer' can be told apart"
    return ""


def _reason_blue(mutant: Mutant, network: Network) -> str:
    if mutant.table not in ("places", "needs_free", "action_host", "decoys_for_os"):
        return ""
    right, wrong = compile_tables(network)[0], mutant.tables(network)[0]
    for action in np.flatnonzero(right["places"]).tolist():
        host, decoy = int(right["action_host"][action]), int(right["places"][action])
        changed = any(right[name][action] != wrong[name][action] for name in ("places", "needs_free", "action_host"))
        changed |= bool((right["decoys_for_os"][host] ^ wrong["decoys_for_os"][host]) & decoy)
        if changed and (_can_place(right, action) or _can_place(wrong, action)):
            return ""
    return "the decoy can never be placed there, with or without the change"


def _can_place(tables: np.void, action: int) -> bool:
    host = int(tables["action_host"][action])
    taken = tables["genuine_ports"][host] & tables["needs_free"][action]
    return bool(tables["places"][action] & tables["decoys_for_os"][host]) and not taken


def _reason_exploits(mutant: Mutant, network: Network) -> str:
    tables = compile_tables(network)[0]
    hosts, exploits = range(len(network.hosts)), range(len(network.exploits))
    selectable = [
        {e for m in _memories_of(network, h) for e in exploits if tables["options"][m] >> e & 1} for h in hosts
    ]
    if mutant.table == "outcome" and mutant.entry[1] not in selectable[mutant.entry[0]]:
        return "red can never select this exploit on this host"
    if mutant.table == "answered_by":
        e, bit = mutant.entry[0], (int(tables["answered_by"][mutant.entry[0]]) ^ mutant.value).bit_length() - 1
        fits = [bool(fitting_decoys(network, h) >> bit & 1) for h in hosts]
        if not any(fits[h] and e in selectable[h] and tables["outcome"][h, e] == NO_SERVICE for h in hosts):
            return "this exploit never meets this decoy where no genuine service answers first"
    if mutant.table == "exploit_port":
        return "an exploit leaves its records on one port, whichever it is"
    return ""


def _memories_of(network: Network, host: int) -> set[int]:
    tables = compile_tables(network)[0]
    genuine, fitting = int(tables["genuine_ports"][host]), fitting_decoys(network, host)
    return {genuine | int(tables["decoy_ports"][placed & fitting]) for placed in range(256)}


def _reason_bline(mutant: Mutant, network: Network) -> str:
    tables = compile_tables(network)[0]
    if mutant.table == "line_failure":
        if tables["line_action"][mutant.entry[0]] == SCAN:
            return "a scan never fails"
        line = program_of(network)[mutant.entry[0]]
        if line.action == "DiscoverRemoteSystems":
            return "this sweep never fails, for its subnet can always be reached"
    if mutant.table == "line_unless_scanned":
        before = [i for i, line in enumerate(program_of(network)) if line.success == mutant.entry[0]]
        scans_op = [i for i in before if program_of(network)[i].action == "DiscoverNetworkServices"]
        if not any(program_of(network)[i].target == "Op_Server0" for i in scans_op):
            return "no empty scan can come before this line is executed for the first time"
    return ""


def _reason_network(mutant: Mutant, network: Network) -> str:
    if mutant.table not in ("price", "reveals", "gateways", "subnet_hosts", "retakes"):
        return ""
    tables = compile_tables(network)[0]
    defender, foothold = 1 << network.host_names.index("Defender"), 1 << int(tables["foothold"])
    if mutant.table == "price":
        return "red never holds Defender" if 1 << mutant.entry[0] == defender else ""
    right = int(tables[mutant.table][mutant.entry[0]])
    changed = right ^ mutant.value
    if mutant.table == "gateways":
        always = mutant.value & foothold or (changed & defender and right)
        return "red always holds its foothold and never Defender" if always else ""
    if mutant.table == "retakes":
        return "red never holds Defender" if changed == defender else ""
    if changed & int(tables["subnet_hosts"][tables["subnet"][int(tables["foothold"])]]) and mutant.value & changed:
        return "red knows every address of the User subnet from its first action on"
    if mutant.table == "reveals" and 1 << mutant.entry[0] == defender:
        return "red never escalates on Defender"
    if mutant.table == "reveals" and changed & int(tables["subnet_hosts"][tables["subnet"][mutant.entry[0]]]):
        return "escalation reveals the host's own subnet, which red sweeps before it scans"
    return ""


def measure(folder: str) -> dict[str, Any]:
    """Replays every recording with every mutant."""
    network = load_network()
    folders = {"current": Path(folder), "leaderboard": Path(folder) / "leaderboard"}
    replayers: dict[str, Replayer] = {}
    for edition, place in folders.items():
        traces = [load_trace(path) for path in sorted(place.glob("*.npz"))]
        if not traces:
            raise UserError(f"{place}: no recordings (*.npz) there.")
        replayers[edition] = Replayer(Trace.join(traces), network)
    everything = mutants(network)
    silent = [mutant for mutant in everything if not replayers[mutant.edition].differs(mutant.tables(network))]
    groups: dict[str, list[str]] = {}
    for mutant in silent:
        groups.setdefault(reason(mutant, network) or "no recorded step depends on it", []).append(str(mutant))
    figures = {
        "mutants": len(everything),
        "noticed": len(everything) - len(silent),
        "not_noticed": len(silent),
        "not_noticed_by_table": dict(Counter(mutant.table for mutant in silent)),
        "not_noticed_by_reason": groups,
    }
    print(f"{figures['mutants']} mutants, {figures['noticed']} noticed")
    for why, names in groups.items():
        print(f"{len(names):5} not noticed: {why}")
    return figures


if __name__ == "__main__":
    main("mutations")
