"""Studies: their quick forms, what happens when they are killed, and the page that is made of their results."""

from __future__ import annotations

import ast
import doctest
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.campaign import run_all
from benchmarks.experiments import EXPERIMENTS, run_experiment
from benchmarks.page import formats
from benchmarks.page.render import render
from benchmarks.results import read_result_file, source_commit, source_digest, write_result_to
from benchmarks.studies import statistics
from benchmarks.studies.cells import Cell, Laboratory
from benchmarks.studies.games import greedy_priority, play, play_games
from benchmarks.studies.registry import STUDIES
from benchmarks.studies.rollout import (
    _equal_quality,
    at_seconds,
    at_transitions,
    first_followed,
    steadily_followed,
)
from benchmarks.studies.statistics import difference, interquartile_mean, of_games, paired, summary
from benchmarks.studies.trainings import _noise
from benchmarks.test_ways import NAMES as WAYS_TO_TEST
from tests.conftest import DATA as TEST_DATA
from tests.conftest import ROOT
from workflow_rl.engine.network_file import load_network
from workflow_rl.errors import UserError
from workflow_rl.training.evaluation import challenge_games, evaluate_policy_file
from workflow_rl.training.workflow import Workflow

ORDER = "enterprise,op_server,user,defender,op_host"


def benchmarks(*arguments: str, module: str = "benchmarks") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def in_folder(folder: Path) -> list[str]:
    return ["--folder", str(folder), "--results", str(folder)]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The result files of all studies in their quick form."""
    folder = tmp_path_factory.mktemp("quick")
    done = benchmarks("studies", "--quick", *in_folder(folder), "--json")
    assert done.returncode == 0, done.stderr
    paths = json.loads(done.stdout.splitlines()[-1])["results"]
    assert [Path(path).name for path in paths] == [f"study_{name}.json" for name in STUDIES]
    return {name: read_result_file(folder / f"study_{name}.json") for name in STUDIES}


def shape(value: Any) -> Any:
    """Names and kinds of everything in a result, so that two can be compared whatever their figures."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return "list" if isinstance(value, list) else type(value).__name__


@pytest.mark.long
class TestQuickForms:
    def test_every_study_writes_how_it_was_made_and_by_which_seeds(self, quick: dict[str, dict[str, Any]]) -> None:
        for name, found in quick.items():
            assert found["command"] == f"python -m benchmarks {name} --quick"
            assert found["quick"] is True
            assert found["seeds"]
            assert found["cells"] > 0
            assert set(found["machine"]) == {"processor", "cores", "python"}

    def test_a_quick_form_has_the_rows_of_the_stored_result(self, quick: dict[str, dict[str, Any]]) -> None:
        """What differs is how many sizes, strengths and lengths are tried, not what is said about each."""
        paths = {path.stem.removeprefix("study_"): path for path in (ROOT / "benchmarks" / "results").glob("study_*")}
        stored = {name: read_result_file(path) for name, path in paths.items()}
        mine, theirs = (found["baselines"]["figures"]["rows"] for found in (quick, stored))
        assert shape(mine) == shape(theirs)
        for name in stored.keys() - {"baselines"}:
            assert set(quick[name]["figures"]) == set(stored[name]["figures"]), name

    def test_learned_rows_have_a_figure_of_each_seed_within_its_interval(
        self, quick: dict[str, dict[str, Any]]
    ) -> None:
        rows = quick["baselines"]["figures"]["rows"]
        for name in ("general", "order", "order-user-first", "order-as-searched", "searched-user-first"):
            cell = rows[name]["cells"]["bline"]["100"]
            assert cell["seeds"] == len(cell["values"]) == 2
            assert cell["low"] <= cell["iqm"] <= cell["high"]

    def test_a_rule_by_name_has_the_return_that_evaluate_gives_it(self, quick: dict[str, dict[str, Any]]) -> None:
        rows = quick["baselines"]["figures"]["rows"]
        assert rows["sleep"]["cells"]["sleep"]["100"]["iqm"] == 0
        assert rows["sleep"]["cells"]["bline"]["100"]["iqm"] < -900
        assert -16 < rows["expert"]["cells"]["bline"]["100"]["iqm"] < -10

    def test_the_page_refuses_results_of_quick_forms(self, quick: dict[str, dict[str, Any]], tmp_path: Path) -> None:
        assert quick
        write_result_to(tmp_path, "study_baselines", "x", {}, quick=True)
        with pytest.raises(UserError, match="quick form"):
            render(tmp_path, tmp_path / "page.md")

    def test_a_study_that_was_killed_goes_on_and_finds_the_same(
        self, quick: dict[str, dict[str, Any]], tmp_path: Path
    ) -> None:
        """Killed without grace once some cells are done; those are not made again, the figures are the same."""
        command = [sys.executable, "-m", "benchmarks", "robustness", "--quick", *in_folder(tmp_path)]
        child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
        give_up = time.monotonic() + 240
        while len(list((tmp_path / "cells").glob("*.json"))) < 3 and time.monotonic() < give_up:
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").glob("*.json")}
        assert len(kept) >= 3
        assert not (tmp_path / "study_robustness.json").exists()
        again = benchmarks("robustness", "--quick", *in_folder(tmp_path))
        assert again.returncode == 0, again.stderr
        assert all(path.stat().st_mtime_ns == before for path, before in kept.items())
        assert read_result_file(tmp_path / "study_robustness.json")["figures"] == quick["robustness"]["figures"]


