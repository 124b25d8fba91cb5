"""The environments as the design documents know them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workflow_rl.envs.cyborg_sim import Backend
from workflow_rl.envs.env import make_envs
from workflow_rl.envs.takeover import Infos


class ParallelEnvWrapper:
    """The environments with the interface of the design documents: ``step`` returns four values.

    The backend is ``native`` or ``cyborg``; see :class:`CageVectorEnv` for the options (``red_agent``, ``edition``,
    ``max_steps``, ...).

    Example:
        >>> envs = ParallelEnvWrapper(n_envs=25)
        >>> envs.reset(seed=0).shape
        (25, 52)
        >>> observations, rewards, dones, infos = envs.step([0] * 25)
        >>> observations.shape, rewards.shape, dones.shape
        ((25, 52), (25,), (25,))
    """

    def __init__(self, n_envs: int = 25, backend: str = "native", cyborg_path: str = "", **options: Any) -> None:
        self.envs = make_envs(Backend(backend, cyborg_path), n_envs, **options)
        self.n_envs = self.envs.num_envs

    def reset(self, seed: int | Sequence[int] | None = None) -> np.ndarray:
        """Starts new episodes; returns observations (n_envs, 52)."""
        return self.envs.reset(seed=seed)[0]

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Plays one step in every environment.

        Returns:
            observations (n_envs, 52), where an episode ended those of the next one; rewards (n_envs,); dones (n_envs,)
            bool; infos as in :class:`CageVectorEnv`.
        """
        observations, rewards, terminated, truncated, infos = self.envs.step(actions)
        return observations, rewards, terminated | truncated, infos

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()
