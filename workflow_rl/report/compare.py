"""Several runs on one page: results side by side, and the settings in which they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from workflow_rl.config import opponent_words
from workflow_rl.report.listing import compare_runs
from workflow_rl.report.page.render import intervals, render
from workflow_rl.report.run_types import RunData
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


def comparison(paths: list[Path], runs: list[RunData], answers: dict[str, str]) -> str:
    """The page of some runs; ``answers`` are what each run found, in words."""
    rows = [row_of(data) for data in runs]
    known = [(row.mean_return, row.interval) if row.mean_return is not None else (math.nan, 0.0) for row in rows]
    differ = compare_runs(paths).settings_that_differ
    return render(
        "comparison.html",
        runs[0].network,
        {},
        rows=rows,
        return_scale=intervals([value for value, _ in known], [half for _, half in known]),
        answers=answers,
        differ=differ,
        paths=list(map(str, paths)),
    )


def row_of(data: RunData) -> ComparedRow:
    """One run's result and throughput."""
    opponent = opponent_words(data.train.red_agent, data.train.takeover)
    about = (data.run, data.kind, data.state, opponent, data.train.edition, data.time.transitions_per_s)
    best = data.best_row if data.kind == "search" else data.trainings[0].result
    if not best:
        return ComparedRow(*about)
    if isinstance(best, FinalistRow):  # its error is that of its trainings and contains the level
        error, interval = best.standard_error, best.interval
    else:
        error = math.hypot(best.standard_error, data.level_error or 0.0)  # the level is not common to other runs
        interval = data.quantile * error
    return ComparedRow(*about, best.workflow, best.mean_return, error, interval, best.compliance)
