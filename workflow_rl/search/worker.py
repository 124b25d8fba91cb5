"""A process that trains what it is told to: tasks as JSON lines on standard input, answers on standard output.

    {"path": "runs/x/trainings/000-0", "config": {...}}            a task: a training and its run directory
    {"progress": {"update": 5, "return": -20.1, "compliance": ..}}  now and then
    {"done": {...}}                                                 the result, or
    {"error": "one sentence"}                                       what a user can mend

A task that was finished before is answered from its directory; one that was interrupted goes on from its checkpoint.
The worker ends with its parent, also in the middle of a training.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from workflow_rl.config import TrainConfig, config_from_json
from workflow_rl.envs.parent_watch import end_with
from workflow_rl.errors import RunInUseError, SimulatorError, UserError
from workflow_rl.runs import Run, read_result
from workflow_rl.training.events import UpdateEvent
from workflow_rl.training.trainer import train_workflow

SECONDS_BETWEEN_REPORTS = 0.25
PATIENCE = 30.0  # seconds to wait for a directory that an orphan, about to end, still holds


def train_in(path: Path, config: TrainConfig, say: Any = lambda _: None) -> dict[str, Any]:
    """The result of a training in its run directory, made now unless it is there already."""
    run = held(path, config)
    try:
        done = read_result(path)
        return asdict(train_workflow(config, run, say)) if done is None else done
    finally:
        run.close()


def held(path: Path, config: TrainConfig) -> Run[TrainConfig]:
    """The training's directory, new or as it was left; waits for an orphan that still holds it."""
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


def main() -> None:
    """Works until standard input ends."""
    end_with(os.getppid())
    last = 0.0

    def answer(message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def say(event: UpdateEvent) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            answer({"progress": event.progress()})

    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer({"done": train_in(Path(task["path"]), config_from_json(task["config"]), say)})
        except SimulatorError as error:  # as if this process had died: another one goes on from the checkpoint
            sys.exit(str(error))
        except UserError as error:
            answer({"error": str(error)})
        except OSError as error:
            answer({"error": f"{task['path']}: cannot go on ({error.strerror or error})."})


if __name__ == "__main__":
    main()
