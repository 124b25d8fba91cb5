"""Replays all recorded games of genuine CybORG, of both editions, and counts the steps that differ.

python -m benchmarks replay ../shared/cage2-oracle
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.command import main
from workflow_rl.engine.network_file import load_network
from workflow_rl.errors import UserError
from workflow_rl.fidelity.replay import replay_all
from workflow_rl.fidelity.traces import load_trace

KEPT = ("episodes", "steps", "mismatched_steps")


def measure(folder: str) -> dict[str, Any]:
    """The folder has the games of the current edition, its sub-folder those of the other one."""
    place = Path(folder)
    files = {"current": sorted(place.glob("*.npz")), "leaderboard": sorted((place / "leaderboard").glob("*.npz"))}
    figures: dict[str, Any] = {}
    for edition, paths in files.items():
        if not paths:
            raise UserError(f"{place}: no recordings (*.npz) of the {edition} edition there.")
        found = replay_all([load_trace(path) for path in paths], load_network(), edition)
        figures[edition] = {name: getattr(found, name) for name in KEPT} | {"files": len(paths)}
    figures["both"] = {name: sum(figures[edition][name] for edition in files) for name in KEPT}
    return figures


if __name__ == "__main__":
    main("replay")
