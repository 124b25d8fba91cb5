"""Trains general policies, without workflow, from scratch: ``python -m benchmarks general``, alone on the machine.

Four seeds against each red agent: with the defaults of ``workflow-rl train``, the same but for the time limit, with
the advantages of the other opponent, and within a million transitions.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks.command import main
from workflow_rl.presets import AGAINST, make_config
from workflow_rl.training.trainer import train_workflow

SEEDS = range(4)
MILLION = {"n_envs": 20, "epochs": 10, "lr": 0.003, "max_episodes": 500}
ADVANTAGES = ("gae_lambda", "normalise_advantages")


def trained(red: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Returns of all seeds on 1,000 fresh games each, and what the trainings took."""
    configs = [make_config(red_agent=red, seed=seed, **settings) for seed in SEEDS]
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(train_workflow, configs))
    returns = [result.mean_return for result in results]
    return {
        "mean_return": float(np.mean(returns)),
        "worst": min(returns),
        "best": max(returns),
        "returns": returns,
        "largest_standard_error": max(result.standard_error for result in results),
        "seconds": float(np.mean([result.seconds for result in results])),
        "transitions": results[0].updates * configs[0].batch,
    }


def measure() -> dict[str, Any]:
    """All settings against both red agents."""
    figures: dict[str, Any] = {}
    for red, other in (("bline", ""), ("meander", "bline")):
        swapped = {name: AGAINST["general"][other][name] for name in ADVANTAGES}
        settings = {"default": {}, "cut": {"time_limit": "cut"}, "other_advantages": swapped, "million": MILLION}
        figures[red] = {name: trained(red, values) for name, values in settings.items()}
        print(red, figures[red], flush=True)
    return figures


if __name__ == "__main__":
    main("general")
