"""The figures of a report as plotly's plain dictionaries: data and layout, no library needed to make them."""

from __future__ import annotations

from typing import Any

import numpy as np

from workflow_rl.report.run_types import CURVES, RunData, TrainingData
from workflow_rl.search.findings import RankingRow
from workflow_rl.training.compliance import Obedience

# Okabe and Ito's colours, which colour-blind readers can tell apart; shapes and letters say the same.
BLUE, ORANGE, GREEN, PINK, AMBER, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
PALETTE = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY)
GREY = "#8a929c"

Figure = dict[str, Any]


def figures(data: RunData) -> dict[str, Figure]:
    """All figures for which a run has data, by name."""
    found: dict[str, Figure] = {}
    if data.ranking:
        found |= {"ranking": ranking(data), "pairs": pairs(data), "progress": progress(data), "map": order_map(data)}
    found |= {f"curve-{curve}": curves(data.trainings, curve) for curve in CURVES if has_curve(data, curve)}
    if data.finalists:
        found["finals"] = curves(data.finals, "return")
    if np.any(data.violations.counts):
        found["violations"] = violations(data)
    return found


def has_curve(data: RunData, curve: str) -> bool:
    """Is there any value of it?"""
    return any(any(value is not None for value in one.curves[curve]) for one in data.trainings)


def ranking(data: RunData) -> Figure:
    """Evaluated workflows with their errors, best on top; those that are not followed have another shape."""
    rows = data.ranking[::-1]
    traces = []
    for follows, name, colour, symbol in ((True, "followed", BLUE, "circle"), (False, "not followed", ORANGE, "x")):
        own = [row for row in rows if row.follows == follows]
        if own:
            traces.append(
                {
                    "type": "scatter", "mode": "markers", "name": name,
                    "x": [row.mean_return for row in own], "y": [row.workflow for row in own],
                    "error_x": _interval(own, data.quantile),
                    "marker": {"color": colour, "symbol": symbol, "size": 9},
                    "customdata": [
                        [row.compliance, row.kept, row.visits, row.observed_return] for row in own
                    ],
                    "hovertemplate": "%{y}<br>return %{x:.2f}<br>compliance %{customdata[0]:.3f}, kept "
                    "%{customdata[1]:.3f}<br>visits %{customdata[2]}, observed %{customdata[3]:.2f}<extra></extra>",
                }
            )  # fmt: skip
    names = [row.workflow for row in rows]
    layout = {
        "xaxis": {"title": {"text": "return, 95 % interval within this run"}},
        "yaxis": {"categoryorder": "array", "categoryarray": names, "tickfont": {"size": 10}},
        "height": 140 + 22 * len(rows), "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def _interval(rows: list[RankingRow], quantile: float) -> dict[str, Any]:
    """95 % intervals of rows with a standard error, as plotly draws them."""
    return {"type": "data", "array": [quantile * row.standard_error for row in rows], "thickness": 1.5}


def pairs(data: RunData) -> Figure:
    """What it is worth to put one unit type before another."""
    rows = data.pair_weights[::-1]
    colours = [BLUE if row.matters else GREY for row in rows]
    trace = {
        "type": "bar", "orientation": "h",
        "x": [row.effect for row in rows], "y": [f"{row.first} before {row.second}" for row in rows],
        "error_x": {"type": "data", "array": [row.interval for row in rows], "thickness": 1.5},
        "marker": {"color": colours},
        "customdata": [["matters" if row.matters else "not clear", row.weight] for row in rows],
        "hovertemplate": "%{y}<br>%{x:+.2f} return, %{customdata[0]}<br>weight %{customdata[1]:.3f}<extra></extra>",
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "effect on the return, 95 % interval"}},
        "yaxis": {"automargin": True},
        "height": 130 + 28 * len(rows),
    }
    return {"data": [trace], "layout": layout}


def progress(data: RunData) -> Figure:
    """Each evaluation: what was expected, the bound by which it was chosen, what was found, the best so far."""
    rows = data.evaluations
    x = [row.index + 1 for row in rows]
    known = [row for row in rows if row.mean is not None]
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "markers", "name": "found", "x": x, "y": [row.mean_return for row in rows],
            "error_y": {"type": "data", "array": [row.standard_error for row in rows]},
            "marker": {"color": BLUE, "size": 8}, "text": [row.workflow for row in rows],
            "hovertemplate": "%{text}<br>found %{y:.2f}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines", "name": "best so far", "x": x, "y": best_so_far(data),
            "line": {"color": GREEN, "shape": "hv"}, "connectgaps": False,
        },
    ]  # fmt: skip
    if known:
        places = [row.index + 1 for row in known]
        traces += [
            {
                "type": "scatter", "mode": "markers", "name": "expected", "x": places,
                "y": [row.mean for row in known],
                "error_y": {"type": "data", "array": [row.sigma for row in known], "thickness": 1},
                "marker": {"color": GREY, "symbol": "line-ew-open", "size": 12},
            },
            {
                "type": "scatter", "mode": "markers", "name": "bound", "x": places,
                "y": [row.bound for row in known],
                "marker": {"color": ORANGE, "symbol": "triangle-up-open", "size": 9},
            },
        ]  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "evaluation"}, "dtick": 1 if len(rows) <= 25 else 5},
        "yaxis": {"title": {"text": "return"}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "height": 420,
    }
    return {"data": traces, "layout": layout}


