"""Programs that red follows in tests of the lockstep: ten that try what no stock agent does, and random ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workflow_rl.engine.network import ANY_HOST, DRAWN_USER, RED_ACTIONS, REVEALED, Network, Program, ProgramLine
from workflow_rl.engine.networks.check import DRAWS, contradictions

SLEEP, SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = RED_ACTIONS
Line = tuple[str, str, int, int] | tuple[str, str, int, int, dict[str, int | bool]]
USERS = ("User1", "User2", "User3", "User4")


def program(*lines: Line, users: tuple[str, ...] = ()) -> Program:
    """A program of lines (action, target, next line after success, after failure, other fields)."""
    return Program(tuple(ProgramLine(*line[:4], **(line[4] if len(line) > 4 else {})) for line in lines), users)


def take(target: str, first: int, after: int, failed: int, **scan: bool) -> list[Line]:
    """Three lines from number ``first`` on: scan, exploit, escalate."""
    return [
        (SCAN, target, first + 1, failed, dict(scan)),
        (EXPLOIT, target, first + 2, failed),
        (ESCALATE, target, after, failed),
    ]


AGAIN = {"redraw": True}
NASTY = {
    "scans_unknown_hosts": program(
        (SCAN, "Op_Server0", 1, 1), (SCAN, "Enterprise0", 2, 2), (SCAN, "User3", 3, 3), (SWEEP, "User", 4, 4),
        *take("User3", 4, 7, 0), *take("Enterprise0", 7, 10, 0), (SCAN, "Op_Server0", 11, 11),
        (SCAN, "Enterprise2", 0, 7),
    ),
    "exploits_without_a_scan": program(
        (EXPLOIT, "User1", 1, 2), (ESCALATE, "User1", 2, 2), (SWEEP, "User", 3, 3), (EXPLOIT, "User1", 4, 5),
        (ESCALATE, "User1", 5, 5), (EXPLOIT, "Enterprise2", 7, 6), (SCAN, "User1", 0, 0), (ESCALATE, "Enterprise2", 0, 0),
    ),
    "escalates_elsewhere": program(
        (ESCALATE, "Enterprise2", 1, 1), (ESCALATE, "User0", 2, 0), (ESCALATE, "User2", 3, 3), (SWEEP, "User", 4, 4),
        *take("User2", 4, 7, 0), (ESCALATE, "User4", 8, 8), (ESCALATE, "User2", 9, 4), *take("Enterprise1", 9, 0, 8),
    ),
    "sweeps_the_protected_subnet_early": program(
        (SWEEP, "Operational", 1, 1), (SWEEP, "Enterprise", 2, 2), (SWEEP, "User", 3, 3), *take("User1", 3, 6, 3),
        (SWEEP, "Enterprise", 7, 7), *take("Enterprise1", 7, 10, 3), (SWEEP, "Enterprise", 11, 7),
        (SWEEP, "Operational", 12, 12), *take("Enterprise2", 12, 15, 7), *take("Op_Server0", 15, 18, 12),
        (SWEEP, "Operational", 19, 12), *take("op_host", 19, 19, 15, redraw=True),
    ),
    "impact_without_access": program(
        (IMPACT, "Op_Server0", 1, 1), (SWEEP, "User", 2, 2), *take("User4", 2, 5, 0), *take("Enterprise0", 5, 8, 2),
        (SWEEP, "Enterprise", 9, 5), *take("Enterprise2", 9, 12, 5), (IMPACT, "Op_Server0", 13, 13),
        *take("Op_Server0", 13, 16, 9), (IMPACT, "Op_Server0", 0, 13),
    ),
    "draws_anew": program(
        (SCAN, ANY_HOST, 1, 3, AGAIN), (EXPLOIT, ANY_HOST, 2, 0), (ESCALATE, ANY_HOST, 3, 0), (SWEEP, "User", 4, 0),
        (SWEEP, "Enterprise", 5, 0), (SWEEP, "Operational", 6, 0), (EXPLOIT, ANY_HOST, 7, 0, AGAIN),
        (ESCALATE, ANY_HOST, 0, 6),
    ),
    "unit_types": program(
        (SWEEP, "User", 1, 1), *take("user", 1, 4, 1, redraw=True), *take("enterprise", 4, 7, 1, redraw=True),
        (SWEEP, "Enterprise", 8, 4), *take("op_server", 8, 11, 4), (IMPACT, "Op_Server0", 12, 8),
        (SWEEP, "Operational", 13, 13), *take("op_host", 13, 11, 8, redraw=True),
    ),
    "any_host_for_ever": program((SWEEP, "User", 1, 1), *take(ANY_HOST, 1, 4, 1), (SLEEP, "", 1, 2)),
    "attacks_its_own_foothold": program(
        (EXPLOIT, "User0", 1, 2), (ESCALATE, "User0", 2, 2), (SCAN, "User0", 3, 3), (EXPLOIT, "User0", 4, 3),
        (ESCALATE, "User0", 5, 2), (SWEEP, "User", 6, 0), *take("User1", 6, 0, 2),
    ),
    "users_without_a_sweep": program(
        (SLEEP, "", 0, 1), *take(DRAWN_USER, 1, 4, 7, redraw=True), *take(REVEALED, 4, 8, 1), (SWEEP, "User", 1, 1),
        (SCAN, "Op_Server0", 9, 10), (EXPLOIT, "Op_Server0", 13, 10, {"unless_scanned": 1}),
        *take("Enterprise2", 10, 8, 4), (ESCALATE, "Op_Server0", 8, 9), users=USERS,
    ),
}  # fmt: skip
"""Programs for CAGE Challenge 2."""


def with_programs(network: Network, programs: dict[str, Program]) -> Network:
    """The network with further red agents."""
    grown = replace(network, red=replace(network.red, programs={**network.red.programs, **programs}))
    assert list(contradictions(grown)) == []
    return grown


def random_program(network: Network, generator: np.random.Generator, lines: int = 24) -> Program:
    """A valid program at random: any action on any target, jumps anywhere; after an exploit it escalates there."""
    hosts, users = [*network.host_names], tuple(
        host.name for host in network.hosts if len(host.reveals) == 1 and host.name != network.red.foothold
    )
    drawn = [str(name) for name in generator.permutation([ANY_HOST, *network.unit_types])[: DRAWS - 1]]
    made: list[ProgramLine] = [ProgramLine(SWEEP, network.subnet_of(network.red.foothold), 1, int(generator.integers(lines)))]
    if users:
        made.append(ProgramLine(SCAN, DRAWN_USER, 2, int(generator.integers(lines)), redraw=bool(generator.random() < 0.5)))
        drawn += [DRAWN_USER, REVEALED]
    while len(made) < lines:
        number = len(made)
        jumps = [number + 1 if generator.random() < 0.7 else int(generator.integers(lines)) for _ in range(2)]
        success, failure = (min(jump, lines - 1) for jump in jumps)
        action = str(generator.choice([SWEEP, SCAN, EXPLOIT, EXPLOIT, ESCALATE, IMPACT, SLEEP], p=[0.15, 0.25, 0.2, 0.15, 0.15, 0.05, 0.05]))
        target = str(generator.choice(drawn if generator.random() < 0.6 else hosts))
        redraw = target not in (REVEALED, *hosts) and bool(generator.random() < 0.4)
        instead = int(generator.integers(lines)) if generator.random() < 0.1 else -1
        if action == SWEEP:
            made.append(ProgramLine(action, str(generator.choice(network.subnet_names)), success, failure, instead))
        elif action in (IMPACT, SLEEP):
            place = network.operational_service.host if action == IMPACT else ""
            made.append(ProgramLine(action, place, success, failure, instead))
        elif action == EXPLOIT and number + 1 < lines:
            made.append(ProgramLine(action, target, number + 1, failure, instead, redraw))
            made.append(ProgramLine(ESCALATE, target, min(success + 1, lines - 1), failure))
        elif action != EXPLOIT:
            made.append(ProgramLine(action, target, success, failure, instead, redraw))
    return Program(tuple(made), users)
