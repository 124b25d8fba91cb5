"""OrderConditionedActorCritic: the network, with or without the workflow's code among its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from workflow_rl.rollout import KEY_BITS, Actor
from workflow_rl.views import unpack_words


class OrderConditionedActorCritic(nn.Module):
    """Separate actor and critic, two hidden layers of tanh each.

    The actor's input is blue's observation (52 numbers) and, if ``n_code`` is not 0, the one-hot code of the workflow
    (25 numbers); the critic's is the same.

    Args:
        n_bits: numbers of the observation.
        n_code: numbers of the workflow's code; 0 for a general policy.
        n_actions: number of actions.
        hidden: width of the hidden layers.
    """

    def __init__(self, n_bits: int = 52, n_code: int = 25, n_actions: int = 145, hidden: int = 64) -> None:
        super().__init__()
        self.n_bits, self.n_code, self.n_actions, self.hidden = n_bits, n_code, n_actions, hidden

        def tower(n_out: int) -> nn.Sequential:
            n_in = n_bits + n_code
            return nn.Sequential(
                nn.Linear(n_in, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, n_out)
            )

        self.actor, self.critic = tower(n_actions), tower(1)

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (n, n_actions) and values (n,) of inputs (n, n_bits + n_code)."""
        return self.actor(inputs), self.critic(inputs).squeeze(-1)

    def with_order(self, n_code: int) -> OrderConditionedActorCritic:
        """The same policy with the workflow's code as further inputs, whose weights start at zero."""
        wider = OrderConditionedActorCritic(self.n_bits, n_code, self.n_actions, self.hidden)
        wider.to(next(self.parameters()).dtype)
        weights = self.state_dict()
        for tower in ("actor", "critic"):
            name = f"{tower}.0.weight"
            pad = torch.zeros(self.hidden, n_code - self.n_code, dtype=weights[name].dtype)
            weights[name] = torch.cat([weights[name], pad], dim=1)
        wider.load_state_dict(weights)
        return wider

    def compiled_actor(self, codes: np.ndarray) -> Actor:
        """The actor for the compiled rollout; ``codes`` are the workflows' codes, (n_workflows, n_code)."""
        with torch.no_grad():
            layers: Any = self.actor
            first, second, third = layers[0], layers[2], layers[4]
            weights = first.weight.detach().cpu().numpy()
            bias = first.bias.detach().cpu().numpy() + codes.astype(weights.dtype) @ weights[:, self.n_bits :].T
            return Actor(
                first=np.ascontiguousarray(weights[:, : self.n_bits].T, np.float32),
                order_bias=np.ascontiguousarray(bias, np.float32),
                second=np.ascontiguousarray(second.weight.detach().cpu().numpy().T, np.float32),
                second_bias=np.ascontiguousarray(second.bias.detach().cpu().numpy(), np.float32),
                third=np.ascontiguousarray(third.weight.detach().cpu().numpy().T, np.float32),
                third_bias=np.ascontiguousarray(third.bias.detach().cpu().numpy(), np.float32),
            )


def unpack_inputs(keys: np.ndarray, n_bits: int, codes: np.ndarray) -> np.ndarray:
    """Network inputs of the keys (n, n_words) of a rollout; (n, n_bits + n_code) float32."""
    if not codes.shape[1]:
        return unpack_words(keys, n_bits)
    return np.concatenate([unpack_words(keys, n_bits), codes[keys[:, 0] >> KEY_BITS].astype(np.float32)], axis=1)
