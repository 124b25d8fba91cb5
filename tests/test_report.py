"""What a report shows is recomputed here from the raw files of a stored search; also of damaged, unfinished runs."""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
import zipfile
from dataclasses import asdict, fields, is_dataclass, replace
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
from workflow_rl.config import SearchConfig
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.presets import make_search_config
from workflow_rl.report.build import Games, answer, fresh_games, run_page, write_report
from workflow_rl.report.compare import compared, row_of
from workflow_rl.report.drawing import BLUE, GREY, to_paper, to_plotly
from workflow_rl.report.figures import figures, tables, write_figures
from workflow_rl.report.page import TEMPLATES, arrows
from workflow_rl.report.run_data import report_data
from workflow_rl.report.run_types import RunData, command_of
from workflow_rl.runs import Run, read_config, read_search_config
from workflow_rl.search.findings import PairEffect
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.workflow import Workflow, all_workflows

EXAMPLE = ROOT / "docs" / "example-run.zip"
NETWORK = load_network()


def unpack(folder: Path) -> Path:
    with zipfile.ZipFile(EXAMPLE) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("example") / "run")


@pytest.fixture(scope="module")
def data(example: Path) -> RunData:
    return report_data(example, NETWORK)


@pytest.fixture(scope="module")
def games(example: Path, data: RunData) -> Games:
    return fresh_games(example, data)


def drawn(data: RunData) -> dict[str, dict[str, Any]]:
    """The figures as the page has them."""
    return {name: to_plotly(figure) for name, figure in figures(data).items()}


@pytest.fixture(scope="module")
def stored(example: Path) -> dict[str, Any]:
    """What the search itself wrote about its result."""
    result: dict[str, Any] = json.loads((example / "result.json").read_text("utf-8"))
    return result


@pytest.fixture(scope="module")
def settings(example: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((example / "config.json").read_text("utf-8"))["config"]
    return config


KINDS = ("bases", "trainings", "finals")  # of trainings that a search has
OBEDIENCE = ("compliance", "compliance_error", "kept", "repairs", "idle_fixes")


def raw_trainings(run: Path, kind: str = "trainings") -> dict[str, list[dict[str, Any]]]:
    """Events of all trainings of a kind, by name, read without the program."""
    return {
        folder.name: [json.loads(line) for line in (folder / "events.jsonl").read_text("utf-8").splitlines()]
        for folder in sorted((run / kind).iterdir())
    }


def raw_results(run: Path, kind: str = "trainings") -> dict[str, dict[str, Any]]:
    folders = sorted((run / kind).iterdir())
    return {folder.name: json.loads((folder / "result.json").read_text("utf-8")) for folder in folders}


def pooled(results: list[dict[str, Any]]) -> dict[str, float]:
    """How trainings with equally many episodes kept their order: each repair counts alike, and each training's kept."""
    repairs = np.array([one["repairs"] for one in results])
    violations = repairs * [1 - one["compliance"] for one in results]  # per episode
    errors = repairs * [one["compliance_error"] for one in results]
    return {
        "compliance": 1 - violations.sum() / repairs.sum(),
        "compliance_error": np.sqrt((errors**2).sum()) / repairs.sum(),
        "kept": np.mean([one["kept"] for one in results]),
        "repairs": repairs.mean(),
        "idle_fixes": np.mean([one["idle_fixes"] for one in results]),
    }


def figures_of(row: dict[str, Any]) -> str:
    return f"{row['mean_return']:.2f} ± {row['standard_error']:.2f}"


def section(text: str, name: str) -> str:
    """One section of a page."""
    return text.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def cells(text: str) -> list[list[str]]:
    """The rows of all tables in a piece of a page, headings first."""
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)]
    return [[html.unescape(cell) for cell in row] for row in rows]


# ------------------------------------------------------------------------------------- every figure, from raw events