def test_bad_input_is_one_sentence() -> None:
    names = ", ".join([*STUDIES, "studies", "all", "page", *EXPERIMENTS])
    cases = {
        ("nothing",): f"unknown experiment 'nothing'; allowed: {names}.",
        ("page", "--quick"): "the page is made from complete results; leave --quick out.",
        (
            "page",
            "--results",
            "nowhere",
        ): "nowhere/study_baselines.json is missing; the study that writes it has not been run to its end.",
        ("limit", "--jobs", "0"): "jobs must be from 1 to 1000, not 0.",
        ("limit", "--folder", "/proc/x"): "/proc/x: cannot write there (No such file or directory).",
        ("limit", "bline"): "limit has no parts; leave 'bline' out.",
        ("design", "twice"): "design has no parts; leave 'twice' out.",
        ("design", "--quick"): "design is not a study; leave --quick out.",
        ("workflow_table", "bline", "7"): (
            "unknown part of workflow_table 'bline 7'; allowed: bline, meander, bline 30, meander 40."
        ),
        ("free_play", "some"): "free_play takes a number of games, not 'some'.",
    }
    for arguments, sentence in cases.items():
        done = benchmarks(*arguments)
        assert (done.returncode, done.stderr.strip()) == (2, f"Error: {sentence}"), arguments


def test_without_a_name_every_experiment_is_listed_with_what_it_asks() -> None:
    done = benchmarks()
    assert done.returncode == 0
    for name, words in (STUDIES | {n: e.asks for n, e in EXPERIMENTS.items()}).items():
        assert any(name in line and words in line for line in done.stdout.splitlines()), name


def test_the_module_of_an_experiment_is_another_way_to_run_it() -> None:
    """The documents and the stored results name ``python -m benchmarks.champion table``."""
    done = benchmarks("nothing", module="benchmarks.champion")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: unknown part of champion 'nothing'; allowed: original, table, ")


