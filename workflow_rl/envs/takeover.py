"""Takeovers: the steps that red plays before blue may act, for episodes and environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workflow_rl.config import parse_takeover
from workflow_rl.errors import UserError

Infos = dict[str, Any]  # by name, as Gymnasium has them


def takeovers_of(takeover: str, episodes: np.ndarray) -> list[str]:
    """The entries of the given episodes, which use them in turn.

    >>> takeovers_of("0,10-60", np.array([3, 4]))
    ['10-60', '0']
    """
    entries = takeover.split(",")
    return [entries[episode % len(entries)] for episode in episodes.tolist()]


def takeover_rows(takeover: str | int | Sequence[str], n_envs: int) -> np.ndarray:
    """The engine's takeover table, (n_envs, 3) int32: least steps, most steps, and steps of the current episode."""
    ranges = parse_takeover(takeover)
    if len(ranges) > n_envs:
        raise UserError(f"{len(ranges)} takeovers were given for {n_envs} environments.")
    rows = np.zeros((n_envs, 3), np.int32)
    rows[:, :2] = np.resize(ranges, (n_envs, 2))
    return rows


def start_infos(level: np.ndarray, takeover: np.ndarray) -> Infos:
    """The facts of an episode's start, in the form of those of a step.

    Args:
        level: red's on each host; (n_envs, n_hosts) int8.
        takeover: steps that red has played; (n_envs,).
    """
    return {
        "compromised_before": np.zeros(level.shape, bool),
        "red_level": level,
        "fixed_unit_type": np.full(len(level), -1, np.int8),
        "repaired_unit_type": np.full(len(level), -1, np.int8),
        "takeover": takeover.astype(np.int32),
    }
