"""Searches among thousands of orders: GP-UCB against random search with the same number of real trainings.

``python -m benchmarks playbooks NETWORK RED TAKEOVER`` runs one cell, alone on the machine. Each strategy searches with
several seeds; the order that each search would choose is trained again with fresh seeds, and the means are compared.
``python -m benchmarks playbooks five RED TAKEOVER`` trains the best order of CAGE-2's five unit types in the same way.
"""

from __future__ import annotations

import json
import shutil
import statistics
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from pathlib import Path
from typing import Any

from benchmarks.command import main
from benchmarks.incidents import INCIDENTS
from benchmarks.results import RESULTS, source_digest
from benchmarks.search import run
from workflow_rl.runs import write_atomically
from workflow_rl.studies.workflow_table import read_table

STRATEGIES, SEEDS, EVALUATIONS = ("gp-ucb", "random"), 3, 60
FRESH_SEEDS = tuple(range(100, 105))
KEPT = ("workflow", "mean_return", "standard_error", "observed_return", "follows", "compliance", "kept", "visits")
WORK = Path("runs") / f"playbooks-{source_digest()}"  # finished searches and trainings, so that a killed study goes on


def once(place: Path, *arguments: str) -> dict[str, Any]:
    """The result of a command in its own run directory; a finished one is read, an unfinished one begins again."""
    done = place.with_suffix(".json")
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        write_atomically(done, json.dumps(run(*arguments, "--run-dir", str(place))).encode())
    found: dict[str, Any] = json.loads(done.read_text())
    return found


def searched(cell: Path, options: list[str], strategy: str, seed: int) -> dict[str, Any]:
    """One search without finalists: the order that it would choose, and its ranking."""
    length = ["--n-workflows", str(EVALUATIONS), "--replicates", "1", "--no-finish"]
    own = ["--strategy", strategy, "--seed", str(seed)]
    found = once(cell / f"{strategy}-{seed}", "search", *options, *length, *own)
    return {
        "strategy": strategy,
        "seed": seed,
        "chosen": found["best"] or found["ranking"][0]["workflow"],
        "followed": sum(row["follows"] for row in found["ranking"]),
        "evaluated": len(found["ranking"]),
        "seconds": found["wall_seconds"],
        "training_noise": found["training_noise"],
        "pair_weights": [pair for pair in found["pair_weights"] if pair["matters"]],
        "ranking": [{name: row[name] for name in KEPT if name in row} for row in found["ranking"]],
    }


def again(cell: Path, options: list[str], order: str) -> dict[str, Any]:
    """An order trained to the end with fresh seeds."""

    def trained(seed: int) -> dict[str, Any]:
        place = cell / f"{order.replace(',', '-')}-{seed}"
        return once(place, "train", *options, "--workflow", order, "--seed", str(seed))

    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(trained, FRESH_SEEDS))
    returns = [row["mean_return"] for row in rows]
    return {
        "order": order,
        "mean_return": statistics.fmean(returns),
        "standard_error": statistics.stdev(returns) / sqrt(len(returns)),
        "kept": min(row["kept"] for row in rows),
        "compliance": min(row["compliance"] for row in rows),
        "returns": returns,
    }


def measure(network: str, red: str, takeover: str = "0") -> dict[str, Any]:
    """One cell: all searches, and the chosen orders trained again."""
    cell = WORK / f"{network}-{red}-{takeover}"
    cell.mkdir(parents=True, exist_ok=True)
    options = ["--red-agent", red, "--takeover", takeover]
    if network == "five":
        return {"five": again(cell, options, best_of_five(red, takeover))}
    options = ["--network", network, *options]
    searches = [searched(cell, options, strategy, seed) for seed in range(SEEDS) for strategy in STRATEGIES]
    chosen_orders = dict.fromkeys(found["chosen"] for found in searches)
    orders = {order: again(cell, options, order) for order in chosen_orders}
    figures: dict[str, Any] = {"evaluations": EVALUATIONS, "searches": searches, "orders": list(orders.values())}
    for strategy in STRATEGIES:
        chosen = [orders[found["chosen"]]["mean_return"] for found in searches if found["strategy"] == strategy]
        figures[strategy.replace("-", "_")] = {
            "mean_return": statistics.fmean(chosen),
            "standard_error": statistics.stdev(chosen) / sqrt(len(chosen)),
            "returns": chosen,
            "best": max(chosen),
        }
    ours, theirs = figures["gp_ucb"], figures["random"]
    figures["difference"] = ours["mean_return"] - theirs["mean_return"]
    figures["standard_error"] = sqrt(ours["standard_error"] ** 2 + theirs["standard_error"] ** 2)
    return figures


def best_of_five(red: str, takeover: str) -> str:
    """The best order of CAGE-2's five unit types by the stored table of all orders."""
    late = f"_{INCIDENTS[red]}" if takeover != "0" else ""
    table = read_table(RESULTS / f"workflow_table_{red}{late}.json")
    by_task = table.by_task()
    best = max(by_task, key=lambda task: by_task[task])
    rest = [name for name in ("enterprise", "op_server", "user", "op_host", "defender") if name not in best]
    return ",".join([*best, *rest])


if __name__ == "__main__":
    main("playbooks")
