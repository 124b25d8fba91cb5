"""The default search against both red agents, its defender compared with longer trainings, and its regret.

python -m benchmarks search
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.command import main
from workflow_rl.presets import make_config
from workflow_rl.training.trainer import train_workflow

KEPT = (
    "best", "finalists", "pair_weights", "training_noise", "level_error", "transitions", "defender", "evaluations",
    "replicates",
)  # fmt: skip
LONGER_SEEDS = 5


def run(*arguments: str) -> dict[str, Any]:
    """Runs ``workflow-rl ... --json``; with the seconds from start to end of the process."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "workflow_rl.cli", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"wall_seconds": time.perf_counter() - began}


def search(*options: str) -> dict[str, Any]:
    """A search in a temporary directory, and what to keep of its result."""
    with tempfile.TemporaryDirectory() as folder:
        result = run("search", *options, "--run-dir", str(Path(folder) / "run"))
    followed = [row for row in result["ranking"] if row["follows"]]
    return {item: result[item] for item in KEPT} | {
        "wall_seconds": result["wall_seconds"],
        "search_seconds": result["seconds"],
        "workflows": len(result["ranking"]),
        "followed": len(followed),
        "mean_return": sum(row["mean_return"] for row in followed) / len(followed) if followed else None,
        "equal_to_best": len(result["equal_to_best"]),
        "ranking": result["ranking"],
    }


def trained(red: str, workflow: str, episodes: int, seed: int) -> float:
    """Mean return of one training."""
    values: dict[str, Any] = {"red_agent": red, "workflow": workflow, "seed": seed}
    return train_workflow(make_config(**values, max_episodes=episodes, patience=episodes)).mean_return


def longer(red: str, workflow: str) -> dict[str, Any]:
    """What trainings of the best workflow reach that are twice as long as the default of ``train``."""
    episodes = 2 * make_config("workflow", red_agent=red).max_episodes
    with ProcessPoolExecutor(2) as pool:
        seeds = range(LONGER_SEEDS)
        returns = list(pool.map(trained, *zip(*((red, workflow, episodes, seed) for seed in seeds), strict=True)))
    return {"mean_return": sum(returns) / len(returns), "returns": returns, "episodes": episodes}


def measure() -> dict[str, Any]:
    """Measures everything, one thing after the other."""
    figures: dict[str, Any] = {}
    search("--n-workflows", "1", "--no-finish")  # compiles what is not compiled yet
    for red in ("bline", "meander"):
        figures[red] = search("--red-agent", red)
        figures[red]["longer"] = longer(red, figures[red]["best"] or figures[red]["ranking"][0]["workflow"])
    figures["bench"] = run("bench", "search")
    return figures


if __name__ == "__main__":
    main("search")
