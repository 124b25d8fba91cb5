"""Learning curves of general policies: return and training seconds at given numbers of transitions, by either learner.

Both learners are evaluated in the same way and the time of evaluation does not count. A training whose schedule ends
with it, such as an annealed learning rate, is planned for its last checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.studies.games import play_games
from workflow_rl.defenders.converted import from_sb3
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.presets import make_config
from workflow_rl.training.evaluation import player_of
from workflow_rl.training.policy_file import PolicyFile
from workflow_rl.training.trainer import Training

LENGTH = 100  # steps of a game


@dataclass
class Curve:
    """The policy after the last update within each checkpoint, evaluated on fresh games.

    Args:
        red: the opponent.
        batch: transitions of an update.
        checkpoints: numbers of transitions, ascending.
        games: games of each evaluation.
        games_seed: the seed of these games, the same at all checkpoints.
    """

    red: str
    batch: int
    checkpoints: list[int]
    games: int
    games_seed: int
    looks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def updates(self) -> int:
        """Updates within the last checkpoint."""
        return self.checkpoints[-1] // self.batch

    def due(self, transitions: int) -> list[int]:
        """The checkpoints that the next update would pass."""
        return [one for one in self.checkpoints if transitions <= one < transitions + self.batch]

    def look(self, transitions: int, seconds: float, policy: Callable[[], PolicyFile]) -> None:
        """Called after each update; evaluates the policy if a checkpoint is due."""
        if due := self.due(transitions):
            with torch.random.fork_rng(devices=[]):  # the training draws as if nobody looked
                player = player_of(policy())
            games = play_games(player, self.red, "current", (LENGTH,), self.games, self.games_seed)
            cell = games["returns"][str(LENGTH)]
            found = {"mean_return": cell["mean"], "standard_error": cell["standard_error"], "seconds": seconds}
            self.looks += [{"within": one, "transitions": transitions} | found for one in due]


def curve_ours(
    red: str, seed: int, settings: dict[str, Any], checkpoints: list[int], games: int, games_seed: int
) -> dict[str, Any]:
    """Preset `general` with other settings, to its end, which is the last checkpoint."""
    config = make_config("general", red_agent=red, seed=seed, **settings)
    end = config.max_updates * config.batch
    curve = Curve(red, config.batch, [*(one for one in checkpoints if one < end), end], games, games_seed)
    network, seconds = load_network(), 0.0
    with closing(Training(config, network)) as warm:
        warm.step()  # loads the compiled code, which takes no part in the time
    with closing(Training(config, network)) as training:

        def policy() -> PolicyFile:
            return PolicyFile(training.ppo.net, "", False, red, "current", training.ppo.view)

        for update in range(1, curve.updates + 1):
            event = training.step()
            seconds += event.seconds_collect + event.seconds_update
            curve.look(update * config.batch, seconds, policy)
    return {"looks": curve.looks}


def curve_sb3(
    red: str, seed: int, settings: dict[str, Any], checkpoints: list[int], games: int, games_seed: int
) -> dict[str, Any]:
    """PPO of stable-baselines3 with its MlpPolicy: two separate nets of 64 x 64 tanh units, as ours.

    Args:
        red: the opponent.
        seed: of weights, actions and games.
        settings: arguments of PPO, and ``n_envs`` and ``anneal``: whether the learning rate falls to zero.
        checkpoints: numbers of transitions.
        games: games of each evaluation.
        games_seed: their seed.
    """
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    from workflow_rl.envs.sb3_env import CageSB3VecEnv

    values = dict(settings)
    n_envs, rate = values.pop("n_envs"), values.pop("learning_rate")
    schedule = (lambda left: rate * left) if values.pop("anneal") else rate
    envs = CageSB3VecEnv(CageVectorEnv(n_envs, red_agent=red))
    PPO("MlpPolicy", envs, n_steps=16, batch_size=16 * n_envs, device="cpu").learn(1)  # loads the compiled code
    model = PPO(
        "MlpPolicy", envs, learning_rate=schedule, seed=1000 * seed, device="cpu", **values
    )  # environment i has seed + i
    curve = Curve(red, n_envs * model.n_steps, checkpoints, games, games_seed)

    class Watch(BaseCallback):
        """Evaluates between an update and the next collection of transitions."""

        def __init__(self) -> None:
            super().__init__()
            self.spent = 0.0

        def _on_training_start(self) -> None:
            self.since = time.perf_counter()

        def _on_rollout_start(self) -> None:
            self.spent += time.perf_counter() - self.since
            curve.look(self.num_timesteps, self.spent, lambda: from_sb3(model, red_agent=red))
            self.since = time.perf_counter()

        def _on_step(self) -> bool:
            return True

        _on_training_end = _on_rollout_start

    model.learn(total_timesteps=curve.updates * curve.batch, callback=Watch())
    return {"looks": curve.looks}
