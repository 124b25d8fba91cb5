"""Stores what came out of universal trainings, one run per red agent, with the table of all 120 workflows.

workflow-rl train --preset universal --red-agent bline --run-dir runs/universal-bline
workflow-rl train --preset universal --red-agent meander --run-dir runs/universal-meander
python -m benchmarks.universal runs/universal-bline runs/universal-meander
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.results import write_result
from workflow_rl.errors import UserError
from workflow_rl.run_store import read_result


def main(runs: list[Path]) -> None:
    """Reads the results of the runs and writes benchmarks/results/universal.json."""
    figures = {}
    for path in runs:
        result = read_result(path)
        if result is None or not result.get("by_workflow"):
            raise UserError(f"{path} is not a finished universal training.")
        returns = [cell["mean_return"] for cell in result["by_workflow"].values()]
        figures[result["red_agent"]] = {
            "followed": sum(cell["compliance"] >= 0.95 for cell in result["by_workflow"].values()),
            "worst_return": min(returns),
            "best_return": max(returns),
            **{key: value for key, value in result.items() if key != "run"},
        }
    command = "workflow-rl train --preset universal --red-agent RED, then python -m benchmarks.universal RUN ..."
    print(write_result("universal", command, figures))


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