def test_the_ranking_is_that_of_the_search_and_its_figure_shows_it(
    data: RunData, stored: dict[str, Any], settings: dict[str, Any]
) -> None:
    names = ("workflow", "mean_return", "standard_error", *OBEDIENCE, "visits", "follows", "equal_to_best")
    for ours, theirs in zip(data.ranking, stored["ranking"], strict=True):
        for name in names:
            same = pytest.approx(theirs[name], rel=1e-6) if isinstance(theirs[name], float) else theirs[name]
            assert getattr(ours, name) == same, name
    figure = drawn(data)["ranking"]["data"][0]
    assert figure["y"][::-1] == [row["workflow"] for row in stored["ranking"]]
    np.testing.assert_allclose(figure["x"][::-1], [row["mean_return"] for row in stored["ranking"]], rtol=1e-6)
    np.testing.assert_allclose(
        figure["error_x"]["array"][::-1],
        [12.706 * row["standard_error"] for row in stored["ranking"]],  # Student's 97.5 % for two replicates
        rtol=1e-3,
    )
    assert settings["replicates"] == 2
    kept = [[row["compliance"], row["kept"]] for row in stored["ranking"]]
    np.testing.assert_allclose([shown[:2] for shown in figure["customdata"][::-1]], kept, rtol=1e-6)


def test_how_a_workflow_was_kept_is_pooled_over_all_its_trainings(data: RunData, example: Path) -> None:
    results = raw_results(example).values()
    assert any(row.visits > 1 for row in data.ranking)
    for row in data.ranking:
        own = [one for one in results if one["workflow"] == row.workflow]
        assert len(own) == 2 * row.visits
        wanted = pooled(own)
        assert {name: getattr(row, name) for name in OBEDIENCE} == pytest.approx(wanted)
        assert row.follows == (min(wanted["compliance"], wanted["kept"]) >= 0.95 and wanted["repairs"] >= 0.5)


def test_the_pairs_are_those_of_the_search(data: RunData, stored: dict[str, Any]) -> None:
    pairs = stored["pair_weights"]
    figure = drawn(data)["pairs"]["data"][0]
    assert figure["y"][::-1] == [f"{pair['first']} before {pair['second']}" for pair in pairs]
    np.testing.assert_allclose(figure["x"][::-1], [pair["effect"] for pair in pairs], rtol=1e-6)
    assert figure["marker"]["color"][::-1] == [BLUE if pair["matters"] else GREY for pair in pairs]
    for ours, theirs in zip(data.pair_weights, pairs, strict=True):
        exact = {name: value for name, value in theirs.items() if not isinstance(value, float)}
        assert {name: getattr(ours, name) for name in exact} == exact
        rest = {name: value for name, value in theirs.items() if isinstance(value, float)}
        assert {name: getattr(ours, name) for name in rest} == pytest.approx(rest, rel=1e-4, abs=1e-6)


def test_the_progress_shows_suggestions_and_findings_of_the_events(data: RunData, example: Path) -> None:
    events = [json.loads(line) for line in (example / "events.jsonl").read_text("utf-8").splitlines()]
    suggested = [event for event in events if event["kind"] == "suggestion"]
    found = [event for event in events if event["kind"] == "evaluation"]
    traces = {trace["name"]: trace for trace in drawn(data)["progress"]["data"]}
    assert traces["found"]["x"] == list(range(1, 21))
    np.testing.assert_allclose(traces["found"]["y"], [event["mean_return"] for event in found])
    np.testing.assert_allclose(traces["found"]["error_y"]["array"], [event["standard_error"] for event in found])
    known = [event for event in suggested if event["mean"] is not None]
    assert traces["bound"]["y"] == [event["bound"] for event in known]
    assert traces["expected"]["y"] == [event["mean"] for event in known]
    best = np.maximum.accumulate([event["mean_return"] for event in found])  # all of them follow
    np.testing.assert_allclose(traces["best so far"]["y"], best)


def test_the_map_keeps_near_orders_near_and_marks_the_evaluated_ones(data: RunData) -> None:
    every, seen = drawn(data)["map"]["data"]
    assert len(every["text"]) == 120
    plane = np.stack([every["x"], every["y"]], axis=1)
    apart = np.linalg.norm(plane[:, None] - plane[None], axis=2)
    orders = [Workflow.parse(name) for name in every["text"]]
    kendall = np.array([[a.kendall_distance(b) for b in orders] for a in orders])
    means = [apart[kendall == distance].mean() for distance in range(11)]
    assert means == sorted(means)
    assert means[1] < 0.5 * means[10]
    assert np.corrcoef(every["x"], every["marker"]["color"])[0, 1] > 0.6
    numbers = sorted(int(number) for text in seen["text"] for number in text.split(","))
    assert numbers == list(range(1, 21))
    at = {name: (x, y) for name, x, y in zip(every["text"], every["x"], every["y"], strict=True)}
    first = data.evaluations[0].workflow
    assert (seen["x"][0], seen["y"][0]) == at[first]


