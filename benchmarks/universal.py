"""Evaluates universal policies, one run per red agent, on 1,000 fresh episodes of each of the 120 workflows.

    workflow-rl train --preset universal --red-agent bline --run-dir runs/universal-bline
    workflow-rl train --preset universal --red-agent meander --run-dir runs/universal-meander
    python -m benchmarks.universal runs/universal-bline runs/universal-meander

Writes benchmarks/results/universal.json: the figures, the table of all workflows, and how long the trainings took.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.results import write_result
from workflow_rl.collect import workflow_codes
from workflow_rl.config import TrainConfig
from workflow_rl.errors import UserError
from workflow_rl.policy_evaluation import evaluate_network
from workflow_rl.policy_file import load_policy
from workflow_rl.ppo import ParallelOrderConditionedPPO
from workflow_rl.run_store import read_result
from workflow_rl.workflow import all_workflows

EPISODES = 1000


def main(runs: list[Path]) -> None:
    """Evaluates the policies of the runs and stores the result."""
    figures = {}
    for path in runs:
        result = read_result(path)
        if result is None or result["workflow"] != "universal":
            raise UserError(f"{path} is not a finished universal training.")
        ppo = ParallelOrderConditionedPPO(TrainConfig(), workflow_codes(all_workflows()), load_policy(path).net)
        red, edition = result["red_agent"], result["edition"]
        found = evaluate_network(ppo, all_workflows(), red, edition, EPISODES, 100, 1, (31,))
        cells = found.by_workflow.values()
        figures[red] = {
            "followed": sum(cell.compliance >= 0.95 for cell in cells),
            "worst_compliance": found.worst_compliance,
            "mean_return": found.mean_return,
            "standard_error": found.standard_error,
            "worst_return": min(cell.mean_return for cell in cells),
            "best_return": max(cell.mean_return for cell in cells),
            "counted_fixes": found.counted_fixes,
            "updates": result["updates"],
            "seconds": result["seconds"],
            "by_workflow": {str(workflow): asdict(cell) for workflow, cell in found.by_workflow.items()},
        }
    command = "workflow-rl train --preset universal --red-agent RED, then python -m benchmarks.universal RUN ..."
    print(write_result("universal", command, figures))


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