def best_so_far(data: RunData) -> list[float | None]:
    """Highest return found up to each evaluation among those that follow their workflow; None before the first."""
    best: float | None = None
    line: list[float | None] = []
    for row in data.evaluations:
        follows = Obedience.read(vars(row)).follows(data.train.compliance_threshold)
        if follows and (best is None or row.mean_return > best):
            best = row.mean_return
        line.append(best)
    return line


def order_map(data: RunData) -> Figure:
    """All workflows in the plane, coloured by what the process expects of them; evaluated ones are numbered."""
    rows = data.predictions
    at = {row.workflow: (row.x, row.y) for row in rows}
    visits: dict[str, list[int]] = {}
    for row in data.evaluations:
        visits.setdefault(row.workflow, []).append(row.index + 1)
    every = {
        "type": "scatter", "mode": "markers", "name": "all workflows", "text": [row.workflow for row in rows],
        "x": [row.x for row in rows], "y": [row.y for row in rows],
        "customdata": [[row.mean, row.sigma] for row in rows],
        "marker": {
            "color": [row.mean for row in rows], "colorscale": "Cividis", "size": 11,
            "colorbar": {"title": {"text": "expected<br>return"}, "thickness": 12},
        },
        "hovertemplate": "%{text}<br>expected %{customdata[0]:.2f} ± %{customdata[1]:.2f}<extra></extra>",
    }  # fmt: skip
    seen = {
        "type": "scatter", "mode": "markers+text", "name": "evaluated",
        "x": [at[name][0] for name in visits], "y": [at[name][1] for name in visits],
        "text": [",".join(map(str, numbers)) for numbers in visits.values()], "textposition": "top center",
        "marker": {"color": "rgba(0,0,0,0)", "line": {"color": ORANGE, "width": 2.5}, "size": 17},
        "hoverinfo": "skip",
    }  # fmt: skip
    hidden = {"showticklabels": False, "zeroline": False, "showgrid": False}
    layout = {
        "xaxis": dict(hidden), "yaxis": {**hidden, "scaleanchor": "x"}, "height": 520,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    }  # fmt: skip
    return {"data": [every, seen], "layout": layout}


def curves(trainings: list[TrainingData], curve: str) -> Figure:
    """One measure of trainings over their updates; trainings of a workflow have one colour."""
    colours: dict[str, str] = {}
    traces = []
    mode = "lines+markers" if all(len(one.updates) <= 100 for one in trainings) else "lines"
    for training in trainings:
        name = training.workflow or "no workflow"
        first = name not in colours
        colour = colours.setdefault(name, PALETTE[len(colours) % len(PALETTE)])
        traces.append(
            {
                "type": "scatter", "mode": mode, "name": name, "legendgroup": name, "showlegend": first,
                "x": training.updates, "y": training.curves[curve], "line": {"color": colour, "width": 1.5},
                "marker": {"size": 4},
                "hovertemplate": f"{name}<br>{training.name}, update %{{x}}: %{{y:.3f}}<extra></extra>",
            }
        )  # fmt: skip
    longest = max(len(one.updates) for one in trainings)
    layout = {
        "xaxis": {"title": {"text": "update"}, "dtick": 1} if longest <= 25 else {"title": {"text": "update"}},
        "yaxis": {"title": {"text": curve}},
        "height": 380,
        "showlegend": len(colours) <= 6,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    }
    return {"data": traces, "layout": layout}


def violations(data: RunData) -> Figure:
    """How often one unit type was repaired while another was due."""
    types, counts = data.violations.unit_types, data.violations.counts
    trace = {
        "type": "heatmap", "z": counts, "x": types, "y": types, "colorscale": "Cividis", "reversescale": True,
        "text": [[str(count) if count else "" for count in row] for row in counts], "texttemplate": "%{text}",
        "hovertemplate": "%{y} repaired, %{x} was due: %{z}<extra></extra>", "colorbar": {"thickness": 12},
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "was due"}},
        "yaxis": {"title": {"text": "was repaired"}, "autorange": "reversed"},
        "height": 400,
    }
    return {"data": [trace], "layout": layout}
