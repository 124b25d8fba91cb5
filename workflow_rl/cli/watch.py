"""The command ``workflow-rl watch``, and the public function ``workflow_rl.watch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from workflow_rl.defenders.own import AnyPolicy
    from workflow_rl.engine.networks.copies import AnyNetwork


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


def watch_defender(
    policy: AnyPolicy, red_agent: str | None = None, episode: str | int = "median", edition: str | None = None,
    takeover: str | None = None, workflow: str = "", batch: bool = False, network: AnyNetwork = "cage2",
    speed: float = 2.0, seed: int | None = None,
) -> None:  # fmt: skip
    """Plays an episode of a defender in the terminal, as ``workflow-rl watch`` does; elsewhere prints its lines.

    Args:
        policy: a function from an observation to an action, or a policy of ours; see ``workflow_rl.challenge``.
        red_agent: the opponent; default: the one that the policy was trained against, else the network's first.
        episode: median, best, worst, violation, or a number.
        edition: the rules; default: the policy's own, else the network's first.
        takeover: steps that red plays before blue; default: the policy's own, else 0.
        workflow: the order by which fixes are judged; default: the policy's own, else none.
        batch: whether the function maps many observations to as many actions.
        network: the network to defend.
        speed: steps per second.
        seed: of the games; default: those of reports.
    """
    from workflow_rl.cli.watch_view import WHICH, check_speed, show, told
    from workflow_rl.defenders.own import contender
    from workflow_rl.engine.network_file import as_network
    from workflow_rl.errors import UserError, check_choice
    from workflow_rl.report.story import SEED, Episodes

    check_speed(speed)
    defended, chance = as_network(network), SEED if seed is None else seed
    own = contender(policy, defended, batch, edition, workflow, takeover)
    if own.any_order:
        raise UserError(WHICH)
    red = check_choice("red agent", own.red_agents[0] if red_agent is None else red_agent, defended.red_agents)
    games = (own.blue, red, defended, own.edition, own.workflow)
    story = told(lambda n: Episodes(*games, n, chance, own.takeover), own.name, str(episode), own.workflow)
    show(story, defended, speed)
