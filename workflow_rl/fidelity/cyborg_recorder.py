"""Records a game of genuine CybORG while it is played: the true state and every chance outcome, as rows of a trace.

The recorder wraps objects of one game and leaves CybORG's code alone. It wraps the controller's execution of an exploit
and the exploit selector, and replaces the detection rate by a number that remembers its comparison. The trace format is
described in docs/fidelity.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workflow_rl.engine.network import RED_ACTIONS
from workflow_rl.envs.cyborg_sim import CyborgGame
from workflow_rl.fidelity.traces import CANDIDATES, as_set, codes_of

SESSION, DECOY, NO_PROCESS, UNROUTABLE, NOT_EXPLOITABLE, NO_OPTION = range(6)  # results of an exploit
_DECOY_PROCESSES = {
    "Apache": "apache2",
    "Femitter": "femitter",
    "HarakaSMPT": "haraka",
    "Smss": "Smss.exe",
    "SSHD": "Sshd.exe",
    "Svchost": "Svchost.exe",
    "Tomcat": "Tomcat.exe",
    "Vsftpd": "vsftpd",
}
_PRIVILEGED = ("root", "SYSTEM")  # accounts whose processes Remove does not end
_SERVICE = "OTService"  # CybORG's name of the operational service
_BELIEFS = ("No", "User", "Privileged", "Unknown")
_MALWARE_DENSITY = 0.9
_SSH_PORT = 22

Record = dict[str, Any]


class _Rate(float):
    """A probability that remembers the result of ``random() < rate``."""

    drawn: int = -1

    def __gt__(self, other: object) -> bool:
        result = isinstance(other, float) and float(self) > other
        self.drawn = int(result)
        return result


class _Selector:
    """Wraps CybORG's selection of an exploit and remembers what it selected."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.selected: Any = None
        self.routable, self.rate, self.works_on = True, _Rate(0), None

    def get_exploit_action(self, **arguments: Any) -> Any:
        self.routable, self.works_on = True, None
        selected = self.selected = self.inner.get_exploit_action(**arguments)
        if selected is None:
            return None
        self.rate = selected.detection_rate = _Rate(selected.detection_rate)
        check_routable, test_works = selected.check_routable, selected.__class__.test_exploit_works

        def watched_route(*places: Any) -> Any:
            route = check_routable(*places)
            self.routable = bool(route)
            return route

        def watched_test(host: Any, process: Any) -> Any:
            self.works_on = process
            return test_works(selected, host, process)

        selected.check_routable, selected.test_exploit_works = watched_route, watched_test
        return selected


