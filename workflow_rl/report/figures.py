"""The figures of a report, each described once: the page draws it with plotly, papers with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from workflow_rl.report.run_data import CURVES, RunData
from workflow_rl.training.compliance import Obedience

# Okabe and Ito's colours, which colour-blind readers can distinguish; symbols and letters repeat what they say.
BLUE, ORANGE, GREEN, PINK, AMBER, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
PALETTE = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY)
GREY = "#8a929c"


@dataclass(frozen=True)
class Series:
    """Marks that share a name and a style."""

    name: str  # in the legend; empty: not listed
    x: Sequence[Any]
    y: Sequence[Any]
    colour: str | Sequence[str] = BLUE
    kind: Literal["points", "bars", "line", "steps", "grid"] = "points"
    symbol: str = "circle"  # plotly's name of it
    size: int = 9
    errors: Sequence[float] | None = None  # along x if the figure has categories, else along y
    scale: Sequence[Any] = ()  # numbers shown by a colour scale instead of ``colour``; of a grid its rows
    texts: Sequence[Any] = ()  # one per mark
    written: bool = False  # texts stand beside their marks, not only under the pointer
    hover: str = ""  # plotly's template of the words under the pointer
    extra: Sequence[Sequence[Any]] = ()  # further values for ``hover``


@dataclass(frozen=True)
class Figure:
    """One figure: its marks and axes, its caption, its size on the page and on paper."""

    caption: str
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    categories: Sequence[str] = ()  # names along y, from the bottom
    steps: int = 0  # whole numbers along x, if it counts something
    height: int = 400  # pixels
    file: str = ""  # exported under this name, together with the others that have it; empty: not exported
    inches: float = 3.2  # height in that file

    @property
    def has_legend(self) -> bool:
        """Do its marks have names, and not too many?"""
        return 0 < len({series.name for series in self.series} - {""}) <= len(PALETTE)


def figures(data: RunData) -> dict[str, Figure]:
    """All figures for which a run has data, by name."""
    found: dict[str, Figure] = {}
    if data.get("ranking"):
        found |= {"ranking": _ranking(data), "pairs": _pairs(data), "progress": _progress(data), "map": _map(data)}
    for curve in CURVES:
        if any(value is not None for one in data["trainings"] for value in one["curves"][curve]):
            what = "Entropy of the policy." if curve == "entropy" else f"{curve.capitalize()} of the training batches."
            found[f"curve-{curve}"] = _curves(what, data["trainings"], curve)
    if data.get("finalists"):
        found["finals"] = _curves("Return of the training batches of the finalists.", data["finals"], "return", "")
    if np.any(data["violations"]["counts"]):
        found["violations"] = _violations(data)
    return found


def _ranking(data: RunData) -> Figure:
    """Evaluated workflows with their intervals, best on top; those that are not followed have another symbol."""
    rows = data["ranking"][::-1]
    series = []
    for follows, name, colour, symbol in ((True, "followed", BLUE, "circle"), (False, "not followed", ORANGE, "x")):
        own = [row for row in rows if row["follows"] == follows]
        if own:
            series.append(
                Series(
                    name, [row["mean_return"] for row in own], [row["workflow"] for row in own], colour, symbol=symbol,
                    errors=[data["quantile"] * row["standard_error"] for row in own],
                    extra=[[row["compliance"], row["kept"], row["visits"], row["observed_return"]] for row in own],
                    hover="%{y}<br>return %{x:.2f}<br>compliance %{customdata[0]:.3f}, kept %{customdata[1]:.3f}"
                    "<br>visits %{customdata[2]}, observed %{customdata[3]:.2f}",
                )
            )  # fmt: skip
    return Figure(
        "Posterior mean of each evaluated workflow with its 95 % interval for comparisons within this run.",
        series,
        x_label="return, 95 % interval within this run",
        categories=[row["workflow"] for row in rows],
        height=140 + 22 * len(rows),
        file="ranking",
        inches=0.9 + 0.2 * len(rows),
    )


def _pairs(data: RunData) -> Figure:
    """The effect of repairing one unit type before another."""
    rows = data["pairs"][::-1]
    names = [f"{row['first']} before {row['second']}" for row in rows]
    series = Series(
        "", [row["effect"] for row in rows], names, [BLUE if row["matters"] else GREY for row in rows], "bars",
        errors=[row["interval"] for row in rows],
        extra=[["matters" if row["matters"] else "not clear", row["weight"]] for row in rows],
        hover="%{y}<br>%{x:+.2f} return, %{customdata[0]}<br>weight %{customdata[1]:.3f}",
    )  # fmt: skip
    return Figure(
        "Effect on the return of repairing the first unit type before the second; grey: not clearly above zero.",
        [series],
        x_label="effect on the return, 95 % interval",
        categories=names,
        height=130 + 28 * len(rows),
        file="pairs",
        inches=0.9 + 0.25 * len(rows),
    )


def _progress(data: RunData) -> Figure:
    """Each evaluation: the return expected and found, the bound by which it was chosen, and the best so far."""
    rows = data["evaluations"]
    known = [row for row in rows if row["mean"] is not None]
    x, chosen = ([row["index"] + 1 for row in some] for some in (rows, known))
    series = [
        Series(
            "found", x, [row["mean_return"] for row in rows], errors=[row["standard_error"] for row in rows],
            texts=[row["workflow"] for row in rows], hover="%{text}<br>found %{y:.2f}",
        ),
        Series("best so far", x, best_so_far(data), GREEN, "steps"),
    ]  # fmt: skip
    if known:
        means, sigmas, bounds = ([row[name] for row in known] for name in ("mean", "sigma", "bound"))
        series += [
            Series("expected", chosen, means, GREY, symbol="line-ew-open", size=12, errors=sigmas),
            Series("bound", chosen, bounds, ORANGE, symbol="triangle-up-open"),
        ]
    return Figure(
        "Return expected by the Gaussian process (± one standard deviation), the upper confidence bound by which the "
        "workflow was chosen, and the return found.",
        series,
        x_label="evaluation",
        y_label="return",
        steps=len(rows),
        height=420,
        file="progress",
    )


def best_so_far(data: RunData) -> list[float | None]:
    """Highest return found up to each evaluation among those that follow their workflow; None before the first."""
    best: float | None = None
    line: list[float | None] = []
    for row in data["evaluations"]:
        if Obedience.read(row).follows(data["threshold"]) and (best is None or row["mean_return"] > best):
            best = row["mean_return"]
        line.append(best)
    return line


def _map(data: RunData) -> Figure:
    """All workflows in the plane, coloured by their expected return; evaluated ones are numbered."""
    rows = data["predictions"]
    at = {row["workflow"]: (row["x"], row["y"]) for row in rows}
    visits: dict[str, list[int]] = {}
    for row in data["evaluations"]:
        visits.setdefault(row["workflow"], []).append(row["index"] + 1)
    every = Series(
        "all workflows", [x for x, _ in at.values()], [y for _, y in at.values()], texts=list(at), size=11,
        scale=[row["mean"] for row in rows], extra=[[row["mean"], row["sigma"]] for row in rows],
        hover="%{text}<br>expected %{customdata[0]:.2f} ± %{customdata[1]:.2f}",
    )  # fmt: skip
    seen = Series(
        "evaluated", [at[name][0] for name in visits], [at[name][1] for name in visits], ORANGE, symbol="circle-open",
        size=17, texts=[",".join(map(str, numbers)) for numbers in visits.values()], written=True,
    )  # fmt: skip
    return Figure(
        "All workflows; those that disagree on few pairs are close together, and the expected return grows to the "
        "right. Some share a place.",
        [every, seen],
        height=520,
    )


def _curves(caption: str, trainings: Sequence[Any], curve: str, file: str = "curves") -> Figure:
    """One measure of trainings over their updates; trainings of a workflow share a colour."""
    names = list(dict.fromkeys(one["workflow"] or "no workflow" for one in trainings))
    series = []
    for one in trainings:
        name = one["workflow"] or "no workflow"
        colour = PALETTE[names.index(name) % len(PALETTE)]
        hover = f"{name}<br>{one['name']}, update %{{x}}: %{{y:.3f}}"
        series.append(Series(name, one["updates"], one["curves"][curve], colour, "line", hover=hover))
    longest = max(len(one["updates"]) for one in trainings)
    return Figure(caption, series, "update", curve, steps=longest, height=380, file=file, inches=2.0)


def _violations(data: RunData) -> Figure:
    """How often one unit type was repaired while another was due."""
    types, counts = data["violations"]["unit_types"], data["violations"]["counts"]
    series = Series(
        "", types, types, kind="grid", scale=counts, hover="%{y} repaired, %{x} was due: %{z}",
        texts=[[str(count) if count else "" for count in row] for row in counts],
    )  # fmt: skip
    caption = "Repairs in training batches that were not due: rows were repaired, columns were due."
    return Figure(caption, [series], "was due", "was repaired")


# ---------------------------------------------------------------------------------------------------- as plotly has it


def to_plotly(figure: Figure) -> dict[str, Any]:
    """A figure as plotly's plain dictionary of data and layout; the library is not needed to make it."""
    names = [series.name for series in figure.series]
    data = [
        _trace(series, bool(figure.categories), names.index(series.name) == number)
        for number, series in enumerate(figure.series)
    ]
    x: dict[str, Any] = {"title": {"text": figure.x_label}}
    y: dict[str, Any] = {"title": {"text": figure.y_label}}
    if 0 < figure.steps <= 25:
        x["dtick"] = 1
    if figure.categories:
        y |= {"categoryorder": "array", "categoryarray": figure.categories, "tickfont": {"size": 10}}
    elif any(series.kind == "grid" for series in figure.series):
        y["autorange"] = "reversed"
    elif not figure.x_label:  # places without units
        x = {"showticklabels": False, "zeroline": False, "showgrid": False}
        y = x | {"scaleanchor": "x"}
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}
    layout = {"xaxis": x, "yaxis": y, "height": figure.height, "showlegend": figure.has_legend, "legend": legend}
    return {"data": data, "layout": layout}


