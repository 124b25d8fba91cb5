"""Networks for tests, made at random from the parts of CAGE Challenge 2, with names that CybORG's own agents know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workflow_rl.engine.network import Host, Network, Program, Subnet
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.check import contradictions

KINDS = {"Enterprise": "enterprise", "Op_Host": "op_host", "User": "user"}
VALUES = (0.0, 0.1, 1.0)  # that CybORG can express


def variant(n_hosts: int, seed: int) -> Network:
    """A network of ``n_hosts`` (7 to 64) hosts; services, systems, values, and what a host reveals are drawn.

    CybORG's agents fix some names and places: the foothold User0, a third host of Enterprise that reveals Op_Server0.
    """
    network, generator = load_network(), np.random.default_rng([seed, n_hosts])
    numbers = {"Enterprise": 3, "Op_Host": 0, "User": 2}
    for kind in generator.choice(list(numbers), n_hosts - 7):
        numbers[str(kind)] += 1
    names = {kind: [f"{kind}{i}" for i in range(number)] for kind, number in numbers.items()}
    models = {host.name: host for host in network.hosts}
    hosts = [models["Defender"]]
    for kind, own in names.items():
        hosts += [_drawn(network, name, KINDS[kind], generator) for name in own]
        if kind == "Op_Host":
            hosts.append(models["Op_Server0"])
    aims: dict[str, tuple[str, ...]] = {
        name: (str(generator.choice(names["Enterprise"])),) for name in names["User"][1:]
    }
    aims |= {"Enterprise2": ("Op_Server0",), "User0": ()}
    hosts = [replace(host, reveals=aims.get(host.name, host.reveals)) for host in hosts]
    hosts = [replace(host, os="windows", value=0.0) if host.name == "User0" else host for host in hosts]
    operational = ["Op_Server0", *names["Op_Host"]]
    subnets = (
        Subnet("Enterprise", (*names["Enterprise"], "Defender")),
        Subnet("Operational", tuple(str(name) for name in generator.permutation(operational)), "Enterprise"),
        Subnet("User", tuple(names["User"])),
    )
    bline = replace(network.red.programs["bline"], users=tuple(names["User"][1:]))
    scans = tuple(host.name for host in hosts if generator.random() < 0.5) or ("User0",)
    return finished(network, f"variant-{n_hosts}-{seed}", tuple(hosts), subnets, bline, scans)


def finished(
    network: Network,
    name: str,
    hosts: tuple[Host, ...],
    subnets: tuple[Subnet, ...],
    bline: Program,
    scans: tuple[str, ...],
) -> Network:
    """The network with other hosts; accounts and unit types that no host has any more are left out."""
    used = {service.account for host in hosts for service in host.services}
    privileged = tuple(account for account in network.accounts.privileged if account in used)
    made = replace(
        network,
        name=name,
        hosts=hosts,
        subnets=subnets,
        accounts=replace(network.accounts, privileged=privileged),
        red=replace(network.red, programs={"bline": bline}),
        green=replace(network.green, scans=scans),
    )
    assert list(contradictions(made)) == []
    return made


def _drawn(network: Network, name: str, unit_type: str, generator: np.random.Generator) -> Host:
    """A host with the services of one or two hosts of CAGE Challenge 2 with the same system."""
    model = network.hosts[int(generator.integers(len(network.hosts)))]
    if name == "User0":
        model = network.hosts[network.host_names.index("User0")]
    services, taken = list(model.services), {port for service in model.services for port in service.ports}
    for host in network.hosts:
        for service in host.services:
            if host.os == model.os and generator.random() < 0.15 and not taken & set(service.ports):
                services.append(service)
                taken |= set(service.ports)
    guessable = model.guessable if generator.random() < 0.8 else ""
    value, ids = float(generator.choice(VALUES)), tuple(range(1100, 1100 + len(services)))
    order = generator.permutation(len(services))
    return Host(name, unit_type, model.os, value, tuple(services[i] for i in order), guessable, (), ids)
