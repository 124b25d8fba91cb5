"""The search as a user runs it: the command, its files, and runs that survive a kill."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.conftest import ROOT
from tests.helpers import Here, assert_refused, run, run_json
from workflow_rl.cli.search_view import SearchView
from workflow_rl.config import chain
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.errors import UserError
from workflow_rl.presets import make_search_config
from workflow_rl.runs import Run, read_config, read_events
from workflow_rl.search.executor import BestSoFar, Observed, Progress, SearchEvent, Started, Suggested, Trained
from workflow_rl.search.findings import EvaluationRow, SearchResult, row_from_json
from workflow_rl.search.gp import Order
from workflow_rl.search.outcome import training_config
from workflow_rl.search.result import verdict_of
from workflow_rl.search.run_search import ParallelWorkflowRLTrainer
from workflow_rl.search.strategies import OrderSearch, Suggestion
from workflow_rl.search.worker_pool import WorkerPool
from workflow_rl.search.workflow_search import WorkflowSearch
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.workflow import Workflow, all_workflows

SMALL: dict[str, Any] = {
    "n_workflows": 4, "replicates": 2, "n_initial": 2, "n_envs": 20, "max_episodes": 4, "min_episodes": 2,
    "warm_updates": 2, "epochs": 4, "n_eval_episodes": 20, "finalists": 2, "finish_episodes": 3,
    "compliance_threshold": 0.0,  # so short a training keeps no order
}  # fmt: skip
FIGURES = ("best", "equal_to_best", "finalists", "ranking", "pair_weights", "transitions")
SCRIPT = [sys.executable, "workflow_rl/parallel_train_workflow_rl.py"]


def options(report: bool = False, **values: Any) -> list[str]:
    merged = SMALL | values
    words = [text for name, value in merged.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    return words if report else [*words, "--no-report"]


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    """What must not depend on how long a search took, how often it was killed and where it was kept."""
    return {name: result[name] for name in FIGURES}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A small search that was left alone."""
    path = tmp_path_factory.mktemp("search") / "run"
    return path, run_json("search", *options(report=True), "--run-dir", path, "--jobs", "2")


def test_a_search_ends_with_a_ranking_pair_weights_and_a_defender(searched: tuple[Path, dict[str, Any]]) -> None:
    path, result = searched
    assert {"best", "finalists", "ranking", "pair_weights", "seconds", "transitions", "run"} <= set(result)
    wanted = {"workflow", "mean_return", "standard_error", "compliance", "kept", "repairs", "visits", "stop_reason"}
    assert all(wanted <= set(row) for row in result["ranking"])
    assert sum(row["visits"] for row in result["ranking"]) == 4
    means = [row["mean_return"] for row in result["ranking"]]
    assert means == sorted(means, reverse=True)
    assert result["best"] == result["finalists"][0]["workflow"]
    assert len(result["pair_weights"]) == 10
    assert result["run"] == str(path)
    made = [
        json.loads(p.read_text("utf-8")) for kind in ("trainings", "finals") for p in path.glob(f"{kind}/*/result.json")
    ]
    assert len(made) == 4 * 2 + 2 * 2 * 2
    assert result["transitions"] == 20 * 100 * sum(one["updates"] for one in made) + 2 * 2 * 200 * 100
    policy = load_policy(path)
    assert Workflow.parse(policy.workflow) == Workflow.parse(result["best"])
    table = run_json("evaluate", path, "--episodes", "10", "--red-agent", "bline")
    assert table["workflow"] == result["best"]


