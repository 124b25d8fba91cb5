"""Sets of small numbers as bits of an integer: how many, the lowest, the n-th."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from workflow_rl.engine.compiled import compiled


@intrinsic  # type: ignore[untyped-decorator]
def _ctpop(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _cttz(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


@compiled
def count(mask: int) -> int:
    """Number of members of ``mask``."""
    return _ctpop(mask)  # type: ignore[no-any-return]


@compiled
def lowest(mask: int) -> int:
    """Smallest member of ``mask``; 64 if it is empty."""
    return _cttz(mask)  # type: ignore[no-any-return]


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
