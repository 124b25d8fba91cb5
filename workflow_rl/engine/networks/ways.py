"""What a network means for red and for the search, derived without playing: routes, knowledge and exploits.

The hosts that red can take are an upper bound: one that is missing is never taken, whatever chance and blue do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import factorial

from workflow_rl.engine.network import (
    ANY_HOST,
    DRAWN_USER,
    RED_AGENTS,
    REVEALED,
    SLEEPER,
    Exploit,
    Host,
    Network,
    Program,
    ProgramLine,
)
from workflow_rl.engine.networks.complaint import Complaint, shown


def exploits_on(network: Network, host: Host) -> list[str]:
    """Names of the exploits that can end with a session on the host, by its genuine services."""
    return [exploit.name for exploit in network.exploits if _works(network, exploit, host)]


def _works(network: Network, exploit: Exploit, host: Host) -> bool:
    listening = any(s.type == exploit.type and exploit.port in s.ports for s in host.services)
    if not listening or (exploit.by == "guess" and not host.guessable):
        return False
    genuine = {port for service in host.services for port in service.ports}
    false = {d.opens for d in network.decoys if d.os in ("", host.os) and d.needs_free not in genuine}
    return not exploit.and_one_of or any(port in genuine | false for port in exploit.and_one_of)


def takeable(network: Network) -> tuple[str, ...]:
    """Hosts on which at least one exploit works, whether or not red gets there."""
    return tuple(host.name for host in network.hosts if exploits_on(network, host))


def routes(network: Network) -> tuple[str, ...]:
    """Subnets that red can reach if it takes every host on the way."""
    weak, held = set(takeable(network)), {network.red.foothold}
    while True:
        open_ = [subnet for subnet in network.subnets if _is_open(network, subnet.name, held)]
        taken = held | {host for subnet in open_ for host in subnet.hosts if host in weak}
        if taken == held:
            return tuple(subnet.name for subnet in open_)
        held = taken


def _is_open(network: Network, subnet: str, held: Collection[str]) -> bool:
    gate = network.subnets[network.subnet_names.index(subnet)].reached_through
    return not gate or any(host in held for host in network.hosts_of(gate))


def taken_by(network: Network, red_agent: str) -> tuple[str, ...]:
    """Hosts that a red agent can ever take, in the order of the network; its foothold is not one of them."""
    if red_agent == RED_AGENTS[SLEEPER]:
        return ()
    if red_agent in network.red.programs:
        program = network.red.programs[red_agent]
        lines = _lines_that_run(program)
        swept = {line.target for line in lines if line.action == "DiscoverRemoteSystems"}
        scanned = _aims(network, program, [line for line in lines if line.action == "DiscoverNetworkServices"])
        attacked = _aims(network, program, [line for line in lines if line.action == "ExploitRemoteService"])
        return _spread(network, swept, scanned & attacked)
    return _spread(network, network.subnet_names, network.host_names)


def aimed_at(network: Network, red_agent: str) -> tuple[str, ...]:
    """Hosts that a program ever aims an exploit at; for Meander all hosts."""
    if red_agent == RED_AGENTS[SLEEPER]:
        return ()
    if red_agent not in network.red.programs:
        return network.host_names
    program = network.red.programs[red_agent]
    lines = [line for line in _lines_that_run(program) if line.action == "ExploitRemoteService"]
    aims = _aims(network, program, lines)
    return tuple(host for host in network.host_names if host in aims)


def _lines_that_run(program: Program) -> list[ProgramLine]:
    """The lines to which the program can ever come."""
    seen, waiting = set(), [0]
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            line = program.program[number]
            waiting += [line.success, line.failure, *([line.unless_scanned] if line.unless_scanned >= 0 else [])]
    return [program.program[number] for number in sorted(seen)]


def _aims(network: Network, program: Program, lines: list[ProgramLine]) -> set[str]:
    """Hosts that these lines can have as their targets."""
    aims: set[str] = set()
    hosts = {host.name: host for host in network.hosts}
    for line in lines:
        if line.target in hosts:
            aims.add(line.target)
        elif line.target == DRAWN_USER:
            aims |= set(program.users)
        elif line.target == REVEALED:
            aims |= {name for user in program.users for name in hosts[user].reveals}
        else:
            drawn = [host.name for host in network.hosts if line.target in (ANY_HOST, host.unit_type)]
            aims |= set(drawn) - {network.red.foothold}
    return aims


def _spread(network: Network, swept: Collection[str], attacked: Collection[str]) -> tuple[str, ...]:
    """Takes hosts until nothing changes: red must know the address, reach the subnet and have an exploit."""
    hosts, weak = {host.name: host for host in network.hosts}, set(takeable(network))
    foothold = network.red.foothold
    held, addresses = {foothold}, {foothold}
    while True:
        open_ = {subnet.name: subnet for subnet in network.subnets if _is_open(network, subnet.name, held)}
        known = {network.subnet_of(name) for name in held} & set(swept)
        addresses |= {host for name in known if name in open_ for host in open_[name].hosts}
        addresses |= {name for host in held for name in hosts[host].reveals}
        reached = {host for subnet in open_.values() for host in subnet.hosts}
        taken = held | (addresses & reached & weak & set(attacked))
        if taken == held:
            return tuple(name for name in hosts if name in held - {foothold})
        held = taken


def cut_off(network: Network) -> Iterator[Complaint]:
    """Subnets to which no way leads from the foothold, whatever red takes."""
    reached = routes(network)
    for i, subnet in enumerate(network.subnets):
        if subnet.name not in reached:
            gate = subnet.reached_through
            gate = gate if isinstance(gate, str) else ", ".join(gate)
            yield Complaint(
                f"subnets[{i}].reached_through",
                f"cuts off {shown(subnet.name)}: red can take no host of {gate}",
                shown(gate),
                f"hosts that red can take, in or behind {', '.join(reached) or 'its foothold'}",
            )


def warnings(network: Network) -> Iterator[Complaint]:
    """What is allowed and yet perhaps not intended."""
    reached = {host for agent in network.red_agents for host in taken_by(network, agent)}
    service, foothold = network.operational_service.host, network.red.foothold
    for i, host in enumerate(network.hosts):
        if host.name in reached | {foothold}:
            continue
        weak = exploits_on(network, host)
        reason = "red never learns its address or has no way to it" if weak else "no exploit works on its services"
        yield Complaint(f"hosts[{i}]", f"({host.name}) is never taken: {reason}", shown(host.name))
    if service not in reached | {foothold}:
        problem = f"is {shown(service)}, which red never takes, so the service never stops"
        yield Complaint("operational_service.host", problem, shown(service), ", ".join(sorted(reached)))
    for i, name in enumerate(network.unit_types):
        if [host.name for host in network.hosts if host.unit_type == name] == [foothold]:
            problem = f"has {shown(name)}, whose only host is red's foothold, which never counts as compromised"
            yield Complaint("unit_types", problem, shown(name), "types of other hosts", f"unit_types[{i}]")
        if name in (*network.host_names, ANY_HOST):
            problem = f"has {shown(name)}, which is also a target of another kind in programs"
            yield Complaint("unit_types", problem, shown(name), "names of nothing else", f"unit_types[{i}]")


@dataclass(frozen=True)
class Prey:
    """What one red agent can ever take, and how many orders can therefore differ at most."""

    red_agent: str
    hosts: tuple[str, ...]
    unit_types: tuple[str, ...]
    orders: int


def prey_of(network: Network, red_agent: str) -> Prey:
    """What a red agent can take; orders that agree on these unit types are the same to blue."""
    hosts = taken_by(network, red_agent)
    taken = {host.unit_type for host in network.hosts if host.name in hosts}
    unit_types = tuple(name for name in network.unit_types if name in taken)
    return Prey(red_agent, hosts, unit_types, factorial(len(unit_types)))


def meaning(network: Network) -> str:
    """What the network means for a search, in words."""
    orders = factorial(len(network.unit_types))
    lines = [
        f"{network.name}: {len(network.hosts)} hosts in {len(network.subnets)} subnets, {len(network.unit_types)} unit "
        f"types, {network.n_actions} actions of blue, {network.n_bits} bits of observation.",
        f"Red starts on {network.red.foothold} and wants to stop {network.operational_service.name} on "
        f"{network.operational_service.host}.",
        "",
        f"{len(network.unit_types)} unit types can be repaired in {orders:,} orders:",
    ]
    width = max(len(name) for name in (*network.unit_types, *network.red_agents))
    for name in network.unit_types:
        hosts = [host.name for host in network.hosts if host.unit_type == name]
        lines.append(f"  {name:{width}}  {' '.join(hosts)}")
    lines += ["", "An order matters only for the unit types that red can take:"]
    for red_agent in network.red_agents:
        prey = prey_of(network, red_agent)
        differ = f"at most {prey.orders:,} of the orders differ" if prey.orders > 1 else "all orders are the same"
        lines.append(f"  {red_agent:{width}}  {', '.join(prey.unit_types) or 'nothing'}: {differ}")
    return "\n".join(lines)
