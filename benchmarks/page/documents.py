"""The bound numbers of the documents follow the stored results.

A document agrees with the results of the last commit. So the number that shows an old value is replaced by the new one,
in the same form. The words around it are left to the reader of the difference.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.page.bound import (
    CODE,
    COMMENT,
    FENCE,
    STORED_AS,
    Number,
    blocks,
    find_numbers,
    value_of,
)
from benchmarks.results import RESULTS, ROOT
from workflow_rl.runs import write_atomically

GENERATED = "docs/results.md"  # written from the results as a whole
LINK, QUOTE, COUNTED = (
    re.compile(r"\]\([^)]*\)"),
    re.compile(r"^>+ ?", re.MULTILINE),
    re.compile(r"^\s*\d+\. ", re.MULTILINE),
)


def documents() -> list[Path]:
    """All documents with numbers."""
    paths = [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
    return sorted(path for path in paths if path != ROOT / GENERATED)


class Results(dict[str, Any]):
    """Figures by file, read when they are asked for: of the working tree, or of a revision."""

    def __init__(self, revision: str = "") -> None:
        super().__init__()
        self.revision = revision

    def __missing__(self, file: str) -> Any:
        if self.revision:
            name = f"{self.revision}:{(RESULTS / file).relative_to(ROOT)}"
            text = subprocess.run(["git", "-C", str(ROOT), "show", name], capture_output=True, text=True).stdout
            self[file] = json.loads(text)["figures"] if text else {}
        else:
            self[file] = json.loads((RESULTS / file).read_text("utf-8"))["figures"]
        return self[file]


def update_documents() -> list[Path]:
    """Rewrites the documents whose numbers show results of the last commit that have changed since."""
    old, new, written = Results("HEAD"), Results(), []
    for path in documents():
        text = path.read_text("utf-8")
        if (now := updated(text, old, new)) != text:
            write_atomically(path, now.encode())
            written.append(path)
    return written


def updated(text: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The document with new values; a number that does not show an old value stays."""
    for start, end, figure in sorted((*_in_cells(text, new), *_in_sequence(text, old, new)), reverse=True):
        text = text[:start] + figure + text[end:]
    return text


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """The text with blanks instead of what matches, so that places stay the same."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _cells(text: str) -> Iterator[tuple[int, str, str]]:
    """Place and text of the cells whose result is named in the next one, and that name."""
    place = 0
    for line in text.splitlines(keepends=True):
        cells = line.split("|")
        path = next((i for i, cell in enumerate(cells) if i > 1 and STORED_AS.fullmatch(cell.strip())), 0)
        if path and line.lstrip().startswith("|"):
            yield place + sum(len(cell) + 1 for cell in cells[: path - 1]), cells[path - 1], cells[path].strip(" `")
        place += len(line)


def _in_cells(text: str, new: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    """What to write where in cells that have a result of their own."""
    for start, cell, path in _cells(_blank(COMMENT, _blank(FENCE, text))):
        numbers, value = find_numbers(cell), _value(path, new)
        if len(numbers) == 1 and value is not None and not numbers[0].shows(value):
            yield start + numbers[0].start, start + numbers[0].end, numbers[0].showing(value)


def _in_sequence(text: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    """What to write where in paragraphs, items and tables with comments."""
    plain = _blank(LINK, _blank(COMMENT, _blank(FENCE, text)))
    for start, cell, _ in _cells(plain):
        plain = plain[:start] + " " * len(cell) + plain[start + len(cell) :]
    for pattern in (QUOTE, COUNTED, CODE):
        plain = _blank(pattern, plain)
    places = find_numbers(plain)
    values = [value for block in blocks(text) for value in _values(block.numbers, block.bindings, old, new)]
    for place, value in zip(places, values, strict=True):
        if value is not None and not place.shows(value):
            yield place.start, place.end, place.showing(value)


def _values(
    numbers: list[Number], bindings: list[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[float | None]:
    """For each number of a block the new value of what it showed, if it showed anything."""
    waiting = list(bindings)
    for number in numbers:
        shown = _value(waiting[0], old) if waiting else None
        yield _value(waiting.pop(0), new) if shown is not None and number.shows(shown) else None


def _value(binding: str, results: Mapping[str, Any]) -> float | None:
    """The value of a path or formula; None if it leads nowhere."""
    try:
        return value_of(binding, results)
    except (KeyError, IndexError, TypeError, FileNotFoundError):
        return None
