"""Study `limit`: what a defender that sees everything could reach, against which every score is shown."""

from __future__ import annotations

from typing import Any

from benchmarks.studies.baselines import GAMES_SEED, Ask
from benchmarks.studies.cells import Cell

EDITIONS = ("current", "leaderboard")
HORIZON = 100
TAKEOVERS = [5, 10, 15, 20, 30]


def limit(ask: Ask, quick: bool) -> dict[str, Any]:
    """B_line: the exact optimum for every horizon, confirmed by games; Meander: the best cheating policy found."""
    horizon, games, ahead = (8, 200, 0) if quick else (HORIZON, 20_000, 100)
    common: dict[str, Any] = {"games": games, "seed": GAMES_SEED + 2}
    exactly = {"horizon": horizon, "takeovers": [3] if quick else TAKEOVERS}
    exact = ask([Cell("bline_limit", {"edition": edition} | common | exactly) for edition in EDITIONS])
    common |= {"ahead_games": ahead, "order_games": 20 if quick else 5_000}
    estimates = ask([Cell("meander_estimate", {"edition": edition} | common) for edition in EDITIONS])
    return {
        "bline": dict(zip(EDITIONS, exact, strict=True)),
        "meander": dict(zip(EDITIONS, estimates, strict=True)),
    }
