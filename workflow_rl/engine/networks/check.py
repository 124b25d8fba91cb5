"""What a network must fulfil: names that exist, numbers in range, no more of anything than the engine has room for."""

from __future__ import annotations

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
VERSION = 1  # of the file's format
PLAIN_VERBS = ("Sleep", "Monitor")
HOST_VERBS = ("Analyse", "Remove", "Restore")
LONGEST_NAME = 64
NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{LONGEST_NAME - 1}}}")


def contradictions(network: Network) -> Iterator[tuple[str, str]]:
    """Yields (field, complaint) wherever parts of the network contradict each other or exceed the engine's limits."""
    if network.version != VERSION:
        yield "version", f"is {network.version}; this program reads version {VERSION}"
    yield from _wrong_numbers(network)
    yield from _capacities(network)
    yield from _wrong_names(network)
    yield from _repeated_names(network)
    yield from _unknown_names(network)
    yield from _wrong_structure(network)
    for name, program in network.red.programs.items():
        yield from _wrong_program(network, name, program)


def _capacities(network: Network) -> Iterator[tuple[str, str]]:
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
            yield what, f"gives {size} entries; allowed: 1 to {CAPACITY[what]}"
    if len(network.red.programs) > CAPACITY["red"]:
        yield "red", f"has {len(network.red.programs)} programs; allowed: up to {CAPACITY['red']}"
    needed = {port for exploit in network.exploits for port in (exploit.port, *exploit.and_one_of)}
    if len(needed) > OPTION_PORTS:
        yield "exploits", f"need {len(needed)} different ports; allowed: up to {OPTION_PORTS}"


def _wrong_names(network: Network) -> Iterator[tuple[str, str]]:
    """Names end up in commands, files and pages, so they are words of a few plain characters."""
    names = [("name", network.name), ("operational_service.name", network.operational_service.name)]
    names += [(f"unit_types[{i}]", name) for i, name in enumerate(network.unit_types)]
    for what in ("subnets", "hosts", "decoys", "exploits"):
        names += [(f"{what}[{i}].name", item.name) for i, item in enumerate(getattr(network, what))]
    names += [(f"red.{name[:LONGEST_NAME]}", name) for name in network.red.programs]
    names += [(f"editions.{name[:LONGEST_NAME]}", name) for name in network.editions]
    for where, name in names:
        if not NAME.fullmatch(name):
            shown = name if len(name) <= LONGEST_NAME else f"{name[:20]}... ({len(name)} characters)"
            yield where, f"is {shown!r}; a name has 1 to {LONGEST_NAME} letters, digits or _ . -"


def _unknown_names(network: Network) -> Iterator[tuple[str, str]]:
    hosts = network.host_names
    exploits = [exploit.name for exploit in network.exploits]
    verbs = HOST_VERBS + tuple(DECOY_PREFIX + decoy.name for decoy in network.decoys)
    references: list[tuple[str, Iterable[str], Iterable[str]]] = [
        ("operational_service.host", [network.operational_service.host], hosts),
        ("red.foothold", [network.red.foothold], hosts),
        ("green.scans", network.green.scans, hosts),
        ("blue.actions", network.blue.actions, PLAIN_VERBS),
        ("blue.host_actions", network.blue.host_actions, verbs),
    ]
    for i, subnet in enumerate(network.subnets):
        references.append((f"subnets[{i}].hosts", subnet.hosts, hosts))
        references.append(_group(network, f"subnets[{i}].reached_through", subnet.reached_through or ()))
    for group in network.red.meander.retakes:
        references.append(_group(network, "red.meander.retakes", group))
    for i, host in enumerate(network.hosts):
        references.append((f"hosts[{i}].unit_type", [host.unit_type], network.unit_types))
        references.append((f"hosts[{i}].os", [host.os], ("linux", "windows")))
        references.append((f"hosts[{i}].reveals", host.reveals, hosts))
        types = [service.type for service in host.services]
        references.append((f"hosts[{i}].services.type", types, ["", *(e.type for e in network.exploits)]))
    for i, decoy in enumerate(network.decoys):
        references.append((f"decoys[{i}].os", [decoy.os], ("", "linux", "windows")))
        references.append((f"decoys[{i}].imitates", [decoy.imitates], [e.type for e in network.exploits]))
    for i, exploit in enumerate(network.exploits):
        references.append((f"exploits[{i}].by", [exploit.by], EXPLOIT_WAYS))
    for name, edition in network.editions.items():
        references.append((f"editions.{name}.broken_by_restore", edition.broken_by_restore, exploits))
    for where, used, known in references:
        for name in used:
            if name not in known:
                yield where, f"names {name!r}, which is not known; known: {', '.join(n for n in known if n)}"


def _group(network: Network, where: str, group: str | tuple[str, ...]) -> tuple[str, Iterable[str], Iterable[str]]:
    return (where, [group], network.subnet_names) if isinstance(group, str) else (where, group, network.host_names)


def _wrong_numbers(network: Network) -> Iterator[tuple[str, str]]:
    for item in fields(network.chance):
        value = getattr(network.chance, item.name)
        if not 0.0 <= value <= 1.0:
            yield f"chance.{item.name}", f"must be a probability from 0 to 1, not {value}"
    amounts = [(f"hosts[{i}].value", host.value) for i, host in enumerate(network.hosts)]
    amounts += [(f"reward.{item.name}", getattr(network.reward, item.name)) for item in fields(network.reward)]
    for where, value in amounts:
        if not 0.0 <= value <= 1000.0 or abs(value * 10 - round(value * 10)) > 1e-9:
            yield where, f"must be a whole number of tenths from 0 to 1000, not {value}"
    for item in fields(network.records):
        value = getattr(network.records, item.name)
        if not 1 <= value <= 100:
            yield f"records.{item.name}", f"must be from 1 to 100, not {value}"
    used = [(f"hosts[{i}].services", p) for i, h in enumerate(network.hosts) for s in h.services for p in s.ports]
    used += [(f"decoys[{i}]", p) for i, d in enumerate(network.decoys) for p in (d.opens, d.needs_free)]
    used += [(f"exploits[{i}]", p) for i, e in enumerate(network.exploits) for p in (e.port, *e.and_one_of)]
    for where, port in used:
        if not 1 <= port < 49152:
            yield where, f"names port {port}; allowed: 1 to 49151"


