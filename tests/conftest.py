"""Where the tests find recorded games of genuine CybORG."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from workflow_rl.scenario import Scenario
from workflow_rl.scenario_file import load_scenario
from workflow_rl.traces import Trace, load_trace

torch.set_num_threads(1)  # the tests run in two processes

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
ORACLE = ROOT.parent / "shared" / "cage2-oracle"
FOLDERS = {"current": ORACLE, "leaderboard": ORACLE / "leaderboard"}


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
