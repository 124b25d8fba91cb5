"""Cells: the units of work of a study, each kept on disk as soon as it is finished.

A cell is the name of a task (tasks.py) with arguments that JSON can hold. Its outcome is kept under a digest of both
and of the source: a killed study resumes where it was, studies that need the same training share it, and a change of
rules, learner or presets makes every cell anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.results import source_digest
from workflow_rl.envs.parent_watch import end_with
from workflow_rl.errors import UserError
from workflow_rl.runs import hold, parse_json, write_atomically

Say = Callable[[str], None]


@dataclass(frozen=True)
class Cell:
    """One unit of work.

    Args:
        task: the name of a function of tasks.py.
        arguments: its arguments.
        alone: whether it runs in a new process while nothing else runs, because its time or memory is measured.
    """

    task: str
    arguments: dict[str, Any] = field(default_factory=dict)
    alone: bool = False

    @property
    def key(self) -> str:
        """Digest of source, task and arguments."""
        text = json.dumps([source_digest(), self.task, self.arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        flat = {**self.arguments, **self.arguments.get("values", {})}
        words = (
            f"{name}={value}" for name, value in flat.items() if value != "" and not isinstance(value, (dict, list))
        )
        return f"{self.task} {' '.join(words)}"


@dataclass(frozen=True)
class Kept:
    """A finished cell as it is kept on disk."""

    task: str
    arguments: dict[str, Any]
    seconds: float
    outcome: Any


@dataclass
class Laboratory:
    """Computes cells and keeps them.

    Args:
        folder: where finished cells and trained policies are kept.
        jobs: the number of cells computed in parallel.
        say: receives a line for each finished cell.
    """

    folder: Path
    jobs: int
    say: Say
    used: set[str] = field(default_factory=set)  # keys of the cells that were asked for
    pool: ProcessPoolExecutor | None = None
    study: str = ""

    def begin(self, study: str) -> None:
        """Counts the cells from now on for this study."""
        self.study, self.used = study, set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Locks the folder for this process, and ends the workers afterwards."""
        try:
            (self.folder / "cells").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.folder}: cannot write there ({error.strerror}).") from None
        handle = hold(self.folder)
        try:
            yield
        finally:
            if self.pool:
                self.pool.shutdown(cancel_futures=True)
            os.close(handle)

    def ask(self, cells: Sequence[Cell]) -> list[Any]:
        """Outcomes of the cells, in their order; those that are not kept are computed now."""
        known = {cell.key: self._kept(cell) for cell in cells}
        missing = list({cell.key: cell for cell in cells if known[cell.key] is None}.values())
        done = len(known) - len(missing)
        for cell, kept in self._work(missing):
            known[cell.key] = kept
            done += 1
            self.say(f"{self.study}: {done} of {len(known)}: {cell}, {kept.seconds:.1f} s")
        found = {key: kept for key, kept in known.items() if kept}
        self.used |= set(found)
        return [found[cell.key].outcome for cell in cells]

    def _kept(self, cell: Cell) -> Kept | None:
        path = self.folder / "cells" / f"{cell.key}.json"
        try:
            found = Kept(**parse_json(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{path} is damaged ({error}); remove it to have it made again.") from None
        if (found.task, found.arguments) != (cell.task, cell.arguments):
            raise UserError(f"{path} holds another cell; remove it to have it made again.")
        return found

    def _work(self, cells: list[Cell]) -> Iterator[tuple[Cell, Kept]]:
        """First those that may run in parallel, then the others one by one."""
        parallel = [cell for cell in cells if not cell.alone]
        if parallel:
            self.pool = self.pool or _workers(self.jobs)
            yield from self._in_pool(self.pool, parallel)
        for cell in cells:
            if cell.alone:
                with _workers(1) as own:
                    yield from self._in_pool(own, [cell])

    def _in_pool(self, pool: ProcessPoolExecutor, cells: list[Cell]) -> Iterator[tuple[Cell, Kept]]:
        try:
            waiting: dict[Future[Kept], Cell] = {
                pool.submit(work, cell.task, cell.arguments, str(self.folder)): cell for cell in cells
            }
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool:
            raise UserError("a process of the study died; start the study again, it resumes where it was.") from None


def _workers(jobs: int) -> ProcessPoolExecutor:
    """Processes with one thread each that end with this one."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by those that are started: idle threads would wait busily
    return ProcessPoolExecutor(jobs, get_context("spawn"), end_with, (os.getpid(),))


def work(task: str, arguments: dict[str, Any], folder: str) -> Kept:
    """Computes one cell and keeps its outcome; runs in a worker process."""
    import torch

    from benchmarks.studies import tasks

    torch.set_num_threads(1)
    began = time.perf_counter()
    key = Cell(task, arguments).key
    function, place = getattr(tasks, task), Path(folder) / "cells" / f"{key}.safetensors"
    outcome = function(**({"place": place} if "place" in signature(function).parameters else {}), **arguments)
    kept = Kept(task, arguments, time.perf_counter() - began, outcome)
    write_atomically(Path(folder) / "cells" / f"{key}.json", json.dumps(vars(kept), indent=1).encode())
    return kept