def _trace(series: Series, has_categories: bool, first: bool) -> dict[str, Any]:
    """A series as a trace; ``first``: of those with its name."""
    trace: dict[str, Any] = {"type": "scatter", "name": series.name, "x": series.x, "y": series.y}
    if series.errors is not None:
        bars = {"type": "data", "array": series.errors, "thickness": 1.5}
        trace["error_x" if has_categories else "error_y"] = bars
    trace |= {"text": series.texts} if series.texts else {}
    trace |= {"customdata": series.extra} if series.extra else {}
    trace |= {"hovertemplate": f"{series.hover}<extra></extra>"} if series.hover else {}
    colours = {"colorscale": "Cividis", "colorbar": {"thickness": 12}}
    if series.kind == "grid":
        return trace | colours | {"type": "heatmap", "z": series.scale, "reversescale": True, "texttemplate": "%{text}"}
    if series.kind == "bars":
        return trace | {"type": "bar", "orientation": "h", "marker": {"color": series.colour}}
    if series.kind in ("line", "steps"):
        steps = series.kind == "steps"
        line = {"color": series.colour, "width": 1.5, "shape": "hv" if steps else "linear"}
        mode = "lines" if steps or len(series.x) > 100 else "lines+markers"
        group = {"legendgroup": series.name, "showlegend": first}
        return trace | group | {"mode": mode, "line": line, "marker": {"size": 4}}
    marker: dict[str, Any] = {"color": series.colour, "symbol": series.symbol, "size": series.size}
    if series.scale:
        marker |= colours | {"color": series.scale}
        marker["colorbar"] = {"title": {"text": "expected<br>return"}, "thickness": 12}
    if series.written:
        marker["line"] = {"width": 2.5}
        return trace | {"mode": "markers+text", "textposition": "top center", "hoverinfo": "skip", "marker": marker}
    return trace | {"mode": "markers", "marker": marker}
