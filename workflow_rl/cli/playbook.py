"""The command ``workflow-rl playbook``."""

from __future__ import annotations

from typing import Annotated

import typer

from workflow_rl.cli.common import (
    Defender,
    Figures,
    Json,
    NetworkName,
    OwnEdition,
    RedAgents,
    Seed,
    Takeover,
    acting,
    progress,
    show_result,
)
from workflow_rl.cli.screen import Rows, Screen


def playbook(
    policy: Defender,
    red_agent: RedAgents = None,
    edition: OwnEdition = None,
    takeover: Takeover = None,
    workflow: Annotated[str, typer.Option(help="Workflow of a universal policy.")] = "",
    episodes: Annotated[int, typer.Option(help="Games against each red agent.")] = 1500,
    network: NetworkName = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Reads out a defender's own playbook. Which unit types it repairs before which, and the orders it so keeps."""
    from dataclasses import asdict

    from workflow_rl.config import CHALLENGE_LENGTHS
    from workflow_rl.defenders.names import blue_named, check_workflow, edition_of, network_named, takeover_of
    from workflow_rl.defenders.playbook import read_playbook
    from workflow_rl.envs.checks import parse_red_agents
    from workflow_rl.envs.game import Games

    defended = network_named(policy, network)
    check_workflow(policy, workflow, defended)
    rules, after = edition_of(policy, edition, defended), takeover_of(policy, takeover, defended)
    asked = acting(defended.red_agents) if red_agent is None else red_agent
    reds, blue = [*dict.fromkeys(parse_red_agents(asked, defended))], blue_named(policy, workflow, defended, rules)
    found = []
    with progress("playbook", episodes * len(reds)) as advance:
        for red in reds:
            games = Games(defended, red, rules, max(CHALLENGE_LENGTHS), after)
            found.append(asdict(read_playbook(blue, games, episodes, seed)))
            advance(episodes)
    show_result({"policy": policy, "playbooks": found}, as_json, lambda: print_playbook(found, Screen()))


def print_playbook(found: list[Figures], screen: Screen) -> None:
    """For each red agent, which unit types the defender repairs before which."""
    for book in found:
        after = f", blue takes over after {book['takeover']} steps" if book["takeover"] != "0" else ""
        screen.heading(
            f"Against {book['red_agent']}{after}: return {book['mean_return']:.2f} ± {book['standard_error']:.2f}, "
            f"{book['repairs']:.1f} repairs per game, {book['episodes']} games."
        )
        seen = [pair for pair in book["pairs"] if pair["times"]]
        rows = [[f"{p['first']} before {p['then']}", f"{p['times']:,}", f"{p['reversed']:,}"] for p in seen]
        screen.table("What it repaired while the other type was held", Rows(["priority", "so", "reversed"], rows))
        never = [f"{pair['first']} and {pair['then']}" for pair in book["pairs"] if not pair["times"]]
        if never:
            screen.text(f"Never both held when one was repaired: {', '.join(never)}.")
        of_kept = [book["orders"][order]["compliance"] for order in book["kept"]]
        least = f" (compliance {min(of_kept):.3f} or more)" if of_kept else ""
        screen.text(f"It keeps {len(book['kept'])} of the {len(book['orders'])} orders{least}.")
