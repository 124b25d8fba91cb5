"""A training on another machine than its run directory: what is sent there, and what is sent back.

    parcel = pack(job)                        # where the run directory is
    for kind, value in train_away(parcel):    # anywhere else
        keep(job, kind, value)                # where the run directory is

The other machine trains in a temporary directory. It returns checkpoints now and then, so that a training whose machine
is lost continues elsewhere, and the files of the finished training at its end. Files travel as bytes, never as code.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from workflow_rl.config import TrainConfig
from workflow_rl.engine.compiled import source_digest
from workflow_rl.engine.networks.copies import network_of
from workflow_rl.errors import SimulatorError, UserError
from workflow_rl.runs import NETWORK_FILE, write_atomically
from workflow_rl.search.executor import Job
from workflow_rl.search.worker_pool import held, progress_of, train_in, training_result
from workflow_rl.training.events import UpdateEvent, WorkflowResult
from workflow_rl.training.policy_file import file_of

PROGRESS, CHECKPOINT, DONE, ERROR, FAILED = "progress", "checkpoint", "done", "error", "failed"  # kinds of messages
SENT = ("config.json", NETWORK_FILE, "events.jsonl", "checkpoint.safetensors")
CHECKPOINT_FILES = ("events.jsonl", "checkpoint.safetensors")  # in this sequence: later events are repeated
RESULT_FILES = ("events.jsonl", "progress.csv", "policy.safetensors", "result.json")  # the result last

PAUSE_SHARE = 0.05  # of a training's age between two checkpoints, for events.jsonl grows

Message = tuple[str, Any]


@dataclass(frozen=True)
class Parcel:
    """A training as it is sent: its name, settings, files of its run so far (with its network), and the first policy.

    ``progress_seconds`` and ``checkpoint_seconds`` are the intervals of its messages, ``digest`` is that of the source.
    """

    name: str
    config: TrainConfig
    files: dict[str, bytes]
    start: bytes | None
    digest: str
    progress_seconds: float
    checkpoint_seconds: float


def pack(job: Job, progress_seconds: float, checkpoint_seconds: float) -> Parcel | None:
    """Prepares the job's run directory, new or as it was left; None if the training is already done."""
    held(job.path, job.config, job.network).close()
    if training_result(job.path) is not None:
        return None
    start = file_of(Path(job.config.warm_start)) if _starts_from_file(job.config) else None
    try:
        return Parcel(
            job.name, job.config,
            {name: (job.path / name).read_bytes() for name in SENT if (job.path / name).exists()},
            start.read_bytes() if start else None,
            source_digest(), progress_seconds, checkpoint_seconds,
        )  # fmt: skip
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror}).") from None


def _starts_from_file(config: TrainConfig) -> bool:
    return config.warm_start not in ("none", "general")


def train_away(parcel: Parcel) -> Iterator[Message]:
    """Trains in a thread and yields its messages; the last one is done, error or failed."""
    if parcel.digest != source_digest():
        yield ERROR, "a node has another workflow_rl than the one that searches; install the same on all of them."
        return
    with tempfile.TemporaryDirectory(prefix="workflow_rl-", ignore_cleanup_errors=True) as folder:
        outbox: SimpleQueue[Message] = SimpleQueue()
        Thread(target=_train, args=(parcel, Path(folder), outbox), daemon=True).start()
        kind = ""
        while kind not in (DONE, ERROR, FAILED):
            kind, value = outbox.get()
            yield kind, value


def _train(parcel: Parcel, folder: Path, outbox: SimpleQueue[Message]) -> None:
    run, config = folder / "run", parcel.config
    began = heard = kept = time.monotonic()
    version = None  # of the checkpoint that the driver has

    def say(event: UpdateEvent) -> None:
        nonlocal heard, kept, version
        now = time.monotonic()
        if now - heard > parcel.progress_seconds:
            heard = now
            outbox.put((PROGRESS, progress_of(parcel.name, event)))
        pause = max(parcel.checkpoint_seconds, PAUSE_SHARE * (now - began)) if parcel.checkpoint_seconds else 0.0
        if now - kept > pause and _version(run) != version:
            kept, version = now, _version(run)
            outbox.put((CHECKPOINT, _read(run, CHECKPOINT_FILES)))

    try:
        run.mkdir()
        for name, content in parcel.files.items():
            (run / name).write_bytes(content)
        version = _version(run)
        if parcel.start is not None:
            (folder / "start.safetensors").write_bytes(parcel.start)
            config = replace(config, warm_start=str(folder / "start.safetensors"))
        train_in(run, config, network_of(run), say)
        outbox.put((DONE, _read(run, RESULT_FILES)))
    except SimulatorError as error:  # as if this process had died: another one continues from the checkpoint
        outbox.put((FAILED, str(error)))
    except UserError as error:
        outbox.put((ERROR, str(error)))
    except Exception as error:
        outbox.put((FAILED, f"{type(error).__name__}: {error}"))


def _version(run: Path) -> int | None:
    """Changes with each checkpoint; None before the first."""
    path = run / CHECKPOINT_FILES[-1]
    return path.stat().st_mtime_ns if path.exists() else None


def _read(run: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in names if (run / name).exists()}


def keep(job: Job, kind: str, files: dict[str, bytes]) -> WorkflowResult | None:
    """Writes the returned files into the job's run directory; returns the result if the training is done."""
    try:
        for name in RESULT_FILES if kind == DONE else CHECKPOINT_FILES:
            if name == "result.json":
                result = json.loads(files[name]) | {"run": str(job.path)}
                write_atomically(job.path / name, json.dumps(result, indent=1).encode())
            elif name in files:
                write_atomically(job.path / name, files[name])
    except OSError as error:
        raise UserError(f"{job.path}: cannot go on ({error.strerror or error}).") from None
    return training_result(job.path) if kind == DONE else None
