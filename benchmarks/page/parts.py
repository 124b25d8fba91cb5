"""Small parts of the page of results: the files it is made from, tables, figures in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.results import read_result_file
from workflow_rl.errors import UserError

EDITIONS = ("current", "leaderboard")
LENGTHS = ("30", "50", "100")
FOES = {"bline": "B_line", "meander": "Meander"}


class Files:
    """Result files by name, each read once and refused if it is that of a quick form."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, dict[str, Any]] = {}

    def __call__(self, name: str) -> dict[str, Any]:
        """A whole result file."""
        if name not in self._known:
            path = self.folder / f"{name}.json"
            found = read_result_file(path)
            if found.get("quick"):
                raise UserError(f"{path} is the result of a quick form, which shows nothing; run the study itself.")
            self._known[name] = found
        return self._known[name]

    def has(self, *names: str) -> bool:
        """Have these studies been run to their end?"""
        return all((self.folder / f"study_{name}.json").exists() for name in names)

    def figures(self, name: str) -> dict[str, Any]:
        """Its figures."""
        found: dict[str, Any] = self(name)["figures"]
        return found

    def limit(self, edition: str, red: str, length: str) -> float:
        """What a defender that sees everything reaches: exact against B_line, an estimate against Meander."""
        found = self.figures("study_limit")
        if red == "sleep":
            return 0.0
        if red == "bline":
            return float(found["bline"][edition]["values"][int(length) - 1])
        return float(found["meander"][edition]["cells"][length]["mean"])


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def span(found: dict[str, Any], digits: int = 2) -> str:
    """A summary with its interval."""
    return f"{number(found['iqm'], digits)} [{number(found['low'], digits)}, {number(found['high'], digits)}]"


def number(value: float, digits: int = 2) -> str:
    """A figure without a negative zero.

    >>> number(-0.001)
    '0.00'
    """
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text


def signed(found: dict[str, Any], digits: int = 2) -> str:
    """A difference with its interval."""
    return f"{found['difference']:+.{digits}f} [{found['low']:+.{digits}f}, {found['high']:+.{digits}f}]"


def below(value: float, limit: float) -> str:
    """How far a score is from the limit."""
    return f"({number(limit - value, 1)})"


def scored(found: dict[str, Any], limit: float, digits: int = 1) -> str:
    """A score with its interval and its distance to the limit."""
    return f"{span(found, digits)} {below(found['iqm'], limit)}"


def about(files: Files, name: str, missing: str) -> str:
    """The last lines of a section: its command and what it does not show."""
    found = files(f"study_{name}")
    minutes = found["seconds_of_cells"] / 60
    commits = ", ".join(f"`{commit}`" for commit in found["commits_of_cells"])
    return (
        f"*Command:* `python -m benchmarks.study {name}` ([file](../benchmarks/results/study_{name}.json), {minutes:.0f} minutes of "
        f"processes, commit {commits}).\n*Not shown:* {missing}\n"
    )
