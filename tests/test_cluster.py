"""The search on a Ray cluster whose nodes, processes and drivers die; and which evaluations are under way when."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.ray_cluster import add_node, kill_busy_node, processes, three_nodes
from workflow_rl.run_store import read_config, read_events
from workflow_rl.worker import train_in

pytestmark = pytest.mark.xdist_group("ray")  # one process of the tests has the cluster

SMALL: dict[str, Any] = {
    "n_workflows": 12, "replicates": 2, "n_initial": 4, "n_envs": 20, "max_episodes": 100, "min_episodes": 100,
    "steady_updates": 1, "n_eval_episodes": 20,
}  # fmt: skip
FIGURES = ("best", "equal_to_best", "ranking", "pair_weights", "transitions")


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


def result_of(path: Path) -> dict[str, Any]:
    result = json.loads((path / "result.json").read_text())
    return {name: result[name] for name in FIGURES}


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search on three nodes to which nothing happens."""
    path = tmp_path_factory.mktemp("cluster") / "run"
    finish(start("--ray", three_nodes(), *options(), "--run-dir", path))
    return path


def assert_whole(path: Path) -> None:
    """Every evaluation was suggested once and done once, and all trainings are those of one process without Ray."""
    events = read_events(path)
    for kind in ("suggestion", "evaluation"):
        assert sorted(event["index"] for event in events if event["kind"] == kind) == list(range(12))
    trainings = sorted((path / "trainings").iterdir())
    assert [training.name for training in trainings] == [f"{i:03d}-{r}" for i in range(12) for r in range(2)]
    for training in trainings:
        here = path / "here" / training.name
        train_in(here, read_config(training))
        assert (training / "policy.safetensors").read_bytes() == (here / "policy.safetensors").read_bytes()
        updates = [event["update"] for event in read_events(training)]
        assert updates == list(range(1, len(updates) + 1))


def test_a_search_survives_a_node_that_is_killed_and_uses_one_that_joins(tmp_path: Path) -> None:
    path = tmp_path / "run"
    process = start("--ray", three_nodes(), *options(), "--run-dir", path)
    wait_for(lambda: evaluated(path) >= 2)
    kill_busy_node()
    wait_for(lambda: evaluated(path) >= 5)
    add_node()
    said = finish(process)
    assert_whole(path)
    events = read_events(path)
    texts = [event["text"] for event in events if event["kind"] == "machines"]
    assert texts[0] == "Ray cluster of 3 nodes: room for 3 trainings at once."
    assert [("was lost" in text, "joined" in text) for text in texts[1:]] == [(True, False), (False, True)]
    assert [event["room"] for event in events if event["kind"] == "machines"] == [3, 2, 3]
    restarts = [event for event in events if event["kind"] == "restarted"]
    assert [event["reason"] for event in restarts] == ["its node was lost"]
    for text in (*texts, f"a worker died (its node was lost); its training {restarts[0]['name']} goes on in another."):
        assert text in said


def test_a_driver_that_is_killed_goes_on_on_the_cluster_and_then_on_one_machine_with_the_same_ranking(
    left_alone: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    process = start("--ray", three_nodes(), *options(), "--run-dir", path)
    wait_for(lambda: evaluated(path) >= 2)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    wait_for(lambda: not processes("ray::training"), 30)  # the trainings end with their driver
    process = start("--resume", path, "--ray", three_nodes(), "--no-report")
    wait_for(lambda: evaluated(path) >= 6)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    finish(start("--resume", path, "--jobs", "3", "--no-report"))
    assert result_of(path) == result_of(left_alone)
    events = read_events(path)
    assert sum(event["kind"] == "resumed" for event in events) == 2
    for kind in ("suggestion", "evaluation"):
        assert sorted(event["index"] for event in events if event["kind"] == kind) == list(range(12))
