"""Incidents: ``python -m benchmarks incidents PART``, alone on the machine.

* search: the default search in incidents against both red agents, compared with the tables of all orders.
* regret: GP-UCB, random search and round-robin on those tables, 100 simulated searches each.
* strategies: GP-UCB, random search and round-robin with real short trainings, judged by those tables.
* general: a policy without an order, trained with takeovers after 0 to 60 steps, compared with the champion and a
  policy that was trained for the challenge.
* cyborg: the best and the worst order against B_line on genuine CybORG and on the engine.
* lockstep: live games of genuine CybORG with takeovers, every step compared with the engine.

Needs the tables: ``python -m benchmarks workflow_table bline 30`` and ``meander 40``.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import main
from benchmarks.results import RESULTS
from benchmarks.search import run
from benchmarks.search import search as search_once
from benchmarks.table_summary import cost_of_reversing
from workflow_rl.studies.workflow_table import WorkflowTable, read_table

INCIDENTS = {"bline": "30", "meander": "40"}
STRATEGIES, SEEDS, EVALUATIONS = ("gp-ucb", "random", "round-robin"), 2, 10
TAKEOVERS = tuple(range(0, 61, 10))
EPISODES, CYBORG_EPISODES = 20_000, 200
EXTREMES = {  # the best and the worst order of the types that B_line takes
    "best": "op_server,enterprise,user,defender,op_host",
    "worst": "user,enterprise,op_server,defender,op_host",
}


def table_of(red: str) -> WorkflowTable:
    """The stored table of all orders against a red agent."""
    return read_table(RESULTS / f"workflow_table_{red}_{INCIDENTS[red]}.json")


def search() -> dict[str, Any]:
    """The default search, and how its answer compares with the table."""
    search_once("--takeover", "30", "--n-workflows", "1", "--no-finish")  # compiles what is not yet
    figures: dict[str, Any] = {}
    for red, takeover in INCIDENTS.items():
        table = table_of(red)
        found = search_once("--red-agent", red, "--takeover", takeover)
        by_task = table.by_task()
        task = table.task_of(tuple(found["best"].split(","))) if found["best"] else ()
        effects = []
        for pair in found["pair_weights"]:
            if pair["matters"]:
                names = pair["first"], pair["second"]
                cost = cost_of_reversing(table, *names) if {*names} <= {*table.taken} else 0.0
                effects.append({"pair": " before ".join(names), "found": pair["effect"], "table": cost,
                                "standard_error": pair["standard_error"]})  # fmt: skip
        regret = max(by_task.values()) - by_task[task] if task else math.nan
        figures[red] = found | {"takeover": takeover, "task": ",".join(task), "regret": regret, "effects": effects}
    return figures


def regret() -> dict[str, Any]:
    """Regret of simulated searches on both tables."""
    paths = [f"{RESULTS}/workflow_table_{red}_{takeover}.json" for red, takeover in INCIDENTS.items()]
    tables = [part for path in paths for part in ("--table", path)]
    return run("bench", "search", *tables, "--seeds", "100", "--large-seeds", "0")


def strategies() -> dict[str, Any]:
    """What each strategy would choose after some real evaluations, judged by the table; against B_line."""
    table = table_of("bline")
    by_task = table.by_task()
    figures: dict[str, Any] = {"evaluations": EVALUATIONS, "seeds": SEEDS}
    for strategy in STRATEGIES:
        regrets = []
        for seed in range(SEEDS):
            options = ("--takeover", INCIDENTS["bline"], "--n-workflows", str(EVALUATIONS), "--no-finish")
            found = search_once(*options, "--strategy", strategy, "--seed", str(seed))
            choice = found["best"] or found["ranking"][0]["workflow"]
            regrets.append(max(by_task.values()) - by_task[table.task_of(tuple(choice.split(",")))])
        figures[strategy.replace("-", "_")] = {"regrets": regrets, "mean_regret": float(np.mean(regrets))}
    return figures


def general() -> dict[str, Any]:
    """A policy for all takeovers (half of its environments have none), the champion, and a policy of the challenge."""
    figures: dict[str, Any] = {"takeovers": list(TAKEOVERS), "episodes": EPISODES}
    for red in INCIDENTS:
        policies = {"champion": "champion"}
        with tempfile.TemporaryDirectory() as folder:
            for name, takeover in (("incidents", "0,0-60"), ("challenge", "0")):
                policies[name] = str(Path(folder) / name)
                trained = run("train", "--red-agent", red, "--takeover", takeover, "--run-dir", policies[name])
                figures[f"{red}_{name}_seconds"] = trained["seconds"]
            figures[red] = {name: [at(path, red, str(k)) for k in TAKEOVERS] for name, path in policies.items()}
    return figures


def at(policy: str, red: str, takeover: str) -> float:
    """Mean return of a policy over 100 steps after a takeover."""
    found = run("evaluate", policy, "--red-agent", red, "--takeover", takeover, "--episodes", str(EPISODES))
    return float(found["cells"][red]["100"]["mean"])


def cyborg() -> dict[str, Any]:
    """Two orders on both simulators."""
    figures: dict[str, Any] = {"cyborg_episodes": CYBORG_EPISODES, "native_episodes": EPISODES}
    for name, order in EXTREMES.items():
        cells: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "run")
            run("train", "--workflow", order, "--takeover", "30", "--run-dir", path)
            for backend, episodes in (("cyborg", CYBORG_EPISODES), ("native", EPISODES)):
                options = ("--backend", backend, "--episodes", str(episodes), "--seed", "7")
                found = run("evaluate", path, "--red-agent", "bline", *options)
                cells[backend] = found["cells"]["bline"]["100"] | {"kept": found["obedience"]["bline"]["kept"]}
        error = math.hypot(*(cell["standard_error"] for cell in cells.values()))
        apart = abs(cells["cyborg"]["mean"] - cells["native"]["mean"]) / error
        figures[name] = {"workflow": order} | cells | {"difference_in_standard_errors": apart}
    return figures


def lockstep() -> dict[str, Any]:
    """Games of all red agents, three blues and both greens, taken over after 0 to 60 steps."""
    return run("replay", "--live", "300", "--takeover", "0-60", "--seed", "7")


if __name__ == "__main__":
    main("incidents")
