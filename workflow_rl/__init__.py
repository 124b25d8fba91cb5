"""Workflow search for autonomous cyber defence: find the order in which a network under attack should be repaired."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from workflow_rl.config import VERSION
from workflow_rl.envs import register_envs

__version__ = VERSION

if TYPE_CHECKING:
    from workflow_rl.cli.watch import watch_defender as watch
    from workflow_rl.config import TrainConfig
    from workflow_rl.defenders.converted import from_cleanrl, from_sb3
    from workflow_rl.defenders.own import ChallengeTable, challenge
    from workflow_rl.engine.network_file import load_network
    from workflow_rl.envs.backends import ParallelEnvWrapper
    from workflow_rl.envs.cyborg_env import CyborgEnv
    from workflow_rl.envs.cyborg_vector import CyborgVectorEnv
    from workflow_rl.envs.env import CageEnv, CageVectorEnv
    from workflow_rl.errors import UserError
    from workflow_rl.presets import make_config
    from workflow_rl.report.build import report_defender as report
    from workflow_rl.search.run_search import ParallelWorkflowRLTrainer
    from workflow_rl.search.strategies import GPUCBSearch, OrderSearch, Suggestion
    from workflow_rl.training.actor_critic import OrderConditionedActorCritic
    from workflow_rl.training.buffer import ParallelTrajectoryBuffer
    from workflow_rl.training.policy_file import load_policy
    from workflow_rl.training.ppo import ParallelOrderConditionedPPO
    from workflow_rl.training.trainer import train_workflow
    from workflow_rl.training.workflow import Workflow

_HOMES = {  # module of each public name, and its name there if that is another
    "CageEnv": "envs.env", "CageVectorEnv": "envs.env", "ChallengeTable": "defenders.own",
    "CyborgEnv": "envs.cyborg_env", "CyborgVectorEnv": "envs.cyborg_vector", "GPUCBSearch": "search.strategies",
    "OrderConditionedActorCritic": "training.actor_critic", "OrderSearch": "search.strategies",
    "ParallelEnvWrapper": "envs.backends", "ParallelOrderConditionedPPO": "training.ppo",
    "ParallelTrajectoryBuffer": "training.buffer", "ParallelWorkflowRLTrainer": "search.run_search",
    "Suggestion": "search.strategies", "TrainConfig": "config", "UserError": "errors", "Workflow": "training.workflow",
    "challenge": "defenders.own", "from_cleanrl": "defenders.converted", "from_sb3": "defenders.converted",
    "load_network": "engine.network_file", "load_policy": "training.policy_file", "make_config": "presets",
    "report": "report", "train_workflow": "training.trainer", "watch": "cli.watch:watch_defender",
}  # fmt: skip

__all__ = [
    "CageEnv", "CageVectorEnv", "ChallengeTable", "CyborgEnv", "CyborgVectorEnv", "GPUCBSearch",
    "OrderConditionedActorCritic", "OrderSearch", "ParallelEnvWrapper", "ParallelOrderConditionedPPO",
    "ParallelTrajectoryBuffer", "ParallelWorkflowRLTrainer", "Suggestion", "TrainConfig", "UserError", "Workflow",
    "__version__", "challenge", "from_cleanrl", "from_sb3", "load_network", "load_policy", "make_config",
    "report", "train_workflow", "watch",
]  # fmt: skip

register_envs()


def __getattr__(name: str) -> Any:
    """Imports public names on first use, so that ``workflow-rl --help`` does not load Numba."""
    if name in _HOMES:
        home, _, own = _HOMES[name].partition(":")
        return getattr(importlib.import_module(f"workflow_rl.{home}"), own or name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, also those that are not imported yet."""
    return sorted(__all__)