def test_the_finalists_are_the_best_workflow_and_one_with_a_priority_reversed(
    searched: tuple[Path, dict[str, Any]],
) -> None:
    path, result = searched
    best, rival = sorted(result["finalists"], key=lambda row: row["reverses"])
    assert best["workflow"] == result["ranking"][0]["workflow"]
    first, second = rival["reverses"].split(" before ")
    order, reversed_ = best["workflow"].split(","), rival["workflow"].split(",")
    assert order.index(first) < order.index(second)
    assert reversed_.index(second) < reversed_.index(first)
    for number, row in enumerate((best, rival)):
        for length in (1, 2):
            folders = [path / "finals" / f"{number}-{replicate}-{length}" for replicate in range(2)]
            found = [json.loads((folder / "result.json").read_text("utf-8")) for folder in folders]
            assert {one["workflow"] for one in found} == {row["workflow"]}
            assert {one["updates"] for one in found} == {3 * length}
            mean = sum(one["mean_return"] for one in found) / 2
            assert row["mean_return" if length == 2 else "half_as_long"] == pytest.approx(mean)
            assert read_config(folders[0]).warm_start == str(path / "bases" / "0")
    (finished,) = [pair for pair in result["pair_weights"] if pair["half_as_long"] is not None]
    assert {finished["first"], finished["second"]} == {first, second}
    assert finished["rival"] == rival["workflow"]
    assert finished["effect"] == pytest.approx(abs(best["mean_return"] - rival["mean_return"]))
    assert not any(pair["matters"] for pair in result["pair_weights"] if pair is not finished)


def test_without_finalists_the_answer_is_that_of_the_short_trainings(tmp_path: Path) -> None:
    settings = SMALL | {"n_workflows": 2, "finish": False}
    result = ParallelWorkflowRLTrainer(run_dir=tmp_path / "run", **settings).run_workflow_search(executor=Here())
    assert result.finalists == []
    assert result.best == result.ranking[0].workflow
    assert not (tmp_path / "run" / "finals").exists()
    assert load_policy(tmp_path / "run").workflow == result.best


def test_a_search_ends_with_a_report(searched: tuple[Path, dict[str, Any]]) -> None:
    path, result = searched
    assert result["report"] == str(path / "report.html")
    assert result["verdict"]["known"][0] in (path / "report.html").read_text("utf-8")


