"""ParallelOrderConditionedPPO: evaluates the policy and learns from batches, by two paths to the same gradient."""

from __future__ import annotations

from collections import deque
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.envs.views import View
from workflow_rl.training.actor import make_guard, unpack_inputs
from workflow_rl.training.actor_critic import OrderConditionedActorCritic
from workflow_rl.training.buffer import ParallelTrajectoryBuffer, ReducedBatch, SampledBatch
from workflow_rl.training.events import UpdateStats

FIGURES = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")
CHUNK = 4000  # rows per forward and backward pass of the plain path, few enough for the processor's cache
IMITATION_SPEED = 3.0  # factor on the learning rate during imitation, whose gradient has little noise
FAST_SHARE = 0.5  # the fast path pays off up to this ratio of distinct inputs to transitions


class ParallelOrderConditionedPPO:
    """PPO with a clipped loss and Adam, for a policy that is optionally conditioned on a workflow.

    ``codes`` (n_workflows, n_code) are the codes of the workflows that keys refer to by number; n_code is 0 for a
    general policy. Without ``net`` a new actor-critic is made for the configured view.
    """

    def __init__(
        self, config: TrainConfig | None = None, codes: np.ndarray | None = None,
        net: OrderConditionedActorCritic | None = None, network: Network | Path | str = CAGE2,
    ) -> None:  # fmt: skip
        self.config = config or TrainConfig()
        self.view = view = View(self.config.view, self.config.actions, as_network(network))
        self.codes = np.zeros((1, 0), np.float32) if codes is None else codes
        if net is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.config.seed)
                net = OrderConditionedActorCritic.of(self.config, view, self.codes.shape[1])
        self.device = torch.device(choose_device(self.config.device))
        self.net = net.to(self.device)
        self.set_guard(True)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=self.config.lr, betas=(0.9, 0.99), fused=True)
        self.scale = np.array([0.0, 0.0])  # mean and standard deviation of the returns the critic was trained on
        self.recent: deque[Any] = deque(maxlen=self.config.replay_batches)
        self.updates = 0

    def set_guard(self, on: bool) -> None:
        """Turns the guard of the settings, if they have one, on or off."""
        self.net.guard = make_guard(self.view) if on and self.config.guard and self.codes.shape[1] else None

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the weights."""
        return next(self.net.parameters()).dtype

    def probabilities(self, keys: np.ndarray) -> np.ndarray:
        """Action probabilities (n, n_actions), float32, of keys (n, key_words) or, for one word, (n,)."""
        with torch.no_grad():
            result: np.ndarray = torch.softmax(self.net.logits(self._inputs(keys)), -1).float().cpu().numpy()
        return result

    def values(self, keys: np.ndarray) -> np.ndarray:
        """The critic's normalised values (n,) of keys (n, key_words)."""
        if not len(keys):
            return np.zeros(0)
        with torch.no_grad():
            result: np.ndarray = self.net.critic(self._inputs(keys)).squeeze(-1).double().cpu().numpy()
        return result

    def update(
        self, buffer: ParallelTrajectoryBuffer, last_keys: np.ndarray, progress: float = 0.0, imitate: bool = False
    ) -> UpdateStats:
        """Learns from one batch: computes returns and advantages once, then runs the epochs.

        The *fast* path evaluates the actor-critic once per distinct input and computes the loss from sums (buffer.py).
        The *plain* path evaluates every transition. The gradient is the same.

        Args:
            buffer: the batch.
            last_keys: keys of the inputs after the batch; (n_envs, key_words).
            progress: completed share of the training, 0 to 1, for annealing.
            imitate: raise the likelihood of the teacher's actions instead of the return; the critic learns as usual.
        """
        advantages, returns = self._targets(buffer, last_keys)
        fast = self._take_fast_path(buffer)
        data = self._reduce(buffer, advantages, returns) if fast else self._samples(buffer, advantages, returns)
        left = 1.0 - progress if self.config.anneal else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.lr * left * (IMITATION_SPEED if imitate else 1.0)
        stats = self._learn(data, self.config.entropy * left, imitate)
        if self.config.replay_batches:
            self.recent.append(data)
        self.updates += 1
        return UpdateStats(**stats, distinct_inputs=buffer.n_rows, fast=fast)

    def gradient(self, buffer: ParallelTrajectoryBuffer, last_keys: np.ndarray) -> np.ndarray:
        """The flat gradient of the actor in the first epoch of :meth:`update`; changes no weights."""
        data = self._samples(buffer, *self._targets(buffer, last_keys))
        self._remember_policy(data)
        self.optimizer.zero_grad(set_to_none=True)
        self._backward(data, self.config.entropy, False, 1.0, False)
        gradient = [weight.grad.ravel() for weight in self.net.actor.parameters() if weight.grad is not None]
        self.optimizer.zero_grad(set_to_none=True)
        return torch.cat(gradient).double().cpu().numpy()

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights, optimiser state and replay batches as plain arrays."""
        arrays = {f"net.{name}": value.cpu().numpy() for name, value in self.net.state_dict().items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            arrays |= {f"adam.{number}.{name}": value.cpu().numpy() for name, value in state.items()}
        for number, data in enumerate(self.recent):
            for item in fields(data):
                value = getattr(data, item.name)
                array = value.cpu().numpy() if isinstance(value, torch.Tensor) else np.array(value)
                arrays[f"recent.{number}.{type(data).__name__}.{item.name}"] = array
        return arrays | {"scale": self.scale}

    def restore(self, arrays: dict[str, np.ndarray], updates: int) -> None:
        """Restores the state from :meth:`arrays` after the given number of updates."""
        self.scale[:], self.updates = arrays["scale"], updates
        self._restore_recent(arrays)
        weights = {name[4:]: torch.from_numpy(value) for name, value in arrays.items() if name.startswith("net.")}
        self.net.load_state_dict(weights)
        memory: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in arrays.items():
            if name.startswith("adam."):
                _, number, key = name.split(".")
                memory.setdefault(int(number), {})[key] = torch.from_numpy(value.copy())
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": memory, "param_groups": groups})

    def _restore_recent(self, arrays: dict[str, np.ndarray]) -> None:
        kept: dict[int, tuple[str, dict[str, Any]]] = {}
        for name, array in arrays.items():
            if name.startswith("recent."):
                _, number, kind, item = name.split(".")
                value: Any = torch.from_numpy(array.copy()).to(self.device) if array.ndim else array.item()
                kept.setdefault(int(number), (kind, {}))[1][item] = value
        for _, (kind, values) in sorted(kept.items(), key=lambda entry: entry[0]):
            self.recent.append(ReducedBatch(**values) if "Reduced" in kind else SampledBatch(**values))

    def _take_fast_path(self, buffer: ParallelTrajectoryBuffer) -> bool:
        if self.config.path != "auto":
            return self.config.path == "fast"
        return not self.config.minibatch and buffer.n_rows <= FAST_SHARE * buffer.batch.rows.size

    def _inputs(self, keys: np.ndarray) -> torch.Tensor:
        inputs = torch.from_numpy(unpack_inputs(keys.reshape(len(keys), -1), self.view, self.codes))
        return inputs.to(self.device, self.dtype)

    def _targets(self, buffer: ParallelTrajectoryBuffer, last_keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Advantages and returns (n_envs, n_steps), normalised as configured."""
        config, values = self.config, self.values(buffer.keys)
        final, last = np.zeros(buffer.n_finished), np.zeros(buffer.n_envs)
        if config.normalise_returns and not self.scale[1]:
            buffer.compute_returns(0 * values, final, last, config.gamma, 1.0)
            self.scale[:] = buffer.returns.mean(), buffer.returns.std() + 1e-7
        mean, deviation = self.scale if config.normalise_returns else (0.0, 1.0)
        if config.time_limit == "bootstrap":
            final = self.values(buffer.final_keys) * deviation + mean
        if not buffer.batch.ended[:, -1].all():
            last = self.values(last_keys) * deviation + mean
        buffer.compute_returns(values * deviation + mean, final, last, config.gamma, config.gae_lambda)
        advantages, returns = buffer.advantages, buffer.returns
        if config.normalise_returns:
            self.scale[:] = returns.mean(), returns.std() + 1e-7
            returns = (returns - self.scale[0]) / self.scale[1]
            monte_carlo = config.gae_lambda == 1.0
            advantages = returns - values[buffer.batch.rows] if monte_carlo else advantages / self.scale[1]
        if config.normalise_advantages:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-7)
        return advantages, returns

    def _reduce(self, buffer: ParallelTrajectoryBuffer, advantages: np.ndarray, returns: np.ndarray) -> ReducedBatch:
        dtype = np.float64 if self.dtype == torch.float64 else np.float32
        sums = buffer.sums(advantages, returns, dtype)
        pairs = np.flatnonzero(sums.taken)
        by_pair = [array.ravel()[pairs] for array in (sums.plus, sums.minus, sums.taken)]
        arrays = [pairs, *by_pair, sums.taken.sum(axis=1), sums.returns]
        index, plus, minus, taken, number, total = (torch.from_numpy(array).to(self.device) for array in arrays)
        inputs, size = self._inputs(buffer.keys), buffer.batch.rows.size
        taught = torch.from_numpy(buffer.inputs.taught[: buffer.n_rows].astype(np.int64)).to(self.device)
        return ReducedBatch(inputs, index, plus, minus, taken, number, total, sums.squares, size, taught)

    def _samples(self, buffer: ParallelTrajectoryBuffer, advantages: np.ndarray, returns: np.ndarray) -> SampledBatch:
        def tensor(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
            return torch.from_numpy(np.ascontiguousarray(array.ravel())).to(self.device, dtype)

        actions = tensor(buffer.batch.actions, torch.int64)
        inputs = self._inputs(buffer.keys[buffer.batch.rows.ravel()])
        taught = tensor(buffer.inputs.taught[buffer.batch.rows], torch.int64)
        targets = tensor(advantages, self.dtype), tensor(returns, self.dtype)
        return SampledBatch(inputs, actions, *targets, len(actions), taught)

    def _learn(self, data: ReducedBatch | SampledBatch, entropy: float, imitate: bool) -> dict[str, float]:
        """Runs all epochs on the batch and the replay batches; returns the statistics of the last gradient step."""
        stats: dict[str, float] = {}
        if isinstance(data, SampledBatch):
            self._remember_policy(data)
        share = 1.0 / (1 + len(self.recent))
        for epoch in range(self.config.epochs):
            parts = self._parts(data, epoch)
            for number, part in enumerate(parts):
                last = epoch == self.config.epochs - 1 and number == len(parts) - 1
                self.optimizer.zero_grad(set_to_none=True)
                stats = self._backward(part, entropy, imitate, share, last)
                for old in self.recent:
                    self._backward(old, entropy, imitate, share, False)
                if self.config.max_grad_norm:
                    torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.config.max_grad_norm)
                self.optimizer.step()
        return stats

    def _parts(self, data: ReducedBatch | SampledBatch, epoch: int) -> list[ReducedBatch | SampledBatch]:
        """The whole batch, or shuffled minibatches of it."""
        if not self.config.minibatch or isinstance(data, ReducedBatch):
            return [data]
        order = np.random.default_rng([self.config.seed, self.updates, epoch]).permutation(data.size)
        parts: list[ReducedBatch | SampledBatch] = []
        for start in range(0, data.size, self.config.minibatch):
            rows = torch.from_numpy(order[start : start + self.config.minibatch]).to(self.device)
            arrays = (data.inputs[rows], data.actions[rows], data.advantages[rows], data.returns[rows])
            old = None if data.old is None else data.old[rows]
            parts.append(SampledBatch(*arrays, size=len(rows), taught=data.taught[rows], old=old))
        return parts

    def _remember_policy(self, data: SampledBatch) -> None:
        """Stores the log-probabilities of the actions under the behaviour policy."""
        with torch.no_grad():
            parts = [
                torch.log_softmax(self.net.logits(inputs), -1).gather(1, actions[:, None])[:, 0]
                for inputs, actions in zip(*(_chunks(a) for a in (data.inputs, data.actions)), strict=True)
            ]
        data.old = torch.cat(parts)

    def _backward(
        self, data: ReducedBatch | SampledBatch, entropy: float, imitate: bool, share: float, with_stats: bool
    ) -> dict[str, float]:
        """Adds the gradient of ``share`` times the loss; returns statistics of the loss on request."""
        if isinstance(data, ReducedBatch):
            return self._backward_reduced(data, entropy, imitate, share, with_stats)
        return self._backward_samples(data, entropy, imitate, share, with_stats)

    def _backward_reduced(
        self, data: ReducedBatch, entropy: float, imitate: bool, share: float, with_stats: bool
    ) -> dict[str, float]:
        """The fast path: explicit derivatives by log-probabilities and values, autograd for the rest."""
        logits, values = self.net(data.inputs)
        logp = torch.log_softmax(logits, -1)
        with torch.no_grad():
            of_pairs = logp.view(-1)[data.pairs]
            if data.old is None:
                data.old = of_pairs
            low, high, weight = 1 - self.config.clip, 1 + self.config.clip, share / data.size
            ratio = torch.exp(of_pairs - data.old)
            slope = torch.where(ratio < high, data.plus, 0.0) + torch.where(ratio > low, data.minus, 0.0)
            by_logp = torch.zeros_like(logp)
            if imitate:
                by_logp.scatter_add_(1, data.taught[:, None], data.number[:, None] * -weight)
            else:
                by_logp.view(-1)[data.pairs] = slope * ratio * -weight
            if entropy:
                probabilities = torch.exp(logp)
                push = probabilities * logp + probabilities
                by_logp.addcmul_(push, data.number[:, None], value=entropy * weight)
            by_value = (data.number * values - data.returns) * (2 * self.config.value_weight * weight)
            stats = self._reduced_stats(data, ratio, logp, values) if with_stats else {}
        torch.autograd.backward((logp, values), (by_logp, by_value))
        return stats

    def _reduced_stats(
        self, data: ReducedBatch, ratio: torch.Tensor, logp: torch.Tensor, values: torch.Tensor
    ) -> dict[str, float]:
        low, high = 1 - self.config.clip, 1 + self.config.clip
        gain = ratio.clamp(max=high) * data.plus + ratio.clamp(min=low) * data.minus
        figures = [
            -gain.sum(),
            data.squares + (data.number * values * values - 2 * values * data.returns).sum(),
            -((torch.exp(logp) * logp).sum(1) * data.number).sum(),
            ((ratio - 1 - torch.log(ratio)) * data.taken).sum(),
            (((ratio < low) | (ratio > high)) * data.taken).sum(),
        ]
        return _named(figures, data.size)

    def _backward_samples(
        self, data: SampledBatch, entropy: float, imitate: bool, share: float, with_stats: bool
    ) -> dict[str, float]:
        """The plain path: evaluates every transition, in chunks whose gradients add up."""
        assert data.old is not None
        total = torch.zeros(len(FIGURES), dtype=self.dtype, device=self.device)
        arrays = (data.inputs, data.actions, data.advantages, data.returns, data.old, data.taught)
        for inputs, actions, advantages, returns, old, taught in zip(*map(_chunks, arrays), strict=True):
            logits, values = self.net(inputs)
            logp = torch.log_softmax(logits, -1)
            log_ratio = logp.gather(1, actions[:, None])[:, 0] - old
            ratio = torch.exp(log_ratio)
            clipped = ratio.clamp(1 - self.config.clip, 1 + self.config.clip)
            policy_loss = -torch.min(ratio * advantages, clipped * advantages).sum()
            value_loss = ((values - returns) ** 2).sum()
            gain = logp.gather(1, taught[:, None]).sum() if imitate else -policy_loss
            loss = self.config.value_weight * value_loss - gain
            if entropy or with_stats:
                spread = -(torch.exp(logp) * logp).sum()
                loss = loss - entropy * spread
            (loss * (share / data.size)).backward()
            if with_stats:
                with torch.no_grad():
                    kl, outside = (ratio - 1 - log_ratio).sum(), (ratio != clipped).sum()
                    total += torch.stack([policy_loss, value_loss, spread, kl, outside])
        return _named(list(total), data.size) if with_stats else {}


def _chunks(array: torch.Tensor) -> list[torch.Tensor]:
    return [array[start : start + CHUNK] for start in range(0, len(array), CHUNK)]


def _named(figures: list[torch.Tensor], size: int) -> dict[str, float]:
    """Statistics per transition by name."""
    return {name: figure / size for name, figure in zip(FIGURES, torch.stack(figures).tolist(), strict=True)}


def choose_device(device: str) -> str:
    """Resolves ``auto`` to ``cuda`` if available, else ``cpu``."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device
