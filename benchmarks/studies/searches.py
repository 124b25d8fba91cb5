"""Searches for the studies, in temporary directories."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from workflow_rl.errors import UserError

PROGRAM = (
    "import os; from workflow_rl.envs.parent_watch import end_with; end_with(os.getppid());"
    "from workflow_rl.cli.__main__ import main; main()"
)
KEPT = ("best", "pair_weights", "training_noise", "transitions", "evaluations", "seconds")


def search(place: Path, options: list[str], jobs: int, repeat: int = 0) -> dict[str, Any]:  # noqa: ARG001
    """Runs `workflow-rl search` in a child process; returns what it found and where its time went."""
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        began = time.perf_counter()
        command = [sys.executable, "-c", PROGRAM, "search", *options, "--jobs", str(jobs), "--no-report"]
        command += ["--run-dir", str(Path(folder) / "run"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - began
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise UserError(f"a search of the study failed: {said[-1]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        trained = [
            json.loads(path.read_text(encoding="utf-8"))["seconds"]
            for path in (Path(folder) / "run" / "trainings").glob("*/result.json")
        ]
    rows = [{name: row[name] for name in ("workflow", "mean_return", "follows")} for row in found["ranking"]]
    kept = {name: found[name] for name in KEPT}
    return kept | {"wall_seconds": wall, "training_seconds": sum(trained), "trainings": len(trained), "ranking": rows}
