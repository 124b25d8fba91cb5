"""Compiles what most tests run, in one process: ``python -m tests.compile_first`` before the tests share the machine.

Without it every process of the tests compiles the same functions at the same time, each for itself.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from workflow_rl import cli

ROOT = Path(__file__).resolve().parent.parent
SMALL = "--n-envs 20 --max-episodes 2 --min-episodes 1 --n-eval-episodes 4 --no-tensorboard"
COMMANDS = (
    f"train {SMALL} --workflow user,op_server,enterprise,op_host,defender --warm-start none --run-dir {{}}/fast",
    f"train {SMALL} --path plain --minibatch 100 --run-dir {{}}/plain",
    f"train {SMALL} --preset original --run-dir {{}}/memory",
    "evaluate champion --episodes 2",
    "watch expert --json",
    f"replay {ROOT}/tests/data/sample-current.npz",
)


def main() -> None:
    """Runs some small commands, whatever they print."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        for command in COMMANDS:
            cli.app(command.format(folder).split(), standalone_mode=False)


if __name__ == "__main__":
    main()
