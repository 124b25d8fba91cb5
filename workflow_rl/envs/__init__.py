"""Both simulators behind Gymnasium; what blue sees and remembers.

Importing workflow_rl runs this file, which registers ``Cage2-v0``, so it must stay light.
"""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

ENV_ID = "Cage2-v0"


def register_envs() -> None:
    """Registers the single and the vector environment, once."""
    if ENV_ID not in registry:
        register(
            id=ENV_ID,
            entry_point="workflow_rl.envs.env:CageEnv",
            vector_entry_point="workflow_rl.envs.env:CageVectorEnv",
        )
