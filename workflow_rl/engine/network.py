"""The challenge as data: the contents of a network file, and the names of agents and actions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from operator import le
from typing import Any

import numpy as np

RED_AGENTS = ("bline", "meander", "sleep")
GREEN_AGENTS = ("sleep", "active")
RED_ACTIONS = (
    "Sleep", "DiscoverRemoteSystems", "DiscoverNetworkServices", "ExploitRemoteService", "PrivilegeEscalate", "Impact",
)  # fmt: skip
EXPLOIT_WAYS = ("exploit", "guess")
DECOY_PREFIX = "Decoy"
FIRST_PROGRAM, MEANDER, SLEEPER = range(3)  # numbers of red agents; further programs follow
ANY_HOST, DRAWN_USER, REVEALED = "any", "$user", "$enterprise"  # targets of a program that are not names
OPTION_PORTS = 12  # the most ports that decide which exploits red has
BITS_PER_HOST = 4  # of an observation: two of activity, two of what blue believes
SECOND_COPY = 8  # where in a set of decoys those begin that stand on a host at least twice
DECOYS, COPIES = (1 << SECOND_COPY) - 1, (1 << 2 * SECOND_COPY) - 1
HOSTS_PER_WORD = 64 // BITS_PER_HOST  # of an observation


@dataclass(frozen=True)
class Room:
    """How much of everything the records of states and tables have room for."""

    hosts: int
    subnets: int
    actions: int
    lines: int  # of all programs, and one more for each
    draws: int  # targets that a program draws
    of_hosts: type  # sets of hosts; one bit of 16 and 32 is the sign, of 64 it is a host
    of_ports: type
    of_subnets: type
    of_lines: type
    of_line: type  # the number of a line

    @property
    def words(self) -> int:
        """Words of an observation."""
        return -(-self.hosts // HOSTS_PER_WORD)


SMALL = Room(16, 8, 256, 16, 1, np.int16, np.int16, np.int8, np.int16, np.int8)
MIDDLE = Room(32, 16, 512, 1056, 4, np.int32, np.int32, np.int32, np.int64, np.int16)
LARGE = Room(64, 16, 1024, 1056, 4, np.int64, np.int32, np.int32, np.int64, np.int16)


@dataclass(frozen=True)
class Chances:
    """Probabilities; cage2.toml explains them."""

    best_exploit: float
    detected: float
    green_sleeps: float


@dataclass(frozen=True)
class Prices:
    """Costs of a step in addition to the values of the hosts that red holds."""

    restore: float
    service_down: float


@dataclass(frozen=True)
class RecordCounts:
    """How many connection records each kind of attempt leaves on its target."""

    guess_refused: int
    guess_accepted: int
    exploit_on_decoy: int
    exploit: int


@dataclass(frozen=True)
class Subnet:
    """Hosts in the order of a sweep; ``reached_through``: the subnet or hosts of which red must hold one to enter."""

    name: str
    hosts: tuple[str, ...]
    reached_through: str | tuple[str, ...] = ""


@dataclass(frozen=True)
class Accounts:
    """Accounts whose services yield a privileged session when exploited."""

    privileged: tuple[str, ...]


@dataclass(frozen=True)
class Service:
    """A genuine listening process; ``type`` is empty if no exploit looks for it."""

    process: str
    account: str
    ports: tuple[int, ...]
    type: str = ""


@dataclass(frozen=True)
class Host:
    """One computer; ``value`` is what a privileged red session on it costs per step.

    ``process_ids`` are the ids of its processes in CybORG: those of the services, then those of idle ones.
    """

    name: str
    unit_type: str
    os: str
    value: float
    services: tuple[Service, ...]
    guessable: str = ""
    reveals: tuple[str, ...] = ()
    process_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class OperationalService:
    """The service that red wants to stop, and its host."""

    name: str
    host: str


@dataclass(frozen=True)
class Blue:
    """Blue's verbs in the order of their numbers: first those without a target, then each for every host."""

    actions: tuple[str, ...]
    host_actions: tuple[str, ...]


