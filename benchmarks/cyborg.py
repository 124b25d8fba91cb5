"""Genuine CybORG compared with the engine: ``python -m benchmarks cyborg lockstep|transfer|speed|oracle``."""

from __future__ import annotations

import math
import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import main
from workflow_rl.config import check_jobs
from workflow_rl.defenders.names import LIVE_BLUES, Asked, blue_named, differences, evaluate_named
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.envs.cyborg_sim import NATIVE, Backend, load_cyborg
from workflow_rl.envs.cyborg_vector import CyborgVectorEnv
from workflow_rl.fidelity.cyborg_recorder import Recorder
from workflow_rl.fidelity.lockstep import LiveGames, live_lockstep
from workflow_rl.fidelity.traces import load_trace
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.studies.bench_cyborg import bench_cyborg
from workflow_rl.training.trainer import train_workflow

GAMES = 1080  # 60 of each kind of lockstep
EPISODES, NATIVE_EPISODES = 400, 20_000  # of a transfer, per red agent
ENTERPRISE_FIRST = "enterprise,op_server,user,op_host,defender"
USER_FIRST = "user,op_server,enterprise,op_host,defender"
POLICIES = {
    "general": {"red_agent": "bline"},
    "enterprise_first": {"red_agent": "bline", "workflow": ENTERPRISE_FIRST},
    "user_first_meander": {"red_agent": "meander", "workflow": USER_FIRST},
}
ORACLE = Path(__file__).parents[2] / "shared" / "cage2-oracle"


def lockstep() -> dict[str, Any]:
    """All opponents, three blues, green asleep and acting; every step compared."""
    edition = load_cyborg().edition
    blues = {name: blue_named(name, "", load_network(), edition, any_edition=True) for name in LIVE_BLUES}
    return asdict(live_lockstep(LiveGames(GAMES, jobs=check_jobs(None)), blues, load_network()))


def transfer() -> dict[str, Any]:
    """Three policies trained on the engine, played against every red agent on both simulators."""
    figures: dict[str, Any] = {"episodes": EPISODES, "native_episodes": NATIVE_EPISODES, "policies": {}}
    apart = []
    for name, task in POLICIES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            with closing(Run.create(path, make_config(**task), copy_of(load_network()))) as run:
                train_workflow(run.config, run)
            tables = [
                evaluate_named(Asked(str(path), "bline,meander,sleep", n, load_network(), 7, "current"), backend)
                for backend, n in ((Backend("cyborg", "", check_jobs(None)), EPISODES), (NATIVE, NATIVE_EPISODES))
            ]
        cyborg, native = tables
        difference = differences(cyborg["cells"], native["cells"])
        apart += [math.inf if value is None else abs(value) for row in difference.values() for value in row.values()]
        kept = ("cells", "total", "total_standard_error", "compliance")
        figures["policies"][name] = {
            "task": task,
            "cyborg": {key: cyborg[key] for key in kept if key in cyborg},
            "native": {key: native[key] for key in kept if key in native},
            "difference": difference,
        }
    return figures | {"cyborg": cyborg["cyborg"], "largest_difference": max(apart), "cells": len(apart)}


def oracle() -> dict[str, Any]:
    """Plays every recorded game of the oracle again from its seed and actions, with our scenario and recorder."""
    games = steps = 0
    wrong: dict[str, int] = {}
    for path in sorted(ORACLE.glob("traces-*.npz")):
        trace, seeds = load_trace(path), np.load(path)["seed"]
        red = ("bline", "meander", "sleep")[int(trace["red_agent"][0])]
        jobs = check_jobs(None)
        with closing(CyborgVectorEnv(jobs, red_agent=red, max_steps=None, recorder=Recorder)) as envs:
            for first in range(0, trace.n_episodes, jobs):
                rows = np.arange(first, first + jobs) % trace.n_episodes
                kept = min(jobs, trace.n_episodes - first)
                envs.reset(seed=seeds[rows].tolist())
                for step in range(trace.max_steps):
                    record = envs.step(trace["blue_action"][rows, step].astype(int))[-1]["record"]
                    for name in (name for name in record if not name.startswith("_")):
                        differs = (record[name] != trace[name][rows, step]).reshape(jobs, -1).any(axis=1)
                        wrong[name] = wrong.get(name, 0) + int(differs[:kept].sum())
                    steps += kept
        games += trace.n_episodes
    return {"games": games, "steps": steps, "differences": sum(wrong.values()), "differences_by_array": wrong}


def speed() -> dict[str, Any]:
    """Training on both simulators, as ``workflow-rl bench cyborg`` measures it."""
    return asdict(bench_cyborg(25, 4, 200, print))


if __name__ == "__main__":
    main("cyborg")
