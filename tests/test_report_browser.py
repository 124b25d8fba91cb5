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
from workflow_rl.report.lesson import lesson
from workflow_rl.report.run_data import report_data
from workflow_rl.report.story import BELIEFS
from workflow_rl.report.words import GLOSSARY

MEASURES = (Path(__file__).parent / "measures.js").read_text("utf-8")
pytestmark = pytest.mark.needs("playwright", "chromium")

SECTIONS = (
    "answer", "finalists", "ranking", "priorities", "progress", "replay", "training", "violations", "evaluation",
    "time", "network", "settings", "words",
)  # fmt: skip
N_FIGURES = 6
SCREENS = [(width, scheme) for width in (390, 768, 1280) for scheme in ("light", "dark")]


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
    first = [cell.strip() for cell in opened.page.locator("#ranking tbody tr").first.inner_text().split("\t")]
    assert first == [place["workflow"], figures_of(place), "", "equal", *kept, str(place["visits"])]
    finished = [row.split("\t") for row in opened.page.locator("#finalists tbody tr").all_inner_texts()]
    assert [row[:3] for row in finished] == [
        [row["workflow"], figures_of(row), f"{row['half_as_long']:.2f}"] for row in stored["finalists"]
    ]


def test_the_replay_shows_the_engines_state_at_every_step_that_slider_and_keys_reach(
    opened: Watched, run: Path
) -> None:
    told = fresh_games(run, report_data(run, load_network())).stories
    stories = [story.to_json() for story in told]
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
            "n => [...Array(n).keys()].map(h => ['true-', 'belief-', 'seen-'].map("
            "name => document.getElementById(name + h).textContent))",
            len(network.hosts),
        )
        for host, (mark, belief, seen) in enumerate(shown):
            assert mark == ("", "red: user", "red: privileged")[frame["level"][host]]
            assert belief == f"believed {BELIEFS[frame['belief'][host]]}"
            assert all(decoy in seen for decoy in frame["decoys"][host])
        assert opened.text("lesson") == lesson(told[stories.index(story)], network)

    assert (stories[0]["red_agent"], stories[0]["why"]) == ("bline", "worst")  # the run's own attacker; no violation
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


