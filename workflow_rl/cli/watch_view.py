"""An episode in the terminal: the network, what is true beside what blue believes, and both sides' moves."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.report.story import ACTIVITIES, BELIEFS, LEVELS, VERDICTS, Frame, Story
from workflow_rl.training.compliance import VIOLATION

MARKS = ("·", "u", "P")  # true access: none, user, privileged; the letter repeats what the colour says
STYLES = ("dim", "yellow", "bold red")
SUSPICIONS = (" ", "?", "u", "P")  # belief: clean, unknown, user, privileged
HELP = "space: pause or go on   left, right: a step   home, end: to the start, the end   q: leave"
KEYS = {"\x1b[D": "left", "\x1b[C": "right", "\x1b[H": "home", "\x1b[F": "end", " ": "space", "q": "q", "\x03": "q"}


def lines(story: Story) -> Iterator[str]:
    """The story as plain lines, one per step."""
    yield title(story)
    for frame in story.frames:
        fix = f"  [{verdict(frame)}]" if frame.fix else ""
        down = "  SERVICE DOWN" if frame.service_down else ""
        moves = f"{frame.step:3}  blue: {frame.blue:27}  red {frame.red:52}"
        why = f"  ({frame.reason.partition(':')[0]})" if frame.reason else ""
        yield f"{moves}  {frame.reward:6.1f} {frame.total:8.1f}{fix}{down}{why}"
    yield summary(story)


def title(story: Story) -> str:
    """What is shown."""
    order = f", workflow {story.workflow}" if story.workflow else ""
    edition = f"{story.edition} edition" if story.edition else "edition not recorded"
    return f"{story.why} against {story.red_agent}, {edition}{order}"


def summary(story: Story) -> str:
    """How it ended."""
    words = f"Return {story.total:.1f} after {story.n_steps} steps."
    if story.workflow:
        repairs, violations, idle = story.counts
        words += f" Repairs: {repairs} in order, {violations} not; idle fixes: {idle}."
    return words


def verdict(frame: Frame) -> str:
    """How blue's fix was judged, in words; empty if it was none."""
    if frame.fix is None:
        return ""
    if frame.fix.verdict == VERDICTS[VIOLATION]:
        return f"violation: {frame.fix.due} was due before {frame.fix.unit_type}"
    return f"{frame.fix.verdict}: {frame.fix.unit_type}"


def picture(story: Story, index: int, network: Network) -> RenderableType:
    """One step as panels, a panel per subnet."""
    frame = story.frames[index]
    foothold = network.subnet_of(network.red.foothold)
    subnets = sorted(network.subnets, key=lambda subnet: subnet.name != foothold)
    panels = [
        Panel(Text("\n").join(_host(network, frame, name) for name in subnet.hosts), title=subnet.name, width=38)
        for subnet in subnets
    ]
    moves = Text(f"blue  {frame.blue}\n")
    violation = frame.fix is not None and frame.fix.verdict == VERDICTS[VIOLATION]
    moves.append(f"      {verdict(frame)}\n", "bold red" if violation else "green")
    if frame.reason:
        moves.append(f"      {frame.reason}\n", "green")
    moves.append(f"red   {frame.red}\n")
    state = f"step {frame.step} of {story.n_steps}   reward {frame.reward:.1f}   sum {frame.total:.1f}"
    moves.append(state, "bold")
    if frame.service_down:
        moves.append("   the operational service is down", "bold red")
    legend = Text("true access: · none, u user, P privileged    in brackets what blue believes: ? unknown", "dim")
    return Group(Text(title(story), "bold"), Columns(panels), moves, legend, Text(HELP, "dim"))


def _host(network: Network, frame: Frame, name: str) -> Text:
    host = network.host_names.index(name)
    level, belief, activity = frame.level[host], frame.belief[host], frame.activity[host]
    text = Text(f"{name:12}")
    text.append(f"{MARKS[level]} ", STYLES[level])
    text.append(f"[{SUSPICIONS[belief]}]", "cyan" if belief else "dim")
    text.append(f" {ACTIVITIES[activity] if activity else '':8}", "magenta")
    n = len(frame.decoys[host])
    text.append(f"{n} decoy{'s' * (n > 1)}" if n else "", "blue")
    return text


def watch(story: Story, console: Console, steps_per_s: float) -> None:
    """Plays the story until its end, or until the user leaves it."""
    network = load_network()
    index, playing, due = 0, True, time.monotonic() + 1 / steps_per_s
    with _keys() as key, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(picture(story, index, network), refresh=True)
            pressed = key(max(0.0, due - time.monotonic()) if playing else 1.0)
            last = len(story.frames) - 1
            if pressed == "q":
                return
            if pressed == "space":
                playing = not playing
            elif pressed:
                playing = False
                index = {"left": index - 1, "right": index + 1, "home": 0, "end": last}[pressed]
                index = max(0, min(index, last))
            elif playing and time.monotonic() >= due:
                if index == last:
                    return
                index += 1
            due = time.monotonic() + 1 / steps_per_s if pressed or time.monotonic() >= due else due


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A function that waits some seconds for a key and returns its name, or an empty string."""
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)

    def read(seconds: float) -> str:
        ready, _, _ = select.select([number], [], [], seconds)
        if not ready:
            return ""
        return KEYS.get(os.read(number, 8).decode(errors="ignore"), "")

    try:
        tty.setcbreak(number)
        yield read
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


assert len(MARKS) == len(LEVELS)
assert len(SUSPICIONS) == len(BELIEFS)
