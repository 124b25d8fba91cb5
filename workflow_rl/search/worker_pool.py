"""Processes of this machine that train for a search: the pool, and what each of its processes does.

A worker reads jobs as JSON lines from standard input and answers as JSON lines on standard output:

    {"name": "0-0", "path": "runs/x/trainings/000-0", "config": {...}, "network": "..."}    a job
    {"progress": {"name": "0-0", "update": 5, ...}}                                         now and then
    {"done": {...}}                                                                         the result, or
    {"error": "one sentence"}                                                               a mistake of the user

The network travels as the content of its file. A finished job is answered from its directory; an interrupted one
continues from its checkpoint. The worker ends with its parent, even in the middle of a training. A worker that dies is
replaced, and its job starts again.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from workflow_rl.config import TrainConfig, config_from_json, config_to_json
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import parse_network
from workflow_rl.engine.networks.copies import chosen_network, copy_of
from workflow_rl.envs.parent_watch import end_with
from workflow_rl.errors import RunInUseError, SimulatorError, UserError
from workflow_rl.runs import Run, read_result
from workflow_rl.search.executor import MOST_DEATHS, Executor, Job, News, Progress, Restarted, Trained
from workflow_rl.training.events import UpdateEvent, WorkflowResult
from workflow_rl.training.trainer import train_workflow

SECONDS_BETWEEN_MESSAGES = 0.25
PATIENCE = 30.0  # seconds to wait for a directory that a dying process still holds
RESULT_KEYS = frozenset(item.name for item in fields(WorkflowResult))


def training_result(path: Path) -> WorkflowResult | None:
    """The result in a training's directory; None while it is not finished."""
    values = read_result(path)
    if values is None:
        return None
    if not values.keys() >= RESULT_KEYS:
        raise UserError(f"{path}/result.json is damaged.")
    return WorkflowResult(**{name: values[name] for name in RESULT_KEYS})


def train_in(
    path: Path, config: TrainConfig, network: Network, say: Callable[..., None] = lambda _: None
) -> WorkflowResult:
    """The result of a training in its run directory, trained now unless it is already there."""
    run = held(path, config, network)
    try:
        return training_result(path) or train_workflow(config, run, say, network=network)
    finally:
        run.close()


def held(path: Path, config: TrainConfig, network: Network) -> Run[TrainConfig]:
    """The training's directory, new or as it was left; waits for a dying process that still holds it."""
    give_up = time.monotonic() + PATIENCE
    while True:
        new = not (path / "config.json").exists()
        try:
            run = Run.create(path, config, copy_of(network)) if new else Run.open(path)
            break
        except UserError as error:
            overtaken = new and (path / "config.json").exists()
            if not (overtaken or isinstance(error, RunInUseError)) or time.monotonic() > give_up:
                raise
            time.sleep(0.1)
    if replace(run.config, warm_start=config.warm_start) != config:  # the directory of a warm start may have moved
        run.close()
        raise UserError(f"{path} holds a training with other settings.")
    try:
        chosen_network(path, network)
    except UserError:
        run.close()
        raise
    return run


def progress_of(name: str, event: UpdateEvent) -> Progress:
    """The news of a job from an event of its training."""
    return Progress(name, event.update, event.mean_return, event.compliance)


def main() -> None:
    """Trains until standard input ends."""
    end_with(os.getppid())
    last, name = 0.0, ""

    def answer(kind: str, value: object) -> None:
        sys.stdout.write(json.dumps({kind: value}) + "\n")
        sys.stdout.flush()

    def say(event: UpdateEvent) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS_BETWEEN_MESSAGES:
            last = time.monotonic()
            answer("progress", asdict(progress_of(name, event)))

    for line in sys.stdin:
        job = json.loads(line)
        name = job["name"]
        try:
            network = parse_network(job["network"].encode(), f"the network of training {name}")
            answer("done", asdict(train_in(Path(job["path"]), config_from_json(job["config"]), network, say)))
        except SimulatorError as error:  # as if this process had died: another one continues from the checkpoint
            sys.exit(str(error))
        except UserError as error:
            answer("error", str(error))
        except OSError as error:
            answer("error", f"{job['path']}: cannot go on ({error.strerror or error}).")


Message = dict[str, Any]  # a JSON line of a worker


class _Worker:
    """A process, its current job, and a thread that forwards its messages."""

    def __init__(self, log: Path, inbox: Queue[tuple[_Worker, Message | None]]) -> None:
        self.job: Job | None = None
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "workflow_rl.search.worker_pool"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True,
                start_new_session=True,
            )  # fmt: skip
        self._listener = Thread(target=self._listen, args=(inbox,), daemon=True)
        self._listener.start()

    def _listen(self, inbox: Queue[tuple[_Worker, Message | None]]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # a line cut off by the worker's death
                inbox.put((self, json.loads(line)))
        inbox.put((self, None))

    def give(self, job: Job) -> None:
        """Sends a job; if the process is dead, its listener reports that."""
        self.job = job
        assert self.process.stdin is not None
        text = copy_of(job.network).content.decode()
        about = {"name": job.name, "path": str(job.path), "config": config_to_json(job.config), "network": text}
        line = json.dumps(about)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def end(self) -> int:
        """Ends the process if it still runs and closes its pipes; returns its exit code."""
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
        log: file for the standard error of the processes.
    """

    def __init__(self, jobs: int, log: Path) -> None:
        self.log = log
        self._inbox: Queue[tuple[_Worker, Message | None]] = Queue()
        self._waiting: deque[Job] = deque()
        self._deaths: dict[str, int] = {}
        self.workers = [_Worker(log, self._inbox) for _ in range(jobs)]

    @property
    def room(self) -> int:
        """The number of processes."""
        return len(self.workers)

    def submit(self, job: Job) -> None:
        """Adds a job to the queue."""
        self._waiting.append(job)
        self._hand_out()

    def news(self, timeout: float) -> News | None:
        """The next news; None if there are none for ``timeout`` seconds."""
        try:
            worker, message = self._inbox.get(timeout=timeout)
        except Empty:
            return None
        if message is None:
            return self._replace(worker)
        if "error" in message:
            raise UserError(message["error"])
        if "progress" in message:
            return Progress(**message["progress"])
        job, worker.job = worker.job, None
        assert job is not None
        self._hand_out()
        return Trained(job.name, WorkflowResult(**message["done"]))

    def close(self) -> None:
        """Ends the processes, whatever they do."""
        for worker in self.workers:
            worker.end()
        self.workers = []

    def _hand_out(self) -> None:
        for worker in self.workers:
            if worker.job is None and self._waiting:
                worker.give(self._waiting.popleft())

    def _replace(self, worker: _Worker) -> Restarted:
        """Starts another worker in the place of one that died, and gives it the same job."""
        code, job = worker.end(), worker.job
        self.workers[self.workers.index(worker)] = _Worker(self.log, self._inbox)
        name = job.name if job else ""
        self._deaths[name] = self._deaths.get(name, 0) + 1
        if self._deaths[name] >= MOST_DEATHS:
            raise UserError(f"a worker died {MOST_DEATHS} times (exit code {code}); {self.log} may say why.")
        if job is not None:
            self._waiting.appendleft(job)
        self._hand_out()
        return Restarted(name, f"exit code {code}")


if __name__ == "__main__":
    main()
