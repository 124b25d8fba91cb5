"""Section of the page: the limit of defence, and what orders of repair are worth."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from benchmarks.page.parts import EDITIONS, FOES, LENGTHS, Files, about, number, table


def limit(files: Files) -> str:
    """What perfect information could reach."""
    found = files.figures("study_limit")
    rows = []
    for edition in EDITIONS:
        one, other = found["bline"][edition], found["meander"][edition]
        exact = [number(one["values"][int(n) - 1], 3) for n in LENGTHS]
        rows.append([f"{edition}, B_line", "exact", *exact, _confirmed(one)])
        cells = [f"{number(other['cells'][n]['mean'])} ± {other['cells'][n]['standard_error']:.2f}" for n in LENGTHS]
        rows.append([f"{edition}, Meander", "estimate", *cells, "played"])
    worst = max(
        abs(cell["difference_in_standard_errors"])
        for edition in EDITIONS
        for cell in found["bline"][edition]["confirmed"].values()
    )
    states = " and ".join(f"{found['bline'][edition]['states']:,}" for edition in EDITIONS)
    return (
        "## The limit\n\nThe most that a defender could reach if it saw the true state, red's plans included, but not the "
        "chance to come. Against B_line it is exact: dynamic programming over all states that can be reached "
        f"({states} in the two editions), by the engine's own rules, for every length up to "
        f"{found['bline']['current']['horizon']}. Playing the optimal policy in the engine gives the same, within "
        f"{worst:.1f} standard errors. Against Meander it is the best cheating policy that was found: an estimate, "
        f"below which the true limit cannot lie. {_ahead(found['meander'])} Figures in parentheses on this page are distances "
        "to this limit.\n\n"
        + table(["edition, red agent", "", "30 steps", "50", "100", "simulated at 100"], rows)
        + "\n"
        + _orders(found["bline"])
        + _estimated(found["meander"])
        + _trained(files, found)
        + about(
            files,
            "limit",
            "how close one can come without seeing the true state: part of the distance cannot be closed by anyone "
            "who has only blue's observations.",
        )
    )


def _orders(found: dict[str, Any]) -> str:
    """What keeping each order of repair is worth to such a defender; equal orders are one row."""
    rows, costs = [], []
    for edition in EDITIONS:
        equal: dict[tuple[str, ...], list[str]] = {}
        for order, cells in found[edition]["orders"].items():
            equal.setdefault(tuple(number(cells[n]["exact"], 3) for n in LENGTHS), []).append(order)
        for values, orders in equal.items():
            cost = found[edition]["values"][-1] - found[edition]["orders"][orders[0]][LENGTHS[-1]]["exact"]
            costs.append(cost)
            rows.append([edition, "; ".join(orders), *values, number(cost, 3)])
    every = [cell for one in found.values() for cells in one["orders"].values() for cell in cells.values()]
    worst = max(abs(cell["difference_in_standard_errors"]) for cell in every)
    broken = sum(cell["violations"] for cell in every)
    return (
        "**What each order is worth.** The same defender, but repairs out of order are not allowed to it: no Remove or Restore that ends "
        "red's presence on a host while a unit type of higher priority is compromised. Only the types that B_line ever takes can matter. "
        f"The worst order costs {number(max(costs), 2)}, the best {number(min(costs), 2)}. Played, the policies agree within {worst:.1f} standard errors, "
        f"with {broken} violations.\n\n"
        + table(["edition", "orders (equal ones together)", "30 steps", "50", "100", "cost at 100"], rows)
        + "\n"
    )


def _estimated(found: dict[str, Any]) -> str:
    """The same against Meander, as far as it is known."""
    parts = []
    for edition in EDITIONS:
        means = [cells[LENGTHS[-1]]["mean"] for cells in found[edition]["orders"].values()]
        error = max(cells[LENGTHS[-1]]["standard_error"] for cells in found[edition]["orders"].values())
        parts.append(f"from {number(min(means))} to {number(max(means))} (± {error:.2f}, the same games; {edition})")
    return (
        "Against Meander the rules of the estimate are played on, and where they would break the order, the type that is due is repaired "
        f"instead. At {LENGTHS[-1]} steps the orders of the types that Meander takes then reach {', '.join(parts)}: a defender that sees "
        "everything hardly ever has two types to choose from.\n\n"
    )


def _trained(files: Files, limits: dict[str, Any]) -> str:
    """The same orders beside what trained defenders reach, which see what blue sees."""
    rows = []
    for red, name in FOES.items():
        found = files.figures(f"workflow_table_{red}")["table"]
        orders = limits[red]["current"]["orders"]
        reached: dict[str, list[float]] = {order: [] for order in orders}
        for workflow, returns in zip(found["workflows"], found["mean_return"], strict=True):
            reached[",".join(kind for kind in workflow.split(",") if kind in found["taken"])] += returns
        for order, cells in orders.items():
            bound, mean = cells[LENGTHS[-1]].get("exact", cells[LENGTHS[-1]]["mean"]), fmean(reached[order])
            rows.append([name, order, number(bound), number(mean), str(len(reached[order])), number(bound - mean)])
    return (
        "The same beside trained defenders (current edition, 100 steps; all workflows with that order of the types, as `workflow-rl train "
        "--workflow` makes them, from [the tables](search.md); the limit is exact against B_line and estimated against Meander):\n\n"
        + table(["", "order", "limit", "trained, mean return", "trainings", "distance"], rows)
        + "\n"
    )


def _ahead(found: dict[str, Any]) -> str:
    """Whether looking one step ahead improved on the estimate."""
    parts = [
        f"{found[edition]['ahead']['gain']:+.2f} ± {found[edition]['ahead']['standard_error']:.2f} ({edition})"
        for edition in EDITIONS
    ]
    games, length = (found[EDITIONS[0]]["ahead"][name] for name in ("games", "length"))
    return f"Looking one step ahead, by many games from each state, changes it by {', '.join(parts)} in {games} games of {length} steps."


def _confirmed(found: dict[str, Any]) -> str:
    cell = found["confirmed"]["100"]
    return f"{number(cell['mean'])} ± {cell['standard_error']:.2f}"
