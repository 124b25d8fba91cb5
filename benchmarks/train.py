"""Stores what ``workflow-rl bench train`` measures.

python -m benchmarks train
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from benchmarks.command import main
from workflow_rl.studies.bench_train import bench_train


def measure() -> dict[str, Any]:
    """The speeds of training, and their ratios."""
    figures = asdict(bench_train(300, 12, say=lambda line: print(line, file=sys.stderr)))
    del figures["machine"]  # write_result adds it
    for red in ("bline", "meander"):
        if figures[red]["sb3_transitions_per_s"]:
            figures[red]["ratio_to_sb3"] = figures[red]["transitions_per_s"] / figures[red]["sb3_transitions_per_s"]
    figures["ratio_of_two_processes"] = (
        figures["two_process_transitions_per_s"] / figures["one_process_transitions_per_s"]
    )
    return figures


if __name__ == "__main__":
    main("train")
