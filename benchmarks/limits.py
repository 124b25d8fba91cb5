"""Writes the limits that ship with the package from the stored result of ``python -m benchmarks limit``.

python -m benchmarks limits
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.command import main
from benchmarks.results import RESULTS
from workflow_rl.runs import write_atomically
from workflow_rl.training.limits import LIMITS


def limits_from_study(figures: dict[str, Any]) -> dict[str, Any]:
    """What the study ``limit`` found, as it ships: edition, takeover, order of the types that B_line takes, length."""
    found: dict[str, Any] = {}
    for edition, one in figures["bline"].items():
        by_takeover = {"0": one["orders"]} | {steps: cells["orders"] for steps, cells in one["incidents"].items()}
        found[edition] = {
            steps: {
                order: {length: round(cell["exact"], 4) for length, cell in cells.items()}
                for order, cells in orders.items()
            }
            for steps, orders in by_takeover.items()
        }
    return found


def measure() -> None:
    """Writes the file that the package reads."""
    figures = json.loads((RESULTS / "study_limit.json").read_text("utf-8"))["figures"]
    write_atomically(LIMITS, (json.dumps(limits_from_study(figures), indent=1) + "\n").encode())
    print(LIMITS)


if __name__ == "__main__":
    main("limits")
