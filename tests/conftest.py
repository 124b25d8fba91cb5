"""Where the tests find recorded games of genuine CybORG; which tests share a process, and which begin first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from xdist.scheduler import LoadScopeScheduling

from workflow_rl.scenario import Scenario
from workflow_rl.scenario_file import load_scenario
from workflow_rl.traces import Trace, load_trace

torch.set_num_threads(1)  # the tests run in two processes
os.environ.setdefault("OMP_NUM_THREADS", "1")  # and those that they start: waiting threads take half of the time

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
ORACLE = ROOT.parent / "shared" / "cage2-oracle"
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


def oracle_files(edition: str) -> list[Path]:
    """All recordings of an edition; skips the test where they are not there."""
    files = sorted(FOLDERS[edition].glob("*.npz"))
    if not files:
        pytest.skip(f"the full recordings are not here ({FOLDERS[edition]})")
    return files


@pytest.fixture(scope="session")
def scenario() -> Scenario:
    return load_scenario()


@pytest.fixture(scope="session")
def samples() -> dict[str, Trace]:
    """The recordings that come with the project, by edition."""
    return {edition: load_trace(DATA / f"sample-{edition}.npz") for edition in FOLDERS}
