"""What the terminal shows: it fits, on narrow terminals, without colour and without Unicode."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.pictures import SCREEN, screen_of_the_stored_run
from tests.conftest import ROOT
from tests.helpers import run
from workflow_rl.cli.evaluate import print_cells, print_challenge
from workflow_rl.cli.playbook import print_playbook
from workflow_rl.cli.runs import print_runs
from workflow_rl.cli.screen import Rows, Screen
from workflow_rl.cli.search_view import SearchView, print_search
from workflow_rl.cli.train import print_training
from workflow_rl.config import chain
from workflow_rl.defenders.protocol import ANCHORS, EXPERT, LIMIT, PUBLISHED_EDITION
from workflow_rl.presets import make_search_config
from workflow_rl.report.listing import RunRow
from workflow_rl.search.executor import BestSoFar, Observed, Progress, SearchEvent, Started, Suggested
from workflow_rl.search.findings import EvaluationRow, SearchResult, row_from_json
from workflow_rl.search.strategies import Suggestion
from workflow_rl.search.verdict import Source, verdict

WIDTHS = (60, 80, 100, 200)
ORDER = "defender,enterprise,op_server,user,op_host"
LONG_ORDER = ",".join(f"{name}_of_the_plant" for name in ORDER.split(","))
CELL = {"mean": -115.25, "standard_error": 10.25, "episodes": 1000}
CELLS = {red: dict.fromkeys(("30", "50", "100"), CELL) for red in ("bline", "meander", "sleep")}
OBEYED = {"compliance": 0.991, "compliance_error": 0.001, "kept": 0.981, "repairs": 13.2, "idle_fixes": 20.1}
PLAYED = {
    "policy": "runs/20261117-101112-training", "workflow": ORDER, "episodes": 1000, "edition": "current",
    "cells": CELLS, "total": -519.5, "total_standard_error": 20.5, "obedience": dict.fromkeys(CELLS, OBEYED),
}  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> SearchResult:
    """The result of the stored search."""
    folder = tmp_path_factory.mktemp("stored")
    with zipfile.ZipFile(ROOT / "docs" / "example-run.zip") as archive:
        archive.extract("result.json", folder)
    return SearchResult.from_json(json.loads((folder / "result.json").read_text("utf-8")))


def show_search(screen: Screen, stored: SearchResult) -> None:
    long = Source("runs/20261117-101112-search", make_search_config(red_agent="meander", seed=7, hidden=128, n_envs=50))
    some = [replace(row, follows=place < 9) for place, row in enumerate(stored.ranking)]
    for found in (stored, replace(stored, finalists=[]), replace(stored, ranking=some)):
        print_search(found, verdict(found, found.evaluations, long), screen)


def show_runs(screen: Screen, _: SearchResult) -> None:
    one = RunRow(
        "runs/20261117-101112-search", "search", "finished", "bline, takeover after 30 steps", ORDER, -13.77, 0.22
    )
    rows = [
        one,
        replace(one, workflow=LONG_ORDER, network="plant"),
        RunRow("runs/two", problem="config.json is damaged."),
    ]
    differ = {"seed": [0, 1, None], "warm_start": ["general", "runs/20261117-101112-search/bases/0", "none"]}
    print_runs({"runs": [asdict(row) for row in rows], "settings_that_differ": differ}, screen)


def show_challenge(screen: Screen, _: SearchResult) -> None:
    figures: dict[str, Any] = PLAYED | {"anchors": ANCHORS["current"]}
    print_challenge(figures, screen)
    apart = {red: {"30": -1.2, "50": None, "100": 0.5} for red in CELLS}
    print_challenge(figures | {"cyborg": "CybORG 2.1 (csle-cyborg)", "native": PLAYED, "difference": apart}, screen)


def show_playbook(screen: Screen, _: SearchResult) -> None:
    pairs = [
        {"first": "enterprise", "then": then, "times": n, "reversed": 3}
        for then, n in (("user", 99999), ("op_host", 0))
    ]
    book = {
        "red_agent": "bline", "takeover": "30", "mean_return": -12.5, "standard_error": 0.3, "repairs": 5.9,
        "episodes": 1500, "pairs": pairs, "orders": {ORDER: {"compliance": 1.0}}, "kept": [ORDER],
    }  # fmt: skip
    print_playbook([book], screen)


def show_training(screen: Screen, _: SearchResult) -> None:
    figures: dict[str, Any] = OBEYED | {
        "workflow": ORDER, "stop_reason": "followed", "updates": 350, "episodes": 70000, "seconds": 12.5,
        "mean_return": -14.5, "standard_error": 0.2, "greedy_mean_return": -14.1, "followed": True,
        "run": "runs/20261117-101112-training", "limit": -11.28,
    }  # fmt: skip
    print_training(figures, screen)


def show_live_view(screen: Screen, _: SearchResult) -> None:
    console = screen.console
    assert console is not None
    view = SearchView(Console(width=console.width, file=StringIO(), force_terminal=True), lambda _: None)
    guess = Suggestion(tuple(LONG_ORDER.split(",")), "uncertain: it may be the best", -20.0, 1.5, -17.0)
    row = row_from_json(EvaluationRow, {"index": 1, "workflow": ORDER, "mean_return": -20.5})
    for what in (
        Started("runs/x", make_search_config(), 0), Suggested(0, guess), Suggested(1, guess),
        Progress("0-1", 3, -121.25, 0.876), Progress("final 0-1-2", 30, -21.25, 0.9),
        Observed(row, BestSoFar(LONG_ORDER, -20.5, 0.2)),
    ):  # fmt: skip
        view(SearchEvent(1.0, what))
    drawn = view._screen()
    assert {"-121.25", "0.876", "-21.25", "0.900"} <= set(re.split(r"[\s,]+", drawn))  # it keeps its numbers
    console.print(drawn, soft_wrap=True, highlight=False)


SHOWN = {
    "search": show_search,
    "runs": show_runs,
    "evaluate": lambda screen, _: print_cells(PLAYED, screen),
    "challenge": show_challenge,
    "playbook": show_playbook,
    "train": show_training,
    "live view": show_live_view,
}  # fmt: skip
Show = Callable[[Screen, SearchResult], None]


def text_of(show: Show, stored: SearchResult, width: int, wide: bool = False) -> str:
    file = StringIO()
    show(Screen(wide, Console(width=width, file=file)), stored)
    return file.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SHOWN)
def test_no_line_is_longer_than_the_terminal(name: str, width: int, stored: SearchResult) -> None:
    text = text_of(SHOWN[name], stored, width)
    assert [line for line in text.splitlines() if len(line) > width] == []
    assert text.strip()


@pytest.mark.parametrize("name", ["search", "runs", "evaluate", "challenge"])
def test_no_figure_is_cut_and_wide_shows_what_a_narrow_terminal_leaves_out(name: str, stored: SearchResult) -> None:
    narrow, wide = (text_of(SHOWN[name], stored, 60, wide) for wide in (False, True))
    figures = re.compile(r"-?\d+\.\d+")
    assert set(figures.findall(narrow)) <= set(figures.findall(wide))
    assert max(map(len, wide.splitlines())) > 100
    assert "--wide" not in wide


def test_the_answer_comes_first_and_equal_orders_share_a_line(stored: SearchResult) -> None:
    lines = text_of(show_search, stored, 80).splitlines()
    assert lines[0] == "Repair enterprise before user: worth 5.1 ± 0.3."
    ranking = lines[next(i for i, line in enumerate(lines) if line.startswith("Ranking of 17")) :]
    assert [" ".join(line.split()) for line in ranking[3:5]] == [
        "1 defender > enterprise > op_server > user > op_host -15.32 ± 0.23 equal", "and 12 more to -15.99 equal",
    ]  # fmt: skip
    assert text_of(show_search, stored, 80, wide=True).count("equal\n") == 0  # a row for each, with its compliance
    assert "and 8 more" in "\n".join(lines)  # those that are not followed share one too


def test_a_command_can_be_copied_from_a_narrow_terminal(stored: SearchResult) -> None:
    text = text_of(show_search, stored, 60)
    commands = re.findall(r"^ {4}(workflow-rl search (?:.*\\\n)*.*)$", text, re.M)
    assert any("\\\n" in command for command in commands)
    words = commands[0].replace("\\\n", " ").split()
    assert words[:2] == ["workflow-rl", "search"]
    assert {"--red-agent", "meander", "--hidden", "128", "--seed", "7", "--n-envs", "50"} <= set(words)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_without_unicode_gets_letters_that_it_can_show(encoding: str, stored: SearchResult) -> None:
    raw = BytesIO()
    file = TextIOWrapper(raw, encoding)  # an error, not a question mark, if a letter cannot be shown
    for show in SHOWN.values():
        console = Console(width=60, file=file)
        show(Screen(console=console), stored) if show is not show_live_view else None
    file.flush()
    text = raw.getvalue().decode(encoding)
    assert ("worth 5.1 +- 0.3" if encoding == "ascii" else "worth 5.1 ± 0.3") in text
    assert "?" not in text
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize(("width", "short"), [
    (50, "defender > enterprise > op_server > user > op_host"), (49, "defender > enterprise > op_server > user > ..."),
    (30, "defender > enterprise > ..."), (14, "defender > ..."), (8, "defen..."),
])  # fmt: skip
def test_an_order_is_shortened_from_its_end(width: int, short: str) -> None:
    assert chain(ORDER, width) == short


def test_a_table_that_cannot_fit_becomes_lines_with_every_figure() -> None:
    table = Rows(["name", *"abcdefgh"], [["one", *(f"{n}.12345678" for n in range(8))]])
    lines, gone = table.fitted(40)
    assert gone == []
    assert lines[0] == "one"
    assert all(f"{letter} {n}.12345678" in " ".join(map(str.strip, lines)) for n, letter in enumerate("abcdefgh"))
    assert max(map(len, lines)) <= 40


def test_output_for_another_program_has_all_columns(tmp_path: Path) -> None:
    with zipfile.ZipFile(ROOT / "docs" / "example-run.zip") as archive:
        archive.extractall(tmp_path / "runs" / "one")
    shown = run("runs", "--folder", tmp_path / "runs").stdout
    assert "--wide" not in shown
    assert chain(ORDER) in shown
    narrow = run("runs", "--folder", tmp_path / "runs", COLUMNS="80", PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert narrow.returncode == 0, narrow.stderr
    assert "-13.77 +- 0.22" in " ".join(narrow.stdout.split())
    assert "\x1b" not in narrow.stdout


def test_the_champions_anchors_are_the_stored_results() -> None:
    figures = {
        name: json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))["figures"]
        for name in ("champion_table", "study_limit")
    }
    for edition, anchors in ANCHORS.items():
        cells = figures["champion_table"]["editions"][edition]["expert"]["cells"]
        exact = figures["study_limit"]["bline"][edition]["values"]
        for red, own in anchors[EXPERT].items():
            assert own == tuple(round(cells[red][length]["mean"], 2) for length in ("30", "50", "100"))
        assert anchors[LIMIT] == {"bline": tuple(round(exact[length - 1], 2) for length in (30, 50, 100))}


@pytest.mark.parametrize("edition", ANCHORS)
def test_the_winner_stands_beside_a_defender_of_the_published_edition_alone(edition: str) -> None:
    file = StringIO()
    figures: dict[str, Any] = PLAYED | {"edition": edition, "anchors": ANCHORS[edition]}
    print_challenge(figures, Screen(console=Console(width=80, file=file)))
    text = " ".join(file.getvalue().split())
    if edition == PUBLISHED_EDITION:
        assert "official winner, as published -54.57 -23.64 -30.93" in text
        assert "published scores" not in text
    else:
        assert "official winner" not in text
        assert "the best is -54.57, are of the leaderboard edition, whose rules differ" in text
    total = {"leaderboard": "-42.26", "current": "-50.77"}[edition]
    assert f"expert {total}" in text


def test_the_picture_of_a_search_is_current(tmp_path: Path) -> None:
    with zipfile.ZipFile(ROOT / "docs" / "example-run.zip") as archive:
        archive.extractall(tmp_path)
    assert (ROOT / "docs" / "pictures" / SCREEN).read_text("utf-8") == screen_of_the_stored_run(tmp_path)
    assert os.path.getsize(ROOT / "docs" / "pictures" / SCREEN) < 40_000
