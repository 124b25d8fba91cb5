"""The small memory: the few facts of a defender's memory that help most, so that inputs still repeat in training.

It is written as plain Python beside exported agents too (export.py), so it must import nothing but numpy and memory.py.
"""

from __future__ import annotations

import numpy as np

from workflow_rl.engine.compiled import compiled
from workflow_rl.envs.memory import (
    B_LINE,
    ENTERPRISE2,
    MEANDER,
    N_LINES,
    OBSERVATION_BITS,
    SLEEP,
    USER0,
    WORD,
    Memory,
    b_line_target,
    next_decoy,
    next_line,
    put,
)

SMALL_BITS = OBSERVATION_BITS + 2 + N_LINES + 1 + 2 * 3


@compiled
def write_small(m: Memory, words: np.ndarray) -> None:
    """Writes the small memory: the observation in word 0, and in word 1 the inferred attacker and B_line's next move.

    Unless the attacker is Meander: the line of its program that B_line will execute next, whether it is privileged on
    its user host, and of the three hosts on its way whether they have all useful decoys, and had one when scanned.
    """
    words[:] = 0
    words[0] = m.observation
    put(words, WORD, m.foe == B_LINE)
    put(words, WORD + 1, m.foe == MEANDER)
    if m.foe != MEANDER and m.user > USER0:
        at = WORD + 2
        put(words, at + next_line(m), 1)
        put(words, at + N_LINES, m.rooted)
        at += N_LINES + 1
        for host in (m.user, b_line_target(m.user), ENTERPRISE2):
            put(words, at, next_decoy(m, host) == SLEEP)
            put(words, at + 1, m.bait[host] != 0)
            at += 2
