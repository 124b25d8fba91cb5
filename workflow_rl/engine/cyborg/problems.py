"""Which networks genuine CybORG cannot play, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from workflow_rl.engine.cyborg.rules import (
    LEVELS,
    OPEN,
    PRIVILEGED,
    SERVICE,
    cyborg_names,
    gateway_sets,
    genuine_bline,
    named_groups,
    retaken_groups,
    takeable,
)
from workflow_rl.engine.network import Host, Network


def cyborg_problems(network: Network, stock: Network, red_agents: Iterable[str] | None = None) -> list[str]:
    """Reasons, one sentence without full stop each, why genuine CybORG does not play the network as described.

    Args:
        network: the network.
        stock: CAGE Challenge 2, whose numbers are fixed in CybORG.
        red_agents: whose play is examined; None: all of the network's, empty: none.
    """
    problems = [*_numbers(network, stock), *_structure(network)]
    for host in network.hosts:
        problems += _host_problems(network, host)
    if problems:
        return problems
    for red_agent in network.red_agents if red_agents is None else red_agents:
        problems += [f"red agent {red_agent}: {problem}" for problem in _agent_problems(network, stock, red_agent)]
    return problems


def _numbers(network: Network, stock: Network) -> Iterator[str]:
    for what in ("chance", "records"):
        for item in fields(getattr(network, what)):
            ours, theirs = (getattr(getattr(side, what), item.name) for side in (network, stock))
            if ours != theirs:
                yield f"{what}.{item.name} is {ours}; in CybORG it is {theirs}"
    if network.reward.restore != stock.reward.restore:
        yield f"reward.restore is {network.reward.restore}; in CybORG it is {stock.reward.restore}"
    if network.reward.service_down not in LEVELS.values():
        yield f"reward.service_down is {network.reward.service_down}; CybORG has {_levels()}"
    if network.exploits != stock.exploits:
        yield f"the exploits differ from CybORG's {len(stock.exploits)}, which are fixed"
    known = {decoy.name: decoy for decoy in stock.decoys}
    for decoy in network.decoys:
        if decoy != known.get(decoy.name):
            yield f"decoy {decoy.name} differs from CybORG's, which are {', '.join(known)}"
    for name, edition in network.editions.items():
        if edition != stock.editions.get(name):
            yield f"edition {name} differs from CybORG's, which are {', '.join(stock.editions)}"


def _levels() -> str:
    return ", ".join(str(value) for value in LEVELS.values())


def _structure(network: Network) -> Iterator[str]:
    foothold, service = network.red.foothold, network.operational_service
    if foothold == service.host:
        yield f"the operational service is on red's foothold {foothold}; in CybORG these hosts have different names"
    gates = gateway_sets(network)
    for subnet, hosts in gates.items():
        if foothold in network.hosts_of(network.subnets[network.subnet_names.index(subnet)].reached_through):
            yield f"subnet {subnet} is reached through red's foothold, so it is always open; leave reached_through out"
        elif hosts != next(iter(gates.values())):
            yield (
                f"subnet {subnet} is reached through other hosts than subnet {next(iter(gates))}; "
                "CybORG has one kind of gateway, which opens all closed subnets"
            )
    if OPEN in network.subnet_names:
        yield f"a subnet is called {OPEN!r}, which stands for all subnets in CybORG"
    accounts = {service.account for host in network.hosts for service in host.services}
    for account in accounts:
        if (account in network.accounts.privileged) != (account in PRIVILEGED.values()):
            yield f"account {account!r} differs: in CybORG {' and '.join(PRIVILEGED.values())} are privileged"


def _host_problems(network: Network, host: Host) -> Iterator[str]:
    if host.value not in LEVELS.values():
        yield f"host {host.name} has the value {host.value}; CybORG has {_levels()}"
    foreign = {PRIVILEGED[system] for system in PRIVILEGED if system != host.os}
    if host.guessable in foreign:
        yield f"host {host.name} has the guessable account {host.guessable!r}, which counts for nothing on {host.os}"
    if host.guessable == PRIVILEGED[host.os] and host.guessable not in network.accounts.privileged:
        yield f"host {host.name} has the guessable account {host.guessable!r}, which is privileged at once in CybORG"
    for service in host.services:
        if service.type and service.account in foreign:
            yield f"host {host.name} runs {service.process} as {service.account}, which counts for nothing on {host.os}"
        ports = {exploit.port for exploit in network.exploits if exploit.type == service.type == "smb"}
        if host.os != "windows" and ports & set(service.ports):
            yield f"host {host.name} runs {service.process} of type smb, which CybORG's exploit takes on windows alone"
        if host.name == network.operational_service.host and service.process == SERVICE:
            yield f"host {host.name} runs a listening process called {SERVICE}, so CybORG never sees the service stop"


def _agent_problems(network: Network, stock: Network, red_agent: str) -> Iterator[str]:
    if red_agent not in network.red_agents:
        yield f"the network has no such agent; it has {', '.join(network.red_agents)}"
    elif red_agent == "meander":
        yield from _meander_problems(network)
    elif red_agent == "bline":
        names = cyborg_names(network)
        expected, program = genuine_bline(network, names, stock), network.red.programs["bline"]
        if isinstance(expected, str):
            yield f"genuine B_line cannot play here: {expected}"
        elif program.program != expected.program:
            line = next(i for i, pair in enumerate(_pairs(program.program, expected.program)) if pair[0] != pair[1])
            yield f"line {line} of its program is not what genuine B_line executes here"
        elif set(program.users) != set(expected.users):
            yield f"its users must be {', '.join(expected.users)}, from which genuine B_line draws"


def _pairs(left: tuple[object, ...], right: tuple[object, ...]) -> Iterator[tuple[object, object]]:
    for i in range(max(len(left), len(right))):
        yield left[i : i + 1], right[i : i + 1]


def _meander_problems(network: Network) -> Iterator[str]:
    if named_groups(network, cyborg_names(network)) != retaken_groups(network):
        yield (
            "its retakes differ from what genuine Meander can do: one or two groups, without the foothold, "
            "and the gateways in one of them"
        )
    if runs_out(network):
        yield f"it can take all hosts that it finds but never {network.operational_service.host}, and then CybORG fails"


def runs_out(network: Network) -> bool:
    """Can Meander be left without anything to do? Genuine Meander raises an exception then."""
    able, foothold = takeable(network), network.red.foothold
    hosts = dict(zip(network.host_names, network.hosts, strict=True))
    gates, known, held = gateway_sets(network), set[str](), {foothold}
    while True:
        subnets = {network.subnet_of(host) for host in held}
        entered = {subnet for subnet in network.subnet_names if subnet not in gates or gates[subnet] & held}
        found = {host for subnet in subnets & entered for host in network.hosts_of(subnet)}
        found |= {foothold, *(name for host in held for name in hosts[host].reveals)}
        taken = {host for host in found & able if network.subnet_of(host) in entered} | held
        if found == known and taken == held:
            break
        known, held = found, taken
    open_for_ever = known - held or foothold not in able
    return not open_for_ever and network.operational_service.host not in held
