"""Several runs on one page: results side by side, and the settings in which they differ."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from workflow_rl.config import opponent_words
from workflow_rl.report.figures import GREY, PALETTE, Figure
from workflow_rl.report.listing import best_row, compare_runs
from workflow_rl.report.page import compose, escape, plot, table
from workflow_rl.report.run_data import report_data


def comparison(paths: list[Path], answers: dict[str, str]) -> str:
    """The page; ``answers`` are what each run found, in words."""
    rows = [row_of(path) for path in paths]
    figure = {"compared": compared(rows)} if any(row["mean_return"] is not None for row in rows) else {}
    found = "".join(f"<p><strong>{escape(run)}</strong>: {escape(words)}</p>" for run, words in answers.items())
    sections = [
        ("compared", "Side by side", (plot("compared") if figure else "") + _table(rows)),
        ("answers", "What each found", found),
        ("differences", "Settings that differ", _settings(paths)),
    ]
    return compose(f"{len(paths)} runs compared", sections, {"figures": figure, "stories": []})


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
    trace = {
        "type": "scatter", "mode": "markers",
        "x": [row["mean_return"] for row in known], "y": [row["run"] for row in known],
        "error_x": {"type": "data", "array": [row["interval"] for row in known]},
        "marker": {"size": 10, "color": [PALETTE[i % len(PALETTE)] for i in range(len(known))] or GREY},
        "hovertemplate": "%{y}<br>%{x:.2f}<extra></extra>",
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "return, 95 % interval"}},
        "yaxis": {"automargin": True},
        "height": 130 + 40 * len(known),
    }
    return {"data": [trace], "layout": layout}


def _table(rows: list[dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        figure = "" if row["mean_return"] is None else f"{row['mean_return']:.2f} ± {row['standard_error']:.2f}"
        kept = "" if row["compliance"] is None else f"{row['compliance']:.3f}"
        about = [row["run"], row["kind"], row["state"], row["red_agent"], row["edition"], row["workflow"] or "none"]
        cells.append([*about, figure, kept, f"{row['transitions_per_s']:,.0f}"])
    columns = ["run", "kind", "state", "red agent", "edition", "workflow", "return", "compliance", "transitions/s"]
    return table("Results; of a search those of its best workflow", columns, cells)


def _settings(paths: list[Path]) -> str:
    differ = compare_runs(paths)["settings_that_differ"]
    if not differ:
        return "<p>The runs have the same settings.</p>"
    return table("Settings", ["setting", *map(str, paths)], [[name, *values] for name, values in differ.items()])
