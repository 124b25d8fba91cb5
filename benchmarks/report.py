"""How long the report of a search of 40 evaluations takes to write and to open: ``python -m benchmarks report``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import main

REPEATS = 5


def program(*words: str) -> float:
    """Seconds of ``workflow-rl`` with these words, from start to end of the process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "workflow_rl.cli", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def opening(page: Path) -> float:
    """Seconds from the address to a replay that obeys, in Chromium without a network; median of several."""
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as session:
        browser = session.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(REPEATS):
            tab = browser.new_context(offline=True).new_page()
            start = time.perf_counter()
            tab.goto(f"file://{page}")
            tab.wait_for_selector("#replay-region.ready")
            tab.locator("#replay-region").focus()
            tab.keyboard.press("ArrowRight")
            tab.locator("#told-step", has_text="2 of 100").wait_for()
            times.append(time.perf_counter() - start)
            tab.context.close()
        browser.close()
    return median(times)


def measure() -> dict[str, Any]:
    """Seconds to write and to open the report, and its size."""
    figures: dict[str, Any] = {"evaluations": 40}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        program("search", "--n-workflows", "40", "--no-report", "--run-dir", str(run))
        figures["report_seconds"] = median(program("report", str(run)) for _ in range(3))
        figures["open_seconds"] = opening(run / "report.html")
        figures["megabytes"] = (run / "report.html").stat().st_size / 1e6
    return figures


if __name__ == "__main__":
    main("report")
