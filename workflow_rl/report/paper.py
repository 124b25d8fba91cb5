"""Figures for papers: those of a run as SVG and PDF, and the numbers behind them as CSV (extra: figures)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workflow_rl.errors import MissingExtraError, UserError
from workflow_rl.report.figures import Figure, figures
from workflow_rl.report.run_data import RunData
from workflow_rl.runs import write_atomically

Table = Sequence[Mapping[str, Any]]
MARKERS = {"circle": "o", "x": "x", "triangle-up-open": "^", "line-ew-open": "_"}
WIDTHS = {"line": 0.7, "steps": 1.5}  # in points


def write_figures(data: RunData, folder: Path) -> list[str]:
    """Writes all figures and tables for which the run has data; returns the names of the files."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError(
            "figures need matplotlib; in the checkout of workflow_rl: pip install -e '.[figures]'."
        ) from None
    matplotlib.rcParams.update({"svg.hashsalt": "workflow_rl", "svg.fonttype": "none", "font.size": 9})
    panels: dict[str, list[Figure]] = {}
    for figure in figures(data).values():
        panels.setdefault(figure.file, []).append(figure)
    files = {f"{name}.{kind}": _draw(own, kind) for name, own in panels.items() if name for kind in ("svg", "pdf")}
    files |= {f"{name}.csv": _csv(rows).encode() for name, rows in tables(data).items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}).") from None
    return list(files)


def tables(data: RunData) -> dict[str, Table]:
    """The numbers behind the figures, by name; empty tables are left out."""
    drop = ("returns", "errors")
    found = {
        "ranking": data.get("ranking", []),
        "predictions": data.get("predictions", []),
        "pairs": data.get("pairs", []),
        "evaluations": [{k: v for k, v in row.items() if k not in drop} for row in data.get("evaluations", [])],
        "curves": [
            {"training": one["name"], "workflow": one["workflow"], "update": update}
            | {curve: values[i] for curve, values in one["curves"].items()}
            for one in data["trainings"]
            for i, update in enumerate(one["updates"])
        ],
        "violations": [
            {"repaired": name} | dict(zip(data["violations"]["unit_types"], row, strict=True))
            for name, row in zip(data["violations"]["unit_types"], data["violations"]["counts"], strict=True)
        ],
    }
    return {name: rows for name, rows in found.items() if rows}


def _csv(rows: Table) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _draw(panels: Sequence[Figure], kind: str) -> bytes:
    """Figures below each other in one file."""
    from matplotlib.figure import Figure as Sheet

    sheet = Sheet((6.5, sum(panel.inches for panel in panels)), layout="constrained")
    rows = sheet.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(rows, panels, strict=True):
        _draw_panel(axes, panel)
    rows[-1].set_xlabel(panels[-1].x_label)
    if panels[0].has_legend:
        rows[0].legend()
    buffer = io.BytesIO()
    sheet.savefig(buffer, format=kind, metadata={"Date" if kind == "svg" else "CreationDate": None})
    return buffer.getvalue()


def _draw_panel(axes: Any, figure: Figure) -> None:
    listed: set[str] = {""}
    for one in figure.series:
        y = [figure.categories.index(name) for name in one.y] if figure.categories else _numbers(one.y)
        style: dict[str, Any] = {"color": one.colour}
        if figure.has_legend and one.name not in listed:
            style["label"] = one.name
            listed.add(one.name)
        if one.errors is not None:
            style["xerr" if figure.categories else "yerr"] = one.errors
        if one.kind == "bars":
            axes.barh(y, one.x, **style)
        elif one.kind == "points":
            axes.errorbar(one.x, y, fmt=MARKERS[one.symbol], mfc="none" if "open" in one.symbol else None, **style)
        else:
            drawn = "steps-post" if one.kind == "steps" else "default"
            axes.plot(one.x, y, drawstyle=drawn, linewidth=WIDTHS[one.kind], **style)
    if figure.categories:
        axes.set_yticks(range(len(figure.categories)), figure.categories)
    if figure.y_label:
        axes.set_ylabel(figure.y_label)


def _numbers(values: Sequence[float | None]) -> list[float]:
    """The same with NaN where there is no value."""
    return [float("nan") if value is None else value for value in values]
