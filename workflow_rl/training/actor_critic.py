"""OrderConditionedActorCritic: the neural net, with or without the workflow's code among its inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from workflow_rl.training.actor import Actor, Guard

NEVER = -1e9  # logit of an action that is not allowed


class OrderConditionedActorCritic(nn.Module):
    """Separate actor and critic, two hidden layers of tanh each.

    The actor's input is what blue observes and, if ``n_code`` is not 0, the one-hot code of the workflow; the critic's
    is the same.

    Args:
        n_bits: numbers of the observation.
        n_code: numbers of the workflow's code; 0 for a general policy.
        n_actions: number of actions.
        hidden: width of the hidden layers.
        guard: takes fixes away that are out of order by what the observation shows; None: nothing is taken away.
    """

    def __init__(self, n_bits: int, n_code: int, n_actions: int, hidden: int = 64, guard: Guard | None = None) -> None:
        super().__init__()
        self.guard = guard
        self.n_bits, self.n_code, self.n_actions, self.hidden = n_bits, n_code, n_actions, hidden

        def tower(n_out: int) -> nn.Sequential:
            n_in = n_bits + n_code
            return nn.Sequential(
                nn.Linear(n_in, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, n_out)
            )

        self.actor, self.critic = tower(n_actions), tower(1)

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (n, n_actions) and values (n,) of inputs (n, n_bits + n_code)."""
        return self.logits(inputs), self.critic(inputs).squeeze(-1)

    def logits(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits (n, n_actions) of inputs (n, n_bits + n_code)."""
        logits: torch.Tensor = self.actor(inputs)
        if self.guard is not None and self.n_code:
            logits = logits.masked_fill(self._blocked(inputs), NEVER)
        return logits

    def _blocked(self, inputs: torch.Tensor) -> torch.Tensor:
        """Actions (n, n_actions) that the guard takes away; see :func:`workflow_rl.training.compliance.block`."""
        assert self.guard is not None
        suspect, fixed = (torch.from_numpy(array).to(inputs.device) for array in self.guard[:2])
        observed = self.guard.observed
        n_types = len(suspect)
        bits = (suspect[:, None] >> torch.arange(observed, device=inputs.device) & 1).to(inputs.dtype)
        suspected = inputs[:, :observed] @ bits.T > 0  # (n, n_types)
        at = inputs[:, self.n_bits :].reshape(-1, n_types, n_types).argmax(1)  # position of each type
        first = torch.where(suspected, at, n_types).amin(1, keepdim=True)  # of the one that looks due
        late = torch.cat([at > first, torch.zeros_like(suspected[:, :1])], 1)  # the last column is for no fix
        return late[:, fixed.long()]

    def widened(self, n_code: int) -> OrderConditionedActorCritic:
        """The same policy with the workflow's code as further inputs, whose weights start at zero."""
        if n_code <= self.n_code:
            return self
        wider = OrderConditionedActorCritic(self.n_bits, n_code, self.n_actions, self.hidden, self.guard)
        wider.to(next(self.parameters()).dtype)
        weights = self.state_dict()
        for tower in ("actor", "critic"):
            name = f"{tower}.0.weight"
            pad = torch.zeros(self.hidden, n_code - self.n_code, dtype=weights[name].dtype)
            weights[name] = torch.cat([weights[name], pad], dim=1)
        wider.load_state_dict(weights)
        return wider

    def compiled_actor(self, codes: np.ndarray, observed: int) -> Actor:
        """The actor for the compiled rollout.

        Args:
            codes: the workflows' codes, (n_workflows, n_code).
            observed: bits of the environment's own observation.
        """
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
                observed=observed,
            )
