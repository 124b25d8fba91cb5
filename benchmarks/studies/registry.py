"""The studies by name, and how one is run to its end."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.studies.cells import Cell, Laboratory
from workflow_rl.engine.network import check_choice
from workflow_rl.runs import versions
from workflow_rl.studies.results import write_result


@dataclass(frozen=True)
class Study:
    """A study: where its function is, and what it asks."""

    module: str
    function: str
    words: str


STUDIES = {
    "baselines": Study("baselines", "baselines", "rules, general policies and policies that follow an order"),
    "rollout": Study("rollouts", "rollout_study", "how many episodes an update should be made of"),
    "ablation": Study("ablation", "ablation", "what each part of the method is worth"),
    "robustness": Study("robustness", "robustness", "other opponents, green agents, editions and lengths"),
    "scaling": Study("scaling", "scaling", "where the cost goes as the work grows"),
    "limit": Study("limit", "limit", "what a defender that sees everything could reach"),
}


def run_study(name: str, quick: bool, laboratory: Laboratory, results: Path) -> Path:
    """Runs a study to its end, from where it was left, and writes its result file.

    Args:
        name: one of :data:`STUDIES`.
        quick: the small form, which shows that everything works and nothing else.
        laboratory: where its cells are made and kept; this process must hold it.
        results: where the result file goes.
    """
    study = STUDIES[check_choice("study", name, tuple(STUDIES))]
    function = getattr(importlib.import_module(f"benchmarks.studies.{study.module}"), study.function)
    laboratory.begin(name)
    began = time.perf_counter()
    asked: set[int] = set()

    def ask(cells: Sequence[Cell]) -> list[Any]:
        for cell in cells:
            asked.update(_seeds_of(cell.arguments))
        return laboratory.ask(cells)

    figures = function(ask, quick)
    about: dict[str, Any] = {
        "study": name,
        "quick": quick,
        "seeds": sorted(asked),
        "jobs": laboratory.jobs,
        "versions": versions(),
        "commits_of_cells": sorted(laboratory.commits),
        "cells": len(laboratory.spent),
        "seconds_of_cells": sum(laboratory.spent.values()),
        "seconds_of_last_start": time.perf_counter() - began,
    }
    command = f"python -m benchmarks {name}{' --quick' if quick else ''}"
    return write_result(results, f"study_{name}", command, figures, **about)


def _seeds_of(arguments: dict[str, Any]) -> set[int]:
    """Seeds that a cell is made with, also those of its training."""
    found = {value for name, value in arguments.items() if name in ("seed", "games_seed")}
    options = arguments.get("options", [])
    found |= {int(options[i + 1]) for i, option in enumerate(options) if option == "--seed"}
    return found | (_seeds_of(arguments["values"]) if isinstance(arguments.get("values"), dict) else set())
