"""The exact limits of orders against B_line: a higher return means that the order was broken."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

LIMITS = Path(__file__).parent / "limits.json"
SURE = 2.0  # standard errors by which a return must be above the limit


@cache
def _shipped() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(LIMITS.read_text("utf-8"))
    return found


def limit_of(workflow: str, red_agent: str, edition: str, takeover: str, length: int) -> float | None:
    """What a defender that sees everything and keeps the order reaches at best; None: not known.

    >>> limit_of("op_server,enterprise,user,defender,op_host", "bline", "current", "30", 100)
    -21.2395
    """
    orders = _shipped().get(edition, {}).get(takeover)
    if not workflow or red_agent != "bline" or orders is None:
        return None
    taken = next(iter(orders)).split(",")
    names = [kind.strip() for kind in workflow.split(",")]
    limit: float | None = orders.get(",".join(kind for kind in names if kind in taken), {}).get(str(length))
    return limit


def is_too_good(mean_return: float, standard_error: float, limit: float | None) -> bool:
    """Is the return beyond what anybody can reach who keeps the order?"""
    return limit is not None and mean_return > limit + SURE * standard_error
