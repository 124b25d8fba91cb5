"""Processes that train side by side on this machine. One that dies is replaced and its task given out again."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import deque
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from workflow_rl.config import config_to_json
from workflow_rl.errors import UserError
from workflow_rl.search.executor import MOST_DEATHS, Executor, Report, Task


class _Worker:
    """A process, its present task, and a thread that passes on what it says."""

    def __init__(self, log: Path, inbox: Queue[tuple[_Worker, dict[str, Any] | None]]) -> None:
        self.task: Task | None = None
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "workflow_rl.search.worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True,
                start_new_session=True,
            )  # fmt: skip
        self._listener = Thread(target=self._listen, args=(inbox,), daemon=True)
        self._listener.start()

    def _listen(self, inbox: Queue[tuple[_Worker, dict[str, Any] | None]]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # a line cut off by the worker's death
                inbox.put((self, json.loads(line)))
        inbox.put((self, None))

    def give(self, task: Task) -> None:
        """Hands over a task; if the process is dead, its listener says so."""
        self.task = task
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"path": str(task.path), "config": config_to_json(task.config)}) + "\n")
            self.process.stdin.flush()

    def end(self) -> int:
        """Ends the process if it still runs and gives back its pipes; returns its exit code."""
        self.process.kill()
        code = self.process.wait()
        self._listener.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return code


class WorkerPool(Executor):
    """Up to ``jobs`` trainings at once, each in a process with one thread.

    Args:
        jobs: number of processes.
        log: file for what the processes complain about.
    """

    def __init__(self, jobs: int, log: Path) -> None:
        self.log = log
        self._inbox: Queue[tuple[_Worker, dict[str, Any] | None]] = Queue()
        self._waiting: deque[Task] = deque()
        self._deaths: dict[str, int] = {}
        self.workers = [_Worker(log, self._inbox) for _ in range(jobs)]

    @property
    def room(self) -> int:
        """The number of processes."""
        return len(self.workers)

    def submit(self, task: Task) -> None:
        """Puts a task into the queue."""
        self._waiting.append(task)
        self._hand_out()

    def report(self, timeout: float) -> Report | None:
        """The next news; None if there are none for ``timeout`` seconds."""
        try:
            worker, message = self._inbox.get(timeout=timeout)
        except Empty:
            return None
        task = worker.task
        if message is None:
            return self._replace(worker)
        assert task is not None
        if "error" in message:
            raise UserError(message["error"])
        if "progress" in message:
            return Report(task.name, "progress", message["progress"])
        worker.task = None
        self._hand_out()
        return Report(task.name, "done", message["done"])

    def close(self) -> None:
        """Ends the processes, whatever they do."""
        for worker in self.workers:
            worker.end()
        self.workers = []

    def _hand_out(self) -> None:
        for worker in self.workers:
            if worker.task is None and self._waiting:
                worker.give(self._waiting.popleft())

    def _replace(self, worker: _Worker) -> Report | None:
        """A worker died: another one takes its place and its task."""
        code, task = worker.end(), worker.task
        self.workers[self.workers.index(worker)] = _Worker(self.log, self._inbox)
        name = task.name if task else ""
        self._deaths[name] = self._deaths.get(name, 0) + 1
        if self._deaths[name] >= MOST_DEATHS:
            raise UserError(f"a worker died {MOST_DEATHS} times (exit code {code}); {self.log} may say why.")
        if task is not None:
            self._waiting.appendleft(task)
        self._hand_out()
        return Report(name, "restarted", {"reason": f"exit code {code}"})
