"""Runs whose files are damaged: every command says what is wrong with which file, and shows the rest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.example_run import unpack
from tests.helpers import assert_refused, run, run_json
from workflow_rl.engine.network_file import load_network
from workflow_rl.report.build import write_report

DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search without its policy, so that no games are played."""
    folder = unpack(tmp_path_factory.mktemp("whole") / "run")
    (folder / "policy.safetensors").unlink()
    return folder


@pytest.fixture
def search(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "runs" / "search"))


@pytest.fixture
def training(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole / "trainings" / "004-1", tmp_path / "runs" / "training"))


def change(path: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Edits a JSON file in place."""
    content = json.loads(path.read_text("utf-8"))
    edit(content)
    path.write_text(json.dumps(content), "utf-8")


def page(folder: Path) -> str:
    text = Path(write_report([folder], load_network())["report"]).read_text("utf-8")
    return text[: text.index('<script type="application/json"')]


def test_settings_nested_too_deeply_are_refused_in_one_sentence_by_every_command(search: Path) -> None:
    (search / "config.json").write_text(DEEP, "utf-8")
    for command in (["report"], ["search", "--resume"], ["train", "--resume"], ["runs"]):
        assert_refused(run(*command, search), f"{search}/config.json is damaged.")


@pytest.mark.parametrize("definition", [None, 1, "2"])
def test_a_run_of_an_earlier_version_is_refused_by_every_command_and_marked_in_the_list(
    search: Path, training: Path, definition: Any
) -> None:
    words = "was made by an earlier version, where fixes that repaired nothing counted as compliance"
    for folder, command in ((search, "search"), (training, "train")):
        change(folder / "config.json", lambda about: about.update(definition=definition))
        if definition is None:
            change(folder / "config.json", lambda about: about.pop("definition"))
        for refused in (["report"], [command, "--resume"], ["runs"]):
            assert_refused(run(*refused, folder), f"{folder} {words}")
    rows = run_json("runs", "--folder", search.parent)["runs"]
    assert [row["state"] for row in rows] == ["damaged", "damaged"]
    assert all(row["problem"].startswith(words) for row in rows)


def test_results_and_descriptions_nested_too_deeply_are_damaged_too(search: Path, training: Path) -> None:
    (search / "result.json").write_text(DEEP, "utf-8")
    assert_refused(run("search", "--resume", search), f"{search}/result.json is damaged")
    assert f"{search}/result.json is damaged (nested too deeply)." in page(search)
    (training / "events.jsonl").write_text(f"{DEEP}\n{DEEP}\n", "utf-8")
    (row,) = run_json("runs", training)["runs"]
    assert (row["state"], row["problem"]) == ("damaged", "events.jsonl is damaged in line 1.")


def test_one_damaged_run_is_one_marked_line_and_the_others_are_listed(search: Path, training: Path) -> None:
    folder = search.parent
    shutil.copytree(training, folder / "deep")
    (folder / "deep" / "config.json").write_text(DEEP, "utf-8")
    rows = {Path(row["run"]).name: row for row in run_json("runs", "--folder", folder)["runs"]}
    assert {name: row["state"] for name, row in rows.items()} == {
        "search": "finished", "training": "finished", "deep": "damaged",
    }  # fmt: skip
    shown = run("runs", "--folder", folder).stdout
    assert shown.count("/deep: config.json is damaged.") == 1
    found = json.loads((search / "result.json").read_text("utf-8"))["finalists"][0]
    for name in ("workflow", "mean_return", "standard_error", "compliance"):
        assert rows["search"][name] == found[name]
    assert rows["search"]["mean_return"] < 0


@pytest.mark.parametrize(
    ("kind", "file", "edit", "problem"),
    [
        ("search", "config.json", lambda c: c["config"].update(n_workflows="many"), "config.json: n_workflows must be"),
        (
            "training",
            "config.json",
            lambda c: c["config"].update(n_envs=[1]),
            "config.json: n_envs must be of type int",
        ),
        ("training", "config.json", lambda c: c["config"].update(surprise=1), "config.json is damaged."),
        ("training", "config.json", lambda c: c.update(kind="[/x]"), "config.json is damaged: unknown kind of run '["),
        ("search", "config.json", lambda c: c["config"].update(train=[]), "config.json is damaged."),
        (
            "search",
            "result.json",
            lambda c: c["ranking"][0].update(mean_return=float("nan")),
            "result.json is damaged: mean_return is nan.",
        ),
        ("search", "result.json", lambda c: c.pop("ranking"), "result.json is damaged: it has no ranking."),
        ("search", "result.json", lambda c: c["ranking"][3].pop("kept"), "result.json is damaged: kept is None."),
        (
            "search",
            "result.json",
            lambda c: c["finalists"][0].update(mean_return=float("nan")),
            "result.json is damaged: mean_return is nan.",
        ),
        (
            "search",
            "result.json",
            lambda c: c["finalists"][2].update(reverses=None),
            "result.json is damaged: reverses is None.",
        ),
        ("search", "result.json", lambda c: c.update(finalists="x"), "result.json is damaged: it has no finalists"),
        ("search", "result.json", lambda c: c.update(finalists=[[]]), "result.json is damaged: it has no finalists"),
        ("training", "result.json", lambda c: c.update(kept=None), "result.json is damaged: kept is None."),
        ("training", "result.json", lambda c: c.update(compliance=None), "result.json is damaged: compliance is None."),
        ("training", "result.json", lambda c: c.pop("repairs"), "result.json is damaged: repairs is None."),
        ("training", "result.json", lambda c: c.update(idle_fixes="5"), "result.json is damaged: idle_fixes is '5'."),
        (
            "training",
            "result.json",
            lambda c: c.update(standard_error=float("inf")),
            "result.json is damaged: standard_error is inf.",
        ),
        ("training", "result.json", lambda c: c.update(updates="9" * 400), "result.json is damaged: updates is '9"),
    ],
)
def test_the_list_of_runs_says_what_is_damaged_and_prints_no_nan(
    request: pytest.FixtureRequest, kind: str, file: str, edit: Callable[[dict[str, Any]], Any], problem: str
) -> None:
    folder: Path = request.getfixturevalue(kind)
    change(folder / file, edit)
    (row,) = run_json("runs", "--folder", folder.parent)["runs"]
    assert row["state"] == "damaged"
    assert row["problem"].startswith(problem)
    assert row["mean_return"] is None
    shown = run("runs", "--folder", "runs", cwd=folder.parent.parent)
    assert shown.returncode == 0
    assert " nan " not in shown.stdout


def test_events_that_were_cut_short_are_damage_not_a_finished_run_without_evaluations(
    search: Path, training: Path
) -> None:
    (search / "events.jsonl").write_text("", "utf-8")
    lines = (training / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    (training / "events.jsonl").write_text("".join(lines[:2]), "utf-8")
    listed = run_json("runs", search, training)["runs"]
    assert [(row["kind"], row["state"]) for row in listed] == [("search", "damaged"), ("training", "damaged")]
    rows = {Path(row["run"]).name: row["problem"] for row in listed}
    assert rows == {
        "search": "events.jsonl has 0 of 20 evaluations.",
        "training": f"events.jsonl has 2 of {len(lines)} updates.",
    }
    assert rows["search"] in page(search)
    assert rows["training"] in page(training)


def test_the_report_of_a_finished_search_without_its_trainings_says_that_they_are_missing(search: Path) -> None:
    for folder in (search / "trainings").iterdir():
        if folder.name >= "012":
            shutil.rmtree(folder)
    missing = "of 20 evaluations can be used: files of the other trainings are missing or damaged."
    assert f"Only 12 {missing}" in page(search)
    shutil.rmtree(search / "trainings")
    text = page(search)
    assert "No evaluation of this run can be read." in text
    assert f"Only 0 {missing}" in text
    assert "No workflow has been evaluated yet" not in text


def test_the_list_of_runs_does_not_guess_the_best_workflow_of_a_search_that_names_none(search: Path) -> None:
    change(search / "result.json", lambda result: result.update(best=None))
    (row,) = run_json("runs", search)["runs"]
    assert (row["state"], row["workflow"], row["mean_return"]) == ("finished", None, None)


def test_the_report_of_a_run_whose_returns_are_not_numbers_says_so(search: Path, training: Path) -> None:
    for path in (search / "trainings").glob("*/result.json"):
        change(path, lambda result: result.update(mean_return=float("nan")))
    text = page(search)
    assert "Only 0 of 20 evaluations can be used" in text
    assert "No workflow has been evaluated yet" not in text
    change(training / "result.json", lambda result: result.update(mean_return=float("nan")))
    result = write_report([training], load_network())
    text = Path(result["report"]).read_text("utf-8")
    assert result["state"] == "damaged"
    assert "Its result cannot be read." in text
    assert f"{training}/result.json is damaged: mean_return is nan." in text
    assert "there is no result yet" not in text


def test_a_training_with_an_event_that_is_none_is_not_resumed(training: Path) -> None:
    (training / "result.json").unlink()
    (training / "events.jsonl").write_text("{}\n{}\n", "utf-8")
    done = run("train", "--resume", training, "--no-tensorboard")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"Error: {training}/events.jsonl is damaged."