@pytest.mark.parametrize("curve", ["return", "compliance", "entropy"])
def test_the_curves_are_the_events_of_the_trainings(data: RunData, example: Path, curve: str) -> None:
    raw = raw_trainings(example)
    traces = drawn(data)[f"curve-{curve}"]["data"]
    assert len(traces) == len(raw) == 20 * 2
    for trace, events in zip(traces, raw.values(), strict=True):
        assert trace["x"] == [event["update"] for event in events]
        assert trace["y"] == [event[curve] for event in events]


def test_the_violations_are_those_of_all_batches(data: RunData, example: Path) -> None:
    counts: dict[tuple[str, str], int] = {}
    total = 0
    for events in raw_trainings(example).values():
        for event in events:
            total += event["violations"]
            for part in filter(None, event["violations_by_pair"].split("; ")):
                pair, number = part.split(": ")
                repaired, due = pair.split(" instead of ")
                counts[repaired, due] = counts.get((repaired, due), 0) + int(number)
    figure = drawn(data)["violations"]["data"][0]
    shown = {
        (repaired, due): figure["z"][i][j]
        for i, repaired in enumerate(figure["y"])
        for j, due in enumerate(figure["x"])
        if figure["z"][i][j]
    }
    assert shown == counts
    assert sum(shown.values()) == total


def test_time_and_throughput_are_those_of_the_trainings(data: RunData, example: Path, stored: dict[str, Any]) -> None:
    events = [event for kind in KINDS for one in raw_trainings(example, kind).values() for event in one]
    assert data.time.collect == pytest.approx(sum(event["seconds_collect"] for event in events))
    assert data.time.update == pytest.approx(sum(event["seconds_update"] for event in events))
    assert data.time.transitions == len(events) * 20_000 == stored["transitions"]
    assert len(events) == 2 * 30 + 20 * 2 * 50 + 3 * 2 * (350 + 700)


def test_evaluations_are_the_means_of_their_trainings(data: RunData, example: Path) -> None:
    results = raw_results(example)
    for row in data.evaluations:
        own = [results[f"{row.index:03d}-{replicate}"] for replicate in range(2)]
        assert row.mean_return == pytest.approx(np.mean([one["mean_return"] for one in own]))
        assert {name: getattr(row, name) for name in OBEDIENCE} == pytest.approx(pooled(own))
        assert {one["workflow"] for one in own} == {row.workflow}
    assert len(data.evaluations) * 2 == len(results)


def test_the_finalists_are_the_means_over_their_trainings(
    data: RunData, example: Path, stored: dict[str, Any], settings: dict[str, Any]
) -> None:
    results, numbers = raw_results(example, "finals"), range(settings["finalists"])
    assert set(results) == {f"{k}-{r}-{n}" for k in numbers for r in (0, 1) for n in (1, 2)}
    own = {(k, n): [results[f"{k}-{r}-{n}"] for r in (0, 1)] for k in numbers for n in (1, 2)}
    returns = {place: [one["mean_return"] for one in trained] for place, trained in own.items()}
    noise = np.sqrt(np.mean([(a - b) ** 2 / 2 for a, b in returns.values()]))  # of one training
    rows = {row.workflow: row for row in data.finalists}
    finalists = [own[k, 1][0]["workflow"] for k in numbers]
    assert set(rows) == set(finalists)
    for k, workflow in enumerate(finalists):
        row, kept = rows[workflow], pooled(own[k, 2])
        assert {one["workflow"] for n in (1, 2) for one in own[k, n]} == {workflow}
        assert row.mean_return == pytest.approx(np.mean(returns[k, 2]))
        assert row.half_as_long == pytest.approx(np.mean(returns[k, 1]))
        assert row.standard_error == pytest.approx(noise / np.sqrt(2))
        assert {name: getattr(row, name) for name in OBEDIENCE} == pytest.approx(kept)
        assert row.followed == (min(kept["compliance"], kept["kept"]) >= 0.95 and kept["repairs"] >= 0.5)
        assert row.updates == own[k, 2][0]["updates"] == 2 * own[k, 1][0]["updates"]
    followed = [row for row in data.finalists if row.followed]
    assert [row.mean_return for row in followed] == sorted((row.mean_return for row in followed), reverse=True)
    assert data.finalists[: len(followed)] == followed
    assert data.best == followed[0].workflow == stored["best"]
    for ours, theirs in zip(data.finalists, stored["finalists"], strict=True):
        assert asdict(ours) == pytest.approx(theirs)


