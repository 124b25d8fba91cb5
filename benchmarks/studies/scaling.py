"""Study `scaling`: where the cost goes as the work grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.studies.baselines import ENTERPRISE_FIRST, Ask, seeds
from benchmarks.studies.cells import Cell
from benchmarks.studies.rollout import first_followed
from benchmarks.studies.statistics import summary

RED = "bline"
SIZES = (1, 4, 16, 64, 200, 1024, 4096)
JOBS = (1, 2, 4)
FOLLOWED, MOST_SECONDS = 0.95, 20.0


def scaling(ask: Ask, quick: bool) -> dict[str, Any]:
    """Training with more and more environments, and a search with more and more processes."""
    sizes = (1, 16) if quick else SIZES
    return {
        "red_agent": RED,
        "workflow": ENTERPRISE_FIRST,
        "most_seconds": 0.3 if quick else MOST_SECONDS,
        "environments": {str(n): _size(ask, n, quick) for n in sizes},
        "search": _search(ask, quick),
    }


def _size(ask: Ask, n_envs: int, quick: bool) -> dict[str, Any]:
    """One seed in a new process for time and memory; three seeds until the order is followed."""
    values = {"workflow": ENTERPRISE_FIRST, "red_agent": RED, "n_envs": n_envs, "max_episodes": 10**6}
    common = {"preset": "parallel-200", "games": 20 if quick else 200, "first_look": 1000 if quick else 20_000}
    seconds = 0.2 if quick else 5.0
    fixed = common | {"values": values | {"seed": 0}, "transitions": 1, "seconds": seconds, "games": 0}
    (alone,) = ask([Cell("watch_training", fixed, alone=not quick)])
    most = 0.3 if quick else MOST_SECONDS
    until = {"transitions": 10**12, "seconds": 0.0, "steady": FOLLOWED, "most_seconds": most}
    curves = ask([Cell("watch_training", common | until | {"values": values | {"seed": s}}) for s in seeds(quick)[:3]])
    reached = [look for look in (first_followed(curve) for curve in curves) if look]
    return {
        "transitions_per_s": alone["transitions"] / alone["seconds"],
        "updates": alone["updates"],
        "share_collecting": alone["seconds_collect"] / alone["seconds"],
        "peak_memory_mb": alone["peak_memory_mb"],
        "distinct_inputs_per_transition": alone["distinct_inputs"] / (n_envs * 100),
        "followed": {
            "seeds": len(reached),
            "of": len(curves),
            "seconds": summary([look["seconds"] for look in reached]) if reached else None,
            "transitions": summary([look["transitions"] for look in reached]) if reached else None,
        },
    }


def _search(ask: Ask, quick: bool) -> dict[str, Any]:
    """The same search with several numbers of processes; medians of two."""
    evaluations = 2 if quick else 10
    options = ["--n-workflows", str(evaluations), "--red-agent", RED, "--no-finish"]
    options += (
        ["--max-episodes", "6", "--n-envs", "20", "--n-eval-episodes", "20", "--warm-updates", "1"] if quick else []
    )
    found: dict[str, Any] = {}
    jobs = JOBS[:1] if quick else JOBS
    for n in jobs:
        cells = [{"options": options, "jobs": n, "repeat": repeat} for repeat in range(1 if quick else 2)]
        rows = ask([Cell("search", arguments, alone=not quick) for arguments in cells])
        found[str(n)] = {"trainings": rows[0]["trainings"], "evaluations": rows[0]["evaluations"]}
        for name in ("wall_seconds", "training_seconds"):
            found[str(n)][name] = float(np.median([row[name] for row in rows]))
            found[str(n)][f"{name}_of_each"] = [row[name] for row in rows]
    return found
