"""One self-contained HTML page: the frame, tables, and places for figures; no request leaves it."""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path
from typing import Any

from workflow_rl.engine.network_file import load_network
from workflow_rl.report.story import ACTIVITIES, BELIEFS, LEVELS

_DATA = Path(__file__).parent
_CAPTIONS = {
    "ranking": "Posterior mean of each evaluated workflow with its 95 % interval for comparisons within this run.",
    "finals": "Return of the training batches of the finalists.",
    "pairs": "What it is worth to repair the first unit type before the second; grey: not clearly more than nothing.",
    "progress": "What the process expected (with one deviation), the bound by which it chose, and what was found.",
    "map": "All workflows, near if they disagree on few pairs; to the right more is expected. Some share a place.",
    "curve-return": "Return of the training batches.",
    "curve-compliance": "Compliance of the training batches.",
    "curve-entropy": "Entropy of the policy.",
    "compared": "Return of each run with its 95 % interval: of a search by the replicates of its best finalist, or "
    "with the error of its level; of one training the error of its evaluation alone.",
    "violations": "Repairs in training batches that were not due: rows were repaired, columns were due.",
}


def compose(title: str, sections: list[tuple[str, str, str]], content: dict[str, Any]) -> str:
    """Puts sections, the figures' data and all scripts into one page that asks nobody for anything."""
    from plotly.offline import get_plotlyjs

    network = load_network()
    names = {"hosts": network.host_names, "levels": LEVELS, "beliefs": BELIEFS, "activities": ACTIVITIES}
    text = json.dumps(finite(content | names), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    body = "\n".join(f'<section id="{n}"><h2>{escape(h)}</h2>\n{b}\n</section>' for n, h, b in sections)
    parts = {
        "title": escape(title),
        "nav": "".join(f'<a href="#{name}">{escape(heading)}</a>' for name, heading, _ in sections),
        "body": body,
        "css": (_DATA / "report.css").read_text("utf-8"),
        "js": (_DATA / "report.js").read_text("utf-8"),
        "data": text,
        "plotly": get_plotlyjs(),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], (_DATA / "report.html").read_text("utf-8"))


def finite(value: Any) -> Any:
    """The same with None for numbers that JSON does not know."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def escape(text: object) -> str:
    """Text for HTML."""
    return html.escape(str(text))


def table(caption: str, columns: list[str], rows: list[list[Any]]) -> str:
    """A table that scrolls by itself on a narrow screen."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    body = f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="scroll" tabindex="0"><table><caption>{escape(caption)}</caption>{body}</table></div>'


def plot(name: str) -> str:
    """The place of a figure, with words for those who do not see it."""
    words = _CAPTIONS[name]
    label = f"{escape(words)} The table has the numbers."
    place = f'<div class="plot" id="plot-{name}" role="img" aria-label="{label}"></div>'
    return f"<figure>{place}<figcaption>{escape(words)}</figcaption></figure>"
