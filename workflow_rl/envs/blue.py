"""Blue policies and their games: what a policy is shown, and figures of the returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.envs.views import PLAIN, View
from workflow_rl.errors import UserError

MOST_EPISODES = 10_000_000


Progress = Callable[[float], None]


@dataclass(frozen=True)
class Cell:
    """Return of a policy against one red agent at one episode length."""

    mean: float
    standard_error: float
    standard_deviation: float
    episodes: int


def check_episodes(n_episodes: int) -> None:
    """Refuses a number of episodes from which no standard error can be had, or that is too large."""
    if not 2 <= n_episodes <= MOST_EPISODES:
        raise UserError(f"the number of episodes must be from 2 to {MOST_EPISODES}, not {n_episodes}.")


def table_of(returns: dict[str, np.ndarray]) -> dict[str, Any]:
    """Cells of all red agents and lengths, and their total, from the returns (n_episodes, n_lengths) of each red agent.

    ``{"cells": {red: {length: {...}}}, "total": sum of the means, "total_standard_error": ...}``; lengths share games.
    """
    cells = {
        red: {str(length): asdict(cell_of(column)) for length, column in zip(CHALLENGE_LENGTHS, rows.T, strict=True)}
        for red, rows in returns.items()
    }
    total = sum(cell["mean"] for row in cells.values() for cell in row.values())
    errors = [cell_of(rows.sum(axis=1)).standard_error for rows in returns.values()]
    return {"cells": cells, "total": total, "total_standard_error": float(np.sqrt(np.square(errors).sum()))}


def cell_of(returns: np.ndarray) -> Cell:
    """Mean and errors of returns (n,)."""
    deviation = float(returns.std(ddof=1))
    return Cell(float(returns.mean()), deviation / float(np.sqrt(len(returns))), deviation, len(returns))


Policy = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""From packed observations (n_envs,) and a generator to actions (n_envs,)."""


REMEMBERED = View("memory", "full")


@dataclass(frozen=True)
class Defender:
    """A policy that needs a memory: instead of packed observations it is given what blue remembers (memory.py).

    ``explain`` has words for what it does, if there are any: one text for each of the memories.
    """

    act: Policy
    explain: Callable[[np.ndarray], list[str]] | None = None
    view = REMEMBERED

    def __call__(self, memories: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Actions (0 .. 144) for memories (n_envs,)."""
        return self.act(memories, generator)


def view_of(policy: Policy) -> View:
    """How the environments must be seen for this policy."""
    view: View = getattr(policy, "view", PLAIN)
    return view
