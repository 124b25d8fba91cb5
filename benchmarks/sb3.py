"""Trains stable-baselines3 as docs/gymnasium.md shows it: ``python -m benchmarks sb3``, one thread, minutes."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import torch

from benchmarks.command import main
from workflow_rl import CageVectorEnv, challenge, from_sb3
from workflow_rl.envs.sb3_env import CageSB3VecEnv

OPPONENTS = ("bline", "meander", "bline,meander")
STEPS = 1_000_000
N_ENVS, LEARNING_RATE = 20, 0.002  # the learning rate falls to 0
SETTINGS: dict[str, Any] = {"n_steps": 100, "batch_size": 500, "n_epochs": 10, "seed": 0}


def trained(red: str, steps: int) -> dict[str, Any]:
    """A model's returns of 100 steps against those it was trained against, its total in the challenge, its time."""
    from stable_baselines3 import PPO

    envs = CageSB3VecEnv(CageVectorEnv(N_ENVS, red_agent=red))
    model = PPO("MlpPolicy", envs, learning_rate=lambda left: LEARNING_RATE * left, device="cpu", **SETTINGS)
    began = time.perf_counter()
    model.learn(total_timesteps=steps)
    seconds = time.perf_counter() - began
    table = challenge(from_sb3(model, red_agent=red))
    return {
        "returns": {foe: asdict(table.cells[foe][100]) for foe in red.split(",")},
        "total": table.total,
        "total_standard_error": table.total_standard_error,
        "seconds": seconds,
    }


def measure(steps: int = STEPS) -> dict[str, Any]:
    """One training against each opponent, and one against both, half of the environments each."""
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"steps": steps, "settings": SETTINGS | {"n_envs": N_ENVS}}
    for red in OPPONENTS:
        name = red.replace(",", "_and_")
        figures[name] = trained(red, steps)
        print(name, figures[name], flush=True)
    return figures


if __name__ == "__main__":
    main("sb3")
