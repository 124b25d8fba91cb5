"""How CybORG 2.1 reads a scenario: its fixed names and words, and how its red agents play by the names of hosts."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain

from workflow_rl.engine.network import Host, Network, Program

FOOTHOLD, TARGET, SERVICE = "User0", "Op_Server0", "OTService"  # names that its red agents know
GATEWAY, RETAKEN_FIRST, RETAKEN_THEN = "Enterprise", "Op", "Ent"  # parts of names that they look for
GREEN_SCANS = (*(f"User{i}" for i in range(5)), *(f"Enterprise{i}" for i in range(3)))
PRIVILEGED = {"linux": "root", "windows": "SYSTEM"}
LEVELS = {"None": 0.0, "Low": 0.1, "Medium": 1.0, "High": 10.0}
OPEN, CLOSED = "all", "None"  # what a subnet lets in
TYPES = {  # its types of process, and ours
    "ssh": "ssh", "sshd": "ssh", "sshd.exe": "ssh", "smtp": "smtp", "femitter": "ftp", "mysql": "sql", "smb": "smb",
    "webserver": "web", "http": "web", "https": "web", "rdp": "rdp", "svchost": "", "netcat": "",
}  # fmt: skip
_KEYS = ("success", "Valid", "action")  # of its observations, beside the names of hosts
_LONGEST = 48


def process_type(name: str) -> str | None:
    """Our type for CybORG's type or name of a process; None if it knows no such type."""
    lower = name.lower()
    return TYPES.get("webserver" if lower.replace(" ", "") == "webserver" else lower)


def takeable(network: Network) -> frozenset[str]:
    """Hosts on which at least one exploit works."""
    return frozenset(host.name for host in network.hosts if _can_be_taken(network, host))


def _can_be_taken(network: Network, host: Host) -> bool:
    return any(
        exploit.type == service.type and exploit.port in service.ports and (exploit.by != "guess" or host.guessable)
        for exploit in network.exploits
        for service in host.services
    )


def gateway_sets(network: Network) -> dict[str, frozenset[str]]:
    """For each subnet that is not always open, the hosts through which red can enter it."""
    able = takeable(network)
    gated = [subnet for subnet in network.subnets if subnet.reached_through]
    return {subnet.name: able & set(network.hosts_of(subnet.reached_through)) for subnet in gated}


def retaken_groups(network: Network) -> list[frozenset[str]]:
    """Hosts that Meander retakes, without those for which it makes no difference."""
    groups, seen = [], set[str]()
    for group in network.red.meander.retakes:
        hosts = (takeable(network) & set(network.hosts_of(group))) - seen - {network.operational_service.host}
        groups += [hosts] if hosts else []
        seen |= hosts
    return groups


def named_groups(network: Network, names: dict[str, str]) -> list[frozenset[str]]:
    """Hosts that CybORG's Meander retakes by their ``names``."""
    able = takeable(network) - {network.operational_service.host, network.red.foothold}
    first = frozenset(host for host in able if RETAKEN_FIRST in names[host])
    then = frozenset(host for host in able if RETAKEN_THEN in names[host]) - first
    return [group for group in (first, then) if group]


def cyborg_names(network: Network) -> dict[str, str]:
    """The names under which CybORG plays the hosts as the network describes them; names that fit stay.

    The foothold is User0, the host of the operational service Op_Server0. "Enterprise" marks the hosts that open closed
    subnets, "Op" and "Ent" those that Meander retakes first and second. No other host that red can take has these parts
    in its name.
    """
    opening = frozenset(chain(*gateway_sets(network).values()))
    if not any(subnet.reached_through for subnet in network.subnets) and "bline" in network.red.programs:
        users = network.red.programs["bline"].users
        opening = frozenset(name for host in network.hosts if host.name in users for name in host.reveals)
    groups = [*retaken_groups(network), frozenset[str](), frozenset[str]()]
    tries = [_names(network, opening, groups[0], groups[1])]
    if not groups[1]:
        tries.append(_names(network, opening, groups[1], groups[0]))
    return min(tries, key=lambda names: (named_groups(network, names) != retaken_groups(network), _changes(names)))


