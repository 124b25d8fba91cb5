"""The command ``workflow-rl watch``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from workflow_rl.cli.common import Json, NetworkName, Takeover, show_result
from workflow_rl.errors import UserError


def watch(
    source: Annotated[
        str,
        typer.Argument(help="A run, a policy file, champion, expert, a reference defender, or a trace (.npz)."),
    ],
    red_agent: Annotated[
        str | None, typer.Option(help="bline, meander or sleep.", show_default="the policy's own, else the first")
    ] = None,
    episode: Annotated[str, typer.Option(help="median, best, worst, violation, or a number.")] = "median",
    edition: Annotated[str | None, typer.Option(help="current or leaderboard.", show_default="the policy's")] = None,
    takeover: Takeover = None,
    workflow: Annotated[str, typer.Option(help="By which fixes are judged; default: the policy's own.")] = "",
    network: NetworkName = None,
    speed: Annotated[float, typer.Option(help="Steps per second.")] = 2.0,
    seed: Annotated[int | None, typer.Option(help="Same seed, same games.", show_default="the report's games")] = None,
    as_json: Json = False,
) -> None:
    """Plays an episode in the terminal: what is true, what blue believes, what both sides do. Elsewhere as lines."""
    from rich.console import Console

    from workflow_rl.cli.watch_view import lines, network_watched, play, story_named, summary
    from workflow_rl.report.lesson import lesson

    if not 0.01 <= speed <= 1000:
        raise UserError(f"the speed must be from 0.01 to 1000 steps per second, not {speed}.")
    defended = network_watched(source, network)
    story = story_named(source, defended, red_agent, episode, edition, workflow, seed, takeover)
    console = Console()
    if not as_json and console.is_terminal and sys.stdin.isatty():
        play(story, console, speed, defended)
        print(summary(story), lesson(story, defended))
    else:
        show_result(story.to_json(), as_json, lambda: print("\n".join(lines(story)), lesson(story, defended)))