def test_every_experiment_has_the_functions_that_measure_its_parts() -> None:
    """Read without imports, which take seconds; of ways to test, one function measures each."""
    folder = ROOT / "benchmarks"
    modules = {p.stem for p in folder.glob("*.py") if "main(" in p.read_text("utf-8").partition("if __name__")[2]}
    assert modules == set(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        tree = ast.parse((folder / f"{name}.py").read_text("utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert "measure" in defined or set(experiment.parts) <= defined, name
    assert tuple(WAYS_TO_TEST) == EXPERIMENTS["test_ways"].parts


def test_files_and_functions_of_the_laboratory_stay_short() -> None:
    for path in (ROOT / "benchmarks").rglob("*.py"):
        text = path.read_text("utf-8")
        assert text.count("\n") <= 350, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 50, f"{path}: {node.name}"


def test_figures_are_stored_with_the_command_that_measures_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.results.RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.champion.clock", lambda: {"x": 1})
    monkeypatch.setattr("benchmarks.workflow_table.measure", lambda *words: {"words": words})
    monkeypatch.setattr("benchmarks.pictures.measure", lambda: None)
    (clock,), tables = run_experiment("champion", "clock"), list(run_experiment("workflow_table"))
    assert read_result_file(clock)["command"] == "python -m benchmarks champion clock"
    assert [path.name for path in (clock, tables[0], tables[-1])] == [
        "champion_clock.json", "workflow_table_bline.json", "workflow_table_meander_40.json",
    ]  # fmt: skip
    assert read_result_file(tables[-1])["figures"] == {"words": ["meander", "40"]}
    assert list(run_experiment("pictures")) == []


def test_an_experiment_that_stores_its_figures_before_it_judges_them_keeps_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.results.RESULTS", tmp_path)
    row = {"z": 0.5}
    monkeypatch.setattr("benchmarks.free_play.compare", lambda _: iter([row]))
    (path,) = run_experiment("free_play", "20")
    found = read_result_file(path)
    assert found["figures"]["rows"] == [row]
    assert "seconds" in found

    row["z"] = 9.0
    with pytest.raises(UserError, match="the largest difference is 9"):
        list(run_experiment("free_play", "20"))
    assert read_result_file(path)["figures"]["largest_z"] == 9.0


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A small checkout with a source, a stored result and a document."""
    for name in ("workflow_rl/rules.py", "benchmarks/results/x.json", "benchmarks/experiments.py", "docs/page.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}", "utf-8")
    monkeypatch.setattr("benchmarks.results.ROOT", tmp_path)
    for word in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{word}_NAME", "somebody")
        monkeypatch.setenv(f"{word}_EMAIL", "somebody@example.org")
    record(tmp_path, "first")
    return tmp_path


def record(folder: Path, message: str) -> None:
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", message)):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


def test_results_documents_and_what_starts_experiments_leave_the_commit_of_the_source_as_it_is(
    repository: Path,
) -> None:
    first = source_commit()
    assert len(first) == 12
    for name in ("benchmarks/results/x.json", "benchmarks/experiments.py", "docs/page.md"):
        (repository / name).write_text("[]", "utf-8")
        assert source_commit() == first
    record(repository, "figures")
    assert source_commit() == first
    (repository / "workflow_rl" / "rules.py").write_text("x = 1", "utf-8")
    assert source_commit() == f"{first}-dirty"
    record(repository, "rules")
    assert source_commit() not in (first, f"{first}-dirty")


def test_a_changed_source_makes_every_cell_another_one(repository: Path) -> None:
    keys = []
    for text in ("x = 1", "x = 2"):
        (repository / "workflow_rl" / "rules.py").write_text(text, "utf-8")
        source_digest.cache_clear()
        keys.append(Cell("play", {"seed": 1}).key)
    (repository / "benchmarks" / "results" / "x.json").write_text("[]", "utf-8")
    source_digest.cache_clear()
    assert Cell("play", {"seed": 1}).key == keys[1] != keys[0]
    source_digest.cache_clear()


def test_everything_again_skips_what_the_present_source_has_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[list[str]] = []

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        started.append(command[3:])
        return subprocess.CompletedProcess(command, int(command[3:] == ["env"]))

    monkeypatch.setattr("benchmarks.campaign.RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.campaign.source_commit", lambda: "abc")
    monkeypatch.setattr("benchmarks.campaign.subprocess.run", run)
    for name, commit in (("study_limit", "abc"), ("champion_table", "older")):
        (tmp_path / f"{name}.json").write_text(json.dumps({"commit": commit, "figures": {}}), "utf-8")
    with pytest.raises(UserError, match="these failed: env"):
        run_all(lambda _: None)
    assert ["limit"] not in started
    assert started[0] == ["workflow_table", "bline"]
    for words in (["champion", "table"], ["rollout"], ["playbooks", "five", "bline", "0"]):
        assert words in started
    assert not {"limits", "pictures"} & {words[0] for words in started}


def test_everything_again_needs_a_committed_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.campaign.source_commit", lambda: "abc-dirty")
    with pytest.raises(UserError, match="commit it first"):
        run_all(lambda _: None)


def laboratory(folder: Path) -> Laboratory:
    return Laboratory(folder, 1, lambda _: None)


def write_cell(folder: Path, cell: Cell, outcome: Any) -> Path:
    path = folder / "cells" / f"{cell.key}.json"
    path.parent.mkdir(exist_ok=True)
    kept = {"task": cell.task, "arguments": cell.arguments, "seconds": 1.5, "outcome": outcome}
    path.write_text(json.dumps(kept), "utf-8")
    return path


def test_a_cell_that_is_kept_is_not_made_again(tmp_path: Path) -> None:
    cell = Cell("play", {"blue": "nobody"})  # could not be made at all
    write_cell(tmp_path, cell, {"x": 1})
    lab = laboratory(tmp_path)
    with lab.held():
        assert lab.ask([cell, cell]) == [{"x": 1}, {"x": 1}]
    assert lab.used == {cell.key}


def test_other_arguments_are_another_cell() -> None:
    keys = {Cell("play", {"seed": 1}).key, Cell("play", {"seed": 2}).key, Cell("train", {"seed": 1}).key}
    assert len(keys) == 3
    assert Cell("play", {"a": 1, "b": 2}).key == Cell("play", {"b": 2, "a": 1}).key


def test_a_damaged_cell_is_refused_in_a_sentence(tmp_path: Path) -> None:
    cell = Cell("play", {"seed": 1})
    path = write_cell(tmp_path, cell, 1)
    path.write_text("{", "utf-8")
    lab = laboratory(tmp_path)
    with lab.held(), pytest.raises(UserError, match=r"is damaged .* remove it to have it made again"):
        lab.ask([cell])
    write_cell(tmp_path, Cell("play", {"seed": 2}), 1).rename(path)
    with lab.held(), pytest.raises(UserError, match="holds another cell"):
        lab.ask([cell])


def test_two_studies_cannot_work_in_one_folder(tmp_path: Path) -> None:
    with laboratory(tmp_path).held():
        done = benchmarks("limit", "--quick", *in_folder(tmp_path))
    assert (done.returncode, done.stderr.strip()) == (2, f"Error: {tmp_path} is in use by another process.")


@pytest.mark.parametrize("module", [formats, statistics])
def test_the_examples_of_a_module_hold(module: Any) -> None:
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


def test_the_interquartile_mean_leaves_a_quarter_out_at_each_end() -> None:
    assert interquartile_mean(np.array([0.0, 10, 20, 30, 1000])) == 20
    assert interquartile_mean(np.array([-900.0, 1, 2, 3, 4, 5, 6, 900])) == 3.5
    assert interquartile_mean(np.array([1.0, 3.0])) == 2


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Of the interquartile mean of normal values, whose truth is 0; of five, as the page says, in nine of ten cases."""
    generator = np.random.default_rng(0)
    for size, low, high in ((5, 0.85, 0.95), (20, 0.90, 0.98)):
        found = [summary(generator.normal(size=size).tolist()) for _ in range(400)]
        assert low < np.mean([one["low"] <= 0 <= one["high"] for one in found]) < high
    assert summary([1.0, 2.0, 4.0]) == summary([1.0, 2.0, 4.0])


def test_a_difference_is_clear_only_where_its_interval_leaves_out_zero() -> None:
    apart = difference([5.0, 5.1, 5.2, 4.9, 5.0], [1.0, 1.1, 0.9, 1.0, 1.05])
    assert apart["clear"]
    assert 3.8 < apart["low"] < apart["difference"] < apart["high"] < 4.3
    assert not difference([1.0, 9.0, 5.0], [2.0, 8.0, 5.0])["clear"]
    together = paired([1.0, 9.0, 5.0], [0.5, 8.6, 4.4])  # far apart, but always in the same direction
    assert together["clear"]
    assert together["difference"] == pytest.approx(0.5)
    assert of_games(-3.0, 0.5)["low"] == pytest.approx(-3.98)


def test_the_greedy_rule_takes_the_host_of_highest_priority_that_looks_compromised() -> None:
    """Beliefs: bits 2 and 3 of a host's four; User is 2, Unknown 1, Privileged 3; User0 is left alone."""
    enterprise0, op_server0, user0, user2 = 1, 7, 8, 10
    user, privileged = 2 << 2, 3 << 2
    packed = np.array(
        [0, privileged << 4 * user0, privileged << 4 * user2 | user << 4 * enterprise0, user << 4 * op_server0, 3 << 4]
    )[:, None]
    generator = np.random.default_rng(0)
    restore, remove = 132, 15
    first = greedy_priority(Workflow.parse(ORDER), remove_users=True)
    assert first(packed, generator).tolist() == [0, 0, remove + enterprise0, remove + op_server0, 0]
    last = greedy_priority(Workflow.parse("user,op_server,enterprise,defender,op_host"), remove_users=False)
    assert last(packed, generator).tolist() == [0, 0, restore + user2, restore + op_server0, 0]


def test_games_of_a_study_agree_with_those_of_evaluate() -> None:
    """Other games of the same policy: returns and compliance within four standard errors."""
    path = TEST_DATA / "universal.safetensors"
    mine = play(path, "cell:universal", ["bline"], 400, 1, workflow=ORDER)["bline"]
    theirs = evaluate_policy_file(path, ORDER, challenge_games(load_network(), "bline", "current", 400, 2))
    for length, cell in mine["returns"].items():
        other = theirs["cells"]["bline"][length]
        error = np.hypot(cell["standard_error"], other["standard_error"])
        assert abs(cell["mean"] - other["mean"]) < 4 * error
    found = theirs["obedience"]["bline"]
    error = np.hypot(mine["compliance_error"], found["compliance_error"])
    assert abs(mine["compliance"] - found["compliance"]) < 4 * error + 0.002
    assert mine["repairs"] == pytest.approx(found["repairs"], rel=0.1)


def test_games_do_not_depend_on_how_many_are_played_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = greedy_priority(Workflow.parse(ORDER), remove_users=False)
    whole = play_games(rule, "meander", "current", (20, 40), 60, 3)
    monkeypatch.setattr("benchmarks.studies.games.BATCH", 25)
    assert play_games(rule, "meander", "current", (20, 40), 60, 3) == whole


def curve(*looks: tuple[int, float, float, float]) -> dict[str, Any]:
    """Looks of transitions, seconds, return, and compliance, which kept is equal to."""
    names = ("transitions", "seconds", "mean_return", "compliance")
    about = {"compliance_error": 0.01, "repairs": 3.0, "idle_fixes": 5.0}
    return {"looks": [dict(zip(names, look, strict=True)) | about | {"kept": look[-1]} for look in looks]}


def test_an_order_is_followed_once_two_looks_in_a_row_say_so() -> None:
    once = curve((10, 1.0, -20.0, 0.96), (20, 5.0, -60.0, 0.7), (40, 9.0, -50.0, 0.97), (80, 12.0, -40.0, 0.98))
    assert [look["transitions"] for look in steadily_followed(once)] == [40]
    assert first_followed(once, -45.0) is None
    assert first_followed(curve((10, 1.0, -20.0, 0.99))) is None
    assert at_transitions(once, 15)["seconds"] == 5.0
    assert at_seconds(once, 5.5)["transitions"] == 40


def test_equal_quality_is_what_one_environment_reached_in_half_of_its_trainings() -> None:
    good = [curve((10, 1.0, -60.0, 0.96), (20, 8.0, -50.0, 0.96), (40, 9.0, -40.0, 0.96)) for _ in range(2)]
    never = [curve((10, 1.0, -10.0, 0.2), (20, 30.0, -10.0, 0.2)) for _ in range(3)]
    for one in (*good, *never):
        one["seconds"] = one["looks"][-1]["seconds"]
    fast = [curve((10, 0.1, -55.0, 0.99), (20, 0.5, -45.0, 0.99), (40, 1.0, -40.0, 0.99)) for _ in range(5)]
    found = _equal_quality({"1 episode": good + never, "10 episodes": good + never[:2], "200 environments": fast})
    assert found["1 episode"] == {"followed": 2, "of": 5, "longest": 30.0}
    assert found["10 episodes"]["return"] == -50
    assert found["10 episodes"]["seconds"] is None  # the median of two that reach it and two that never do
    assert found["10 episodes"]["ratio_of_200"] is None
    assert set(found) == {"1 episode", "10 episodes"}
    found = _equal_quality({"5 episodes": good, "200 environments": fast})
    assert found["5 episodes"]["ratio_of_200"] == 8.0 / 0.5


def test_gradient_noise_falls_with_the_root_of_the_batch() -> None:
    generator = np.random.default_rng(0)
    true = generator.normal(size=50)
    large, small = (true + generator.normal(size=(400, 50)) * spread for spread in (0.1, 1.0))
    expected = np.sqrt(50) / np.linalg.norm(true)
    assert _noise(small, large)["noise"] == pytest.approx(expected, rel=0.05)
    assert _noise(large, large)["noise"] == pytest.approx(expected / 10, rel=0.05)
    assert _noise(large, large)["cosine"] > 0.99
