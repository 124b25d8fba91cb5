"""What a network must fulfil: names that exist, numbers in range, no more of anything than the engine has room for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields

from workflow_rl.engine.network import (
    ANY_HOST,
    DECOY_PREFIX,
    DRAWN_USER,
    EXPLOIT_WAYS,
    MEANDER,
    OPTION_PORTS,
    RED_ACTIONS,
    RED_AGENTS,
    REVEALED,
    Network,
    Program,
)
from workflow_rl.engine.networks.complaint import Complaint, out_of_range, shown, unknown, wrong_value

CAPACITY = {
    "hosts": 64,
    "subnets": 16,
    "unit_types": 12,
    "red": 32,
    "ports": 24,
    "decoys": 8,
    "exploits": 8,
}
LINES, DRAWS = 32, 4  # of a program: lines, and targets that it draws
RETAKES, SOCKETS = 8, 100  # the most groups that Meander retakes, and listening ports of a host
VERSION = 1  # of the file's format
PLAIN_VERBS = ("Sleep", "Monitor")
HOST_VERBS = ("Analyse", "Remove", "Restore")
LONGEST_NAME = 64
NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}}")


def contradictions(network: Network) -> Iterator[tuple[str, str]]:
    """Yields (field, problem) wherever parts of the network contradict each other or exceed the engine's limits."""
    for complaint in complaints(network):
        yield complaint.field, complaint.problem


def complaints(network: Network) -> Iterator[Complaint]:
    """Everything that is wrong with a network."""
    if network.version != VERSION:
        problem = f"is {network.version}; this program reads version {VERSION}"
        yield Complaint("version", problem, str(network.version), str(VERSION))
    yield from _wrong_numbers(network)
    yield from _capacities(network)
    yield from _wrong_names(network)
    yield from _repeated_names(network)
    yield from _unknown_names(network)
    yield from _wrong_structure(network)
    for name, program in network.red.programs.items():
        yield from _wrong_program(network, name, program)


def _capacities(network: Network) -> Iterator[Complaint]:
    sizes = {
        "hosts": len(network.hosts),
        "subnets": len(network.subnets),
        "unit_types": len(network.unit_types),
        "ports": len(network.ports),
        "decoys": len(network.decoys),
        "exploits": len(network.exploits),
    }
    for what, size in sizes.items():
        if not 1 <= size <= CAPACITY[what]:
            place = f"{what}[{CAPACITY[what]}]" if size else what
            yield out_of_range(what, f"gives {size} entries", size, f"1 to {CAPACITY[what]}", place)
    for what, size, most in (
        ("red", len(network.red.programs), CAPACITY["red"]),
        ("red.meander.retakes", len(network.red.meander.retakes), RETAKES),
    ):
        if size > most:
            words = "has {} programs" if what == "red" else "has {} entries"
            yield out_of_range(what, words.format(size), size, f"up to {most}")
    needed = {port for exploit in network.exploits for port in (exploit.port, *exploit.and_one_of)}
    if len(needed) > OPTION_PORTS:
        yield out_of_range("exploits", f"need {len(needed)} different ports", len(needed), f"up to {OPTION_PORTS}")


def _wrong_names(network: Network) -> Iterator[Complaint]:
    """Names end up in commands, files and pages, so they are words of a few plain characters."""
    names = [("name", network.name), ("operational_service.name", network.operational_service.name)]
    names += [(f"unit_types[{i}]", name) for i, name in enumerate(network.unit_types)]
    for what in ("subnets", "hosts", "decoys", "exploits"):
        names += [(f"{what}[{i}].name", item.name) for i, item in enumerate(getattr(network, what))]
    names += [(f"red.{name[:LONGEST_NAME]}", name) for name in network.red.programs]
    names += [(f"editions.{name[:LONGEST_NAME]}", name) for name in network.editions]
    allowed = f"1 to {LONGEST_NAME} letters, digits or _ . -"
    for where, name in names:
        if not NAME.fullmatch(name):
            place = f"{where.partition('.')[0]}.{name}" if where.startswith(("red.", "editions.")) else ""
            yield Complaint(where, f"is {shown(name)}; a name has {allowed}", shown(name), allowed, place)


