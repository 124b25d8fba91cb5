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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workflow_rl.config import TrainConfig, config_from_json
from workflow_rl.errors import RunInUseError, UserError
from workflow_rl.run_store import Run, read_result
from workflow_rl.trainer import train_workflow

SECONDS_BETWEEN_REPORTS = 0.25
PATIENCE = 30.0  # seconds to wait for a directory that an orphan, about to end, still holds


def train_in(path: Path, config: TrainConfig, say: Any = lambda _: None) -> dict[str, Any]:
    """The result of a training in its run directory, made now unless it is there already."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            run = Run.open(path) if (path / "config.json").exists() else Run.create(path, config)
            break
        except RunInUseError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)
    try:
        done = read_result(path)
        return asdict(train_workflow(config, run, say)) if done is None else done
    finally:
        run.close()


def main() -> None:
    """Works until standard input ends."""
    parent, last = os.getppid(), 0.0

    def answer(message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def say(event: dict[str, Any]) -> None:
        nonlocal last
        if os.getppid() != parent:
            os._exit(1)
        if time.monotonic() - last > SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            answer({"progress": {name: event[name] for name in ("phase", "update", "return", "compliance")}})

    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer({"done": train_in(Path(task["path"]), config_from_json(task["config"]), say)})
        except UserError as error:
            answer({"error": str(error)})
        except OSError as error:
            answer({"error": f"{task['path']}: cannot go on ({error.strerror or error})."})


if __name__ == "__main__":
    main()
