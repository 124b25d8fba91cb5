"""The command ``workflow-rl replay``: recorded games from files, or live ones of genuine CybORG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workflow_rl.cli.common import CyborgPath, Edition, Jobs, Json, NetworkName, progress, red_agents, show_result
from workflow_rl.cli.screen import Rows, Screen
from workflow_rl.config import MACHINE
from workflow_rl.errors import UserError

if TYPE_CHECKING:
    from workflow_rl.fidelity.lockstep import LockstepResult
    from workflow_rl.fidelity.replay import EditionResult


def replay(
    files: Annotated[list[Path] | None, typer.Argument(help="Recorded traces (.npz).", show_default=False)] = None,
    edition: Edition = "current",
    live: Annotated[
        int | None, typer.Option(help="Play so many games of genuine CybORG now, instead of files.", show_default=False)
    ] = None,
    blue: Annotated[
        list[str] | None, typer.Option(help="Live: policy file, run, champion or reference defender; can be repeated.")
    ] = None,
    red_agent: Annotated[
        str | None,
        typer.Option(
            help="Live: bline, meander, sleep, or a comma list.", show_default="all", autocompletion=red_agents
        ),
    ] = None,
    green_agent: Annotated[
        str | None, typer.Option(help="Live: sleep, active, or a comma list.", show_default="both")
    ] = None,
    takeover: Annotated[
        str | None, typer.Option(help="Live: steps that red plays before blue acts, or a range.", show_default="0")
    ] = None,
    jobs: Jobs = None,
    seed: Annotated[
        int | None, typer.Option(help="Live: same seed, same games.", show_default="0", rich_help_panel=MACHINE)
    ] = None,
    cyborg_path: CyborgPath = "",
    network: NetworkName = None,
    as_json: Json = False,
) -> None:
    """Compares the engine with games of genuine CybORG. It replays them and counts the steps that differ.

    The games are recorded ones, or with --live played at the same time, each chance outcome taken over as it falls.

    Exit code 0: every step agrees. 1: some differ. 2: a file cannot be replayed.
    """
    if live is not None and files:
        raise UserError("give either files or --live, not both.")
    if live is None and not files:
        raise UserError("give the files of recorded games, or --live with a number of games.")
    if live is None and ((blue, red_agent, green_agent, jobs, seed, takeover, network) != (None,) * 7 or cyborg_path):
        raise UserError("files are replayed as they are: other options than --edition and --json need --live.")
    if live is not None and edition != "current":
        raise UserError("with --live the edition is that of the CybORG at hand; leave --edition out.")
    if live is None:
        recorded = _replay_files(files or [], edition)
        show_result(recorded, as_json, lambda: print_replay(recorded))
        raise typer.Exit(1 if recorded.mismatched_steps else 0)
    played = _replay_live(live, blue, red_agent, green_agent, takeover or "0", jobs, seed or 0, cyborg_path, network)
    show_result(played, as_json, lambda: print_live(played))
    raise typer.Exit(1 if played.mismatched_steps else 0)


def _replay_files(files: list[Path], edition: str) -> EditionResult:
    from workflow_rl.engine.network_file import load_network
    from workflow_rl.errors import check_choice
    from workflow_rl.fidelity.replay import replay_all
    from workflow_rl.fidelity.traces import load_trace

    network = load_network()
    check_choice("edition", edition, network.editions)
    traces = [load_trace(path) for path in files]
    with progress("replay", len(traces)) as advance:
        return replay_all(traces, network, edition, advance)


def _replay_live(
    n_games: int,
    blues: list[str] | None,
    red_agents: str | None,
    green_agents: str | None,
    takeover: str,
    jobs: int | None,
    seed: int,
    cyborg_path: str,
    network: str | None,
) -> LockstepResult:
    from workflow_rl.config import check_jobs, parse_takeover
    from workflow_rl.defenders.names import blue_named, live_blues
    from workflow_rl.engine.network import GREEN_AGENTS
    from workflow_rl.engine.networks.copies import chosen_network
    from workflow_rl.envs.checks import parse_red_agents
    from workflow_rl.envs.cyborg_sim import load_cyborg
    from workflow_rl.errors import check_choice
    from workflow_rl.fidelity.lockstep import LiveGames, live_lockstep

    parse_takeover(takeover)
    played = chosen_network(None, network)
    reds = tuple(dict.fromkeys(parse_red_agents(played.red_agents if red_agents is None else red_agents, played)))
    names = GREEN_AGENTS if green_agents is None else green_agents.split(",")
    greens = tuple(dict.fromkeys(check_choice("green agent", name, GREEN_AGENTS) for name in names))
    live = LiveGames(n_games, reds, greens, 100, seed, check_jobs(jobs), cyborg_path, takeover)
    edition = load_cyborg(cyborg_path).edition
    named = {name: blue_named(name, "", played, edition, any_edition=True) for name in blues or live_blues(played)}
    with progress("live games", n_games) as advance:
        return live_lockstep(live, named, played, advance)


def print_live(found: LockstepResult) -> None:
    """A live lockstep: a row for each kind of games, then all of them in words."""
    rows = [
        [game.red_agent, game.green_agent, Path(game.blue).stem]
        + [f"{number:,}" for number in (game.episodes, game.steps, game.mismatched_steps)]
        for game in found.games
    ]
    columns = ["red", "green", "blue", "games", "steps", "mismatched"]
    Screen().table(f"{found.cyborg} and the engine in lockstep", Rows(columns, rows, (), ("green", "blue")))
    print_replay(found)


def print_replay(found: EditionResult | LockstepResult) -> None:
    """A replay in words."""
    print(f"{found.episodes} episodes, {found.steps} steps, {found.edition} edition: ", end="")
    print(f"{found.mismatched_steps} mismatched steps in {found.mismatched_episodes} episodes.")
    first, other = found.first_mismatch, getattr(found, "edition_that_fits", "")
    if first is None:
        return
    if other:
        print(f"All steps agree with the {other} edition: use --edition {other}.")
    print(f"First mismatch: {first.file}, episode {first.episode}, step {first.step} (both count from 0).")
    for name, pair in first.fields.items():
        print(f"  {name}: recorded {pair.recorded}, engine {pair.engine}")
    if found.mismatched_after_collision:
        print(
            f"{found.mismatched_after_collision} of them come after a process-id collision, which the engine does "
            "not model (docs/fidelity.md)."
        )
