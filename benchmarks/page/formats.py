"""How the page shows figures: the filters of its templates."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any

WIDTH = 120
TOGETHER = re.compile(r"`[^`\n]+`|\[[^\] ]+, [^\] ]+\]|\S+ ± \S+")  # commands, intervals, means with their errors
UNBROKEN = "\N{NO-BREAK SPACE}"


def number(value: float, digits: int = 2) -> str:
    """A figure without a negative zero.

    >>> number(-0.001), number(-1234.5, 1)
    ('0.00', '-1,234.5')
    """
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text


def plus(value: float, digits: int = 2) -> str:
    """A figure with its sign."""
    return f"{value:+,.{digits}f}"


def count(value: float) -> str:
    """A whole number."""
    return f"{value:,.0f}"


def span(found: dict[str, Any], digits: int = 2) -> str:
    """The summary of several seeds: the interquartile mean with its interval."""
    return f"{number(found['iqm'], digits)} [{number(found['low'], digits)}, {number(found['high'], digits)}]"


def signed(found: dict[str, Any], digits: int = 2) -> str:
    """A difference with its interval."""
    return f"{plus(found['difference'], digits)} [{plus(found['low'], digits)}, {plus(found['high'], digits)}]"


def error(found: dict[str, Any], name: str = "mean", deviation: str = "standard_error") -> str:
    """A mean of games with its standard error."""
    return f"{number(found[name])} ± {found[deviation]:.2f}"


def between(values: Iterable[float], digits: int = 2) -> str:
    """The least and the greatest of some figures, once where they look the same.

    >>> between([2.0, -0.001, 1.0], 1), between([-0.02, 0.01], 1)
    ('0.0 to 2.0', '0.0')
    """
    found = sorted(values)
    low, high = number(found[0], digits), number(found[-1], digits)
    return low if low == high else f"{low} to {high}"


def below(value: float, limit: float) -> str:
    """How far a score is from the limit."""
    return f"({number(limit - value, 1)})"


def scored(found: dict[str, Any], limit: float, digits: int = 1) -> str:
    """A summary of several seeds and its distance to the limit."""
    return f"{span(found, digits)} {below(found['iqm'], limit)}"


def cells(values: Iterable[Any]) -> str:
    """A row of a table of Markdown."""
    return f"| {' | '.join(map(str, values))} |"


def header(columns: Iterable[str]) -> str:
    """The first two rows of a table of Markdown."""
    names = list(columns)
    return f"{cells(names)}\n{cells(['---'] * len(names))}"


def one_line(text: str) -> str:
    """The text of a block as a cell of a table."""
    return " ".join(text.split())


def wrap(text: str) -> str:
    """Paragraphs and list items broken at 120 characters; tables, headings and code stay as they are.

    >>> [len(line) for line in wrap("* " + 30 * "word " + "`a long command`").splitlines()]
    [116, 53]
    """
    blocks = [block.strip("\n") for block in re.split(r"\n{2,}", text)]
    return "\n\n".join(_wrap(block) for block in blocks if block) + "\n"


def _wrap(block: str) -> str:
    if block.startswith(("|", "#", "```")):
        return block
    items = re.split(r"\n(?=\* )", block)
    return "\n".join(_fill(one_line(item), "  " if item.startswith("* ") else "") for item in items)


def _fill(text: str, indent: str) -> str:
    kept = TOGETHER.sub(lambda match: match[0].replace(" ", UNBROKEN), text)
    lines = textwrap.fill(kept, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines.replace(UNBROKEN, " ")


FILTERS = {
    function.__name__: function
    for function in (number, plus, count, span, signed, error, between, below, scored, cells, header, one_line)
}
