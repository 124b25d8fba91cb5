"""When blue takes over: the steps that red plays before, as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from workflow_rl.errors import UserError

MOST_STEPS = 10_000
FORM = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def parse_takeover(takeover: str | int | Sequence[str]) -> list[tuple[int, int]]:
    """The least and the largest number of steps of each environment, which take the entries in turn.

    >>> parse_takeover(30), parse_takeover("0,10-60")
    ([(30, 30)], [(0, 0), (10, 60)])
    """
    text = ",".join(map(str, takeover)) if isinstance(takeover, (list, tuple)) else str(takeover)
    ranges = []
    for part in text.split(","):
        found = FORM.fullmatch(part.strip())
        if found is None:
            raise UserError(
                f"takeover must be a number of steps from 0 to {MOST_STEPS}, a range as 10-60, or a comma list of "
                f"them, not {takeover!r}."
            )
        least, most = int(found[1]), int(found[2] or found[1])
        if least > most:
            raise UserError(f"the range of a takeover must begin with the smaller number, not {part.strip()!r}.")
        if most > MOST_STEPS:
            raise UserError(f"a takeover must come after at most {MOST_STEPS} steps, not {most}.")
        ranges.append((least, most))
    return ranges


def takeovers_of(takeover: str, episodes: np.ndarray) -> list[str]:
    """The entries that some episodes have, which take them in turn.

    >>> takeovers_of("0,10-60", np.array([3, 4]))
    ['10-60', '0']
    """
    entries = takeover.split(",")
    return [entries[episode % len(entries)] for episode in episodes.tolist()]


def takeover_rows(takeover: str | int | Sequence[str], n_envs: int) -> np.ndarray:
    """What the engine needs of each environment, (n_envs, 3) int32: least, most, and the steps of this episode."""
    ranges = parse_takeover(takeover)
    if len(ranges) > n_envs:
        raise UserError(f"{len(ranges)} takeovers were given for {n_envs} environments.")
    rows = np.zeros((n_envs, 3), np.int32)
    rows[:, :2] = np.resize(ranges, (n_envs, 2))
    return rows


def opponent_words(red_agent: str, takeover: str) -> str:
    """Whom a defender meets, for titles.

    >>> opponent_words("bline", "0"), opponent_words("bline", "30")
    ('bline', 'bline, takeover after 30 steps')
    """
    return f"{red_agent}, takeover after {takeover} steps" if is_incident(takeover) else red_agent


def is_incident(takeover: str | int) -> bool:
    """Does red play before blue in any environment?"""
    return any(most > 0 for _, most in parse_takeover(takeover))