@dataclass(frozen=True)
class Decoy:
    """A false service that blue can place while port ``needs_free`` is free."""

    name: str
    opens: int
    needs_free: int
    imitates: str
    os: str = ""


@dataclass(frozen=True)
class Exploit:
    """One of red's ways in; ``by`` is ``exploit`` (a shell) or ``guess`` (an ssh login)."""

    name: str
    weight: float
    port: int
    type: str
    and_one_of: tuple[int, ...] = ()
    by: str = "exploit"


@dataclass(frozen=True)
class ProgramLine:
    """One line of a program; ``success`` and ``failure`` are the numbers of the next line.

    ``target`` is a subnet (of a sweep), a host, a unit type or ``any`` (a host of it that red knows, drawn once and
    kept), ``$user`` (drawn once from the program's ``users``) or ``$enterprise`` (the host that ``$user`` reveals).
    ``redraw`` draws anew each time the line is executed.
    """

    action: str
    target: str
    success: int
    failure: int
    unless_scanned: int = -1
    redraw: bool = False


@dataclass(frozen=True)
class Program:
    """A red agent that executes one line per step; CybORG's B_line is one."""

    program: tuple[ProgramLine, ...]
    users: tuple[str, ...] = ()


@dataclass(frozen=True)
class Meander:
    """The agent that attacks every host it discovers; ``retakes``: subnets or lists of hosts."""

    retakes: tuple[str | tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Red:
    """Red's first session and its agents: each ``[red.NAME]`` of a file other than Meander is a program."""

    foothold: str
    programs: dict[str, Program] = field(default_factory=dict)
    meander: Meander = Meander()


@dataclass(frozen=True)
class Green:
    """The hosts that an acting green scans."""

    scans: tuple[str, ...]


@dataclass(frozen=True)
class Edition:
    """The rules in which the public states of CybORG 2.1 differ."""

    scan_forgets: bool
    broken_by_restore: tuple[str, ...]


@dataclass(frozen=True)
class Network:
    """The whole challenge; the engine compiles its tables from this and from nothing else."""

    name: str
    version: int
    unit_types: tuple[str, ...]
    chance: Chances
    reward: Prices
    records: RecordCounts
    subnets: tuple[Subnet, ...]
    accounts: Accounts
    hosts: tuple[Host, ...]
    operational_service: OperationalService
    blue: Blue
    decoys: tuple[Decoy, ...]
    exploits: tuple[Exploit, ...]
    red: Red
    green: Green
    editions: dict[str, Edition]

    @cached_property
    def host_names(self) -> tuple[str, ...]:
        """Names of the hosts in index order."""
        return tuple(host.name for host in self.hosts)

    @cached_property
    def subnet_names(self) -> tuple[str, ...]:
        """Names of the subnets in index order."""
        return tuple(subnet.name for subnet in self.subnets)

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that differ between networks; a new field that has its default changes none."""
        return hashlib.sha256(json.dumps(_plain(self)).encode()).hexdigest()[:16]

    @cached_property
    def red_agents(self) -> tuple[str, ...]:
        """Names of the red agents; ``bline`` is the first program of CAGE Challenge 2."""
        programs = tuple(self.red.programs)
        return (*programs[:1], *RED_AGENTS[MEANDER:], *programs[1:])

    def red_number(self, red_agent: str) -> int:
        """Number of a red agent in states."""
        place = -1 if red_agent in RED_AGENTS[MEANDER:] else list(self.red.programs).index(red_agent)
        return RED_AGENTS.index(red_agent) if place < 0 else place + SLEEPER if place else FIRST_PROGRAM

    def drawn_targets(self, program: Program) -> tuple[str, ...]:
        """Targets of a program that are drawn, in the order of their first use."""
        untargeted = ("DiscoverRemoteSystems", "Sleep")
        aimed = dict.fromkeys(line.target for line in program.program if line.action not in untargeted)
        return tuple(target for target in aimed if target not in (REVEALED, *self.host_names))

    def hosts_of(self, group: str | tuple[str, ...]) -> tuple[str, ...]:
        """The hosts of a subnet, or those listed."""
        return self.subnets[self.subnet_names.index(group)].hosts if isinstance(group, str) else group

    @cached_property
    def ports(self) -> tuple[int, ...]:
        """Every port that a service, a decoy or an exploit uses, ascending; of many, first those that exploits need."""
        listening = {port for host in self.hosts for service in host.services for port in service.ports}
        listening |= {port for decoy in self.decoys for port in (decoy.opens, decoy.needs_free)}
        needed = {port for e in self.exploits for port in (e.port, *e.and_one_of)}
        many = len(listening | needed) > OPTION_PORTS
        return tuple(sorted(listening | needed, key=lambda port: (many and port not in needed, port)))

    @cached_property
    def stacked(self) -> tuple[str, ...]:
        """Decoys of which two on a host can make a scan look like an exploit: three records, all of one port."""
        ports = [(host.os, {port for service in host.services for port in service.ports}) for host in self.hosts]
        stack = [decoy for decoy in self.decoys if decoy.opens != decoy.needs_free]
        return tuple(one.name for one in stack if any(one.os in ("", os) and own == {one.opens} for os, own in ports))

    @cached_property
    def n_bits(self) -> int:
        """Number of zeros and ones of an observation."""
        return BITS_PER_HOST * len(self.hosts)

    @cached_property
    def n_actions(self) -> int:
        """Number of blue's actions."""
        return len(self.blue.actions) + len(self.blue.host_actions) * len(self.hosts)

    def subnet_of(self, host: str) -> str:
        """Name of the subnet that holds ``host``."""
        return next(subnet.name for subnet in self.subnets if host in subnet.hosts)

    def unit_type_index(self, host: str) -> int:
        """Index into ``unit_types`` of the host's unit type."""
        return self.unit_types.index(self.hosts[self.host_names.index(host)].unit_type)

    def action_index(self, verb: str, host: str = "") -> int:
        """Number of blue's action ``verb`` (on ``host``)."""
        if not host:
            return self.blue.actions.index(verb)
        first = len(self.blue.actions) + self.blue.host_actions.index(verb) * len(self.hosts)
        return first + self.host_names.index(host)

    def action_parts(self, action: int) -> tuple[str, str]:
        """Verb and host of blue's action number ``action``; the host is empty for an action without a target."""
        if action < len(self.blue.actions):
            return self.blue.actions[action], ""
        verb, host = divmod(action - len(self.blue.actions), len(self.hosts))
        return self.blue.host_actions[verb], self.host_names[host]

    def action_name(self, action: int) -> str:
        """Blue's action number ``action`` in words."""
        return " ".join(self.action_parts(action)).strip()


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        given = [(item, getattr(value, item.name)) for item in fields(value)]
        return {item.name: _plain(part) for item, part in given if part != item.default}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return {key: _plain(part) for key, part in value.items()} if isinstance(value, dict) else value


def room_for(network: Network) -> Room:
    """The smallest records that have room for the network."""
    programs = network.red.programs.values()
    lines = sum(len(program.program) + 1 for program in programs)
    draws = max((len(network.drawn_targets(program)) for program in programs), default=0)
    sizes = (len(network.hosts) + 1, len(network.subnets) + 1, network.n_actions + 1, lines, draws)
    room = (SMALL.hosts, SMALL.subnets, SMALL.actions, SMALL.lines, SMALL.draws)
    if len(network.ports) <= OPTION_PORTS and not network.stacked and all(map(le, sizes, room)):
        return SMALL
    return MIDDLE if len(network.hosts) < MIDDLE.hosts else LARGE
