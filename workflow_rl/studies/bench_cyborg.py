"""Training speed on genuine CybORG beside the native engine in the same run, and the start of its processes."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass

import torch

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.envs.checks import positive_int
from workflow_rl.envs.cyborg_sim import load_cyborg
from workflow_rl.envs.cyborg_vector import CyborgVectorEnv
from workflow_rl.errors import UserError
from workflow_rl.presets import make_config
from workflow_rl.studies.bench import Machine, Say, machine
from workflow_rl.training.trainer import Training


@dataclass(frozen=True)
class TrainingSpeeds:
    """Against one red agent: with as many environments as processes, and with the usual 200."""

    cyborg_transitions_per_s: float
    native_transitions_per_s: float
    native_200_transitions_per_s: float
    ratio: float
    ratio_200: float


@dataclass(frozen=True)
class CyborgFigures:
    """The figures of ``bench cyborg``."""

    start_s: float
    processes: int
    bline: TrainingSpeeds
    meander: TrainingSpeeds
    machine: Machine


def bench_cyborg(processes: int, updates: int, native_updates: int, say: Say) -> CyborgFigures:
    """Transitions per second of training on processes of genuine CybORG, and on the native engine, in one run.

    The task is the same for both: a general policy from scratch, as many environments as processes, 100 steps,
    4 epochs. The native engine is also measured with its usual 200 environments.

    Args:
        processes: number of processes of CybORG.
        updates: number of updates on CybORG, per red agent.
        native_updates: number of updates on the native engine, per red agent.
        say: called with a line of progress.
    """
    positive_int("the number of processes", processes, 1000)
    if updates < 1 or native_updates < 1:
        raise UserError(f"the numbers of updates must be at least 1, not {updates} and {native_updates}.")
    torch.set_num_threads(1)
    say(f"start of {processes} processes")
    load_cyborg()
    start = time.perf_counter()
    with closing(CyborgVectorEnv(processes)) as envs:
        envs.reset(seed=0)
        seconds = time.perf_counter() - start
    speeds = {}
    for red in ("bline", "meander"):
        say(f"training on CybORG against {red}, {updates} updates")
        cyborg = _rate(_config(red, "cyborg", processes), updates)
        say("training on the native engine")
        same, usual = (_rate(_config(red, "native", n), native_updates) for n in (processes, 200))
        speeds[red] = TrainingSpeeds(cyborg, same, usual, same / cyborg, usual / cyborg)
    return CyborgFigures(seconds, processes, speeds["bline"], speeds["meander"], machine())


def _config(red: str, backend: str, n_envs: int) -> TrainConfig:
    return make_config("parallel-200", red_agent=red, backend=backend, n_envs=n_envs)


def _rate(config: TrainConfig, updates: int) -> float:
    """Transitions per second after a first update, which compiles."""
    with closing(Training(config, as_network(CAGE2))) as training:
        training.step()
        start = time.perf_counter()
        for _ in range(updates):
            training.step()
        return updates * config.batch / (time.perf_counter() - start)
