"""Trains stable-baselines3 as docs/gymnasium.md shows it: ``python -m benchmarks sb3``, one thread, half an hour."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from benchmarks.command import main
from workflow_rl import CageVectorEnv, ChallengeTable, challenge, from_sb3
from workflow_rl.envs.sb3_env import CageSB3VecEnv

OPPONENTS = ("bline", "meander", "bline,meander")
SEEDS = 2
STEPS = 1_000_000
N_ENVS, LEARNING_RATE = 20, 0.002  # the learning rate falls to 0
SETTINGS: dict[str, Any] = {"n_steps": 100, "batch_size": 500, "n_epochs": 10}


def trained(red: str, seed: int, steps: int) -> tuple[ChallengeTable, float]:
    """The challenge's table of a model, and the seconds of its training."""
    from stable_baselines3 import PPO

    envs = CageSB3VecEnv(CageVectorEnv(N_ENVS, red_agent=red))
    rate = lambda left: LEARNING_RATE * left  # noqa: E731
    model = PPO("MlpPolicy", envs, learning_rate=rate, device="cpu", seed=seed, **SETTINGS)
    began = time.perf_counter()
    model.learn(total_timesteps=steps)
    return challenge(from_sb3(model, red_agent=red)), time.perf_counter() - began


def measure(steps: int = STEPS) -> dict[str, Any]:
    """Trainings against each opponent, and against both by turns."""
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"steps": steps, "seeds": SEEDS, "settings": SETTINGS | {"n_envs": N_ENVS}}
    for red in OPPONENTS:
        tables, seconds = zip(*(trained(red, seed, steps) for seed in range(SEEDS)), strict=True)
        returns = {foe: [table.cells[foe][100].mean for table in tables] for foe in red.split(",")}
        figures[red.replace(",", "_and_")] = {
            "mean_return": {foe: float(np.mean(values)) for foe, values in returns.items()},
            "returns": returns,
            "totals": [table.total for table in tables],
            "total_standard_errors": [table.total_standard_error for table in tables],
            "best_total": max(table.total for table in tables),
            "seconds": float(np.mean(seconds)),
        }
        print(red, figures[red.replace(",", "_and_")], flush=True)
    return figures


if __name__ == "__main__":
    main("sb3")
