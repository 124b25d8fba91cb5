"""Cells: the small pieces of work that a study is made of, each kept on disk as soon as it is done.

A cell is a task of tasks.py by name, with arguments that JSON can hold. Its outcome is kept under a digest of both, so
that a study that was killed goes on where it was, and studies that need the same training share it. Outcomes remember
the commit they were made by; the result file of a study lists all of them.
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
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from workflow_rl.envs.parent_watch import end_with
from workflow_rl.errors import UserError
from workflow_rl.runs import commit, hold, parse_json, write_atomically

Say = Callable[[str], None]

VERSION = 3  # part of every key; to be raised when learner, presets, rules or tasks change, so that no old cell is used


@dataclass(frozen=True)
class Cell:
    """One piece of work.

    Args:
        task: name of a function of tasks.py.
        arguments: what it is called with.
        alone: nothing runs beside it, in a process of its own: its time or memory is measured.
    """

    task: str
    arguments: dict[str, Any] = field(default_factory=dict)
    alone: bool = False

    @property
    def key(self) -> str:
        """Digest of task and arguments."""
        text = json.dumps([VERSION, self.task, self.arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        flat = {**self.arguments, **self.arguments.get("values", {})}
        words = (
            f"{name}={value}" for name, value in flat.items() if value != "" and not isinstance(value, (dict, list))
        )
        return f"{self.task} {' '.join(words)}"


@dataclass
class Laboratory:
    """Where cells are worked on and kept.

    Args:
        folder: has a file for each cell that is done, and the policies that were trained.
        jobs: cells at once.
        say: told about each cell.
    """

    folder: Path
    jobs: int
    say: Say
    commits: set[str] = field(default_factory=set)
    spent: dict[str, float] = field(default_factory=dict)  # seconds of each cell that was asked for
    pool: ProcessPoolExecutor | None = None
    study: str = ""

    def begin(self, study: str) -> None:
        """What is asked from now on is for this study."""
        self.study, self.commits, self.spent = study, set(), {}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other processes out while this one works in the folder, and ends the workers afterwards."""
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
        """Outcomes of the cells, in their sequence; those that are not kept are made now."""
        known = {cell.key: self._kept(cell) for cell in cells}
        missing = list({cell.key: cell for cell in cells if known[cell.key] is None}.values())
        done = len(known) - len(missing)
        for cell, outcome in self._work(missing):
            known[cell.key] = outcome
            done += 1
            self.say(f"{self.study}: {done} of {len(known)}: {cell}, {outcome['seconds']:.1f} s")
        for key, kept in known.items():
            assert kept is not None
            self.commits.add(kept["commit"])
            self.spent[key] = kept["seconds"]
        return [found["outcome"] for found in (known[cell.key] for cell in cells) if found is not None]

    def _kept(self, cell: Cell) -> dict[str, Any] | None:
        path = self.folder / "cells" / f"{cell.key}.json"
        try:
            found: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
            if found["task"] == cell.task and found["arguments"] == cell.arguments:
                return found
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is damaged ({error}); remove it to have it made again.") from None
        raise UserError(f"{path} holds another cell; remove it to have it made again.")

    def _work(self, cells: list[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Those that may run beside others first, then the others one by one."""
        beside = [cell for cell in cells if not cell.alone]
        if beside:
            self.pool = self.pool or _workers(self.jobs)
            yield from self._in_pool(self.pool, beside)
        for cell in cells:
            if cell.alone:
                with _workers(1) as own:
                    yield from self._in_pool(own, [cell])

    def _in_pool(self, pool: ProcessPoolExecutor, cells: list[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
        try:
            waiting: dict[Future[dict[str, Any]], Cell] = {
                pool.submit(work, cell.task, cell.arguments, str(self.folder)): cell for cell in cells
            }
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except BrokenProcessPool:
            raise UserError("a process of the study died; start the study again, it goes on where it was.") from None


def _workers(jobs: int) -> ProcessPoolExecutor:
    """Processes of one thread each, that end with this one."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by those that are started: idle threads would wait busily
    return ProcessPoolExecutor(jobs, get_context("spawn"), end_with, (os.getpid(),))


def work(task: str, arguments: dict[str, Any], folder: str) -> dict[str, Any]:
    """Does one cell and keeps its outcome; runs in a process of its own."""
    import torch

    from benchmarks.studies import tasks

    torch.set_num_threads(1)
    made_by = commit()  # of the source as it is now
    began = time.perf_counter()
    key = Cell(task, arguments).key
    outcome = getattr(tasks, task)(Path(folder) / "cells" / f"{key}.safetensors", **arguments)
    kept = {"task": task, "arguments": arguments, "commit": made_by, "seconds": time.perf_counter() - began}
    kept["outcome"] = outcome
    write_atomically(Path(folder) / "cells" / f"{key}.json", json.dumps(kept, indent=1).encode())
    return kept
