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
from workflow_rl.engine.network_file import load_network
from workflow_rl.errors import UserError
from workflow_rl.presets import make_config
from workflow_rl.runs import Run, read_events, read_result
from workflow_rl.search.executor import Executor, Job, Machines, News, Progress, Restarted, Trained
from workflow_rl.search.ray_executor import RayCluster
from workflow_rl.search.remote_training import CHECKPOINT, DONE, ERROR, keep, pack, train_away
from workflow_rl.search.worker_pool import WorkerPool, train_in
from workflow_rl.training.events import WorkflowResult

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


def until_done(executor: Executor, number: int, seconds: float = 120.0) -> tuple[dict[str, WorkflowResult], list[News]]:
    """Results by name, and everything that was reported."""
    results, heard, end = dict[str, WorkflowResult](), list[News](), time.monotonic() + seconds
    while len(results) < number:
        assert time.monotonic() < end, f"waited in vain; heard {heard}"
        news = executor.news(0.2)
        if news is not None:
            heard.append(news)
            if isinstance(news, Trained):
                assert news.name not in results, "reported twice"
                results[news.name] = news.result
    return results, heard


def trained_here(path: Path, values: TrainConfig) -> bytes:
    """The policy of the same training without any executor."""
    train_in(path, values, load_network())
    return (path / "policy.safetensors").read_bytes()


