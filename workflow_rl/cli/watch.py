"""The command ``workflow-rl watch``."""

from __future__ import annotations

from typing import Annotated

import typer

from workflow_rl.cli.common import (
    Json,
    NetworkName,
    OwnEdition,
    Takeover,
    known_defenders,
    red_agents,
    show_result,
    suggesting,
)


def watch(
    source: Annotated[
        str,
        typer.Argument(
            help="A run, a policy file, champion, expert, a reference defender, or a trace (.npz).",
            autocompletion=known_defenders,
        ),
    ],
    red_agent: Annotated[
        str | None,
        typer.Option(
            help="bline, meander or sleep.", show_default="the policy's own, else the first", autocompletion=red_agents
        ),
    ] = None,
    episode: Annotated[
        str,
        typer.Option(
            help="median, best, worst, violation, or a number.",
            autocompletion=suggesting("median", "best", "worst", "violation"),
        ),
    ] = "median",
    edition: OwnEdition = None,
    takeover: Takeover = None,
    workflow: Annotated[str, typer.Option(help="By which fixes are judged; default: the policy's own.")] = "",
    network: NetworkName = None,
    speed: Annotated[float, typer.Option(help="Steps per second.")] = 2.0,
    seed: Annotated[int | None, typer.Option(help="Same seed, same games.", show_default="the report's games")] = None,
    as_json: Json = False,
) -> None:
    """Plays an episode in the terminal. It shows what is true, what blue believes, and what both sides do."""
    from workflow_rl.cli.watch_view import check_speed, network_watched, show, story_named

    check_speed(speed)
    defended = network_watched(source, network)
    story = story_named(source, defended, red_agent, episode, edition, workflow, seed, takeover)
    show_result(story.to_json(), as_json, lambda: show(story, defended, speed))
