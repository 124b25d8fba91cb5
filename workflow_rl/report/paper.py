"""Figures for papers: the main plots of a run as SVG and PDF, and the numbers behind them as CSV (extra: figures)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workflow_rl.errors import MissingExtraError, UserError
from workflow_rl.report.figures import BLUE, GREEN, GREY, ORANGE, PALETTE, best_so_far
from workflow_rl.report.run_types import RunData
from workflow_rl.runs import write_atomically


def write_figures(data: RunData, folder: Path) -> list[str]:
    """Writes all figures and tables for which the run has data; returns their names."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError(
            "figures need matplotlib; in the checkout of workflow_rl: pip install -e '.[figures]'."
        ) from None
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "workflow_rl", "svg.fonttype": "none", "font.size": 9})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = []
        for name, draw in _figures(data).items():
            figure = Figure(layout="constrained")
            draw(data, figure)
            for kind in ("svg", "pdf"):
                buffer = io.BytesIO()
                figure.savefig(
                    buffer, format=kind, metadata={"Date": None} if kind == "svg" else {"CreationDate": None}
                )
                write_atomically(folder / f"{name}.{kind}", buffer.getvalue())
                names.append(f"{name}.{kind}")
        for name, rows in tables(data).items():
            write_atomically(folder / f"{name}.csv", _csv(rows).encode())
            names.append(f"{name}.csv")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}).") from None
    return names


def tables(data: RunData) -> dict[str, list[dict[str, Any]]]:
    """The numbers behind the figures, by name; only those that there are."""
    found = {
        "ranking": _rows(data.ranking, "stop_reason", "episodes"),
        "predictions": _rows(data.predictions),
        "pairs": _rows(data.pair_weights),
        "evaluations": _rows(data.evaluations, "visit", "returns", "updates"),
        "curves": [
            {"training": one.name, "workflow": one.workflow, "update": update}
            | {curve: values[i] for curve, values in one.curves.items()}
            for one in data.trainings
            for i, update in enumerate(one.updates)
        ],
        "violations": [
            {"repaired": name} | dict(zip(data.violations.unit_types, row, strict=True))
            for name, row in zip(data.violations.unit_types, data.violations.counts, strict=True)
        ],
    }
    return {name: rows for name, rows in found.items() if rows}


def _rows(rows: Sequence[Any], *drop: str) -> list[dict[str, Any]]:
    """Dataclasses as rows of a table, without some of their fields."""
    return [{name: value for name, value in asdict(row).items() if name not in drop} for row in rows]


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _figures(data: RunData) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if data.ranking:
        found |= {"ranking": _ranking, "pairs": _pairs, "progress": _progress}
    if any(one.updates for one in data.trainings):
        found["curves"] = _curves
    return found


def _ranking(data: RunData, figure: Any) -> None:
    rows = data.ranking[::-1]
    figure.set_size_inches(6.5, 0.9 + 0.2 * len(rows))
    axes = figure.subplots()
    for follows, colour, marker in ((True, BLUE, "o"), (False, ORANGE, "x")):
        own = [(i, row) for i, row in enumerate(rows) if row.follows == follows]
        if own:
            x, y = [row.mean_return for _, row in own], [i for i, _ in own]
            errors = [data.quantile * row.standard_error for _, row in own]
            axes.errorbar(x, y, xerr=errors, fmt=marker, color=colour, label="followed" if follows else "not followed")
    axes.set_yticks(range(len(rows)), [row.workflow for row in rows])
    axes.set_xlabel("return, 95 % interval within this run")
    axes.legend()


def _pairs(data: RunData, figure: Any) -> None:
    rows = data.pair_weights[::-1]
    figure.set_size_inches(6.5, 0.9 + 0.25 * len(rows))
    axes = figure.subplots()
    colours = [BLUE if row.matters else GREY for row in rows]
    errors = [row.interval for row in rows]
    names = [f"{row.first} before {row.second}" for row in rows]
    axes.barh(names, [row.effect for row in rows], xerr=errors, color=colours)
    axes.set_xlabel("effect on the return, 95 % interval")


def _progress(data: RunData, figure: Any) -> None:
    rows = data.evaluations
    figure.set_size_inches(6.5, 3.2)
    axes = figure.subplots()
    x = [row.index + 1 for row in rows]
    errors = [row.standard_error for row in rows]
    axes.errorbar(x, [row.mean_return for row in rows], yerr=errors, fmt="o", color=BLUE, label="found")
    line = [float("nan") if value is None else value for value in best_so_far(data)]
    axes.step(x, line, where="post", color=GREEN, label="best so far")
    known = [row for row in rows if row.bound is not None]
    places = [row.index + 1 for row in known]
    axes.plot(places, [row.bound for row in known], "^", mfc="none", color=ORANGE, label="bound")
    axes.set_xlabel("evaluation")
    axes.set_ylabel("return")
    axes.legend()


def _curves(data: RunData, figure: Any) -> None:
    figure.set_size_inches(6.5, 6.0)
    colours: dict[str, str] = {}
    for axes, curve in zip(figure.subplots(3, 1, sharex=True), ("return", "compliance", "entropy"), strict=True):
        for one in data.trainings:
            colour = colours.setdefault(one.workflow, PALETTE[len(colours) % len(PALETTE)])
            values = [float("nan") if value is None else value for value in one.curves[curve]]
            axes.plot(one.updates, values, color=colour, linewidth=0.7)
        axes.set_ylabel(curve)
    axes.set_xlabel("update")
