"""Study `ablation`: what each part of the method is worth, one change at a time, at equal budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.studies.baselines import ENTERPRISE_FIRST, OBEDIENCE, USER_FIRST, Ask, seeds, small
from benchmarks.studies.cells import Cell
from benchmarks.studies.statistics import paired, summary

RED = "bline"
ORDERS = {"enterprise first": ENTERPRISE_FIRST, "user first": USER_FIRST}
STRENGTHS = {"penalty": (0.0, 5.0, 10.0, 20.0, 40.0), "potential": (10.0, 30.0, 100.0)}
STARTS = (30, 100)
EPISODES = 200  # per environment of the trainings that are compared: 4 million transitions
FIGURES = ("mean_return", *OBEDIENCE, "transitions", "seconds")


def ablation(ask: Ask, quick: bool) -> dict[str, Any]:
    """Runs all parts."""
    return {
        "red_agent": RED,
        "orders": ORDERS,
        "episodes": _episodes(quick),
        "strength": _strength(ask, quick),
        "early_stopping": _early_stopping(ask, quick),
        "conditioning": _conditioning(ask, quick),
        "warm_start": _warm_start(ask, quick),
        "searches": _searches(ask, quick),
    }


def _episodes(quick: bool) -> int:
    return 5 if quick else EPISODES


def _values(order: str, seed: int, quick: bool) -> dict[str, Any]:
    return {"workflow": order, "red_agent": RED, "seed": seed} | small(quick)


def _of_orders(ask: Ask, quick: bool, preset: str = "workflow", **values: Any) -> dict[str, Any]:
    """Figures of one setting for each order, over all seeds, from fresh games."""
    found: dict[str, Any] = {}
    for name, order in ORDERS.items():
        every = [_values(order, seed, quick) | values for seed in seeds(quick)]
        rows = ask([Cell("train", {"preset": preset, "values": own}) for own in every])
        found[name] = {figure: summary([row[figure] for row in rows]) for figure in FIGURES}
        found[name]["followed"] = sum(row["followed"] for row in rows)
    return found


def _strength(ask: Ask, quick: bool) -> dict[str, Any]:
    """Both kinds of alignment reward at several strengths, in a shorter default training."""
    return {
        kind: {
            f"{s:g}": _of_orders(ask, quick, alignment=kind, alignment_lambda=s, max_episodes=_episodes(quick))
            for s in (strengths[:1] if quick else strengths)
        }
        for kind, strengths in STRENGTHS.items()
    }


def _early_stopping(ask: Ask, quick: bool) -> dict[str, Any]:
    """The documents' training, stopped when the order is followed, and run for all its episodes."""
    most = 6 if quick else 50
    found: dict[str, Any] = {
        "on": _of_orders(ask, quick, "parallel-200", max_episodes=most),
        "off": _of_orders(ask, quick, "parallel-200", max_episodes=most, patience=most),
    }
    found["gain_of_going_on"] = {
        name: paired(found["off"][name]["mean_return"]["values"], found["on"][name]["mean_return"]["values"])
        for name in ORDERS
    }
    return found


def _warm_start(ask: Ask, quick: bool) -> dict[str, Any]:
    """Ways to start, with the same number of updates; updates of the general training are not counted."""
    episodes = _episodes(quick)
    starts = {"none": ("none", 0)} | {f"general, {n} updates": ("general", n) for n in ((2,) if quick else STARTS)}
    return {
        name: _of_orders(ask, quick, max_episodes=episodes, warm_start=start, warm_updates=updates)
        for name, (start, updates) in starts.items()
    }


def _conditioning(ask: Ask, quick: bool) -> dict[str, Any]:
    """One policy for all 120 orders, conditioned on its order or not."""
    episodes = 5 if quick else 150
    values = {
        "red_agent": RED,
        "max_episodes": episodes,
        "min_episodes": episodes,
        "n_eval_episodes": 2 if quick else 100,
    }
    names = ("mean_return", "compliance", "worst_compliance", "followed", "repairs", "seconds")
    found: dict[str, Any] = {"episodes": episodes}
    for told in (True, False):
        cells = [Cell("train_untold", {"values": values | {"seed": seed}, "told": told}) for seed in seeds(quick)]
        rows = ask(cells)
        found["told" if told else "not told"] = {name: summary([row[name] for row in rows]) for name in names}
    return found


def _searches(ask: Ask, quick: bool) -> dict[str, Any]:
    """Whole searches with real trainings but no finalists: strategies at equal numbers of evaluations.

    An order counts by what the table of all orders found to matter: whether enterprise comes before user.
    """
    evaluations = 2 if quick else 8
    common = ["--red-agent", RED, "--no-finish"] + (
        ["--n-envs", "20", "--n-eval-episodes", "20", "--warm-updates", "1"] if quick else []
    )
    plans = {
        name: ["--strategy", name, "--n-workflows", str(evaluations)] for name in ("gp-ucb", "random", "round-robin")
    }
    if quick:
        del plans["random"], plans["round-robin"]
    found: dict[str, Any] = {"evaluations": evaluations}
    cells = {
        name: [
            Cell("search", {"options": [*plan, *common, "--seed", str(seed)], "jobs": 2}, alone=not quick)
            for seed in (seeds(quick)[:1] if quick else seeds(quick))
        ]
        for name, plan in plans.items()
    }
    ask([cell for row in cells.values() for cell in row])  # in one go, so that they run in parallel
    for name, own in cells.items():
        rows = ask(own)
        effects = [_effect(row) for row in rows]
        found[name] = {
            "evaluations": rows[0]["evaluations"],
            "transitions": summary([row["transitions"] for row in rows]),
            "wall_seconds": summary([row["wall_seconds"] for row in rows]),
            "enterprise_before_user_in_best": sum(_enterprise_first(row["best"]) for row in rows),
            "searches": len(rows),
            "effect": summary(effects),
            "effect_spread": float(np.std(effects)),
        }
    return found


def _enterprise_first(best: Any) -> bool:
    """Whether the best workflow of a search, if there is one, has enterprise before user."""
    order = (best["workflow"] if isinstance(best, dict) else best or "").split(",")
    return "enterprise" in order and order.index("enterprise") < order.index("user")


def _effect(row: dict[str, Any]) -> float:
    """The effect of enterprise before user that the search reports; 0 if it reports none."""
    for pair in row["pair_weights"]:
        if (pair["first"], pair["second"]) == ("enterprise", "user"):
            return float(pair["effect"])
        if (pair["first"], pair["second"]) == ("user", "enterprise"):
            return -float(pair["effect"])
    return 0.0