@pytest.fixture(scope="module")
def long_training(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The policy of the long training without any executor."""
    return trained_here(tmp_path_factory.mktemp("long") / "here", config(LONG))


def trainer_of(executor: Executor, name: str) -> int:
    """The process that trains ``name``."""
    if isinstance(executor, WorkerPool):
        return next(w.process.pid for w in executor.workers if w.job is not None and w.job.name == name)
    return trainers(name)[0]


def hear(executor: Executor, kind: type[News], seconds: float = 120.0) -> None:
    """Waits for news of a kind."""
    end = time.monotonic() + seconds
    while not isinstance(executor.news(0.1), kind):
        assert time.monotonic() < end, f"no {kind}"


def until_there_is_a_checkpoint(executor: Executor, job: Job, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not (job.path / "checkpoint.safetensors").exists():
        executor.news(0.1)
        assert time.monotonic() < end, "no checkpoint"


@pytest.mark.parametrize("n_processes", [2])
def test_trainings_are_as_without_an_executor_finished_ones_are_left_and_closing_after_a_failure_ends_the_others(
    executor: Executor, tmp_path: Path
) -> None:
    jobs = [Job(f"{seed}-0", tmp_path / "run" / f"{seed}", config(seed=seed), load_network()) for seed in range(3)]
    for job in jobs:
        executor.submit(job)
    results, heard = until_done(executor, 3)
    for seed, job in enumerate(jobs):
        here = tmp_path / "here" / f"{seed}"
        assert (job.path / "policy.safetensors").read_bytes() == trained_here(here, job.config)
        theirs, own = read_result(job.path) or {}, read_result(here) or {}
        assert theirs | {"run": "", "seconds": 0} == own | {"run": "", "seconds": 0}
        assert theirs["run"] == results[job.name].run == str(job.path)
        assert [e["update"] for e in read_events(job.path)] == [e["update"] for e in read_events(here)]
        assert (job.path / "progress.csv").exists()
        run = Run.open(job.path)  # nobody holds it any more
        assert run.config == job.config
        run.close()
    assert {type(news) for news in heard} <= {Progress, Trained, Machines}
    assert executor.room in (2, 3)

    done = Job("3-0", tmp_path / "here" / "0", config(), load_network())  # answered from its directory
    before = {path.name: path.stat().st_mtime_ns for path in done.path.iterdir()}
    executor.submit(done)
    results, _ = until_done(executor, 1)
    assert results["3-0"].mean_return == (read_result(done.path) or {})["mean_return"]
    assert {path.name: path.stat().st_mtime_ns for path in done.path.iterdir()} == before

    far = LONG | {"max_episodes": 5000, "min_episodes": 5000}
    executor.submit(Job("7-7", tmp_path / "far", config(far), load_network()))
    hear(executor, Progress)
    pid = trainer_of(executor, "7-7")
    executor.submit(Job("4-0", tmp_path / "wrong", replace(config(), red_agent="bob"), load_network()))
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
    job = Job("0-0", tmp_path / "run", config(LONG), load_network())
    executor.submit(job)
    until_there_is_a_checkpoint(executor, job)
    os.kill(trainer_of(executor, "0-0"), signal.SIGKILL)
    _, heard = until_done(executor, 1)
    restarts = [news for news in heard if isinstance(news, Restarted)]
    assert [news.name for news in restarts] == ["0-0"]
    updates = [event["update"] for event in read_events(job.path)]
    assert updates == list(range(1, len(updates) + 1))
    assert (job.path / "policy.safetensors").read_bytes() == long_training


@pytest.mark.long
def test_what_one_executor_left_unfinished_the_other_one_finishes(
    executor: Executor, connected: str, long_training: bytes, tmp_path: Path
) -> None:
    job = Job("0-0", tmp_path / "run", config(LONG), load_network())
    executor.submit(job)
    until_there_is_a_checkpoint(executor, job)
    executor.close()
    assert read_result(job.path) is None
    other: Executor = RayCluster(connected) if isinstance(executor, WorkerPool) else WorkerPool(1, tmp_path / "log")
    other.submit(job)
    until_done(other, 1)
    other.close()
    assert (job.path / "policy.safetensors").read_bytes() == long_training


@pytest.mark.long
def test_a_training_whose_processes_die_again_and_again_ends_with_a_sentence(
    executor: Executor, tmp_path: Path
) -> None:
    far = LONG | {"max_episodes": 5000, "min_episodes": 5000, "checkpoint_updates": 5000}
    executor.submit(Job("0-0", tmp_path / "run", config(far), load_network()))
    for death in range(3):
        hear(executor, Progress)
        os.kill(trainer_of(executor, "0-0"), signal.SIGKILL)
        if death < 2:
            hear(executor, Restarted)
    with pytest.raises(UserError, match="3 times"):
        until_done(executor, 1)


def test_a_parcel_is_trained_anywhere_also_from_a_policy_and_a_checkpoint_that_travel_with_it(tmp_path: Path) -> None:
    first = Job("0-0", tmp_path / "first", config(), load_network())
    trained_here(first.path, first.config)
    job = Job("1-0", tmp_path / "run", replace(config(LONG), warm_start=str(first.path)), load_network())
    whole = trained_here(tmp_path / "here", job.config)
    parcel = pack(job, 0.0, 0.0)
    assert parcel is not None
    assert set(parcel.files) == {"config.json", "network.toml"}
    assert parcel.start == (first.path / "policy.safetensors").read_bytes()
    messages = train_away(parcel)
    for kind, value in messages:
        if kind == CHECKPOINT:
            keep(job, kind, value)
            break
    messages.close()  # type: ignore[attr-defined]
    again = pack(job, 10.0, 10.0)
    assert again is not None
    assert set(again.files) == {"config.json", "network.toml", "events.jsonl", "checkpoint.safetensors"}
    *rest, (kind, value) = train_away(replace(again, checkpoint_seconds=0.0))
    sent = [files["checkpoint.safetensors"] for name, files in rest if name == CHECKPOINT]
    assert len({again.files["checkpoint.safetensors"], *sent}) == 1 + len(sent) > 2  # none that the driver has already
    assert kind == DONE
    result = keep(job, kind, value)
    assert result is not None
    assert result.run == str(job.path)
    assert (job.path / "policy.safetensors").read_bytes() == whole
    assert pack(job, 0.0, 0.0) is None
    assert Run.open(job.path).config.warm_start == str(first.path)


def test_a_node_with_another_source_is_refused_in_a_sentence(tmp_path: Path) -> None:
    parcel = pack(Job("0-0", tmp_path / "run", config(), load_network()), 0.0, 0.0)
    assert parcel is not None
    ((kind, value),) = train_away(replace(parcel, digest="another"))
    assert kind == ERROR
    assert value == "a node has another workflow_rl than the one that searches; install the same on all of them."
