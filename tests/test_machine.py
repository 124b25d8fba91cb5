"""What the tests do on a machine that lacks something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import NEEDED, ROOT

pytestmark = pytest.mark.long


def browser_tests_without_a_browser(empty: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The tests of the report in a browser, where no program is on the path."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "tests/test_report_browser.py"]
    surroundings = {name: value for name, value in os.environ.items() if name != "CI"}
    surroundings |= {"PATH": str(empty)} | environment
    return subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=300)


def test_with_ci_a_missing_browser_is_a_failure_that_says_how_to_get_one(tmp_path: Path) -> None:
    done = browser_tests_without_a_browser(tmp_path, CI="true")
    assert done.returncode == 1, done.stdout
    sentence = "not on this machine: chromium (apt-get install --no-install-recommends chromium)"
    assert sentence in done.stdout
    assert " passed" not in done.stdout


def test_elsewhere_the_summary_says_what_was_not_tested_and_how_to_get_it(tmp_path: Path) -> None:
    done = browser_tests_without_a_browser(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "tests need chromium (apt-get install --no-install-recommends chromium)" in done.stdout


def test_everything_that_a_test_may_need_has_a_command_that_brings_it() -> None:
    assert {"chromium", "csle_cyborg", "ray", "recordings"} <= set(NEEDED)
    assert all(command for _, command in NEEDED.values())
