"""Where the benchmarks of this checkout keep their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workflow_rl.studies.results import write_result as write

RESULTS = Path(__file__).resolve().parent / "results"


def write_result(name: str, command: str, figures: dict[str, Any]) -> Path:
    """Writes benchmarks/results/NAME.json atomically and returns its path."""
    return write(RESULTS, name, command, figures)
