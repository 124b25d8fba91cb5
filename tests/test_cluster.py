"""The search on a Ray cluster whose nodes, processes and drivers die; and which evaluations are under way when."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DATA, ROOT
from tests.helpers import Here, assert_refused, run
from tests.ray_cluster import (
    add_node,
    kill_busy_node,
    processes,
    three_nodes,
    trainers,
    wait_for_the_end_of_the_connection,
)
from workflow_rl.engine.network_file import load_network
from workflow_rl.errors import UserError
from workflow_rl.presets import make_config
from workflow_rl.runs import read_config, read_events
from workflow_rl.search.executor import Job, Machines, Progress, SearchEvent
from workflow_rl.search.ray_executor import RayCluster
from workflow_rl.search.run_search import ParallelWorkflowRLTrainer
from workflow_rl.search.worker_pool import train_in
from workflow_rl.training.workflow import all_workflows

pytestmark = pytest.mark.needs("ray")

SMALL: dict[str, Any] = {
    "n_workflows": 8, "replicates": 1, "n_initial": 3, "n_envs": 20, "max_episodes": 100, "min_episodes": 100,
    "warm_updates": 2, "epochs": 4, "n_eval_episodes": 20, "finalists": 2, "finish_episodes": 3,
    "compliance_threshold": 0.0,  # so short a training keeps no order
}  # fmt: skip
NEW_PROCESS: dict[str, Any] = {"PYTHONHASHSEED": "0"}  # not a fork of this one, which may be connected to Ray
FIGURES = ("best", "equal_to_best", "finalists", "ranking", "pair_weights", "transitions")


def options(**values: Any) -> list[str]:
    words = [text for name, value in (SMALL | values).items() for text in (f"--{name.replace('_', '-')}", str(value))]
    return [*words, "--no-report"]


def start(*words: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "workflow_rl.cli", "search", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    """Waits for a search that must succeed; returns what it said on standard error."""
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def evaluated(path: Path) -> int:
    return sum(event["kind"] == "evaluation" for event in read_events(path))


def machines(path: Path) -> list[dict[str, Any]]:
    return [event for event in read_events(path) if event["kind"] == "machines"]


def hold_trainings(until: contextlib.ExitStack) -> bool:
    """Stops every training process of the cluster; they go on when ``until`` closes."""
    for pid in trainers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            until.callback(_go_on, pid)
    return True


def wait_until_seen(path: Path, number: int) -> None:
    """Waits until the log has so many events about machines; what is left to do does not end before that."""
    with contextlib.ExitStack() as held:
        wait_for(lambda: hold_trainings(held) and len(machines(path)) == number)


def _go_on(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def result_of(path: Path) -> dict[str, Any]:
    result = json.loads((path / "result.json").read_text("utf-8"))
    return {name: result[name] for name in FIGURES}


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search without Ray to which nothing happens."""
    path = tmp_path_factory.mktemp("cluster") / "run"
    ParallelWorkflowRLTrainer(run_dir=path, in_flight=4, **SMALL).run_workflow_search(executor=Here())
    return path


def assert_whole(path: Path) -> None:
    """Every evaluation was suggested once and done once, and all trainings are those of one process without Ray."""
    events = read_events(path)
    for kind in ("suggestion", "evaluation"):
        assert sorted(event["index"] for event in events if event["kind"] == kind) == list(range(8))
    names = {
        "bases": ["0"],
        "finals": ["0-0-1", "0-0-2", "1-0-1", "1-0-2"],
        "trainings": [f"{i:03d}-0" for i in range(8)],
    }
    for kind, expected in names.items():
        assert sorted(training.name for training in (path / kind).iterdir()) == expected
    for training in (path / kind / name for kind in names for name in names[kind]):
        here = path / "here" / training.parent.name / training.name
        train_in(here, read_config(training), load_network())
        assert (training / "policy.safetensors").read_bytes() == (here / "policy.safetensors").read_bytes()
        updates = [event["update"] for event in read_events(training)]
        assert updates == list(range(1, len(updates) + 1))


