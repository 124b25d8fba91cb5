"""Numbers of the documents that are bound to stored results, and how they follow when results change.

A number is bound to a result in one of two ways:

* in a table, by its path in the next cell: "| 13.1 | `search.json bline.wall_seconds` |";
* by a comment in its paragraph, list item or table, which readers do not see:
  "<!-- search.json bline.wall_seconds, meander.wall_seconds -->". The paths stand in the order of the numbers. Each may
  be a formula of paths and whole numbers with + - * / between blanks, `mean`, `least`, `most` or `count` before a list,
  and "{a,b}" for several. In a key `_` also stands for a blank.

The k-th bound number is the k-th value at the digits shown. tests/test_numbers.py checks every document.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
CODE = re.compile(r"`[^`]*`")
STORED_AS = re.compile(r"`(\w+\.json \S+)`")
BLOCK_START = re.compile(r"([*-]|\d+\.) |#+ |\|")
NUMBER = re.compile(
    r"(?<!\w)(?<!\d\.)(?P<figure>(?:(?<![\w)])[-+])?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)*(?:e-?\d+)?)"
    r"(?: ?(?P<unit>k|M|%|ms|million|thousand)(?!\w))?"
)
DECISION = re.compile(r"0\d+")  # the number of a decision record is a name
UNITS = {"": 1.0, "k": 1e3, "thousand": 1e3, "M": 1e6, "million": 1e6, "%": 1e-2, "ms": 1e-3}
OPERAND = re.compile(r"(?:(mean|least|most|count) )?(?:(\w+\.json) )?(\S+)")
OF_LISTS: dict[str, Callable[[list[float]], float]] = {"mean": fmean, "least": min, "most": max, "count": len}


@dataclass(frozen=True)
class Number:
    """A number of a text, with its unit and its place."""

    figure: str
    unit: str
    start: int
    end: int

    def shows(self, value: float) -> bool:
        """Whether this is the value, rounded to the digits shown."""
        mantissa, _, exponent = self.figure.replace(",", "").partition("e")
        step = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        return abs(float(self.figure.replace(",", "")) - value / UNITS[self.unit]) <= 0.5 * step * (1 + 1e-9)

    def showing(self, value: float) -> str:
        """The value in the form of this number: as many digits, its unit, separators of thousands, a plus sign."""
        shown, digits = value / UNITS[self.unit], len(self.figure.partition("e")[0].partition(".")[2])
        if "e" in self.figure:
            return f"{shown:.{digits}e}"
        sign = "-" if round(shown, digits) < 0 else "+" if self.figure.startswith("+") else ""
        return f"{sign}{abs(shown):,.{digits}f}"

    @property
    def is_small(self) -> bool:
        """Whether it is a whole number below ten without a unit."""
        return not self.unit and re.fullmatch(r"[-+]?\d", self.figure) is not None


@dataclass
class Block:
    """A paragraph, a list item or a table, without its comments: what must agree with what, in sequence."""

    text: str
    numbers: list[Number]
    bindings: list[str]
    cells: list[tuple[str, str]] = field(default_factory=list)  # of a table: figure, path
    settings: set[int] = field(default_factory=set)  # where numbers start that are part of their row's path


def find_numbers(text: str) -> list[Number]:
    """All numbers of a text that are no code and no names of decisions."""
    code = [match.span() for match in CODE.finditer(text)]
    return [
        Number(match["figure"], match["unit"] or "", *match.span("figure"))
        for match in NUMBER.finditer(text)
        if not any(start <= match.start() < end for start, end in code) and not DECISION.fullmatch(match["figure"])
    ]


def blocks(document: str) -> Iterator[Block]:
    """What can have bindings of its own; a comment in the line after a paragraph or a table belongs to it."""
    document = re.sub(r"^>+ ?", "", FENCE.sub("", document), flags=re.MULTILINE)
    document = COMMENT.sub(lambda match: " ".join(match[0].split()), document)
    document = re.sub(r"\]\([^)]*\)", "]", document)
    parts: list[list[str]] = [[]]
    for line in document.splitlines():
        bare = line.strip()
        rows = bare.startswith("|") and parts[-1] and parts[-1][-1].startswith("|")
        after_heading = parts[-1] and parts[-1][0].startswith("#")
        if not bare or after_heading or (BLOCK_START.match(bare) and not rows):
            parts.append([])
        if bare:
            parts[-1].append(bare if bare.startswith("|") else re.sub(r"^([*-]|\d+\.) +", "", bare))
    for lines in filter(None, parts):
        yield table(lines) if lines[0].startswith("|") else paragraph(" ".join(lines))


def bindings_of(text: str) -> list[str]:
    """Every path or formula of the comments, with its file, braces written out."""
    found = []
    for comment in COMMENT.findall(text):
        file = ""
        for item in comment.strip().split(", "):
            named = re.search(r"\w+\.json", item)
            file = named[0] if named else file
            options = [
                part[1:-1].split(",") if part[0] == "{" else [part] for part in re.split(r"({.*?})", item) if part
            ]
            found += [f"{'' if named else file + ': '}{''.join(choice)}" for choice in itertools.product(*options)]
    return found


def paragraph(raw: str) -> Block:
    """A paragraph or a list item."""
    text = " ".join(COMMENT.sub("", raw).split())
    return Block(text, find_numbers(text), bindings_of(raw))


def table(lines: list[str]) -> Block:
    """A cell that is a path belongs to the cell before it; the rest is read row by row like a paragraph."""
    block = Block("", [], bindings_of("\n".join(lines)))
    for line in (COMMENT.sub("", line).strip() for line in lines):
        cells = line.split("|")
        path = next((i for i, cell in enumerate(cells) if STORED_AS.fullmatch(cell.strip())), 0)
        named = set(re.findall(r"\d+", cells[path])) if path else set()
        if path:
            block.cells.append((cells[path - 1].strip(), cells[path].strip(" `")))
        for i, cell in enumerate(cells):
            offset = len(block.text) + 1
            block.text += f"|{cell}"
            for number in find_numbers(cell) if not path or i != path - 1 else []:
                moved = Number(number.figure, number.unit, number.start + offset, number.end + offset)
                block.numbers.append(moved)
                if number.figure.replace(",", "") in named:
                    block.settings.add(moved.start)
    return block


def look_up(path: str, figures: Any) -> Any:
    """The value behind a path of keys and places."""
    for key in path.split("."):
        if isinstance(figures, dict) and key not in figures:
            key = key.replace("_", " ")
        figures = figures[int(key)] if isinstance(figures, list) else figures[key]
    return figures


def flat(values: Any) -> list[float]:
    """All numbers of nested lists."""
    return [number for value in values for number in (flat(value) if isinstance(value, list) else [value])]


def value_of(binding: str, results: Mapping[str, Any]) -> float:
    """A path or a formula: products and quotients first, from left to right."""
    file, _, formula = binding.rpartition(": ")
    parts = re.split(r" ([-+*/]) ", formula)
    if all(part.split()[-1].isdigit() for part in parts[::2]):
        raise ValueError(f"{formula!r} names no result")
    terms: list[float] = []
    for sign, text in zip(["+", *parts[1::2]], parts[::2], strict=True):
        match = OPERAND.fullmatch(text)
        if not match:
            raise ValueError(f"{text!r} is no path")
        function, named, path = match.groups()
        file = named or file
        found = float(path) if path.isdigit() else look_up(path, results[file])
        value = float(OF_LISTS[function](flat(found)) if function else found)
        if sign in "*/":
            terms[-1] = terms[-1] * value if sign == "*" else terms[-1] / value
        else:
            terms.append(value if sign == "+" else -value)
    return sum(terms)
