"""Workflow search for autonomous cyber defence: find the order in which a network under attack should be repaired."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from workflow_rl.config import VERSION
from workflow_rl.registration import register_envs

__version__ = VERSION

if TYPE_CHECKING:
    from workflow_rl.backends import ParallelEnvWrapper
    from workflow_rl.buffer import ParallelTrajectoryBuffer
    from workflow_rl.config import TrainConfig
    from workflow_rl.cyborg_env import CyborgEnv, CyborgVectorEnv
    from workflow_rl.env import CageEnv, CageVectorEnv
    from workflow_rl.errors import UserError
    from workflow_rl.policy import OrderConditionedActorCritic
    from workflow_rl.policy_file import load_policy
    from workflow_rl.ppo import ParallelOrderConditionedPPO
    from workflow_rl.presets import make_config
    from workflow_rl.run_search import ParallelWorkflowRLTrainer
    from workflow_rl.scenario_file import load_scenario
    from workflow_rl.search import GPUCBSearch
    from workflow_rl.trainer import train_workflow
    from workflow_rl.workflow import Workflow

_HOMES = {
    "CageEnv": "env",
    "CageVectorEnv": "env",
    "CyborgEnv": "cyborg_env",
    "CyborgVectorEnv": "cyborg_env",
    "GPUCBSearch": "search",
    "OrderConditionedActorCritic": "policy",
    "ParallelOrderConditionedPPO": "ppo",
    "ParallelTrajectoryBuffer": "buffer",
    "ParallelWorkflowRLTrainer": "run_search",
    "TrainConfig": "config",
    "Workflow": "workflow",
    "load_policy": "policy_file",
    "make_config": "presets",
    "train_workflow": "trainer",
    "ParallelEnvWrapper": "backends",
    "UserError": "errors",
    "load_scenario": "scenario_file",
}

__all__ = [
    "CageEnv",
    "CageVectorEnv",
    "CyborgEnv",
    "CyborgVectorEnv",
    "GPUCBSearch",
    "OrderConditionedActorCritic",
    "ParallelEnvWrapper",
    "ParallelOrderConditionedPPO",
    "ParallelTrajectoryBuffer",
    "ParallelWorkflowRLTrainer",
    "TrainConfig",
    "UserError",
    "Workflow",
    "__version__",
    "load_policy",
    "load_scenario",
    "make_config",
    "train_workflow",
]

register_envs()


def __getattr__(name: str) -> Any:
    """Loads public names at first use, so that ``workflow-rl --help`` does not wait for Numba."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"workflow_rl.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
