"""Networks that differ from CAGE Challenge 2 and that genuine CybORG can play."""

from __future__ import annotations

from dataclasses import replace

from workflow_rl.engine.network import Meander, Network, ProgramLine
from workflow_rl.engine.network_file import load_network

CAGE2 = load_network()
ODD = [
    "Sensor", "GateA", "GateB", "GateC", "Openvpn", "Plc1", "Plc2", "Boss", "Laptop", "Pc1", "User0", "Entry", "Pc4",
]  # fmt: skip


def renamed(network: Network, names: dict[str, str], subnets: dict[str, str] | None = None) -> Network:
    """The same network under other names."""
    of_subnet = subnets or {}

    def many(old: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names[host] for host in old)

    def group(old: str | tuple[str, ...]) -> str | tuple[str, ...]:
        return of_subnet.get(old, old) if isinstance(old, str) else many(old)

    def line(old: ProgramLine) -> ProgramLine:
        known = of_subnet if old.action == "DiscoverRemoteSystems" else names
        return replace(old, target=known.get(old.target, old.target))

    programs = {
        name: replace(program, users=many(program.users), program=tuple(line(one) for one in program.program))
        for name, program in network.red.programs.items()
    }
    return replace(
        network,
        subnets=tuple(
            replace(
                one,
                name=of_subnet.get(one.name, one.name),
                hosts=many(one.hosts),
                reached_through=group(one.reached_through),
            )
            for one in network.subnets
        ),
        hosts=tuple(replace(host, name=names[host.name], reveals=many(host.reveals)) for host in network.hosts),
        operational_service=replace(network.operational_service, host=names[network.operational_service.host]),
        red=replace(
            network.red,
            foothold=names[network.red.foothold],
            programs=programs,
            meander=Meander(tuple(group(one) for one in network.red.meander.retakes)),
        ),
        green=replace(network.green, scans=many(network.green.scans)),
    )


def without(network: Network, *gone: str) -> Network:
    """The network without some hosts."""

    def rest(hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(host for host in hosts if host not in gone)

    programs = {n: replace(program, users=rest(program.users)) for n, program in network.red.programs.items()}
    return replace(
        network,
        subnets=tuple(replace(subnet, hosts=rest(subnet.hosts)) for subnet in network.subnets),
        hosts=tuple(host for host in network.hosts if host.name not in gone),
        red=replace(network.red, programs=programs),
        green=replace(network.green, scans=rest(network.green.scans)),
    )


def plus(network: Network, like: str, *names: str) -> Network:
    """The network with more hosts that are like one of it."""
    host, home = network.hosts[network.host_names.index(like)], network.subnet_of(like)
    programs = network.red.programs
    if home == network.subnet_of(network.red.foothold):
        programs = {n: replace(program, users=program.users + names) for n, program in programs.items()}
    return replace(
        network,
        hosts=network.hosts + tuple(replace(host, name=name) for name in names),
        subnets=tuple(replace(one, hosts=one.hosts + names) if one.name == home else one for one in network.subnets),
        red=replace(network.red, programs=programs),
    )


def _through_two() -> Network:
    """Two of three Enterprise hosts are gateways, so that B_line cannot play."""
    subnets = [
        replace(one, reached_through=one.reached_through and ("Enterprise1", "Enterprise2")) for one in CAGE2.subnets
    ]
    red = replace(CAGE2.red, programs={}, meander=Meander((("Op_Host0", "Op_Server0"), ("Enterprise1", "Enterprise2"))))
    return replace(CAGE2, subnets=tuple(subnets), red=red)


VARIANTS = {
    "renamed": renamed(
        CAGE2,
        dict(zip(CAGE2.host_names, ODD, strict=True)),
        {"User": "Office", "Enterprise": "Dmz", "Operational": "Plant"},
    ),
    "fifteen": plus(plus(CAGE2, "User4", "User5"), "Op_Host1", "Op_Host3"),
    "eleven": without(CAGE2, "User4", "Op_Host2"),
    "open": replace(CAGE2, subnets=tuple(replace(subnet, reached_through="") for subnet in CAGE2.subnets)),
    "large": plus(CAGE2, "User4", *(f"User{i}" for i in range(5, 25))),
    "gateways": _through_two(),
}
