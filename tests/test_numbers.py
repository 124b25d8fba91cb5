"""Every measured number of the documents is a stored result; every other one is explained in number_definitions.py.

A number is bound to a result in one of two ways:

* in a table, by its path in the next cell: "| 13.1 | `search.json bline.wall_seconds` |";
* by a comment in its paragraph, list item or table, which readers do not see:
  "<!-- search.json bline.wall_seconds, meander.wall_seconds -->". The paths stand in the order of the numbers. Each may
  be a formula of paths and whole numbers with + - * / between blanks, `mean`, `least`, `most` or `count` before a list,
  and "{a,b}" for several. In a key `_` also stands for a blank.

The k-th bound number must be the k-th value at the digits shown, so none can pass by being like another one. What
remains must be in number_definitions.py, as a phrase of that document, or be part of its row's path (the setting it was
measured at: "200 environments" beside `vector_steps_per_s.200`), or be a whole number below ten without a unit. Fenced
blocks and inline code are no text: test_docs.py runs them and compares the output that the README shows.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.number_definitions import DEFINITIONS, EVERYWHERE

GENERATED = {"docs/results.md": "written by a command from the stored results, and compared with them there"}
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [name for path in PATHS if (name := str(path.relative_to(ROOT))) not in GENERATED]

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


class Results(dict[str, Any]):
    """Figures by file, read when they are asked for."""

    def __missing__(self, file: str) -> Any:
        self[file] = json.loads((ROOT / "benchmarks" / "results" / file).read_text("utf-8"))["figures"]
        return self[file]


@dataclass(frozen=True)
class Number:
    figure: str
    unit: str
    start: int
    end: int

    def shows(self, value: float) -> bool:
        """Whether this is the value, rounded to the digits shown."""
        mantissa, _, exponent = self.figure.replace(",", "").partition("e")
        step = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        return abs(float(self.figure.replace(",", "")) - value / UNITS[self.unit]) <= 0.5 * step * (1 + 1e-9)

    @property
    def is_small(self) -> bool:
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
    for key in path.split("."):
        if isinstance(figures, dict) and key not in figures:
            key = key.replace("_", " ")
        figures = figures[int(key)] if isinstance(figures, list) else figures[key]
    return figures


def flat(values: Any) -> list[float]:
    return [number for value in values for number in (flat(value) if isinstance(value, list) else [value])]


def value_of(binding: str, results: Mapping[str, Any]) -> float:
    """A path or a formula: products and quotients first, from left to right."""
    file, _, formula = binding.rpartition(": ")
    parts = re.split(r" ([-+*/]) ", formula)
    assert not all(part.split()[-1].isdigit() for part in parts[::2]), f"{formula!r} names no result"
    terms: list[float] = []
    for sign, text in zip(["+", *parts[1::2]], parts[::2], strict=True):
        match = OPERAND.fullmatch(text)
        assert match, f"{text!r} is no path"
        function, named, path = match.groups()
        file = named or file
        found = float(path) if path.isdigit() else look_up(path, results[file])
        value = float(OF_LISTS[function](flat(found)) if function else found)
        if sign in "*/":
            terms[-1] = terms[-1] * value if sign == "*" else terms[-1] / value
        else:
            terms.append(value if sign == "+" else -value)
    return sum(terms)


def problems(document: str, defined: Iterable[str], results: Mapping[str, Any]) -> tuple[list[str], set[str]]:
    """What is wrong with the numbers of a document, each in a sentence, and the definitions that were needed."""
    found: list[str] = []
    needed: set[str] = set()
    phrases = {phrase: re.compile(rf"(?<![\d.,]){re.escape(phrase)}(?!\d|[.,]\d)") for phrase in defined}
    for block in blocks(document):
        for cell, path in block.cells:
            numbers, value = find_numbers(cell), value_of(path, results)
            if len(numbers) != 1 or not numbers[0].shows(value):
                found.append(f"| {cell} | is not {path}, which is {value:.6g}")
        spans = [(phrase, match.span()) for phrase in phrases for match in phrases[phrase].finditer(block.text)]
        waiting = [(binding, value_of(binding, results)) for binding in block.bindings]
        for number in block.numbers:
            covers = {phrase for phrase, (start, end) in spans if start <= number.start and number.end <= end}
            if waiting and number.shows(waiting[0][1]):
                waiting.pop(0)
            elif covers:
                needed |= covers
            elif number.start not in block.settings and not number.is_small:
                context = block.text[max(0, number.start - 40) : number.end + 30]
                found.append(f"{number.figure} {number.unit} is neither a result nor defined: ... {context} ...")
        found += [f"{binding}, {value:.6g}, is bound to no number: {block.text[:60]}" for binding, value in waiting]
    return found, needed


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_number_of_a_document_is_a_stored_result_or_defined(name: str) -> None:
    own = DEFINITIONS.get(name, {})
    found, needed = problems((ROOT / name).read_text("utf-8"), [*EVERYWHERE, *own], Results())
    assert found == []
    assert {*own} <= needed, "a definition that the document does not need"


def test_every_definition_is_needed_by_a_document_that_is_looked_at() -> None:
    needed = set[str]().union(
        *(problems((ROOT / name).read_text("utf-8"), EVERYWHERE, Results())[1] for name in DOCUMENTS)
    )
    assert {*EVERYWHERE} == needed
    assert {*DEFINITIONS} <= {*DOCUMENTS}
    assert all((ROOT / name).exists() for name in GENERATED)


# What the test itself can and cannot see.
STORED = {
    "speed.json": {
        "wall_seconds": 13.108, "per_s": {"200": 10_855_522.4}, "share": 0.9385, "error": 0.57, "games": 1600,
        "both ways": {"ray": 18.36, "processes": 15.52}, "all": [[1.0, 2.0], [3.0, 6.0]],
    }
}  # fmt: skip
ROW = "| vector, 200 environments | 10.9 M | `speed.json per_s.200` |"
PARAGRAPH = "Found in 13 s, at 10.9 million steps/s\n(of 52 bits).\n<!-- speed.json wall_seconds, per_s.200 -->"
BITS = ["52 bits"]


@pytest.mark.parametrize(
    "text",
    [
        "13.1 s <!-- speed.json wall_seconds -->",
        "1,600 games, 3.0 each, 4 in all <!-- speed.json games, mean all, count all -->",
        "6 % are missing, 93.85 % are there <!-- speed.json 1 - share, share -->",
        "18.4 after 15.5: 1.18 <!-- speed.json both_ways.{ray,processes}, both_ways.ray / both_ways.processes -->",
        "* a wait of 13,108 ms ± 0.6 <!-- speed.json wall_seconds, error -->\n* User0, `13.2`, [0007](x99.md), 3 nodes",
        "| a | b |\n|---|---|\n| 13.1 | 0.94 |\n| 1,600 | |\n<!-- speed.json wall_seconds, share, games -->",
    ],
)
def test_numbers_with_their_results_are_accepted(text: str) -> None:
    assert problems(text, [], STORED)[0] == []


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("13 s", "14 s", "wall_seconds, 13.108, is bound to no number"),
        ("13 s", "14 s", "14  is neither a result nor defined"),
        ("10.9 million", "10.8 million", "10.8 million is neither"),
        ("10.9 million", "10.9 thousand", "10.9 thousand is neither"),
        ("10.9 million", "-10.9 million", "-10.9 million is neither"),
        ("Found in 13 s, at", "At", "wall_seconds, 13.108, is bound to no number"),
        ("13 s, at 10.9 million", "10.9 million, at 13", "10.9 million is neither"),
        ("52 bits", "53 bits", "53  is neither"),
        ("52 bits", "152 bits", "152  is neither"),
        ("(of", "with 64 threads (of", "64  is neither"),
        ("(of", "with 2 % more (of", "2 % is neither"),
        ("wall_seconds, ", "", "13  is neither"),
        ("\n<!--", "\n\n<!--", "13  is neither"),
        ("10.9 M |", "10.8 M |", "| 10.8 M | is not speed.json per_s.200"),
        ("10.9 M |", "10.9 |", "| 10.9 | is not"),
        ("10.9 M |", "10.9 M, 11.0 M |", "is not speed.json"),
        ("200 env", "300 env", "300  is neither"),
    ],
)
def test_a_changed_digit_an_unbound_number_and_an_unused_binding_are_found(
    before: str, after: str, complaint: str
) -> None:
    text = f"{PARAGRAPH}\n\n{ROW}\n"
    assert problems(text, BITS, STORED) == ([], {*BITS})
    assert before in text
    assert any(complaint in problem for problem in problems(text.replace(before, after, 1), BITS, STORED)[0])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_another_last_digit_of_any_number_of_the_documents_is_found(name: str) -> None:
    defined = [*EVERYWHERE, *DEFINITIONS.get(name, {})]
    results = Results()
    for text in FENCE.sub("", (ROOT / name).read_text("utf-8")).split("\n\n"):
        visible = re.sub(rf"{COMMENT.pattern}|\]\([^)]*\)", lambda match: " " * len(match[0]), text, flags=re.DOTALL)
        for number in find_numbers(visible):
            if not number.is_small:
                digit = str((int(text[number.end - 1]) + 1) % 10)
                assert problems(f"{text[: number.end - 1]}{digit}{text[number.end :]}", defined, results)[0], number


@pytest.mark.parametrize(
    "binding", ["wall_second", "per_s.300", "all.9", "wall_seconds +", "2 * 3", "__import__('os')"]
)
def test_a_binding_that_leads_nowhere_is_an_error(binding: str) -> None:
    with pytest.raises((AssertionError, KeyError, IndexError, ValueError)):
        problems(f"6 <!-- speed.json {binding} -->", [], STORED)
