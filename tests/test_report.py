"""The page of a run: what it says, for whom, and that names stay text."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import fields, is_dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.example_run import (
    NETWORK,
    cells,
    figures_of,
    plain,
    raw_results,
    section,
    spoil_json,
    unpack,
)
from tests.helpers import assert_refused, run, run_json
from workflow_rl import make_config, train_workflow
from workflow_rl.config import SearchConfig
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.presets import command_of, make_search_config
from workflow_rl.report.build import Games, answer, fresh_games, run_page, write_report
from workflow_rl.report.compare import row_of
from workflow_rl.report.lesson import lesson
from workflow_rl.report.page.priorities import order_picture
from workflow_rl.report.page.render import TEMPLATES
from workflow_rl.report.run_data import report_data
from workflow_rl.report.run_types import RunData
from workflow_rl.runs import Run, read_config, read_search_config
from workflow_rl.search.findings import PairEffect
from workflow_rl.search.verdict import NextStep, Verdict
from workflow_rl.training.events import WorkflowResult


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("example") / "run")


@pytest.fixture(scope="module")
def data(example: Path) -> RunData:
    return report_data(example, NETWORK)


@pytest.fixture(scope="module")
def games(example: Path, data: RunData) -> Games:
    return fresh_games(example, data)


@pytest.fixture(scope="module")
def stored(example: Path) -> dict[str, Any]:
    """What the search itself wrote about its result."""
    result: dict[str, Any] = json.loads((example / "result.json").read_text("utf-8"))
    return result


def effect(first: str, second: str, worth: float) -> PairEffect:
    return PairEffect(first, second, worth, 0.1, 0.2, 1.0, True)


def test_the_answer_shows_an_arrow_for_each_priority_that_matters_and_the_other_types_beside() -> None:
    pairs = [effect("c", "b", 19.3), effect("c", "e", 12.9), effect("b", "e", 0.5)]
    found = order_picture("abcde", pairs)
    text = TEMPLATES.from_string('{% from "parts.html" import order_figure %}{{ order_figure(found) }}').render(
        found=found
    )
    assert text.count("marker-end") == 3
    for word in ("+19.3", "+12.9", "+0.50", "c before b +19.30"):
        assert word in text
    rows = {box.name: box.row for box in found.boxes}
    assert rows == {"c": 0, "b": 1, "e": 2}
    assert re.findall(r"<li>(\w)</li>", text) == list(found.others) == ["a", "d"]


def test_types_without_an_arrow_between_them_stand_beside_each_other() -> None:
    rows = {box.name: box.row for box in order_picture("abcd", [effect("a", "c", 2), effect("b", "c", 1)]).boxes}
    assert rows == {"a": 0, "b": 0, "c": 1}
    nothing = order_picture("abc", [])
    assert (list(nothing.boxes), list(nothing.others)) == ([], ["a", "b", "c"])


def test_of_priorities_that_contradict_each_other_the_smallest_points_upwards() -> None:
    found = order_picture("abc", [effect("a", "b", 3), effect("b", "c", 2), effect("c", "a", 1)])
    assert {box.name: box.row for box in found.boxes} == {"a": 0, "b": 1, "c": 2}
    assert len(found.arrows) == 3


def test_boxes_arrows_and_their_worth_are_inside_the_picture() -> None:
    names = ["a_rather_long_name", *"bcdefgh"]
    pairs = [effect(a, b, 1 + i) for i, (a, b) in enumerate(combinations(names, 2))]
    found = order_picture(names, pairs)
    assert len({box.row for box in found.boxes}) == len(names)
    for box in found.boxes:
        assert 0 <= box.x <= box.x + box.width <= found.width
        assert 0 <= box.y < found.height
    for arrow in found.arrows:
        assert 15 <= arrow.x <= found.width - 15
        start, *handles, end = np.array(re.findall(r"[\d.]+", arrow.path), float).reshape(-1, 2)
        t = np.linspace(0, 1, 50)[:, None]
        curve = (1 - t) ** 3 * start + 3 * (1 - t) ** 2 * t * handles[0] + 3 * (1 - t) * t**2 * handles[1] + t**3 * end
        assert curve.min() >= 0
        assert curve[:, 0].max() <= found.width


def test_the_page_has_every_section_with_the_runs_numbers_and_asks_nobody(
    example: Path, stored: dict[str, Any], tmp_path: Path
) -> None:
    write_report([example], NETWORK, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    body = text[: text.index('<script type="application/json"')]
    names = re.findall(r'<section id="(\w+)">', body)
    assert names == [
        "answer", "finalists", "ranking", "priorities", "progress", "replay", "training", "violations", "evaluation",
        "time", "network", "settings", "words",
    ]  # fmt: skip
    assert len(text) < 8e6
    assert text.count("plotly.js v") == 1
    assert not re.findall(r'(?:src|href)="(?!#)[^"]+"', body)
    (pair,) = [pair for pair in stored["pair_weights"] if pair["matters"]]
    assert f"Repair enterprise before user: worth {pair['effect']:.1f} ± {pair['standard_error']:.1f}." in body
    for name in ("finalists", "ranking", "progress", "training", "evaluation"):
        heading = cells(section(body, name))[0]
        assert heading[heading.index("compliance") + 1] == "kept", name
    assert cells(section(body, "replay"))[0][3:] == ["repairs in order", "violations", "idle fixes", "what went wrong"]
    assert "workflow-rl search" in body


@pytest.mark.parametrize("why", ["median", "best", "worst"])
def test_watch_shows_the_episode_that_the_report_calls_so(games: Games, example: Path, why: str) -> None:
    for red in ("bline", "meander"):
        (told,) = [story for story in games.stories if (story.red_agent, story.why) == (red, why)]
        watched = run_json("watch", example, "--episode", why, "--red-agent", red)
        assert watched["frames"] == told.to_json()["frames"]


def test_the_table_of_episodes_counts_repairs_violations_and_idle_fixes(data: RunData, games: Games) -> None:
    _, *rows = cells(section(run_page(data, games, answer(data)), "replay"))
    judged = set()
    for row, story in zip(rows, games.stories, strict=True):
        verdicts = [frame.fix.verdict for frame in story.frames if frame.fix]
        judged |= set(verdicts)
        assert row[:2] == [story.red_agent, story.why]
        assert row[3:6] == [str(verdicts.count(name)) for name in ("in order", "violation", "idle")]
        assert row[6] == lesson(story, NETWORK)
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
    hostile = Verdict(("<img>", "level<img>"), ("<img>",), (NextStep("<img>", "<img>"),), (), 1, "")
    text = run_page(spoil(data), evil, hostile)
    body = text[: text.index("plotly.js v")]
    assert "<img>" not in body
    assert body.count("&lt;img&gt;") > 300
    assert body.count("\\u003cimg\\u003e") > 300


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
        return answer(replace(found, config=config, trainings=[replace(one, result=judged)])).known[0]

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
    order = "the order user > enterprise > defender > op_server > op_host"
    words = "nothing shown: 0.4 repairs and 9.0 idle fixes per episode; return "
    assert answer(report_data(lone, NETWORK)).known[0].startswith(f"The defender does NOT follow {order}: {words}")
    spoil_json(lone / "result.json", compliance=None, compliance_error=None, kept=None, repairs=0.0)
    text = Path(write_report([lone], NETWORK)["report"]).read_text("utf-8")
    assert "nothing shown: 0.0 repairs" in plain(section(text, "answer"))
    assert cells(section(text, "training"))[1][4:6] == ["", ""]


def test_an_empty_search_and_a_training_without_result_have_honest_pages(tmp_path: Path, example: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(example / "config.json", empty / "config.json")
    assert "Nothing has been evaluated yet." in Path(write_report([empty], NETWORK)["report"]).read_text("utf-8")
    lone = tmp_path / "lone"
    shutil.copytree(example / "trainings" / "000-0", lone)
    (lone / "result.json").unlink()
    text = Path(write_report([lone], NETWORK)["report"]).read_text("utf-8")
    assert "50 updates have been made; there is no result yet." in plain(section(text, "answer"))


def test_a_training_has_a_page_with_its_policy(tmp_path: Path) -> None:
    config = make_config(workflow="enterprise,user,op_server,op_host,defender", n_envs=20, n_eval_episodes=20)
    held = Run.create(tmp_path / "run", config, copy_of(load_network()))
    train_workflow(config, held)
    held.close()
    found = fresh_games(tmp_path / "run", report_data(tmp_path / "run", NETWORK))
    text = Path(write_report([tmp_path / "run"], NETWORK)["report"]).read_text("utf-8")
    assert "The defender follows the order enterprise &gt; user" in text
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


def test_the_command_of_a_run_with_many_hosts_names_what_differs_from_the_defaults_there() -> None:
    assert command_of(make_search_config(hosts=30), 30) == "workflow-rl search"
    assert command_of(make_search_config(hosts=30, actions="full"), 30) == "workflow-rl search --actions full"


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
    assert row.interval == pytest.approx(wanted, rel=1e-3)
    assert section(text, "compared").count('class="track"') == 2
    assert "plotly.js v" not in text


def test_without_finalists_a_search_is_compared_with_the_error_of_its_level(tmp_path: Path) -> None:
    lost = unpack(tmp_path / "lost")
    shutil.rmtree(lost / "finals")
    results = raw_results(lost)
    levels = [np.mean([one["mean_return"] for name, one in results.items() if name.endswith(r)]) for r in ("-0", "-1")]
    place, row = report_data(lost, NETWORK).ranking[0], row_of(report_data(lost, NETWORK))
    error = np.hypot(place.standard_error, abs(levels[0] - levels[1]) / 2)  # the level is not common to other runs
    assert (row.workflow, row.mean_return) == (place.workflow, place.mean_return)
    assert row.standard_error == pytest.approx(error)
    assert row.interval == pytest.approx(12.706 * error, rel=1e-3)


def test_the_list_of_runs_has_the_best_finalist_of_a_search(example: Path, stored: dict[str, Any]) -> None:
    (row,) = run_json("runs", example)["runs"]
    assert row["workflow"] == stored["best"]
    for name in ("mean_return", "standard_error", "compliance"):
        assert row[name] == stored["finalists"][0][name]
    assert row["mean_return"] > stored["ranking"][0]["mean_return"]  # which are short trainings
