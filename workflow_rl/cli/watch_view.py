"""An episode in the terminal: the network, what is true beside what blue believes, and both sides' moves."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from workflow_rl.config import parse_takeover
from workflow_rl.defenders.protocol import REFERENCE_POLICIES
from workflow_rl.engine.network import Network
from workflow_rl.errors import UserError, check_choice
from workflow_rl.fidelity.traces import load_trace
from workflow_rl.report.lesson import lesson
from workflow_rl.report.story import (
    ACTIVITIES,
    BELIEFS,
    LEVELS,
    N_EPISODES,
    SEED,
    VERDICTS,
    Episodes,
    Frame,
    Story,
    story_of_trace,
)
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


def check_speed(speed: float) -> None:
    """Rejects an impossible number of steps per second."""
    if not 0.01 <= speed <= 1000:
        raise UserError(f"the speed must be from 0.01 to 1000 steps per second, not {speed}.")


def show(story: Story, network: Network, speed: float) -> None:
    """Plays the story on a terminal, otherwise prints its lines."""
    console = Console()
    if console.is_terminal and sys.stdin.isatty():
        play(story, console, speed, network)
        print(summary(story), lesson(story, network))
    else:
        print("\n".join(lines(story)), lesson(story, network))


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


def play(story: Story, console: Console, steps_per_s: float, network: Network) -> None:
    """Plays the story until its end, or until the user leaves it."""
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


assert (len(MARKS), len(SUSPICIONS)) == (len(LEVELS), len(BELIEFS))


WHICH = "the policy follows any workflow: say which one with --workflow."
CHOICES = ("median", "best", "worst", "violation")
LAST_EPISODE = 99_999  # all episodes up to the chosen one are played side by side


@dataclass(frozen=True)
class Player:
    """A defender to watch, with what it was trained for."""

    source: str | Path
    red_agent: str
    edition: str
    workflow: str = ""
    takeover: str = "0"


def network_watched(source: str, given: str | None) -> Network:
    """The network of what is to be watched: the run's own, the given one, or CAGE Challenge 2."""
    from workflow_rl.defenders.names import network_named

    return network_named("" if source.endswith(".npz") else source, given)


def story_named(
    source: str,
    network: Network,
    red_agent: str | None,
    episode: str,
    edition: str | None,
    workflow: str,
    seed: int | None,
    takeover: str | None = None,
) -> Story:
    """The episode to watch.

    Args:
        source: a run, a policy file, a reference defender or a trace file (.npz).
        network: the hosts and subnets to defend.
        red_agent: the opponent; default: the one that the policy was trained against, else the network's first.
        episode: one of CHOICES or a number.
        edition: the rules; default: the policy's, else the network's first.
        workflow: the order by which fixes are judged; default: the policy's own.
        seed: of the games; default: those of which a report shows the median, the best and the worst.
        takeover: steps that red plays before blue; default: the policy's own, else 0.
    """
    if edition is not None:
        check_choice("edition", edition, network.editions)
    if source.endswith(".npz"):
        if red_agent is not None:
            raise UserError("a recorded game has its own red agent; leave --red-agent out.")
        if takeover is not None:
            raise UserError("a recorded game has its own takeover; leave --takeover out.")
        return _recorded(source, episode, network, edition or "", workflow)
    from workflow_rl.defenders.names import blue_named

    player = _player(source, edition or next(iter(network.editions)), workflow, network)
    rules, order, after = edition or player.edition, player.workflow, player.takeover if takeover is None else takeover
    red = check_choice("red agent", player.red_agent if red_agent is None else red_agent, network.red_agents)
    blue, chance = blue_named(player.source, order, network, rules), SEED if seed is None else seed
    parse_takeover(after)
    return told(lambda n: Episodes(blue, red, network, rules, order, n, chance, after), source, episode, order)


def _player(source: str, edition: str, workflow: str, network: Network) -> Player:
    """The defender of that name, or of a run or a policy file."""
    from workflow_rl.defenders.names import CHAMPION, policy_path

    if source in REFERENCE_POLICIES or not (source == CHAMPION or Path(source).exists()):
        return Player(source, network.red_agents[0], edition, workflow)
    from workflow_rl.training.policy_file import load_policy

    path = policy_path(source, edition, network, workflow=workflow)
    path = path if source == CHAMPION else _policy_of(path, network)
    policy = load_policy(path, network)
    if policy.universal and not workflow:
        raise UserError(WHICH)
    red = policy.red_agent if policy.red_agent in network.red_agents else network.red_agents[0]
    takeover = "0" if source == CHAMPION else policy.takeover
    return Player(path, red, policy.edition, workflow or policy.workflow, takeover)


def told(play_games: Callable[[int], Episodes], source: str, episode: str, workflow: str) -> Story:
    """One of so many episodes as its choice needs, which is one of CHOICES or a number."""
    number = _number(episode)
    if number is None:
        check_choice("episode", episode, CHOICES)
    if episode == "violation" and not workflow:
        raise UserError(f"{source} follows no workflow; say by which one it is to be judged with --workflow.")
    n_episodes = N_EPISODES if number is None else max(N_EPISODES, number + 1)
    return _chosen(play_games(n_episodes), source, episode if number is None else number)


def _chosen(episodes: Episodes, source: str, episode: str | int) -> Story:
    """One of the episodes, by its number or one of CHOICES."""
    if isinstance(episode, int):
        return episodes.tell(episode, f"{source}: episode {episode}")
    n_episodes = len(episodes.returns)
    if episode == "violation":
        first = episodes.first_violation()
        if first is None:
            raise UserError(f"{source} has no violation of the workflow {episodes.workflow} in {n_episodes} episodes.")
        return episodes.tell(first, f"{source}: first violation")
    (story,) = [story for story in episodes.choose() if story.why == episode]
    return replace(story, why=f"{source}: {episode} of {n_episodes} episodes")


def _recorded(source: str, episode: str, network: Network, edition: str, workflow: str) -> Story:
    """A game of a trace file."""
    trace = load_trace(source)
    number = _number(episode) if episode != "median" else 0
    if number is None:
        raise UserError(f"episode must be a number from 0 to {trace.n_episodes - 1}, not {episode!r}.")
    return story_of_trace(trace, number, network, edition, workflow)


def _policy_of(path: Path, network: Network) -> Path:
    """The policy of a run; of a search that is not finished that of the best training so far."""
    if not path.is_dir() or (path / "policy.safetensors").exists():
        return path
    from workflow_rl.report.build import best_policy
    from workflow_rl.report.run_data import report_data

    return best_policy(path, report_data(path, network)) or path


def _number(episode: str) -> int | None:
    if not episode.isdecimal():
        return None
    if len(episode) > len(str(LAST_EPISODE)):
        raise UserError(f"episode must be at most {LAST_EPISODE}, not {episode}.")
    return int(episode)
