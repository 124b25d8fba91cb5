"""The report of runs that were killed or damaged, or found nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.example_run import (
    NETWORK,
    figures_of,
    plain,
    section,
    spoil_json,
    unpack,
)
from workflow_rl.report.build import answer, write_report
from workflow_rl.report.compare import row_of
from workflow_rl.report.run_data import report_data
from workflow_rl.runs import Run


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("example") / "run")


@pytest.fixture(scope="module")
def stored(example: Path) -> dict[str, Any]:
    """What the search itself wrote about its result."""
    result: dict[str, Any] = json.loads((example / "result.json").read_text("utf-8"))
    return result


def test_a_search_that_was_killed_half_way_says_so_and_shows_what_there_is(tmp_path: Path) -> None:
    killed = unpack(tmp_path / "killed")
    assert report_data(killed, NETWORK).time.transitions == 8360 * 20_000
    for name in ("result.json", "policy.safetensors", "finalists.csv"):
        (killed / name).unlink()
    shutil.rmtree(killed / "finals")
    lines = (killed / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    (killed / "events.jsonl").write_text("".join(lines[:22]) + lines[22][:40], "utf-8")
    for folder in (killed / "trainings").iterdir():
        if int(folder.name[:3]) >= 10:
            (folder / "result.json").unlink()
    result = write_report([killed], NETWORK)
    text = Path(result["report"]).read_text("utf-8")
    assert result["state"] == "interrupted"
    assert "This run is not finished (interrupted): 10 of 20 evaluations done so far." in text
    assert "1 damaged lines of its files were left out." in text
    assert "There is no trained policy to evaluate yet." in text
    found = report_data(killed, NETWORK)
    assert len(found.evaluations) == 10
    assert found.time.transitions == (8360 - 3 * 2 * (350 + 700)) * 20_000
    assert (found.finalists, found.problem) == ([], "")


def test_a_search_that_was_killed_among_its_finals_shows_its_ranking(tmp_path: Path) -> None:
    killed = unpack(tmp_path / "killed")
    for name in ("result.json", "policy.safetensors", "finalists.csv"):
        (killed / name).unlink()
    (killed / "finals" / "2-1-2" / "result.json").unlink()
    found = report_data(killed, NETWORK)
    assert found.best == found.ranking[0].workflow
    assert found.equal_to_best == [row.workflow for row in found.ranking if row.equal_to_best]
    assert found.time.transitions == 8360 * 20_000  # also of the finals, which are lost to the page only
    text = Path(write_report([killed], NETWORK)["report"]).read_text("utf-8")
    assert "This run is not finished (interrupted): 20 of 20 evaluations done so far." in text
    assert '<section id="finalists">' not in text
    assert "The finalists cannot be used" not in text


@pytest.mark.parametrize("missing", ["all", "one", "number", "other order"])
def test_a_finished_search_whose_finals_are_missing_says_so(tmp_path: Path, missing: str) -> None:
    lost = unpack(tmp_path / "lost")
    (lost / "policy.safetensors").unlink()  # no games: only the files matter here
    one = lost / "finals" / "1-1-2"
    if missing == "all":
        shutil.rmtree(lost / "finals")
    elif missing == "one":
        shutil.rmtree(one)
    elif missing == "number":
        spoil_json(one / "result.json", mean_return=float("nan"))
    else:
        spoil_json(one / "result.json", workflow="user,op_host,op_server,enterprise,defender")
    found = report_data(lost, NETWORK)
    assert found.problem == "The finalists cannot be used: files of their trainings are missing or damaged."
    assert found.damaged_lines == (missing == "number")
    assert (found.state, found.finalists) == ("finished", [])
    assert found.best == found.ranking[0].workflow
    assert all(pair.half_as_long is None and pair.rival == "" for pair in found.pair_weights)
    text = Path(write_report([lost], NETWORK)["report"]).read_text("utf-8")
    assert found.problem in section(text, "answer")
    assert '<section id="finalists">' not in text
    assert 'id="plot-finals"' not in text
    assert ", short trainings" not in section(text, "ranking")


def test_a_search_that_was_told_to_finish_nobody_lacks_nothing(tmp_path: Path) -> None:
    plain = unpack(tmp_path / "plain")
    shutil.rmtree(plain / "finals")
    about = json.loads((plain / "config.json").read_text("utf-8"))
    about["config"]["finish"] = False
    (plain / "config.json").write_text(json.dumps(about), "utf-8")
    best = report_data(plain, NETWORK).ranking[0].workflow
    spoil_json(plain / "result.json", finalists=[], best=best)
    found = report_data(plain, NETWORK)
    assert (found.problem, found.finalists, found.best) == ("", [], best)
    assert found.command == "workflow-rl search --no-finish"


def test_a_search_with_one_evaluation_does_not_claim_to_know_anything(tmp_path: Path) -> None:
    single = unpack(tmp_path / "single")
    for name in ("result.json", "policy.safetensors"):
        (single / name).unlink()
    lines = (single / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    (single / "events.jsonl").write_text(lines[0], "utf-8")
    for folder in (single / "trainings").iterdir():
        if not folder.name.startswith("000"):
            shutil.rmtree(folder)
    text = Path(write_report([single], NETWORK)["report"]).read_text("utf-8")
    assert (
        "No order is best yet: 1 evaluation is too few to compare orders; 5 more would do, 20 in all are usual." in text
    )
    assert '<div class="order">' not in text


@pytest.mark.parametrize(("name", "value"), [("compliance", 0.5), ("kept", 0.9), ("repairs", 0.4)])
def test_a_search_in_which_nothing_was_followed_names_no_best_workflow(tmp_path: Path, name: str, value: float) -> None:
    missed = unpack(tmp_path / "missed")
    (missed / "policy.safetensors").unlink()
    for kind in ("trainings", "finals"):
        for path in (missed / kind).glob("*/result.json"):
            spoil_json(path, **{name: value})
    found = report_data(missed, NETWORK)
    assert not any(row.follows for row in found.ranking)
    assert [row.followed for row in found.finalists] == [False] * 3
    assert (found.best, found.equal_to_best) == (None, [])
    assert not any(pair.matters for pair in found.pair_weights)
    assert row_of(report_data(missed, NETWORK)).mean_return is None
    (line,) = answer(found).known
    what = "do not follow their order as the threshold asks."
    if name == "repairs":
        what = "repair less than once in two games, so no order is best."
    assert line.endswith(f": the defenders of all 3 finalists {what}")
    text = Path(write_report([missed], NETWORK)["report"]).read_text("utf-8")
    assert line in plain(section(text, "answer"))
    assert '<div class="order">' not in text
    assert text.count("not followed") >= len(found.ranking)
    assert section(text, "finalists").count("(NOT followed)") == 3


def test_a_damaged_event_line_is_left_out_and_counted(tmp_path: Path) -> None:
    broken = unpack(tmp_path / "broken")
    path = broken / "trainings" / "003-1" / "events.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text(lines[0] + "{not json\n" + "".join(lines[2:]), "utf-8")
    found = report_data(broken, NETWORK)
    assert found.damaged_lines == 1
    curve = next(one for one in found.trainings if one.name == "003-1")
    assert curve.updates == [1, *range(3, 51)]
    text = Path(write_report([broken], NETWORK)["report"]).read_text("utf-8")
    assert "1 damaged lines of its files were left out." in text


def test_a_damaged_policy_is_named_and_the_rest_is_shown(tmp_path: Path, stored: dict[str, Any]) -> None:
    broken = unpack(tmp_path / "broken")
    (broken / "policy.safetensors").write_bytes(b"nothing")
    text = Path(write_report([broken], NETWORK)["report"]).read_text("utf-8")
    assert "The policy cannot be used: " in text
    assert figures_of(stored["ranking"][0]) in section(text, "ranking")
    assert figures_of(stored["finalists"][0]) in section(text, "finalists")
    assert '<section id="replay">' not in text


def test_the_page_of_a_run_that_is_under_way_says_so(tmp_path: Path) -> None:
    under_way = unpack(tmp_path / "run")
    (under_way / "result.json").unlink()
    held = Run.open_search(under_way)
    result = write_report([under_way], NETWORK)
    held.close()
    assert result["state"] == "running"
    assert "This run is not finished (running): 20 of 20 evaluations done so far." in Path(result["report"]).read_text(
        "utf-8"
    )


def test_a_damaged_suggestion_does_not_change_the_answer(tmp_path: Path, stored: dict[str, Any]) -> None:
    """The workflow of an evaluation is known from its trainings as well."""
    cut = unpack(tmp_path / "cut")
    lines = (cut / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    (cut / "events.jsonl").write_text("".join("{cut\n" if '"index": 19, ' in line else line for line in lines), "utf-8")
    found = report_data(cut, NETWORK)
    assert found.damaged_lines == 2
    assert found.state == "finished"
    assert len(found.evaluations) == 20
    assert found.ranking[0].workflow == stored["ranking"][0]["workflow"]
    assert found.best == stored["best"]
    assert found.problem == ""
    (cut / "events.jsonl").write_text("", "utf-8")
    lost = report_data(cut, NETWORK)
    assert lost.ranking[0].workflow == stored["ranking"][0]["workflow"]
    assert "The finalists cannot be used" in lost.problem  # which they are stands there
    (cut / "events.jsonl").write_text("".join(lines), "utf-8")
    spoil_json(cut / "result.json", best="user,enterprise,defender,op_host,op_server")
    assert "result.json names user,enterprise" in Path(write_report([cut], NETWORK)["report"]).read_text("utf-8")


BROKEN: list[tuple[str, str, Any]] = [
    *(
        ("trainings/004-1/result.json", name, None)
        for name in (
            "mean_return", "standard_error", "compliance", "compliance_error", "kept", "repairs", "idle_fixes",
            "stop_reason", "workflow",
        )
    ),
    ("trainings/004-1/result.json", "mean_return", float("nan")),
    ("trainings/004-1/result.json", "compliance", "high"),
    ("trainings/004-1/result.json", "kept", "missing"),
    ("trainings/004-1/result.json", "episodes", [1]),
    *(
        ("config.json", name, "missing")
        for name in ("in_flight", "strategy", "replicates", "n_workflows", "finish", "finalists", "finish_episodes")
    ),
    ("config.json", "train.edition", "missing"),
    ("config.json", "train.n_envs", "missing"),
    ("events.jsonl", "index", "x"),
    ("events.jsonl", "workflow", None),
    ("events.jsonl", "sigma", None),
    ("trainings/004-1/events.jsonl", "seconds_collect", None),
    ("trainings/004-1/events.jsonl", "violations_by_pair", 7),
    ("trainings/004-1/events.jsonl", "return", float("inf")),
    ("trainings/004-1/events.jsonl", "update", "first"),
    ("trainings/004-1/events.jsonl", "compliance", "high"),
    ("bases/1/events.jsonl", "seconds_update", "long"),
    ("finals/0-0-2/events.jsonl", "return", float("nan")),
    ("finals/0-0-2/events.jsonl", "update", None),
]  # fmt: skip


@pytest.mark.parametrize(("file", "name", "value"), BROKEN)
def test_a_broken_value_anywhere_is_left_out_or_refused_in_a_sentence(
    tmp_path: Path, file: str, name: str, value: Any
) -> None:
    run_path = unpack(tmp_path / "run")
    (run_path / "policy.safetensors").unlink()  # no games: only the files matter here
    path = run_path / file

    def spoil(record: dict[str, Any], keys: list[str]) -> dict[str, Any]:
        if len(keys) > 1:
            return record | {keys[0]: spoil(record[keys[0]], keys[1:])}
        if value == "missing":
            return {key: kept for key, kept in record.items() if key != keys[0]}
        return record | ({keys[0]: value} if keys[0] in record else {})

    if file.endswith("jsonl"):
        records = [spoil(json.loads(line), [name]) for line in path.read_text("utf-8").splitlines()]
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    else:
        record = json.loads(path.read_text("utf-8"))
        keys = ["config", *name.split(".")] if file == "config.json" else [name]
        path.write_text(json.dumps(spoil(record, keys)), "utf-8")
    text = Path(write_report([run_path], NETWORK)["report"]).read_text("utf-8")
    assert "Repair enterprise before user: worth " in text
    assert "NaN" not in text[text.index('id="data">') : text.index("plotly.js v")]
    if file.endswith("result.json"):
        assert len(report_data(run_path, NETWORK).evaluations) == 19
