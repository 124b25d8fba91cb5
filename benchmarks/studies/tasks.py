"""The tasks of cells by name. Each is called with the place where it may keep a policy, and its arguments."""

from pathlib import Path
from typing import Any

from benchmarks.limit import bline_limit as exact
from benchmarks.limit import meander_estimate as estimate
from benchmarks.studies.games import play, play_greedy
from benchmarks.studies.searches import search
from benchmarks.studies.trainings import gradient_noise, train, train_sb3, train_untold, watch_training

__all__ = [
    "bline_limit",
    "gradient_noise",
    "meander_estimate",
    "play",
    "play_greedy",
    "search",
    "train",
    "train_sb3",
    "train_untold",
    "watch_training",
]


def bline_limit(place: Path, **arguments: Any) -> dict[str, Any]:  # noqa: ARG001
    """The exact limit against B_line."""
    return exact.bline_limit(**arguments)


def meander_estimate(place: Path, **arguments: Any) -> dict[str, Any]:  # noqa: ARG001
    """The best that was found against Meander."""
    return estimate.meander_estimate(**arguments)
