"""The rules of the game once more, slow and obvious: sets, dictionaries and lists of sessions, one game at a time.

Written from the rules in words. It shares no code with the engine, only the description of the network and the codes of
a trace. Its games are recorded like those of genuine CybORG, so that a replay compares both in every step.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from workflow_rl.engine.network import RED_ACTIONS, Exploit, Host, Network, ProgramLine, Service
from workflow_rl.fidelity.traces import CANDIDATES, Trace, as_set, codes_of

NO, USER, PRIVILEGED, UNKNOWN = range(4)  # the remembered column, as traces have it
COLUMN_BITS = {NO: (0, 0), UNKNOWN: (1, 0), USER: (0, 1), PRIVILEGED: (1, 1)}
ACTIVITY_BITS = {"none": (0, 0), "scan": (1, 0), "exploit": (1, 1)}
SESSION, DECOY, NOBODY_THERE, NO_ROUTE, REFUSED, NO_OPTION = range(6)
FAILED, WORKED, UNCLEAR = range(3)
SHELL = 4444


class Chance(Protocol):
    """What is left to chance."""

    def pick(self, hosts: Sequence[str]) -> str: ...
    def exploit(self, options: Sequence[Exploit]) -> Exploit: ...
    def detected(self) -> bool: ...
    def green(self, hosts: Sequence[str]) -> str: ...


class Dice:
    """Chance by a seed."""

    def __init__(self, network: Network, seed: int) -> None:
        self.network, self.random = network, random.Random(seed)

    def pick(self, hosts: Sequence[str]) -> str:
        return self.random.choice(hosts)

    def exploit(self, options: Sequence[Exploit]) -> Exploit:
        best = len(options) == 1 or self.random.random() < self.network.chance.best_exploit
        return options[0] if best else self.random.choice(options[1:])

    def detected(self) -> bool:
        return self.random.random() < self.network.chance.detected

    def green(self, hosts: Sequence[str]) -> str:
        return "" if self.random.random() < self.network.chance.green_sleeps else self.random.choice(hosts)


@dataclass
class Foothold:
    """One session of red on a host."""

    privileged: bool
    traced: bool = False


@dataclass
class Memory:
    """What red knows and has done."""

    addresses: set[str]
    names: set[str]
    subnets: set[str]
    ports: dict[str, set[int]] = field(default_factory=dict)
    service_known: bool = False
    swept: set[str] = field(default_factory=set)
    scanned: set[str] = field(default_factory=set)
    exploited: set[str] = field(default_factory=set)
    escalated: set[str] = field(default_factory=set)
    mapped: set[str] = field(default_factory=set)
    line: int = 0
    done: set[int] = field(default_factory=set)
    drawn: dict[str, str] = field(default_factory=dict)
    empty_scan: bool = False


class PlainGame:
    """One game; :meth:`step` returns the row of a trace."""

    def __init__(self, network: Network, red_agent: str, chance: Chance, edition: str, green_acts: bool) -> None:
        self.network, self.red_agent, self.chance = network, red_agent, chance
        self.edition, self.green_acts, self.codes = network.editions[edition], green_acts, codes_of(network)
        self.hosts = {host.name: host for host in network.hosts}
        self.service_host = network.operational_service.host
        home = network.red.foothold
        self.sessions: dict[str, list[Foothold]] = {name: [] for name in self.hosts}
        self.sessions[home].append(Foothold(privileged=True))
        self.decoys: dict[str, list[str]] = {name: [] for name in self.hosts}
        self.column = dict.fromkeys(self.hosts, NO)
        self.malware: set[str] = set()
        self.restored: set[str] = set()
        self.service_runs = True
        self.red = Memory({home}, {home}, {network.subnet_of(home)})
        self.last: tuple[str, str, int] = ("Sleep", "", UNCLEAR)
        self.records: dict[str, list[tuple[int, int]]] = {}  # of this step: local and remote port
        self.tried: tuple[str, int, int] = ("", -1, -1)  # exploit, result, detected
        self.candidates: list[str] = []

    def step(self, action: int) -> dict[str, Any]:
        """Blue, green, red, reward, monitor."""
        verb, host = self.network.action_parts(action)
        self.records, self.tried, self.candidates = {name: [] for name in self.hosts}, ("", -1, -1), []
        infected = host in self.malware
        placed = self._blue(verb, host)
        green = self.chance.green(self.network.green.scans) if self.green_acts else ""
        if green:
            self._touch(green, self._listening(green))
        self.last = self._red()
        reward = self._reward(verb)
        activity = {name: self._activity(name, name == host and placed) for name in self.hosts}
        for name, seen in activity.items():
            if seen == "exploit":
                self.column[name] = USER
        if verb == "Analyse" and infected:
            self.column[host] = PRIVILEGED
        self._monitor()
        return self._row(action, reward, green, activity)

    def _blue(self, verb: str, host: str) -> bool:
        """Carries out blue's action; returns whether it placed a decoy."""
        if verb == "Remove":
            self.sessions[host] = [one for one in self.sessions[host] if one.privileged or not one.traced]
            self.column[host] = NO if self.column[host] == NO else UNKNOWN
        elif verb == "Restore":
            first = self.sessions[host][:1] if host == self.network.red.foothold else []
            self.sessions[host], self.decoys[host], self.column[host] = first, [], NO
            self.malware.discard(host)
            self.restored.add(host)
            self.service_runs |= host == self.service_host
        for decoy in self.network.decoys:
            fits = decoy.os in ("", self.hosts[host].os) if host else False
            if verb == f"Decoy{decoy.name}" and fits and decoy.needs_free not in self._listening(host):
                self.decoys[host].append(decoy.name)
                return True
        return False

    def _listening(self, host: str) -> list[int]:
        """One port for each listening socket, genuine ones first."""
        opens = {decoy.name: decoy.opens for decoy in self.network.decoys}
        genuine = [port for service in self.hosts[host].services for port in service.ports]
        return genuine + [opens[name] for name in self.decoys[host]]

    def _touch(self, host: str, ports: Sequence[int], remote: int = 0) -> None:
        self.records[host] += [(port, remote) for port in ports]

    def _activity(self, host: str, placed: bool) -> str:
        """What blue sees of a host in this step."""
        records = self.records[host]
        number, different = len(records) + placed, len({local for local, _ in records})
        if not records:
            return "none"
        if number >= 3 and different >= 3:
            return "scan"
        if any(remote == SHELL for _, remote in records) or (number >= 3 and different == 1):
            return "exploit"
        return "none" if placed else "scan"

    def _monitor(self) -> None:
        """A session that was reported in this step can be removed from now on."""
        for host, records in self.records.items():
            if any(remote == SHELL for _, remote in records):
                self.sessions[host][-1].traced = True

    def _reward(self, verb: str) -> float:
        tenths = sum(round(10 * self.hosts[name].value) for name in self.hosts if self._privileged(name))
        tenths += 0 if self.service_runs else round(10 * self.network.reward.service_down)
        tenths += round(10 * self.network.reward.restore) if verb == "Restore" else 0
        return -tenths / 10

    def _privileged(self, host: str) -> bool:
        return any(session.privileged for session in self.sessions[host])

    def _red(self) -> tuple[str, str, int]:
        """Red chooses and acts; returns action, target and success."""
        action, target = self._choose()
        acts = {
            "DiscoverRemoteSystems": self._sweep,
            "DiscoverNetworkServices": self._scan,
            "ExploitRemoteService": self._exploit,
            "PrivilegeEscalate": self._escalate,
            "Impact": self._impact,
        }
        if action == "Sleep":
            return action, "", UNCLEAR
        return action, target, WORKED if acts[action](target) else FAILED

    def _reachable(self, host: str) -> bool:
        subnet = next(one for one in self.network.subnets if host in one.hosts)
        if not subnet.reached_through:
            return True
        return any(self.sessions[gateway] for gateway in self.network.hosts_of(subnet.reached_through))

    def _sweep(self, subnet: str) -> bool:
        members = self.network.hosts_of(subnet)
        if subnet not in self.red.subnets or not self._reachable(members[0]):
            return False
        self.red.addresses |= set(members)
        return True

    def _scan(self, host: str) -> bool:
        if host not in self.red.addresses:
            self.red.empty_scan = False
            return False
        self.red.empty_scan = not self._reachable(host)
        if not self.red.empty_scan:
            found = self._listening(host)
            self._touch(host, found)
            old = set() if self.edition.scan_forgets else self.red.ports.get(host, set())
            self.red.ports[host] = old | set(found)
        return True

    def _exploit(self, host: str) -> bool:
        known = self.red.ports.get(host, set())
        options = [
            e for e in self.network.exploits if e.port in known and (not e.and_one_of or known & set(e.and_one_of))
        ]
        if not options:
            self.tried = ("", NO_OPTION, -1)
            return False
        exploit = self.chance.exploit(sorted(options, key=lambda e: -e.weight))
        result, detected = self._attempt(exploit, self.hosts[host])
        self.tried = (exploit.name, result, detected)
        return result == SESSION

    def _attempt(self, exploit: Exploit, host: Host) -> tuple[int, int]:
        """Result of an exploit, and whether the new session was reported (-1: not drawn)."""
        counts, guess = self.network.records, exploit.by == "guess"
        if not self._reachable(host.name):
            return NO_ROUTE, -1
        genuine = next((s for s in host.services if s.type == exploit.type and exploit.port in s.ports), None)
        if genuine is None:
            fits = [d for d in self.network.decoys if (d.opens, d.imitates) == (exploit.port, exploit.type)]
            if not any(decoy.name in self.decoys[host.name] for decoy in fits):
                return NOBODY_THERE, -1
            self._touch(host.name, [exploit.port] * (counts.guess_refused if guess else counts.exploit_on_decoy))
            return DECOY, -1
        if guess and not host.guessable:
            self._touch(host.name, [exploit.port] * counts.guess_refused)
            return REFUSED, -1
        if exploit.name in self.edition.broken_by_restore and host.name in self.restored:
            self._touch(host.name, [exploit.port] * counts.exploit)
            return REFUSED, -1
        return SESSION, self._enter(host.name, exploit, genuine)

    def _enter(self, host: str, exploit: Exploit, service: Service) -> int:
        """A new session; returns whether it was reported."""
        self.red.names.add(host)
        if exploit.by == "guess":
            self._touch(host, [exploit.port] * self.network.records.guess_accepted)
            self.sessions[host].append(Foothold(privileged=False))
            return -1
        self._touch(host, [exploit.port] * self.network.records.exploit)
        self.malware.add(host)
        self.sessions[host].append(Foothold(service.account in self.network.accounts.privileged))
        detected = self.chance.detected()
        if detected:
            self._touch(host, [50_000], SHELL)
        return int(detected)

    def _escalate(self, host: str) -> bool:
        if not self.sessions[host]:
            return False
        if not self._privileged(host):
            (only,) = self.sessions[host]  # with several, chance would decide; programs never have several
            only.privileged = True
            self.malware.add(host)
        self.red.addresses |= set(self.hosts[host].reveals)
        self.red.subnets.add(self.network.subnet_of(host))
        self.red.service_known |= host == self.service_host
        return True

    def _impact(self, host: str) -> bool:
        if not self.sessions[host] or not self.red.service_known:
            return False
        if host not in self.restored:
            self.service_runs = False
        return True

    def _choose(self) -> tuple[str, str]:
        if self.red_agent == "sleep":
            return "Sleep", ""
        return self._meander() if self.red_agent == "meander" else self._program()

    def _program(self) -> tuple[str, str]:
        red, lines = self.red, self.network.red.programs[self.red_agent].program
        if red.done:
            red.line = lines[red.line].success if self.last[2] == WORKED else lines[red.line].failure
        if lines[red.line].unless_scanned >= 0 and red.empty_scan and red.line not in red.done:
            red.line = lines[red.line].unless_scanned
        red.done.add(red.line)
        line = lines[red.line]
        target = line.target if line.action == "DiscoverRemoteSystems" else self._aim(line)
        return (line.action, target) if target else ("Sleep", "")

    def _aim(self, line: ProgramLine) -> str:
        """The host of a line."""
        program, drawn = self.network.red.programs[self.red_agent], self.red.drawn
        if line.target in self.hosts or not line.target:
            return line.target
        if line.target == "$enterprise":
            return self.hosts[drawn["$user"]].reveals[0] if "$user" in drawn else ""
        if line.target not in drawn or line.redraw:
            if line.target == "$user":
                self.candidates = list(program.users)
            else:
                for name, host in self.hosts.items():
                    if name in self.red.addresses and name != self.network.red.foothold:
                        self.candidates += [name] if line.target in ("any", host.unit_type) else []
            if not self.candidates:
                return ""
            drawn[line.target] = self.chance.pick(self.candidates)
        return drawn[line.target]

    def _meander(self) -> tuple[str, str]:
        red = self.red
        self._digest()
        if self.service_host in red.escalated:
            return "Impact", self.service_host
        for subnet in self.network.subnet_names:
            if subnet in red.subnets - red.swept:
                red.swept.add(subnet)
                return "DiscoverRemoteSystems", subnet
        ready = {host for host in red.names - red.escalated if host not in red.mapped or host in red.exploited}
        rules = (
            ("DiscoverNetworkServices", red.addresses - red.scanned, red.scanned),
            ("PrivilegeEscalate", ready, red.escalated),
            ("ExploitRemoteService", red.addresses - red.exploited, red.exploited),
        )
        for action, hosts, noted in rules:
            if hosts:
                self.candidates = [name for name in self.hosts if name in hosts]
                target = self.chance.pick(self.candidates)
                noted.add(target)
                return action, target
        raise AssertionError("Meander has nothing left to do")

    def _digest(self) -> None:
        """Meander learns from its last action."""
        red, (action, target, success) = self.red, self.last
        if action == "ExploitRemoteService" and success == WORKED:
            red.mapped.add(target)
        elif action == "ExploitRemoteService":
            red.exploited.discard(target)
            groups = [set(self.network.hosts_of(group)) & red.escalated for group in self.network.red.meander.retakes]
            lost = next((group for group in groups if group), set())
            red.escalated -= lost
            red.exploited -= lost
        elif action in ("PrivilegeEscalate", "Impact") and success == FAILED:
            red.escalated.discard(target)
            if target in red.mapped:
                red.exploited.discard(target)

    def _row(self, action: int, reward: float, green: str, activity: dict[str, str]) -> dict[str, Any]:
        names, (red_action, target, success), (exploit, result, detected) = list(self.hosts), self.last, self.tried
        places = self.network.subnet_names if red_action == "DiscoverRemoteSystems" else names
        bits = [bit for name in names for bit in (*ACTIVITY_BITS[activity[name]], *COLUMN_BITS[self.column[name]])]
        level = [2 if self._privileged(name) else 1 if self.sessions[name] else 0 for name in names]
        placed = [as_set(self.codes.decoys.index(decoy) for decoy in self.decoys[name]) for name in names]
        ports: np.ndarray = np.zeros(len(names), self.codes.port_set)
        for name, known in self.red.ports.items():
            mask = as_set(self.codes.ports.index(port) for port in known)
            ports[names.index(name)] = mask | 1 << self.codes.scanned_bit
        removable = [sum(one.traced and not one.privileged for one in self.sessions[name]) for name in names]
        return {
            "obs": np.packbits(np.array(bits, np.uint8)),
            "blue_action": self.codes.action(action),
            "reward": np.float64(reward),
            "red_action": np.int8(RED_ACTIONS.index(red_action)),
            "red_target": np.int8(list(places).index(target) if target else -1),
            "red_success": np.uint8(success),
            "exploit": np.int8(self.codes.exploits.index(exploit) if exploit else -1),
            "exploit_result": np.int8(result),
            "detect": np.int8(detected),
            "green_target": np.int8(names.index(green) if green else -1),
            "collision": np.uint8(0),
            "priv": np.array(level, np.uint8),
            "n_red": np.array([len(self.sessions[name]) for name in names], np.uint8),
            "n_removable": np.array(removable, np.uint8),
            "decoys": np.array(placed, np.uint8),
            "malware": self.codes.host_set(as_set(names.index(name) for name in self.malware)),
            "ot_running": np.uint8(self.service_runs),
            "compromised": np.array([self.column[name] for name in names], np.uint8),
            "red_ports": ports,
            CANDIDATES: np.int64(as_set(names.index(name) for name in self.candidates)),
        }


def plain_trace(
    network: Network, red_agent: str, games: Sequence[tuple[int, Sequence[int], bool]], edition: str
) -> Trace:
    """Games of the plain simulator as a trace; each is given by its seed, blue's actions and whether green acts."""
    played = []
    for seed, actions, green_acts in games:
        game = PlainGame(network, red_agent, Dice(network, seed), edition, green_acts)
        played.append([game.step(action) for action in actions])
    arrays = {name: np.stack([[row[name] for row in rows] for rows in played]) for name in played[0][0]}
    codes = codes_of(network)
    if red_agent in ("meander", "sleep"):
        del arrays[CANDIDATES]  # a replay derives Meander's from its actions
    arrays |= {
        "red_agent": np.full(len(played), codes.red_agents.index(red_agent), np.uint8),
        "n_steps": np.array([len(rows) for rows in played], np.uint16),
        "obs0": np.zeros((len(played), arrays["obs"].shape[-1]), np.uint8),
    }
    return Trace(f"plain games against {red_agent}", arrays, codes, network.digest)
