"""OrderConditionedActorCritic: the neural net, optionally conditioned on a workflow."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network import BITS_PER_HOST
from workflow_rl.envs.views import View
from workflow_rl.training.actor import ACCESS_BIT, Actor, Guard, place_of

NEVER = -1e9  # logit of a masked action
SIZES = ("n_bits", "n_code", "n_actions", "hidden")


class OrderConditionedActorCritic(nn.Module):
    """Separate actor and critic with two hidden tanh layers each.

    The input of both is the observation (``n_bits``) and, for a conditioned policy, the one-hot code of the workflow
    (``n_code`` numbers). The guard, if there is one, masks fixes that look out of order.
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

    @classmethod
    def of(cls, config: TrainConfig, view: View, n_code: int) -> OrderConditionedActorCritic:
        """A new one for the settings of a training."""
        return cls(view.n_bits, n_code, view.n_actions, config.hidden)

    @property
    def sizes(self) -> dict[str, int]:
        """The arguments of the constructor, as a policy file keeps them."""
        return {name: getattr(self, name) for name in SIZES}

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (n, n_actions) and values (n,) of inputs (n, n_bits + n_code)."""
        return self.logits(inputs), self.critic(inputs).squeeze(-1)

    def logits(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits (n, n_actions) of inputs (n, n_bits + n_code), masked by the guard."""
        logits: torch.Tensor = self.actor(inputs)
        if self.guard is not None and self.n_code:
            logits = self._guarded(logits, inputs, self.guard)
        return logits

    def _guarded(self, logits: torch.Tensor, inputs: torch.Tensor, guard: Guard) -> torch.Tensor:
        """Logits (n, n_actions) without the actions that :func:`workflow_rl.training.actor.block` takes away."""
        arrays = (guard.masks, guard.fixed.astype(int), guard.restored.astype(int), guard.waits)
        masks, fixed, restored, waits = (torch.from_numpy(array).to(inputs.device) for array in arrays)
        n_types, n_hosts = len(masks), sum(int(word).bit_count() for word in guard.access.view(np.uint64))
        hosts = (masks[:, None] >> torch.arange(n_hosts, device=inputs.device) & 1).to(inputs.dtype)
        seen = inputs[:, ACCESS_BIT : BITS_PER_HOST * n_hosts : BITS_PER_HOST] * hosts.sum(0)  # those that count
        suspected = seen @ hosts.T > 0  # (n, n_types)
        at = inputs[:, self.n_bits :].reshape(-1, n_types, n_types).argmax(1)  # position of each type
        first = torch.where(suspected, at, n_types).amin(1, keepdim=True)  # position of the type that looks due
        none = torch.zeros_like(suspected[:, :1])  # last column: actions that fix nothing
        logits = logits.masked_fill(torch.cat([at > first, none], 1)[:, fixed], NEVER)
        if guard.urgent:
            urgent = seen[:, [host for host in range(n_hosts) if guard.urgent >> host & 1]].any(1, keepdim=True)
            due = torch.cat([at == first, none], 1)[:, fixed]
            helps = due & (restored >= 0) & (seen[:, restored] > 0)
            logits = logits.masked_fill(urgent & waits[logits.argmax(1, keepdim=True)] & ~helps, NEVER)
        return logits

    def widened(self, n_code: int) -> OrderConditionedActorCritic:
        """The same policy with the workflow code as additional inputs, whose weights start at zero."""
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

    def compiled_actor(self, codes: np.ndarray, view: View) -> Actor:
        """The actor for the compiled rollout, for workflow codes (n_workflows, n_code) and the keys of a view."""
        weights = [weight.detach().cpu().numpy() for weight in self.actor.parameters()]  # weight, bias of each layer
        first, bias, second, second_bias, third, third_bias = weights
        order_bias = bias + codes.astype(first.dtype) @ first[:, self.n_bits :].T
        arrays = (first[:, : self.n_bits].T, order_bias, second.T, second_bias, third.T, third_bias)
        first, order_bias, second, second_bias, third, third_bias = (
            np.ascontiguousarray(array, np.float32) for array in arrays
        )
        return Actor(first, order_bias, second, second_bias, third, third_bias, place_of(view))