def test_the_suggestions_are_a_table_with_mean_sigma_bound_and_reason(searched: tuple[Path, dict[str, Any]]) -> None:
    path, result = searched
    with open(path / "suggestions.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["index"]) for row in rows] == [0, 1, 2, 3]
    assert [row["reason"].split(":")[0] for row in rows[:2]] == ["design", "design"]
    assert [row["bound"] for row in rows[:2]] == ["", ""]  # nothing was known yet
    for row in rows[2:]:
        assert float(row["bound"]) == pytest.approx(float(row["mean"]) + 2.0 * float(row["sigma"]))
    assert {"found_mean_return", "found_standard_error", "found_compliance"} <= set(rows[0])
    with open(path / "ranking.csv", encoding="utf-8") as file:
        assert [row["workflow"] for row in csv.DictReader(file)] == [row["workflow"] for row in result["ranking"]]


def test_all_workflows_meet_the_same_chance_and_replicates_start_from_different_policies() -> None:
    config = make_search_config()
    first, other = (training_config(config, str(all_workflows()[i]), 0, 3) for i in (0, 77))
    assert first.seed == other.seed
    assert first.warm_start == "general"
    assert training_config(config, first.workflow, 1, 3).seed != first.seed
    assert training_config(config, first.workflow, 0, 4).seed != first.seed
    assert training_config(make_search_config(seed=1), first.workflow, 0, 3).seed != first.seed


@pytest.mark.long
def test_the_script_and_the_command_are_the_same_program(searched: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, result = searched
    command = [*SCRIPT, *options(), "--run-dir", str(tmp_path / "run"), "--jobs", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert comparable(json.loads(done.stdout.splitlines()[-1])) == comparable(result)  # also with another --jobs
    events = [
        [{k: v for k, v in event.items() if k != "seconds"} for event in read_events(p) if event["kind"] != "final"]
        for p in (path, tmp_path / "run")
    ]  # which training of a finalist ends first is the machine's business
    assert events[0] == events[1]


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    [
        [],
        ["--n-envs", "50", "--max-episodes", "100", "--min-episodes", "10"],
        ["--n-envs", "500", "--max-episodes", "20", "--min-episodes", "3"],
    ],
)
def test_the_examples_of_the_design_document_work_verbatim(given: list[str], tmp_path: Path) -> None:
    few = ["--n-workflows", "2", "--replicates", "2", "--jobs", "1", "--no-report", "--finish-episodes", "5"]
    command = [*SCRIPT, *given, *few, "--run-dir", str(tmp_path / "run"), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert len(result["ranking"]) == 2
    config = json.loads((tmp_path / "run" / "config.json").read_text("utf-8"))["config"]["train"]
    sizes = [config[name] for name in ("n_envs", "max_episodes", "min_episodes")]
    assert sizes == ([int(value) for value in given[1::2]] or [200, 50, 5])


def test_the_trainer_of_the_documents_is_the_search(searched: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    from workflow_rl.parallel_train_workflow_rl import ParallelWorkflowRLTrainer as OfTheDocuments

    assert OfTheDocuments is ParallelWorkflowRLTrainer
    named = ("n_envs", "n_workflows", "max_episodes", "compliance_threshold")
    extra = {name: value for name, value in SMALL.items() if name not in named}
    trainer = ParallelWorkflowRLTrainer(
        n_envs=20, n_workflows=4, train_episodes_per_env=4, compliance_threshold=0.0, update_every_steps=100,
        run_dir=tmp_path / "run", in_flight=2, **extra,
    )  # fmt: skip
    assert comparable(trainer.run_workflow_search(executor=Here()).to_json()) == comparable(searched[1])
    with pytest.raises(UserError, match="given twice"):
        ParallelWorkflowRLTrainer(train_episodes_per_env=4, max_episodes=4)


def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "workflow_rl.cli", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.long
def test_a_search_killed_at_random_moments_ends_as_if_left_alone(
    searched: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, rng, kills = tmp_path / "run", random.Random(0), 0
    process = start("search", *options(), "--run-dir", path, "--jobs", "2")
    for kind, number in (("trainings", 1), ("trainings", 4), ("trainings", 7), ("finals", 3)):  # of eight each
        wait_for(lambda k=kind, n=number: len(list(path.glob(f"{k}/*/result.json"))) >= n)
        time.sleep(rng.uniform(0.0, 0.2))
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        if not (path / "result.json").exists():
            process = start("search", "--resume", path, "--jobs", str(rng.choice([1, 2])))
    assert process.wait(timeout=300) in (0, -signal.SIGKILL)
    assert kills >= 2
    result = json.loads((path / "result.json").read_text("utf-8"))
    assert comparable(result) == comparable(searched[1])
    events = read_events(path)
    indices = [(event["kind"], event["index"]) for event in events if "index" in event]
    assert len(set(indices)) == len(indices) == 8  # nothing suggested or evaluated twice, nothing lost
    assert sum(event["kind"] == "resumed" for event in events) >= 1  # one may be killed before it says so
    for training in (path / "trainings").iterdir():
        updates = [event["update"] for event in read_events(training)]
        assert updates == list(range(1, len(updates) + 1))


def wait_for(condition: Any, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Worker processes of a driver."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


@pytest.mark.long
def test_a_worker_that_is_killed_is_replaced_and_nothing_changes(
    searched: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "run"
    command = [sys.executable, "-m", "workflow_rl.cli", "search", *options(), "--run-dir", str(path), "--jobs", "2"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: list(path.glob("trainings/*/events.jsonl")))
    victims = children(process.pid)
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "a worker died (exit code -9)" in said
    assert comparable(json.loads((path / "result.json").read_text("utf-8"))) == comparable(searched[1])


@pytest.mark.long
def test_workers_end_with_their_driver(tmp_path: Path) -> None:
    process = start("search", *options(max_episodes=5000, min_episodes=5000), "--run-dir", tmp_path / "run")
    wait_for(lambda: list((tmp_path / "run").glob("trainings/*/events.jsonl")))
    workers = children(process.pid)
    process.kill()
    process.wait()
    assert workers
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() and "Z" not in state(pid) for pid in workers), 30)


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


@pytest.mark.long
def test_ctrl_c_ends_cleanly_and_the_search_can_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = [sys.executable, "-m", "workflow_rl.cli", "search", *options(), "--jobs", "1", "--run-dir", str(path)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    wait_for(lambda: list(path.glob("trainings/*/events.jsonl")))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert errors.strip().endswith(f"To go on: workflow-rl search --resume {path}\nInterrupted.")
    assert run_json("search", "--resume", path, "--jobs", "1")["best"]


class Scripted(OrderSearch):
    """Suggests what it was told to."""

    def __init__(self, items: Order, orders: list[Order]) -> None:
        super().__init__(items)
        self.orders = orders

    def propose(self, pending: list[Order]) -> Suggestion | None:
        number = len(self.observations) + len(pending)
        return Suggestion(self.orders[number], "told") if number < len(self.orders) else None


def test_a_revisit_trains_anew_from_the_same_start_with_other_chance(tmp_path: Path) -> None:
    config = make_search_config(**(SMALL | {"n_workflows": 3, "finish": False}))
    run_ = Run.create(tmp_path / "run", config, copy_of(load_network()))
    search = WorkflowSearch(run_, WorkerPool(2, tmp_path / "workers.log"), load_network())
    order, other = all_workflows()[0].order, all_workflows()[119].order
    search.search = Scripted(search.search.items, [order, order, other])
    result = search.go()
    run_.close()
    assert {row.workflow: row.visits for row in result.ranking} == {",".join(order): 2, ",".join(other): 1}
    for replicate in range(2):
        before = read_config(tmp_path / "run" / "trainings" / f"000-{replicate}")
        after = read_config(tmp_path / "run" / "trainings" / f"001-{replicate}")
        assert before.warm_start == after.warm_start == str(tmp_path / "run" / "bases" / str(replicate))
        assert after.seed != before.seed
    assert read_config(tmp_path / "run" / "trainings" / "002-0").warm_start == str(tmp_path / "run" / "bases" / "0")


def test_a_strategy_without_further_orders_ends_the_search(tmp_path: Path) -> None:
    run_ = Run.create(tmp_path / "run", make_search_config(**SMALL), copy_of(load_network()))
    search = WorkflowSearch(run_, Here(), load_network())
    search.search = Scripted(search.search.items, [all_workflows()[5].order])
    assert search.go().evaluations == 1
    run_.close()


@pytest.mark.parametrize("by", ["here", pytest.param("processes", marks=pytest.mark.long)])
def test_general_policies_to_start_from_are_trained_once_and_shared_by_all_workflows(tmp_path: Path, by: str) -> None:
    path = tmp_path / "run"
    settings = SMALL | {"n_workflows": 2, "red_agent": "bline,meander", "warm_updates": 3, "finish": False}
    trainer = ParallelWorkflowRLTrainer(run_dir=path, jobs=1, **settings)
    result = trainer.run_workflow_search(executor=Here() if by == "here" else None)
    assert sorted(p.name for p in (path / "bases").iterdir()) == ["0", "1"]
    for training in sorted((path / "trainings").iterdir()):
        assert read_config(training).warm_start == str(path / "bases" / training.name[-1])
        assert {event["phase"] for event in read_events(training)} == {"main"}
    updates = sum(json.loads(file.read_text("utf-8"))["updates"] for file in path.glob("trainings/*/result.json"))
    assert result.transitions == 20 * 100 * updates + 2 * 3 * 200 * 100


def test_a_workflow_that_is_not_followed_is_shown_marked_and_never_best(tmp_path: Path) -> None:
    settings = SMALL | {"n_workflows": 2, "warm_start": "none", "compliance_threshold": 0.999}
    result = ParallelWorkflowRLTrainer(run_dir=tmp_path / "run", **settings).run_workflow_search(executor=Here())
    assert result.best is None
    assert result.equal_to_best == []
    assert result.defender is None
    assert all(not row.follows and row.stop_reason == "max_episodes" for row in result.ranking)
    assert "do not follow their order" in verdict_of(result).known[0]
    assert not (tmp_path / "run" / "policy.safetensors").exists()


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--n-workflows", "0"], "n_workflows must be a whole number of at least 1, not 0"),
        (["--replicates", "0"], "replicates must be a whole number of at least 1"),
        (["--finalists", "0"], "finalists must be a whole number of at least 1, not 0"),
        (["--finish-episodes", "-1"], "finish_episodes must be a whole number of at least 0, not -1"),
        (["--alignment", "per-fix"], "unknown alignment 'per-fix'; allowed: penalty, potential."),
        (["--time-limit", "never"], "unknown time_limit 'never'; allowed: bootstrap, cut."),
        (["--alignment-lambda", "-1"], "alignment_lambda must be from 0 to 1e+06, not -1.0"),
        (["--alignment-lambda", "nan"], "alignment_lambda must be from 0 to 1e+06, not nan"),
        (["--n-envs", "0"], "n_envs must be a whole number of at least 1, not 0"),
        (["--compliance-threshold", "1.2"], "compliance_threshold must be from 0 to 1, not 1.2"),
        (["--gp-beta", "nan"], "gp_beta must be from 0 to 1e+06, not nan"),
        (["--gp-beta", "-1"], "gp_beta must be from 0"),
        (["--strategy", "luck"], "unknown strategy 'luck'; allowed: gp-ucb, random, round-robin, exhaustive"),
        (["--red-agent", "bob"], "bob"),
        (["--edition", "gold"], "unknown edition 'gold'"),
        (["--preset", "fast"], "unknown preset 'fast'; allowed: workflow, search, sequential"),
        (["--run-dir", ""], "needs its own directory"),
        (["--preset", "general"], "does not train a single workflow"),
        (["--jobs", "0"], "jobs must be from 1 to 1000, not 0"),
        (["--warm-start", "nowhere"], "nowhere"),
        (["--warm-start", "universal"], "warm_start 'universal' was removed: the policies once bundled"),
        (["--warm-start", "universal:3"], "use none, general, or your own policy"),
        (["--max-episodes", "3"], "min_episodes 5 is larger than max_episodes 3"),
        (["--resume", "nowhere"], "holds no run"),
        (["--resume", "nowhere", "--n-envs", "3"], "give no others"),
        (["--workflow", "user"], "No such option"),
        (["--n-workflows", "1e3"], "Invalid value '1e3' for '--n-workflows'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_and_leaves_nothing(
    given: list[str], complaint: str, tmp_path: Path
) -> None:
    where = [] if {"--resume", "--run-dir"} & set(given) else ["--run-dir", str(tmp_path / "run")]
    done = run("search", *given, *where)
    assert_refused(done, complaint)
    assert not (tmp_path / "run").exists()


def test_a_finished_search_a_training_and_a_run_in_use_cannot_be_resumed_as_a_search(
    searched: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    assert_refused(run("search", "--resume", searched[0]), "is finished; there is nothing to resume")
    assert_refused(run("search", *options(), "--run-dir", searched[0]), "already holds a run")
    assert_refused(run("search", "--resume", searched[0] / "trainings" / "000-0"), "holds a training, not a search")
    (tmp_path / "unfinished").mkdir()
    for name in ("config.json", "events.jsonl"):
        (tmp_path / "unfinished" / name).write_bytes((searched[0] / "trainings" / "000-0" / name).read_bytes())
    assert_refused(run("search", "--resume", tmp_path / "unfinished"), "holds a training, not a search")
    held = Run.create(tmp_path / "held", make_search_config(**SMALL), copy_of(load_network()))
    assert_refused(run("search", "--resume", tmp_path / "held"), "is in use by another process")
    held.close()
    assert_refused(run("train", "--resume", tmp_path / "held"), "holds a search, not a training")


def test_a_search_whose_trainings_were_removed_says_so(searched: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    for name in ("config.json", "network.toml", "events.jsonl"):
        (tmp_path / name).write_bytes((searched[0] / name).read_bytes())
    done = run("search", "--resume", tmp_path)
    assert done.returncode == 2
    assert "trainings of evaluation 0 are missing" in done.stderr
    events = (tmp_path / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    for damaged in ('{"kind": "suggestion"}\n{"kind": "eval', "[]\n[]\n", "".join(events[1:]), "\udcff"):
        (tmp_path / "events.jsonl").write_text(damaged, "utf-8", errors="surrogateescape")
        assert_refused(run("search", "--resume", tmp_path), "events.jsonl is damaged")


def test_runs_lists_what_is_there_and_compares(searched: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, result = searched
    listed = run_json("runs", "--folder", path.parent)["runs"]
    assert [row["run"] for row in listed] == [str(path)]
    assert (
        listed[0] | {"kind": "search", "state": "finished", "evaluations": 4, "workflow": result["best"]} == listed[0]
    )
    assert len(run_json("runs", "--folder", path / "trainings")["runs"]) == 8
    two = run_json("runs", path / "trainings" / "000-0", path / "trainings" / "000-1")
    assert set(two["settings_that_differ"]) == {"seed", "warm_start"}
    assert len(run_json("runs", "--folder", path / "finals")["runs"]) == 8
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{", "utf-8")
    assert run_json("runs", "--folder", tmp_path)["runs"][0]["state"] == "damaged"
    (tmp_path / "broken" / "config.json").write_bytes(b'{"config": {"train": []}}\xff')
    assert run_json("runs", "--folder", tmp_path)["runs"][0]["state"] == "damaged"
    (tmp_path / "broken" / "config.json").write_bytes((path / "config.json").read_bytes())
    assert run_json("runs", "--folder", tmp_path)["runs"][0]["state"] == "interrupted"
    shown = run("runs", "--folder", path.parent)
    assert chain(result["best"]) in shown.stdout
    assert_refused(run("runs", "--folder", tmp_path / "nowhere"), "no such directory")
    assert_refused(run("runs", tmp_path / "nowhere"), "holds no run")


def test_the_live_view_shows_what_is_under_way_and_the_best_so_far() -> None:
    screen, lines = io.StringIO(), list[str]()
    view = SearchView(Console(file=screen, force_terminal=True, width=160), lines.append)
    config = make_search_config(n_workflows=3, replicates=2)
    workflow = "enterprise,user,op_server,op_host,defender"
    guess = Suggestion(Workflow.parse(workflow).order, "uncertain: it may be the best", -20.0, 1.5, -17.0)
    with view:
        view(SearchEvent(1.0, Started("runs/x", config, 0)))
        view(SearchEvent(1.0, Suggested(0, guess)))
        view(SearchEvent(1.0, Progress("0-1", 3, -21.25, 0.876)))
        shown = view._screen()
        assert all(word in shown for word in (chain(workflow), "-20.0 ± 1.5", "0 of 2", "-21.25", "0.876", "uncertain"))
        assert "none yet" in shown
        result = row_from_json(WorkflowResult, {"mean_return": -20.5})
        view(SearchEvent(2.0, Trained("0-1", result)))
        assert "1 of 2" in view._screen()
        row = row_from_json(
            EvaluationRow, {"index": 0, "workflow": workflow, "mean_return": -20.5, "compliance": 0.98, "kept": 0.96}
        )
        view(SearchEvent(4.0, Observed(row, BestSoFar(workflow, -20.5, 0.2))))
        assert f"Best so far: {chain(workflow)}  -20.50 ± 0.20" in view._screen()
        assert "1 of 3 evaluations, 4 s, about 6 s left" in view._screen()  # 3 s since it was started or resumed
    assert lines == ["run: runs/x"]


def test_the_result_carries_its_verdict(searched: tuple[Path, dict[str, Any]]) -> None:
    path, whole = searched
    result = SearchResult.from_json(whole)
    assert result.to_json() | {"verdict": whole["verdict"]} == whole
    stored = json.loads((path / "result.json").read_text("utf-8"))
    assert stored["verdict"] == whole["verdict"] == json.loads(json.dumps(asdict(verdict_of(result))))
    assert stored["verdict"]["best"] == ""  # of four evaluations
