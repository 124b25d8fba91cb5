"""Both simulators behind Gymnasium; what blue sees and remembers.

``Cage2-v0`` is registered whenever workflow_rl is imported, so this must stay light.
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
