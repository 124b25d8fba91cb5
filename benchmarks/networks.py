"""Genuine CybORG and the engine in lockstep on many generated networks, of 5 to 40 hosts and 3 to 12 unit types.

    python -m benchmarks networks 200

On each network red is B_line, Meander and a program drawn at random; green sleeps and acts; blue plays at random and by
a rule. Every step is compared. The networks are spread over two processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.command import main
from benchmarks.programs import random_program, with_programs
from workflow_rl.cli.common import say
from workflow_rl.defenders.protocol import reference_policy
from workflow_rl.engine.network import GREEN_AGENTS, RED_AGENTS, SLEEPER, Network
from workflow_rl.engine.networks.generate import generate
from workflow_rl.envs.cyborg_sim import load_cyborg
from workflow_rl.errors import SimulatorError, UserError
from workflow_rl.fidelity.lockstep import LiveGames, live_lockstep

LEAST_HOSTS, MOST_HOSTS = 5, 40
LEAST_TYPES, MOST_TYPES = 3, 12
PROCESSES = 2
STEPS = 100  # of a game
BLUES = ("random", "reactive-remove")
OWN = "own"  # name of the program drawn at random
SIZES = ((5, 9), (10, 15), (16, 31), (32, 40))  # the last of each group has records of another width


@dataclass
class Played:
    """What came of one network; ``problem`` is empty if all games were played."""

    name: str
    digest: str
    hosts: int
    unit_types: int
    steps: int = 0
    mismatched_steps: int = 0
    games: dict[str, int] = field(default_factory=dict)  # steps by red agent
    problem: str = ""


def networks(number: int, seed: int = 0) -> list[Network]:
    """Generated networks, each with a program of its own; sizes and numbers of unit types are drawn."""
    generator = np.random.default_rng([seed, 21])
    made = []
    for i in range(number):
        hosts = int(generator.integers(LEAST_HOSTS, MOST_HOSTS + 1))
        types = int(generator.integers(LEAST_TYPES, min(MOST_TYPES, hosts - 1) + 1))
        network = generate(hosts, types, seed + i)
        made.append(with_programs(network, {OWN: random_program(network, seed + i)}))
    return made


def play(network: Network, steps: int = STEPS, seed: int = 0) -> Played:
    """Lockstep of one network: a game of every kind, in this process."""
    played = Played(network.name, network.digest, len(network.hosts), len(network.unit_types))
    blues = {name: reference_policy(name, network) for name in BLUES}
    for red in (name for name in network.red_agents if name != RED_AGENTS[SLEEPER]):
        live = LiveGames(len(GREEN_AGENTS) * len(BLUES), (red,), GREEN_AGENTS, steps, seed)
        try:
            found = live_lockstep(live, blues, network)
        except (SimulatorError, UserError) as error:
            played.problem = played.problem or f"{red}: {error}"
            continue
        played.games[red] = found.steps
        played.steps += found.steps
        played.mismatched_steps += found.mismatched_steps
        if found.first_mismatch is not None:
            played.problem = str(found.first_mismatch)
    return played


def summary(played: Sequence[Played]) -> dict[str, Any]:
    """All networks together, and by their number of hosts."""
    figures: dict[str, Any] = {"cyborg": load_cyborg().name, **_counts(played)}
    groups = {f"{least}-{most}": [one for one in played if least <= one.hosts <= most] for least, most in SIZES}
    figures["by_hosts"] = {name: _counts(group) for name, group in groups.items()}
    figures["steps_by_red_agent"] = {
        red: sum(one.games.get(red, 0) for one in played)
        for red in sorted({red for one in played for red in one.games})
    }
    figures["unit_types"] = sorted({one.unit_types for one in played})
    figures["problems"] = [f"{one.name} ({one.digest}): {one.problem}" for one in played if one.problem]
    return figures


def _counts(played: Sequence[Played]) -> dict[str, int]:
    return {
        "networks": len(played),
        "different_networks": len({one.digest for one in played}),
        "networks_played": sum(one.steps > 0 for one in played),
        "steps": sum(one.steps for one in played),
        "mismatched_steps": sum(one.mismatched_steps for one in played),
    }


def measure(number: str) -> dict[str, Any]:
    """Plays ``number`` networks."""
    if not number.isdecimal() or not 1 <= int(number) <= 10_000:
        raise UserError(f"the number of networks must be from 1 to 10000, not {number!r}.")
    asked, played = networks(int(number)), list[Played]()
    with ProcessPoolExecutor(PROCESSES) as pool:
        for one in pool.map(play, asked):
            played.append(one)
            if len(played) % 10 == 0 or one.problem:
                say(f"networks: {len(played)} of {len(asked)}, {sum(p.steps for p in played):,} steps; {one.problem}")
    return summary(played)


if __name__ == "__main__":
    main("networks")
