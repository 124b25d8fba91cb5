"""The guard: who was given an order does not fix a unit type while one of higher priority looks compromised.

What looks compromised is the observation's own word: blue believes that red has user or privileged access to a host.
The guard takes the actions that would be out of order by that word away from the policy, in training as in play; what
the observation does not show is left to the policy and to the penalty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.bits import wide
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import Network
from workflow_rl.engine.observe import BITS_PER_HOST
from workflow_rl.envs.game import fixed_unit_types
from workflow_rl.envs.views import View, all_actions
from workflow_rl.training.compliance import NO_TYPE, due_type, type_masks

ACCESS_BIT = 3  # of a host's four: set if blue believes that red has access


class Guard(NamedTuple):
    """What the guard looks at."""

    suspect: np.ndarray  # (n_types,) int64: bits of a packed observation that make a host of the type suspect
    fixed: np.ndarray  # (n_actions,) int8: unit type that each action of the view fixes, NO_TYPE for none


def make_guard(network: Network, view: View) -> Guard:
    """For the actions of a view."""
    suspect = np.zeros(len(network.unit_types), np.int64)
    for kind, hosts in enumerate(type_masks(network)):
        for host in range(len(network.hosts)):
            suspect[kind] |= (int(hosts) >> host & 1) << (BITS_PER_HOST * host + ACCESS_BIT)
    return Guard(suspect, fixed_unit_types(network)[all_actions(view)])


@compiled
def block(probabilities: np.ndarray, guard: Guard, order: np.ndarray, observation: int) -> None:
    """Takes away the chances (n_actions,) of fixes that are out of order by what a packed observation shows."""
    due = due_type(order, guard.suspect, observation)
    if due == NO_TYPE:
        return
    later = wide(0)  # set of types that come after the one that looks due
    for position in range(order.shape[0]):
        if later or order[position] == due:
            later |= 1 << wide(order[position])
    later &= ~(1 << due)
    for action in range(probabilities.shape[0]):
        fixed = wide(guard.fixed[action])
        if fixed != NO_TYPE and (later >> fixed) & 1:
            probabilities[action] = 0.0
