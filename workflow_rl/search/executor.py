"""What a search asks of whoever trains for it: processes of this machine (worker_pool) or a Ray cluster (cluster).

An executor is for one search, which closes it. A training is a pure function of its task, so where and how often it
was begun does not show in its result. Its files are in the task's directory as soon as it is reported done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_rl.config import TrainConfig

MOST_DEATHS = 3  # of processes that trained one task, before it is taken to be the task's fault


@dataclass(frozen=True)
class Task:
    """One training: its name, its run directory and its settings."""

    name: str
    path: Path
    config: TrainConfig


@dataclass(frozen=True)
class Report:
    """News of a task, or of the executor if ``name`` is empty.

    ``kind`` is progress, done (``value`` is the result), restarted (``reason``: the training goes on in another
    process) or machines (``text``: there is more or less room than before).
    """

    name: str
    kind: str
    value: dict[str, Any]


class Executor(ABC):
    """Trains tasks, several at once. A task that was done before is answered from its directory."""

    @property
    @abstractmethod
    def room(self) -> int:
        """Trainings that can be under way at once; may change."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Puts a task into the queue."""

    @abstractmethod
    def report(self, timeout: float) -> Report | None:
        """The next news; None if there are none for ``timeout`` seconds. A UserError of a training is raised here."""

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Ends everything that was begun, whatever it does; more than once does no harm."""
