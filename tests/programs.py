"""Programs for CAGE Challenge 2 that try what no stock agent does."""

from __future__ import annotations

from typing import Any

from benchmarks.programs import ESCALATE, EXPLOIT, IMPACT, SCAN, SLEEP, SWEEP
from workflow_rl.engine.network import ANY_HOST, DRAWN_USER, REVEALED, Program, ProgramLine

Line = tuple[Any, ...]
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
        (ESCALATE, "User1", 5, 5), (EXPLOIT, "Enterprise2", 7, 6), (SCAN, "User1", 0, 0),
        (ESCALATE, "Enterprise2", 0, 0),
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
