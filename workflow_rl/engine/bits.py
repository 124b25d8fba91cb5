"""Sets of small numbers as bits of an integer: how many, the lowest, the n-th."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from workflow_rl.engine.compiled import compiled

# Compiled code computes with 64 bits; fields of a record are narrower and must be widened where types have to agree.
wide: Any = np.int64
word: Any = np.uint64


def _ctpop(typing_context: Any, value: Any) -> Any:  # noqa: ARG001 (names and number are Numba's)
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


def _cttz(typing_context: Any, value: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


_count_ones: Any = intrinsic(_ctpop)
_count_trailing_zeros: Any = intrinsic(_cttz)


@compiled
def count(mask: int) -> int:
    """Number of members of ``mask``."""
    return _count_ones(mask)


@compiled
def lowest(mask: int) -> int:
    """Smallest member of ``mask``; 64 if it is empty."""
    return _count_trailing_zeros(mask)


@compiled
def nth(mask: int, n: int) -> int:
    """The member of ``mask`` that has ``n`` smaller ones."""
    for _ in range(n):
        mask &= mask - 1
    return lowest(mask)


@compiled
def has(mask: int, member: int) -> bool:
    """Is ``member`` in ``mask``?"""
    return (mask >> member) & 1 != 0
