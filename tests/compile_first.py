"""Compiles what most tests run, in one process: ``python -m tests.compile_first`` before the tests share the machine.

Without it every process of the tests compiles the same functions at the same time, each for itself.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from workflow_rl.cli import __main__ as cli

ROOT = Path(__file__).resolve().parent.parent
SMALL = ["--n-envs", "20", "--max-episodes", "2", "--min-episodes", "1", "--n-eval-episodes", "4", "--no-tensorboard"]
TRAININGS = {
    "fast": "--workflow user,op_server,enterprise,op_host,defender --warm-start none",
    "plain": "--path plain --minibatch 100",
    "memory": "--preset original",
}


def main() -> None:
    """Runs some small commands, whatever they print."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        commands = [
            ["train", *SMALL, *words.split(), "--run-dir", f"{folder}/{name}"] for name, words in TRAININGS.items()
        ]
        commands += [["evaluate", "champion", "--episodes", "2"], ["watch", "expert", "--json"]]
        commands += [["replay", str(ROOT / "tests" / "data" / "sample-current.npz")]]
        for words in commands:
            cli.app(words, standalone_mode=False)


if __name__ == "__main__":
    main()
