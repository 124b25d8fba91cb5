"""The vector environment for stable-baselines3; docs/gymnasium.md shows its use."""

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv


class CageSB3VecEnv(VecEnv):
    """A :class:`~workflow_rl.envs.env.CageVectorEnv` as stable-baselines3 wants it."""

    def __init__(self, envs: Any) -> None:
        self.envs, self.next_seed, self.returns = envs, None, np.zeros(envs.num_envs)
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        """Starts new episodes."""
        seed, self.next_seed, self.returns = self.next_seed, None, np.zeros(self.num_envs)
        return self.envs.reset(seed=seed)[0]

    def step_wait(self) -> Any:
        """Plays one step; the last observation and the return of an ended episode are in its info."""
        observations, rewards, _, dones, infos = self.envs.step(self.actions)
        rows: list[dict[str, Any]] = [{} for _ in dones]
        self.returns = self.returns + rewards
        for i in np.flatnonzero(dones):
            episode = {"r": self.returns[i], "l": self.envs.max_steps, "t": 0.0}
            rows[i] = {"terminal_observation": infos["final_obs"][i], "TimeLimit.truncated": True, "episode": episode}
            self.returns[i] = 0.0
        return observations, rewards, dones, rows

    def seed(self, seed: Any = None) -> Any:
        """Used by the next reset."""
        self.next_seed = seed

    def step_async(self, actions: Any) -> None:
        """Takes the actions of the next step."""
        self.actions = actions

    def close(self) -> None:
        """Nothing is left running."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:  # noqa: ARG002
        """An attribute, the same for all."""
        return [getattr(self.envs, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:  # noqa: ARG002
        """Sets an attribute of all."""
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> Any:  # noqa: ARG002
        """Calls a method of all at once."""
        return [getattr(self.envs, method_name)(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:  # noqa: ARG002
        """It is not."""
        return [False] * self.num_envs
