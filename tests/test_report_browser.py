"""The report in a real browser without a network: it draws, plays, obeys keys, and fits a telephone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHROMIUM
from tests.example_run import figures_of, unpack
from workflow_rl.engine.network_file import load_network
from workflow_rl.report.build import fresh_games, write_report
from workflow_rl.report.run_data import report_data
from workflow_rl.report.story import BELIEFS

pytestmark = pytest.mark.needs("playwright", "chromium")

SECTIONS = (
    "answer", "finalists", "ranking", "priorities", "progress", "replay", "training", "violations", "evaluation",
    "time", "settings",
)  # fmt: skip
N_FIGURES = 9


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("browser") / "run")


@pytest.fixture(scope="module")
def stored(run: Path) -> dict[str, Any]:
    """What the search itself wrote about its result."""
    result: dict[str, Any] = json.loads((run / "result.json").read_text("utf-8"))
    return result


@pytest.fixture(scope="module")
def report(run: Path) -> str:
    return f"file://{write_report([run], load_network())['report']}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as session:
        found = session.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Watched:
    """A page with everything that it complains about and asks for."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def text(self, name: str) -> str:
        return str(self.page.locator(f"#{name}").inner_text())


@pytest.fixture
def opened(browser: Any, report: str) -> Iterator[Watched]:
    watched = Watched(browser, report)
    watched.page.wait_for_selector("#replay-region.ready")
    yield watched
    watched.context.close()


def test_the_page_draws_everything_without_an_error_or_a_request(
    opened: Watched, report: str, stored: dict[str, Any]
) -> None:
    for name in SECTIONS:
        section = opened.page.locator(f"#{name}")
        section.scroll_into_view_if_needed()
        assert section.is_visible()
    places = opened.page.locator(".plot")
    assert places.count() == N_FIGURES
    for i in range(N_FIGURES):
        places.nth(i).scroll_into_view_if_needed()
        places.nth(i).locator(".main-svg").first.wait_for()
    assert opened.complaints == []
    assert opened.requests == [report]
    assert "Repair enterprise before user: worth " in opened.text("answer")
    place = stored["ranking"][0]
    kept = [f"{place['compliance']:.3f}", f"{place['kept']:.3f}"]
    first = opened.page.locator("#ranking tbody tr").first.inner_text().split("\t")
    assert first == [place["workflow"], "1", figures_of(place), "= best", *kept, str(place["visits"])]
    finished = [row.split("\t") for row in opened.page.locator("#finalists tbody tr").all_inner_texts()]
    assert [row[:3] for row in finished] == [
        [row["workflow"], figures_of(row), f"{row['half_as_long']:.2f}"] for row in stored["finalists"]
    ]


def test_the_replay_shows_the_engines_state_at_every_step_that_slider_and_keys_reach(
    opened: Watched, run: Path
) -> None:
    stories = [story.to_json() for story in fresh_games(run, report_data(run, load_network())).stories]
    network, page = load_network(), opened.page
    assert page.locator("#story option").count() == len(stories)

    def agrees(story: dict[str, Any], step: int) -> None:
        frame = story["frames"][step]
        assert opened.text("told-step") == f"{step + 1} of 100"
        assert opened.text("told-blue") == frame["blue"]
        assert opened.text("told-red") == frame["red"]
        assert opened.text("told-reward") == f"{frame['reward']:.1f}, so far {frame['total']:.1f}"
        verdict = "no fix"
        if frame["fix"]:
            verdict = f"{frame['fix']['verdict']}: {frame['fix']['unit_type']}"
            if frame["fix"]["verdict"] == "violation":
                verdict += f" was repaired, {frame['fix']['due']} was due"
        assert opened.text("told-fix") == verdict
        kind = frame["fix"]["verdict"].replace(" ", "-") if frame["fix"] else ""  # has a colour
        assert page.locator("#told-fix").get_attribute("class") in ((kind,) if kind else ("", None))
        shown = page.evaluate(
            "n => [...Array(n).keys()].map(h => [document.getElementById('true-' + h).textContent,"
            "document.getElementById('belief-' + h).textContent, document.getElementById('title-' + h).textContent])",
            len(network.hosts),
        )
        for host, (mark, belief, title) in enumerate(shown):
            assert mark == ("", "u", "P")[frame["level"][host]]
            assert belief == f"believed {BELIEFS[frame['belief'][host]]}"
            assert title.startswith(network.host_names[host])
            assert all(decoy in title for decoy in frame["decoys"][host])

    agrees(stories[0], 0)
    region = page.locator("#replay-region")
    region.focus()
    for key, step in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", 99),
        ("ArrowRight", 99),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        agrees(stories[0], step)
    worst = next(i for i, story in enumerate(stories) if story["why"] == "worst" and story["red_agent"] == "meander")
    page.select_option("#story", str(worst))
    agrees(stories[worst], 0)
    for step in (13, 57, 98):
        page.locator("#slider").fill(str(step))
        agrees(stories[worst], step)
    page.click("#back")
    agrees(stories[worst], 97)
    broken = next(i for i, story in enumerate(stories) if story["why"] == "first violation")
    for kind, words in (("in order", "in order: "), ("idle", "idle: "), ("violation", "was due")):
        i, step = next(
            (i, frame["step"] - 1)
            for i, story in enumerate(stories)
            for frame in story["frames"]
            if (kind != "violation" or i == broken) and frame["fix"] and frame["fix"]["verdict"] == kind
        )
        page.select_option("#story", str(i))
        page.locator("#slider").fill(str(step))
        agrees(stories[i], step)
        assert words in opened.text("told-fix")
    assert opened.complaints == []


