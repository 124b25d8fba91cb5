"""What a search tells its listener while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from workflow_rl.config import SearchConfig
from workflow_rl.search.executor import News
from workflow_rl.search.findings import EvaluationRow

if TYPE_CHECKING:  # takes seconds to import
    from workflow_rl.search.strategies import Suggestion


@dataclass(frozen=True)
class Started:
    """A search starts, or continues after ``done`` evaluations."""

    run: str
    config: SearchConfig
    done: int


@dataclass(frozen=True)
class Suggested:
    """A workflow is to be evaluated; after a resume, ``finished`` of its trainings are already done."""

    index: int
    suggestion: Suggestion
    finished: int = 0


@dataclass(frozen=True)
class BestSoFar:
    """The followed workflow with the highest posterior mean."""

    workflow: str
    mean: float
    sigma: float


@dataclass(frozen=True)
class Observed:
    """An evaluation is done and the process has observed it."""

    row: EvaluationRow
    best: BestSoFar | None


@dataclass(frozen=True)
class Overtaken:
    """The search stopped waiting for some evaluations."""

    indices: list[int]
    text: str


@dataclass(frozen=True)
class FinalistsChosen:
    """The second stage starts with these workflows."""

    workflows: list[str]


What: TypeAlias = News | Started | Suggested | Observed | Overtaken | FinalistsChosen


@dataclass(frozen=True)
class SearchEvent:
    """What happened, None if only time has passed, and the seconds that the search had taken by then."""

    seconds: float
    what: What | None


Say: TypeAlias = Callable[[SearchEvent], None]
