"""Trains every workflow against both red agents with the defaults of ``workflow-rl train --workflow``.

    python -m benchmarks.compliance

Each trained policy is evaluated on 1,000 fresh episodes. Writes benchmarks/results/compliance.json.
"""

from __future__ import annotations

import sys
from dataclasses import asdict

import numpy as np

from benchmarks.results import write_result
from workflow_rl.config import make_config
from workflow_rl.trainer import train_workflow
from workflow_rl.workflow import all_workflows


def main() -> None:
    """Runs all 240 trainings."""
    figures = {}
    for red in ("bline", "meander"):
        rows = []
        for number, workflow in enumerate(all_workflows()):
            result = train_workflow(make_config(workflow=str(workflow), red_agent=red, seed=number))
            rows.append(asdict(result))
            print(red, number, workflow, f"{result.compliance:.3f}", result.updates, file=sys.stderr)
        followed = [row["compliance"] >= 0.95 and row["counted_fixes"] >= 2 and row["updates"] <= 50 for row in rows]
        figures[red] = {
            "workflows": len(rows),
            "followed": sum(followed),
            "worst_compliance": min(row["compliance"] for row in rows),
            "fewest_counted_fixes": min(row["counted_fixes"] for row in rows),
            "most_updates": max(row["updates"] for row in rows),
            "mean_return": float(np.mean([row["mean_return"] for row in rows])),
            "seconds": sum(row["seconds"] for row in rows),
            "rows": rows,
        }
    print(write_result("compliance", "python -m benchmarks.compliance", figures))


if __name__ == "__main__":
    main()
