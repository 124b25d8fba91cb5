"""The result files that the page is made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.results import read_result_file
from workflow_rl.errors import UserError

EDITIONS = ("current", "leaderboard")
LENGTHS = ("30", "50", "100")
FOES = {"bline": "B_line", "meander": "Meander"}
LONGEST = LENGTHS[-1]


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
        """Whether there are result files of these names."""
        return all((self.folder / f"{name}.json").exists() for name in names)

    def figures(self, name: str) -> dict[str, Any]:
        """The figures of a result file."""
        found: dict[str, Any] = self(name)["figures"]
        return found

    def limit(self, edition: str, red: str, length: str = LONGEST) -> float:
        """What a defender that sees everything reaches: exact against B_line, an estimate against Meander."""
        found = self.figures("study_limit")
        if red == "sleep":
            return 0.0
        if red == "mix":
            return sum(self.limit(edition, foe, length) for foe in FOES) / len(FOES)
        if red == "bline":
            return float(found["bline"][edition]["values"][int(length) - 1])
        return float(found["meander"][edition]["cells"][length]["mean"])

    def total_limit(self, edition: str) -> float:
        """The sum over all cells of the challenge's protocol."""
        return sum(self.limit(edition, red, length) for red in FOES for length in LENGTHS)
