"""What a search asks of an executor: processes of this machine (worker_pool) or a Ray cluster (ray_executor).

An executor serves one search, which closes it. A training is a pure function of its job: its result does not depend on
where it ran or how often it was restarted. Its files are in the job's directory before the executor reports it trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network import Network

if TYPE_CHECKING:  # takes seconds to import, while a cluster starts
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
