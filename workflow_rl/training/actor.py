"""The actor's weights for compiled code, and its arithmetic on one input."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.bits import lowest
from workflow_rl.engine.compiled import compiled
from workflow_rl.envs.memory import WORD
from workflow_rl.training.keys import KEY_BITS


class Actor(NamedTuple):
    """The actor's weights for compiled code, transposed: inputs first."""

    first: np.ndarray  # (n_bits, hidden)
    order_bias: np.ndarray  # (n_workflows, hidden): bias of the first layer plus what the workflow's code adds
    second: np.ndarray  # (hidden, hidden)
    second_bias: np.ndarray
    third: np.ndarray  # (hidden, n_actions)
    third_bias: np.ndarray


@compiled
def evaluate_actor(actor: Actor, key: np.ndarray, probabilities: np.ndarray, hidden: np.ndarray) -> None:
    """Writes the action probabilities (n_actions,) of one input; ``hidden`` (2, hidden) is room to work in."""
    a, b = hidden[0], hidden[1]
    workflow = key[0] >> KEY_BITS
    for j in range(a.shape[0]):
        a[j] = actor.order_bias[workflow, j]
    for i in range(key.shape[0]):
        bits = key[i] if i else key[i] & ((1 << KEY_BITS) - 1)
        first = KEY_BITS + WORD * (i - 1) if i else 0
        while bits:
            bit = first + lowest(bits)
            bits &= bits - 1
            for j in range(a.shape[0]):
                a[j] += actor.first[bit, j]
    for j in range(a.shape[0]):
        a[j] = np.tanh(a[j])
        b[j] = actor.second_bias[j]
    for k in range(a.shape[0]):
        for j in range(b.shape[0]):
            b[j] += a[k] * actor.second[k, j]
    for j in range(probabilities.shape[0]):
        probabilities[j] = actor.third_bias[j]
    for k in range(b.shape[0]):
        value = np.float32(np.tanh(b[k]))
        for j in range(probabilities.shape[0]):
            probabilities[j] += value * actor.third[k, j]
    top = probabilities[0]
    for j in range(probabilities.shape[0]):
        top = max(top, probabilities[j])
    total = np.float32(0)
    for j in range(probabilities.shape[0]):
        probabilities[j] = np.exp(probabilities[j] - top)
        total += probabilities[j]
    for j in range(probabilities.shape[0]):
        probabilities[j] /= total
