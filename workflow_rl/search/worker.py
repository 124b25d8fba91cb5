"""A process that trains: jobs as JSON lines on standard input, answers as JSON lines on standard output.

    {"name": "0-0", "path": "runs/x/trainings/000-0", "config": {...}}    a job
    {"progress": {"name": "0-0", "update": 5, ...}}                       now and then
    {"done": {...}}                                                       the result, or
    {"error": "one sentence"}                                             a mistake that the user can correct

A finished job is answered from its directory; an interrupted one continues from its checkpoint. The worker ends with
its parent, even in the middle of a training.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path

from workflow_rl.config import TrainConfig, config_from_json
from workflow_rl.envs.parent_watch import end_with
from workflow_rl.errors import RunInUseError, SimulatorError, UserError
from workflow_rl.runs import Run, read_result
from workflow_rl.search.executor import Progress
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


def train_in(path: Path, config: TrainConfig, say: Callable[..., None] = lambda _: None) -> WorkflowResult:
    """The result of a training in its run directory, trained now unless it is already there."""
    run = held(path, config)
    try:
        return training_result(path) or train_workflow(config, run, say)
    finally:
        run.close()


def held(path: Path, config: TrainConfig) -> Run[TrainConfig]:
    """The training's directory, new or as it was left; waits for a dying process that still holds it."""
    give_up = time.monotonic() + PATIENCE
    while True:
        new = not (path / "config.json").exists()
        try:
            run = Run.create(path, config) if new else Run.open(path)
            break
        except UserError as error:
            overtaken = new and (path / "config.json").exists()
            if not (overtaken or isinstance(error, RunInUseError)) or time.monotonic() > give_up:
                raise
            time.sleep(0.1)
    if replace(run.config, warm_start=config.warm_start) != config:  # the directory of a warm start may have moved
        run.close()
        raise UserError(f"{path} holds a training with other settings.")
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
            answer("done", asdict(train_in(Path(job["path"]), config_from_json(job["config"]), say)))
        except SimulatorError as error:  # as if this process had died: another one continues from the checkpoint
            sys.exit(str(error))
        except UserError as error:
            answer("error", str(error))
        except OSError as error:
            answer("error", f"{job['path']}: cannot go on ({error.strerror or error}).")


if __name__ == "__main__":
    main()
