"""What the tests share: where recordings are, what a machine must have, which tests share a process and begin first."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from xdist.scheduler import LoadScopeScheduling

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.fidelity.traces import Trace, load_trace

torch.set_num_threads(1)  # the tests run in two processes
hypothesis.settings.load_profile("ci")  # the same examples on every machine, not only where CI is set
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it in its workers; then tables would be narrowed for a terminal
os.environ.setdefault("OMP_NUM_THREADS", "1")  # and those that they start: waiting threads take half of the time
signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that the tests interrupt must not inherit "ignored"

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared"
ORACLE = SHARED / "cage2-oracle"
FOLDERS = {"current": ORACLE, "leaderboard": ORACLE / "leaderboard"}

# Files that share what takes long to make go to one process each group, before all others: a Ray cluster, a search, a
# page in a browser. (The mark xdist_group does not work: pytest 9.2 ignores the name that pytest-xdist 3.8 gives.)
TOGETHER = {
    "test_cluster.py": "ray",
    "test_executor.py": "ray",
    "test_workflow_search.py": "search",
    "test_studies.py": "studies",
    "test_report.py": "report",
    "test_report_browser.py": "report",
}
LONG_FIRST = ("test_docs.py", "test_training.py", "test_mutants.py", "test_cli.py")  # so that no process ends alone


class Together(LoadScopeScheduling):  # type: ignore[misc]
    """Groups of files first, the largest before the others; then test by test."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER.get(nodeid.partition("::")[0].rpartition("/")[2], nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Distributes the tests over the processes of pytest-xdist."""
    return Together(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests before short ones."""
    items.sort(key=lambda item: item.path.name not in LONG_FIRST)


# ------------------------------------------------------------------------------------- what a machine may be without

INSTALL = "pip install -e '.[dev]'"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED: dict[str, tuple[Callable[[], bool], str]] = {
    "chromium": (lambda: CHROMIUM is not None, "apt-get install --no-install-recommends chromium"),
    "recordings": (ORACLE.is_dir, f"put the project's shared folder to {SHARED}"),
    **{
        package: (lambda package=package: importlib.util.find_spec(package) is not None, INSTALL)  # type: ignore[misc]
        for package in ("csle_cyborg", "matplotlib", "playwright", "ray", "stable_baselines3", "torchrl")
    },
}
MISSING = "not on this machine: "


def require(*names: str) -> None:
    """Ends a test without what it needs: skipped and named in the summary, but failed where CI=true."""
    for name in names:
        there, command = NEEDED[name]
        if not there():
            reason = f"{MISSING}{name} ({command})"
            if os.environ.get("CI") == "true":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Looks for what the mark ``needs`` names."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says what was not tested, and how to get it."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    missing = Counter(reason.partition(MISSING)[2] for reason in reasons if MISSING in reason)
    for name, number in missing.items():
        terminalreporter.write_line(f"NOT TESTED: {number} tests need {name}", yellow=True)


def oracle_files(edition: str) -> list[Path]:
    """All recordings of an edition; ends the test where they are not there."""
    require("recordings")
    return sorted(FOLDERS[edition].glob("*.npz"))


@pytest.fixture(scope="session")
def network() -> Network:
    return load_network()


@pytest.fixture(scope="session")
def samples() -> dict[str, Trace]:
    """The recordings that come with the project, by edition."""
    return {edition: load_trace(DATA / f"sample-{edition}.npz") for edition in FOLDERS}