def _repeated_names(network: Network) -> Iterator[tuple[str, str]]:
    unique = {
        "unit_types": network.unit_types,
        "hosts.name": network.host_names,
        "subnets.name": network.subnet_names,
        "decoys.name": [decoy.name for decoy in network.decoys],
        "exploits.name": [exploit.name for exploit in network.exploits],
        "exploits.weight": [str(exploit.weight) for exploit in network.exploits],
        "blue.host_actions": network.blue.host_actions,
        "subnets.hosts": [host for subnet in network.subnets for host in subnet.hosts],
        "red.meander.retakes": [group for group in network.red.meander.retakes if isinstance(group, str)],
        "red": [*RED_AGENTS[MEANDER:], *network.red.programs],
    }
    for where, names in unique.items():
        for name in names:
            if list(names).count(name) > 1:
                yield where, f"has {name!r} more than once"


def _wrong_structure(network: Network) -> Iterator[tuple[str, str]]:
    if not network.green.scans:
        yield "green.scans", "must name at least one host"
    accounts = {service.account for host in network.hosts for service in host.services}
    for account in network.accounts.privileged:
        if account not in accounts:
            yield "accounts.privileged", f"names {account!r}, under which no service runs"
    in_subnets = {host for subnet in network.subnets for host in subnet.hosts}
    for name in network.host_names:
        if name not in in_subnets:
            yield "subnets.hosts", f"puts host {name!r} into no subnet"
    for i, host in enumerate(network.hosts):
        if not any(service.ports for service in host.services):
            yield f"hosts[{i}].services", f"leaves {host.name!r} without a listening port"
        if host.process_ids and len(host.process_ids) < len(host.services):
            yield f"hosts[{i}].process_ids", f"must have a number for each of the {len(host.services)} services"
        if not all(1 <= number < 2**15 for number in host.process_ids):
            yield f"hosts[{i}].process_ids", "must be from 1 to 32767"
    weights = [exploit.weight for exploit in network.exploits]
    if weights != sorted(weights, reverse=True):
        yield "exploits.weight", "must fall from one exploit to the next"
    if not network.editions:
        yield "editions", "must have at least one edition"


def _wrong_program(network: Network, name: str, program: Program) -> Iterator[tuple[str, str]]:
    """Complaints about one ``[red.NAME]``."""
    where, lines = f"red.{name}", program.program
    if not 1 <= len(lines) <= LINES:
        yield f"{where}.program", f"has {len(lines)} lines; allowed: 1 to {LINES}"
        return
    for user in program.users:
        if user not in network.host_names:
            yield f"{where}.users", f"names {user!r}, which is not known; known: {', '.join(network.host_names)}"
            return
    for i in range(len(lines)):
        yield from _wrong_line(network, f"{where}.program[{i}]", program, i)
    targets = [line.target for line in lines]
    if DRAWN_USER in targets and not program.users:
        yield f"{where}.users", "must name at least one host, because the program aims at $user"
    if REVEALED in targets and DRAWN_USER not in targets[: targets.index(REVEALED)]:
        yield f"{where}.program", "uses $enterprise before $user"
    for user in program.users if REVEALED in targets else ():
        if len(network.hosts[network.host_names.index(user)].reveals) != 1:
            yield f"{where}.users", f"has {user!r}, which must reveal exactly one host"
    drawn = network.drawn_targets(program)
    if len(drawn) > DRAWS:
        yield f"{where}.program", f"draws {len(drawn)} different targets ({', '.join(drawn)}); allowed: up to {DRAWS}"


def _wrong_line(network: Network, where: str, program: Program, number: int) -> Iterator[tuple[str, str]]:
    lines, line = program.program, program.program[number]
    for what, value, least in (
        ("success", line.success, 0),
        ("failure", line.failure, 0),
        ("unless_scanned", line.unless_scanned, -1),
    ):
        if not least <= value < len(lines):
            yield f"{where}.{what}", f"is {value}; the program has lines 0 to {len(lines) - 1}"
            return
    if line.action not in RED_ACTIONS:
        yield f"{where}.action", f"names {line.action!r}, which is not known; known: {', '.join(RED_ACTIONS)}"
        return
    hosts = (*network.host_names, *network.unit_types, ANY_HOST, DRAWN_USER, REVEALED)
    allowed = {"DiscoverRemoteSystems": network.subnet_names, "Sleep": ("",)}
    allowed["Impact"] = (network.operational_service.host,)
    known = allowed.get(line.action, hosts)
    if line.target not in known:
        yield f"{where}.target", f"names {line.target!r}, which is not known; known: {', '.join(known)}"
    if line.redraw and line.target not in network.drawn_targets(program):
        yield f"{where}.redraw", f"draws nothing, because the target {line.target!r} is not drawn"
    after = lines[line.success]
    same = after.action == "PrivilegeEscalate" and after.target == line.target
    if line.action == "ExploitRemoteService" and not (same and not after.redraw and after.unless_scanned < 0):
        yield (
            f"{where}.success",
            f"leads to {after.action} {after.target}; after an exploit that worked red must escalate on the same host "
            "at once, because the engine keeps no list of several sessions on a host",
        )
