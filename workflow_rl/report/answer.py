"""Cells of the tables that the terminal and the report share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workflow_rl.search.findings import FinalistRow, RankingRow
from workflow_rl.training.compliance import Obedience

FINALIST_COLUMNS = ["return", "half as long", "compliance", "kept", "repairs", "idle fixes", "reverses"]
OBEDIENCE_COLUMNS = ["compliance", "kept", "repairs", "idle fixes"]


def decimals(value: float | None, digits: int) -> str:
    """A figure as a cell of a table; empty if it is undefined."""
    return "" if value is None else f"{value:.{digits}f}"


def finalist_rows(finalists: Sequence[FinalistRow]) -> list[list[str]]:
    """The finalists as rows of a table: the workflow and FINALIST_COLUMNS."""
    return [
        [
            row.workflow, f"{row.mean_return:.2f} ± {row.standard_error:.2f}", f"{row.half_as_long:.2f}",
            decimals(row.compliance, 3) or "nothing shown", decimals(row.kept, 3), f"{row.repairs:.1f}",
            f"{row.idle_fixes:.1f}", (row.reverses + ("" if row.followed else " (NOT followed)")).strip(),
        ]
        for row in finalists
    ]  # fmt: skip


def against_best(row: RankingRow, digits: int) -> str:
    """How a workflow of the ranking compares with the best."""
    if not row.follows:
        return "not followed"
    return "equal" if row.equal_to_best else f"{row.behind_best:.{digits}f} ± {row.behind_error:.{digits}f}"


def obedience_cells(found: Mapping[str, Any]) -> list[str]:
    """How an order was kept, as OBEDIENCE_COLUMNS of a table; repairs and idle fixes are those of an episode."""
    own = Obedience.read(found)
    kept = [f"{own.compliance:.3f} ± {own.compliance_error:.3f}", f"{own.kept:.3f}"] if own.shown else [own.words(), ""]
    return [*kept, f"{own.repairs:.1f}", f"{own.idle_fixes:.1f}"]
