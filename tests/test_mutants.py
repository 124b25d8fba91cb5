"""Breaks one branch of the compiled rules at a time, compiles the result and demands that a replay notices."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DATA, ROOT
from tests.helpers import run
from tests.mutants import SOURCE_MUTANTS, TABLE_MUTANTS, SourceMutant


def replay_copy(package: Path, edition: str, **environment: str) -> tuple[int, str]:
    """Replays the sample with the copy of the package in ``package``; returns exit code and standard output."""
    environment = {"WORKFLOW_RL_CACHE_DIR": str(package / "cache")} | environment
    done = run(
        "replay", DATA / f"sample-{edition}.npz", "--edition", edition, "--json",
        cwd=package, PYTHONPATH=str(package), **environment,
    )  # fmt: skip
    return done.returncode, done.stdout or done.stderr


QUICK: dict[str, Any] = {"NUMBA_OPT": "0", "WORKFLOW_RL_CACHE_DIR": "/dev/null/nowhere"}  # compiled for one run


def copy_package(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "workflow_rl", tmp_path / "workflow_rl", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_there_are_at_least_twenty_mutants_of_each_kind_together() -> None:
    assert len(TABLE_MUTANTS) >= 20
    assert len(SOURCE_MUTANTS) >= 10
    names = [mutant.name for mutant in TABLE_MUTANTS] + [mutant.name for mutant in SOURCE_MUTANTS]
    assert len(set(names)) == len(names)


@pytest.mark.long
@pytest.mark.parametrize("mutant", SOURCE_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_replay_notices_a_broken_branch(tmp_path: Path, mutant: SourceMutant) -> None:
    package = copy_package(tmp_path)
    source = package / "workflow_rl" / "engine" / mutant.file
    text = source.read_text("utf-8")
    assert text.count(mutant.old) == 1, "the mutant does not fit the source any more"
    source.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    code, output = replay_copy(package, mutant.edition, **QUICK)
    assert code == 1, output
    assert json.loads(output)["mismatched_steps"] > 0


@pytest.mark.long
def test_a_damaged_cache_of_compiled_code_is_compiled_anew_and_never_hides_an_edit_in_another_file(
    tmp_path: Path,
) -> None:
    package = copy_package(tmp_path)
    assert replay_copy(package, "current")[0] == 0
    entries = [path for path in (package / "cache").rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert entries
    for number, path in enumerate(entries):
        path.write_bytes(path.read_bytes()[: 40 * (number % 2)])
    code, output = replay_copy(package, "current")
    assert code == 0, output
    source = package / "workflow_rl" / "engine" / "tables.py"
    swapped = source.read_text("utf-8").replace(
        "NO_SERVICE, YIELDS_PRIVILEGED, YIELDS_USER", "NO_SERVICE, YIELDS_USER, YIELDS_PRIVILEGED"
    )
    assert swapped != source.read_text("utf-8")
    source.write_text(
        swapped, "utf-8"
    )  # names in tables and in machine code change alike: still right, if nothing is stale
    assert replay_copy(package, "current")[0] == 0
    source = package / "workflow_rl" / "engine" / "observe.py"
    source.write_text(source.read_text("utf-8").replace("MANY = 3", "MANY = 4"), "utf-8")
    assert replay_copy(package, "current")[0] == 1


def test_without_a_writable_cache_directory_everything_is_compiled_anew() -> None:
    done = run("replay", DATA / "sample-current.npz", **QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
