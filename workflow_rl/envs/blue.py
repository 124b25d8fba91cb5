"""Blue policies as functions, and statistics of their returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.engine.network import Network
from workflow_rl.engine.observe import unpacked
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


@dataclass(frozen=True)
class OwnPolicy:
    """A user's function from an observation, as the environments give it, to an action.

    Without ``batch`` it plays one game after the other, so it may remember what it saw; before each game its method
    ``reset()`` is called, if it has one. With ``batch`` it maps observations (n, n_bits) to actions (n,); row i is the
    same game in every call until the next ``reset()``.
    """

    function: Callable[[np.ndarray], Any]
    network: Network
    batch: bool = False

    def begin(self) -> None:
        """Tells the function that new games begin."""
        reset = getattr(self.function, "reset", None)
        if callable(reset):
            reset()

    def __call__(self, packed: np.ndarray, _: np.random.Generator) -> np.ndarray:
        """Actions for packed observations (n, n_words); the function has its own chance."""
        seen, n_actions = unpacked(packed, self.network.n_bits).astype(np.float32), self.network.n_actions
        answer = self.function(seen if self.batch else seen[0])
        wanted = f"{len(seen)} whole numbers, shape ({len(seen)},)," if self.batch else "one whole number"
        try:
            actions = np.asarray(answer)
        except (TypeError, ValueError):  # rows of different lengths
            actions = np.asarray(answer, dtype=object)
        fits = actions.shape == (len(seen),) if self.batch else actions.size == 1
        if not fits or actions.dtype.kind not in "iu" or not ((actions >= 0) & (actions < n_actions)).all():
            words = " ".join(repr(answer).split())
            shown = words if len(words) < 80 else f"an array of shape {actions.shape}"
            hint = "" if self.batch or fits else "; of a function of many observations say batch=True"
            if isinstance(answer, tuple):  # as of stable-baselines3's predict
                hint = "; take the first of the pair, or convert a model of stable-baselines3 with from_sb3"
            raise UserError(f"the policy must return {wanted} from 0 to {n_actions - 1}, not {shown}{hint}.")
        return actions.reshape(len(seen)).astype(np.int64)


def most_at_once(policy: Policy, most: int) -> int:
    """How many games the policy can play at once, at most ``most``."""
    return 1 if isinstance(policy, OwnPolicy) and not policy.batch else most


def begin_games(policy: Policy) -> None:
    """Tells a policy that new games begin, if it wants to know."""
    if isinstance(policy, OwnPolicy):
        policy.begin()
