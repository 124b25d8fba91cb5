"""Trains a general policy, without workflow, against each red agent with the defaults of ``workflow-rl train``.

    python -m benchmarks.general

Writes benchmarks/results/general.json.
"""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.results import write_result
from workflow_rl.config import make_config
from workflow_rl.trainer import train_workflow

if __name__ == "__main__":
    figures = {red: asdict(train_workflow(make_config(red_agent=red))) for red in ("bline", "meander")}
    print(write_result("general", "python -m benchmarks.general", figures))
