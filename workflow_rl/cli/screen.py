"""Sentences, commands and tables that fit the terminal.

A table that is too wide first loses the columns that its caller can spare, then its texts are shortened, and at last
each row becomes a few lines; no number is ever cut. Output that goes to a file or another program is never shortened.
"""

from __future__ import annotations

import codecs
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from workflow_rl.config import MACHINE, chain

if TYPE_CHECKING:
    from rich.console import Console

Wide = Annotated[
    bool,
    typer.Option("--wide", help="Show all columns and rows, however wide the terminal.", rich_help_panel=MACHINE),
]
UNLIMITED = 10_000
NARROWEST, NARROWEST_ORDER = 12, 24  # to which a text may be shortened; an order keeps its first types
GAP = 2  # between columns
PLAINLY = "plainly"  # how streams encode letters that a terminal cannot show
PLAIN = {"±": "+-", "─": "-", "·": ".", "│": "|", "…": "...", "→": "->"}


def _plainly(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    bad = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in bad), error.end


codecs.register_error(PLAINLY, _plainly)


@dataclass(frozen=True)
class Rows:
    """A table before it is fitted: ``spare`` columns go first, in that sequence; ``texts`` may be shortened."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    spare: Sequence[str] = ()
    texts: Sequence[str] = ("workflow",)

    def without(self, name: str) -> Rows:
        """The table without a column."""
        place = self.columns.index(name)
        rows = [[*row[:place], *row[place + 1 :]] for row in self.rows]
        return Rows([*self.columns[:place], *self.columns[place + 1 :]], rows, self.spare, self.texts)

    def fitted(self, width: int) -> tuple[list[str], list[str]]:
        """The lines of the table, none longer than ``width``, and the columns that had to go."""
        shown, gone = self, list[str]()
        for name in self.spare:
            if sum(shown._widths()) + GAP * (len(shown.columns) - 1) <= width:
                break
            shown = shown.without(name)
            gone.append(name)
        widths = shown._shrunk(width)
        if sum(widths) + GAP * (len(widths) - 1) > width:
            return shown._as_records(width), gone
        return shown._as_table(widths), gone

    def _text(self, column: int, cell: str, width: int = UNLIMITED) -> str:
        if self.columns[column] == "workflow":
            return chain(cell, width)
        return f"{cell[: width - 3]}..." if self.columns[column] in self.texts and len(cell) > width else cell

    def _widths(self) -> list[int]:
        cells = [[name, *(self._text(i, row[i]) for row in self.rows)] for i, name in enumerate(self.columns)]
        return [max(map(len, column)) for column in cells]

    def _shrunk(self, width: int) -> list[int]:
        """Widths of the columns after the texts, the longest first, were made narrower."""
        widths = self._widths()
        while sum(widths) + GAP * (len(widths) - 1) > width:
            least = [NARROWEST_ORDER if name == "workflow" else NARROWEST for name in self.columns]
            able = [i for i, name in enumerate(self.columns) if name in self.texts and widths[i] > least[i]]
            if not able:
                break
            widths[max(able, key=lambda i: widths[i])] -= 1
        return widths

    def _as_table(self, widths: Sequence[int]) -> list[str]:
        def line(cells: Sequence[str]) -> str:
            left = [name in self.texts or not i for i, name in enumerate(self.columns)]
            parts = [
                cell.ljust(width) if to_left else cell.rjust(width)
                for cell, width, to_left in zip(cells, widths, left, strict=True)
            ]
            return (" " * GAP).join(parts).rstrip()

        texts = [[self._text(i, cell, widths[i]) for i, cell in enumerate(row)] for row in self.rows]
        rule = "─" * (sum(widths) + GAP * (len(widths) - 1))
        return [line([name[:width] for name, width in zip(self.columns, widths, strict=True)]), rule, *map(line, texts)]

    def _as_records(self, width: int) -> list[str]:
        """Each row as a heading and its figures, wrapped."""
        lines = []
        for row in self.rows:
            head, *rest = [self._text(i, cell, width) for i, cell in enumerate(row)]
            figures = [f"{name} {cell}".strip() for name, cell in zip(self.columns[1:], rest, strict=True) if cell]
            lines += textwrap.wrap(head, width) or []
            lines += _wrapped(", ".join(figures), width, GAP)
        return lines


def _wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """The lines of a text; words longer than a line, such as paths, are left whole."""
    return textwrap.wrap(
        text, width, initial_indent=" " * indent, subsequent_indent=" " * indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


@dataclass
class Screen:
    """Where results are shown; as wide as the terminal, and without limit if ``wide`` or if it is no terminal."""

    wide: bool = False
    console: Console | None = None

    def __post_init__(self) -> None:
        from rich.console import Console

        bounded = self.console is not None or "COLUMNS" in os.environ
        self._console = self.console or Console(highlight=False)
        bounded |= self._console.is_terminal
        self._begun = False
        self.width = self._console.width if bounded and not self.wide else UNLIMITED

    def _plain(self, text: str) -> str:
        """The text in letters that the console can show."""
        encoding = self._console.encoding
        return text.encode(encoding, PLAINLY).decode(encoding)

    def _line(self, text: str = "", style: str = "") -> None:
        from rich.text import Text

        self._begun = True
        self._console.print(Text(text, style), soft_wrap=True, highlight=False)

    def heading(self, text: str) -> None:
        """A line above other lines, and after an empty one unless it is the first."""
        if self._begun:
            self._line()
        for line in _wrapped(self._plain(text), self.width):
            self._line(line, "bold")

    def text(self, text: str, indent: int = 0) -> None:
        """A paragraph."""
        for line in _wrapped(self._plain(text), self.width, indent) or [""]:
            self._line(line)

    def command(self, text: str, indent: int = 4) -> None:
        """A command that can be copied: a shell continues its lines."""
        lines = _wrapped(self._plain(text), self.width - 2, indent)
        for number, line in enumerate(lines, 1):
            self._line(line + (" \\" if number < len(lines) else ""), "cyan")

    def table(self, title: str, table: Rows, file: str = "") -> None:
        """A table under its title; the ``file`` that has all of it, if it cannot be shown again with --wide."""
        self.heading(title)
        lines, gone = self._fitted(table)
        for line in lines:
            self._line(line)
        if gone:
            self.text(f"{f'In {file}' if file else 'With --wide'} also: {', '.join(gone[::-1])}.")

    def _fitted(self, table: Rows) -> tuple[list[str], list[str]]:
        plain = Rows(
            [self._plain(name) for name in table.columns],
            [[self._plain(cell) for cell in row] for row in table.rows], table.spare, table.texts,
        )  # fmt: skip
        lines, gone = plain.fitted(self.width)
        return [self._plain(line) for line in lines], gone

    def drawn(self, title: str, table: Rows, below: Sequence[str]) -> str:
        """A table and sentences below it, for a view that is drawn again and again."""
        sentences = [line for text in below for line in _wrapped(self._plain(text), self.width)]
        return "\n".join([title, *self._fitted(table)[0], *sentences])
