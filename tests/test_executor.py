"""Whoever trains for a search keeps one contract: processes of this machine, and a Ray cluster."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DATA
from tests.ray_cluster import three_nodes, trainers
from workflow_rl.config import TrainConfig
from workflow_rl.errors import UserError
from workflow_rl.presets import make_config
from workflow_rl.runs import Run, read_events, read_result
from workflow_rl.search.executor import Executor, Report, Task
from workflow_rl.search.ray_executor import RayCluster
from workflow_rl.search.remote_training import CHECKPOINT, DONE, ERROR, keep, pack, train_away
from workflow_rl.search.worker import train_in
from workflow_rl.search.worker_pool import WorkerPool

SMALL: dict[str, Any] = {
    "workflow": "user,enterprise,op_server,op_host,defender", "warm_start": str(DATA / "universal.safetensors"),
    "n_envs": 20, "max_episodes": 4, "min_episodes": 2, "patience": 0, "n_eval_episodes": 20, "checkpoint_updates": 1,
}  # fmt: skip
LONG = SMALL | {"max_episodes": 150, "min_episodes": 150}


@pytest.fixture(scope="module")
def connected() -> Iterator[str]:
    """A connection to the cluster that several executors use: its processes are started once."""
    import ray

    address = three_nodes()
    ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    yield address
    gc.collect()
    ray.shutdown()


@pytest.fixture
def n_processes() -> int:
    """Of an executor with processes of this machine; each takes seconds to start."""
    return 1


@pytest.fixture(params=["processes", pytest.param("ray", marks=[pytest.mark.long, pytest.mark.needs("ray")])])
def executor(request: pytest.FixtureRequest, n_processes: int, tmp_path: Path) -> Iterator[Executor]:
    """Some processes, or three nodes with room for one training each."""
    if request.param == "processes":
        made: Executor = WorkerPool(n_processes, tmp_path / "workers.log")
    else:
        made = RayCluster(request.getfixturevalue("connected"), checkpoint_seconds=0.0)
    yield made
    gc.collect()  # what Ray gave us must be gone before the connection is
    made.close()


def config(values: dict[str, Any] = SMALL, seed: int = 0) -> TrainConfig:
    return make_config("workflow", **values, seed=seed)


def until_done(executor: Executor, number: int, seconds: float = 120.0) -> tuple[dict[str, Any], list[Report]]:
    """Results by name, and everything that was reported."""
    results, heard, end = dict[str, Any](), list[Report](), time.monotonic() + seconds
    while len(results) < number:
        assert time.monotonic() < end, f"waited in vain; heard {heard}"
        report = executor.report(0.2)
        if report is not None:
            heard.append(report)
            if report.kind == "done":
                assert report.name not in results, "reported twice"
                results[report.name] = report.value
    return results, heard


def trained_here(path: Path, values: TrainConfig) -> bytes:
    """The policy of the same training without any executor."""
    train_in(path, values)
    return (path / "policy.safetensors").read_bytes()


@pytest.fixture(scope="module")
def long_training(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The policy of the long training without any executor."""
    return trained_here(tmp_path_factory.mktemp("long") / "here", config(LONG))


def trainer_of(executor: Executor, name: str) -> int:
    """The process that trains ``name``."""
    if isinstance(executor, WorkerPool):
        return next(w.process.pid for w in executor.workers if w.task is not None and w.task.name == name)
    return trainers(name)[0]


def hear(executor: Executor, kind: str, seconds: float = 120.0) -> None:
    """Waits for news of a kind."""
    end = time.monotonic() + seconds
    while (report := executor.report(0.1)) is None or report.kind != kind:
        assert time.monotonic() < end, f"no {kind}"


