"""The answer of a search as a picture: arrows between the unit types whose priority matters, the others beside them.

It is a partial order. An arrow goes from the type that is repaired first to the other one, and says what that is worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workflow_rl.search.findings import PairEffect

LETTER, EDGE = 8.4, 24.0  # width of a letter of a name, and of a box besides its name
HIGH, DOWN, BESIDE = 36.0, 64.0, 18.0  # height of a box, between rows, between boxes of a row
WIDEST = 355.0  # of a row of boxes: as wide as a telephone
AROUND = 60.0  # to the right of the boxes, for each arrow that has no clear way


@dataclass(frozen=True)
class Box:
    """A unit type."""

    name: str
    x: float
    y: float
    width: float
    row: int


@dataclass(frozen=True)
class Arrow:
    """A priority: a curve, and the place of its worth."""

    path: str
    x: float
    y: float
    worth: str


@dataclass(frozen=True)
class OrderPicture:
    """The picture; lengths in pixels."""

    words: str  # the same for readers who do not see it
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    others: Sequence[str]  # unit types without an arrow
    width: float
    height: float


def order_picture(unit_types: Sequence[str], priorities: Sequence[PairEffect]) -> OrderPicture:
    """The unit types with the priorities that matter, the largest first; without any, all are beside each other."""
    named = [name for name in unit_types if any(name in (pair.first, pair.second) for pair in priorities)]
    boxes = _placed(_rows(named, priorities))
    right = max((box.x + box.width for box in boxes.values()), default=0.0)
    arrows: list[Arrow] = []
    for pair in priorities:
        start, end = boxes[pair.first], boxes[pair.second]
        worth = f"{pair.effect:+.1f}" if pair.effect >= 1 else f"{pair.effect:+.2f}"
        if _is_clear(start, end, boxes.values()):
            arrows.append(_down(start, end, worth))
        else:
            right += AROUND
            arrows.append(_around(start, end, right, worth))
    return OrderPicture(
        words=", ".join(f"{pair.first} before {pair.second} {pair.effect:+.2f}" for pair in priorities),
        boxes=list(boxes.values()),
        arrows=arrows,
        others=[name for name in unit_types if name not in named],
        width=right + 2,
        height=max((box.y + HIGH for box in boxes.values()), default=0.0) + 2,
    )


def _rows(names: Sequence[str], priorities: Sequence[PairEffect]) -> list[list[str]]:
    """Unit types row by row: each below all that come before it, those of a row beside each other."""
    before: dict[str, set[str]] = {name: set() for name in names}
    for pair in priorities:
        if pair.second not in before[pair.first]:  # the smaller of priorities that contradict each other does not count
            above = before[pair.first] | {pair.first}
            for name in names:
                if name == pair.second or pair.second in before[name]:
                    before[name] |= above
    depth: dict[str, int] = {}
    for name in sorted(names, key=lambda name: len(before[name])):
        depth[name] = 1 + max((depth[one] for one in before[name]), default=-1)
    rows: list[list[str]] = []
    for level in sorted(set(depth.values())):
        rows.append([])
        for name in (name for name in names if depth[name] == level):
            if rows[-1] and sum(map(_width, [*rows[-1], name])) + BESIDE * len(rows[-1]) > WIDEST:
                rows.append([])
            rows[-1].append(name)
    return rows


def _width(name: str) -> float:
    return LETTER * len(name) + EDGE


def _placed(rows: list[list[str]]) -> dict[str, Box]:
    """The boxes, each row centred."""
    widths = [sum(map(_width, row)) + BESIDE * (len(row) - 1) for row in rows]
    boxes = {}
    for number, (row, width) in enumerate(zip(rows, widths, strict=True)):
        x = 2 + (max(widths) - width) / 2
        for name in row:
            boxes[name] = Box(name, x, 2 + number * (HIGH + DOWN), _width(name), number)
            x += _width(name) + BESIDE
    return boxes


def _is_clear(start: Box, end: Box, boxes: Iterable[Box]) -> bool:
    """Does a curve from one box down to another pass no third one?"""
    between = [box for box in boxes if start.row < box.row < end.row]
    low, high = sorted((start.x + start.width / 2, end.x + end.width / 2))
    return start.row < end.row and not any(box.x < high + 8 and low - 8 < box.x + box.width for box in between)


def _down(start: Box, end: Box, worth: str) -> Arrow:
    """To a lower row."""
    x0, x1 = start.x + start.width / 2, end.x + end.width / 2
    y0, y1 = start.y + HIGH, end.y - 2
    bend = (y0 + y1) / 2
    path = f"M{x0:.1f} {y0:.1f}C{x0:.1f} {bend:.1f} {x1:.1f} {bend:.1f} {x1:.1f} {y1:.1f}"
    return Arrow(path, x0 + 0.59 * (x1 - x0), y0 + 0.545 * (y1 - y0) + 5, worth)  # a little past its middle


def _around(start: Box, end: Box, right: float, worth: str) -> Arrow:
    """At the right of the boxes."""
    x0, x1, y0, y1 = start.x + start.width, end.x + end.width + 2, start.y + HIGH / 2, end.y + HIGH / 2
    outer = right + AROUND / 4  # of the curve's handles; the curve itself stays within
    path = f"M{x0:.1f} {y0:.1f}C{outer:.1f} {y0:.1f} {outer:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
    return Arrow(path, min(right - 22, (x0 + x1) / 8 + outer * 0.75), (y0 + y1) / 2 + 5, worth)
