"""Writes the limits that ship with the package from the stored result of ``python -m benchmarks limit``.

python -m benchmarks limits
"""

from __future__ import annotations

import json

from benchmarks.command import main
from benchmarks.results import RESULTS
from workflow_rl.runs import write_atomically
from workflow_rl.training.limits import LIMITS, limits_from_study


def measure() -> None:
    """Writes the file that the package reads."""
    figures = json.loads((RESULTS / "study_limit.json").read_text("utf-8"))["figures"]
    write_atomically(LIMITS, (json.dumps(limits_from_study(figures), indent=1) + "\n").encode())
    print(LIMITS)


if __name__ == "__main__":
    main("limits")
