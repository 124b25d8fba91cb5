"""Study `ablation`: what each part of the method is worth, one change at a time, at equal budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from workflow_rl.studies.baselines import ENTERPRISE_FIRST, USER_FIRST, Ask, seeds, small
from workflow_rl.studies.cells import Cell
from workflow_rl.studies.statistics import paired, summary

RED = "bline"
ORDERS = {"enterprise first": ENTERPRISE_FIRST, "user first": USER_FIRST}
STRENGTHS = (0.0, 10.0, 30.0, 100.0, 300.0)
PER_FIX = (0.3, 1.0, 5.0)
EPISODES = 200  # per environment of the trainings from scratch: 4 million transitions
FIGURES = ("mean_return", "compliance", "counted_fixes", "transitions", "seconds")


def ablation(ask: Ask, quick: bool) -> dict[str, Any]:
    """All parts."""
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


def _trained(ask: Ask, quick: bool, order: str, **values: Any) -> dict[str, Any]:
    """Figures of one setting over all seeds, on fresh games."""
    cells = [
        Cell("train", {"preset": "workflow", "values": _values(order, seed, quick) | values}) for seed in seeds(quick)
    ]
    found = ask(cells)
    return {name: summary([one[name] for one in found]) for name in FIGURES}


def _of_orders(ask: Ask, quick: bool, **values: Any) -> dict[str, Any]:
    return {name: _trained(ask, quick, order, **values) for name, order in ORDERS.items()}


def _strength(ask: Ask, quick: bool) -> dict[str, Any]:
    """Alignment reward of several strengths, by the change of the rate and by the fix; from scratch, no early stop."""
    episodes = _episodes(quick)
    same = {"warm_start": "none", "max_episodes": episodes, "min_episodes": episodes}
    strengths, bonuses = (STRENGTHS[:2], PER_FIX[:1]) if quick else (STRENGTHS, PER_FIX)
    return {
        "potential": {f"{s:g}": _of_orders(ask, quick, alignment_lambda=s, **same) for s in strengths},
        "per-fix": {f"{s:g}": _of_orders(ask, quick, alignment_lambda=s, alignment="per-fix", **same) for s in bonuses},
    }


def _early_stopping(ask: Ask, quick: bool) -> dict[str, Any]:
    """The default training, stopped when the order is followed, and with all its episodes."""
    most = 6 if quick else 50
    found: dict[str, Any] = {
        "on": _by_start(ask, quick, {"min_episodes": 5, "max_episodes": most}),
        "off": _by_start(ask, quick, {"min_episodes": most, "max_episodes": most}),
    }
    found["gain_of_going_on"] = {
        name: paired(found["off"][name]["mean_return"]["values"], found["on"][name]["mean_return"]["values"])
        for name in ORDERS
    }
    return found


def _by_start(ask: Ask, quick: bool, values: dict[str, Any], start: str = "universal") -> dict[str, Any]:
    """Each seed from its own universal policy, where it starts from one."""
    found: dict[str, Any] = {}
    for name, order in ORDERS.items():
        cells = []
        for seed in seeds(quick):
            own = _values(order, seed, quick)
            own["warm_start"] = f"universal:{seed}" if start == "universal" else start
            cells.append(Cell("train", {"preset": "workflow", "values": own | values}))
        rows = ask(cells)
        found[name] = {figure: summary([row[figure] for row in rows]) for figure in FIGURES}
        found[name]["followed"] = sum(row["compliance"] >= 0.95 for row in rows)
    return found


def _warm_start(ask: Ask, quick: bool) -> dict[str, Any]:
    """Ways to start, with the same number of episodes and no early stop; the start's own training is not counted."""
    most = 5 if quick else 50
    budget = {"min_episodes": most, "max_episodes": most} | ({"warm_updates": 2} if quick else {})
    return {start: _by_start(ask, quick, budget, start) for start in ("universal", "general", "none")}


def _conditioning(ask: Ask, quick: bool) -> dict[str, Any]:
    """One policy for all 120 orders, told its order or not; and one order alone, where telling is of no use."""
    episodes = 5 if quick else 400
    values = {
        "red_agent": RED,
        "max_episodes": episodes,
        "min_episodes": episodes,
        "n_eval_episodes": 2 if quick else 100,
    }
    names = ("mean_return", "compliance", "worst_compliance", "followed", "counted_fixes", "seconds")
    found: dict[str, Any] = {"episodes": episodes}
    for told in (True, False):
        cells = [Cell("train_untold", {"values": values | {"seed": seed}, "told": told}) for seed in seeds(quick)]
        rows = ask(cells)
        found["told" if told else "not told"] = {name: summary([row[name] for row in rows]) for name in names}
    return found


def _searches(ask: Ask, quick: bool) -> dict[str, Any]:
    """Whole searches with real trainings: strategies at equal evaluations, early stopping at equal transitions.

    An order counts by the class that 600 trainings of all orders found to matter: enterprise before user or not.
    """
    evaluations = 2 if quick else 12
    common = ["--replicates", "2", "--red-agent", RED] + (
        ["--n-envs", "20", "--n-eval-episodes", "20"] if quick else []
    )
    plans = {
        name: ["--strategy", name, "--n-workflows", str(evaluations)] for name in ("gp-ucb", "random", "round-robin")
    }
    if quick:
        del plans["random"], plans["round-robin"]
    plans["gp-ucb, no early stop"] = [
        "--strategy", "gp-ucb", "--n-workflows", str(max(1, evaluations // 10)),
        "--min-episodes", "6" if quick else "50", "--max-episodes", "6" if quick else "50",
    ]  # fmt: skip
    found: dict[str, Any] = {"evaluations": evaluations}
    cells = {
        name: [
            Cell("search", {"options": [*plan, *common, "--seed", str(seed)], "jobs": 2}, alone=not quick)
            for seed in (seeds(quick)[:1] if quick else seeds(quick))
        ]
        for name, plan in plans.items()
    }
    ask([cell for row in cells.values() for cell in row])  # all at once
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
    """Does the best workflow of a search, if there is one, have enterprise before user?"""
    order = (best["workflow"] if isinstance(best, dict) else best or "").split(",")
    return "enterprise" in order and order.index("enterprise") < order.index("user")


def _effect(row: dict[str, Any]) -> float:
    """What the search says that enterprise before user is worth; 0 if it says nothing about the pair."""
    for pair in row["pair_weights"]:
        if (pair["first"], pair["second"]) == ("enterprise", "user"):
            return float(pair["effect"])
        if (pair["first"], pair["second"]) == ("user", "enterprise"):
            return -float(pair["effect"])
    return 0.0
