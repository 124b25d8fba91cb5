"""Compiles a :class:`Network` and an edition into the one record of look-up tables that the rules read.

Sets of hosts, subnets, ports, decoys and exploits are bit masks; an index is the position in the network's list
(ports: in ``network.ports``). Amounts are whole tenths, probabilities are thresholds for 32-bit draws.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from workflow_rl.engine.network import (
    ANY_HOST,
    DECOY_PREFIX,
    DRAWN_USER,
    OPTION_PORTS,
    RED_ACTIONS,
    REVEALED,
    SECOND_COPY,
    SMALL,
    Network,
    Program,
    Room,
    room_for,
)
from workflow_rl.errors import check_choice

Tables: TypeAlias = Any
"""A record of :func:`tables_dtype`, as Numba sees it."""

# What a host's service does to an exploit, what red does: plain integers for compiled code.
NO_SERVICE, YIELDS_PRIVILEGED, YIELDS_USER, YIELDS_LOGIN, REFUSES, YIELDS_PRIVILEGED_LOGIN = range(6)
RED_SLEEP, SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = range(len(RED_ACTIONS))
DRAWN, REVEALED_BY, NO_TARGET = -1, -9, -17  # targets: minus the number of the draw, whose host is it or reveals it
DRAW_RANGE = 1 << 32

EXPLOITS, AGENTS, BYTE = 8, 40, 256


@cache
def tables_dtype(room: Room = SMALL) -> np.dtype:
    """The record of all tables. Signed throughout: Numba would turn a mixture of signed and unsigned into floats."""
    hosts, ports = room.of_hosts, room.of_ports
    of_blue_and_hosts = [
        ("n_hosts", np.int64),
        ("n_actions", np.int64),
        # blue, by action
        ("action_host", np.int8, room.actions),
        ("removes", hosts, room.actions),  # the host, as a set, of a Remove; likewise Restore and Analyse
        ("restores", hosts, room.actions),
        ("analyses", hosts, room.actions),
        ("places", np.int16, room.actions),  # the decoy, as a set
        ("needs_free", ports, room.actions),  # the port, as a set, that this decoy needs
        # hosts
        ("genuine_ports", ports, room.hosts),
        ("genuine_sockets", np.int8, room.hosts),
        ("subnet", np.int8, room.hosts),
        ("reveals", hosts, room.hosts),
        ("decoys_for_os", np.int16, room.hosts),
        ("foothold", np.int64),
        ("service_host", np.int64),
        # prices in tenths: of the set of privileged hosts, byte by byte
        ("prices", np.int32, (room.hosts // 8, BYTE)),
        ("price_restore", np.int64),
        ("price_service_down", np.int64),
    ]
    return np.dtype([*of_blue_and_hosts, *_of_red(room)], align=True)


def _of_red(room: Room) -> list[Any]:
    hosts, ports = room.of_hosts, room.of_ports
    return [
        # subnets
        ("subnet_hosts", hosts, room.subnets),
        ("gateways", hosts, room.subnets),
        # decoys
        ("decoy_ports", ports, BYTE),
        ("copies", np.int64),  # second copies of decoys that a scan can show, as a set from SECOND_COPY on
        # exploits, highest weight first
        ("options", np.int16, 1 << OPTION_PORTS),
        ("exploit_port", ports, EXPLOITS),
        ("guesses", np.int8, EXPLOITS),
        ("answered_by", np.int16, EXPLOITS),
        ("broken_by_restore", np.int8, EXPLOITS),
        ("outcome", np.int8, (room.hosts, EXPLOITS)),
        ("records_refused", np.int64),
        ("records_accepted", np.int64),
        ("records_decoy", np.int64),
        ("records_exploit", np.int64),
        # chance
        ("best_exploit", np.int64),
        ("detected", np.int64),
        ("green_sleeps", np.int64),
        ("green_hosts", hosts),
        # red agents; lines are counted over all programs
        ("scan_forgets", np.int8),
        ("first_line", room.of_line, AGENTS),  # by the number of the agent: where it is before its first step
        ("line_action", np.int8, room.lines),
        ("line_target", np.int8, room.lines),  # below 0: a draw
        ("line_from", hosts, room.lines),  # hosts from which the target is drawn
        ("line_known", np.int8, room.lines),  # only from those that red knows
        ("line_redraws", np.int8, room.lines),
        ("line_bit", room.of_lines, room.lines),  # the line as a set, counted within its program
        ("line_success", room.of_line, room.lines),
        ("line_failure", room.of_line, room.lines),
        ("line_unless_scanned", room.of_line, room.lines),
        ("retakes", hosts, room.subnets),
    ]


def compile_tables(network: Network, edition: str = "current") -> np.ndarray:
    """Returns the tables of one edition, an array of one record."""
    rules = network.editions[check_choice("edition", edition, network.editions)]
    tables = np.zeros(1, tables_dtype(room_for(network)))
    row = tables[0]
    row["n_hosts"], row["n_actions"] = len(network.hosts), network.n_actions
    _fill_actions(row, network)
    _fill_hosts(row, network)
    _fill_prices(row, network)
    _fill_decoys(row, network)
    _fill_exploits(row, network)
    _fill_red_and_green(row, network)
    row["scan_forgets"] = rules.scan_forgets
    row["broken_by_restore"][: len(network.exploits)] = [e.name in rules.broken_by_restore for e in network.exploits]
    return tables


def fixed_hosts(network: Network) -> np.ndarray:
    """For each blue action the host that it fixes (Remove or Restore), -1 for the others; shape (n_actions,)."""
    parts = [network.action_parts(action) for action in range(network.n_actions)]
    return np.array([network.host_names.index(h) if v in ("Remove", "Restore") else -1 for v, h in parts], np.int8)


def fixed_unit_types(network: Network) -> np.ndarray:
    """For each blue action the unit type that it fixes, -1 for actions other than Remove and Restore; (n_actions,)."""
    fixed = fixed_hosts(network)
    unit_types = np.array([network.unit_type_index(name) for name in network.host_names], np.int8)
    return np.where(fixed >= 0, unit_types[fixed], np.int8(-1))


def _fill_actions(row: Any, network: Network) -> None:
    columns = {"Remove": "removes", "Restore": "restores", "Analyse": "analyses"}
    decoys = {DECOY_PREFIX + decoy.name: i for i, decoy in enumerate(network.decoys)}
    for action in range(network.n_actions):
        verb, host = network.action_parts(action)
        if host:
            row["action_host"][action] = network.host_names.index(host)
        if verb in columns:
            row[columns[verb]][action] = _mask([network.host_names.index(host)])
        if verb in decoys:
            row["places"][action] = 1 << decoys[verb]
            row["needs_free"][action] = 1 << network.ports.index(network.decoys[decoys[verb]].needs_free)


def _fill_hosts(row: Any, network: Network) -> None:
    hosts = network.host_names
    for i, host in enumerate(network.hosts):
        ports = [port for service in host.services for port in service.ports]
        row["genuine_ports"][i] = _mask(network.ports.index(port) for port in ports)
        row["genuine_sockets"][i] = len(ports)
        row["subnet"][i] = network.subnet_names.index(network.subnet_of(host.name))
        row["reveals"][i] = _mask(hosts.index(name) for name in host.reveals)
        row["decoys_for_os"][i] = _mask(d for d, decoy in enumerate(network.decoys) if decoy.os in ("", host.os))
    row["foothold"] = hosts.index(network.red.foothold)
    row["service_host"] = hosts.index(network.operational_service.host)
    for i, subnet in enumerate(network.subnets):
        row["subnet_hosts"][i] = _mask(hosts.index(name) for name in subnet.hosts)
    for i, subnet in enumerate(network.subnets):
        if subnet.reached_through:
            row["gateways"][i] = _mask(hosts.index(name) for name in network.hosts_of(subnet.reached_through))


def _fill_prices(row: Any, network: Network) -> None:
    prices = np.zeros(row["prices"].shape[0] * 8, np.int64)
    prices[: len(network.hosts)] = [round(host.value * 10) for host in network.hosts]
    members = np.arange(BYTE)[:, None] >> np.arange(8) & 1
    for number in range(row["prices"].shape[0]):
        row["prices"][number] = members @ prices[8 * number : 8 * number + 8]
    row["price_restore"] = round(network.reward.restore * 10)
    row["price_service_down"] = round(network.reward.service_down * 10)


def _fill_decoys(row: Any, network: Network) -> None:
    row["copies"] = _mask(SECOND_COPY + d for d, decoy in enumerate(network.decoys) if decoy.name in network.stacked)
    opened = [1 << network.ports.index(decoy.opens) for decoy in network.decoys]
    for placed in range(1 << len(opened)):
        row["decoy_ports"][placed] = np.bitwise_or.reduce(
            [0] + [port for i, port in enumerate(opened) if placed >> i & 1]
        )


def _fill_exploits(row: Any, network: Network) -> None:
    for e, exploit in enumerate(network.exploits):
        row["exploit_port"][e] = 1 << network.ports.index(exploit.port)
        row["guesses"][e] = exploit.by == "guess"
        row["answered_by"][e] = _mask(
            d
            for d, decoy in enumerate(network.decoys)
            if decoy.opens == exploit.port and decoy.imitates == exploit.type
        )
        for h, host in enumerate(network.hosts):
            for service in host.services:
                meets = service.type == exploit.type and exploit.port in service.ports
                if meets and row["outcome"][h, e] == NO_SERVICE:  # the first that fits, as in CybORG
                    row["outcome"][h, e] = _outcome(network, exploit.by, host.guessable, service.account)
    deciding = network.ports[:OPTION_PORTS]
    remembered = np.arange(1 << len(deciding))
    known = {port: (remembered >> bit & 1).astype(bool) for bit, port in enumerate(deciding)}
    for e, exploit in enumerate(network.exploits):
        possible = known[exploit.port]
        if exploit.and_one_of:
            possible = possible & np.any([known[port] for port in exploit.and_one_of], axis=0)
        row["options"][: len(remembered)] |= possible.astype(np.int16) << e
    row["records_refused"], row["records_accepted"] = network.records.guess_refused, network.records.guess_accepted
    row["records_decoy"], row["records_exploit"] = network.records.exploit_on_decoy, network.records.exploit


def _outcome(network: Network, by: str, guessable: str, account: str) -> int:
    if by == "guess":
        login = YIELDS_PRIVILEGED_LOGIN if guessable in network.accounts.privileged else YIELDS_LOGIN
        return login if guessable else REFUSES
    return YIELDS_PRIVILEGED if account in network.accounts.privileged else YIELDS_USER


def _fill_red_and_green(row: Any, network: Network) -> None:
    hosts = network.host_names
    for name in ("best_exploit", "detected", "green_sleeps"):
        row[name] = round(getattr(network.chance, name) * DRAW_RANGE)
    row["green_hosts"] = _mask(hosts.index(name) for name in network.green.scans)
    first = 0
    for name, program in network.red.programs.items():
        _fill_program(row, network, program, first)
        start = first + len(program.program)  # the line before the first, whose result does not matter
        row["first_line"][network.red_number(name)] = start
        row["line_success"][start] = row["line_failure"][start] = first
        first = start + 1
    for i, group in enumerate(network.red.meander.retakes):
        row["retakes"][i] = _mask(hosts.index(name) for name in network.hosts_of(group))


def _fill_program(row: Any, network: Network, program: Program, first: int) -> None:
    drawn = network.drawn_targets(program)
    for number, line in enumerate(program.program):
        i = first + number
        row["line_action"][i] = RED_ACTIONS.index(line.action)
        row["line_bit"][i] = np.array(1 << number).astype(row["line_bit"].dtype)
        row["line_success"][i], row["line_failure"][i] = first + line.success, first + line.failure
        row["line_unless_scanned"][i] = first + line.unless_scanned if line.unless_scanned >= 0 else -1
        row["line_redraws"][i] = line.redraw
        if line.target in drawn:
            row["line_target"][i] = DRAWN - drawn.index(line.target)
            row["line_from"][i] = _candidates(network, program, line.target)
            row["line_known"][i] = line.target != DRAWN_USER
        elif line.target == REVEALED:
            row["line_target"][i] = REVEALED_BY - drawn.index(DRAWN_USER)
        elif line.action == "Sleep":
            row["line_target"][i] = NO_TARGET
        else:
            places = network.subnet_names if line.action == "DiscoverRemoteSystems" else network.host_names
            row["line_target"][i] = places.index(line.target)


def _candidates(network: Network, program: Program, target: str) -> int:
    """Hosts from which a target is drawn."""
    if target == DRAWN_USER:
        return _mask(network.host_names.index(name) for name in program.users)
    return _mask(
        i
        for i, host in enumerate(network.hosts)
        if host.name != network.red.foothold and target in (ANY_HOST, host.unit_type)
    )


def _mask(members: Iterable[int]) -> int:
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask - (1 << 64) if mask >> 63 else mask  # the sign of a set of 64
