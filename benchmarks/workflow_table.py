"""The true table: every workflow against a red agent, trained independently from each of the five universal policies.

    python -m benchmarks.workflow_table bline
    python -m benchmarks.workflow_table meander
    python -m benchmarks.workflow_table bline 50        # the same, every training continued to 50 updates

Two processes; can be interrupted and called again: finished trainings are kept in runs/, by commit. Writes
benchmarks/results/workflow_table_RED.json (or ..._RED_50.json).
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import write_result
from workflow_rl.compliance import type_masks
from workflow_rl.config import N_UNIVERSAL, make_search_config
from workflow_rl.env import CageVectorEnv
from workflow_rl.run_store import commit
from workflow_rl.scenario_file import load_scenario
from workflow_rl.search_evaluation import training_config
from workflow_rl.trainer import train_workflow
from workflow_rl.workflow import all_workflows
from workflow_rl.workflow_table import table_from_json

DEFAULT_UPDATES = 5
COLUMNS = ("mean_return", "standard_error", "compliance", "counted_fixes", "updates")


def train(red: str, updates: int, replicate: int, workflow: str) -> dict[str, Any]:
    """One training, as the first visit of a search with seed 0 makes it."""
    config = make_search_config(red_agent=red, min_episodes=updates, max_episodes=50)
    result = train_workflow(training_config(config, workflow, 0, replicate))
    return {"workflow": workflow, "replicate": replicate} | {name: getattr(result, name) for name in COLUMNS}


def taken_types(red: str) -> list[str]:
    """Unit types of which a host was ever compromised in 4,000 games, half of them without defence."""
    scenario = load_scenario()
    taken: set[int] = set()
    for idle in (True, False):
        envs = CageVectorEnv(2000, red_agent=red)
        envs.reset(seed=7)
        rng = np.random.default_rng(7)
        for _ in range(100):
            actions = np.zeros(2000, int) if idle else rng.integers(scenario.n_actions, size=2000)
            taken |= set(np.flatnonzero(envs.step(actions)[4]["compromised_before"].any(axis=0)).tolist())
    masks = type_masks(scenario)
    return [scenario.unit_types[i] for i, mask in enumerate(masks) if any(int(mask) >> host & 1 for host in taken)]


def main(red: str, updates: int) -> None:
    """Makes what is missing, then the result."""
    name = f"workflow_table_{red}" + (f"_{updates}" if updates != DEFAULT_UPDATES else "")
    journal = Path("runs") / f"{name}-{commit()}.jsonl"
    journal.parent.mkdir(exist_ok=True)
    lines = journal.read_text("utf-8").splitlines(keepends=True) if journal.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be cut off
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
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
    table = {"red_agent": red, "taken": taken_types(red), "workflows": orders} | table
    command = f"python -m benchmarks.workflow_table {red}" + (f" {updates}" if updates != DEFAULT_UPDATES else "")
    print(write_result(name, command, table_from_json(table).summary() | {"table": table}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else DEFAULT_UPDATES)