def test_what_a_priority_is_worth_is_the_difference_between_two_finalists(
    data: RunData, example: Path, stored: dict[str, Any], settings: dict[str, Any]
) -> None:
    results, numbers = raw_results(example, "finals"), range(settings["finalists"])
    first = results["0-0-1"]["workflow"].split(",")  # the best of the short trainings
    assert ",".join(first) == data.ranking[0].workflow
    returns = {(k, n): [results[f"{k}-{r}-{n}"]["mean_return"] for r in (0, 1)] for k in numbers for n in (1, 2)}
    error = np.sqrt(np.mean([np.var(both, ddof=1) for both in returns.values()]))  # of the difference of two means of 2
    clear = 2.969 * error  # Student's 98.75 % with 6 degrees of freedom: two comparisons together
    for k in numbers[1:]:
        rival = results[f"{k}-0-1"]["workflow"].split(",")
        short, long = (np.mean(returns[0, n]) - np.mean(returns[k, n]) for n in (1, 2))
        (pair,) = [pair for pair in data.pair_weights if pair.rival == ",".join(rival)]
        before, after = (pair.first, pair.second) if long >= 0 else (pair.second, pair.first)
        assert first.index(before) < first.index(after)
        assert rival.index(before) > rival.index(after)
        (row,) = [row for row in data.finalists if row.workflow == ",".join(rival)]
        assert row.reverses == f"{before} before {after}"
        assert pair.effect == pytest.approx(abs(long))
        assert pair.half_as_long == pytest.approx(short if long >= 0 else -short)
        assert pair.standard_error == pytest.approx(error)
        stays = min(abs(short), abs(long)) > clear and short * long > 0 and abs(long) >= abs(short) / 2
        assert pair.matters == stays  # all finalists are followed
    assert all(row.followed for row in data.finalists)
    others = [pair for pair in data.pair_weights if not pair.rival]
    assert len(others) == 10 - len(numbers[1:])
    assert not any(pair.matters or pair.half_as_long is not None for pair in others)
    matter = [(pair.first, pair.second) for pair in data.pair_weights if pair.matters]
    assert matter == [("enterprise", "user")]
    orders = [row["workflow"] for row in stored["ranking"]]
    assert data.equal_to_best == [one for one in orders if one.index("enterprise") < one.index("user")]
    assert data.equal_to_best == stored["equal_to_best"]


def test_the_answer_shows_an_arrow_for_each_priority_that_matters_with_its_worth() -> None:
    def pair(first: str, second: str, effect: float, matters: bool) -> PairEffect:
        return PairEffect(first, second, effect, 0.1, 0.2, 1.0, matters)

    pairs = [
        pair("op_server", "enterprise", 19.3, True), pair("op_server", "user", 12.9, True),
        pair("enterprise", "user", 5.0, True), pair("defender", "op_host", 0.2, False),
    ]  # fmt: skip
    found = arrows(pairs, "defender,op_server,enterprise,user,op_host", 6)
    svg = TEMPLATES.from_string('{% from "report.html" import arrows %}{{ arrows(found) }}').render(found=found)
    assert svg.count("marker-end") == 3
    for word in ("+19.3", "+12.9", "+5.0", "op_server before enterprise +19.3"):
        assert word in svg
    assert svg.index(">op_server<") < svg.index(">enterprise<") < svg.index(">user<")
    assert ">defender<" not in svg
    assert "For defender, op_host no effect is clear." in svg
    assert arrows(pairs[3:], "defender,op_server,enterprise,user,op_host", 6) is None
    assert arrows(pairs, None, 6) is None
    assert arrows(pairs, "defender,op_server,enterprise,user,op_host", 5) is None  # as the words: too few evaluations


def test_the_curves_of_the_finalists_are_the_events_of_their_trainings(data: RunData, example: Path) -> None:
    raw, results = raw_trainings(example, "finals"), raw_results(example, "finals")
    traces = drawn(data)["finals"]["data"]
    for trace, (name, events) in zip(traces, raw.items(), strict=True):
        assert trace["x"] == [event["update"] for event in events]
        assert trace["y"] == [event["return"] for event in events]
        assert trace["name"] == results[name]["workflow"]
        assert f"final {name}, update" in trace["hovertemplate"]
    colours = {(trace["name"], trace["line"]["color"]) for trace in traces}
    assert len(colours) == len(data.finalists)  # one each


