"""Searches among thousands of orders: GP-UCB against random search with the same number of real trainings.

``python -m benchmarks playbooks NETWORK RED TAKEOVER`` runs one cell, alone on the machine. Each strategy searches with
several seeds; the order that each search would choose is trained again with fresh seeds, and the means are compared.
``python -m benchmarks playbooks five RED TAKEOVER`` trains the best order of CAGE-2's five unit types in the same way.
"""

from __future__ import annotations

import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from pathlib import Path
from typing import Any

from benchmarks.command import main
from benchmarks.incidents import INCIDENTS
from benchmarks.results import RESULTS
from benchmarks.search import run
from workflow_rl.studies.workflow_table import read_table

STRATEGIES, SEEDS, EVALUATIONS = ("gp-ucb", "random"), 3, 60
FRESH_SEEDS = tuple(range(100, 105))
NETWORKS = ("cage2-fine", "plant")
KEPT = ("workflow", "mean_return", "standard_error", "follows", "compliance", "kept", "visits")


def searched(options: list[str], strategy: str, seed: int) -> dict[str, Any]:
    """One search without finalists: the order that it would choose, and its ranking."""
    with tempfile.TemporaryDirectory() as folder:
        own = ["--strategy", strategy, "--seed", str(seed), "--run-dir", str(Path(folder) / "run")]
        length = ["--n-workflows", str(EVALUATIONS), "--replicates", "1", "--no-finish"]
        found = run("search", *options, *length, *own)
    return {
        "strategy": strategy,
        "seed": seed,
        "chosen": found["best"] or found["ranking"][0]["workflow"],
        "followed": sum(row["follows"] for row in found["ranking"]),
        "evaluated": len(found["ranking"]),
        "seconds": found["wall_seconds"],
        "pair_weights": [pair for pair in found["pair_weights"] if pair["matters"]],
        "ranking": [{name: row[name] for name in KEPT if name in row} for row in found["ranking"]],
    }


def trained(options: list[str], order: str, seed: int) -> dict[str, float]:
    """One training of an order to the end: return, compliance and kept on fresh games."""
    with tempfile.TemporaryDirectory() as folder:
        place = ["--seed", str(seed), "--run-dir", str(Path(folder) / "run")]
        found = run("train", *options, "--workflow", order, *place)
    return {name: float(found[name]) for name in ("mean_return", "compliance", "kept")}


def again(options: list[str], order: str) -> dict[str, Any]:
    """An order trained to the end with fresh seeds."""
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda seed: trained(options, order, seed), FRESH_SEEDS))
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
    if network == "five":
        return {"five": again(["--red-agent", red, "--takeover", takeover], best_of_five(red, takeover))}
    options = ["--network", network, "--red-agent", red, "--takeover", takeover]
    searches = [searched(options, strategy, seed) for strategy in STRATEGIES for seed in range(SEEDS)]
    orders = {order: again(options, order) for order in dict.fromkeys(found["chosen"] for found in searches)}
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
