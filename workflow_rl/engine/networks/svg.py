"""The picture of a network as one SVG: no script, no style sheet, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape

from workflow_rl.engine.network import Network, Subnet
from workflow_rl.engine.networks.picture import Arrow, arrows, columns, explained, mark_of, types_in

LETTER = 6.9  # width of a letter, about, at the size of a host's name
LONGEST = 22  # letters of a name that are drawn
ROW, CAPTION, TITLE = 26, 22, 34  # heights
EDGE, BETWEEN, GAP, STACK = 14, 6, 90, 26  # inside a box, between hosts, between columns, between boxes of a column
MARGIN, LEGEND = 16, 34
PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b5ea7", "#8c564b", "#6b8e23", "#e377c2",
    "#708090", "#17a2a8",
)  # fmt: skip
RED = "#d1495b"


@dataclass(frozen=True)
class _Box:
    """Where a subnet is drawn."""

    subnet: Subnet
    x: float
    y: float
    width: float
    height: float
    chip: float  # width of a host
    per_row: int

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def network_svg(network: Network) -> str:
    """The network as the text of an SVG file; it can also stand inside a page."""
    boxes = _placed(network)
    width = max(box.x + box.width for box in boxes) + MARGIN
    height = max(box.y + box.height for box in boxes) + MARGIN
    same = [a for a in arrows(network) if _by_name(boxes, a.start).x == _by_name(boxes, a.end).x]
    width = max(width + (30 if same else 0), 600)
    words = escape(f"Network {_plain(network.name)}: {len(network.hosts)} hosts in {len(boxes)} subnets")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height + LEGEND:.0f}" '
        f'width="{width:.0f}" height="{height + LEGEND:.0f}" role="img" aria-label="{words}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">',
        f"<title>{words}</title>",
    ]
    for arrow in arrows(network):
        parts += _arrow(network, arrow, _by_name(boxes, arrow.start), _by_name(boxes, arrow.end))
    for box in boxes:
        parts += _drawn(network, box)
    return "\n".join([*parts, *_legend(height), "</svg>"]) + "\n"


def _by_name(boxes: list[_Box], name: str) -> _Box:
    return next(box for box in boxes if box.subnet.name == name)


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _short(name: str) -> str:
    plain = _plain(name)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"


def _placed(network: Network) -> list[_Box]:
    """Boxes of a column below each other, columns centred."""
    sized = [[_sized(network, subnet) for subnet in column] for column in columns(network)]
    heights = [sum(box.height for box in column) + STACK * (len(column) - 1) for column in sized]
    boxes, x = [], float(MARGIN)
    for column, height in zip(sized, heights, strict=True):
        y, width = MARGIN + (max(heights) - height) / 2, max(box.width for box in column)
        for box in column:
            chip = (width - 2 * EDGE - (box.per_row - 1) * BETWEEN) / box.per_row
            boxes.append(replace(box, x=x, y=y, width=width, chip=chip))
            y += box.height + STACK
        x += width + GAP
    return boxes


def _sized(network: Network, subnet: Subnet) -> _Box:
    groups = types_in(network, subnet)
    letters = [len(_short(host)) for host in subnet.hosts]
    letters += [len(_short(mark)) + 1 for mark in (mark_of(network, host) for host in subnet.hosts) if mark]
    chip = max(letters) * LETTER + 24
    per_row = 1 if len(subnet.hosts) <= 4 else 2 if len(subnet.hosts) <= 16 else 3
    per_row = min(per_row, max(map(len, groups.values())))
    rows = sum(-(-len(hosts) // per_row) for hosts in groups.values())
    marked = sum(1 for host in subnet.hosts if mark_of(network, host))
    wide = max(len(_short(name)) for name in (subnet.name, *groups)) * 8.5 + 16
    width = 2 * EDGE + max(per_row * chip + (per_row - 1) * BETWEEN, wide)
    height = TITLE + CAPTION * len(groups) + rows * (ROW + BETWEEN) + marked * 14 + EDGE - BETWEEN
    return _Box(subnet, 0, 0, width, height, chip, per_row)


def _drawn(network: Network, box: _Box) -> Iterator[str]:
    yield (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="8" '
        'style="fill:currentColor;fill-opacity:0.04;stroke:currentColor;stroke-opacity:0.35"/>'
    )
    yield _text(box.x + EDGE, box.y + 22, _short(box.subnet.name), 'font-size="15" font-weight="600"')
    y = box.y + TITLE
    for unit_type, hosts in types_in(network, box.subnet).items():
        colour = PALETTE[network.unit_types.index(unit_type) % len(PALETTE)]
        yield f'<rect x="{box.x + EDGE:.1f}" y="{y + 3:.1f}" width="10" height="10" rx="2" style="fill:{colour}"/>'
        yield _text(box.x + EDGE + 16, y + 12, _short(unit_type), 'opacity="0.75"')
        y += CAPTION
        for start in range(0, len(hosts), box.per_row):
            row = hosts[start : start + box.per_row]
            extra = 14 if any(mark_of(network, host) for host in row) else 0
            for i, host in enumerate(row):
                x = box.x + EDGE + i * (box.chip + BETWEEN)
                yield from _host(network, host, colour, (x, y, box.chip, ROW + extra))
            y += ROW + BETWEEN + extra


def _host(network: Network, host: str, colour: str, place: tuple[float, float, float, float]) -> Iterator[str]:
    x, y, width, height = place
    mark = mark_of(network, host)
    value = network.hosts[network.host_names.index(host)].value
    outline = f"stroke:{RED};stroke-width:2.5" if mark else f"stroke:{colour};stroke-opacity:0.7"
    words = f"{_plain(host)}: {value:g} per step" + (f"; {_plain(mark)}" if mark else "")
    yield f"<g><title>{escape(words)}</title>"
    yield (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5" '
        f'style="fill:{colour};fill-opacity:0.14;{outline}"/>'
    )
    yield _text(x + 12, y + (17 if mark else height / 2 + 4), _short(host))
    if mark:
        yield _text(x + 12, y + 32, _short(mark), 'font-size="11" font-weight="600"')
    yield "</g>"


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{" " if more else ""}{more}>{escape(words)}</text>'


def _arrow(network: Network, arrow: Arrow, start: _Box, end: _Box) -> Iterator[str]:
    """A curve from box to box; within a column it goes round at the right."""
    x0, y0, x1, y1 = start.x + start.width, start.middle, end.x, end.middle
    if start.x == end.x:
        x1 = end.x + end.width
        y0, y1 = (start.y + start.height - 20, end.y + 20) if y0 < y1 else (start.y + 20, end.y + end.height - 20)
        bend = f"{max(x0, x1) + 40:.1f} {y0:.1f}, {max(x0, x1) + 40:.1f} {y1:.1f}, {x1 + 8:.1f} {y1:.1f}"
        tip = f"{x1:.1f},{y1:.1f} {x1 + 10:.1f},{y1 - 5:.1f} {x1 + 10:.1f},{y1 + 5:.1f}"
    else:
        if x1 < start.x:  # back towards the foothold
            x0, x1 = start.x, end.x + end.width
        way = 1 if x1 > x0 else -1
        half = (x1 - x0) / 2
        bend = f"{x0 + half:.1f} {y0:.1f}, {x1 - half:.1f} {y1:.1f}, {x1 - 8 * way:.1f} {y1:.1f}"
        tip = f"{x1:.1f},{y1:.1f} {x1 - 10 * way:.1f},{y1 - 5:.1f} {x1 - 10 * way:.1f},{y1 + 5:.1f}"
    yield f"<g><title>{escape(_plain(explained(network, arrow)))}</title>"
    yield f'<path d="M {x0:.1f} {y0:.1f} C {bend}" style="{_line(arrow.gate)}"/>'
    yield f'<polygon points="{tip}" style="fill:{RED if arrow.gate else "currentColor"}"/></g>'


def _line(gate: bool) -> str:
    if gate:
        return f"fill:none;stroke:{RED};stroke-width:2.5"
    return "fill:none;stroke:currentColor;stroke-width:1.5;stroke-dasharray:5 4;stroke-opacity:0.75"


def _legend(y: float) -> Iterator[str]:
    x = float(MARGIN)
    for gate, words in ((True, "open only while red holds a host there"), (False, "red learns addresses there")):
        yield f'<path d="M {x:.1f} {y + 8:.1f} h 34" style="{_line(gate)}"/>'
        yield _text(x + 42, y + 12, words, 'opacity="0.75"')
        x += 42 + len(words) * 6.4 + 30
