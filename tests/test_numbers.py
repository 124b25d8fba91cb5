"""Every measured number of the documents is a stored result; every other one is explained in number_definitions.py.

benchmarks/page/bound.py says how a number is bound to a result. The k-th bound number must be the k-th value at the
digits shown, so none can pass by being like another one. What remains must be in number_definitions.py, as a phrase of
that document, or be part of its row's path (the setting it was measured at: "200 environments" beside
`vector_steps_per_s.200`), or be a whole number below ten without a unit. Fenced blocks and inline code are no text:
test_docs.py runs them and compares the output that the README shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from benchmarks.page.bound import COMMENT, FENCE, blocks, find_numbers, value_of
from benchmarks.page.documents import Results, documents, updated
from tests.conftest import ROOT
from tests.number_definitions import DEFINITIONS, EVERYWHERE

DOCUMENTS = [str(path.relative_to(ROOT)) for path in documents()]


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


def test_bound_numbers_follow_the_results_in_their_own_form() -> None:
    now = {"speed.json": STORED["speed.json"] | {"wall_seconds": 1412.6, "per_s": {"200": 9_449_999.0}, "error": -0.31}}
    text = f"{PARAGRAPH}\n\n{ROW}\n\nLost +0.57 of 52, 13 free. <!-- speed.json error -->\n"
    assert updated(text, STORED, now) == (
        text.replace("13 s", "1,413 s").replace("10.9", "9.4").replace("+0.57", "-0.31")
    )


def test_a_number_that_does_not_show_its_old_result_is_left_to_a_person() -> None:
    now = {"speed.json": STORED["speed.json"] | {"wall_seconds": 14.0}}
    wrong = "12 s <!-- speed.json wall_seconds -->"
    assert updated(wrong, STORED, now) == wrong
    assert updated("13 s <!-- speed.json wall_seconds, nowhere -->", STORED, now).startswith("14 s")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_that_show_their_results_stay_as_they_are(name: str) -> None:
    text, results = (ROOT / name).read_text("utf-8"), Results()
    assert updated(text, results, results) == text
