"""The priorities that matter as a picture: unit types in the sequence of the best workflow, and arrows between them."""

from __future__ import annotations

from workflow_rl.report.answer import FEW
from workflow_rl.report.page import escape
from workflow_rl.search.findings import PairEffect

BOX, GAP, HIGH = 110, 90, 34  # width of a unit type, room between two, height
ARC = 46  # height of an arrow per unit type that it passes


def arrows(pairs: list[PairEffect], best: str | None, n_evaluations: int) -> str:
    """SVG of the pairs that matter, with their worth; nothing if there are none.

    Args:
        pairs: effects of pairs, as in result.json.
        best: the best workflow, which gives the sequence.
        n_evaluations: of the search; with few of them nothing is said about priorities.
    """
    matter = [pair for pair in pairs if pair.matters]
    if not matter or not best or n_evaluations < FEW:
        return ""
    named = {name for pair in matter for name in (pair.first, pair.second)}
    shown = [name for name in best.split(",") if name in named]
    others = [name for name in best.split(",") if name not in named]
    at = {name: 10 + (BOX + GAP) * i for i, name in enumerate(shown)}
    top = 24 + ARC * max(abs(shown.index(pair.second) - shown.index(pair.first)) for pair in matter)
    parts = [_arrow(pair, at, shown, top) for pair in matter]
    for name, x in at.items():
        parts.append(f'<rect class="box" x="{x}" y="{top}" width="{BOX}" height="{HIGH}" rx="6"/>')
        parts.append(
            f'<text x="{x + BOX / 2}" y="{top + 22}" font-size="14" text-anchor="middle">{escape(name)}</text>'
        )
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="currentColor"/></marker></defs>'
    )
    words = ", ".join(f"{pair.first} before {pair.second} {pair.effect:+.1f}" for pair in matter)
    wide = 20 + len(shown) * (BOX + GAP) - GAP
    picture = (
        f'<svg viewBox="0 0 {wide} {top + HIGH + 10}" style="max-width:{wide}px" role="img" '
        f'aria-label="What matters: {escape(words)}">{head}{"".join(parts)}</svg>'
    )
    rest = f" Of {', '.join(map(escape, others))} nothing clear was found." if others else ""
    caption = f"Repair what an arrow leaves before what it points to; the figure is its worth in return.{rest}"
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def _arrow(pair: PairEffect, at: dict[str, int], shown: list[str], top: int) -> str:
    """From the type that comes first to the other one, the higher the more types it passes."""
    steps = shown.index(pair.second) - shown.index(pair.first)
    start, end = at[pair.first] + BOX / 2, at[pair.second] + BOX / 2
    offset = 14 * (1 if steps > 0 else -1)
    start, end = start + offset, end - offset
    peak, middle = top - ARC * abs(steps), (start + end) / 2
    digits = 1 if pair.effect >= 1 else 2
    return (
        f'<path d="M{start:.0f} {top}Q{middle:.0f} {2 * peak - top + 20:.0f} {end:.0f} {top - 2}" fill="none" '
        'stroke="currentColor" stroke-width="2" marker-end="url(#head)"/>'
    ) + _text(middle, peak + 6, f"{pair.effect:+.{digits}f}")


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="14" text-anchor="middle">{words}</text>'