def _unknown_names(network: Network) -> Iterator[Complaint]:
    hosts = network.host_names
    types = [exploit.type for exploit in network.exploits]
    verbs = HOST_VERBS + tuple(DECOY_PREFIX + decoy.name for decoy in network.decoys)
    one: list[tuple[str, str, Iterable[str]]] = [
        ("operational_service.host", network.operational_service.host, hosts),
        ("red.foothold", network.red.foothold, hosts),
    ]
    many: list[tuple[str, Iterable[str], Iterable[str]]] = [
        ("green.scans", network.green.scans, hosts),
        ("blue.actions", network.blue.actions, PLAIN_VERBS),
        ("blue.host_actions", network.blue.host_actions, verbs),
    ]
    groups = [(f"subnets[{i}].reached_through", s.reached_through or ()) for i, s in enumerate(network.subnets)]
    groups += [(f"red.meander.retakes[{i}]", group) for i, group in enumerate(network.red.meander.retakes)]
    for where, group in groups:
        if isinstance(group, str):
            one.append((where, group, network.subnet_names))
        else:
            many.append((where, group, hosts))
    many += [(f"subnets[{i}].hosts", subnet.hosts, hosts) for i, subnet in enumerate(network.subnets)]
    for i, host in enumerate(network.hosts):
        one.append((f"hosts[{i}].unit_type", host.unit_type, network.unit_types))
        one.append((f"hosts[{i}].os", host.os, ("linux", "windows")))
        many.append((f"hosts[{i}].reveals", host.reveals, hosts))
        one += [(f"hosts[{i}].services[{j}].type", s.type, ["", *types]) for j, s in enumerate(host.services)]
    for i, decoy in enumerate(network.decoys):
        one.append((f"decoys[{i}].os", decoy.os, ("", "linux", "windows")))
        one.append((f"decoys[{i}].imitates", decoy.imitates, types))
    one += [(f"exploits[{i}].by", exploit.by, EXPLOIT_WAYS) for i, exploit in enumerate(network.exploits)]
    exploits = [exploit.name for exploit in network.exploits]
    for name, edition in network.editions.items():
        many.append((f"editions.{name}.broken_by_restore", edition.broken_by_restore, exploits))
    yield from (unknown(where, name, known) for where, name, known in one if name not in known)
    for where, names, known in many:
        yield from (unknown(where, n, known, f"{where}[{i}]") for i, n in enumerate(names) if n not in known)


def _wrong_numbers(network: Network) -> Iterator[Complaint]:
    for item in fields(network.chance):
        value = getattr(network.chance, item.name)
        if not 0.0 <= value <= 1.0:
            yield wrong_value(f"chance.{item.name}", "a probability from 0 to 1", value)
    amounts = [(f"hosts[{i}].value", host.value) for i, host in enumerate(network.hosts)]
    amounts += [(f"reward.{item.name}", getattr(network.reward, item.name)) for item in fields(network.reward)]
    for where, value in amounts:
        if not 0.0 <= value <= 1000.0 or abs(value * 10 - round(value * 10)) > 1e-9:
            yield wrong_value(where, "a whole number of tenths from 0 to 1000", value)
    for item in fields(network.records):
        value = getattr(network.records, item.name)
        if not 1 <= value <= 100:
            yield wrong_value(f"records.{item.name}", "from 1 to 100", value)
    for i, exploit in enumerate(network.exploits):
        if not 0.0 < exploit.weight < math.inf:
            yield wrong_value(f"exploits[{i}].weight", "a finite number above 0", exploit.weight)
    ports = [
        (f"hosts[{i}].services[{j}].ports", f"[{k}]", port)
        for i, host in enumerate(network.hosts)
        for j, service in enumerate(host.services)
        for k, port in enumerate(service.ports)
    ]
    for i, decoy in enumerate(network.decoys):
        ports += [(f"decoys[{i}].opens", "", decoy.opens), (f"decoys[{i}].needs_free", "", decoy.needs_free)]
    for i, exploit in enumerate(network.exploits):
        ports.append((f"exploits[{i}].port", "", exploit.port))
        ports += [(f"exploits[{i}].and_one_of", f"[{k}]", port) for k, port in enumerate(exploit.and_one_of)]
    for where, place, port in ports:
        if not 1 <= port < 49152:
            yield out_of_range(where, f"names port {shown(port)}", port, "1 to 49151", where + place)


