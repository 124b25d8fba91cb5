"""Several runs on one page: results side by side, and the settings in which they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from workflow_rl.config import opponent_words
from workflow_rl.report.answer import decimals
from workflow_rl.report.figures import GREY, PALETTE, Figure
from workflow_rl.report.listing import compare_runs
from workflow_rl.report.page import compose, escape, plot, table
from workflow_rl.report.run_data import report_data
from workflow_rl.search.findings import FinalistRow


@dataclass(frozen=True)
class ComparedRow:
    """A run beside others; of a search the figures of its best workflow."""

    run: str
    kind: str
    state: str
    red_agent: str
    edition: str
    transitions_per_s: float
    workflow: str = ""
    mean_return: float | None = None
    standard_error: float = 0.0
    interval: float = 0.0  # half of the 95 % interval
    compliance: float | None = None


def comparison(paths: list[Path], answers: dict[str, str]) -> str:
    """The page; ``answers`` is the answer of each run in words."""
    rows = [row_of(path) for path in paths]
    figure = {"compared": compared(rows)} if any(row.mean_return is not None for row in rows) else {}
    found = "".join(f"<p><strong>{escape(run)}</strong>: {escape(words)}</p>" for run, words in answers.items())
    sections = [
        ("compared", "Side by side", (plot("compared") if figure else "") + _table(rows)),
        ("answers", "What each found", found),
        ("differences", "Settings that differ", _settings(paths)),
    ]
    return compose(f"{len(paths)} runs compared", sections, {"figures": figure, "stories": []})


def row_of(path: Path) -> ComparedRow:
    """One run's result and throughput, from its raw files."""
    data = report_data(path)
    opponent = opponent_words(data.train.red_agent, data.train.takeover)
    about = (str(path), data.kind, data.state, opponent, data.train.edition, data.time.transitions_per_s)
    best = data.best_row if data.kind == "search" else data.trainings[0].result
    if not best:
        return ComparedRow(*about)
    if isinstance(best, FinalistRow):  # its error is that of its trainings and contains the level
        error, interval = best.standard_error, best.interval
    else:
        error = math.hypot(best.standard_error, data.level_error or 0.0)  # the level is not common to other runs
        interval = data.quantile * error
    return ComparedRow(*about, best.workflow, best.mean_return, error, interval, best.compliance)


def compared(rows: list[ComparedRow]) -> Figure:
    """Returns of the runs with intervals."""
    known = [row for row in rows if row.mean_return is not None][::-1]
    trace = {
        "type": "scatter", "mode": "markers",
        "x": [row.mean_return for row in known], "y": [row.run for row in known],
        "error_x": {"type": "data", "array": [row.interval for row in known]},
        "marker": {"size": 10, "color": [PALETTE[i % len(PALETTE)] for i in range(len(known))] or GREY},
        "hovertemplate": "%{y}<br>%{x:.2f}<extra></extra>",
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "return, 95 % interval"}},
        "yaxis": {"automargin": True},
        "height": 130 + 40 * len(known),
    }
    return {"data": [trace], "layout": layout}


def _table(rows: list[ComparedRow]) -> str:
    cells = []
    for row in rows:
        figure = "" if row.mean_return is None else f"{row.mean_return:.2f} ± {row.standard_error:.2f}"
        about = [row.run, row.kind, row.state, row.red_agent, row.edition, row.workflow or "none"]
        cells.append([*about, figure, decimals(row.compliance, 3), f"{row.transitions_per_s:,.0f}"])
    columns = ["run", "kind", "state", "red agent", "edition", "workflow", "return", "compliance", "transitions/s"]
    return table("Results; of a search those of its best workflow", columns, cells)


def _settings(paths: list[Path]) -> str:
    differ = compare_runs(paths).settings_that_differ
    if not differ:
        return "<p>The runs have the same settings.</p>"
    return table("Settings", ["setting", *map(str, paths)], [[name, *values] for name, values in differ.items()])
