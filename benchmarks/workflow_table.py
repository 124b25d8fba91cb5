"""The true table: every workflow against a red agent, trained to the end with seeds of its own.

    python -m benchmarks.workflow_table bline
    python -m benchmarks.workflow_table meander
    python -m benchmarks.workflow_table bline 30     incidents: blue takes over after 30 steps

Two processes; can be interrupted and called again: finished trainings are kept in runs/, by commit. Writes
benchmarks/results/workflow_table_RED.json, of incidents workflow_table_RED_STEPS.json.
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
from workflow_rl.config import make_config
from workflow_rl.env import CageVectorEnv
from workflow_rl.run_store import commit
from workflow_rl.scenario_file import load_scenario
from workflow_rl.takeover import is_incident
from workflow_rl.trainer import train_workflow
from workflow_rl.workflow import all_workflows
from workflow_rl.workflow_table import table_from_json

REPLICATES = 3
EPISODES = {"bline": 700, "meander": 1000}  # of each environment; against Meander half of the preset's
COLUMNS = ("mean_return", "standard_error", "compliance", "kept", "repairs", "idle_fixes", "followed", "updates")


def train(red: str, takeover: str, number: int, replicate: int) -> dict[str, Any]:
    """One training, as ``workflow-rl train --workflow`` makes it; no two of a table share a seed."""
    workflow = str(all_workflows()[number])
    length = {} if is_incident(takeover) else {"max_episodes": EPISODES[red]}
    seed = REPLICATES * number + replicate
    config = make_config("workflow", red_agent=red, takeover=takeover, workflow=workflow, seed=seed, **length)
    result = train_workflow(config)
    return {"workflow": workflow, "replicate": replicate} | {name: getattr(result, name) for name in COLUMNS}


def taken_types(red: str, takeover: str) -> list[str]:
    """Unit types of which a host was ever compromised in 4,000 games, half of them without defence."""
    scenario = load_scenario()
    taken: set[int] = set()
    for idle in (True, False):
        envs = CageVectorEnv(2000, red_agent=red, takeover=takeover)
        envs.reset(seed=7)
        rng = np.random.default_rng(7)
        for _ in range(100):
            actions = np.zeros(2000, int) if idle else rng.integers(scenario.n_actions, size=2000)
            taken |= set(np.flatnonzero(envs.step(actions)[4]["compromised_before"].any(axis=0)).tolist())
    masks = type_masks(scenario)
    return [scenario.unit_types[i] for i, mask in enumerate(masks) if any(int(mask) >> host & 1 for host in taken)]


def main(red: str, takeover: str = "0") -> None:
    """Makes what is missing, then the result."""
    kind = f"{red}_{takeover}" if is_incident(takeover) else red
    name, orders = f"workflow_table_{kind}", [str(w) for w in all_workflows()]
    journal = Path("runs") / f"{name}-{commit()}.jsonl"
    journal.parent.mkdir(exist_ok=True)
    lines = journal.read_text("utf-8").splitlines(keepends=True) if journal.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be cut off
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    have = {(row["workflow"], row["replicate"]) for row in rows}
    tasks = [(n, r) for r in range(REPLICATES) for n in range(len(orders)) if (orders[n], r) not in have]
    with ProcessPoolExecutor(2) as pool, open(journal, "a") as file:
        for row in pool.map(train, *zip(*((red, takeover, *task) for task in tasks), strict=True)) if tasks else ():
            file.write(json.dumps(row) + "\n")
            file.flush()
            rows.append(row)
            print(f"{len(rows)} of {len(orders) * REPLICATES}", file=sys.stderr)
    rows.sort(key=lambda row: (row["workflow"], row["replicate"]))
    table: dict[str, Any] = {
        column: [[row[column] for row in rows if row["workflow"] == order] for order in orders] for column in COLUMNS
    }
    table = {"red_agent": red, "takeover": takeover, "taken": taken_types(red, takeover), "workflows": orders} | table
    obeyed = [min(row["compliance"], row["kept"]) for row in rows]
    figures = table_from_json(table).summary() | {
        "trainings": len(rows),
        "followed": sum(row["followed"] for row in rows),
        "worst_compliance": min(row["compliance"] for row in rows),
        "worst_kept": min(row["kept"] for row in rows),
        "share_above_99": float(np.mean([value >= 0.99 for value in obeyed])),
        "table": table,
    }
    asked = f"{red} {takeover}" if is_incident(takeover) else red
    print(write_result(name, f"python -m benchmarks.workflow_table {asked}", figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
