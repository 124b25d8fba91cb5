"""Meander's candidates derived from a recording alone, to check that the engine chooses from the right set.

A replay forces the recorded target, so it would not notice an engine whose candidate set is too *large*. This is a
second, plain implementation of Meander's memory. It reads only red's recorded actions, targets and successes, and
shares no code with the engine.
"""

from __future__ import annotations

import numpy as np

from workflow_rl.engine.network import MEANDER, RED_ACTIONS, RED_AGENTS, Network
from workflow_rl.fidelity.traces import Trace, as_set

_SWEEP, _SCAN, _EXPLOIT, _ESCALATE, _IMPACT = (RED_ACTIONS.index(name) for name in RED_ACTIONS[1:])


class _Memory:
    """What Meander knows after its actions so far."""

    def __init__(self, network: Network) -> None:
        names = network.host_names
        self.subnets = [{names.index(host) for host in subnet.hosts} for subnet in network.subnets]
        self.reveals = [{names.index(host) for host in host_.reveals} for host_ in network.hosts]
        groups = network.red.meander.retakes
        self.retakes = [{names.index(host) for host in network.hosts_of(group)} for group in groups]
        foothold = names.index(network.red.foothold)
        self.addresses, self.names = {foothold}, {foothold}
        self.scanned: set[int] = set()
        self.exploited: set[int] = set()
        self.escalated: set[int] = set()
        self.mapped: set[int] = set()

    def candidates(self, action: int) -> set[int]:
        """The hosts among which an ``action`` of this kind chooses its target now."""
        if action == _SCAN:
            return self.addresses - self.scanned
        if action == _ESCALATE:
            return {h for h in self.names - self.escalated if h not in self.mapped or h in self.exploited}
        if action == _EXPLOIT:
            return self.addresses - self.exploited
        return set()

    def learn(self, action: int, target: int, success: bool) -> None:
        """Updates the memory with an action and its result."""
        if action == _SWEEP and success:
            self.addresses |= self.subnets[target]
        elif action == _SCAN:
            self.scanned.add(target)
        elif action == _EXPLOIT:
            self.exploited.add(target)
            if success:
                self.mapped.add(target)
                self.names.add(target)
            else:
                self.exploited.discard(target)
                held = next((self.escalated & hosts for hosts in self.retakes if self.escalated & hosts), set())
                self.escalated -= held
                self.exploited -= held
        elif action in (_ESCALATE, _IMPACT):
            self.escalated.add(target)
            if success:
                self.addresses |= self.reveals[target]
            else:
                self.escalated.discard(target)
                if target in self.mapped:
                    self.exploited.discard(target)


def meander_candidates(trace: Trace, network: Network) -> np.ndarray:
    """The hosts among which Meander chose in each step, as bit masks; 0 for other agents; shape (E, T)."""
    masks = np.zeros(trace["red_action"].shape, np.int64)
    for episode in np.flatnonzero(trace.played_by(RED_AGENTS[MEANDER : MEANDER + 1])):
        memory = _Memory(network)
        steps = zip(
            trace["red_action"][episode].tolist(),
            trace["red_target"][episode].tolist(),
            (trace["red_success"][episode] == 1).tolist(),
            strict=True,
        )
        for step, (action, target, success) in enumerate(steps):
            masks[episode, step] = as_set(memory.candidates(action))
            memory.learn(action, target, success)
    return masks