@pytest.fixture(scope="module", params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def screen(browser: Any, report: str, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """The whole page on a telephone, a tablet and a desk, light and dark: all drawn, all unfolded."""
    width, scheme = request.param
    watched = Watched(browser, report, viewport={"width": width, "height": 844}, color_scheme=scheme)
    watched.page.wait_for_selector("#replay-region.ready")
    watched.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for place in watched.page.locator(".plot").all():
        place.scroll_into_view_if_needed()
        place.locator(".main-svg").first.wait_for()
    watched.page.locator("#slider").fill("20")  # frames of all kinds
    watched.page.add_script_tag(content=MEASURES)
    yield watched
    assert watched.complaints == []
    watched.context.close()


def test_no_text_is_cut_or_out_of_reach(screen: Watched) -> None:
    width = screen.page.viewport_size["width"]
    assert screen.page.evaluate("document.documentElement.scrollWidth") == width
    seen = screen.page.evaluate("texts().length")
    assert seen > 1000
    assert screen.page.evaluate("texts().map(cut).filter(Boolean)") == []
    assert screen.page.evaluate("texts().filter(one => one.size < 11).map(one => one.words)") == []


def test_text_and_marks_stand_out_from_their_paper(screen: Watched) -> None:
    contrasts = screen.page.evaluate("texts().map(one => [one.words, contrast(one.ink, one.paper)])")
    assert [(words, ratio) for words, ratio in contrasts if ratio < 4.5] == []
    marks = screen.page.evaluate("marks()")
    assert {kind for kind, _ in marks} == {
        "line", "error bar", "point", "arrow", "interval", "host", "frame of a control", "line of the network"
    }  # fmt: skip
    assert [(kind, ratio) for kind, ratio in marks if ratio < 3] == []


def test_contrast_is_computed_as_the_guidelines_say(screen: Watched) -> None:
    for ink, paper, ratio in (((0, 0, 0), (255, 255, 255), 21), ((119, 119, 119), (255, 255, 255), 4.48)):
        assert screen.page.evaluate("([a, b]) => contrast(a, b)", [ink, paper]) == pytest.approx(ratio, abs=0.01)


def test_a_text_that_is_cut_or_too_pale_is_found(browser: Any) -> None:
    """What the two tests above would say of a bad page."""
    bad = (
        "<body style='margin:0;background:#fff'>"
        "<p style='width:50px;overflow:hidden;white-space:nowrap'>a long line</p>"
        "<p style='margin-left:380px;white-space:nowrap'>off the screen</p><p style='color:#aaa'>pale</p>"
        "<div style='width:80px;overflow-x:auto;white-space:nowrap'>a line that scrolls by pointer alone</div>"
    )
    watched = Watched(browser, "about:blank", viewport={"width": 390, "height": 844})
    watched.page.set_content(bad)
    watched.page.add_script_tag(content=MEASURES)
    found = watched.page.evaluate("texts().map(cut).filter(Boolean)")
    assert [words.split(":")[0] for words in found] == [
        "a long line",
        "off the screen",
        "a line that scrolls by pointer alone",
    ]
    (ratio,) = watched.page.evaluate(
        "texts().filter(one => one.words === 'pale').map(one => contrast(one.ink, one.paper))"
    )
    assert ratio == pytest.approx(2.32, abs=0.01)
    watched.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_keyboard_reaches_every_control_in_sequence_and_each_has_a_name(
    browser: Any, report: str, width: int, scheme: str
) -> None:
    watched = Watched(browser, report, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = watched.page
    page.wait_for_selector("#replay-region.ready")
    page.add_script_tag(content=MEASURES)
    wanted = page.evaluate("controls().length")
    assert wanted > 40
    reached = []
    for _ in range(wanted):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("focused()"))
    assert [one["place"] for one in reached] == list(range(wanted))  # in the sequence of the page, none left out
    assert [one for one in reached if not one["name"]] == []
    assert [one for one in reached if one["outline"] < 2] == []
    names = {one["name"] for one in reached}
    assert {"Light or dark", "Episode", "one step back", "Play", "one step on", "step", "Replay of an episode"} <= names
    assert ("picture of the network" in names) == (width == 390)  # where it must be scrolled
    watched.context.close()


def test_words_are_explained_by_pointer_keyboard_and_finger(browser: Any, report: str) -> None:
    watched = Watched(browser, report, viewport={"width": 390, "height": 844}, has_touch=True)
    page = watched.page
    page.wait_for_selector("#replay-region.ready")
    tip = page.locator("#tip")
    links = page.locator("a.term")
    shown = {one.get_attribute("href").removeprefix("#word-").replace("-", " ") for one in links.all()}
    assert shown >= {
        "edition", "due type", "idle fix", "bound", "level", "training noise", "kernel weight", "compliance", "kept"
    }  # fmt: skip
    link = page.locator("#ranking a.term", has_text="kept").first
    for act in (link.tap, link.hover, link.focus):
        assert not tip.is_visible()
        act()
        tip.wait_for(state="visible")
        assert tip.inner_text() == GLOSSARY["kept"]
        box = tip.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
        page.keyboard.press("Escape")
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(400)
    described = link.get_attribute("aria-describedby")
    assert page.locator(f"#{described}").inner_text() == GLOSSARY["kept"]
    watched.context.close()


def test_without_javascript_tables_and_a_static_figure_remain(
    browser: Any, report: str, stored: dict[str, Any]
) -> None:
    watched = Watched(browser, report, java_script_enabled=False, color_scheme="dark")
    assert not watched.page.locator("#replay-region").is_visible()
    assert not watched.page.locator(".plot").first.is_visible()
    assert watched.page.locator("#answer svg").is_visible()
    assert watched.page.locator("#ranking .track").first.is_visible()
    assert figures_of(stored["ranking"][0]) in watched.text("ranking")
    assert figures_of(stored["finalists"][0]) in watched.text("finalists")
    assert watched.page.locator("#evaluation table").is_visible()
    watched.context.close()


def test_a_comparison_and_an_unfinished_run_open_without_an_error_on_a_telephone(
    browser: Any, run: Path, tmp_path: Path
) -> None:
    lone, empty = tmp_path / "<!--<script>", tmp_path / "empty"
    shutil.copytree(run / "trainings" / "004-1", lone)
    empty.mkdir()
    shutil.copy(run / "config.json", empty / "config.json")
    for paths in ([run, lone], [lone], [empty]):
        address = f"file://{write_report(paths, load_network(), tmp_path / 'page.html')['report']}"
        watched = Watched(browser, address, viewport={"width": 390, "height": 844}, color_scheme="dark")
        watched.page.wait_for_timeout(300)
        watched.page.add_script_tag(content=MEASURES)
        assert watched.page.evaluate("texts().map(cut).filter(Boolean)") == []
        assert (
            watched.page.evaluate("texts().filter(one => contrast(one.ink, one.paper) < 4.5).map(one => one.words)")
            == []
        )
        assert watched.complaints == []
        assert watched.requests == [address]
        assert watched.page.evaluate("typeof Plotly") == ("object" if paths == [lone] else "undefined")
        watched.context.close()


def test_on_paper_the_page_is_light_and_nothing_is_folded_away_or_cut(browser: Any, report: str) -> None:
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
    watched.page.emulate_media(media="print")
    watched.page.set_viewport_size({"width": 718, "height": 1000})  # A4 with its margins
    watched.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    watched.page.wait_for_timeout(500)
    watched.page.add_script_tag(content=MEASURES)
    assert watched.page.evaluate("texts().map(cut).filter(Boolean)") == []
    watched.context.close()
