"""Every figure and table of the report is that of the raw files of its run; also for papers."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest

from benchmarks.pictures import figures_of_the_stored_run
from tests.conftest import ROOT
from tests.example_run import (
    KINDS,
    NETWORK,
    OBEDIENCE,
    cells,
    drawn,
    figures_of,
    pooled,
    raw_results,
    raw_trainings,
    section,
    unpack,
)
from tests.helpers import assert_refused, run
from workflow_rl.report.build import Games, answer, run_page
from workflow_rl.report.drawing import BLUE, GREY, ORANGE, to_paper
from workflow_rl.report.figures import figures, tables, write_figures
from workflow_rl.report.run_data import report_data
from workflow_rl.report.run_types import RunData
from workflow_rl.training.workflow import Workflow, all_workflows


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("example") / "run")


@pytest.fixture(scope="module")
def data(example: Path) -> RunData:
    return report_data(example, NETWORK)


@pytest.fixture(scope="module")
def stored(example: Path) -> dict[str, Any]:
    """What the search itself wrote about its result."""
    result: dict[str, Any] = json.loads((example / "result.json").read_text("utf-8"))
    return result


@pytest.fixture(scope="module")
def settings(example: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((example / "config.json").read_text("utf-8"))["config"]
    return config


def test_the_ranking_is_that_of_the_search_and_figure_and_page_show_it(
    data: RunData, stored: dict[str, Any], settings: dict[str, Any]
) -> None:
    names = ("workflow", "mean_return", "standard_error", *OBEDIENCE, "visits", "follows", "equal_to_best")
    for ours, theirs in zip(data.ranking, stored["ranking"], strict=True):
        for name in names:
            same = pytest.approx(theirs[name], rel=1e-6) if isinstance(theirs[name], float) else theirs[name]
            assert getattr(ours, name) == same, name
    (series,), ranked = figures(data)["ranking"].series, stored["ranking"]
    assert list(series.y)[::-1] == [row["workflow"] for row in ranked]
    np.testing.assert_allclose(series.x[::-1], [row["mean_return"] for row in ranked], rtol=1e-6)
    assert series.errors is not None
    halves = [12.706 * row["standard_error"] for row in ranked]  # Student's 97.5 % for two replicates
    np.testing.assert_allclose(series.errors[::-1], halves, rtol=1e-3)
    assert settings["replicates"] == 2
    shown = section(run_page(data, Games(), answer(data)), "ranking")
    heading, *rows = cells(shown)
    low = min(row["mean_return"] - half for row, half in zip(ranked, halves, strict=True))
    high = max(row["mean_return"] + half for row, half in zip(ranked, halves, strict=True))
    assert heading[2] == f"95 % interval, from {low:.1f} to {high:.1f}"
    places = [float(place) for place in re.findall(r'<b style="left:([\d.]+)%"', shown)]
    for cell, row, place in zip(rows, ranked, places, strict=False):  # the rows of all workflows follow
        apart = "equal" if row["equal_to_best"] else f"{row['behind_best']:.2f} ± {row['behind_error']:.2f}"
        kept = [f"{row['compliance']:.3f}", f"{row['kept']:.3f}"]
        assert cell == [row["workflow"], figures_of(row), "", apart, *kept, str(row["visits"])]
        assert place == pytest.approx(100 * (row["mean_return"] - low) / (high - low), abs=0.1)
    assert len(places) == len(ranked)


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
    (series,) = figures(data)["pairs"].series
    assert list(series.y)[::-1] == [f"{pair['first']} before {pair['second']}" for pair in pairs]
    np.testing.assert_allclose(series.x[::-1], [pair["effect"] for pair in pairs], rtol=1e-6)
    assert list(series.colour)[::-1] == [BLUE if pair["matters"] else GREY for pair in pairs]
    shown = section(run_page(data, Games(), answer(data)), "priorities")
    assert [row[:2] for row in cells(shown)[1:]] == [
        [f"{pair['first']} before {pair['second']}", f"{pair['effect']:+.2f} ± {pair['standard_error']:.2f}"]
        for pair in pairs
    ]
    assert shown.count('class="track unclear"') == sum(not pair["matters"] for pair in pairs)
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
    seen, every = drawn(data)["map"]["data"]
    assert len(every["text"]) == 120
    plane = np.stack([every["x"], every["y"]], axis=1)
    apart = np.linalg.norm(plane[:, None] - plane[None], axis=2)
    orders = [Workflow.parse(name) for name in every["text"]]
    kendall = np.array([[a.kendall_distance(b) for b in orders] for a in orders])
    means = [apart[kendall == distance].mean() for distance in range(11)]
    assert means == sorted(means)
    assert means[1] < 0.5 * means[10]
    assert np.corrcoef(every["x"], every["marker"]["color"])[0, 1] > 0.6
    numbers = sorted(int(number) for text in seen["text"] for number in text.removeprefix("evaluation ").split(","))
    assert numbers == list(range(1, 21))
    at = {name: (x, y) for name, x, y in zip(every["text"], every["x"], every["y"], strict=True)}
    first = data.evaluations[0].workflow
    assert (seen["x"][0], seen["y"][0]) == at[first]


@pytest.mark.parametrize("curve", ["return", "compliance", "entropy"])
def test_the_curves_are_mean_and_range_of_the_trainings_of_equal_and_of_other_workflows(
    data: RunData, example: Path, stored: dict[str, Any], curve: str
) -> None:
    raw, results = raw_trainings(example), raw_results(example)
    traces = drawn(data)[f"curve-{curve}"]["data"]
    assert [trace.get("name") for trace in traces] == [None, "as good as the best", None, "clearly behind"]
    assert [trace["line"]["color"] for trace in traces[1::2]] == [BLUE, ORANGE]
    for is_equal, band, line in ((True, *traces[:2]), (False, *traces[2:])):
        own = [
            events for name, events in raw.items() if (results[name]["workflow"] in stored["equal_to_best"]) == is_equal
        ]
        values = np.array([[event[curve] for event in events] for events in own])
        assert 1 < len(values) < len(raw) == 20 * 2
        assert line["x"] == list(range(1, 51))
        np.testing.assert_allclose(line["y"], values.mean(axis=0))
        np.testing.assert_array_equal(band["y"], [*values.max(axis=0), *values.min(axis=0)[::-1]])
        assert band["x"] == [*line["x"], *line["x"][::-1]]


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
    shown = {(pair.repaired, pair.due): pair.times for pair in data.violations.counted}
    assert shown == counts
    assert sum(shown.values()) == total
    page = section(run_page(data, Games(), answer(data)), "violations")
    assert cells(page)[1:] == [
        [f"{repaired} was repaired while {due} was due", f"{times:,d}", f"{times / total:.1%}", ""]
        for (repaired, due), times in sorted(counts.items(), key=lambda item: -item[1])
    ]
    assert page.count('class="worst"') == 1
    assert page.index('class="worst"') < page.index("<td")  # the first row; pairs without violations have none


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


def test_the_curves_of_the_finalists_are_those_of_their_longer_trainings(data: RunData, example: Path) -> None:
    raw, results = raw_trainings(example, "finals"), raw_results(example, "finals")
    lines = [trace for trace in drawn(data)["finals"]["data"] if trace["mode"] == "lines"]
    assert len({line["line"]["color"] for line in lines}) == len(lines) == len(data.finalists)
    for line in lines:
        own = [raw[name] for name, one in results.items() if one["workflow"] == line["name"] and name.endswith("-2")]
        assert line["x"] == [event["update"] for event in own[0]]
        np.testing.assert_allclose(line["y"], np.mean([[event["return"] for event in one] for one in own], axis=0))


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
    shown = section(run_page(replace(data, finalists=[not_followed]), Games(), answer(data)), "finalists")
    assert cells(shown)[1][-1] == "a before b (NOT followed)"


def test_the_table_of_all_workflows_has_what_the_process_expects(data: RunData) -> None:
    assert {row.workflow for row in data.predictions} == {str(workflow) for workflow in all_workflows()}
    expected = {row.workflow: row.mean for row in data.predictions}
    assert all(row.mean_return == pytest.approx(expected[row.workflow]) for row in data.ranking)


def test_plotly_accepts_every_figure(data: RunData) -> None:
    curves = {"curve-return", "curve-compliance", "curve-entropy", "finals"}
    assert set(drawn(data)) == {"progress", "map"} | curves
    for name, figure in drawn(data).items():
        assert go.Figure(figure).to_dict()["data"], name


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


def test_figures_for_papers_have_the_words_of_the_page(data: RunData) -> None:
    exported = [figure for figure in figures(data).values() if figure.file]
    assert {figure.file for figure in exported} == {"ranking", "pairs", "progress", "curves"}
    for figure in exported:
        words = to_paper([figure], "svg").decode()
        assert figure.x_label in words
        assert figure.y_label in words
        names = {series.name for series in figure.series if figure.has_legend}
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
    assert_refused(
        done, "figures need matplotlib; install it with: pip install 'workflow-rl[figures]', in a checkout pip"
    )
    assert_refused(
        run("report", example, example, "--figures", tmp_path / "f"), "figures are made of one run at a time."
    )
