"""The figures of a run, each described once for the page and for papers, and the numbers behind them as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.errors import UserError
from workflow_rl.report.drawing import BLUE, GREEN, GREY, ORANGE, PALETTE, Figure, Series, to_paper
from workflow_rl.report.run_types import CURVES, RunData, TrainingData
from workflow_rl.runs import write_atomically
from workflow_rl.search.finalists import LENGTHS
from workflow_rl.training.compliance import Obedience

RANGE = "the mean and the range of all trainings of a colour."
Table = Sequence[Mapping[str, Any]]


def figures(data: RunData) -> dict[str, Figure]:
    """All figures for which a run has data, by name."""
    found: dict[str, Figure] = {}
    if data.ranking:
        found |= {"ranking": _ranking(data), "pairs": _pairs(data), "progress": _progress(data), "map": _map(data)}
    for curve in CURVES:
        if any(value is not None for one in data.trainings for value in one.curves[curve]):
            what = "Entropy of the policy" if curve == "entropy" else f"{curve.capitalize()} of the training batches"
            found[f"curve-{curve}"] = _curves(f"{what}: {RANGE}", data.trainings, curve, _groups(data), "curves")
    if data.finalists:
        finals = [one for one in data.finals if one.name.endswith(f"-{max(LENGTHS)}")]
        found["finals"] = _curves(f"Return of the finalists' longer trainings: {RANGE}", finals, "return")
    return found


def _ranking(data: RunData) -> Figure:
    """Evaluated workflows with their intervals, best on top; those that are not followed have another symbol."""
    rows = data.ranking[::-1]
    series = []
    for follows, name, colour, symbol in ((True, "followed", BLUE, "circle"), (False, "not followed", ORANGE, "x")):
        own = [row for row in rows if row.follows == follows]
        if own:
            series.append(
                Series(
                    name, [row.mean_return for row in own], [row.workflow for row in own], colour, symbol=symbol,
                    errors=[data.quantile * row.standard_error for row in own],
                )
            )  # fmt: skip
    return Figure(
        "Posterior mean of each evaluated workflow with its 95 % interval for comparisons within this run.",
        series,
        x_label="return, 95 % interval within this run",
        categories=[row.workflow for row in rows],
        file="ranking",
        inches=0.9 + 0.2 * len(rows),
    )


def _pairs(data: RunData) -> Figure:
    """The effect of repairing one unit type before another."""
    rows = data.pair_weights[::-1]
    names = [f"{row.first} before {row.second}" for row in rows]
    series = Series(
        "", [row.effect for row in rows], names, [BLUE if row.matters else GREY for row in rows], "bars",
        errors=[row.interval for row in rows],
    )  # fmt: skip
    return Figure(
        "Effect on the return of repairing the first unit type before the second; grey: not clearly above zero.",
        [series],
        x_label="effect on the return, 95 % interval",
        categories=names,
        file="pairs",
        inches=0.9 + 0.25 * len(rows),
    )


def _progress(data: RunData) -> Figure:
    """Each evaluation: the return expected and found, the bound by which it was chosen, and the best so far."""
    rows = data.evaluations
    known = [row for row in rows if row.mean is not None]
    x, chosen = ([row.index + 1 for row in some] for some in (rows, known))
    series = [
        Series(
            "found", x, [row.mean_return for row in rows], errors=[row.standard_error for row in rows],
            texts=[row.workflow for row in rows], hover="%{text}<br>found %{y:.2f}",
        ),
        Series("best so far", x, best_so_far(data), GREEN, "steps"),
    ]  # fmt: skip
    if known:
        means, sigmas, bounds = ([getattr(row, name) for row in known] for name in ("mean", "sigma", "bound"))
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
    for row in data.evaluations:
        if Obedience.read(vars(row)).follows(data.train.compliance_threshold) and (
            best is None or row.mean_return > best
        ):
            best = row.mean_return
        line.append(best)
    return line


def _map(data: RunData) -> Figure:
    """All workflows in the plane, coloured by their expected return; evaluated ones are numbered."""
    rows = data.predictions
    at = {row.workflow: (row.x, row.y) for row in rows}
    visits: dict[str, list[int]] = {}
    for row in data.evaluations:
        visits.setdefault(row.workflow, []).append(row.index + 1)
    every = Series(
        "all workflows" if data.all_predicted else "workflows", [x for x, _ in at.values()],
        [y for _, y in at.values()], texts=list(at), size=11,
        scale=[row.mean for row in rows], extra=[[row.mean, row.sigma] for row in rows],
        hover="%{text}<br>expected %{customdata[0]:.2f} ± %{customdata[1]:.2f}",
    )  # fmt: skip
    seen = Series(
        "evaluated", [at[name][0] for name in visits], [at[name][1] for name in visits], GREY, symbol="circle-open",
        size=17, texts=[f"evaluation {', '.join(map(str, numbers))}" for numbers in visits.values()], hover="%{text}",
    )  # fmt: skip
    return Figure(
        f"{'All' if data.all_predicted else 'The evaluated'} workflows; those that disagree on few pairs are close "
        "together, and the expected return grows to the right. Some share a place.",
        [seen, every],
        height=520,
    )


def _groups(data: RunData) -> dict[str, str]:
    """The group of each ranked workflow by its place; none for a training."""
    where = {row.workflow: "as good as the best" if row.equal_to_best else "clearly behind" for row in data.ranking}
    return where | {row.workflow: "not followed" for row in data.ranking if not row.follows}


def _curves(
    caption: str, trainings: Sequence[TrainingData], curve: str, groups: Mapping[str, str] | None = None, file: str = ""
) -> Figure:
    """One measure of trainings over their updates: mean and range of each group, by default of each workflow."""
    found: dict[str, dict[int, list[float]]] = {name: {} for name in dict.fromkeys((groups or {}).values())}
    for one in trainings:
        name = one.workflow or "no workflow"
        own = found.setdefault(groups.get(name, "not ranked") if groups else name, {})
        for update, value in zip(one.updates, one.curves[curve], strict=True):
            if value is not None:
                own.setdefault(update, []).append(value)
    series = []
    for colour, (name, values) in zip(cycle(PALETTE), found.items(), strict=False):
        x = sorted(values)
        band = [(min(values[update]), max(values[update])) for update in x]
        means = [float(np.mean(values[update])) for update in x]
        hover = f"{name}<br>update %{{x}}: %{{y:.3f}}"
        is_range = any(low < high for low, high in band)
        series.append(Series(name, x, means, colour, "line", band=band if is_range else (), hover=hover))
    longest = max((len(one.updates) for one in trainings), default=0)
    return Figure(caption, series, "update", curve, steps=longest, height=380, file=file, inches=2.0)


def write_figures(data: RunData, folder: Path) -> list[str]:
    """Writes all figures and tables for which the run has data; returns the names of the files."""
    panels: dict[str, list[Figure]] = {}
    for figure in figures(data).values():
        panels.setdefault(figure.file, []).append(figure)
    files = {f"{name}.{kind}": to_paper(own, kind) for name, own in panels.items() if name for kind in ("svg", "pdf")}
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
    types = data.violations.unit_types
    found: dict[str, Table] = {
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
            {"repaired": name} | dict(zip(types, row, strict=True))
            for name, row in zip(types, data.violations.counts, strict=True)
        ],
    }
    return {name: rows for name, rows in found.items() if rows}


def _rows(rows: Sequence[Any], *drop: str) -> Table:
    return [{name: value for name, value in asdict(row).items() if name not in drop} for row in rows]


def _csv(rows: Table) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
