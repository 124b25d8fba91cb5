"""Values of the page that are more than one figure of a result file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.campaign import steps
from benchmarks.experiments import EXPERIMENTS
from benchmarks.page.files import EDITIONS, FOES, LENGTHS, LONGEST, Files
from benchmarks.page.formats import number
from benchmarks.studies.registry import STUDIES
from workflow_rl.defenders.protocol import ANCHORS, PUBLISHED_EDITION, WINNER

WEAK = 1.0  # points by which the champion loses after a takeover
EQUAL = 0.005  # orders closer than this are shown as equally good
TABLES = {"bline": "workflow_table_bline_30", "meander": "workflow_table_meander_40"}
WINNING = ANCHORS[PUBLISHED_EDITION][WINNER]
PUBLISHED = {  # CardiffUni, as published with the challenge's final scores
    **{red: dict(zip(LENGTHS, cells, strict=True)) for red, cells in WINNING.items()},
    "total": round(sum(map(sum, WINNING.values())), 2),
}


def largest_difference(cells: Iterable[dict[str, Any]]) -> float:
    """The largest difference between exact values and games, in standard errors."""
    return max(abs(float(cell["difference_in_standard_errors"])) for cell in cells)


class EqualOrders(NamedTuple):
    """Orders with the same exact values."""

    edition: str
    orders: list[str]
    values: tuple[str, ...]  # at each length
    cost: float  # compared with free play, at the longest length


def equal_orders(bline: dict[str, Any]) -> list[EqualOrders]:
    """What each order is worth to a defender that sees everything; equal orders together."""
    found = []
    for edition in EDITIONS:
        groups: dict[tuple[str, ...], list[str]] = {}
        for order, cells in bline[edition]["orders"].items():
            groups.setdefault(tuple(number(cells[n]["exact"], 3) for n in LENGTHS), []).append(order)
        for values, orders in groups.items():
            exact = bline[edition]["orders"][orders[0]][LONGEST]["exact"]
            found.append(EqualOrders(edition, orders, values, bline[edition]["values"][-1] - exact))
    return found


def confirmed(bline: dict[str, Any]) -> list[dict[str, Any]]:
    """The games that confirm the exact values, in both editions."""
    return [cell for edition in EDITIONS for cell in bline[edition]["confirmed"].values()]


def at_the_end(orders: dict[str, Any]) -> list[dict[str, Any]]:
    """The cell of each order at the longest length."""
    return [cells[LONGEST] for cells in orders.values()]


def cells_of_orders(bline: dict[str, Any]) -> list[dict[str, Any]]:
    """Every cell of every order, in both editions."""
    return [cell for edition in EDITIONS for cells in bline[edition]["orders"].values() for cell in cells.values()]


def cells_of_incidents(bline: dict[str, Any]) -> list[dict[str, Any]]:
    """Every cell of every takeover, in both editions."""
    incidents = [incident for edition in EDITIONS for incident in bline[edition]["incidents"].values()]
    rows = [row for incident in incidents for row in (incident["free"], *incident["orders"].values())]
    return [cell for row in rows for cell in row.values()]


def order_limit(cell: dict[str, Any]) -> float:
    """The limit of an order: exact where it is known, else the estimate."""
    return float(cell["exact"] if "exact" in cell else cell["mean"])


class TrainedOrder(NamedTuple):
    """An order of the types that red takes, and the trained defenders that follow it."""

    foe: str
    order: str
    limit: float
    mean_return: float

    @property
    def distance(self) -> float:
        """How far the trained defenders are from the limit."""
        return self.limit - self.mean_return


def trained_orders(files: Files) -> Iterator[TrainedOrder]:
    """All orders of the challenge, with the mean over all workflows that have this order of the types."""
    for red, foe in FOES.items():
        table = files.figures(f"workflow_table_{red}")["table"]
        orders = files.figures("study_limit")[red]["current"]["orders"]
        reached: dict[str, list[float]] = {order: [] for order in orders}
        for workflow, returns in zip(table["workflows"], table["mean_return"], strict=True):
            reached[",".join(kind for kind in workflow.split(",") if kind in table["taken"])] += returns
        for order, cells in orders.items():
            limit, mean = order_limit(cells[LONGEST]), fmean(reached[order])
            yield TrainedOrder(foe, order, limit, mean)


def groups_of_orders(files: Files) -> dict[str, list[TrainedOrder]]:
    """The orders against each opponent, by what comes first of the two types that matter most."""
    groups: dict[str, list[TrainedOrder]] = {}
    for one in trained_orders(files):
        kinds = (
            ("enterprise", "user")
            if one.order.index("enterprise") < one.order.index("user")
            else ("user", "enterprise")
        )
        groups.setdefault(f"{one.foe}, {' before '.join(kinds)}", []).append(one)
    return groups


def exact_orders(incident: dict[str, Any]) -> dict[str, float]:
    """The exact value of each order after a takeover."""
    return {order: cells[LONGEST]["exact"] for order, cells in incident["orders"].items()}


def best_orders(incident: dict[str, Any]) -> list[str]:
    """The best order after a takeover, and those that are equally good."""
    values = exact_orders(incident)
    return [order for order, value in values.items() if value > max(values.values()) - EQUAL]


def spread_of_orders(incident: dict[str, Any]) -> float:
    """The distance between the best and the worst order after a takeover."""
    values = exact_orders(incident).values()
    return max(values) - min(values)


def best_by_takeover(incidents: dict[str, Any]) -> dict[str, list[str]]:
    """The takeovers after which each group of orders is best."""
    found: dict[str, list[str]] = {}
    for takeover, incident in incidents.items():
        found.setdefault("; ".join(best_orders(incident)), []).append(takeover)
    return found


class TrainedIncident(NamedTuple):
    """Trained defenders of one order after a takeover."""

    order: str
    mean_return: float
    kept: float  # the lowest of all trainings
    compliance: float


def trained_incidents(table: dict[str, Any]) -> list[TrainedIncident]:
    """The rows of a table of all orders, best first."""
    columns = [table[name] for name in ("workflows", "mean_return", "kept", "compliance")]
    rows = [TrainedIncident(order, fmean(r), min(k), min(c)) for order, r, k, c in zip(*columns, strict=True)]
    return sorted(rows, key=lambda row: -row.mean_return)


def distances(rows: list[TrainedIncident], limits: dict[str, float]) -> list[float]:
    """How far the trained defenders of each order are from its limit."""
    return [limits[row.order] - row.mean_return for row in rows]


def same_ranking(rows: list[TrainedIncident], limits: dict[str, float]) -> bool:
    """Whether the orders of trained defenders, best first, are those of their limits."""
    return [row.order for row in rows] == sorted(limits, key=lambda order: -limits[order])


def most_updates(table: dict[str, Any]) -> int:
    """The length of the longest training of a table."""
    return int(max(map(max, table["updates"])))


def columns_by_order(orders: Iterable[str]) -> list[str]:
    """The columns of the ablation's tables."""
    return ["", *(f"{order}: {what}" for order in orders for what in ("return", "compliance", "kept", "repairs, idle"))]


