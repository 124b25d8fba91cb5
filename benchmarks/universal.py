"""Evaluates universal policies on 1,000 fresh episodes of each of the 120 workflows.

    workflow-rl train --preset universal --red-agent bline --run-dir runs/universal-bline
    workflow-rl train --preset universal --red-agent bline --seed 1 --run-dir runs/universal-bline-1
    workflow-rl train --preset universal --red-agent bline --alignment-lambda 50 --run-dir runs/universal-bline-lambda50
    python -m benchmarks.universal runs/universal-*

Writes benchmarks/results/universal.json, or renews the entries of these runs in it: bline, bline_1 for another seed,
bline_lambda50 for another strength of the alignment reward. The table of all workflows is kept for seed 0.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.results import RESULTS, write_result
from workflow_rl.collect import workflow_codes
from workflow_rl.config import TrainConfig
from workflow_rl.errors import UserError
from workflow_rl.policy_evaluation import Evaluation, evaluate_network
from workflow_rl.policy_file import load_policy
from workflow_rl.ppo import ParallelOrderConditionedPPO
from workflow_rl.run_store import read_config, read_result
from workflow_rl.workflow import all_workflows

EPISODES = 1000


def main(runs: list[Path]) -> None:
    """Evaluates the policies of the runs and stores the result."""
    path_of_result = RESULTS / "universal.json"
    figures = json.loads(path_of_result.read_text("utf-8"))["figures"] if path_of_result.exists() else {}
    for path in runs:
        result, config = read_result(path), read_config(path)
        if result is None or result["workflow"] != "universal":
            raise UserError(f"{path} is not a finished universal training.")
        ppo = ParallelOrderConditionedPPO(TrainConfig(), workflow_codes(all_workflows()), load_policy(path).net)
        red, edition = result["red_agent"], result["edition"]
        found = evaluate_network(ppo, all_workflows(), red, edition, EPISODES, 100, 1, (31,))
        cells = found.by_workflow.values()
        usual = config.alignment_lambda == TrainConfig.alignment_lambda
        name = (
            red + (f"_{config.seed}" if config.seed else "") + ("" if usual else f"_lambda{config.alignment_lambda:g}")
        )
        figures[name] = {
            "followed": sum(cell.compliance >= 0.95 for cell in cells),
            "worst_compliance": found.worst_compliance,
            "mean_return": found.mean_return,
            "standard_error": found.standard_error,
            "worst_return": min(cell.mean_return for cell in cells),
            "best_return": max(cell.mean_return for cell in cells),
            "counted_fixes": found.counted_fixes,
            "updates": result["updates"],
            "seconds": result["seconds"],
            "enterprise_before_user": _group(found, True),
            "user_before_enterprise": _group(found, False),
        }
        if name == red:
            figures[name]["by_workflow"] = {str(workflow): asdict(cell) for workflow, cell in found.by_workflow.items()}
    command = "workflow-rl train --preset universal --red-agent RED, then python -m benchmarks.universal RUN ..."
    print(write_result("universal", command, figures))


def _group(found: Evaluation, enterprise_first: bool) -> dict[str, float]:
    """Mean return and compliance of the 60 workflows with enterprise before user, or of the others."""
    cells = [
        cell
        for workflow, cell in found.by_workflow.items()
        if workflow is not None and (workflow.rank("enterprise") < workflow.rank("user")) == enterprise_first
    ]
    return {
        name: float(np.mean([getattr(cell, name) for cell in cells]))
        for name in ("mean_return", "compliance", "counted_fixes")
    }


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
