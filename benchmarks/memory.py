"""What the small memory is worth from scratch: `train --workflow` with it and without it, returns and seconds.

The trainings of a seed follow each other in one process, so that a busy machine slows all views alike.

python -m benchmarks memory
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.command import main
from workflow_rl.presets import make_config
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.trainer import train_workflow

ORDERS = {
    "enterprise_first": "enterprise,op_server,user,defender,op_host",
    "user_first": "user,op_host,op_server,enterprise,defender",
}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "small": {"view": "small-memory"},
    "settings": {"actions": "host-decoy", "entropy": 0.02, "gamma": 0.97},  # those of the small memory without it
}
TASKS = {
    "bline": (("enterprise_first", "user_first"), ("plain", "small", "settings")),
    "meander": (("user_first",), ("plain", "small")),
}
SEEDS, GAMES = range(10, 13), 1000  # other seeds than those with which bits and settings were chosen


def measure() -> dict[str, Any]:
    """Both orders against B_line, one against Meander; three seeds."""
    for _ in trainings("bline", "enterprise_first", ("plain", "small"), range(1), max_episodes=5):
        pass  # compiles
    figures: dict[str, Any] = {
        red: {order: compared(red, order, ways) for order in orders} for red, (orders, ways) in TASKS.items()
    }
    return figures | {"orders": ORDERS, "ways": WAYS, "seeds": len(SEEDS), "games": GAMES}


def trainings(
    red: str, order: str, ways: tuple[str, ...], seeds: range = SEEDS, **values: Any
) -> Iterator[tuple[str, WorkflowResult]]:
    """Trains with every seed in every way in turn."""
    for seed in seeds:
        for way in ways:
            own = {"workflow": ORDERS[order], "red_agent": red, "seed": seed, "n_eval_episodes": GAMES}
            yield way, train_workflow(make_config("workflow", **own, **WAYS[way], **values))


def compared(red: str, order: str, ways: tuple[str, ...]) -> dict[str, Any]:
    """The ways side by side; each gain is over the plain view, and so are the times as long."""
    rows: dict[str, list[WorkflowResult]] = {way: [] for way in ways}
    for way, row in trainings(red, order, ways):
        rows[way].append(row)
    figures = {way: summary(found) for way, found in rows.items()}
    for found in figures.values():
        found["gain"] = found["mean_return"] - figures["plain"]["mean_return"]
        found["times_as_long"] = found["seconds"] / figures["plain"]["seconds"]
    return figures


def summary(rows: list[WorkflowResult]) -> dict[str, Any]:
    """Means over the seeds, and what each reached."""
    return {
        "mean_return": statistics.fmean(row.mean_return for row in rows),
        "returns": [row.mean_return for row in rows],
        "worst": min(row.mean_return for row in rows),
        "kept": [row.kept for row in rows],
        "lowest_kept": min(row.kept or 0.0 for row in rows),
        "updates": [row.updates for row in rows],
        "seconds": statistics.fmean(row.seconds for row in rows),
        "all_seconds": [row.seconds for row in rows],
    }


if __name__ == "__main__":
    main("memory")