def _repeated_names(network: Network) -> Iterator[Complaint]:
    """The place of a repeated name is that of its second appearance."""
    lists = {"unit_types": network.unit_types, "blue.actions": network.blue.actions}
    lists |= {"blue.host_actions": network.blue.host_actions}
    unique = {what: [(f"{what}[{i}]", what, name) for i, name in enumerate(lists[what])] for what in lists}
    for what in ("hosts", "subnets", "decoys", "exploits"):
        places = [f"{what}[{i}].name" for i in range(len(getattr(network, what)))]
        unique[what] = [(place, place, item.name) for place, item in zip(places, getattr(network, what), strict=True)]
    weights = [(f"exploits[{i}].weight", exploit.weight) for i, exploit in enumerate(network.exploits)]
    unique["weights"] = [(place, place, str(weight)) for place, weight in weights]
    unique["members"] = [
        (f"subnets[{i}].hosts[{j}]", f"subnets[{i}].hosts", host)
        for i, subnet in enumerate(network.subnets)
        for j, host in enumerate(subnet.hosts)
    ]
    groups = enumerate(network.red.meander.retakes)
    unique["retakes"] = [(f"red.meander.retakes[{i}]", "red.meander.retakes", str(group)) for i, group in groups]
    unique["red"] = [("red", "red", name) for name in RED_AGENTS[MEANDER:]]
    unique["red"] += [(f"red.{name}", "red", name) for name in network.red.programs]
    for entries in unique.values():
        seen: list[str] = []
        for place, field, name in entries:
            if name in seen:
                yield Complaint(field, f"has {shown(name)} more than once", shown(name), "each name once", place)
            seen.append(name)


def _wrong_structure(network: Network) -> Iterator[Complaint]:
    if not network.green.scans:
        yield Complaint("green.scans", "must name at least one host", "[]", "at least one host")
    accounts = {service.account for host in network.hosts for service in host.services}
    for i, account in enumerate(network.accounts.privileged):
        if account not in accounts:
            problem, allowed = f"names {shown(account)}, under which no service runs", ", ".join(sorted(accounts))
            place = f"accounts.privileged[{i}]"
            yield Complaint("accounts.privileged", problem, shown(account), allowed, place)
    in_subnets = {host for subnet in network.subnets for host in subnet.hosts}
    for i, host in enumerate(network.hosts):
        if host.name not in in_subnets:
            problem = f"puts host {shown(host.name)} into no subnet"
            yield Complaint("subnets.hosts", problem, shown(host.name), "one subnet for each host", f"hosts[{i}].name")
    for i, subnet in enumerate(network.subnets):
        if not subnet.hosts:
            yield Complaint(f"subnets[{i}].hosts", "must name at least one host", "[]", "at least one host")
    used = [host.unit_type for host in network.hosts]
    for i, name in enumerate(network.unit_types):
        if name not in used:
            problem = f"has {shown(name)}, which no host belongs to"
            yield Complaint("unit_types", problem, shown(name), "types of at least one host", f"unit_types[{i}]")
    yield from _wrong_hosts(network)
    weights = [exploit.weight for exploit in network.exploits]
    for i in range(1, len(weights)):
        if weights[i] > weights[i - 1]:
            place, allowed = f"exploits[{i}].weight", f"below {weights[i - 1]}"
            problem = "must fall from one exploit to the next"
            yield Complaint("exploits.weight", problem, shown(weights[i]), allowed, place)
    if network.operational_service.host == network.red.foothold:
        problem, allowed = "is red's foothold, so red would have reached it before the game begins", "any other host"
        yield Complaint("operational_service.host", problem, shown(network.red.foothold), allowed)
    if not network.editions:
        yield Complaint("editions", "must have at least one edition", "none", "at least one edition")


