"""The true table: every workflow against a red agent, trained independently from each of the five universal policies.

    python -m benchmarks.workflow_table bline
    python -m benchmarks.workflow_table meander
    python -m benchmarks.workflow_table bline 50        # the same, every training continued to 50 updates

Two processes; can be interrupted and called again, finished trainings are kept in runs/table-*.jsonl. Writes
benchmarks/results/workflow_table_RED.json (or ..._RED_50.json).
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.results import write_result
from workflow_rl.config import N_UNIVERSAL, make_search_config
from workflow_rl.trainer import train_workflow
from workflow_rl.workflow import all_workflows
from workflow_rl.workflow_search import training_config
from workflow_rl.workflow_table import table_from_json

DEFAULT_UPDATES = 5
COLUMNS = ("mean_return", "standard_error", "compliance", "counted_fixes", "updates")


def train(red: str, updates: int, replicate: int, workflow: str) -> dict[str, Any]:
    """One training, as the first visit of a search with seed 0 makes it."""
    config = make_search_config(red_agent=red, min_episodes=updates, max_episodes=50)
    result = train_workflow(training_config(config, workflow, 0, replicate))
    return {"workflow": workflow, "replicate": replicate} | {name: getattr(result, name) for name in COLUMNS}


def main(red: str, updates: int) -> None:
    """Makes what is missing, then the result."""
    name = f"workflow_table_{red}" + (f"_{updates}" if updates != DEFAULT_UPDATES else "")
    journal = Path("runs") / f"{name.replace('_', '-')}.jsonl"
    journal.parent.mkdir(exist_ok=True)
    rows = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    have = {(row["workflow"], row["replicate"]) for row in rows}
    tasks = [(r, str(w)) for r in range(N_UNIVERSAL) for w in all_workflows() if (str(w), r) not in have]
    with ProcessPoolExecutor(2) as pool, open(journal, "a") as file:
        for row in pool.map(train, *zip(*((red, updates, *task) for task in tasks), strict=True)) if tasks else ():
            file.write(json.dumps(row) + "\n")
            file.flush()
            rows.append(row)
            print(f"{len(rows)} of {len(all_workflows()) * N_UNIVERSAL}", file=sys.stderr)
    rows.sort(key=lambda row: (row["workflow"], row["replicate"]))
    orders = [str(w) for w in all_workflows()]
    table: dict[str, Any] = {
        column: [[row[column] for row in rows if row["workflow"] == order] for order in orders] for column in COLUMNS
    }
    table = {"red_agent": red, "workflows": orders} | table
    command = f"python -m benchmarks.workflow_table {red}" + (f" {updates}" if updates != DEFAULT_UPDATES else "")
    print(write_result(name, command, table_from_json(table).summary() | {"table": table}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else DEFAULT_UPDATES)
