"""The exact limits of orders against B_line: a higher return means that the order was broken."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.runs import Json

LIMITS = Path(__file__).parent.parent / "engine" / "networks" / "cage2-limits.json"
SURE = 2.0  # standard errors by which a return must exceed the limit


@cache
def _bundled() -> Json:
    found: Json = json.loads(LIMITS.read_text("utf-8"))
    return found


def limit_of(workflow: str, red_agent: str, edition: str, takeover: str, length: int, network: Network) -> float | None:
    """The best return of a defender that sees the true state and follows the workflow; None if it is unknown.

    The limits are those of CAGE Challenge 2 and of no other network.

    >>> limit_of("op_server,enterprise,user,defender,op_host", "bline", "current", "30", 100, as_network(CAGE2))
    -21.2395
    """
    if network.digest != as_network(CAGE2).digest:
        return None
    orders = _bundled().get(edition, {}).get(takeover)
    if not workflow or red_agent != "bline" or orders is None:
        return None
    taken = next(iter(orders)).split(",")
    names = [kind.strip() for kind in workflow.split(",")]
    limit: float | None = orders.get(",".join(kind for kind in names if kind in taken), {}).get(str(length))
    return limit


def is_too_good(mean_return: float, standard_error: float, limit: float | None) -> bool:
    """Is the return significantly above the limit of the workflow?"""
    return limit is not None and mean_return > limit + SURE * standard_error
