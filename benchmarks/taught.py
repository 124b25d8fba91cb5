"""What imitating a simple rule first is worth on a network of many hosts: trainings with it, without it, and the rule.

python -m benchmarks taught
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.command import main
from workflow_rl.config import TrainConfig
from workflow_rl.engine.network import Network
from workflow_rl.engine.networks.copies import chosen_network
from workflow_rl.envs.game import Games
from workflow_rl.presets import make_config
from workflow_rl.training.collectors import Collector, Conduct, Stream, workflow_codes, workflows_of
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.rule import RuleTeacher
from workflow_rl.training.trainer import train_workflow

ORDER = "database,historian,control,mail,file,web,controller,workstation"
SEEDS, GAMES = range(3), 1000


def measure() -> dict[str, Any]:
    """Plant against Meander: one order, the budget of a search with half of the environments."""
    network = chosen_network(None, "plant")
    config = make_config("search", workflow=ORDER, red_agent="meander", hosts=len(network.hosts), n_envs=100)
    ways = {"taught": config, "alone": replace(config, imitate_updates=0)}
    figures: dict[str, Any] = {name: trained(one, network) for name, one in ways.items()}
    return figures | {"rule": rule_alone(config, network), "order": ORDER, "seeds": len(SEEDS), "games": GAMES}


def trained(config: TrainConfig, network: Network) -> dict[str, Any]:
    """Means over trainings of the same settings with several seeds."""
    rows = [train_workflow(replace(config, seed=seed, n_eval_episodes=GAMES), network=network) for seed in SEEDS]
    return {
        "mean_return": statistics.fmean(row.mean_return for row in rows),
        "returns": [row.mean_return for row in rows],
        "kept": [row.kept for row in rows],
        "lowest_kept": min(row.kept or 0.0 for row in rows),
        "seconds": statistics.fmean(row.seconds for row in rows),
    }


def rule_alone(config: TrainConfig, network: Network) -> dict[str, Any]:
    """Games that the rule plays itself."""
    collector = Collector(
        Games.of(config, network), GAMES, config.max_steps, Conduct.of(config, network), Stream(0, (1,))
    )
    ppo = ParallelOrderConditionedPPO(config, workflow_codes(workflows_of(config, network)), network=network)
    episodes = collector.collect(ppo, RuleTeacher(network)).finished_episodes()
    return {"mean_return": float(np.mean(episodes["total"])), "kept": Obedience.of(episodes).kept}


if __name__ == "__main__":
    main("taught")
