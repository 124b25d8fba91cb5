"""The studies by name, and how to run one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.results import write_result_to
from benchmarks.studies.cells import Cell, Laboratory
from workflow_rl.errors import check_choice
from workflow_rl.runs import versions

STUDIES = {  # what each asks; its function has the same name, in the module of that name
    "baselines": "how rules, general policies and policies that follow an order compare",
    "learners": "how our PPO and stable-baselines3's compare, by transitions and by seconds, equally tuned",
    "rollout": "how many episodes an update should use",
    "ablation": "what each part of the method is worth",
    "lengths": "whether the effect of the order remains in shorter and longer trainings",
    "robustness": "how policies do with other opponents, green agents, editions and lengths",
    "scaling": "where the cost goes as the work grows",
    "limit": "what a defender that sees everything could reach",
}


def run_study(name: str, quick: bool, laboratory: Laboratory, results: Path) -> Path:
    """Runs a study to its end, resuming it if it was interrupted, and writes its result file.

    Args:
        name: one of :data:`STUDIES`.
        quick: the small form, which only shows that everything works.
        laboratory: where its cells are computed and kept; this process must hold its lock.
        results: where the result file goes.
    """
    function = getattr(import_module(f"benchmarks.studies.{check_choice('study', name, STUDIES)}"), name)
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
        "cells": len(laboratory.used),
        "seconds": round(time.perf_counter() - began, 1),  # those of this start; kept cells took none
    }
    command = f"python -m benchmarks {name}{' --quick' if quick else ''}"
    return write_result_to(results, f"study_{name}", command, figures, **about)


def _seeds_of(arguments: dict[str, Any]) -> set[int]:
    """The seeds of a cell, including those of its training."""
    found = {value for name, value in arguments.items() if name in ("seed", "games_seed")}
    options = arguments.get("options", [])
    found |= {int(options[i + 1]) for i, option in enumerate(options) if option == "--seed"}
    return found | (_seeds_of(arguments["values"]) if isinstance(arguments.get("values"), dict) else set())