def until_there_is_a_checkpoint(executor: Executor, task: Task, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not (task.path / "checkpoint.safetensors").exists():
        executor.report(0.1)
        assert time.monotonic() < end, "no checkpoint"


@pytest.mark.parametrize("n_processes", [2])
def test_trainings_are_as_without_an_executor_finished_ones_are_left_and_closing_after_a_failure_ends_the_others(
    executor: Executor, tmp_path: Path
) -> None:
    tasks = [Task(f"{seed}-0", tmp_path / "run" / f"{seed}", config(seed=seed)) for seed in range(3)]
    for task in tasks:
        executor.submit(task)
    results, heard = until_done(executor, 3)
    for seed, task in enumerate(tasks):
        here = tmp_path / "here" / f"{seed}"
        assert (task.path / "policy.safetensors").read_bytes() == trained_here(here, task.config)
        theirs, own = read_result(task.path) or {}, read_result(here) or {}
        assert theirs | {"run": "", "seconds": 0} == own | {"run": "", "seconds": 0}
        assert theirs["run"] == results[task.name]["run"] == str(task.path)
        assert [e["update"] for e in read_events(task.path)] == [e["update"] for e in read_events(here)]
        assert (task.path / "progress.csv").exists()
        run = Run.open(task.path)  # nobody holds it any more
        assert run.config == task.config
        run.close()
    assert {report.kind for report in heard} <= {"progress", "done", "machines"}
    assert executor.room in (2, 3)

    done = Task("3-0", tmp_path / "here" / "0", config())  # answered from its directory
    before = {path.name: path.stat().st_mtime_ns for path in done.path.iterdir()}
    executor.submit(done)
    results, _ = until_done(executor, 1)
    assert results["3-0"]["mean_return"] == (read_result(done.path) or {})["mean_return"]
    assert {path.name: path.stat().st_mtime_ns for path in done.path.iterdir()} == before

    far = LONG | {"max_episodes": 5000, "min_episodes": 5000}
    executor.submit(Task("7-7", tmp_path / "far", config(far)))
    hear(executor, "progress")
    pid = trainer_of(executor, "7-7")
    executor.submit(Task("4-0", tmp_path / "wrong", replace(config(), red_agent="bob")))
    with pytest.raises(UserError, match="bob"):  # what a user can mend is said in one sentence
        until_done(executor, 1)
    executor.close()
    end = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and "training 7-7" in Path(f"/proc/{pid}/cmdline").read_text("utf-8"):
        assert time.monotonic() < end, "it still trains"
        time.sleep(0.05)
    executor.close()  # again does no harm


@pytest.mark.long
def test_a_killed_process_is_replaced_and_its_training_goes_on_from_the_checkpoint(
    executor: Executor, long_training: bytes, tmp_path: Path
) -> None:
    task = Task("0-0", tmp_path / "run", config(LONG))
    executor.submit(task)
    until_there_is_a_checkpoint(executor, task)
    os.kill(trainer_of(executor, "0-0"), signal.SIGKILL)
    _, heard = until_done(executor, 1)
    restarts = [report for report in heard if report.kind == "restarted"]
    assert [report.name for report in restarts] == ["0-0"]
    updates = [event["update"] for event in read_events(task.path)]
    assert updates == list(range(1, len(updates) + 1))
    assert (task.path / "policy.safetensors").read_bytes() == long_training


@pytest.mark.long
def test_what_one_executor_left_unfinished_the_other_one_finishes(
    executor: Executor, connected: str, long_training: bytes, tmp_path: Path
) -> None:
    task = Task("0-0", tmp_path / "run", config(LONG))
    executor.submit(task)
    until_there_is_a_checkpoint(executor, task)
    executor.close()
    assert read_result(task.path) is None
    other: Executor = RayCluster(connected) if isinstance(executor, WorkerPool) else WorkerPool(1, tmp_path / "log")
    other.submit(task)
    until_done(other, 1)
    other.close()
    assert (task.path / "policy.safetensors").read_bytes() == long_training


@pytest.mark.long
def test_a_training_whose_processes_die_again_and_again_ends_with_a_sentence(
    executor: Executor, tmp_path: Path
) -> None:
    far = LONG | {"max_episodes": 5000, "min_episodes": 5000, "checkpoint_updates": 5000}
    executor.submit(Task("0-0", tmp_path / "run", config(far)))
    for death in range(3):
        hear(executor, "progress")
        os.kill(trainer_of(executor, "0-0"), signal.SIGKILL)
        if death < 2:
            hear(executor, "restarted")
    with pytest.raises(UserError, match="3 times"):
        until_done(executor, 1)


def test_a_parcel_is_trained_anywhere_also_from_a_policy_and_a_checkpoint_that_travel_with_it(tmp_path: Path) -> None:
    first = Task("0-0", tmp_path / "first", config())
    trained_here(first.path, first.config)
    task = Task("1-0", tmp_path / "run", replace(config(LONG), warm_start=str(first.path)))
    whole = trained_here(tmp_path / "here", task.config)
    parcel = pack(task, 0.0, 0.0)
    assert parcel is not None
    assert set(parcel.files) == {"config.json"}
    assert parcel.start == (first.path / "policy.safetensors").read_bytes()
    messages = train_away(parcel)
    for kind, value in messages:
        if kind == CHECKPOINT:
            keep(task, kind, value)
            break
    messages.close()  # type: ignore[attr-defined]
    again = pack(task, 10.0, 10.0)
    assert again is not None
    assert set(again.files) == {"config.json", "events.jsonl", "checkpoint.safetensors"}
    *rest, (kind, value) = train_away(replace(again, checkpoint_seconds=0.0))
    sent = [files["checkpoint.safetensors"] for name, files in rest if name == CHECKPOINT]
    assert len({again.files["checkpoint.safetensors"], *sent}) == 1 + len(sent) > 2  # none that the driver has already
    assert kind == DONE
    result = keep(task, kind, value)
    assert result["run"] == str(task.path)
    assert (task.path / "policy.safetensors").read_bytes() == whole
    assert pack(task, 0.0, 0.0) is None
    assert Run.open(task.path).config.warm_start == str(first.path)


def test_a_node_with_another_source_is_refused_in_a_sentence(tmp_path: Path) -> None:
    parcel = pack(Task("0-0", tmp_path / "run", config()), 0.0, 0.0)
    assert parcel is not None
    ((kind, value),) = train_away(replace(parcel, digest="another"))
    assert kind == ERROR
    assert value == "a node has another workflow_rl than the one that searches; install the same on all of them."
