"""Stores what ``workflow-rl bench env`` measures.

python -m benchmarks env
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from benchmarks.command import main
from workflow_rl.engine.network_file import load_network
from workflow_rl.studies.bench import bench_env


def measure() -> dict[str, Any]:
    """The speeds of both environments, and of genuine CybORG."""
    figures = asdict(
        bench_env(1.0, ("bline", "meander"), True, load_network(), lambda line: print(line, file=sys.stderr))
    )
    del figures["machine"]  # write_result adds it
    return figures


if __name__ == "__main__":
    main("env")
