"""Agents that genuine CybORG plays for a network: red that follows a program, and green that scans the named hosts.

CybORG makes an agent by calling its class without arguments, asks ``get_action`` once per step and ``end_episode`` at
each reset. Red's chance comes from Python's global ``random``, as CybORG's own does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from workflow_rl.engine.network import ANY_HOST, DRAWN_USER, RED_ACTIONS, REVEALED, Network, ProgramLine

_SLEEP, _SWEEP, _SCAN, _EXPLOIT, _ESCALATE, _IMPACT = RED_ACTIONS
_SESSION = 0  # red's first one, from which it acts

Space = Mapping[str, Mapping[Any, bool]]
"""CybORG's action space: for each parameter the values, and whether the agent knows them."""


class ProgramAgent:
    """Executes one line of a program per step and moves by its success.

    Args:
        network: the network with the program.
        red_agent: the program's name.
        names: CybORG's name of each host.
        state: returns CybORG's true state. It serves to look up addresses. What red *knows* is its action space.
    """

    def __init__(self, network: Network, red_agent: str, names: Mapping[str, str], state: Callable[[], Any]) -> None:
        self.network, self.program = network, network.red.programs[red_agent]
        self.names, self.state = names, state
        self.end_episode()

    def end_episode(self) -> None:
        """Forgets the episode."""
        self.line = 0
        self.done: set[int] = set()
        self.drawn: dict[str, str] = {}
        self.scan_was_empty = False
        self.last_action = ""
        self.candidates: list[str] = []

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """CybORG calls it once; there is nothing to note."""

    def train(self, results: Any) -> None:
        """A program does not learn."""

    def get_action(self, observation: Mapping[str, Any], action_space: Space) -> Any:
        """The action of this step."""
        self._move(observation)
        line = self.program.program[self.line]
        makes = {kind.__name__: kind for kind in action_space["action"]}
        target = self._target(line, action_space)
        self.last_action = line.action if target else _SLEEP
        if self.last_action == _SLEEP:
            return makes[_SLEEP]()
        return makes[line.action](session=_SESSION, agent="Red", **self._parameters(line.action, target))

    def _move(self, observation: Mapping[str, Any]) -> None:
        """Goes to the line that follows the result of the last one."""
        worked = observation["success"] == True  # noqa: E712 (an enum)
        if self.last_action == _SCAN:
            self.scan_was_empty = worked and len(observation) == 1
        if self.done:
            last = self.program.program[self.line]
            self.line = last.success if worked else last.failure
        instead = self.program.program[self.line].unless_scanned
        if instead >= 0 and self.scan_was_empty and self.line not in self.done:
            self.line = instead
        self.done.add(self.line)

    def _target(self, line: ProgramLine, action_space: Space) -> str:
        """Name of the subnet or host (CybORG's) to which the line applies; empty if there is none to draw."""
        self.candidates = []
        if line.action == _SWEEP:
            return line.target
        if line.target in self.network.host_names:
            return self.names[line.target]
        if line.target == REVEALED:
            user = self.drawn.get(DRAWN_USER, "")
            return next((self.names[h.reveals[0]] for h in self.network.hosts if self.names[h.name] == user), "")
        if line.target and (line.redraw or line.target not in self.drawn):
            self.candidates = self._hosts_of(line.target, action_space)
            if not self.candidates:
                return ""
            self.drawn[line.target] = random.choice(self.candidates)
        return self.drawn.get(line.target, "")

    def _hosts_of(self, target: str, action_space: Space) -> list[str]:
        """The hosts from which a target is drawn: those of the list, or of a unit type as far as red knows them."""
        if target == DRAWN_USER:
            return [self.names[name] for name in self.program.users]
        known = {
            self.state().ip_addresses[address] for address, is_known in action_space["ip_address"].items() if is_known
        }
        hosts = [host for host in self.network.hosts if host.name != self.network.red.foothold]
        return [
            self.names[host.name]
            for host in hosts
            if target in (ANY_HOST, host.unit_type) and self.names[host.name] in known
        ]

    def _parameters(self, action: str, target: str) -> dict[str, Any]:
        """What CybORG's action wants: a subnet's range, a host's address or its name."""
        state = self.state()
        addresses = {name: address for address, name in state.ip_addresses.items()}
        if action == _SWEEP:
            member = self.names[self.network.hosts_of(target)[0]]
            return {"subnet": next(range_ for range_ in state.subnets if addresses[member] in range_)}
        return {"ip_address": addresses[target]} if action in (_SCAN, _EXPLOIT) else {"hostname": target}


def scanning_green(green_agent: Any, hosts: list[str]) -> Any:
    """CybORG's acting green agent, but it scans these hosts."""

    class Green(green_agent):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.hostnames = list(hosts)

    return Green
