"""The package as others install it: a wheel, far from any checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import workflow_rl
from tests.conftest import ROOT

OFFLINE = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
TINY = "--n-envs 8 --max-episodes 2 --min-episodes 1 --n-eval-episodes 10 --warm-updates 2 --replicates 1 --no-finish"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "workflow_rl", source / "workflow_rl", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", "dist", "."]
    subprocess.run(pip, cwd=source, check=True, capture_output=True)
    [built] = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", *OFFLINE, "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    for path in (target, *target.rglob("*")):
        path.chmod(0o555 if path.is_dir() or path.parent.name == "bin" else 0o444)
    return target


def run(installed: Path, folder: Path, *arguments: str, program: str = "-m workflow_rl.cli") -> str:
    """Standard output of the installed program, started in ``folder``."""
    command = [sys.executable, *program.split(maxsplit=1), *arguments]
    environment = os.environ | {"PYTHONPATH": str(installed), "HOME": str(folder / "home")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_every_file_of_the_package_and_the_version_of_the_program(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if name.startswith("workflow_rl/")}
        about = file.read(f"workflow_rl-{workflow_rl.__version__}.dist-info/METADATA").decode()
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "workflow_rl").rglob("*") if path.is_file()}
    assert names == {name for name in ours if "__pycache__" not in name}
    assert "Requires-Python: >=3.11" in about
    assert "License-Expression: MIT" in about
    assert "Classifier: Topic :: Security" in about


def test_the_main_job_runs_from_the_wheel_in_an_empty_directory(installed: Path, tmp_path: Path) -> None:
    where = run(installed, tmp_path, "import workflow_rl; print(workflow_rl.__file__)", program="-c")
    assert Path(where.strip()).is_relative_to(installed)
    assert "search" in run(installed, tmp_path, "--help")
    found = json.loads(
        run(installed, tmp_path, "search", "--n-workflows", "2", *TINY.split(), "--json").splitlines()[-1]
    )
    assert Path(tmp_path / found["report"]).stat().st_size > 1e6
    assert json.loads((tmp_path / found["run"] / "config.json").read_text("utf-8"))["commit"] == "unknown"
    assert "report.html" in run(installed, tmp_path, "report", found["run"])
    assert "steps" in run(installed, tmp_path, "evaluate", "champion", "--episodes", "4")
    assert "median of" in run(installed, tmp_path, "watch", found["run"])


def test_networks_are_made_checked_and_shown_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, "network", "new", "mine.toml", "--hosts", "10", "--unit-types", "3")
    assert "no mistakes" in run(installed, tmp_path, "network", "check", "mine.toml")
    assert "red starts" in run(installed, tmp_path, "network", "show", "plant")
    run(installed, tmp_path, "network", "export", "cage2", "scenario.yaml")
    assert "13 hosts" in run(installed, tmp_path, "network", "import", "scenario.yaml", "back.toml")
