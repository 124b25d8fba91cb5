"""Workflow search for autonomous cyber defence: find the order in which a network under attack should be repaired."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from workflow_rl.registration import register_envs

__version__ = "0.1.0"

if TYPE_CHECKING:
    from workflow_rl.env import CageEnv, CageVectorEnv, ParallelEnvWrapper
    from workflow_rl.errors import UserError
    from workflow_rl.scenario_file import load_scenario

_HOMES = {
    "CageEnv": "env",
    "CageVectorEnv": "env",
    "ParallelEnvWrapper": "env",
    "UserError": "errors",
    "load_scenario": "scenario_file",
}

__all__ = ["CageEnv", "CageVectorEnv", "ParallelEnvWrapper", "UserError", "__version__", "load_scenario"]

register_envs()


def __getattr__(name: str) -> Any:
    """Loads public names at first use, so that ``workflow-rl --help`` does not wait for Numba."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"workflow_rl.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
