"""Study `scaling`: where the cost goes as the work grows."""

from __future__ import annotations

from typing import Any

from workflow_rl.studies.baselines import ENTERPRISE_FIRST, Ask, seeds
from workflow_rl.studies.cells import Cell
from workflow_rl.studies.statistics import summary

RED = "bline"
SIZES = (1, 4, 16, 64, 200, 1024, 4096)
JOBS = (1, 2, 4)
FOLLOWED, MOST_SECONDS = 0.95, 40.0


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
    """One seed alone for time and memory, in a process of its own; three seeds until the order is followed."""
    values = {"workflow": ENTERPRISE_FIRST, "red_agent": RED, "n_envs": n_envs, "max_episodes": 10**6}
    values |= {"min_episodes": 5, "alignment_lambda": 100.0}
    common = {"preset": "parallel-200", "games": 20 if quick else 200, "first_look": 1000 if quick else 20_000}
    seconds = 0.2 if quick else 5.0
    fixed = common | {"values": values | {"seed": 0}, "transitions": 1, "seconds": seconds}
    (alone,) = ask([Cell("watch_training", fixed, alone=not quick)])
    most = 0.3 if quick else MOST_SECONDS
    until = {"transitions": 10**12, "seconds": 0.0, "enough": FOLLOWED, "most_seconds": most}
    curves = ask([Cell("watch_training", common | until | {"values": values | {"seed": s}}) for s in seeds(quick)[:3]])
    reached = [curve["looks"][-1] for curve in curves if curve["looks"][-1]["compliance"] >= FOLLOWED]
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
    """The same search with several numbers of processes; a warm-up is made first and thrown away."""
    evaluations = 2 if quick else 10
    options = ["--n-workflows", str(evaluations), "--red-agent", RED, "--replicates", "2" if quick else "4"]
    options += ["--min-episodes", "5" if quick else "50", "--max-episodes", "6" if quick else "50"]
    options += ["--n-envs", "20", "--n-eval-episodes", "20"] if quick else []
    jobs = JOBS[:2] if quick else JOBS
    rows = ask([Cell("search", {"options": options, "jobs": n}, alone=not quick) for n in jobs])
    return {
        str(n): {name: row[name] for name in ("wall_seconds", "training_seconds", "trainings", "evaluations")}
        for n, row in zip(jobs, rows, strict=True)
    }
