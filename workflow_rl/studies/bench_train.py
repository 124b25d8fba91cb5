"""Training speed beside its references in the same run: the network's own arithmetic, and stable-baselines3."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.errors import UserError
from workflow_rl.presets import make_config
from workflow_rl.studies.bench import Machine, Say, machine
from workflow_rl.training.collectors import PlainCollector
from workflow_rl.training.rollout import sample_actions
from workflow_rl.training.trainer import Training

RED_AGENTS = ("bline", "meander")


@dataclass(frozen=True)
class PathSpeeds:
    """Against one red agent: the fast path, and stable-baselines3 if it is installed."""

    transitions_per_s: float
    sb3_transitions_per_s: float | None


@dataclass(frozen=True)
class TrainFigures:
    """The figures of ``bench train``."""

    bline: PathSpeeds
    meander: PathSpeeds
    plain_transitions_per_s: float
    network_only_transitions_per_s: float
    ratio_to_network_only: float
    plain_two_threads_transitions_per_s: float
    one_process_transitions_per_s: float
    two_process_transitions_per_s: float
    seconds_per_phase: dict[str, dict[str, float]]
    updates: int
    machine: Machine


def bench_train(updates: int, plain_updates: int, say: Say) -> TrainFigures:
    """Transitions per second at 200 environments x 100 steps, 4 epochs, general policy from scratch, one thread.

    Args:
        updates: number of updates of the fast path, per red agent.
        plain_updates: number of updates of the plain path, of the network alone and of stable-baselines3.
        say: called with a line of progress.
    """
    if updates < 1 or plain_updates < 1:
        raise UserError(f"the numbers of updates must be at least 1, not {updates} and {plain_updates}.")
    torch.set_num_threads(1)
    speeds, phases = {}, {}
    for red in RED_AGENTS:
        say(f"fast path against {red}, {updates} updates")
        fast_rate(red, 2)
        rate, phases[red] = fast_rate(red, updates)
        say("stable-baselines3")
        speeds[red] = PathSpeeds(rate, sb3_rate(red, max(2, plain_updates // 4)))
    say("plain path and the network alone, side by side")
    plain, net_alone = plain_rates(plain_updates)
    say("two processes")
    alone, together = process_rates(updates)
    say("two threads")
    torch.set_num_threads(2)
    two_threads, _ = plain_rates(max(2, plain_updates // 2))
    torch.set_num_threads(1)
    return TrainFigures(
        bline=speeds["bline"],
        meander=speeds["meander"],
        plain_transitions_per_s=plain,
        network_only_transitions_per_s=net_alone,
        ratio_to_network_only=plain / net_alone,
        plain_two_threads_transitions_per_s=two_threads,
        one_process_transitions_per_s=alone,
        two_process_transitions_per_s=together,
        seconds_per_phase=phases,
        updates=updates,
        machine=machine(),
    )


def _config(red: str, path: str) -> TrainConfig:
    """The hyperparameters of the design documents, without a workflow: 200 x 100, 4 epochs, learning rate 0.002."""
    return make_config("parallel-200", red_agent=red, path=path)


def fast_rate(red: str, updates: int) -> tuple[float, dict[str, float]]:
    """Transitions per second of the fast path from scratch, and the seconds per update of its phases."""
    training = Training(_config(red, "fast"), as_network(CAGE2))
    start = time.perf_counter()
    events = [training.step() for _ in range(updates)]
    elapsed = time.perf_counter() - start
    names = ("seconds_collect", "seconds_update")
    phases = {name: float(np.mean([getattr(event, name) for event in events])) for name in names}
    return updates * training.config.batch / elapsed, phases


def plain_rates(updates: int) -> tuple[float, float]:
    """Transitions per second of the plain path and of its neural net alone, without environments, measured in turns."""
    training = Training(_config("bline", "plain"), as_network(CAGE2))
    collector = training.collector
    assert isinstance(collector, PlainCollector)
    training.step()
    keys: np.ndarray = collector.buffer.inputs.keys[:, 0].reshape(collector.buffer.batch.rows.shape).copy()
    with_env = without = 0.0
    for _ in range(updates):
        start = time.perf_counter()
        training.step()
        middle = time.perf_counter()
        for step in range(keys.shape[1]):
            sample_actions(training.ppo.probabilities(keys[:, step]), collector.generators)
        training.ppo.update(collector.buffer, collector.last_keys())
        with_env, without = with_env + middle - start, without + time.perf_counter() - middle
    work = updates * training.config.batch
    return work / with_env, work / without


def process_rates(updates: int) -> tuple[float, float]:
    """Transitions per second of one process alone, and of two side by side, together."""
    code = (
        "import json, sys, torch; torch.set_num_threads(1); from workflow_rl.studies.bench_train import fast_rate;"
        "fast_rate('bline', 2); print('ready', flush=True); sys.stdin.readline();"
        f"print(json.dumps(fast_rate('bline', {updates})[0]))"
    )

    def rates(number: int) -> float:
        children = [
            subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(number)
        ]
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return sum(float(json.loads(child.communicate()[0].splitlines()[-1])) for child in children)

    return rates(1), rates(2)


def sb3_rate(red: str, updates: int) -> float | None:
    """Transitions per second of stable-baselines3's PPO with the same batch, network and epochs; None without it."""
    if importlib.util.find_spec("stable_baselines3") is None:
        return None
    from stable_baselines3 import PPO

    from workflow_rl.envs.sb3_env import CageSB3VecEnv

    envs = CageSB3VecEnv(CageVectorEnv(200, red_agent=red))
    net = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "activation_fn": torch.nn.Tanh}
    model = PPO("MlpPolicy", envs, n_steps=100, batch_size=20_000, n_epochs=4, device="cpu", policy_kwargs=net)
    model.learn(total_timesteps=20_000)
    start = time.perf_counter()
    model.learn(total_timesteps=20_000 * updates)
    return 20_000 * updates / (time.perf_counter() - start)