def test_the_page_shows_the_finalists_before_the_ranking(data: RunData, stored: dict[str, Any]) -> None:
    text = run_page(data, Games(), answer(data))
    heading, *rows = cells(section(text, "finalists"))
    assert heading == [
        "workflow", "return", "half as long", "compliance", "kept", "repairs", "idle fixes", "reverses"
    ]  # fmt: skip
    for cell, row in zip(rows, stored["finalists"], strict=True):
        assert cell == [
            row["workflow"], figures_of(row), f"{row['half_as_long']:.2f}", f"{row['compliance']:.3f}",
            f"{row['kept']:.3f}", f"{row['repairs']:.1f}", f"{row['idle_fixes']:.1f}", row["reverses"],
        ]  # fmt: skip
    assert 'id="plot-finals"' in section(text, "finalists")
    assert "Evaluated workflows, short trainings" in section(text, "ranking")
    not_followed = replace(data.finalists[0], followed=False, reverses="a before b")
    shown = section(run_page(replace(data, finalists=[not_followed]), Games(), []), "finalists")
    assert cells(shown)[1][-1] == "a before b (NOT followed)"


def test_the_table_of_all_workflows_has_what_the_process_expects(data: RunData) -> None:
    assert {row.workflow for row in data.predictions} == {str(workflow) for workflow in all_workflows()}
    expected = {row.workflow: row.mean for row in data.predictions}
    assert all(row.mean_return == pytest.approx(expected[row.workflow]) for row in data.ranking)


def test_plotly_accepts_every_figure(data: RunData) -> None:
    curves = {"curve-return", "curve-compliance", "curve-entropy", "finals"}
    assert set(drawn(data)) == {"ranking", "pairs", "progress", "map", "violations"} | curves
    for name, figure in drawn(data).items():
        assert go.Figure(figure).to_dict()["data"], name


# --------------------------------------------------------------------------------------------------------- the page


