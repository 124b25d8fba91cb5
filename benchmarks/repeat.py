"""Trains a bundled champion again with the stored seed, kills it in the middle, resumes it and compares the weights.

python -m benchmarks repeat obedient current   # half an hour
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.command import main
from workflow_rl.defenders.names import DATA
from workflow_rl.presets import make_config
from workflow_rl.runs import read_tensors
from workflow_rl.training.policy_file import load_policy

TRAIN = (sys.executable, "-m", "workflow_rl.cli", "train")


def measure(preset: str, edition: str) -> dict[str, Any]:
    """The training as documented, but for a SIGKILL after half of its updates."""
    half = make_config(preset, edition=edition).max_episodes // 2
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        child = subprocess.Popen([*TRAIN, "--preset", preset, "--edition", edition, "--run-dir", str(run)])
        while child.poll() is None and _updates(run) < half:
            time.sleep(0.2)
        finished = child.poll() is not None
        child.kill()
        child.wait()
        killed = _updates(run)
        subprocess.run([*TRAIN, "--resume", str(run)], check=True)
        result = json.loads((run / "result.json").read_text("utf-8"))
        mine, theirs = load_policy(run), load_policy(DATA / f"{preset}-{edition}.safetensors")
        exceptions = len(read_tensors(run / "teacher.safetensors")[0]["keys"])
    pairs = zip(mine.net.parameters(), theirs.net.parameters(), strict=True)
    same = not finished and all(bool((a == b).all()) for a, b in pairs)
    return {"same_weights": same, "killed_after": killed, "updates": result["updates"], "exceptions": exceptions}


def _updates(run: Path) -> int:
    """The number of updates that a training has logged so far."""
    path = run / "events.jsonl"
    return path.read_text("utf-8").count('"update"') if path.exists() else 0


if __name__ == "__main__":
    main("repeat")
