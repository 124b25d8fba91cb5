"""The teacher that a policy imitates: the expert, except in situations where another action was found to be better.

A *situation* is a key of the memory view (memory.py), everything that a defender can distinguish. paired_games.py finds
the exceptions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.defenders.expert import CLEAN_UP, FIRST_THINGS, LOOK_AFTER, advise, obey
from workflow_rl.engine.bits import wide, word
from workflow_rl.engine.chance import mix
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.state import State
from workflow_rl.envs.memory import N_HOST_DECOY, N_WORDS, Memory, full_action
from workflow_rl.training.actor import EMPTY, find

SLIPS = 50  # one action in so many


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
def slip(s: State, m: Memory, action: int) -> int:
    """What the teacher plays: its action, now and then any other, so that a policy learns how it recovers."""
    luck = mix(s.rng ^ word(SLIPS))
    if luck % word(SLIPS):
        return action
    return wide(full_action(m, wide((luck >> word(32)) % word(N_HOST_DECOY))))


@compiled
def teach(m: Memory, key: np.ndarray, leaderboard: bool, exceptions: Exceptions, order: np.ndarray) -> int:
    """The teacher's action (0 .. 144) for a memory, its key, and the order of repair that it is told (may be empty).

    Exceptions were found without an order. Where the expert keeps the one that it is told, or looks, they do not count.
    """
    action, rule = advise(m, leaderboard, order)
    row = exceptions.slots[find(exceptions.slots, exceptions.keys, key)]
    if row == EMPTY or (len(order) and rule in (CLEAN_UP, FIRST_THINGS, LOOK_AFTER)):
        return wide(action)
    return wide(obey(m, wide(exceptions.actions[row]), order, leaderboard))


@compiled
def teach_all(
    memories: np.ndarray, keys: np.ndarray, leaderboard: bool, exceptions: Exceptions, orders: np.ndarray,
    actions: np.ndarray,
) -> None:  # fmt: skip
    """Writes the teacher's actions (n,) for memories (n,), their keys (n, N_WORDS) and orders (n, n_types or 0)."""
    for i in range(len(memories)):
        actions[i] = teach(memories[i], keys[i], leaderboard, exceptions, orders[i])
