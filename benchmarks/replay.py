"""Replays all recorded games of genuine CybORG, of both editions, and counts the steps that differ.

    python -m benchmarks.replay ../shared/cage2-oracle

Writes benchmarks/results/replay.json.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.results import write_result
from workflow_rl.engine.network_file import load_network
from workflow_rl.fidelity.replay import replay_all
from workflow_rl.fidelity.traces import load_trace

KEPT = ("episodes", "steps", "mismatched_steps")


def main(folder: Path) -> None:
    """The folder has the games of the current edition, its sub-folder those of the other one."""
    files = {"current": sorted(folder.glob("*.npz")), "leaderboard": sorted((folder / "leaderboard").glob("*.npz"))}
    figures: dict[str, Any] = {}
    for edition, paths in files.items():
        found = replay_all([load_trace(path) for path in paths], load_network(), edition)
        figures[edition] = {name: getattr(found, name) for name in KEPT} | {"files": len(paths)}
    figures["both"] = {name: sum(figures[edition][name] for edition in files) for name in KEPT}
    print(write_result("replay", "python -m benchmarks.replay ../shared/cage2-oracle", figures))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/cage2-oracle"))
