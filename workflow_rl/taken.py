"""Which unit types a red agent ever takes: only their order can matter."""

from __future__ import annotations

from functools import cache

import numpy as np

from workflow_rl.compliance import type_masks
from workflow_rl.env import CageVectorEnv

GAMES, STEPS, SEED = 2000, 100, 7


@cache
def taken_types(red_agent: str, edition: str, takeover: str) -> tuple[str, ...]:
    """Unit types of which a host was ever compromised, in games without defence and in games with random actions.

    >>> taken_types("bline", "current", "0")
    ('enterprise', 'op_server', 'user')
    """
    taken = 0
    for idle in (True, False):
        envs = CageVectorEnv(GAMES, red_agent=red_agent, edition=edition, takeover=takeover)
        envs.reset(seed=SEED)
        rng = np.random.default_rng(SEED)
        for _ in range(STEPS):
            actions = np.zeros(GAMES, int) if idle else rng.integers(envs.scenario.n_actions, size=GAMES)
            held = envs.step(actions)[4]["compromised_before"].any(axis=0)
            taken |= sum(1 << int(host) for host in np.flatnonzero(held))
    masks = zip(envs.scenario.unit_types, type_masks(envs.scenario), strict=True)
    return tuple(name for name, mask in masks if int(mask) & taken)
