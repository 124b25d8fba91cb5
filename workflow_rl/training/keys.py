"""Inputs of a policy as keys: some words that hold its bits, and hash tables of them.

Word 0 is the packed observation, and above it the number of the workflow; further words are what is remembered.
"""

from __future__ import annotations

import numpy as np

from workflow_rl.engine.bits import wide, word
from workflow_rl.engine.chance import mix
from workflow_rl.engine.compiled import compiled
from workflow_rl.envs.views import unpack_words

KEY_BITS = 52
EMPTY = -1


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


def unpack_inputs(keys: np.ndarray, n_bits: int, codes: np.ndarray) -> np.ndarray:
    """Inputs of the neural net from keys (n, n_words); (n, n_bits + n_code) float32."""
    if not codes.shape[1]:
        return unpack_words(keys, n_bits)
    return np.concatenate([unpack_words(keys, n_bits), codes[keys[:, 0] >> KEY_BITS].astype(np.float32)], axis=1)
