"""Makes ``Cage2-v0`` known to Gymnasium, which calls this through its plug-in entry point. Must stay light."""

from __future__ import annotations

ENV_ID = "Cage2-v0"


def register_envs() -> None:
    """Registers the single and the vector environment, once."""
    from gymnasium.envs.registration import register, registry

    if ENV_ID not in registry:
        register(
            id=ENV_ID,
            entry_point="workflow_rl.env:CageEnv",
            vector_entry_point="workflow_rl.env:CageVectorEnv",
        )
