"""Several runs on one page: results side by side, and the settings in which they differ."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from workflow_rl.config import opponent_words
from workflow_rl.engine.network import Network
from workflow_rl.report.drawing import PALETTE, Figure, Series
from workflow_rl.report.listing import best_row, compare_runs
from workflow_rl.report.page import render
from workflow_rl.report.run_data import report_data


def comparison(paths: list[Path], answers: dict[str, str], network: Network) -> str:
    """The page; ``answers`` are what each run found, in words."""
    rows = [row_of(path) for path in paths]
    drawn = {"compared": compared(rows)} if any(row["mean_return"] is not None for row in rows) else {}
    differ = compare_runs(paths)["settings_that_differ"]
    return render(
        "comparison.html", network, drawn, rows=rows, answers=answers, differ=differ, paths=list(map(str, paths))
    )


def row_of(path: Path) -> dict[str, Any]:
    """One run's result and throughput, from its raw files."""
    data = report_data(path)
    row: dict[str, Any] = {
        "run": str(path), "kind": data["kind"], "state": data["state"],
        "red_agent": opponent_words(data["train"]["red_agent"], data["train"]["takeover"]),
        "edition": data["train"]["edition"], "workflow": "", "mean_return": None, "standard_error": None,
        "compliance": None, "transitions_per_s": data["time"]["transitions_per_s"],
    }  # fmt: skip
    best = best_row(data) if data["kind"] == "search" else data["trainings"][0]["result"]
    level, quantile = data.get("level_error") or 0.0, data.get("quantile", 1.96)
    if best:
        row |= {name: best.get(name) for name in ("workflow", "mean_return", "compliance")}
        row["standard_error"] = math.hypot(best["standard_error"], level)  # the level is not common to other runs
        row["interval"] = quantile * row["standard_error"]
    if best and data.get("finalists"):  # the error of a finalist is that of its trainings, the level is in it
        row |= {name: best[name] for name in ("standard_error", "interval")}
    return row


def compared(rows: list[dict[str, Any]]) -> Figure:
    """Returns of the runs with intervals."""
    known = [row for row in rows if row["mean_return"] is not None][::-1]
    names = [row["run"] for row in known]
    series = Series(
        "", [row["mean_return"] for row in known], names, [PALETTE[i % len(PALETTE)] for i in range(len(known))],
        errors=[row["interval"] for row in known], hover="%{y}<br>%{x:.2f}",
    )  # fmt: skip
    return Figure(
        "Return of each run with its 95 % interval: of a search by the replicates of its best finalist, or with the "
        "error of its level; of one training the error of its evaluation alone.",
        [series],
        x_label="return, 95 % interval",
        categories=list(dict.fromkeys(names)),
        height=130 + 40 * len(known),
    )
