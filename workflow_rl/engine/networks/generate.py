"""Generates a plausible network from a seed: workstations, servers, and a plant behind the servers.

The rules (chances, prices, exploits, decoys, editions, B_line's program) are those of CAGE Challenge 2. In structure it
is a network on which genuine CybORG's agents play as ours do: every workstation reveals one host of the first server
subnet, the third host of that subnet reveals the one with the operational service, and its hosts alone open the way to
the subnets behind it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product
from random import Random

from workflow_rl.engine.network import Host, Meander, Network, OperationalService, Program, Red, Subnet
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.kinds import PLANT, SERVERS, WORKSTATIONS, Kind, host_of
from workflow_rl.errors import UserError

HOSTS, UNIT_TYPES = (5, 64), (3, 12)
LARGEST_SEED = 2**63 - 1
THIRD = 2  # the host of the swept subnet that B_line attacks next
SHARES = (0.3, 0.4, 0.3)  # of the unit types: workstations, servers, plant
PARTS = (0.45, 0.3, 0.25)  # of the hosts
Segment = list[list[Host]]  # the hosts of each of its unit types
Part = tuple[str, list[Host], bool]
"""A subnet: its name, its hosts, and whether red must hold a host of the first server subnet to reach it."""


def generate(hosts: int, unit_types: int, seed: int) -> Network:
    """A network of so many hosts and unit types; the same on every machine.

    >>> network = generate(30, 8, seed=1)
    >>> len(network.hosts), len(network.unit_types), network.operational_service.name
    (30, 8, 'OTService')
    """
    _check("number of hosts", hosts, HOSTS)
    _check("number of unit types", unit_types, (UNIT_TYPES[0], min(UNIT_TYPES[1], hosts - 1)))
    _check("seed", seed, (0, LARGEST_SEED))
    chance = Random(f"{hosts} {unit_types} {seed}")
    kinds, sizes = _plan(hosts, unit_types, chance)
    office, servers, plant = (_segment(k, size, chance) for k, size in zip(kinds, sizes, strict=True))
    office[0][0] = replace(office[0][0], value=0.0)
    subnets = _subnets(office, servers, plant, chance)
    revealing = _reveal(subnets, office[0][0], plant[0][0], chance)
    network = _with_rules(f"generated-{hosts}-{unit_types}-{seed}", subnets, office[0][0].name, plant[0][0].name)
    known = {host.name: host for host in revealing}
    members = [known[host.name] for host in chain(*office, *servers, *plant)]
    accounts = {service.account for host in members for service in host.services}
    privileged = tuple(name for name in network.accounts.privileged if name in accounts)
    return replace(
        network,
        hosts=tuple(members),
        unit_types=tuple(dict.fromkeys(kind.unit_type for group in kinds for kind in group)),
        accounts=replace(network.accounts, privileged=privileged),
    )


def _check(what: str, value: object, allowed: tuple[int, int]) -> None:
    least, most = allowed
    if type(value) is not int or not least <= value <= most:
        raise UserError(f"the {what} must be a whole number from {least} to {most}, not {value!r}.")


def _plan(hosts: int, unit_types: int, chance: Random) -> tuple[list[list[Kind]], list[int]]:
    """The kinds of each segment and its number of hosts."""
    least_servers = THIRD + 1 if hosts > HOSTS[0] else THIRD  # in the smallest network the service's host is one
    pools = (WORKSTATIONS, SERVERS, PLANT)
    splits = [
        split
        for split in product(*(range(1, len(pool) + 1) for pool in pools))
        if sum(split) == unit_types and 1 + split[0] + max(least_servers, split[1]) + split[2] <= hosts
    ]
    splits.sort(key=lambda split: sum(abs(n - share * unit_types) for n, share in zip(split, SHARES, strict=True)))
    split = chance.choice(splits[:3])
    sizes = [1 + split[0], max(least_servers, split[1]), split[2]]
    for _ in range(hosts - sum(sizes)):
        draw = chance.random()
        sizes[0 if draw < PARTS[0] else 1 if draw < PARTS[0] + PARTS[1] else 2] += 1
    kinds = [_chosen(WORKSTATIONS, split[0], chance), _chosen(SERVERS, split[1], chance)]
    return [*kinds, [PLANT[0], *_chosen(PLANT[1:], split[2] - 1, chance)]], sizes


def _chosen(pool: tuple[Kind, ...], n: int, chance: Random) -> list[Kind]:
    left = list(pool)
    chosen = [left.pop(chance.randrange(len(left))) for _ in range(n)]
    return sorted(chosen, key=pool.index)


def _segment(kinds: list[Kind], size: int, chance: Random) -> Segment:
    """At least one host of each kind, numbered within it; all of a kind are worth the same."""
    counts = [1] * len(kinds)
    for _ in range(size - len(kinds)):
        counts[chance.randrange(len(kinds))] += 1
    if kinds[0] in WORKSTATIONS and counts[0] == 1:  # the foothold is not alone in its unit type
        counts[counts.index(max(counts))] -= 1
        counts[0] += 1
    values = [chance.choice(kind.values) for kind in kinds]
    return [
        [host_of(kind, f"{kind.unit_type}{i}", value, chance) for i in range(count)]
        for kind, value, count in zip(kinds, values, counts, strict=True)
    ]


def _subnets(office: Segment, servers: Segment, plant: Segment, chance: Random) -> list[Part]:
    """The segments as subnets; a large one is two, and any server may be the third."""
    front = (len(servers) + 1) // 2
    if sum(map(len, servers[:front])) <= THIRD or sum(map(len, servers)) < 7:
        front = len(servers)
    rear = len(plant) if len(plant) < 2 or sum(map(len, plant)) < 8 else len(plant) - 1
    near, protected = list(chain(*servers[:front])), list(chain(*plant[:rear]))
    if len(near) <= THIRD:  # the smallest network: no room for a protected segment
        near, protected = [near[0], *protected, near[1]], []
    else:
        other = chance.randrange(len(near))
        near[THIRD], near[other] = near[other], near[THIRD]
    named = [("Office", list(chain(*office)), False), ("Servers", near, False)]
    named += [("Data", list(chain(*servers[front:])), True), ("Plant", protected, True)]
    return [entry for entry in [*named, ("Field", list(chain(*plant[rear:])), True)] if entry[1]]


def _reveal(subnets: list[Part], foothold: Host, service: Host, chance: Random) -> list[Host]:
    """The hosts with what red learns on each."""
    members = {name: hosts for name, hosts, _ in subnets}
    front = members["Servers"]
    entries = [host.name for host in front if host not in (front[THIRD], service)]
    told = {host.name: (chance.choice(entries),) for host in members["Office"] if host != foothold}
    for near, far, share in (("Servers", "Data", 0.6), ("Data", "Plant", 0.3), ("Plant", "Field", 0.4)):
        targets = [host.name for host in members.get(far, []) if host != service]
        for i, host in enumerate(members.get(near, [])):
            if targets and (chance.random() < share or (i == 0 and near != "Data")):
                told[host.name] = (chance.choice(targets),)
    told[front[THIRD].name] = (service.name,)
    return [replace(host, reveals=told.get(host.name, ())) for _, hosts, _ in subnets for host in hosts]


def _with_rules(name: str, subnets: list[Part], foothold: str, service: str) -> Network:
    """CAGE Challenge 2 with these subnets; B_line's targets are renamed."""
    rules = as_network(CAGE2)
    members = {name: [host.name for host in hosts] for name, hosts, _ in subnets}
    front = members["Servers"]
    renamed = {"User": "Office", "Enterprise": "Servers", "Enterprise2": front[THIRD], "Op_Server0": service}
    lines = rules.red.programs["bline"].program
    program = Program(
        tuple(replace(line, target=renamed.get(line.target, line.target)) for line in lines),
        tuple(host for host in members["Office"] if host != foothold),
    )
    retakes = Meander(("Plant", "Servers"))
    if "Plant" not in members:
        retakes = Meander(((service,), tuple(host for host in front if host != service)))
    return replace(
        rules,
        name=name,
        subnets=tuple(Subnet(n, tuple(members[n]), "Servers" if behind else "") for n, _, behind in subnets),
        operational_service=OperationalService(rules.operational_service.name, service),
        red=Red(foothold, {"bline": program}, retakes),
        green=replace(rules.green, scans=(*members["Office"], *front)),
    )
