"""ParallelTrajectoryBuffer: the transitions of one batch, their returns, and the sums that a full-batch loss needs.

The clipped loss depends on a batch only through sums. All transitions with the same input and action share one ratio.
With S+ and S- the sums of their positive and negative advantages,

    sum over transitions of min(ratio * A, clip(ratio) * A) = min(ratio, 1 + clip) * S+ + max(ratio, 1 - clip) * S-

Likewise, the value loss needs only the number and the sum of the returns of each input, the entropy only the number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from workflow_rl.engine.compiled import compiled
from workflow_rl.training.compliance import EPISODE_DTYPE


class Inputs(NamedTuple):
    """The distinct inputs of a rollout in an open-addressing hash table."""

    slots: np.ndarray  # (2**k,) int32: row, or EMPTY
    keys: np.ndarray  # (capacity, key_words) int64: key of each row
    cumulative: np.ndarray  # (capacity, n_actions) float32: running sums of the action probabilities
    best: np.ndarray  # (capacity,) int16: the most probable action
    taught: np.ndarray  # (capacity,) int16: the teacher's action in the numbering of the view, if a teacher played


class Batch(NamedTuple):
    """The transitions of a rollout; (n_envs, n_steps) each."""

    rows: np.ndarray  # int32: row of the policy's input
    actions: np.ndarray  # int16: in the numbering of the view
    rewards: np.ndarray  # float32: environment rewards
    alignment: np.ndarray  # float32
    ended: np.ndarray  # bool: the episode ended with this step
    lessons: np.ndarray  # int16: the teacher's action, which it need not have played; unused without a teacher


class Sums(NamedTuple):
    """Sums of a batch by distinct input (rows) and action."""

    plus: np.ndarray  # (rows, n_actions): sum of positive advantages
    minus: np.ndarray  # (rows, n_actions): sum of negative advantages
    taken: np.ndarray  # (rows, n_actions): number of transitions
    returns: np.ndarray  # (rows,): sum of returns
    squares: float  # sum of squared returns of the whole batch


@compiled
def discounted(
    rewards: np.ndarray, ended: np.ndarray, values: np.ndarray, final_values: np.ndarray, last_values: np.ndarray,
    gamma: float, gae_lambda: float, advantages: np.ndarray,
) -> None:  # fmt: skip
    """Generalised advantages that never cross episodes; all arrays (n_envs, n_steps).

        delta_t = r_t + gamma * V_(t+1) - V_t
        A_t     = delta_t + gamma * gae_lambda * A_(t+1)        A_(t+1) = 0 after the last step of an episode

    With ``gae_lambda`` 1 the returns A_t + V_t are the Monte-Carlo returns. At the end of an episode, V_(t+1) is taken
    from ``final_values``: the value of the observation after the last step, or 0 for no bootstrap. ``last_values``
    (n_envs,) bootstrap episodes that continue beyond the batch.
    """
    for i in range(rewards.shape[0]):
        advantage, next_value = 0.0, float(last_values[i])
        for t in range(rewards.shape[1] - 1, -1, -1):
            if ended[i, t]:
                advantage, next_value = 0.0, float(final_values[i, t])
            delta = rewards[i, t] + gamma * next_value - values[i, t]
            advantage = delta + gamma * gae_lambda * advantage
            advantages[i, t] = advantage
            next_value = float(values[i, t])


@compiled
def add_sums(
    rows: np.ndarray, actions: np.ndarray, advantages: np.ndarray, returns: np.ndarray, plus: np.ndarray,
    minus: np.ndarray, taken: np.ndarray, total: np.ndarray,
) -> float:  # fmt: skip
    """Adds the transitions (n_envs, n_steps) to the sums; returns the sum of squared returns."""
    squares = 0.0
    for i in range(rows.shape[0]):
        for t in range(rows.shape[1]):
            row, action = rows[i, t], actions[i, t]
            advantage, value = advantages[i, t], returns[i, t]
            if advantage > 0:
                plus[row, action] += advantage
            else:
                minus[row, action] += advantage
            taken[row, action] += 1
            total[row] += value
            squares += value * value
    return squares


class ParallelTrajectoryBuffer:
    """Preallocated arrays for one batch of ``n_envs`` environments and ``n_steps`` steps.

    ``distinct`` allocates the action distributions of distinct inputs, which only the compiled rollout needs.
    """

    def __init__(
        self, n_envs: int, n_steps: int = 100, n_actions: int = 145, max_steps: int = 100, distinct: bool = True,
        n_words: int = 1,
    ) -> None:  # fmt: skip
        self.n_envs, self.n_steps, self.n_actions, shape = n_envs, n_steps, n_actions, (n_envs, n_steps)
        capacity = n_envs * n_steps
        slots = 1 << max(4, (2 * capacity - 1).bit_length())
        self.inputs = Inputs(
            slots=np.empty(slots if distinct else 1, np.int32),
            keys=np.empty((capacity, n_words), np.int64),
            cumulative=np.empty((capacity if distinct else 0, n_actions), np.float32),
            best=np.empty(capacity if distinct else 0, np.int16),
            taught=np.zeros(capacity, np.int16),
        )
        dtypes = (np.int32, np.int16, np.float32, np.float32, bool, np.int16)
        self.batch = Batch(*(np.empty(shape, dtype) for dtype in dtypes))
        self.finished = np.zeros(n_envs * (n_steps // max_steps + 1), EPISODE_DTYPE)
        self.final_room = np.zeros((len(self.finished), n_words), np.int64)
        self.advantages, self.returns = np.empty(shape), np.empty(shape)
        self.n_rows = self.n_finished = 0

    @property
    def keys(self) -> np.ndarray:
        """Keys of the inputs; (n_rows, key_words) int64."""
        return self.inputs.keys[: self.n_rows]

    @property
    def final_keys(self) -> np.ndarray:
        """Keys of the inputs after the last step of each episode, in row-major order; (n_finished, key_words) int64."""
        return self.final_room[: self.n_finished]

    def finished_episodes(self) -> np.ndarray:
        """A copy of the episodes that ended in this batch, of EPISODE_DTYPE."""
        return self.finished[: self.n_finished].copy()

    def compute_returns(
        self, values: np.ndarray, final_values: np.ndarray, last_values: np.ndarray, gamma: float, gae_lambda: float
    ) -> None:
        """Computes advantages and returns of the total rewards; all values are in reward units.

        Args:
            values: values of the rows, (n_rows,).
            final_values: values of :attr:`final_keys`, (n_finished,); zeros for no bootstrap.
            last_values: values of the inputs after the batch, (n_envs,).
            gamma: the discount.
            gae_lambda: the decay of generalised advantage estimation.
        """
        total = self.batch.rewards.astype(np.float64) + self.batch.alignment
        by_step = values.astype(np.float64)[self.batch.rows]
        finals = np.zeros(total.shape)
        finals[self.batch.ended] = final_values
        discounted(total, self.batch.ended, by_step, finals, last_values, gamma, gae_lambda, self.advantages)
        np.add(self.advantages, by_step, out=self.returns)

    def sums(self, advantages: np.ndarray, returns: np.ndarray, dtype: type = np.float32) -> Sums:
        """Sums the normalised advantages and returns (n_envs, n_steps) of the batch."""
        shape = (self.n_rows, self.n_actions)
        plus: np.ndarray = np.zeros(shape, dtype)
        minus, taken = np.zeros_like(plus), np.zeros_like(plus)
        total: np.ndarray = np.zeros(self.n_rows, dtype)
        squares = add_sums(self.batch.rows, self.batch.actions, advantages, returns, plus, minus, taken, total)
        return Sums(plus, minus, taken, total, squares)


@dataclass
class ReducedBatch:
    """A batch as sums over distinct inputs and over distinct pairs of input and action."""

    inputs: torch.Tensor  # (rows, n_in)
    pairs: torch.Tensor  # (n_pairs,): row * n_actions + action
    plus: torch.Tensor  # (n_pairs,): sum of positive advantages
    minus: torch.Tensor  # (n_pairs,): sum of negative advantages
    taken: torch.Tensor  # (n_pairs,): number of transitions
    number: torch.Tensor  # (rows,): number of transitions
    returns: torch.Tensor  # (rows,): sum of returns
    squares: float
    size: int
    taught: torch.Tensor  # (rows,): the expert's action
    old: torch.Tensor | None = None  # (n_pairs,): log-probabilities under the behaviour policy


@dataclass
class SampledBatch:
    """A batch transition by transition."""

    inputs: torch.Tensor  # (size, n_in)
    actions: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    size: int
    taught: torch.Tensor  # (size,)
    old: torch.Tensor | None = None  # (size,)
