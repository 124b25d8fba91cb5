"""Stores a measured result with everything needed to repeat it: the command, the commit, the machine."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workflow_rl import __version__
from workflow_rl.bench import machine

RESULTS = Path(__file__).resolve().parent / "results"


def write_result(name: str, command: str, figures: dict[str, Any]) -> Path:
    """Writes benchmarks/results/NAME.json atomically and returns its path."""
    result = {
        "command": command,
        "commit": commit(),
        "version": __version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "figures": figures,
    }
    path = RESULTS / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path)
    return path


def commit() -> str:
    """Commit of the source, marked if something was changed since."""
    try:
        git = ["git", "-C", str(RESULTS), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
