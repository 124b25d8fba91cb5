"""Which evaluations are under way when, and what a suggestion is made from: searches whose trainings are made up."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.cluster_model import Cluster, Costs, Work
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.presets import make_search_config
from workflow_rl.runs import Run, read_events
from workflow_rl.search import workflow_search
from workflow_rl.search.executor import Executor, Job, SearchEvent, Suggested, Trained
from workflow_rl.search.strategies import make_search
from workflow_rl.search.workflow_search import WorkflowSearch
from workflow_rl.training.events import WorkflowResult

SMALL: dict[str, Any] = {"n_workflows": 30, "replicates": 5, "warm_start": "none", "finish": False}


def made_up(job: Job) -> WorkflowResult:
    """The result of a training: like genuine ones a function of workflow and seed. Nothing is followed, none best."""
    rng = random.Random(f"{job.config.workflow} {job.config.seed}")
    value = -20.0 - 4.0 * (job.config.workflow.index("user") < job.config.workflow.index("enterprise"))
    return WorkflowResult(
        workflow=job.config.workflow, mean_return=value + rng.gauss(0.0, 0.3), standard_error=0.2, followed=False,
        compliance=0.5, compliance_error=0.1, kept=0.25, repairs=10.0, idle_fixes=3.0, updates=5, episodes=1000,
        stop_reason="max_episodes", seconds=0.01, run="", greedy_compliance=None, greedy_mean_return=value,
        worst_compliance=None, worst_kept=None, red_agent="bline", edition="current", seed=0,
    )  # fmt: skip


class Machines(Executor):
    """Trains nothing; ``choose`` says which of the trainings under way is reported done next, if any."""

    def __init__(self, room: int, choose: Callable[[Machines], str | None]) -> None:
        self.n, self.choose = room, choose
        self.jobs: dict[str, Job] = {}
        self.trained = list[str]()
        self.most = self.idle = 0

    @property
    def room(self) -> int:
        return self.n

    def submit(self, job: Job) -> None:
        assert job.name not in self.jobs
        self.jobs[job.name] = job
        self.most = max(self.most, len(self.jobs))

    def news(self, timeout: float) -> Trained | None:
        assert timeout > 0
        name = self.choose(self)
        self.idle = 0 if name else self.idle + 1
        assert self.idle < 10_000, "the search does not go on"
        if not name:
            time.sleep(0.002)
            return None
        job = self.jobs.pop(name)
        if not job.path.exists():  # else it is done, as after a resume
            self.trained.append(name)
            job.path.mkdir(parents=True)
            (job.path / "result.json").write_text(json.dumps(asdict(made_up(job))), "utf-8")
        return Trained(name, made_up(job))

    def close(self) -> None:
        self.jobs.clear()


def first(machines: Machines) -> str:
    return next(iter(machines.jobs))


def search(path: Path, machines: Machines, **values: Any) -> list[dict[str, Any]]:
    """Runs a search on made-up machines; returns its events without times."""
    config = make_search_config(**(SMALL | {"in_flight": 0} | values))
    run = Run.create(path, config, copy_of(load_network()))
    try:
        result = WorkflowSearch(run, machines, load_network()).go()
    finally:
        run.close()
    assert result.evaluations == config.n_workflows
    return [{name: value for name, value in event.items() if name != "seconds"} for event in read_events(path)]


def numbers(events: list[dict[str, Any]], kind: str = "evaluation") -> list[int]:
    return [event["index"] for event in events if event["kind"] == kind]


def under_way(events: list[dict[str, Any]]) -> list[int]:
    """Evaluations under way after each event."""
    counts, now = list[int](), 0
    for event in events:
        now += {"suggestion": 1, "evaluation": -1}.get(event["kind"], 0)
        counts.append(now)
    return counts


def test_the_room_decides_how_many_evaluations_are_under_way(tmp_path: Path) -> None:
    for room, width in ((1, 2), (5, 2), (6, 3), (50, 20)):
        machines = Machines(room, first)
        events = search(tmp_path / f"{room}", machines, n_workflows=22)
        assert max(under_way(events)) == width
        assert machines.most <= 5 * width  # replicates of each


def test_more_room_brings_more_suggestions_and_less_room_fewer(tmp_path: Path) -> None:
    seen = list[tuple[int, int]]()

    def choose(machines: Machines) -> str:
        done = len(seen)
        machines.n = 40 if 25 <= done < 75 else 10
        seen.append((machines.n, len({name.split("-")[0] for name in machines.jobs})))
        return first(machines)

    events = search(tmp_path / "run", Machines(10, choose))
    assert max(under_way(events)) == 16
    assert max(n for _, n in seen[:25]) == 4
    assert max(n for _, n in seen[130:]) == 4  # what was begun is finished, then there are fewer


def test_the_sequence_in_which_trainings_end_does_not_matter_while_the_room_stays(tmp_path: Path) -> None:
    def anyhow(seed: int) -> Callable[[Machines], str]:
        rng = random.Random(seed)
        return lambda machines: rng.choice(list(machines.jobs))

    runs = [search(tmp_path / f"{seed}", Machines(20, anyhow(seed))) for seed in range(2)]
    assert runs[0] == runs[1]
    fixed = search(tmp_path / "fixed", Machines(3, anyhow(9)), in_flight=8)
    assert fixed == runs[0]  # eight is what a room for twenty makes of it


def test_an_evaluation_that_takes_long_is_overtaken_and_counted_once_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow_search, "LATE_SECONDS", 0.05)

    def choose(machines: Machines) -> str | None:
        others = [name for name in machines.jobs if not name.startswith("3-")]
        done = {event["index"] for event in read_events(tmp_path / "run") if event["kind"] == "evaluation"}
        return others[0] if others else first(machines) if len(done) >= 15 else None

    events = search(tmp_path / "run", Machines(10, choose))
    taken = numbers(events)
    late = [event for event in events if event["kind"] == "overtaken"]
    assert late[0]["text"] == "the search goes on without evaluation 4, which takes long."
    assert late[0]["indices"] == [3]
    assert taken.index(3) >= 15
    assert sorted(taken) == list(range(30))
    assert [index for index in taken if index != 3] == [i for i in range(30) if i != 3]  # the others in sequence
    assert_suggestions_follow_from_the_log(events)


def test_with_a_fixed_number_under_way_a_late_evaluation_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow_search, "LATE_SECONDS", 0.0)
    patience = iter(range(10**6))

    def choose(machines: Machines) -> str | None:
        others = [name for name in machines.jobs if not name.startswith("3-")]
        return others[0] if others else first(machines) if next(patience) > 20 else None

    events = search(tmp_path / "run", Machines(10, choose), in_flight=3)
    assert numbers(events) == list(range(30))
    assert not any(event["kind"] == "overtaken" for event in events)


def assert_suggestions_follow_from_the_log(events: list[dict[str, Any]]) -> None:
    """Each suggestion is what the search says to the evaluations before it in the log, the others being pending."""
    config = make_search_config()
    asked = make_search(config.strategy, load_network().unit_types, config.train.seed, config.gp_beta, config.n_initial)
    pending: dict[int, tuple[str, ...]] = {}
    for event in events:
        order = tuple(event["workflow"].split(",")) if "workflow" in event else ()
        if event["kind"] == "suggestion":
            assert asked.suggest(1, list(pending.values()))[0].order == order
            pending[event["index"]] = order
        elif event["kind"] == "evaluation":
            asked.observe(order, event["mean_return"], event["standard_error"])
            del pending[event["index"]]


def test_suggestions_are_made_in_rounds_on_large_clusters_and_follow_from_the_log(tmp_path: Path) -> None:
    events = search(tmp_path / "run", Machines(80, first), n_workflows=60)  # 32 under way: rounds of 4
    kinds = [event["kind"] for event in events]
    assert kinds[:32] == ["suggestion"] * 32
    after = "".join("s" if kind == "suggestion" else "e" for kind in kinds[32:])
    assert after == "eeeessss" * 7 + "e" * 32
    assert_suggestions_follow_from_the_log(events)


def test_a_search_that_was_overtaken_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_search, "LATE_SECONDS", 0.0)

    def choose(machines: Machines) -> str | None:
        others = [name for name in machines.jobs if not name.startswith("3-")]
        if machines.idle > 100:
            raise KeyboardInterrupt
        return others[0] if others else None

    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        search(path, Machines(10, choose))
    taken = numbers(read_events(path))
    assert 3 not in taken
    assert max(taken) > 3
    run = Run.open_search(path)
    WorkflowSearch(run, Machines(10, first), load_network()).go()
    run.close()
    events = read_events(path)
    assert sorted(numbers(events)) == sorted(numbers(events, "suggestion")) == list(range(30))
    assert [event["done"] for event in events if event["kind"] == "resumed"] == [len(taken)]
    assert_suggestions_follow_from_the_log(events)


def test_a_round_that_is_interrupted_is_the_same_round_after_a_resume(tmp_path: Path) -> None:
    def interrupt(event: SearchEvent) -> None:
        if isinstance(event.what, Suggested) and event.what.index == 33:
            raise KeyboardInterrupt

    whole = search(tmp_path / "whole", Machines(9, first), n_workflows=50, in_flight=32)
    run = Run.create(
        tmp_path / "run", make_search_config(**(SMALL | {"n_workflows": 50, "in_flight": 32})), copy_of(load_network())
    )
    with pytest.raises(KeyboardInterrupt):
        WorkflowSearch(run, Machines(9, first), load_network(), interrupt).go()
    WorkflowSearch(run, Machines(9, first), load_network()).go()
    run.close()
    events = [event for event in read_events(tmp_path / "run") if event["kind"] != "resumed"]
    assert [{name: value for name, value in e.items() if name != "seconds"} for e in events] == whole


def test_finalists_are_trained_after_all_evaluations_the_longest_first_and_once_whatever_happens(
    tmp_path: Path,
) -> None:
    settings = {"n_workflows": 8, "replicates": 2, "finish": True, "finalists": 2, "red_agent": "meander"}
    longest, shortest = ([f"final {k}-{r}-{n}" for k in range(2) for r in range(2)] for n in (2, 1))
    left_alone = Machines(2, first)
    whole = search(tmp_path / "whole", left_alone, **settings)
    assert left_alone.trained[16:] == longest + shortest
    assert all(event["kind"] in ("finalists", "final") for event in whole[16:])
    assert left_alone.most == 8

    def interrupt(machines: Machines) -> str:
        if len(machines.trained) == 16 + 3:
            raise KeyboardInterrupt
        return first(machines)

    interrupted, resumed = Machines(2, interrupt), Machines(2, first)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "run", interrupted, **settings)
    run = Run.open_search(tmp_path / "run")
    WorkflowSearch(run, resumed, load_network()).go()
    run.close()
    assert interrupted.trained + resumed.trained == left_alone.trained
    results = [json.loads((tmp_path / name / "result.json").read_text("utf-8")) for name in ("whole", "run")]
    for name in ("best", "finalists", "ranking", "pair_weights", "transitions"):
        assert results[0][name] == results[1][name]
    kept = [event for event in read_events(tmp_path / "run") if event["kind"] in ("finalists", "final")]
    assert [event["kind"] for event in kept].count("finalists") == 1
    assert [event["name"] for event in kept[1:]] == longest + shortest


def test_the_model_of_a_cluster_keeps_the_books_and_shows_when_the_driver_is_the_limit() -> None:
    quick = Costs(give_out=0, take_in=0, look=0, fit=0, factor=0, climb=0, climb_least=0, choose=0)
    work = Work(np.array([9.0, 10.0, 11.0]))
    free = Cluster(50, 100, work, quick).go()
    assert free.seconds > 100 * 5 * 9.0 / 50  # no faster than all workers together
    assert free.busy_workers > 0.95
    assert free.busy_driver == 0.0
    slow = Cluster(50, 100, work, replace(quick, take_in=0.5)).go()
    assert slow.seconds > 500 * 0.5  # the driver alone needs that long
    assert slow.busy_driver > 0.95
    assert slow.busy_workers < 0.5
    held_up = Cluster(50, 100, replace(work, late_share=0.02), quick).go()
    assert held_up.late > 0
    assert 0.6 < held_up.busy_workers < free.busy_workers
    start = Cluster(50, 100, replace(work, start=30.0), quick).go()
    assert free.seconds + 20.0 < start.seconds < free.seconds + 40.0
