"""What priorities are worth to defenders of different strength, and what searches on larger networks name."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.experiments import EXPERIMENTS, stored_name
from benchmarks.page import answers, values
from benchmarks.page.files import FOES, LONGEST, Files

TAKEOVERS = {"bline": "30", "meander": "40"}
PRIORITIES = {  # the priorities whose cost is shown for each game
    "0": (("enterprise", "user"),),
    "30": (("op_server", "enterprise"), ("op_server", "user"), ("enterprise", "user")),
    "40": (("op_server", "user"), ("op_server", "enterprise"), ("enterprise", "user")),
}
ANY_ORDER = "obedient champion: a memory, one network for all orders"


def by_task(returns: Iterable[tuple[str, float]], taken: Iterable[str]) -> dict[str, float]:
    """Mean returns of orders that agree on the unit types that red takes: to this red agent they are one task."""
    kinds, found = set(taken), dict[str, list[float]]()
    for order, value in returns:
        found.setdefault(",".join(kind for kind in order.split(",") if kind in kinds), []).append(value)
    return {task: fmean(values) for task, values in found.items()}


def reversal(tasks: dict[str, float], first: str, second: str) -> float:
    """What giving up a priority costs: the best order that has it minus the best one that reverses it."""
    before, after = (
        max(value for task, value in tasks.items() if (task.index(first) < task.index(second)) == ahead)
        for ahead in (True, False)
    )
    return before - after


class Worth(NamedTuple):
    """What priorities are worth to one kind of defender in one game."""

    defender: str
    best_order: str
    best: float  # the mean return of the best order
    spread: float  # best minus worst order
    costs: dict[str, float]  # of reversing each priority


def worth(defender: str, tasks: dict[str, float], takeover: str) -> Worth:
    """The figures of one defender."""
    best = max(tasks, key=lambda task: tasks[task])
    costs = {f"{first} before {second}": reversal(tasks, first, second) for first, second in PRIORITIES[takeover]}
    return Worth(defender, best, tasks[best], tasks[best] - min(tasks.values()), costs)


def champion_tasks(files: Files, red: str, takeover: str, stored: str = "obedient_orders") -> dict[str, float]:
    """The obedient champion's mean return by task."""
    rows = files.figures(stored)["cells"][f"{red} {takeover}"]["rows"]
    taken = files.figures(f"workflow_table_{red}")["taken"]
    return by_task(((row["order"], row["mean"]) for row in rows), taken)


def plan_tasks(files: Files, takeover: str) -> dict[str, float]:
    """The mean return of the plans for what blue can know against B_line, by order."""
    found = files.figures("obedient_known")["takeovers"][takeover]
    return {order: cell["mean"] for order, cell in found.items() if order != "free"}


def memory_tasks(files: Files) -> dict[str, float]:
    """The two orders that were trained with the small memory."""
    found = files.figures("memory")
    returns = ((found["orders"][name], cell["small"]["mean_return"]) for name, cell in found["bline"].items())
    return by_task(returns, files.figures("workflow_table_bline")["taken"])


def standard_game(files: Files) -> list[Worth]:
    """B_line from the first step: from the weakest kind of defender to the one that sees everything."""
    exact = files.figures("study_limit")["bline"]["current"]["orders"]
    trained = {one.order: one.mean_return for one in values.trained_orders(files) if one.foe == FOES["bline"]}
    kinds = {
        "trained from scratch, without a memory": trained,
        "trained from scratch, with a small memory of the attack (two orders)": memory_tasks(files),
        ANY_ORDER: champion_tasks(files, "bline", "0"),
        "plans for what blue can know": plan_tasks(files, "0"),
        "sees everything (exact)": {order: cells[LONGEST]["exact"] for order, cells in exact.items()},
    }
    return [worth(name, tasks, "0") for name, tasks in kinds.items()]


def incident(files: Files, red: str) -> list[Worth]:
    """The same where blue takes over late; the last two kinds exist against B_line alone."""
    takeover = TAKEOVERS[red]
    rows = values.trained_incidents(files.figures(values.TABLES[red])["table"])
    kinds = {
        "trained from scratch, with a memory of what blue restored": {row.order: row.mean_return for row in rows},
        ANY_ORDER: champion_tasks(files, red, takeover),
    }
    if red == "bline":
        exact = files.figures("study_limit")["bline"]["current"]["incidents"][takeover]
        kinds["plans for what blue can know"] = plan_tasks(files, takeover)
        kinds["sees everything (exact)"] = values.exact_orders(exact)
    return [worth(name, tasks, takeover) for name, tasks in kinds.items()]


def champion_range(files: Files, red: str, takeover: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The obedient champion's orders that cost least and most beside the free champion in the same games."""
    rows = files.figures("obedient_orders")["cells"][f"{red} {takeover}"]["rows"]
    ordered = sorted(rows, key=lambda row: float(row["beside_free"]))
    return ordered[-1], ordered[0]


def leaderboard(files: Files, red: str, takeover: str) -> Worth:
    """What priorities are worth to the obedient champion of the leaderboard edition."""
    return worth(ANY_ORDER, champion_tasks(files, red, takeover, "obedient_leaderboard"), takeover)


def dearest(files: Files, takeovers: dict[str, str]) -> float:
    """What the obedient champion's worst order costs beside the free champion, against either attacker."""
    return max(-float(champion_range(files, red, takeover)[1]["beside_free"]) for red, takeover in takeovers.items())


def most_worth(reversed_pairs: list[dict[str, Any]], kind: str) -> float:
    """The most that reversing a priority with this unit type costs."""
    return max((pair["cost"] for pair in reversed_pairs if kind in (pair["first"], pair["second"])), default=0.0)


class Named(NamedTuple):
    """A priority that searches name after their short trainings."""

    pair: str
    searches: int
    low: float
    high: float


class Cell(NamedTuple):
    """Searches for an order of eight unit types on one network against one attacker."""

    network: str
    foe: str
    takeover: str
    searches: int
    named: list[Named]  # by more than half of the searches
    lowest: float  # of the chosen orders, after longer trainings
    highest: float
    difference: float  # GP-UCB minus random search
    standard_error: float
    verdict: str


def named_pairs(searches: list[dict[str, Any]]) -> list[Named]:
    """The priorities that more than half of the searches name, and the least and greatest worth that they give."""
    found: dict[str, list[float]] = {}
    for search in searches:
        for pair in search["pair_weights"]:
            if pair["matters"]:
                found.setdefault(f"{pair['first']} before {pair['second']}", []).append(pair["effect"])
    often = {pair: effects for pair, effects in found.items() if 2 * len(effects) > len(searches)}
    return [Named(pair, len(effects), min(effects), max(effects)) for pair, effects in often.items()]


def eight_types(files: Files) -> list[Cell]:
    """Every cell of the study of thousands of orders."""
    found = []
    for part in EXPERIMENTS["playbooks"].parts:
        network, red, takeover = part.split()
        if network == "five":
            continue
        cell = files.figures(stored_name("playbooks", part))
        returns = [order["mean_return"] for order in cell["orders"]]
        gain, error, searches = cell["difference"], cell["standard_error"], cell["searches"]
        names, verdict, ends = named_pairs(searches), answers.compared(gain, error), (min(returns), max(returns))
        found.append(Cell(network, FOES[red], takeover, len(searches), names, *ends, gain, error, verdict))
    return found
