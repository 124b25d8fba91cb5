"""Study `baselines`: rules, general policies and policies that follow an order, in the same games."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.studies.cells import Cell
from benchmarks.studies.games import over_seeds
from benchmarks.studies.statistics import difference, of_games, summary
from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.engine.network import RED_AGENTS

Ask = Callable[[Sequence[Cell]], list[Any]]

FOES = ("bline", "meander")  # red agents to train against
ENTERPRISE_FIRST = "enterprise,op_server,user,defender,op_host"  # the order that the default search finds best
USER_FIRST = "user,op_host,op_server,enterprise,defender"  # and one of those that it finds worst
GAMES_SEED = 20_261_117  # no choice is based on these games
OBEDIENCE = ("compliance", "kept", "repairs", "idle_fixes")
RULES = ("sleep", "random", "reactive-restore", "expert", "champion")


def seeds(quick: bool) -> range:
    """Seeds of every learned row."""
    return range(2 if quick else 5)


def small(quick: bool) -> dict[str, int]:
    """Settings that make a training of a quick form short."""
    return {"n_envs": 20, "n_eval_episodes": 20, "warm_updates": 1} if quick else {}


def general_cell(red: str, seed: int, quick: bool) -> Cell:
    """A general policy; studies share these trainings."""
    return _training("general", quick, red_agent=red, seed=seed)


def order_cell(order: str, red: str, seed: int, quick: bool) -> Cell:
    """A policy that follows an order, trained as by ``workflow-rl train --workflow``."""
    return _training("workflow", quick, workflow=order, red_agent=red, seed=seed)


def search_cell(order: str, red: str, seed: int, quick: bool) -> Cell:
    """A policy that follows an order, trained as in the default search."""
    return _training("search", quick, workflow=order, red_agent=red, seed=seed)


def _training(preset: str, quick: bool, **values: Any) -> Cell:
    return Cell("train", {"preset": preset, "values": ({"max_episodes": 5} if quick else {}) | values | small(quick)})


def games_cell(blue: str, games: int, workflow: str = "") -> Cell:
    """Games of a defender against all red agents."""
    arguments = {"blue": blue, "reds": list(RED_AGENTS), "games": games, "seed": GAMES_SEED, "workflow": workflow}
    return Cell("play", arguments)


def baselines(ask: Ask, quick: bool) -> dict[str, Any]:
    """All rows, and the answers that they give."""
    games = 50 if quick else 2000
    rows = _rules(ask, games) | _greedy(ask, games)
    names: dict[str, tuple[str, Callable[[str, int], Cell]]] = {
        "general": ("", lambda red, seed: general_cell(red, seed, quick)),
        "order-as-searched": (ENTERPRISE_FIRST, lambda red, seed: search_cell(ENTERPRISE_FIRST, red, seed, quick)),
        "order": (ENTERPRISE_FIRST, lambda red, seed: order_cell(ENTERPRISE_FIRST, red, seed, quick)),
        "order-user-first": (USER_FIRST, lambda red, seed: order_cell(USER_FIRST, red, seed, quick)),
        "searched-user-first": (USER_FIRST, lambda red, seed: search_cell(USER_FIRST, red, seed, quick)),
    }
    ask([cell(red, seed) for _, cell in names.values() for red in FOES for seed in seeds(quick)])  # in parallel
    for name, (workflow, cell) in names.items():
        trained = {red: ask([cell(red, seed) for seed in seeds(quick)]) for red in FOES}
        played = {red: ask([games_cell(one["policy"], games, workflow) for one in trained[red]]) for red in FOES}
        rows[name] = _learned(played, trained)
    return {
        "games": games, "games_seed": GAMES_SEED, "orders": [ENTERPRISE_FIRST, USER_FIRST],
        "rows": rows, "answers": _answers(rows),
    }  # fmt: skip


def _rules(ask: Ask, games: int) -> dict[str, Any]:
    rows = {}
    for name, played in zip(RULES, ask([games_cell(name, games) for name in RULES]), strict=True):
        rows[name] = {"cells": {red: _cells_of_games(played[red]) for red in RED_AGENTS}}
    return rows


def _cells_of_games(found: dict[str, Any]) -> dict[str, Any]:
    return {length: of_games(cell["mean"], cell["standard_error"]) for length, cell in found["returns"].items()}


def _greedy(ask: Ask, games: int) -> dict[str, Any]:
    """The greedy rule with the best of all orders, and how much the order matters to it."""
    arguments = {"reds": list(FOES), "games": max(20, games // 4), "seed": GAMES_SEED}
    (found,) = ask([Cell("play_greedy", arguments)])
    rows = {}
    for variant in ("restore", "remove"):
        by_foe = {red: found[red][variant] for red in FOES}
        rows[f"greedy-{variant}"] = {
            "cells": {red: _cells_of_games(by_foe[red]["games"][red]) for red in FOES}
            | {"sleep": _cells_of_games(by_foe["bline"]["games"]["sleep"])},
            **{name: {red: summary([by_foe[red]["games"][red][name]]) for red in FOES} for name in OBEDIENCE},
            "by_workflow": {red: by_foe[red]["by_workflow"] for red in FOES},
            "best": {red: by_foe[red]["best"] for red in FOES},
            "games": arguments["games"],
            "best_return": {red: max(by_foe[red]["by_workflow"].values()) for red in FOES},
            "worst_return": {red: min(by_foe[red]["by_workflow"].values()) for red in FOES},
        }
    return rows


def _learned(played: dict[str, list[Any]], trained: dict[str, list[Any]]) -> dict[str, Any]:
    """Policies that were each trained against one foe: figures against that foe, and of all of them against Sleep."""
    row: dict[str, Any] = {
        "cells": {red: {str(n): over_seeds(played[red], red, n) for n in CHALLENGE_LENGTHS} for red in FOES},
        "seconds": {red: summary([one["seconds"] for one in trained[red]]) for red in FOES},
        "transitions": {red: trained[red][0]["transitions"] for red in FOES},
    }
    everyone = [one for red in FOES for one in played[red]]
    row["cells"]["sleep"] = {str(n): over_seeds(everyone, "sleep", n) for n in CHALLENGE_LENGTHS}
    if all("compliance" in one[red] for red in FOES for one in played[red]):
        for name in OBEDIENCE:
            row[name] = {red: summary([one[red][name] for one in played[red]]) for red in FOES}
    return row


def _answers(rows: dict[str, Any]) -> dict[str, Any]:
    """What obedience costs, and what the order is worth, against each foe at 100 steps."""
    answers: dict[str, Any] = {}
    for red in FOES:
        values = {name: row["cells"][red]["100"]["values"] for name, row in rows.items()}
        answers[red] = {
            "obedience": difference(values["order"], values["general"]),
            "compliance": rows["order"]["compliance"][red],
            "order": difference(values["order"], values["order-user-first"]),
            "order_searched": difference(values["order-as-searched"], values["searched-user-first"]),
        }
    return answers
