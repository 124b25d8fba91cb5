"""What a search asks of an executor, and what it tells its listener while it runs.

Executors are processes of this machine (worker_pool) or a Ray cluster (ray_executor).

An executor serves one search, which closes it. A training is a pure function of its job: its result does not depend on
where it ran or how often it was restarted. Its files are in the job's directory before the executor reports it trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workflow_rl.config import SearchConfig, TrainConfig
from workflow_rl.engine.network import Network
from workflow_rl.search.findings import EvaluationRow

if TYPE_CHECKING:  # takes seconds to import, while a cluster starts
    from workflow_rl.search.strategies import Suggestion
    from workflow_rl.training.events import WorkflowResult

MOST_DEATHS = 3  # of processes that trained one job, before the job itself is blamed


@dataclass(frozen=True)
class Job:
    """One training: its name, its run directory, its settings and the network that it defends."""

    name: str
    path: Path
    config: TrainConfig
    network: Network


@dataclass(frozen=True)
class News:
    """What happened to the job of this name, or to the executor itself if the name is empty."""

    name: str


@dataclass(frozen=True)
class Progress(News):
    """A job's latest update; None where no episode has ended or nothing was repaired."""

    update: int
    mean_return: float | None
    compliance: float | None


@dataclass(frozen=True)
class Trained(News):
    """A job is done."""

    result: WorkflowResult


@dataclass(frozen=True)
class Restarted(News):
    """A job was lost and continues in another process."""

    reason: str


@dataclass(frozen=True)
class Machines(News):
    """The number of trainings that fit at once, ``room``, has changed."""

    text: str
    room: int
    nodes: int


class Executor(ABC):
    """Trains jobs, several at once. A job that is already finished is answered from its directory."""

    @property
    @abstractmethod
    def room(self) -> int:
        """Trainings that can run at once; may change."""

    @abstractmethod
    def submit(self, job: Job) -> None:
        """Adds a job to the queue."""

    @abstractmethod
    def news(self, timeout: float) -> News | None:
        """The next news; None if there are none for ``timeout`` seconds. A UserError of a training is raised here."""

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Stops everything that was started; may be called more than once."""


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
