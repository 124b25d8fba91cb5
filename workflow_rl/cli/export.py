"""The command ``workflow-rl export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workflow_rl.cli.common import Json, NetworkName, editions, known_defenders, show_result


def export(
    policy: Annotated[
        str, typer.Argument(help="A run, a policy file, champion or expert.", autocompletion=known_defenders)
    ],
    folder: Annotated[Path, typer.Argument(help="A new folder for the agent.")],
    edition: Annotated[
        str | None,
        typer.Option(
            help="Of champion and expert: current or leaderboard.", show_default="current", autocompletion=editions
        ),
    ] = None,
    workflow: Annotated[str, typer.Option(help="Workflow of a universal policy.")] = "",
    greedy: Annotated[bool, typer.Option(help="The agent plays the most probable action.")] = False,
    network: NetworkName = None,
    as_json: Json = False,
) -> None:
    """Writes a defender that needs nothing but numpy. It has agent.py for CybORG's own evaluation, and its policy."""
    from workflow_rl.defenders.export import export_agent

    result = export_agent(policy, folder, workflow, greedy, edition, network)
    words = f"{result['folder']} holds agent.py and all that it needs; its README.md says how to use it."
    show_result(result, as_json, lambda: print(words))
