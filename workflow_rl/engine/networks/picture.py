"""The picture of a network in a terminal, and the plan that it shares with the drawing in svg.py."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_rl.engine.network import Network, Subnet

WIDTH = 110
GAP = 6  # between two columns
UP, RIGHT, DOWN, LEFT = 1, 2, 4, 8
STROKES = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"  # by the sum of directions


@dataclass(frozen=True)
class Arrow:
    """A way of red from one subnet to another.

    ``gate``: it is open only while red holds one of ``hosts``; otherwise red learns there of hosts at its end.
    """

    start: str
    end: str
    gate: bool
    hosts: tuple[str, ...]


def arrows(network: Network) -> list[Arrow]:
    """The ways of red; where red passes a gate, what it learns there is not repeated."""
    found: dict[tuple[str, str], Arrow] = {}
    for subnet in network.subnets:
        gateways = network.hosts_of(subnet.reached_through) if subnet.reached_through else ()
        for start in dict.fromkeys(map(network.subnet_of, gateways)):
            hosts = tuple(host for host in gateways if network.subnet_of(host) == start)
            found[start, subnet.name] = Arrow(start, subnet.name, True, hosts)
    for host in network.hosts:
        for end in dict.fromkeys(map(network.subnet_of, host.reveals)):
            start = network.subnet_of(host.name)
            before = found.get((start, end), Arrow(start, end, False, ()))
            if not before.gate:
                found[start, end] = Arrow(start, end, False, (*before.hosts, host.name))
    return [arrow for arrow in found.values() if arrow.start != arrow.end]


def columns(network: Network) -> list[list[Subnet]]:
    """Subnets from left to right by how many arrows lead there from red's foothold; the others at the right."""
    depth = {network.subnet_of(network.red.foothold): 0}
    ways = arrows(network)
    for steps in range(len(network.subnets)):
        for arrow in ways:
            if depth.get(arrow.start) == steps:
                depth.setdefault(arrow.end, steps + 1)
    last = max(depth.values()) + 1
    placed = {subnet.name: depth.get(subnet.name, last) for subnet in network.subnets}
    return [[s for s in network.subnets if placed[s.name] == n] for n in sorted(set(placed.values()))]


def types_in(network: Network, subnet: Subnet) -> dict[str, list[str]]:
    """The hosts of a subnet by unit type."""
    kinds = {host.name: host.unit_type for host in network.hosts}
    found: dict[str, list[str]] = {name: [] for name in network.unit_types}
    for host in subnet.hosts:
        found[kinds[host]].append(host)
    return {name: hosts for name, hosts in found.items() if hosts}


def mark_of(network: Network, host: str) -> str:
    """What is special about a host."""
    marks = ["red starts"] if host == network.red.foothold else []
    marks += [network.operational_service.name] if host == network.operational_service.host else []
    return ", ".join(marks)


def explained(network: Network, arrow: Arrow) -> str:
    """An arrow in words."""
    listed = ", ".join(arrow.hosts[:4]) + (f" and {len(arrow.hosts) - 4} more" if len(arrow.hosts) > 4 else "")
    if not arrow.gate:
        return f"{arrow.start} ──▶ {arrow.end}: red learns addresses there from {listed}"
    if set(arrow.hosts) == set(network.hosts_of(arrow.start)):
        listed = f"a host of {arrow.start}"
    return f"{arrow.start} ──▶ {arrow.end}: open only while red holds {listed.replace(', ', ' or ')}"


def picture(network: Network, width: int = WIDTH) -> str:
    """Subnets as boxes, side by side if they fit into the width, with red's ways as arrows."""
    plan = columns(network)
    for room in (44, 36, 28, 20, 12):
        boxes = [[_box(network, subnet, room) for subnet in column] for column in plan]
        needed = sum(max(len(box[0]) for box in column) for column in boxes) + GAP * (len(boxes) - 1)
        if needed <= width:
            drawing = _side_by_side(network, plan, boxes)
            break
    else:
        drawing = _one_below_the_other(network, plan, width)
    return "\n".join([*drawing, "", *(explained(network, arrow) for arrow in arrows(network))])


def _box(network: Network, subnet: Subnet, room: int) -> list[str]:
    """The lines of a box; hosts take about ``room`` characters of each."""
    groups = types_in(network, subnet)
    label = max(map(len, groups))
    marks = {host: mark_of(network, host) for host in subnet.hosts}
    words = {host: f" {host} ({mark})" if mark else f" {host}" for host, mark in marks.items()}
    room = max(room, *map(len, words.values()))
    rows: list[str] = []
    for unit_type, hosts in groups.items():
        line = f"{unit_type:{label}} "
        for word in (words[host] for host in hosts):
            if len(line) > label + 1 and len(line) + len(word) > label + 1 + room:
                rows.append(line)
                line = " " * (label + 1)
            line += word
        rows.append(line)
    inner = max(*map(len, rows), len(subnet.name) + 3)
    top = f"┌─ {subnet.name} {'─' * (inner - len(subnet.name) - 1)}┐"
    return [top, *(f"│ {row:{inner}} │" for row in rows), f"└{'─' * (inner + 2)}┘"]


def _one_below_the_other(network: Network, plan: list[list[Subnet]], width: int) -> list[str]:
    lines: list[str] = []
    for subnet in (subnet for column in plan for subnet in column):
        starts = [arrow.start for arrow in arrows(network) if arrow.end == subnet.name]
        lines += [f"   ▼ from {', '.join(starts)}"] if starts else [""] if lines else []
        lines += _box(network, subnet, width - 24)
    return lines


def _side_by_side(network: Network, plan: list[list[Subnet]], boxes: list[list[list[str]]]) -> list[str]:
    heights = [sum(map(len, column)) + len(column) - 1 for column in boxes]
    canvas = [[" "] * 400 for _ in range(max(heights))]
    places: dict[str, tuple[int, int, int, int]] = {}  # column, row of the arrows, left and right edge
    left = 0
    for number, (subnets, column) in enumerate(zip(plan, boxes, strict=True)):
        row = (max(heights) - heights[number]) // 2
        for subnet, box in zip(subnets, column, strict=True):
            for i, line in enumerate(box):
                canvas[row + i][left : left + len(line)] = line
            places[subnet.name] = (number, row + len(box) // 2, left, left + len(box[0]) - 1)
            row += len(box) + 1
        left += max(len(box[0]) for box in column) + GAP
    _draw_arrows(canvas, [(places[a.start], places[a.end]) for a in arrows(network)])
    return ["".join(line).rstrip() for line in canvas]


def _draw_arrows(canvas: list[list[str]], ends: list[tuple[tuple[int, int, int, int], ...]]) -> None:
    """Arrows between neighbouring columns, with right angles in the middle of the gap."""
    strokes: dict[tuple[int, int], int] = {}

    def stroke(row: int, column: int, directions: int) -> None:
        strokes[row, column] = strokes.get((row, column), 0) | directions

    for (number, row, _, right), (to, end, left, _) in ends:
        if to != number + 1:
            continue
        turn = left - GAP // 2
        for column in range(right + 1, turn):
            stroke(row, column, LEFT | RIGHT)
        for i in range(min(row, end), max(row, end) + 1):
            stroke(i, turn, (UP if i > min(row, end) else 0) | (DOWN if i < max(row, end) else 0))
        stroke(row, turn, LEFT)
        stroke(end, turn, RIGHT)
        stroke(end, turn + 1, LEFT | RIGHT)
        canvas[end][left - 1] = "▶"
    for (row, column), directions in strokes.items():
        if canvas[row][column] == " ":
            canvas[row][column] = STROKES[directions]
