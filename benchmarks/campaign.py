"""Everything again from one commit: each experiment in a process of its own, one after the other.

What the present source has already measured is skipped, so that a stopped campaign resumes where it was.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.experiments import EXPERIMENTS, stored_name
from benchmarks.results import RESULTS, read_result_file, source_commit
from benchmarks.studies.registry import STUDIES
from workflow_rl.errors import UserError

# Those that others read come first (the limit, the tables of all orders, the trainings of `baselines`) and what most
# sentences rest on; what takes longest comes last.
FIRST = ("limit", "workflow_table", "obedient", "champion", "env", "train", "search", "incidents", "baselines")
LAST = ("problems", "planner", "playbooks", "repeat")


class Step(NamedTuple):
    """One command of the campaign and the name of the file that it writes."""

    words: tuple[str, ...]
    stored: str

    @property
    def made_by(self) -> str:
        """The commit of the stored result; empty if there is none."""
        path = RESULTS / f"{self.stored}.json"
        return str(read_result_file(path)["commit"]) if path.exists() else ""


def steps() -> Iterator[Step]:
    """All commands that store a result."""
    others = (name for name in (*STUDIES, *EXPERIMENTS) if name not in (*FIRST, *LAST))
    for name in (*FIRST, *others, *LAST):
        if name in STUDIES:
            yield Step((name,), f"study_{name}")
        elif EXPERIMENTS[name].stores:
            for part in EXPERIMENTS[name].parts or ("",):
                yield Step((name, *part.split()), stored_name(name, part))


def run_all(say: Callable[[str], None]) -> list[Path]:
    """Runs what is missing and returns the files of all results; a command that fails does not stop the others."""
    now = source_commit()
    if now == "unknown" or now.endswith("-dirty"):
        raise UserError("the source differs from the last commit: commit it first, results must name what made them.")
    missing, failed = [step for step in steps() if step.made_by != now], []
    for number, step in enumerate(missing, 1):
        say(f"{number} of {len(missing)}: python -m benchmarks {' '.join(step.words)}")
        if subprocess.run([sys.executable, "-m", "benchmarks", *step.words]).returncode:
            failed.append(" ".join(step.words))
    if failed:
        raise UserError(f"these failed: {', '.join(failed)}.")
    return [RESULTS / f"{step.stored}.json" for step in steps()]
