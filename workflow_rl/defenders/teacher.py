"""The teacher that a policy imitates: the expert, except in situations where another action was found to be better.

A *situation* is a key of the memory view (memory.py), everything that a defender can distinguish, with the number of
the order that the teacher is told. paired_games.py finds the exceptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np

from workflow_rl.defenders.expert import ENTERPRISE_TYPE, USER_TYPE, advise
from workflow_rl.engine.bits import wide
from workflow_rl.engine.compiled import compiled
from workflow_rl.envs.memory import N_WORDS, OBSERVATION_BITS, Memory, write_bits
from workflow_rl.training.actor import EMPTY, find

ORDERS = [*permutations(range(ENTERPRISE_TYPE, USER_TYPE + 1))]  # of the types that red can take


def task_number(order: Sequence[int]) -> int:
    """The number of an order in keys: 0 for no order, else by the relative order of the types that red can take.

    >>> task_number([]), task_number([1, 2, 3, 4]), task_number([4, 0, 3, 2, 1])
    (0, 1, 24)
    """
    taken = tuple(unit_type for unit_type in order if unit_type >= ENTERPRISE_TYPE)
    return 1 + ORDERS.index(taken) if taken else 0


@compiled
def write_key(m: Memory, number: int, key: np.ndarray) -> None:
    """Writes the situation: the memory's bits, and the number of the order above the observation."""
    write_bits(m, key)
    key[0] |= number << OBSERVATION_BITS


class Exceptions(NamedTuple):
    """Situations in which the teacher deviates from the expert, as an open-addressing hash table."""

    slots: np.ndarray  # (2**k,) int32: row, or EMPTY
    keys: np.ndarray  # (n, N_WORDS) int64
    actions: np.ndarray  # (n,) int16: 0 .. 144


@compiled
def _fill(slots: np.ndarray, keys: np.ndarray) -> None:
    for row in range(keys.shape[0]):
        slots[find(slots, keys, keys[row])] = row


def make_exceptions(keys: np.ndarray, actions: np.ndarray) -> Exceptions:
    """Builds the table from distinct keys (n, N_WORDS) and their actions (n,)."""
    slots = np.full(1 << max(1, (2 * len(keys)).bit_length()), EMPTY, np.int32)
    keys = np.ascontiguousarray(keys, np.int64).reshape(-1, N_WORDS)
    _fill(slots, keys)
    return Exceptions(slots, keys, np.asarray(actions, np.int16))


NO_EXCEPTIONS = make_exceptions(np.zeros((0, N_WORDS), np.int64), np.zeros(0, np.int16))


@compiled
def teach(m: Memory, key: np.ndarray, leaderboard: bool, exceptions: Exceptions, order: np.ndarray) -> int:
    """The teacher's action (0 .. 144) for a memory, its key, and the order of repair that it is told (may be empty)."""
    row = exceptions.slots[find(exceptions.slots, exceptions.keys, key)]
    action: int = wide(exceptions.actions[row]) if row != EMPTY else wide(advise(m, leaderboard, order)[0])
    return action


@compiled
def teach_all(
    memories: np.ndarray, keys: np.ndarray, leaderboard: bool, exceptions: Exceptions, orders: np.ndarray,
    actions: np.ndarray,
) -> None:  # fmt: skip
    """Writes the teacher's actions (n,) for memories (n,), their keys (n, N_WORDS) and orders (n, n_types or 0)."""
    for i in range(len(memories)):
        actions[i] = teach(memories[i], keys[i], leaderboard, exceptions, orders[i])
