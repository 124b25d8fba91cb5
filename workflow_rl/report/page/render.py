"""One self-contained HTML page from Jinja templates, which escape every value; no request leaves the page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from workflow_rl.engine.network import Network
from workflow_rl.engine.networks.svg import network_svg
from workflow_rl.report.drawing import INKS, Figure, to_plotly
from workflow_rl.report.story import ACTIVITIES, BELIEFS, LEVELS, Story
from workflow_rl.report.words import GLOSSARY

_FOLDER = Path(__file__).parent
TERMS = {  # words on the page that lead to their explanation, and their names in the glossary
    "training noise": "training noise", "kernel weight": "kernel weight", "idle fixes": "idle fix", "due": "due type",
    "compliance": "compliance", "violations": "violation", "finalists": "finalist", "takeover": "takeover",
    "edition": "edition", "bound": "bound", "level": "level", "kept": "kept", "visits": "evaluation",
    "updates": "update", "repairs": "repair",
}  # fmt: skip
_ANY_TERM = re.compile(rf"\b({'|'.join(TERMS)})\b", re.IGNORECASE)


def number(value: float | None, form: str = ".2f") -> str:
    """A number in a table; nothing if it is undefined."""
    return "" if value is None else f"{value:{form}}"


def with_error(value: float, error: float, form: str = ".2f") -> str:
    """A number with its standard error.

    >>> with_error(-12.345, 0.5)
    '-12.35 ± 0.50'
    """
    return f"{value:{form}} ± {error:.2f}"


def explained(text: str) -> Markup:
    """A text in which the first occurrence of each of TERMS is a link to its explanation."""
    seen: set[str] = set()

    def link(found: re.Match[str]) -> str:
        term = TERMS[found[0].lower()]
        if term in seen:
            return found[0]
        seen.add(term)
        return f'<a class="term" href="#{word_id(term)}" aria-describedby="{word_id(term)}">{found[0]}</a>'

    return Markup(_ANY_TERM.sub(link, str(escape(text))))


def word_id(term: str) -> str:
    """The id of an explanation."""
    return f"word-{term.replace(' ', '-')}"


def breakable(text: object) -> Markup:
    """A text that may be broken after its commas."""
    return Markup(str(escape(text)).replace(",", ",<wbr>"))


TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
TEMPLATES.filters |= {
    "number": number, "with_error": with_error, "explained": explained, "breakable": breakable, "word_id": word_id,
}  # fmt: skip
TEMPLATES.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}


def render(
    template: str,
    network: Network,
    drawn: Mapping[str, Figure],
    stories: Sequence[Story] = (),
    lessons: Sequence[str] = (),
    **values: Any,
) -> str:
    """A page as text.

    Args:
        template: file of the page in this folder.
        network: hosts and subnets.
        drawn: figures by name; those with categories are not drawn.
        stories: episodes that can be replayed.
        lessons: what went wrong in each of them.
        values: further variables of the template.
    """
    from plotly.offline import get_plotlyjs

    plotted = {name: figure for name, figure in drawn.items() if not figure.categories}
    content = {
        "figures": {name: to_plotly(figure) for name, figure in plotted.items()},
        "inks": INKS,
        "stories": [story.to_json() | {"lesson": words} for story, words in zip(stories, lessons, strict=True)],
        "hosts": network.host_names,
        "levels": LEVELS,
        "beliefs": BELIEFS,
        "activities": ACTIVITIES,
    }
    code = {name: (_FOLDER / f"report.{name}").read_text("utf-8") for name in ("css", "js")}
    shown = {
        "network": network,
        "picture": network_svg(network),
        "figures": plotted,
        "stories": stories,
        "lessons": lessons,
        "words": {term: GLOSSARY[term] for term in sorted(set(TERMS.values()))},
        "content": finite(content),
    }
    return TEMPLATES.get_template(template).render(values | shown | code, plotly=get_plotlyjs() if plotted else "")


def finite(value: Any) -> Any:
    """The same value with None for every number that JSON cannot write (NaN and infinity)."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Interval:
    """A value with its interval on a scale that the rows of a table share; places in percent."""

    left: float
    middle: float
    right: float
    zero: float | None = None  # where it is on the scale


def intervals(values: Sequence[float], halves: Sequence[float], with_zero: bool = False) -> tuple[str, list[Interval]]:
    """The scale in words, and the interval of each value; ``halves`` are half their lengths."""
    ends = [end for value, half in zip(values, halves, strict=True) for end in (value - half, value + half)]
    ends = [end for end in [*ends, *([0.0] if with_zero else [])] if math.isfinite(end)] or [0.0]
    low, high = min(ends), max(ends)

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2) if high > low and math.isfinite(value) else 50.0

    zero = place(0.0) if with_zero else None
    found = [Interval(place(v - half), place(v), place(v + half), zero) for v, half in zip(values, halves, strict=True)]
    return f"95 % interval, from {low:.1f} to {high:.1f}", found