@pytest.mark.long
def test_a_search_survives_a_node_that_is_killed_and_uses_one_that_joins(tmp_path: Path) -> None:
    path = tmp_path / "run"
    process = start("--ray", three_nodes(), *options(max_episodes=150, min_episodes=150), "--run-dir", path)
    wait_for(lambda: evaluated(path) >= 1)
    kill_busy_node()
    wait_until_seen(path, 2)
    wait_for(lambda: evaluated(path) >= 3)
    add_node()
    wait_until_seen(path, 3)
    said = finish(process)
    assert_whole(path)
    events = read_events(path)
    texts = [event["text"] for event in machines(path)]
    assert texts[0] == "Ray cluster of 3 nodes: room for 3 trainings at once."
    assert [("was lost" in text, "joined" in text) for text in texts[1:]] == [(True, False), (False, True)]
    assert [event["room"] for event in machines(path)] == [3, 2, 3]
    restarts = [event for event in events if event["kind"] == "restarted"]
    assert [event["reason"] for event in restarts] == ["its node was lost"]
    assert "raylet" not in said  # Ray's pages about it
    assert "raylet" in (path / "workers.log").read_text("utf-8")
    for text in (
        *texts,
        f"a worker died (its node was lost); its training {restarts[0]['name']} continues in another.",
    ):
        assert text in said