def test_the_page_has_every_section_with_the_runs_numbers_and_asks_nobody(
    example: Path, stored: dict[str, Any], tmp_path: Path
) -> None:
    write_report([example], NETWORK, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    body = text[: text.index('<script type="application/json"')]
    names = re.findall(r'<section id="(\w+)">', body)
    assert names == [
        "answer", "finalists", "ranking", "priorities", "progress", "replay", "training", "violations", "evaluation",
        "time", "network", "settings",
    ]  # fmt: skip
    assert len(text) < 8e6
    assert text.count("plotly.js v") == 1
    assert not re.findall(r'(?:src|href)="(?!#)[^"]+"', body)
    first, second, *_ = stored["best"].split(",")
    assert f"Best workflow: repair {first} first, then {second}" in body
    (pair,) = [pair for pair in stored["pair_weights"] if pair["matters"]]
    effect = f"{pair['effect']:+.1f} ± {pair['standard_error']:.1f} return"
    assert f"enterprise before user: {effect} (trained half as long {pair['half_as_long']:+.1f})" in body
    place = stored["ranking"][1]
    apart = "= best" if place["equal_to_best"] else f"{place['behind_best']:.2f} ± {place['behind_error']:.2f} behind"
    kept = [f"{place['compliance']:.3f}", f"{place['kept']:.3f}"]
    assert [place["workflow"], "2", figures_of(place), apart, *kept, str(place["visits"])] in cells(body)
    for name in ("finalists", "ranking", "progress", "training", "evaluation"):
        heading = cells(section(body, name))[0]
        assert heading[heading.index("compliance") + 1] == "kept", name
    assert cells(section(body, "replay"))[0][3:] == ["repairs in order", "violations", "idle fixes"]
    assert "<noscript><svg" in body
    assert "workflow-rl search" in body


@pytest.mark.parametrize("why", ["median", "best", "worst"])
def test_watch_shows_the_episode_that_the_report_calls_so(games: Games, example: Path, why: str) -> None:
    for red in ("bline", "meander"):
        (told,) = [story for story in games.stories if (story.red_agent, story.why) == (red, why)]
        watched = run_json("watch", example, "--episode", why, "--red-agent", red)
        assert watched["frames"] == told.to_json()["frames"]


def test_the_table_of_episodes_counts_repairs_violations_and_idle_fixes(data: RunData, games: Games) -> None:
    _, *rows = cells(section(run_page(data, games, []), "replay"))
    judged = set()
    for row, story in zip(rows, games.stories, strict=True):
        verdicts = [frame.fix.verdict for frame in story.frames if frame.fix]
        judged |= set(verdicts)
        assert row[:2] == [story.red_agent, story.why]
        assert row[3:] == [str(verdicts.count(name)) for name in ("in order", "violation", "idle")]
    assert judged == {"in order", "violation", "idle"}


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
    write_report([evil], NETWORK, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{data}}" in text


def test_every_text_of_a_run_and_of_its_games_is_escaped(data: RunData, games: Games) -> None:
    def spoil(value: Any, name: str = "") -> Any:
        if is_dataclass(value) and not isinstance(value, (type, SearchConfig)):
            return replace(value, **{item.name: spoil(getattr(value, item.name), item.name) for item in fields(value)})
        if isinstance(value, dict):
            return {key: spoil(one, key) for key, one in value.items()}
        if isinstance(value, (list, tuple)):  # also of the network: all its names
            return type(value)(spoil(one, name) for one in value)
        names = isinstance(value, str) and value != "" and name not in ("kind", "takeover")
        return f"{value}<img>".replace(",", "<img>,") if names else value

    stories = [replace(story, why="<img>", red_agent="'<img>") for story in games.stories]
    evil = replace(games, stories=stories, problem="<img>")
    text = run_page(spoil(data), evil, ["<img>", "<img>"])
    body = text[: text.index("plotly.js v")]
    assert "<img>" not in body
    assert body.count("&lt;img&gt;") > 300
    assert body.count("\\u003cimg\\u003e") > 300


# ------------------------------------------------------------------------------------------------ runs of other kinds


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


def spoil_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")


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
    assert "1 evaluations are too few to compare workflows." in text
    assert "Which priorities matter can be said after" in text


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
    lines = answer(found)
    assert "No finalist is followed as the threshold asks; there is no best one." in lines
    text = Path(write_report([missed], NETWORK)["report"]).read_text("utf-8")
    assert "there is no best one" in text
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
    tmp_path: Path, stored: dict[str, Any], file: str, name: str, value: Any
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
    assert f"Best workflow: repair {stored['best'].split(',')[0]} first" in text
    assert "NaN" not in text[text.index('id="data">') : text.index("plotly.js v")]
    if file.endswith("result.json"):
        assert len(report_data(run_path, NETWORK).evaluations) == 19


def test_a_general_policy_is_not_judged_by_an_order_that_nobody_set(tmp_path: Path) -> None:
    config = make_config("general", n_envs=20, max_episodes=2, min_episodes=0, n_eval_episodes=10)
    held = Run.create(tmp_path / "run", config, copy_of(load_network()))
    train_workflow(config, held)
    held.close()
    text = Path(write_report([tmp_path / "run"], NETWORK)["report"]).read_text("utf-8")
    assert "A general defender: return" in text
    assert '<section id="violations">' not in text


def test_throughput_counts_the_general_policy_of_a_warm_start(tmp_path: Path) -> None:
    config = make_config(
        workflow="enterprise,user,op_server,op_host,defender", warm_start="general", warm_updates=3, n_envs=20,
        max_episodes=2, min_episodes=1, n_eval_episodes=10,
    )  # fmt: skip
    held = Run.create(tmp_path / "run", config, copy_of(load_network()))
    train_workflow(config, held)
    held.close()
    assert report_data(tmp_path / "run", NETWORK).time.transitions == 3 * 200 * 100 + 2 * 20 * 100


def test_a_universal_policy_is_judged_by_its_worst_workflow(example: Path) -> None:
    found = report_data(example / "trainings" / "000-0", NETWORK)
    (one,), config = found.trainings, replace(found.train, universal=True, workflow="")
    assert one.result is not None
    result = replace(
        one.result, followed=False, compliance=0.97, compliance_error=0.004, kept=0.96, repairs=7.0, idle_fixes=2.0,
        worst_compliance=0.4, worst_kept=0.3,
    )  # fmt: skip

    def said(judged: WorkflowResult) -> str:
        return answer(replace(found, config=config, trainings=[replace(one, result=judged)]))[0]

    all_ = "compliance 0.970 ± 0.004, kept 0.960, 7.0 repairs and 2.0 idle fixes per episode"
    worst = "of the worst one compliance 0.400, kept 0.300"
    assert said(result).startswith(f"The defender does NOT follow every workflow: {all_}; {worst}; return ")
    followed = replace(result, followed=True)
    assert said(followed).startswith(f"The defender follows every workflow: {all_}; {worst}; return ")
    undefined = replace(
        result, compliance=None, compliance_error=None, kept=None, worst_compliance=None, worst_kept=None, repairs=0.0
    )
    nothing = "nothing shown: 0.0 repairs and 2.0 idle fixes per episode; of the worst one nothing shown; return "
    assert said(undefined).startswith(f"The defender does NOT follow every workflow: {nothing}")


def test_a_training_with_hardly_a_repair_has_shown_nothing_about_its_order(example: Path, tmp_path: Path) -> None:
    lone = tmp_path / "lone"
    shutil.copytree(example / "trainings" / "000-0", lone)
    spoil_json(lone / "result.json", followed=False, repairs=0.4, idle_fixes=9.0)
    order = "the order user first, then enterprise, then defender, then op_server, then op_host"
    words = "nothing shown: 0.4 repairs and 9.0 idle fixes per episode; return "
    assert answer(report_data(lone, NETWORK))[0].startswith(f"The defender does NOT follow {order}: {words}")
    spoil_json(lone / "result.json", compliance=None, compliance_error=None, kept=None, repairs=0.0)
    text = Path(write_report([lone], NETWORK)["report"]).read_text("utf-8")
    assert "nothing shown: 0.0 repairs" in section(text, "answer")
    assert cells(section(text, "training"))[1][4:6] == ["", ""]


def test_an_empty_search_and_a_training_without_result_have_honest_pages(tmp_path: Path, example: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(example / "config.json", empty / "config.json")
    assert "No workflow has been evaluated yet." in Path(write_report([empty], NETWORK)["report"]).read_text("utf-8")
    lone = tmp_path / "lone"
    shutil.copytree(example / "trainings" / "000-0", lone)
    (lone / "result.json").unlink()
    text = Path(write_report([lone], NETWORK)["report"]).read_text("utf-8")
    assert "50 updates have been made; there is no result yet." in text


def test_a_training_has_a_page_with_its_policy(tmp_path: Path) -> None:
    config = make_config(workflow="enterprise,user,op_server,op_host,defender", n_envs=20, n_eval_episodes=20)
    held = Run.create(tmp_path / "run", config, copy_of(load_network()))
    train_workflow(config, held)
    held.close()
    found = fresh_games(tmp_path / "run", report_data(tmp_path / "run", NETWORK))
    text = Path(write_report([tmp_path / "run"], NETWORK)["report"]).read_text("utf-8")
    assert "The defender follows the order enterprise first, then user" in text
    assert {story.red_agent for story in found.stories} == {"bline", "meander", "sleep"}
    assert '<section id="ranking">' not in text


def test_the_command_in_the_page_makes_the_same_settings(example: Path, tmp_path: Path) -> None:
    assert command_of(read_search_config(example)) == "workflow-rl search"
    lone = example / "trainings" / "003-1"
    words = command_of(read_config(lone)).split()[2:]
    short = ("--max-episodes", "1", "--min-episodes", "1", "--n-eval-episodes", "2")
    base = read_config(lone).warm_start  # where the search had it: beside the trainings of its directory
    assert base.endswith("bases/1")
    for options in ([*short, "--n-envs", "5", "--run-dir", base],
                    [*words, *short, "--run-dir", "again"]):  # fmt: skip
        done = run("train", *options, "--no-tensorboard", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    wanted = replace(read_config(lone), max_episodes=1, min_episodes=1, n_eval_episodes=2)
    assert read_config(tmp_path / "again") == wanted
    assert read_search_config(example).n_workflows == 20


@pytest.mark.parametrize("given", [{}, {"finalists": 3}, {"alignment": "potential"}, {"kept_target": 0.9}])
def test_the_command_of_an_incident_names_what_differs_from_its_own_defaults(given: dict[str, Any]) -> None:
    config = make_search_config(takeover="30", **given)
    words = command_of(config).split()[2:]
    options = {words[i][2:].replace("-", "_"): words[i + 1] for i in range(0, len(words), 2)}
    assert options.pop("takeover") == "30"
    kinds = {"finalists": int, "kept_target": float, "alignment": str}
    again = make_search_config(takeover="30", **{name: kinds[name](value) for name, value in options.items()})
    assert again == config
    assert set(given) <= set(options)


# ----------------------------------------------------------------------------------- several runs, figures for papers


def test_several_runs_stand_side_by_side(example: Path, stored: dict[str, Any], tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(example / "trainings" / "004-1", other)
    done = run_json("report", example, other, "-o", tmp_path / "both.html")
    text = Path(done["report"]).read_text("utf-8")
    assert "2 runs compared" in text
    assert str(example) in text
    assert str(other) in text
    assert "Settings that differ" in text
    best, row = stored["finalists"][0], row_of(report_data(example, NETWORK))
    assert figures_of(best) in section(text, "compared")
    names = ("workflow", "mean_return", "standard_error", "compliance")
    assert {name: getattr(row, name) for name in names} == pytest.approx({name: best[name] for name in names})
    wanted = 2.4469 * best["standard_error"]  # six degrees of freedom: three finalists, two lengths, two replicates
    assert to_plotly(compared([row]))["data"][0]["error_x"]["array"] == [pytest.approx(wanted, rel=1e-3)]


def test_without_finalists_a_search_is_compared_with_the_error_of_its_level(tmp_path: Path) -> None:
    lost = unpack(tmp_path / "lost")
    shutil.rmtree(lost / "finals")
    results = raw_results(lost)
    levels = [np.mean([one["mean_return"] for name, one in results.items() if name.endswith(r)]) for r in ("-0", "-1")]
    place, row = report_data(lost, NETWORK).ranking[0], row_of(report_data(lost, NETWORK))
    error = np.hypot(place.standard_error, abs(levels[0] - levels[1]) / 2)  # the level is not common to other runs
    assert (row.workflow, row.mean_return) == (place.workflow, place.mean_return)
    assert row.standard_error == pytest.approx(error)
    assert to_plotly(compared([row]))["data"][0]["error_x"]["array"] == [pytest.approx(12.706 * error, rel=1e-3)]


def test_the_list_of_runs_has_the_best_finalist_of_a_search(example: Path, stored: dict[str, Any]) -> None:
    (row,) = run_json("runs", example)["runs"]
    assert row["workflow"] == stored["best"]
    for name in ("mean_return", "standard_error", "compliance"):
        assert row[name] == stored["finalists"][0][name]
    assert row["mean_return"] > stored["ranking"][0]["mean_return"]  # which are short trainings


def test_figures_for_papers_come_with_their_numbers(data: RunData, stored: dict[str, Any], tmp_path: Path) -> None:
    names = write_figures(data, tmp_path / "figures")
    assert {"ranking.svg", "ranking.pdf", "pairs.svg", "progress.pdf", "curves.svg", "violations.csv"} <= set(names)
    for name in names:
        content = (tmp_path / "figures" / name).read_bytes()
        assert content.startswith({"svg": b"<?xml", "pdf": b"%PDF", "csv": b""}[name[-3:]])
        assert len(content) > 100
    rows = (tmp_path / "figures" / "ranking.csv").read_text("utf-8").splitlines()
    assert len(rows) == 1 + len(stored["ranking"])
    assert rows[1].startswith(f'"{stored["ranking"][0]["workflow"]}",')
    assert len(tables(data)["curves"]) == 20 * 2 * 50
    again = tmp_path / "again"
    write_figures(data, again)
    assert all((again / name).read_bytes() == (tmp_path / "figures" / name).read_bytes() for name in names)


def test_the_page_and_the_papers_show_the_same_figures(data: RunData) -> None:
    exported = [figure for figure in figures(data).values() if figure.file]
    assert {figure.file for figure in exported} == {"ranking", "pairs", "progress", "curves"}
    for figure in exported:
        words = to_paper([figure], "svg").decode()
        page = to_plotly(figure)
        assert page["layout"]["xaxis"]["title"]["text"] in words
        assert page["layout"]["yaxis"]["title"]["text"] in words
        names = {trace["name"] for trace in page["data"] if page["layout"]["showlegend"]}
        for name in [*figure.categories, *names]:
            assert f">{name}</text>" in words, name


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
        assert show_the_same(stored, content), f"run python -m benchmarks pictures ({name})"


def test_pictures_that_differ_in_a_word_a_colour_or_a_place_are_not_the_same() -> None:
    text = (ROOT / "docs" / "pictures" / "pairs.svg").read_text("utf-8")
    assert show_the_same(text.encode(), text.encode())
    place = re.search(r"M \d+\.\d+ \d+\.\d+", text)
    assert place is not None
    x, y = place[0].split()[1:]
    for old, new in (
        ("enterprise before user", "user before enterprise"),
        ("fill: #0072b2", "fill: #8a929c"),
        (f"M {x} {y}", f"M {float(x) + 1:.6f} {y}"),
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
    assert_refused(done, "figures need matplotlib; install it with: pip install 'workflow-rl[figures]'.")
    assert_refused(
        run("report", example, example, "--figures", tmp_path / "f"), "figures are made of one run at a time."
    )
