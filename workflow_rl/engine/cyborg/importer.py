"""Reads a scenario file in CybORG 2.1's own schema into a :class:`Network`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workflow_rl.engine.cyborg.exporter import addresses
from workflow_rl.engine.cyborg.problems import runs_out
from workflow_rl.engine.cyborg.rules import (
    CLOSED,
    GATEWAY,
    OPEN,
    PRIVILEGED,
    RETAKEN_FIRST,
    RETAKEN_THEN,
    SERVICE,
    TARGET,
    genuine_bline,
    takeable,
    usable_name,
)
from workflow_rl.engine.cyborg.scenario_agents import Agents, read_agents
from workflow_rl.engine.cyborg.scenario_hosts import Computer, read_hosts
from workflow_rl.engine.cyborg.scenario_yaml import Part, read_yaml
from workflow_rl.engine.network import DECOY_PREFIX, Accounts, Host, Meander, Network, OperationalService, Red, Subnet
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.check import CAPACITY, LONGEST_NAME, contradictions
from workflow_rl.errors import NetworkError, UserError

_LARGEST_SUBNET = 1000


def import_scenario(path: Path, unit_types: Mapping[str, str] | None = None) -> tuple[Network, list[str]]:
    """Reads a scenario of CybORG 2.1, with its images in ``images/`` beside it or merged into the hosts.

    Unit types are the names of hosts without their numbers, in lower case.

    Args:
        path: the YAML file.
        unit_types: unit types of hosts, where others are wanted.

    Returns:
        The network, and notes on what genuine CybORG does otherwise with this file.

    Raises:
        NetworkError: the file is damaged, or says something that cannot be represented (with the place).
        UserError: ``unit_types`` names an unknown host.
    """
    path = Path(path)
    parts = read_yaml(path).table(("Agents", "Subnets", "Hosts"), ("Agents", "Subnets", "Hosts"))
    for what, most in (("Hosts", CAPACITY["hosts"]), ("Subnets", CAPACITY["subnets"])):
        if not 1 <= len(parts[what].table()) <= most:
            parts[what].refuse(f"has {len(parts[what].table())} entries; allowed: 1 to {most}")
    notes: list[str] = []
    computers = read_hosts(parts["Hosts"])
    subnets = _subnets(parts["Subnets"], [computer.host.name for computer in computers])
    agents = read_agents(parts["Agents"], computers, [subnet.name for subnet in subnets], notes)
    network = _assemble(path, computers, subnets, agents)
    network = _with_gates(network, parts["Subnets"], notes)
    _check_knowledge(network, computers)
    network = _with_red(network, notes)
    network = _with_unit_types(network, unit_types or {}, notes)
    for where, complaint in contradictions(network):
        raise NetworkError(f"{path}: as a network, {where} {complaint}.")
    stock = as_network(CAGE2)
    return (stock if replace(network, name=stock.name) == stock else network), notes


def _assemble(path: Path, computers: list[Computer], subnets: list[Subnet], agents: Agents) -> Network:
    """The network as far as single parts of the file say it; the numbers that CybORG fixes are those of cage2."""
    serving = [computer for computer in computers if computer.service_pid]
    if len(serving) != 1:
        names = ", ".join(computer.host.name for computer in serving) or "no host"
        raise NetworkError(f"{path}: Hosts: the service {SERVICE} must be on one host, not on {names}.")
    for computer in computers:
        if not usable_name(computer.host.name):
            computer.part.refuse("has a name that CybORG itself uses for something else")
    hosts = tuple(computer.host for computer in computers)
    accounts = {service.account for host in hosts for service in host.services}
    stock = as_network(CAGE2)
    verbs = agents.blue.host_actions
    decoys = tuple(decoy for decoy in stock.decoys if DECOY_PREFIX + decoy.name in verbs)
    return replace(
        stock,
        name=re.sub(r"[^A-Za-z0-9_-]+", "_", path.stem)[:LONGEST_NAME].lstrip("-") or "scenario",
        subnets=tuple(subnets),
        hosts=hosts,
        reward=replace(stock.reward, service_down=serving[0].availability),
        accounts=Accounts(tuple(account for account in PRIVILEGED.values() if account in accounts)),
        operational_service=OperationalService(SERVICE, serving[0].host.name),
        blue=agents.blue,
        decoys=decoys or stock.decoys,
        red=Red(agents.foothold),
        green=replace(stock.green, scans=agents.scans),
    )


def _subnets(part: Part, hosts: list[str]) -> list[Subnet]:
    subnets, placed = [], dict[str, str]()
    for name, subnet in part.table().items():
        if name == OPEN:
            subnet.refuse("has a name that stands for all subnets")
        entries = subnet.table(("Hosts", "NACLs", "Size"), ("Hosts", "NACLs", "Size"))
        members = entries["Hosts"].texts(hosts)
        for host in members:
            if host in placed:
                entries["Hosts"].refuse(f"has {host!r}, which is in subnet {placed[host]} already")
            placed[host] = name
        size = entries["Size"].number(1, _LARGEST_SUBNET)
        if addresses(size) < len(members):
            entries["Size"].refuse(f"is {size}, in which CybORG finds only {addresses(size)} addresses")
        subnets.append(Subnet(name, tuple(members)))
    for host in hosts:
        if host not in placed:
            part.refuse(f"puts host {host!r} into no subnet")
    return subnets


def _with_gates(network: Network, part: Part, notes: list[str]) -> Network:
    """Adds what opens closed subnets: sessions on hosts with "Enterprise" in their names."""
    home = network.subnet_of(network.red.foothold)
    named = [host for host in network.host_names if GATEWAY in host]
    able = takeable(network)
    through = _group(network, [host for host in named if host in able] or named)
    subnets = []
    for subnet in network.subnets:
        closed = _is_closed(part.table()[subnet.name].table()["NACLs"], home, network, notes)
        if closed and not named:
            part.refuse(f"keeps red out of {subnet.name} for ever, because no host has {GATEWAY!r} in its name")
        opened = network.red.foothold in named
        subnets.append(replace(subnet, reached_through=through if closed and not opened else ""))
    return replace(network, subnets=tuple(subnets))


def _is_closed(part: Part, home: str, network: Network, notes: list[str]) -> bool:
    """Does a subnet keep out red, all of whose actions start from its foothold in ``home``?"""
    rules = part.table((OPEN, *network.subnet_names))
    found = {}
    for source, rule in rules.items():
        sides = rule.table(("in", "out"), ("in",))
        words = (OPEN,) if source == OPEN else (OPEN, CLOSED)
        found[source] = sides["in"].text(words)
        if "out" in sides:
            sides["out"].text((OPEN, CLOSED))
        if source not in (OPEN, home) and found[source] == CLOSED:
            notes.append(f"{rule.place} makes no difference: all actions of red come from subnet {home}.")
    if home not in found and OPEN not in found:
        part.refuse(f"must say what comes in from {home} or from {OPEN}, or nothing ever does")
    return found.get(home, OPEN) == CLOSED


def _group(network: Network, hosts: list[str]) -> str | tuple[str, ...]:
    """A subnet of which red can take exactly these hosts, or their list."""
    able = takeable(network)
    for subnet in network.subnets:
        if set(subnet.hosts) & able == set(hosts):
            return subnet.name
    return tuple(hosts)


def _check_knowledge(network: Network, computers: list[Computer]) -> None:
    able, home = takeable(network), network.subnet_of(network.red.foothold)
    for computer in computers:
        name = computer.host.name
        if not computer.knows_itself and name in able and network.subnet_of(name) != home:
            computer.part.refuse(f"lacks info: {name}: Interfaces: All; that red learns nothing of its subnet there")


def _with_red(network: Network, notes: list[str]) -> Network:
    """Adds how CybORG's agents play by the names of the hosts."""
    foothold, target = network.red.foothold, network.operational_service.host
    able = takeable(network) - {foothold}
    first = [host for host in network.host_names if host in able and RETAKEN_FIRST in host]
    then = [host for host in network.host_names if host in able and RETAKEN_THEN in host and host not in first]
    retakes = tuple(_group(network, hosts) for hosts in (first, then) if hosts)
    if target != TARGET:
        notes.append(f"The service is on {target}; genuine agents stop it on {TARGET} alone, ours stop it here.")
    if RETAKEN_FIRST in foothold or RETAKEN_THEN in foothold:
        notes.append(f"Genuine Meander fails when it wants to retake its foothold {foothold}; ours does not retake it.")
    if runs_out(network):
        notes.append("Genuine Meander fails when it holds all hosts that it can find; ours sleeps then.")
    network = replace(network, red=Red(foothold, {}, Meander(retakes)))
    program = genuine_bline(network, {name: name for name in network.host_names}, as_network(CAGE2))
    if isinstance(program, str):
        notes.append(f"There is no red agent bline: genuine B_line cannot play here, because {program}.")
        return network
    return replace(network, red=replace(network.red, programs={"bline": program}))


def _with_unit_types(network: Network, given: Mapping[str, str], notes: list[str]) -> Network:
    """Unit types in the order of subnets, in each first that of the operational service."""
    for host in given:
        if host not in network.host_names:
            raise UserError(f"a unit type is given for {host[:80]!r}, which is no host of {network.name}.")
    types = {host.name: given.get(host.name, _guess(host)) for host in network.hosts}
    if len(set(types.values())) > CAPACITY["unit_types"]:
        types = {name: given.get(name, network.subnet_of(name).lower()) for name in types}
        notes.append("The names of the hosts make too many unit types, so that each subnet is one; give others.")
    target = network.operational_service.host
    places = {name: (network.subnet_names.index(network.subnet_of(name)), name != target) for name in types}
    order = sorted(network.host_names, key=places.__getitem__)
    hosts = tuple(replace(host, unit_type=types[host.name]) for host in network.hosts)
    return replace(network, hosts=hosts, unit_types=tuple(dict.fromkeys(types[name] for name in order)))


def _guess(host: Host) -> str:
    return host.name.rstrip("0123456789").rstrip("_.-").lower() or "host"