@pytest.mark.long
def test_a_driver_that_is_killed_goes_on_on_the_cluster_and_then_on_one_machine_with_the_same_ranking(
    left_alone: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    process = start("--ray", three_nodes(), *options(in_flight=4), "--run-dir", path)
    wait_for(lambda: evaluated(path) >= 2)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    wait_for(lambda: not trainers(), 30)  # the trainings end with their driver
    process = start("--resume", path, "--ray", three_nodes(), "--no-report")
    wait_for(lambda: evaluated(path) >= 4)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    finish(start("--resume", path, "--jobs", "1", "--no-report"))
    assert result_of(path) == result_of(left_alone)
    events = read_events(path)
    assert sum(event["kind"] == "resumed" for event in events) == 2
    for kind in ("suggestion", "evaluation"):
        assert sorted(event["index"] for event in events if event["kind"] == kind) == list(range(8))


def descendants(pid: int) -> set[int]:
    """Processes under a process."""
    parents = dict[int, int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text("utf-8").rsplit(")", 1)[1].split()[1])
    found, before = {pid}, set[int]()
    while found != before:
        before = set(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {pid}


def alive(pids: set[int]) -> bool:
    states = list[str]()
    for pid in pids:
        with contextlib.suppress(OSError):
            states.append(Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0])
    return any(state != "Z" for state in states)


@pytest.mark.long
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_a_cluster_of_ones_own_ends_with_the_search_however_that_ends(tmp_path: Path, way: signal.Signals) -> None:
    path = tmp_path / "run"
    process = start("--ray", "local", "--jobs", "1", *options(max_episodes=9000, min_episodes=9000), "--run-dir", path)
    wait_for(lambda: bool(processes("ray::training 0-0")) and (path / "trainings" / "000-0").exists())
    time.sleep(1.0)
    own = descendants(process.pid)
    assert len(own) >= 3
    process.send_signal(way)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == (130 if way == signal.SIGINT else -signal.SIGKILL)
    if way == signal.SIGINT:
        assert said.strip().endswith(f"To go on: workflow-rl search --resume {path}\nInterrupted.")
        assert "Traceback" not in said
    agents = {*processes("ray::DashboardAgent"), *processes("ray::RuntimeEnvAgent")}  # they look for Ray for a minute
    wait_for(lambda: not alive(own - agents), 30)


@pytest.mark.long
def test_the_search_of_the_documents_runs_on_a_cluster_and_says_what_processes_would(tmp_path: Path) -> None:
    settings = SMALL | {"n_workflows": 2, "replicates": 2, "max_episodes": 4, "min_episodes": 2}
    heard = list[SearchEvent]()
    results = []
    for name, executor in (("processes", None), ("ray", RayCluster(three_nodes(), jobs=2))):
        trainer = ParallelWorkflowRLTrainer(run_dir=tmp_path / name, jobs=1, **settings)
        results.append(trainer.run_workflow_search(heard.append, executor).to_json())
        assert result_of(tmp_path / name) == {figure: results[-1][figure] for figure in FIGURES}
    assert {figure: results[0][figure] for figure in FIGURES} == {figure: results[1][figure] for figure in FIGURES}
    assert "Ray cluster of 3 nodes: room for 3 trainings at once." in [
        event.what.text for event in heard if isinstance(event.what, Machines)
    ]
    wait_for_the_end_of_the_connection()


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--ray", "nonsense"], "a Ray address is auto, local or HOST:PORT, not 'nonsense'"),
        (["--ray", "127.0.0.1:1"], "no Ray cluster answers at 127.0.0.1:1"),
        (["--ray", "ray://127.0.0.1:1"], "run the search on a machine of the cluster"),
        (["--ray", "local", "--cpus-per-evaluation", "0"], "cpus per evaluation must be a number of at least 0.001"),
        (["--ray", "local", "--gpus-per-evaluation", "-1"], "gpus per evaluation must be a number of at least 0,"),
        (["--ray", "local", "--n-envs", "0"], "n_envs must be a whole number of at least 1, not 0"),
        (["--cpus-per-evaluation", "1"], "are for --ray"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_started(given: list[str], complaint: str, tmp_path: Path) -> None:
    done = run("search", *given, "--run-dir", tmp_path / "run", **NEW_PROCESS)
    assert_refused(done, complaint)
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_a_cluster_without_room_and_a_search_that_cannot_be_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    where = ["--ray", three_nodes(), "--run-dir", str(tmp_path / "run")]
    crowded = run("search", *where, "--cpus-per-evaluation", "2", **NEW_PROCESS)
    assert_refused(crowded, "no machine has room for a training")
    assert_refused(run("search", *where, "--warm-start", "nowhere", **NEW_PROCESS), "nowhere")
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_impossible_numbers_are_refused_at_once_and_a_second_connection_after_a_while(tmp_path: Path) -> None:
    for wrong, complaint in (
        ({"jobs": 0}, "jobs must be from 1 to 1000, not 0"),
        ({"gpus": 1.5}, "a fraction of at least 0.001 or whole, not 1.5"),
        ({"cpus": math.nan}, "cpus per evaluation must be a number"),
    ):
        with pytest.raises(UserError, match=complaint):
            RayCluster("local", **wrong)
    far = make_config("workflow", workflow=str(all_workflows()[0]), warm_start=str(DATA / "universal.safetensors"),
                      n_envs=20, max_episodes=5000, min_episodes=5000)  # fmt: skip
    with RayCluster(three_nodes()) as first:
        assert first.room == 3
        first.submit(Job("7-7", tmp_path / "far", far, load_network()))
        with RayCluster(three_nodes()) as second, pytest.raises(UserError, match="one at a time"):
            second.submit(Job("0-0", tmp_path / "run", far, load_network()))
        wait_for(lambda: isinstance(first.news(0.1), Progress))
        assert trainers("7-7")
    wait_for_the_end_of_the_connection()
    wait_for(lambda: not trainers("7-7"), 30)  # closing has ended it
    with RayCluster(three_nodes()) as third:
        assert third.room == 3
    wait_for_the_end_of_the_connection()


def test_without_the_extra_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run("search", "--ray", "auto", "--run-dir", tmp_path / "run")
    assert_refused(done, "--ray needs Ray; install it with: pip install 'workflow-rl[cluster]', in a checkout pip")
