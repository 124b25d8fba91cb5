"""Study `robustness`: policies against opponents, green agents, editions and lengths they were not trained for."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.studies.baselines import ENTERPRISE_FIRST, GAMES_SEED, Ask, general_cell, order_cell, seeds
from benchmarks.studies.cells import Cell
from benchmarks.studies.statistics import of_games, summary
from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.engine.network import RED_AGENTS

LENGTHS = (30, 50, 100, 500)
MIXED, MIX = "bline,meander", "mix"
NAMED, TRAINED_FOR = ("champion", "expert"), "current"  # bundled defenders, and the edition that all were made for
AS_TRAINED = "as trained"
CONDITIONS: dict[str, dict[str, str]] = {  # how the games differ from those of training
    AS_TRAINED: {},
    "acting green": {"green": "active"},
    "leaderboard edition": {"edition": "leaderboard"},
}


def robustness(ask: Ask, quick: bool) -> dict[str, Any]:
    """Every policy under every condition against every red agent, and against the mix of both attackers.

    Games longer than those of the challenge are played under the conditions of the training only.
    """
    games, lengths = (20, (30, 50)) if quick else (1000, LENGTHS)
    policies: dict[str, tuple[str, list[str]]] = {name: ("", [name]) for name in NAMED}
    for red in ("bline", "meander", MIXED):
        trained = ask([general_cell(red, seed, quick) for seed in seeds(quick)])
        policies[f"general, trained against {red}"] = ("", [one["policy"] for one in trained])
    for red in ("bline", "meander"):
        trained = ask([order_cell(ENTERPRISE_FIRST, red, seed, quick) for seed in seeds(quick)])
        policies[f"order, trained against {red}"] = (ENTERPRISE_FIRST, [one["policy"] for one in trained])
    rows: dict[str, Any] = {}
    for name, (workflow, blues) in policies.items():
        rows[name] = {}
        for condition, values in CONDITIONS.items():
            steps = lengths if condition == AS_TRAINED else lengths[: len(CHALLENGE_LENGTHS)]
            common: dict[str, Any] = {
                "reds": list(RED_AGENTS),
                "games": games,
                "seed": GAMES_SEED + 1,
                "lengths": list(steps),
            }
            if "edition" in values and name in NAMED:
                common["made_for"] = TRAINED_FOR
            cells = [Cell("play", common | {"blue": blue, "workflow": workflow} | values) for blue in blues]
            rows[name][condition] = _figures(ask(cells), steps, bool(workflow))
    return {"games": games, "games_seed": GAMES_SEED + 1, "lengths": list(lengths), "rows": rows}


def _figures(played: list[dict[str, Any]], lengths: tuple[int, ...], ordered: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {red: {} for red in (*RED_AGENTS, MIX)}
    for n in lengths:
        cells = {red: [one[red]["returns"][str(n)] for one in played] for red in RED_AGENTS}
        means = {red: np.array([cell["mean"] for cell in cells[red]]) for red in RED_AGENTS}
        errors = {red: np.array([cell["standard_error"] for cell in cells[red]]) for red in RED_AGENTS}
        means[MIX] = (means["bline"] + means["meander"]) / 2
        errors[MIX] = np.hypot(errors["bline"], errors["meander"]) / 2
        for red, values in means.items():
            one = len(played) == 1
            figures[red][str(n)] = of_games(values[0], errors[red][0]) if one else summary(values.tolist())
    if ordered:
        for name in ("compliance", "kept"):
            figures[name] = {red: summary([one[red][name] for one in played]) for red in RED_AGENTS[:2]}
    return figures
