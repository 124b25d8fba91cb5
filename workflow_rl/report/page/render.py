"""One self-contained HTML page from Jinja templates, which escape every value; no request leaves the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from workflow_rl.engine.network import Network
from workflow_rl.engine.networks.svg import network_svg
from workflow_rl.report.answer import FEW
from workflow_rl.report.drawing import Figure, to_plotly
from workflow_rl.report.story import ACTIVITIES, BELIEFS, LEVELS, Story
from workflow_rl.search.findings import PairEffect

_FOLDER = Path(__file__).parent
BOX, GAP, ARC = 110, 90, 46  # of the arrows: width of a unit type, space between two, height per type that is passed


def number(value: float | None, form: str = ".2f") -> str:
    """A number in a table; nothing if it is undefined."""
    return "" if value is None else f"{value:{form}}"


def with_error(value: float, error: float, form: str = ".2f") -> str:
    """A number with its standard error.

    >>> with_error(-12.345, 0.5)
    '-12.35 ± 0.50'
    """
    return f"{value:{form}} ± {error:.2f}"


TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
TEMPLATES.filters |= {"number": number, "with_error": with_error}
TEMPLATES.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}


def render(
    template: str, network: Network, drawn: Mapping[str, Figure], stories: Sequence[Story] = (), **values: Any
) -> str:
    """A page as text.

    Args:
        template: file of the page in this folder.
        network: hosts and subnets.
        drawn: figures by name.
        stories: episodes that can be replayed.
        values: further variables of the template.
    """
    from plotly.offline import get_plotlyjs

    content = {
        "figures": {name: to_plotly(figure) for name, figure in drawn.items()},
        "stories": [story.to_json() for story in stories],
        "hosts": network.host_names,
        "levels": LEVELS,
        "beliefs": BELIEFS,
        "activities": ACTIVITIES,
    }
    code = {name: (_FOLDER / f"report.{name}").read_text("utf-8") for name in ("css", "js")}
    shown = {
        "network": network,
        "picture": network_svg(network),
        "figures": drawn,
        "stories": stories,
        "content": finite(content),
    }
    return TEMPLATES.get_template(template).render(values | shown | code, plotly=get_plotlyjs())


def finite(value: Any) -> Any:
    """The same value with None for every number that JSON cannot write (NaN and infinity)."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Arrow:
    """From the unit type that comes first to the other one, the higher the more types it passes."""

    start: float
    end: float
    peak: float
    effect: str


@dataclass(frozen=True)
class Arrows:
    """The priorities that matter as a picture; lengths in pixels."""

    words: str  # the same for readers who do not see it
    boxes: Mapping[str, int]  # left edge of each unit type, in the sequence of the best workflow
    arrows: Sequence[Arrow]
    others: Sequence[str]  # unit types without an arrow
    top: int  # of the boxes
    width: int
    box: int = BOX


def arrows(pairs: Sequence[PairEffect], best: str | None, n_evaluations: int) -> Arrows | None:
    """The pairs that matter, with their effects; None if there are none.

    Args:
        pairs: effects of pairs, as in result.json.
        best: the best workflow, which gives the sequence.
        n_evaluations: of the search; with few of them nothing is said about priorities.
    """
    matter = [pair for pair in pairs if pair.matters]
    if not matter or not best or n_evaluations < FEW:
        return None
    named = {name for pair in matter for name in (pair.first, pair.second)}
    shown = [name for name in best.split(",") if name in named]
    boxes = {name: 10 + (BOX + GAP) * i for i, name in enumerate(shown)}
    passed = [shown.index(pair.second) - shown.index(pair.first) for pair in matter]
    top = 24 + ARC * max(map(abs, passed))
    drawn = []
    for pair, steps in zip(matter, passed, strict=True):
        offset = BOX / 2 + (14 if steps > 0 else -14)
        start, end = boxes[pair.first] + offset, boxes[pair.second] + BOX - offset
        effect = f"{pair.effect:+.1f}" if pair.effect >= 1 else f"{pair.effect:+.2f}"
        drawn.append(Arrow(start, end, top - ARC * abs(steps), effect))
    words = ", ".join(f"{pair.first} before {pair.second} {pair.effect:+.1f}" for pair in matter)
    others = [name for name in best.split(",") if name not in named]
    return Arrows(words, boxes, drawn, others, top, 20 + len(shown) * (BOX + GAP) - GAP)
