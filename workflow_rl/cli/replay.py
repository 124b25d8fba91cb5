"""What ``replay`` does: recorded games from files, or live ones of genuine CybORG."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from workflow_rl.cli.printing import progress
from workflow_rl.config import check_jobs, parse_takeover
from workflow_rl.engine.network import GREEN_AGENTS, RED_AGENTS, Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.checks import parse_red_agents
from workflow_rl.errors import check_choice
from workflow_rl.fidelity.replay import ReplayResult, replay
from workflow_rl.fidelity.traces import Trace, load_trace


def replay_files(files: list[Path], edition: str) -> dict[str, Any]:
    """Replays recorded games; ``edition_that_fits``: by whose rules every step agrees, empty if there is none."""
    network = load_network()
    check_choice("edition", edition, network.editions)
    traces = [load_trace(path) for path in files]
    total = ReplayResult()
    with progress("replay", len(traces)) as advance:
        for trace in traces:
            total.add(replay(trace, network, edition))
            advance(1)
    fits = edition
    if total.mismatched_steps:
        others = [name for name in network.editions if name != edition]
        fits = next((name for name in others if all(_agrees(trace, network, name) for trace in traces)), "")
    return asdict(total) | {"edition": edition, "edition_that_fits": fits}


def _agrees(trace: Trace, network: Network, edition: str) -> bool:
    return replay(trace, network, edition).mismatched_steps == 0


def replay_live(
    games: int,
    blues: tuple[str, ...],
    red_agents: str | None,
    green_agents: str | None,
    jobs: int | None,
    seed: int,
    cyborg_path: str,
    takeover: str = "0",
) -> dict[str, Any]:
    """Plays games of genuine CybORG and, with its chance, the same ones in the engine."""
    from workflow_rl.defenders.names import LIVE_BLUES, blue_named
    from workflow_rl.envs.cyborg_sim import load_cyborg
    from workflow_rl.fidelity.lockstep import live_lockstep

    parse_takeover(takeover)
    reds = RED_AGENTS if red_agents is None else tuple(dict.fromkeys(parse_red_agents(red_agents)))
    names = GREEN_AGENTS if green_agents is None else green_agents.split(",")
    greens = tuple(dict.fromkeys(check_choice("green agent", name, GREEN_AGENTS) for name in names))
    edition = load_cyborg(cyborg_path).edition
    named = {name: blue_named(name, "", edition, any_edition=True) for name in blues or LIVE_BLUES}
    with progress("live games", games) as advance:
        return live_lockstep(games, named, reds, greens, 100, seed, check_jobs(jobs), cyborg_path, advance, takeover)
