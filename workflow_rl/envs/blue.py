"""Blue policies as functions, and statistics of their returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.envs.views import PLAIN, View
from workflow_rl.errors import UserError
from workflow_rl.runs import Json

MOST_EPISODES = 10_000_000
REMEMBERED = View("memory", "full")
Policy = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Maps packed observations (n_envs,) and a generator to actions (n_envs,)."""
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Cell:
    """Return of a policy against one red agent at one episode length."""

    mean: float
    standard_error: float
    standard_deviation: float
    episodes: int


def check_episodes(n_episodes: int) -> None:
    """Rejects a number of episodes that is too small for a standard error, or too large."""
    if not 2 <= n_episodes <= MOST_EPISODES:
        raise UserError(f"the number of episodes must be from 2 to {MOST_EPISODES}, not {n_episodes}.")


def table_of(returns: dict[str, np.ndarray]) -> Json:
    """The challenge's table from the returns (n_episodes, n_lengths) against each red agent; lengths share games.

    ``{"cells": {red: {length: {...}}}, "total": sum of the means, "total_standard_error": ...}``
    """
    cells = {
        red: {str(length): asdict(cell_of(column)) for length, column in zip(CHALLENGE_LENGTHS, rows.T, strict=True)}
        for red, rows in returns.items()
    }
    total = sum(cell["mean"] for row in cells.values() for cell in row.values())
    errors = [cell_of(rows.sum(axis=1)).standard_error for rows in returns.values()]
    return {"cells": cells, "total": total, "total_standard_error": float(np.sqrt(np.square(errors).sum()))}


def cell_of(returns: np.ndarray) -> Cell:
    """Statistics of returns (n,)."""
    deviation = float(returns.std(ddof=1))
    return Cell(float(returns.mean()), deviation / float(np.sqrt(len(returns))), deviation, len(returns))


@dataclass(frozen=True)
class Defender:
    """A policy that acts on memories (memory.py) instead of packed observations.

    ``explain``, if given, returns an explanation of the action for each memory.
    """

    act: Policy
    explain: Callable[[np.ndarray], list[str]] | None = None
    view: View = REMEMBERED

    def __call__(self, memories: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Actions (0 .. 144) for memories (n_envs,)."""
        return self.act(memories, generator)


def view_of(policy: Policy) -> View:
    """The view that the policy needs."""
    view: View = getattr(policy, "view", PLAIN)
    return view