def _wrong_hosts(network: Network) -> Iterator[Complaint]:
    for i, host in enumerate(network.hosts):
        sockets = sum(len(service.ports) for service in host.services)
        if not sockets:
            problem = f"leaves {shown(host.name)} without a listening port"
            yield Complaint(f"hosts[{i}].services", problem, "[]", "at least one port")
        if sockets > SOCKETS:
            yield out_of_range(f"hosts[{i}].services", f"listen on {sockets} ports", sockets, f"up to {SOCKETS}")
        if host.process_ids and len(host.process_ids) < len(host.services):
            problem = f"must have a number for each of the {len(host.services)} services"
            given, allowed = str(len(host.process_ids)), f"{len(host.services)} or more"
            yield Complaint(f"hosts[{i}].process_ids", problem, given, allowed)
        for j, number in enumerate(host.process_ids):
            if not 1 <= number < 2**15:
                field, allowed = f"hosts[{i}].process_ids", "from 1 to 32767"
                yield wrong_value(field, allowed, number, f"{field}[{j}]")


def _wrong_program(network: Network, name: str, program: Program) -> Iterator[Complaint]:
    """Complaints about one ``[red.NAME]``."""
    where, lines = f"red.{name}", program.program
    if not 1 <= len(lines) <= LINES:
        yield out_of_range(f"{where}.program", f"has {len(lines)} lines", len(lines), f"1 to {LINES}")
        return
    hosts = {host.name: host for host in network.hosts}
    strangers = [i for i, user in enumerate(program.users) if user not in hosts]
    yield from (unknown(f"{where}.users", program.users[i], hosts, f"{where}.users[{i}]") for i in strangers)
    for i in range(len(lines)):
        yield from _wrong_line(network, f"{where}.program[{i}]", program, i)
    targets = [line.target for line in lines]
    if DRAWN_USER in targets and not program.users:
        problem = "must name at least one host, because the program aims at $user"
        yield Complaint(f"{where}.users", problem, "[]", "at least one host")
    if REVEALED in targets and DRAWN_USER not in targets[: (first := targets.index(REVEALED))]:
        place = f"{where}.program[{first}].target"
        yield Complaint(f"{where}.program", "uses $enterprise before $user", REVEALED, "$user in a line before", place)
    for i, user in enumerate(program.users if REVEALED in targets else ()):
        if user in hosts and len(hosts[user].reveals) != 1:
            problem = f"has {shown(user)}, which must reveal exactly one host"
            allowed = "hosts that reveal exactly one host"
            yield Complaint(f"{where}.users", problem, shown(user), allowed, f"{where}.users[{i}]")
    drawn = network.drawn_targets(program)
    if len(drawn) > DRAWS:
        words = f"draws {len(drawn)} different targets ({', '.join(drawn)})"
        yield out_of_range(f"{where}.program", words, len(drawn), f"up to {DRAWS}")


def _wrong_line(network: Network, where: str, program: Program, number: int) -> Iterator[Complaint]:
    lines, line = program.program, program.program[number]
    numbers = (("success", line.success), ("failure", line.failure), ("unless_scanned", line.unless_scanned))
    wrong = [(what, n) for what, n in numbers if not (-1 if what == "unless_scanned" else 0) <= n < len(lines)]
    for what, value in wrong:
        allowed = f"lines 0 to {len(lines) - 1}"
        yield Complaint(f"{where}.{what}", f"is {shown(value)}; the program has {allowed}", shown(value), allowed)
    if line.action not in RED_ACTIONS:
        yield unknown(f"{where}.action", line.action, RED_ACTIONS)
        return
    known: tuple[str, ...] = (*network.host_names, *network.unit_types, ANY_HOST, DRAWN_USER, REVEALED)
    if line.action in ("DiscoverRemoteSystems", "Sleep", "Impact"):
        own = {"DiscoverRemoteSystems": network.subnet_names, "Impact": (network.operational_service.host,)}
        known = own.get(line.action, ("",))
    if line.target not in known:
        yield unknown(f"{where}.target", line.target, known)
    if line.redraw and line.target not in network.drawn_targets(program):
        problem = f"draws nothing, because the target {shown(line.target)} is not drawn"
        yield Complaint(f"{where}.redraw", problem, "true", "false")
    if wrong or line.action != "ExploitRemoteService":
        return
    after = lines[line.success]
    same = after.action == "PrivilegeEscalate" and after.target == line.target
    if not (same and not after.redraw and after.unless_scanned < 0):
        yield Complaint(
            f"{where}.success",
            f"leads to {after.action} {after.target}; after an exploit that worked red must escalate on the same host "
            "at once, because the engine keeps no list of several sessions on a host",
            shown(line.success),
            f"a line PrivilegeEscalate {line.target}",
        )
