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
from workflow_rl.fidelity.traces import TRACE_DECOYS, TRACE_EXPLOITS, TRACE_PORTS, TRACE_SCANNED_BIT

SESSION, DECOY, NO_PROCESS, UNROUTABLE, NOT_EXPLOITABLE, NO_OPTION = range(6)  # results of an exploit
_DECOY_PROCESSES = ("apache2", "femitter", "haraka", "Smss.exe", "Sshd.exe", "Svchost.exe", "Tomcat.exe", "vsftpd")
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
        self.game, self.hosts = game, game.network.host_names
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
            "blue_action": np.uint8(action),
            "reward": np.float64(reward),
            **self._red_move(),
            **chance,
            "green_target": np.int8(self._green_target()),
            "collision": np.uint8(self._collision),
            **self._truth(),
        }

    def _red_move(self) -> Record:
        controller = self.game.controller
        action = controller.action["Red"]
        name = type(action).__name__
        code = RED_ACTIONS.index(name) if name in RED_ACTIONS else len(RED_ACTIONS)
        success = controller.observation["Red"].data["success"]
        return {
            "red_action": np.int8(code),
            "red_target": np.int8(self._target(action)),
            "red_success": np.uint8(1 if success == True else 0 if success == False else 2),  # noqa: E712 (an enum)
        }

    def _target(self, action: Any) -> int:
        state = self.game.controller.state
        if hasattr(action, "subnet"):
            return self.game.network.subnet_names.index(state.subnets[action.subnet].name)
        if hasattr(action, "ip_address"):
            return self.hosts.index(state.ip_addresses[action.ip_address])
        return self.hosts.index(action.hostname) if hasattr(action, "hostname") else -1

    def _green_target(self) -> int:
        hostname = getattr(self.game.controller.action["Green"], "hostname", None)
        return -1 if hostname is None else self.hosts.index(hostname)

    def _exploit(self) -> Record:
        """Which exploit was selected, its result, and whether its session was detected."""
        controller, selector = self.game.controller, self._selector
        chosen, result, detected = -1, -1, -1
        if type(controller.action["Red"]).__name__ == "ExploitRemoteService":
            if selector is None or selector.selected is None:
                result = NO_OPTION
            else:
                chosen = TRACE_EXPLOITS.index(type(selector.selected).__name__)
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
        privileged = self.game.network.accounts.privileged
        for session in state.sessions["Red"].values():
            host = self.hosts.index(session.host)
            sessions[host] += 1
            process = state.hosts[session.host].get_process(session.pid)
            known = session.pid in reported.get(session.host, ())
            removable[host] += known and process is not None and process.user not in privileged
        malware = running = 0
        for host, name in enumerate(self.hosts):
            there = state.hosts[name]
            for process in there.processes:
                running |= process.name == self.game.network.operational_service.name
                if process.decoy_type.value:
                    decoys[host] |= 1 << _DECOY_PROCESSES.index(process.name)
            malware |= any(file.density >= _MALWARE_DENSITY for file in there.files) << host
        beliefs = self._table.blue_info
        return {
            "priv": self.game.levels().astype(np.uint8),
            "n_red": sessions,
            "n_removable": removable,
            "decoys": decoys,
            "malware": np.uint16(malware),
            "ot_running": np.uint8(running),
            "compromised": np.array([_BELIEFS.index(beliefs[name][-1]) for name in self.hosts], np.uint8),
            "red_ports": self._remembered_ports(),
        }

    def _remembered_ports(self) -> np.ndarray:
        state = self.game.controller.state
        masks = np.zeros(len(self.hosts), np.uint16)
        for address, ports in state.sessions["Red"][0].ports.items():
            known = sum(1 << TRACE_PORTS.index(port) for port in set(ports))
            masks[self.hosts.index(state.ip_addresses[address])] = known | 1 << TRACE_SCANNED_BIT
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


assert len(_DECOY_PROCESSES) == len(TRACE_DECOYS)
