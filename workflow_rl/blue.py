"""What a blue policy is to everybody who plays games: a function, and what it must be shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workflow_rl.views import PLAIN, View

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
