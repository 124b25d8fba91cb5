"""Trains stable-baselines3 as docs/gymnasium.md shows it: ``python -m benchmarks sb3``, one thread, some minutes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from benchmarks.command import main
from workflow_rl import CageVectorEnv, from_sb3
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.sb3_env import CageSB3VecEnv
from workflow_rl.training.collectors import workflow_codes
from workflow_rl.training.evaluation import challenge_games, evaluate_policy, learner_of

OPPONENTS = ("bline", "meander", "bline,meander")
SEEDS = 2
STEPS = 1_000_000
SETTINGS = {"n_steps": 100, "batch_size": 500, "n_epochs": 10}
LEARNING_RATE = 0.002  # falls to 0
N_ENVS, GAMES = 20, 1000


def measure(steps: int = STEPS) -> dict[str, Any]:
    """Every opponent: returns of 100 steps against it, and the challenge's table of the first seed."""
    torch.set_num_threads(1)
    return {red.replace(",", "_"): trained(red, steps) for red in OPPONENTS}