def loss_when_swapped(rows: dict[str, Any], foe: str) -> float:
    """What a general policy trained against the other opponent loses against this one."""
    other = next(red for red in FOES if red != foe)
    own, swapped = (rows[f"general, trained against {red}"]["as trained"][foe][LONGEST]["iqm"] for red in (foe, other))
    return float(own - swapped)


def effect_if_all_is_seen(files: Files, name: str, game: dict[str, Any]) -> float | None:
    """What the first order of the study of lengths gains a defender that sees everything; None if it is unknown."""
    red, takeover = name.split()
    if game["exact_effect"] is not None or takeover != "0":
        return None if game["exact_effect"] is None else float(game["exact_effect"])
    cells = files.figures("study_limit")[red]["current"]["orders"]
    taken = next(iter(cells)).split(",")
    tasks = [",".join(kind for kind in order.split(",") if kind in taken) for order in game["orders"]]
    first, second = (order_limit(cells[task][LONGEST]) for task in tasks)
    return first - second


def compared_orders(games: dict[str, Any]) -> dict[tuple[str, ...], list[str]]:
    """The orders that the study of lengths compares, and in which games."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, game in games.items():
        red, takeover = name.split()
        found.setdefault(tuple(game["orders"]), []).append(f"{FOES[red]}, {takeover}")
    return found


class WeakTakeover(NamedTuple):
    """A takeover after which the champion returns less than the policy trained for takeovers."""

    takeover: int
    champion: float
    trained: float

    @property
    def points(self) -> float:
        """What the champion loses."""
        return self.trained - self.champion


def weak_takeovers(general: dict[str, Any]) -> dict[str, list[WeakTakeover]]:
    """Where the champion is clearly worse than the policy trained for takeovers, by opponent."""
    found = {}
    for red, foe in FOES.items():
        rows = zip(general["takeovers"], general[red]["champion"], general[red]["incidents"], strict=True)
        if weak := [one for one in map(WeakTakeover._make, rows) if one.takeover and one.points > WEAK]:
            found[foe] = weak
    return found


class Measured(NamedTuple):
    """An experiment, the commits and processors of its results, the minutes that all its parts took, if known."""

    name: str
    asks: str
    commits: list[str]
    processors: list[str]
    minutes: float


def regeneration(files: Files) -> list[Measured]:
    """Every experiment that stores results, in the order of ``python -m benchmarks all``."""
    by_name: dict[str, list[str]] = {}
    for step in steps():
        by_name.setdefault(step.words[0], []).append(step.stored)
    rows = []
    for name, stored in by_name.items():
        found = [files(one) for one in stored if files.has(one)]
        seconds = [float(file.get("seconds", 0.0)) for file in found]
        whole = len(found) == len(stored) and all(seconds)
        asks = STUDIES[name] if name in STUDIES else EXPERIMENTS[name].asks
        commits = sorted({file["commit"] for file in found})
        processors = sorted({processor(file) for file in found})
        rows.append(Measured(name, asks, commits, processors, sum(seconds) / 60 if whole else 0.0))
    return rows


def repeated(files: Files) -> tuple[int, int]:
    """How many bundled champions came again with the same weights, and how many were trained again."""
    names = [step.stored for step in steps() if step.words[0] == "repeat"]
    same = [bool(files.figures(name)["same_weights"]) for name in names if files.has(name)]
    return sum(same), len(same)


def processor(file: dict[str, Any]) -> str:
    """The processor of a result, without trade marks."""
    return re.sub(r"\(\w+\)", "", str(file["machine"]["processor"]))
