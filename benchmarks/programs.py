"""Programs for red, drawn at random: what a user might write, and what no sensible user would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workflow_rl.engine.network import ANY_HOST, DRAWN_USER, RED_ACTIONS, REVEALED, Network, Program, ProgramLine
from workflow_rl.engine.networks.check import DRAWS, LINES, contradictions
from workflow_rl.errors import NetworkError

SLEEP, SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = RED_ACTIONS


def with_programs(network: Network, programs: dict[str, Program]) -> Network:
    """The network with further red agents."""
    grown = replace(network, red=replace(network.red, programs={**network.red.programs, **programs}))
    for where, complaint in contradictions(grown):
        raise NetworkError(f"{network.name}: field {where} {complaint}.")
    return grown


def random_program(network: Network, seed: int, lines: int = LINES) -> Program:
    """A valid program: it sweeps and takes hosts, with lines between that fail, idle or aim anywhere.

    Args:
        network: hosts, subnets and unit types to aim at.
        seed: same seed, same program.
        lines: length; at least 8.
    """
    return _Author(network, seed, lines).write()


class _Author:
    """Writes the lines one after the other; ``starts`` are those at which an attack on a host begins."""

    def __init__(self, network: Network, seed: int, lines: int) -> None:
        self.network, self.size, self.random = network, lines, np.random.default_rng([seed, len(network.hosts)])
        self.users = tuple(
            host.name for host in network.hosts if len(host.reveals) == 1 and host.name != network.red.foothold
        )
        kinds = self.random.permutation(network.unit_types)[: DRAWS - 2]
        self.drawn = [ANY_HOST, *(str(kind) for kind in kinds)]
        self.lines: list[ProgramLine] = []
        self.starts = [0]

    def write(self) -> Program:
        """The whole program."""
        self._sweep(self.network.subnet_of(self.network.red.foothold))
        if self.users:
            self._take(DRAWN_USER)
            self.drawn += [DRAWN_USER, REVEALED]
        while len(self.lines) < self.size:
            kind = self.random.choice(["take", "sweep", "other"], p=[0.5, 0.25, 0.25])
            if kind == "take" and len(self.lines) + 3 <= self.size:
                self._take(self._target())
            elif kind == "sweep":
                self._sweep(str(self.random.choice(self.network.subnet_names)))
            else:
                self._other()
        return Program(tuple(self.lines), self.users)

    def _chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def _target(self) -> str:
        return str(self.random.choice(self.drawn if self._chance(0.7) else self.network.host_names))

    def _redraw(self, target: str, probability: float) -> bool:
        return target not in (REVEALED, *self.network.host_names) and self._chance(probability)

    def _next(self, lines: int = 1, straight: float = 1.0) -> int:
        """The line after the next ``lines``, or the start of an attack before it."""
        number = len(self.lines) + lines
        return number if number < self.size and self._chance(straight) else int(self.random.choice(self.starts))

    def _sweep(self, subnet: str) -> None:
        self.lines.append(ProgramLine(SWEEP, subnet, self._next(), self._next(straight=0.8)))

    def _take(self, target: str) -> None:
        """Scan, exploit, escalate; a failure leads to the scan, on, or back."""
        first = len(self.lines)
        self.starts.append(first)
        after, failures = self._next(3), [self._next(3, 0.7), self._next(3, 0.7), self._next(3, 0.7)]
        failures[1] = first if self._chance(0.3) else failures[1]
        instead = int(self.random.choice(self.starts)) if self._chance(0.2) else -1
        self.lines.append(ProgramLine(SCAN, target, first + 1, failures[0], -1, self._redraw(target, 0.7)))
        self.lines.append(ProgramLine(EXPLOIT, target, first + 2, failures[1], instead, self._redraw(target, 0.1)))
        self.lines.append(ProgramLine(ESCALATE, target, after, failures[2]))

    def _other(self) -> None:
        """Something on its own: a scan or escalation anywhere, an exploit that must fail, Impact, Sleep."""
        action = str(self.random.choice([SCAN, ESCALATE, IMPACT, SLEEP]))
        target = {IMPACT: self.network.operational_service.host, SLEEP: ""}.get(action, self._target())
        redraw = action in (SCAN, ESCALATE) and self._redraw(target, 0.5)
        instead = int(self.random.choice(self.starts)) if self._chance(0.1) else -1
        self.lines.append(ProgramLine(action, target, self._next(), self._next(straight=0.8), instead, redraw))
