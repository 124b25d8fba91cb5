"""Running the program as a user does, and comparing what environments return."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import ROOT


def run(*arguments: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs ``workflow-rl`` with ``arguments`` in a process of its own."""
    command = [sys.executable, "-m", "workflow_rl.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=os.environ | environment, timeout=600)


def run_json(*arguments: str | Path) -> dict[str, Any]:
    """Runs ``workflow-rl ... --json`` and returns the object on the last line of standard output."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def assert_refused(done: subprocess.CompletedProcess[str], complaint: str) -> None:
    """Exit code 2, one sentence on standard error, nothing on standard output, no traceback."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def same(left: Any, right: Any) -> bool:
    """Are two infos, arrays or tuples of them the same, Nones included?"""
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray) and left.dtype == object:
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return np.array_equal(left, right)
