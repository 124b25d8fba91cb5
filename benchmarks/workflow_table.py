"""The true table: every order against a red agent, fully trained, each training with its own seed.

    python -m benchmarks workflow_table bline
    python -m benchmarks workflow_table meander
    python -m benchmarks workflow_table bline 30
    python -m benchmarks workflow_table meander 40

With a number: incidents, in which blue takes over after that many steps. Each order of the types that red takes is
trained, not each of the 120 workflows: where the other types stand changes no repair. Two processes. An interrupted
measurement resumes: finished trainings are kept in runs/, by source.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import main
from benchmarks.results import source_digest
from benchmarks.table_summary import summary
from workflow_rl.config import is_incident
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.game import Games
from workflow_rl.presets import make_config
from workflow_rl.search.finalists import taken_types
from workflow_rl.studies.workflow_table import table_from_json
from workflow_rl.training.trainer import train_workflow

REPLICATES = {"bline": 10, "meander": 4, "bline_30": 5, "meander_40": 3}  # trainings of each order
EPISODES = {"bline": 700, "meander": 1000, "meander_40": 600}  # of each environment, where not as the preset has it
COLUMNS = ("mean_return", "standard_error", "compliance", "kept", "repairs", "idle_fixes", "followed", "updates")


def train(red: str, takeover: str, order: str, seed: int) -> dict[str, Any]:
    """One training, as ``workflow-rl train --workflow`` makes it; no two of a table share a seed."""
    kind = _kind(red, takeover)
    length = {"max_episodes": EPISODES[kind]} if kind in EPISODES else {}
    others = [kind for kind in load_network().unit_types if kind not in order.split(",")]
    workflow = ",".join([order, *others])
    config = make_config("workflow", red_agent=red, takeover=takeover, workflow=workflow, seed=seed, **length)
    result = train_workflow(config)
    return {"workflow": order, "seed": seed} | {name: getattr(result, name) for name in COLUMNS}


def _kind(red: str, takeover: str) -> str:
    return f"{red}_{takeover}" if is_incident(takeover) else red


def measure(red: str, takeover: str = "0") -> dict[str, Any]:
    """Trains what is missing, then summarises the table."""
    kind, taken = _kind(red, takeover), list(taken_types(Games(load_network(), red, "current", 100, takeover)))
    orders, replicates = [",".join(order) for order in permutations(taken)], REPLICATES[kind]
    journal = Path("runs") / f"workflow_table_{kind}-{source_digest()}.jsonl"
    journal.parent.mkdir(exist_ok=True)
    lines = journal.read_text("utf-8").splitlines(keepends=True) if journal.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be cut off
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    have = {row["seed"] for row in rows}
    tasks = [(orders[n], replicates * n + r) for r in range(replicates) for n in range(len(orders))]
    missing = [(red, takeover, order, seed) for order, seed in tasks if seed not in have]
    with ProcessPoolExecutor(2) as pool, open(journal, "a") as file:
        for row in pool.map(train, *zip(*missing, strict=True)) if missing else ():
            file.write(json.dumps(row) + "\n")
            file.flush()
            rows.append(row)
            print(f"{len(rows)} of {len(tasks)}", file=sys.stderr)
    rows.sort(key=lambda row: row["seed"])
    table: dict[str, Any] = {
        column: [[row[column] for row in rows if row["workflow"] == order] for order in orders] for column in COLUMNS
    }
    table = {"red_agent": red, "takeover": takeover, "taken": taken, "workflows": orders} | table
    obeyed = [min(row["compliance"], row["kept"]) for row in rows]
    return summary(table_from_json(table)) | {
        "trainings": len(rows),
        "followed": sum(row["followed"] for row in rows),
        "worst_compliance": min(row["compliance"] for row in rows),
        "worst_kept": min(row["kept"] for row in rows),
        "share_above_99": float(np.mean([value >= 0.99 for value in obeyed])),
        "table": table,
    }


if __name__ == "__main__":
    main("workflow_table")