def test_play_and_pause_by_button_and_space(opened: Watched) -> None:
    page = opened.page
    page.click("#play")
    assert page.locator("#play").get_attribute("aria-pressed") == "true"
    page.locator("#told-step", has_text="3 of 100").wait_for()
    page.locator("#replay-region").focus()
    page.keyboard.press("Space")
    assert page.locator("#play").inner_text() == "Play"
    stopped = opened.text("told-step")
    page.wait_for_timeout(1500)
    assert opened.text("told-step") == stopped


def test_dark_and_light_follow_the_system_and_the_button(browser: Any, report: str) -> None:
    papers = {}
    for scheme in ("light", "dark"):
        watched = Watched(browser, report, color_scheme=scheme)
        watched.page.wait_for_selector("#replay-region.ready")
        colour = "getComputedStyle(document.body).backgroundColor"
        papers[scheme] = watched.page.evaluate(colour)
        watched.page.click("#theme")
        other = "dark" if scheme == "light" else "light"
        assert watched.page.evaluate("document.documentElement.dataset.theme") == other
        assert watched.page.evaluate(colour) != papers[scheme]
        assert watched.complaints == []
        watched.context.close()
    assert papers["light"] != papers["dark"]


def test_a_narrow_screen_needs_no_sideways_scrolling(browser: Any, report: str) -> None:
    watched = Watched(browser, report, viewport={"width": 390, "height": 844})
    watched.page.wait_for_selector("#replay-region.ready")
    for name in SECTIONS:
        watched.page.locator(f"#{name}").scroll_into_view_if_needed()
    watched.page.wait_for_timeout(500)
    assert watched.page.evaluate("document.documentElement.scrollWidth") == 390
    watched.context.close()


def test_without_javascript_tables_and_a_static_figure_remain(
    browser: Any, report: str, stored: dict[str, Any]
) -> None:
    watched = Watched(browser, report, java_script_enabled=False, color_scheme="dark")
    assert not watched.page.locator("#replay-region").is_visible()
    assert not watched.page.locator(".plot").first.is_visible()
    assert watched.page.locator("noscript svg, #ranking svg").first.is_visible()
    assert figures_of(stored["ranking"][0]) in watched.text("ranking")
    assert figures_of(stored["finalists"][0]) in watched.text("finalists")
    assert watched.page.locator("#evaluation table").is_visible()
    watched.context.close()


def test_a_comparison_and_an_unfinished_run_open_without_an_error(browser: Any, run: Path, tmp_path: Path) -> None:
    lone, empty = tmp_path / "<!--<script>", tmp_path / "empty"
    shutil.copytree(run / "trainings" / "004-1", lone)
    empty.mkdir()
    shutil.copy(run / "config.json", empty / "config.json")
    for paths in ([run, lone], [lone], [empty]):
        address = f"file://{write_report(paths, load_network(), tmp_path / 'page.html')['report']}"
        watched = Watched(browser, address)
        watched.page.wait_for_timeout(300)
        assert watched.complaints == []
        assert watched.requests == [address]
        assert watched.page.evaluate("typeof Plotly") == "object"
        watched.context.close()


def test_on_paper_the_page_is_light_and_nothing_is_folded_away(browser: Any, report: str) -> None:
    watched = Watched(browser, report, color_scheme="dark")
    watched.page.wait_for_selector("#replay-region.ready")
    watched.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert watched.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert watched.page.locator("details:not([open])").count() == 0
    assert watched.page.locator(".plot .main-svg").count() >= N_FIGURES
    watched.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert watched.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert watched.page.locator("details[open]").count() == 0
    assert len(watched.page.pdf()) > 50_000
    watched.context.close()
