"""Inputs of a policy as keys, hash tables of keys, and the actor's arithmetic on one of them in compiled code.

A key is a few words. Word 0 holds the packed observation and, above its bits, the number of the workflow; further words
hold what blue remembers (memory.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.bits import lowest, wide, word
from workflow_rl.engine.chance import mix
from workflow_rl.engine.compiled import compiled
from workflow_rl.envs.memory import WORD
from workflow_rl.envs.views import View, unpack_words

EMPTY = -1  # a free slot of a hash table


class Actor(NamedTuple):
    """The actor's weights for compiled code, transposed: inputs first."""

    first: np.ndarray  # (n_bits, hidden)
    order_bias: np.ndarray  # (n_workflows, hidden): bias of the first layer plus what the workflow's code adds
    second: np.ndarray  # (hidden, hidden)
    second_bias: np.ndarray
    third: np.ndarray  # (hidden, n_actions)
    third_bias: np.ndarray
    observed: int  # bits of word 0 that are the observation


@compiled
def find(slots: np.ndarray, keys: np.ndarray, key: np.ndarray) -> int:
    """Slot of ``key`` (n_words,) in a hash table of rows of ``keys``, or the free slot where it belongs."""
    mask = slots.shape[0] - 1
    scattered = mix(word(key[0]))
    for i in range(1, key.shape[0]):
        scattered = mix(scattered ^ word(key[i]))
    slot: int = wide(scattered & word(mask))
    while slots[slot] != EMPTY:
        same = True
        for i in range(key.shape[0]):
            same = same and keys[slots[slot], i] == key[i]
        if same:
            break
        slot = (slot + 1) & mask
    return slot


def unpack_inputs(keys: np.ndarray, view: View, codes: np.ndarray) -> np.ndarray:
    """Inputs of the actor-critic from keys (n, n_words); (n, n_bits + n_code) float32."""
    if not codes.shape[1]:
        return unpack_words(keys, view)
    return np.concatenate([unpack_words(keys, view), codes[keys[:, 0] >> view.observed].astype(np.float32)], axis=1)


@compiled
def evaluate_actor(actor: Actor, key: np.ndarray, probabilities: np.ndarray, hidden: np.ndarray) -> None:
    """Writes the action probabilities (n_actions,) of one input; ``hidden`` (2, hidden) is room to work in."""
    a, b = hidden[0], hidden[1]
    workflow = key[0] >> actor.observed
    for j in range(a.shape[0]):
        a[j] = actor.order_bias[workflow, j]
    for i in range(key.shape[0]):
        bits = key[i] if i else key[i] & ((1 << actor.observed) - 1)
        first = actor.observed + WORD * (i - 1) if i else 0
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
