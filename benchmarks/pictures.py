"""The pictures of the documents, from the stored run: ``python -m benchmarks pictures``."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from io import BytesIO, StringIO
from pathlib import Path
from typing import Literal

from rich.console import Console

from benchmarks.command import main
from workflow_rl.cli.screen import Screen
from workflow_rl.cli.search_view import print_search
from workflow_rl.engine.network_file import load_network
from workflow_rl.report.build import write_report
from workflow_rl.report.figures import write_figures
from workflow_rl.report.run_data import report_data
from workflow_rl.runs import read_search_config
from workflow_rl.search.findings import SearchResult
from workflow_rl.search.verdict import Source, verdict

DOCS = Path(__file__).resolve().parents[1] / "docs"
FIGURES = ("ranking.svg", "pairs.svg")
SCREEN = "search.svg"
VIEWS: dict[
    str, tuple[int, list[tuple[Literal["light", "dark"], str]]]
] = {  # screens beside each other: their width, and the theme and the section of each
    "report-390.png": (390, [("light", "answer"), ("dark", "ranking"), ("light", "replay"), ("dark", "training")]),
    "report-768.png": (768, [("light", "answer"), ("dark", "progress")]),
    "report-1280.png": (1280, [("dark", "answer")]),
    "replay.png": (1000, [("light", "replay")]),
}
COLOURS = 48  # of a picture: it is small, and its letters stay sharp


def figures_of_the_stored_run(folder: Path) -> dict[str, bytes]:
    """The figures that the documents show, regenerated in a folder."""
    with zipfile.ZipFile(DOCS / "example-run.zip") as archive:
        archive.extractall(folder / "example-run")
    write_figures(report_data(folder / "example-run", load_network()), folder / "figures")
    return {name: (folder / "figures" / name).read_bytes() for name in FIGURES}


def screen_of_the_stored_run(run: Path) -> str:
    """The end of a search on a terminal of 80 columns."""
    result = SearchResult.from_json(json.loads((run / "result.json").read_text("utf-8")))
    source = Source(result.run, read_search_config(run))
    console = Console(width=80, file=StringIO(), record=True, force_terminal=True)
    print_search(result, verdict(result, result.evaluations, source), Screen(console=console))
    return console.export_svg(title="workflow-rl search", unique_id="search")


def photograph(page: Path, folder: Path) -> None:
    """The page on screens of three widths, light and dark, and the replay in the middle of an attack."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as session:
        browser = session.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, views) in VIEWS.items():
            shots = []
            for scheme, place in views:
                tab = browser.new_context(
                    offline=True, viewport={"width": width, "height": 844}, color_scheme=scheme
                ).new_page()
                tab.goto(f"file://{page}")
                tab.wait_for_selector("#replay-region.ready")
                tab.locator("#slider").fill("40")
                tab.locator(f"#{place}").evaluate("place => place.scrollIntoView()")
                tab.wait_for_timeout(1500)
                shots.append(Image.open(BytesIO(tab.screenshot())))
                tab.context.close()
            sheet = Image.new("RGB", ((width + 10) * len(shots) - 10, 844), "#888888")
            for number, shot in enumerate(shots):
                sheet.paste(shot, ((width + 10) * number, 0))
            sheet.quantize(COLOURS).save(folder / name, optimize=True)
        browser.close()


def measure() -> None:
    """Writes docs/pictures."""
    (DOCS / "pictures").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in figures_of_the_stored_run(Path(folder)).items():
            (DOCS / "pictures" / name).write_bytes(content)
        (DOCS / "pictures" / SCREEN).write_text(screen_of_the_stored_run(Path(folder) / "example-run"), "utf-8")
        page = Path(write_report([Path(folder) / "example-run"], load_network())["report"])
        photograph(page, DOCS / "pictures")


if __name__ == "__main__":
    main("pictures")
