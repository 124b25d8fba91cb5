"""What a report shows is recomputed here from the raw files of a stored search; also of damaged, unfinished runs."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest

from benchmarks.pictures import figures_of_the_stored_run
from tests.conftest import ROOT
from tests.helpers import assert_refused, run, run_json
from workflow_rl import make_config, train_workflow
from workflow_rl.config import config_to_json
from workflow_rl.report_command import answer, gather, write_report
from workflow_rl.report_compare import compared, row_of
from workflow_rl.report_data import command_of, report_data
from workflow_rl.report_figures import figures
from workflow_rl.report_paper import tables, write_figures
from workflow_rl.run_store import Run, read_config, read_search_config
from workflow_rl.workflow import Workflow, all_workflows

EXAMPLE = ROOT / "docs" / "example-run.zip"


def unpack(folder: Path) -> Path:
    with zipfile.ZipFile(EXAMPLE) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("example") / "run")


@pytest.fixture(scope="module")
def data(example: Path) -> dict[str, Any]:
    return gather(example)


def raw_trainings(run: Path) -> dict[str, list[dict[str, Any]]]:
    """Events of all trainings, by name, read without the program."""
    return {
        folder.name: [json.loads(line) for line in (folder / "events.jsonl").read_text("utf-8").splitlines()]
        for folder in sorted((run / "trainings").iterdir())
    }


def raw_results(run: Path) -> dict[str, dict[str, Any]]:
    return {
        folder.name: json.loads((folder / "result.json").read_text("utf-8"))
        for folder in sorted((run / "trainings").iterdir())
    }


# ------------------------------------------------------------------------------------- every figure, from raw events


def test_the_ranking_is_that_of_the_search_and_its_figure_shows_it(data: dict[str, Any], example: Path) -> None:
    stored = json.loads((example / "result.json").read_text("utf-8"))
    names = ("workflow", "mean_return", "standard_error", "compliance", "visits", "follows", "equal_to_best")
    for ours, theirs in zip(data["ranking"], stored["ranking"], strict=True):
        for name in names:
            same = pytest.approx(theirs[name], rel=1e-6) if isinstance(theirs[name], float) else theirs[name]
            assert ours[name] == same, name
    figure = figures(data)["ranking"]["data"][0]
    assert figure["y"][::-1] == [row["workflow"] for row in stored["ranking"]]
    np.testing.assert_allclose(figure["x"][::-1], [row["mean_return"] for row in stored["ranking"]], rtol=1e-6)
    np.testing.assert_allclose(
        figure["error_x"]["array"][::-1],
        [2.776 * row["standard_error"] for row in stored["ranking"]],  # Student's 97.5 % for five replicates
        rtol=1e-3,
    )


def test_the_pairs_are_those_of_the_search(data: dict[str, Any], example: Path) -> None:
    stored = json.loads((example / "result.json").read_text("utf-8"))["pair_weights"]
    figure = figures(data)["pairs"]["data"][0]
    assert figure["y"][::-1] == [f"{pair['first']} before {pair['second']}" for pair in stored]
    np.testing.assert_allclose(figure["x"][::-1], [pair["effect"] for pair in stored], rtol=1e-6)


def test_the_progress_shows_suggestions_and_findings_of_the_events(data: dict[str, Any], example: Path) -> None:
    events = [json.loads(line) for line in (example / "events.jsonl").read_text("utf-8").splitlines()]
    suggested = [event for event in events if event["kind"] == "suggestion"]
    found = [event for event in events if event["kind"] == "evaluation"]
    traces = {trace["name"]: trace for trace in figures(data)["progress"]["data"]}
    assert traces["found"]["x"] == list(range(1, 21))
    np.testing.assert_allclose(traces["found"]["y"], [event["mean_return"] for event in found])
    np.testing.assert_allclose(traces["found"]["error_y"]["array"], [event["standard_error"] for event in found])
    known = [event for event in suggested if event["mean"] is not None]
    assert traces["bound"]["y"] == [event["bound"] for event in known]
    assert traces["expected"]["y"] == [event["mean"] for event in known]
    best = np.maximum.accumulate([event["mean_return"] for event in found])  # all of them follow
    np.testing.assert_allclose(traces["best so far"]["y"], best)


def test_the_map_keeps_near_orders_near_and_marks_the_evaluated_ones(data: dict[str, Any]) -> None:
    every, seen = figures(data)["map"]["data"]
    assert len(every["text"]) == 120
    plane = np.stack([every["x"], every["y"]], axis=1)
    drawn = np.linalg.norm(plane[:, None] - plane[None], axis=2)
    orders = [Workflow.parse(name) for name in every["text"]]
    kendall = np.array([[a.kendall_distance(b) for b in orders] for a in orders])
    means = [drawn[kendall == distance].mean() for distance in range(11)]
    assert means == sorted(means)
    assert means[1] < 0.5 * means[10]
    assert np.corrcoef(every["x"], every["marker"]["color"])[0, 1] > 0.6
    numbers = sorted(int(number) for text in seen["text"] for number in text.split(","))
    assert numbers == list(range(1, 21))
    at = {name: (x, y) for name, x, y in zip(every["text"], every["x"], every["y"], strict=True)}
    first = data["evaluations"][0]["workflow"]
    assert (seen["x"][0], seen["y"][0]) == at[first]


@pytest.mark.parametrize("curve", ["return", "compliance", "entropy"])
def test_the_curves_are_the_events_of_the_trainings(data: dict[str, Any], example: Path, curve: str) -> None:
    raw = raw_trainings(example)
    traces = figures(data)[f"curve-{curve}"]["data"]
    assert len(traces) == len(raw) == 100
    for trace, events in zip(traces, raw.values(), strict=True):
        assert trace["x"] == [event["update"] for event in events]
        assert trace["y"] == [event[curve] for event in events]


def test_the_violations_are_those_of_all_batches(data: dict[str, Any], example: Path) -> None:
    counts: dict[tuple[str, str], int] = {}
    total = 0
    for events in raw_trainings(example).values():
        for event in events:
            total += event["violations"]
            for part in filter(None, event["violations_by_pair"].split("; ")):
                pair, number = part.split(": ")
                repaired, due = pair.split(" instead of ")
                counts[repaired, due] = counts.get((repaired, due), 0) + int(number)
    figure = figures(data)["violations"]["data"][0]
    shown = {
        (repaired, due): figure["z"][i][j]
        for i, repaired in enumerate(figure["y"])
        for j, due in enumerate(figure["x"])
        if figure["z"][i][j]
    }
    assert shown == counts
    assert sum(shown.values()) == total


def test_time_and_throughput_are_those_of_the_trainings(data: dict[str, Any], example: Path) -> None:
    events = [event for one in raw_trainings(example).values() for event in one]
    assert data["time"]["collect"] == pytest.approx(sum(event["seconds_collect"] for event in events))
    assert data["time"]["update"] == pytest.approx(sum(event["seconds_update"] for event in events))
    assert data["time"]["transitions"] == len(events) * 20_000


def test_evaluations_are_the_means_of_their_trainings(data: dict[str, Any], example: Path) -> None:
    results = raw_results(example)
    for row in data["evaluations"]:
        own = [results[f"{row['index']:03d}-{replicate}"] for replicate in range(5)]
        assert row["mean_return"] == pytest.approx(np.mean([one["mean_return"] for one in own]))
        assert row["compliance"] == pytest.approx(np.mean([one["compliance"] for one in own]))
        assert {one["workflow"] for one in own} == {row["workflow"]}


def test_the_table_of_all_workflows_has_what_the_process_expects(data: dict[str, Any]) -> None:
    assert {row["workflow"] for row in data["predictions"]} == {str(workflow) for workflow in all_workflows()}
    expected = {row["workflow"]: row["mean"] for row in data["predictions"]}
    assert all(row["mean_return"] == pytest.approx(expected[row["workflow"]]) for row in data["ranking"])


def test_plotly_accepts_every_figure(data: dict[str, Any]) -> None:
    drawn = figures(data)
    assert len(drawn) == 8
    for name, figure in drawn.items():
        assert go.Figure(figure).to_dict()["data"], name


# --------------------------------------------------------------------------------------------------------- the page


def test_the_page_has_every_section_with_the_runs_numbers_and_asks_nobody(example: Path, tmp_path: Path) -> None:
    write_report([example], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    body = text[: text.index('<script type="application/json"')]
    names = re.findall(r'<section id="(\w+)">', body)
    assert names == [
        "answer", "ranking", "priorities", "progress", "replay", "training", "violations", "evaluation", "time",
        "settings",
    ]  # fmt: skip
    assert len(text) < 8e6
    assert text.count("plotly.js v") == 1
    assert not re.findall(r'(?:src|href)="(?!#)[^"]+"', body)
    assert "Best workflow: repair enterprise first, then op_server" in body
    assert "enterprise before user: +4.3 ± 0.5 return" in body
    assert "<noscript><svg" in body
    assert "workflow-rl search" in body


@pytest.mark.parametrize("why", ["median", "best", "worst"])
def test_watch_shows_the_episode_that_the_report_calls_so(data: dict[str, Any], example: Path, why: str) -> None:
    for red in ("bline", "meander"):
        (told,) = [story for story in data["stories"] if (story["red_agent"], story["why"]) == (red, why)]
        watched = run_json("watch", example, "--episode", why, "--red-agent", red)
        assert watched["frames"] == told["frames"]


def test_a_report_is_written_over_but_nothing_else_is(example: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.html"
    target.write_text("my thesis", "utf-8")
    assert_refused(run("report", example, "-o", target), "exists and is no report; it is left as it is.")
    assert target.read_text("utf-8") == "my thesis"
    target.unlink()
    for _ in range(2):
        assert run_json("report", example, "-o", target)["report"] == str(target)
    assert_refused(run("report", example, "-o", tmp_path), "is a directory; name a file.")
    assert_refused(run("report", example, "-o", "/proc/x.html"), "/proc/x.html: cannot be written")
    assert_refused(run("report", tmp_path / "nowhere"), "holds no run")


def test_hostile_names_stay_text(example: Path, tmp_path: Path) -> None:
    evil = tmp_path / "<script>alert(1)</script>{{data}}"
    shutil.copytree(example, evil)
    write_report([evil], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{data}}" in text


# ------------------------------------------------------------------------------------------------ runs of other kinds


def test_a_search_that_was_killed_half_way_says_so_and_shows_what_there_is(tmp_path: Path) -> None:
    killed = unpack(tmp_path / "killed")
    assert report_data(killed)["time"]["transitions"] == 10_000_000
    (killed / "result.json").unlink()
    (killed / "policy.safetensors").unlink()
    lines = (killed / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    (killed / "events.jsonl").write_text("".join(lines[:22]) + lines[22][:40], "utf-8")
    for folder in (killed / "trainings").iterdir():
        if int(folder.name[:3]) >= 10:
            (folder / "result.json").unlink()
    result = write_report([killed])
    text = Path(result["report"]).read_text("utf-8")
    assert result["state"] == "interrupted"
    assert "This run is not finished (interrupted): 10 of 20 evaluations done so far." in text
    assert "1 damaged lines of its files were left out." in text
    assert "There is no trained policy to evaluate yet." in text
    assert len(report_data(killed)["evaluations"]) == 10


def test_a_search_with_one_evaluation_does_not_claim_to_know_anything(tmp_path: Path) -> None:
    single = unpack(tmp_path / "single")
    for name in ("result.json", "policy.safetensors"):
        (single / name).unlink()
    lines = (single / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    (single / "events.jsonl").write_text(lines[0], "utf-8")
    for folder in (single / "trainings").iterdir():
        if not folder.name.startswith("000"):
            shutil.rmtree(folder)
    text = Path(write_report([single])["report"]).read_text("utf-8")
    assert "1 evaluations are too few to tell workflows apart." in text
    assert "Which priorities matter can be said after" in text


def test_a_search_in_which_nothing_was_followed_names_no_best_workflow(tmp_path: Path) -> None:
    missed = unpack(tmp_path / "missed")
    for path in (missed / "trainings").glob("*/result.json"):
        result = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps(result | {"compliance": 0.5}), "utf-8")
    found = report_data(missed)
    assert not any(row["follows"] for row in found["ranking"])
    lines = answer(found)
    assert "No workflow is followed as the threshold asks; there is no best one." in lines
    text = Path(write_report([missed])["report"]).read_text("utf-8")
    assert "there is no best one" in text
    assert text.count("not followed") >= 19


def test_a_damaged_event_line_is_left_out_and_counted(tmp_path: Path) -> None:
    broken = unpack(tmp_path / "broken")
    path = broken / "trainings" / "003-1" / "events.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text(lines[0] + "{not json\n" + "".join(lines[2:]), "utf-8")
    found = report_data(broken)
    assert found["damaged_lines"] == 1
    curve = next(one for one in found["trainings"] if one["name"] == "003-1")
    assert curve["updates"] == [1, 3, 4, 5]
    text = Path(write_report([broken])["report"]).read_text("utf-8")
    assert "1 damaged lines of its files were left out." in text


def test_a_damaged_policy_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    broken = unpack(tmp_path / "broken")
    (broken / "policy.safetensors").write_bytes(b"nothing")
    text = Path(write_report([broken])["report"]).read_text("utf-8")
    assert "The policy cannot be used: " in text
    assert "-20.23 ± 0.25" in text
    assert '<section id="replay">' not in text


def test_the_page_of_a_run_that_is_under_way_says_so(tmp_path: Path) -> None:
    under_way = unpack(tmp_path / "run")
    (under_way / "result.json").unlink()
    held = Run.open_search(under_way)
    result = write_report([under_way])
    held.close()
    assert result["state"] == "running"
    assert "This run is not finished (running): 20 of 20 evaluations done so far." in Path(result["report"]).read_text(
        "utf-8"
    )


def test_a_damaged_suggestion_does_not_change_the_answer(tmp_path: Path) -> None:
    """The workflow of an evaluation is known from its trainings as well."""
    cut = unpack(tmp_path / "cut")
    lines = (cut / "events.jsonl").read_text("utf-8").splitlines(keepends=True)
    (cut / "events.jsonl").write_text("".join("{cut\n" if '"index": 19, ' in line else line for line in lines), "utf-8")
    found = report_data(cut)
    assert found["damaged_lines"] == 2
    assert found["state"] == "finished"
    assert len(found["evaluations"]) == 20
    assert found["ranking"][0]["workflow"] == "enterprise,op_server,user,defender,op_host"
    assert found["problem"] == ""
    (cut / "events.jsonl").write_text("", "utf-8")
    assert report_data(cut)["ranking"][0]["workflow"] == "enterprise,op_server,user,defender,op_host"
    result = json.loads((cut / "result.json").read_text("utf-8"))
    (cut / "result.json").write_text(
        json.dumps(result | {"best": "user,enterprise,defender,op_host,op_server"}), "utf-8"
    )
    assert "result.json names user,enterprise" in Path(write_report([cut])["report"]).read_text("utf-8")


BROKEN: list[tuple[str, str, Any]] = [
    *(
        ("trainings/004-2/result.json", name, None)
        for name in ("mean_return", "standard_error", "stop_reason", "workflow")
    ),
    ("trainings/004-2/result.json", "mean_return", float("nan")),
    ("trainings/004-2/result.json", "compliance", "high"),
    ("trainings/004-2/result.json", "episodes", [1]),
    *(("config.json", name, "missing") for name in ("in_flight", "strategy", "replicates", "n_workflows")),
    ("config.json", "train.edition", "missing"),
    ("config.json", "train.n_envs", "missing"),
    ("events.jsonl", "index", "x"),
    ("events.jsonl", "workflow", None),
    ("events.jsonl", "sigma", None),
    ("trainings/004-2/events.jsonl", "seconds_collect", None),
    ("trainings/004-2/events.jsonl", "violations_by_pair", 7),
    ("trainings/004-2/events.jsonl", "return", float("inf")),
    ("trainings/004-2/events.jsonl", "update", "first"),
]


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
    text = Path(write_report([run_path])["report"]).read_text("utf-8")
    assert "Best workflow: repair enterprise first" in text
    assert "NaN" not in text[text.index('id="data">') : text.index("plotly.js v")]
    if file.endswith("result.json"):
        assert len(report_data(run_path)["evaluations"]) == 19


def test_a_general_policy_is_not_judged_by_an_order_that_nobody_set(tmp_path: Path) -> None:
    config = make_config("general", n_envs=20, max_episodes=2, min_episodes=0, n_eval_episodes=10)
    held = Run.create(tmp_path / "run", config)
    train_workflow(config, held)
    held.close()
    text = Path(write_report([tmp_path / "run"])["report"]).read_text("utf-8")
    assert "A general defender: return" in text
    assert '<section id="violations">' not in text


def test_throughput_counts_the_general_policy_of_a_warm_start(tmp_path: Path) -> None:
    config = make_config(
        workflow="enterprise,user,op_server,op_host,defender", warm_start="general", warm_updates=3, n_envs=20,
        max_episodes=2, min_episodes=1, n_eval_episodes=10,
    )  # fmt: skip
    held = Run.create(tmp_path / "run", config)
    train_workflow(config, held)
    held.close()
    assert report_data(tmp_path / "run")["time"]["transitions"] == 3 * 200 * 100 + 2 * 20 * 100


def test_a_universal_policy_is_judged_by_its_worst_workflow(example: Path) -> None:
    found = report_data(example / "trainings" / "000-0")
    found["train"] = found["train"] | {"universal": True, "workflow": ""}
    result = found["trainings"][0]["result"]
    found["trainings"][0]["result"] = result | {"compliance": 0.97, "worst_compliance": 0.4}
    assert answer(found)[0].startswith(
        "The defender does not follow all workflows: compliance 0.970, of the worst one 0.400"
    )
    found["trainings"][0]["result"] = result | {"counted_fixes": 0.0, "compliance": 0.0}
    assert "no counted fix, so that its compliance is undefined" in answer(found)[0]


def test_an_empty_search_and_a_training_without_result_have_honest_pages(tmp_path: Path, example: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(example / "config.json", empty / "config.json")
    assert "No workflow has been evaluated yet." in Path(write_report([empty])["report"]).read_text("utf-8")
    lone = tmp_path / "lone"
    shutil.copytree(example / "trainings" / "000-0", lone)
    (lone / "result.json").unlink()
    text = Path(write_report([lone])["report"]).read_text("utf-8")
    assert "5 updates have been made; there is no result yet." in text


def test_a_training_has_a_page_with_its_policy(tmp_path: Path) -> None:
    config = make_config(workflow="enterprise,user,op_server,op_host,defender", n_envs=20, n_eval_episodes=20)
    held = Run.create(tmp_path / "run", config)
    train_workflow(config, held)
    held.close()
    found = gather(tmp_path / "run")
    text = Path(write_report([tmp_path / "run"])["report"]).read_text("utf-8")
    assert "The defender follows the order enterprise first, then user" in text
    assert {story["red_agent"] for story in found["stories"]} == {"bline", "meander", "sleep"}
    assert '<section id="ranking">' not in text


def test_the_command_in_the_page_makes_the_same_settings(example: Path, tmp_path: Path) -> None:
    assert command_of("search", config_to_json(read_search_config(example))) == "workflow-rl search --time-limit cut"
    lone = example / "trainings" / "003-1"
    words = command_of("training", config_to_json(read_config(lone))).split()[2:]
    done = run("train", *words, "--max-episodes", "1", "--min-episodes", "1", "--n-eval-episodes", "2",
               "--run-dir", tmp_path / "again")  # fmt: skip
    assert done.returncode == 0, done.stderr
    from dataclasses import replace

    wanted = replace(read_config(lone), max_episodes=1, min_episodes=1, n_eval_episodes=2)
    assert read_config(tmp_path / "again") == wanted
    assert read_search_config(example).n_workflows == 20


# ----------------------------------------------------------------------------------- several runs, figures for papers


def test_several_runs_stand_side_by_side(example: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(example / "trainings" / "004-2", other)
    done = run_json("report", example, other, "-o", tmp_path / "both.html")
    text = Path(done["report"]).read_text("utf-8")
    assert "2 runs compared" in text
    assert str(example) in text
    assert str(other) in text
    assert "Settings that differ" in text
    assert "-20.23 ± 1.33" in text  # the error of the level is not common to other runs
    row = row_of(example)
    data = report_data(example)
    wanted = 2.776 * np.hypot(data["ranking"][0]["standard_error"], data["level_error"])
    assert compared([row])["data"][0]["error_x"]["array"] == [pytest.approx(wanted, rel=1e-3)]


def test_figures_for_papers_come_with_their_numbers(data: dict[str, Any], tmp_path: Path) -> None:
    names = write_figures(data, tmp_path / "figures")
    assert {"ranking.svg", "ranking.pdf", "pairs.svg", "progress.pdf", "curves.svg", "violations.csv"} <= set(names)
    for name in names:
        content = (tmp_path / "figures" / name).read_bytes()
        assert content.startswith({"svg": b"<?xml", "pdf": b"%PDF", "csv": b""}[name[-3:]])
        assert len(content) > 100
    rows = (tmp_path / "figures" / "ranking.csv").read_text("utf-8").splitlines()
    assert len(rows) == 20
    assert rows[1].startswith("enterprise,op_server") or rows[1].startswith('"enterprise,op_server')
    assert len(tables(data)["curves"]) == 500
    again = tmp_path / "again"
    write_figures(data, again)
    assert all((again / name).read_bytes() == (tmp_path / "figures" / name).read_bytes() for name in names)


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def marks(picture: bytes) -> list[tuple[str, str, str, list[float]]]:
    """What an SVG of matplotlib shows: kind, words, colours and numbers of every mark, without made-up names."""
    found = []
    for element in ElementTree.fromstring(picture).iter():
        kind = element.tag.rpartition("}")[2]
        if kind in ("path", "use", "text"):
            places = " ".join(element.get(name, "") for name in ("d", "x", "y", "transform"))
            style = element.get("style", "")
            found.append((kind, element.text or "", style, [float(number) for number in NUMBER.findall(places)]))
    return found


def show_the_same(left: bytes, right: bytes, points: float = 0.5) -> bool:
    """Do two pictures have the same marks at the same places, up to ``points`` (the figures are 468 points wide)?"""
    one, other = marks(left), marks(right)
    if [mark[:3] for mark in one] != [mark[:3] for mark in other]:
        return False
    return all(
        len(a[3]) == len(b[3]) and np.allclose(a[3], b[3], rtol=0, atol=points) for a, b in zip(one, other, strict=True)
    )


def test_the_pictures_of_the_documents_are_those_of_the_stored_run(tmp_path: Path) -> None:
    for name, content in figures_of_the_stored_run(tmp_path).items():
        stored = (ROOT / "docs" / "pictures" / name).read_bytes()
        assert show_the_same(stored, content), f"run python -m benchmarks.pictures ({name})"


def test_pictures_that_differ_in_a_word_a_colour_or_a_place_are_not_the_same() -> None:
    text = (ROOT / "docs" / "pictures" / "pairs.svg").read_text("utf-8")
    assert show_the_same(text.encode(), text.encode())
    for old, new in (
        ("enterprise before user", "user before enterprise"),
        ("fill: #0072b2", "fill: #8a929c"),
        ("M 177.258846 203.262747", "M 178.258846 203.262747"),
        ("<text", "<txt"),
    ):
        assert old in text
        changed = text.replace(old, new).replace("</text", "</txt") if new == "<txt" else text.replace(old, new, 1)
        assert not show_the_same(text.encode(), changed.encode()), old


def test_without_matplotlib_one_sentence_says_what_to_install(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {"matplotlib", *(name for name in sys.modules if name.startswith("matplotlib."))}:
        monkeypatch.setitem(sys.modules, name, None)
    done = run("report", example, "-o", tmp_path / "r.html", "--figures", tmp_path / "f")
    assert_refused(done, "figures need matplotlib; in the checkout of workflow_rl: pip install -e '.[figures]'.")
    assert_refused(
        run("report", example, example, "--figures", tmp_path / "f"), "figures are made of one run at a time."
    )