def _changes(names: dict[str, str]) -> int:
    return sum(ours != theirs for ours, theirs in names.items())


def _names(network: Network, opening: frozenset[str], first: frozenset[str], then: frozenset[str]) -> dict[str, str]:
    fixed = {network.operational_service.host: TARGET, network.red.foothold: FOOTHOLD}
    others = [host for host in network.host_names if host not in fixed]
    able, gated = takeable(network), any(subnet.reached_through for subnet in network.subnets)

    def fits(host: str) -> bool:
        if host in (FOOTHOLD, TARGET) or not usable_name(host):
            return False
        if host not in able:
            return host not in opening or GATEWAY in host
        opens = GATEWAY in host if host in opening else not gated or GATEWAY not in host
        retaken = host in first or (RETAKEN_THEN in host) == (host in then or host in opening)
        return opens and (RETAKEN_FIRST in host) == (host in first) and retaken

    names = fixed | {host: host for host in others if fits(host)}
    for host in others:
        if host not in names:
            start = f"{RETAKEN_FIRST}_" if host in first else ""
            start += f"{GATEWAY}_" if host in opening else f"{RETAKEN_THEN}_" if host in then - first else ""
            names[host] = _unused(start + host.lower()[:_LONGEST], set(names.values()))
    return {host: names[host] for host in network.host_names}


def usable_name(name: str) -> bool:
    """CybORG's observations mix names of hosts with addresses and with words of their own."""
    return name not in _KEYS and not re.fullmatch(r"[\d.]+", name)


def _unused(name: str, taken: set[str]) -> str:
    name = name if usable_name(name) else f"host_{name}"
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}_{number}"
    return free


def genuine_bline(network: Network, names: dict[str, str], stock: Network) -> Program | str:
    """The program that CybORG's B_line executes on hosts of these ``names``, or the reason why it cannot.

    ``stock`` is CAGE Challenge 2, whose numbers are fixed in CybORG.
    """
    hosts = dict(zip(network.host_names, network.hosts, strict=True))
    foothold, target = network.red.foothold, network.operational_service.host
    for host, name in ((foothold, FOOTHOLD), (target, TARGET)):
        if names[host] != name:
            return f"the host {names[host]} would have to be called {name}"
    home = network.subnet_of(foothold)
    users = tuple(host for host in network.hosts_of(home) if host != foothold)
    if not users:
        return f"subnet {home} has no host beside {foothold}"
    entered = set()
    for user in users:
        seen = [user, *sorted(hosts[user].reveals, key=network.host_names.index)]
        found = [host for host in seen if GATEWAY in names[host]]
        if not found:
            return f"{user} reveals no host with {GATEWAY!r} in its name"
        if hosts[user].reveals != (found[0],):
            return f"{user} must reveal one host alone, with {GATEWAY!r} in its name, and have another name itself"
        entered.add(network.subnet_of(found[0]))
    if len(entered) > 1 or home in entered:
        return f"the hosts of subnet {home} must reveal hosts of one other subnet, not of {', '.join(sorted(entered))}"
    subnet = network.subnets[network.subnet_names.index(entered.pop())]
    if subnet.reached_through:
        return f"subnet {subnet.name} is closed when it arrives there"
    if len(subnet.hosts) < 3:
        return f"subnet {subnet.name} has no third host, which it attacks next"
    third = subnet.hosts[2]
    if target not in (third, *hosts[third].reveals):
        return f"{third}, the third host of subnet {subnet.name}, which it attacks next, does not reveal {target}"
    own = stock.red.programs["bline"]
    places = {0: home, 7: subnet.name, 8: third, 11: target}  # lines of the stock program by what they aim at
    moved = {own.program[line].target: place for line, place in places.items()}
    return Program(tuple(replace(line, target=moved.get(line.target, line.target)) for line in own.program), users)
