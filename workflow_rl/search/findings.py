"""What a search found: rows that are built once and shown in files, on the terminal and in the report.

The names and the sequence of the fields are those of result.json and of the CSV files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class EvaluationRow:
    """One evaluation of a workflow: the prediction it was chosen by, and the outcome of its trainings."""

    index: int
    workflow: str
    visit: int  # earlier evaluations of the same workflow
    mean: float | None  # predicted, as sigma and bound; None if there was no prediction
    sigma: float | None
    bound: float | None
    reason: str
    mean_return: float
    standard_error: float
    returns: tuple[float, ...]  # (n_replicates,)
    compliance: float | None
    compliance_error: float | None
    kept: float | None
    repairs: float
    idle_fixes: float
    updates: int
    episodes: int
    stop_reason: str


@dataclass(frozen=True)
class RankingRow:
    """An evaluated workflow: its posterior mean, its distance to the best, and how its order was kept."""

    workflow: str
    mean_return: float
    standard_error: float  # for comparisons within the search
    compliance: float | None
    compliance_error: float | None
    kept: float | None
    repairs: float
    idle_fixes: float
    visits: int
    stop_reason: str
    follows: bool
    behind_best: float
    behind_error: float
    equal_to_best: bool
    observed_return: float
    episodes: int


@dataclass(frozen=True)
class FinalistRow:
    """A finalist after its longer trainings; ``reverses`` is the priority of the best workflow that it reverses."""

    workflow: str
    reverses: str
    mean_return: float
    standard_error: float
    interval: float
    half_as_long: float  # mean return after half the training
    followed: bool
    compliance: float | None
    compliance_error: float | None
    kept: float | None
    repairs: float
    idle_fixes: float
    updates: int


@dataclass(frozen=True)
class PairEffect:
    """The gain of putting ``first`` before ``second`` instead of after it, the two being neighbours."""

    first: str
    second: str
    effect: float  # always >= 0: the pair is named in the better sequence
    standard_error: float
    interval: float  # half of its 95 % interval, for this pair alone
    weight: float  # of the kernel
    matters: bool  # the effect is clearly not zero, also in view of how many pairs there are
    half_as_long: float | None = None  # of finished trainings: the effect after half the training, with the same sign
    rival: str = ""  # of finished trainings: the best workflow with the pair the other way round


@dataclass(frozen=True)
class Defender:
    """The best policy of the best workflow, evaluated on fresh games; ``training`` is the run it comes from."""

    policy: str
    training: str
    mean_return: float
    standard_error: float
    compliance: float | None
    compliance_error: float | None
    kept: float | None
    repairs: float
    idle_fixes: float


@dataclass(frozen=True)
class Findings:
    """The answer of a search: by its finalists if there are any, else by the ranking."""

    best: str | None  # None if no workflow is followed
    equal_to_best: list[str]
    finalists: list[FinalistRow]
    pair_weights: list[PairEffect]
    ranking: list[RankingRow]
    training_noise: float
    level_error: float | None

    @property
    def best_row(self) -> FinalistRow | RankingRow | None:
        """The row of the best workflow: among the finalists if there are any, else in the ranking."""
        rows = self.finalists or self.ranking
        return next((row for row in rows if row.workflow == self.best), None)


@dataclass(frozen=True)
class SearchResult(Findings):
    """Everything that result.json of a search says."""

    red_agent: str
    edition: str
    takeover: str
    backend: str
    seed: int
    evaluations: int
    replicates: int
    seconds: float
    transitions: int
    run: str
    defender: Defender | None
    report: str = ""  # the page, if one was written

    def to_json(self) -> dict[str, Any]:
        """As in result.json; the page only if there is one."""
        return {name: value for name, value in asdict(self).items() if name != "report" or value}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SearchResult:
        """From result.json of this version or an earlier one."""
        rows = {
            "finalists": [row_from_json(FinalistRow, row) for row in values.get("finalists") or []],
            "pair_weights": [row_from_json(PairEffect, row) for row in values.get("pair_weights") or []],
            "ranking": [row_from_json(RankingRow, row) for row in values.get("ranking") or []],
            "defender": row_from_json(Defender, values["defender"]) if values.get("defender") else None,
        }
        return row_from_json(cls, {"takeover": "0", **values, **rows})


def row_from_json(kind: type[Row], values: Mapping[str, Any]) -> Row:
    """A dataclass from values by name, whatever else is among them; missing ones have their default or are None."""
    defaults = {item.name: None if item.default is MISSING else item.default for item in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: values.get(name, default) for name, default in defaults.items()})