class Recorder:
    """Observes a game; call :meth:`start` after its reset and :meth:`record` after each step."""

    def __init__(self, game: CyborgGame) -> None:
        self.game, self.codes = game, codes_of(game.network)
        names = getattr(game, "names", {})
        self.hosts = [names.get(name, name) for name in game.network.host_names]  # as CybORG calls them
        self._decoys = [_DECOY_PROCESSES[name] for name in self.codes.decoys]
        self._selector: _Selector | None = None
        self._collision = 0
        self._before: list[tuple[set[int], set[int]]] = []
        self._table = game.inner_wrapper("blue_info")
        controller = game.controller
        execute = controller.execute_action

        def watched(action: Any) -> Any:
            if type(action).__name__ == "ExploitRemoteService":
                inner = action.exploit_action_selector
                action.exploit_action_selector = self._selector = _Selector(getattr(inner, "inner", inner))
            return execute(action)

        controller.execute_action = watched

    def start(self) -> None:
        """Prepares for a new episode."""
        self._selector, self._collision = None, 0
        self._before = self._numbers()

    def record(self, action: int, observation: np.ndarray, reward: float) -> Record:
        """The row of the trace format for the step just played."""
        self._note_collision()
        chance = self._exploit()
        self._selector = None
        return {
            "obs": np.packbits(observation.astype(np.uint8)),
            "blue_action": self.codes.action(action),
            "reward": np.float64(reward),
            **self._red_move(),
            **chance,
            "green_target": np.int8(self._green_target()),
            "collision": np.uint8(self._collision),
            **self._truth(),
        }

    def _red_action(self) -> Any:
        """What red wanted to do; CybORG refuses a host or subnet that red does not know."""
        action = self.game.controller.action["Red"]
        return action.action if type(action).__name__ == "InvalidAction" else action

    def _red_move(self) -> Record:
        controller = self.game.controller
        action = self._red_action()
        name = type(action).__name__
        code = RED_ACTIONS.index(name) if name in RED_ACTIONS else len(RED_ACTIONS)
        success = controller.observation["Red"].data["success"]
        move: Record = {
            "red_action": np.int8(code),
            "red_target": np.int8(self._target(action)),
            "red_success": np.uint8(1 if success == True else 0 if success == False else 2),  # noqa: E712 (an enum)
        }
        drawn_from = getattr(controller.agent_interfaces["Red"].agent, CANDIDATES, None)
        if drawn_from is not None:
            move[CANDIDATES] = np.int64(as_set(self.hosts.index(host) for host in drawn_from))
        return move

    def _target(self, action: Any) -> int:
        state, network = self.game.controller.state, self.game.network
        if hasattr(action, "subnet"):
            member = self.hosts.index(state.ip_addresses[state.subnets[action.subnet].ip_addresses[0]])
            return network.subnet_names.index(network.subnet_of(network.host_names[member]))
        if hasattr(action, "ip_address"):
            return self.hosts.index(state.ip_addresses[action.ip_address])
        return self.hosts.index(action.hostname) if hasattr(action, "hostname") else -1

    def _green_target(self) -> int:
        hostname = getattr(self.game.controller.action["Green"], "hostname", None)
        return -1 if hostname is None else self.hosts.index(hostname)

    def _exploit(self) -> Record:
        """Which exploit was selected, its result, and whether its session was detected."""
        selector = self._selector
        chosen, result, detected = -1, -1, -1
        if type(self._red_action()).__name__ == "ExploitRemoteService":
            if selector is None or selector.selected is None:
                result = NO_OPTION
            else:
                chosen = self.codes.exploits.index(type(selector.selected).__name__)
                detected = selector.rate.drawn
                result = self._result(selector)
        return {"exploit": np.int8(chosen), "exploit_result": np.int8(result), "detect": np.int8(detected)}

    def _result(self, selector: _Selector) -> int:
        seen = self.game.controller.observation["Red"].data
        if seen["success"] == True:  # noqa: E712 (an enum)
            return SESSION
        if not selector.routable:
            return UNROUTABLE
        process = selector.works_on or self._listening_for_logins(selector.selected.ip_address)
        if process is None or len(seen) == 1:  # only the failure was reported
            return NO_PROCESS
        return DECOY if process.decoy_type.value else NOT_EXPLOITABLE

    def _listening_for_logins(self, address: Any) -> Any:
        """The process that an ssh login aims at; CybORG does not test it as it does for other exploits."""
        state = self.game.controller.state
        for process in state.hosts[state.ip_addresses[address]].processes:
            kind = getattr(process.process_type, "name", "")
            if kind == "SSH" and any(link.get("local_port") == _SSH_PORT for link in process.connections):
                return process
        return None

    def _truth(self) -> Record:
        """The true state after the step."""
        state, n = self.game.controller.state, len(self.hosts)
        reported = state.sessions["Blue"][0].sus_pids
        sessions, removable, decoys = np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        for session in state.sessions["Red"].values():
            host = self.hosts.index(session.host)
            sessions[host] += 1
            process = state.hosts[session.host].get_process(session.pid)
            known = session.pid in reported.get(session.host, ())
            removable[host] += known and process is not None and process.user not in _PRIVILEGED
        infected, running = [], False
        for host, name in enumerate(self.hosts):
            there = state.hosts[name]
            for process in there.processes:
                running |= process.name == _SERVICE
                if process.decoy_type.value:
                    decoys[host] |= 1 << self._decoys.index(process.name)
            if any(file.density >= _MALWARE_DENSITY for file in there.files):
                infected.append(host)
        beliefs = self._table.blue_info
        return {
            "priv": self.game.levels().astype(np.uint8),
            "n_red": sessions,
            "n_removable": removable,
            "decoys": decoys,
            "malware": self.codes.host_set(as_set(infected)),
            "ot_running": np.uint8(running),
            "compromised": np.array([_BELIEFS.index(beliefs[name][-1]) for name in self.hosts], np.uint8),
            "red_ports": self._remembered_ports(),
        }

    def _remembered_ports(self) -> np.ndarray:
        state = self.game.controller.state
        masks: np.ndarray = np.zeros(len(self.hosts), self.codes.port_set)
        for address, ports in state.sessions["Red"][0].ports.items():
            known = as_set(self.codes.ports.index(port) for port in ports)
            masks[self.hosts.index(state.ip_addresses[address])] = known | 1 << self.codes.scanned_bit
        return masks

    def _numbers(self) -> list[tuple[set[int], set[int]]]:
        """For each host the ids of its processes, and the ids that were ever reported to blue."""
        state = self.game.controller.state
        reported = state.sessions["Blue"][0].sus_pids
        return [
            ({process.pid for process in state.hosts[name].processes}, set(reported.get(name, ())))
            for name in self.hosts
        ]

    def _note_collision(self) -> None:
        """Notes when a new process has an id that blue suspects: rare, but blue's Remove may then end the wrong one."""
        before, self._before = self._before, self._numbers()
        for (old, suspected), (now, _) in zip(before, self._before, strict=True):
            self._collision |= bool((now - old) & suspected)
