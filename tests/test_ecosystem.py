"""The environments work with the libraries that people train with."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.conftest import require
from workflow_rl import CageVectorEnv


@pytest.fixture
def adapter() -> Any:
    """The adapter for stable-baselines3."""
    require("stable_baselines3")
    from workflow_rl.envs.sb3_env import CageSB3VecEnv

    return CageSB3VecEnv


def test_stable_baselines3_learns_through_the_adapter(adapter: Any) -> None:
    from stable_baselines3 import PPO

    envs = adapter(CageVectorEnv(8, red_agent="bline"))
    model = PPO("MlpPolicy", envs, n_steps=100, batch_size=200, n_epochs=2, seed=0, device="cpu")
    model.learn(total_timesteps=4_000)
    returns = [episode["r"] for episode in model.ep_info_buffer or []]
    assert len(returns) == 40
    assert all(-2000 < value < 0 for value in returns)


def test_the_adapter_hands_over_final_observations_and_returns(adapter: Any) -> None:
    envs, plain = adapter(CageVectorEnv(3, max_steps=10)), CageVectorEnv(3, max_steps=10)
    envs.seed(4)
    envs.reset()
    plain.reset(seed=4)
    total = np.zeros(3)
    for _ in range(10):
        observations, rewards, dones, infos = envs.step(np.zeros(3, int))
        total += plain.step([0] * 3)[1]
    assert dones.all()
    assert not observations.any()
    assert rewards.shape == (3,)
    assert [info["episode"]["r"] for info in infos] == pytest.approx(total.tolist())
    assert all(info["terminal_observation"].any() for info in infos)
    assert all(info["TimeLimit.truncated"] for info in infos)


@pytest.mark.needs("torchrl")
def test_torchrl_accepts_the_single_and_the_vector_environment() -> None:
    from torchrl.envs.libs.gym import GymWrapper
    from torchrl.envs.utils import check_env_specs

    for env in (gymnasium.make("Cage2-v0"), gymnasium.make_vec("Cage2-v0", num_envs=4, red_agent="meander")):
        wrapped = GymWrapper(env)
        check_env_specs(wrapped)
        rollout = wrapped.rollout(120, break_when_any_done=False)
        assert rollout["next", "reward"].shape[-2:] == (120, 1)
        assert bool(rollout["next", "truncated"].any())
