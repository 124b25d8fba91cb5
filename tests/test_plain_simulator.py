"""A second implementation of the rules agrees with recorded games, and with the engine on large networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from benchmarks.programs import random_program, with_programs
from tests.plain_simulator import PlainGame, plain_trace
from tests.variants import variant
from workflow_rl.engine.network import Exploit, Network
from workflow_rl.engine.tables import compile_tables
from workflow_rl.fidelity.meander_check import meander_candidates
from workflow_rl.fidelity.replay import Replayer, replay
from workflow_rl.fidelity.traces import CANDIDATES, Trace

STEPS = 100


class Recorded:
    """The chance of one recorded game."""

    def __init__(self, trace: Trace, episode: int, network: Network) -> None:
        self.trace, self.episode, self.network, self.now = trace, episode, network, 0

    def _at(self, name: str) -> int:
        return int(self.trace[name][self.episode, self.now])

    def pick(self, hosts: Sequence[str]) -> str:
        picked = self.network.host_names[self._at("red_target")]
        assert picked in hosts
        return picked

    def exploit(self, options: Sequence[Exploit]) -> Exploit:
        name = self.trace.codes.exploits[self._at("exploit")]
        return next(exploit for exploit in options if exploit.name == name)

    def detected(self) -> bool:
        assert self._at("detect") >= 0
        return self._at("detect") == 1

    def green(self, hosts: Sequence[str]) -> str:
        assert hosts
        return ""


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
def test_the_plain_simulator_reproduces_every_array_of_recorded_games(
    network: Network, samples: dict[str, Trace], edition: str
) -> None:
    trace, compared = samples[edition], 0
    drawn_by_meander = meander_candidates(trace, network)
    by_meander = trace.played_by(["meander"])
    for episode in range(0, trace.n_episodes, 4):
        chance = Recorded(trace, episode, network)
        game = PlainGame(network, trace.red_agent(episode), chance, edition, green_acts=False)
        for chance.now in range(int(trace["n_steps"][episode])):
            row = game.step(int(trace["blue_action"][episode, chance.now]))
            drawn_from = row.pop(CANDIDATES)
            if by_meander[episode]:
                assert drawn_from == drawn_by_meander[episode, chance.now]
            for name in row.keys() - {"collision"}:
                assert np.array_equal(row[name], trace[name][episode, chance.now]), (episode, chance.now, name)
            compared += 1
    assert compared > 900


def large(n_hosts: int, seed: int) -> Network:
    """A random network with a random program ``own`` beside B_line and Meander."""
    network = variant(n_hosts, seed)
    return with_programs(network, {"own": random_program(network, seed)})


def plain_games(network: Network, red_agent: str, number: int, edition: str = "current") -> Trace:
    """Games with blue at random, mostly on the hosts that a game has reached; green acts in every second one."""
    games: list[Any] = []
    for i in range(number):
        generator = np.random.default_rng([i, len(network.hosts)])
        actions = generator.integers(network.n_actions, size=STEPS)
        idle = generator.random(STEPS) < (0.2, 0.5, 0.9)[i % 3]  # a busy blue stops red early
        games.append((i, np.where(idle, 0, actions).tolist(), i % 2 == 1))
    return plain_trace(network, red_agent, games, edition)


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
@pytest.mark.parametrize("red", ["bline", "meander", "own", "sleep"])
@pytest.mark.parametrize(
    "n_hosts", [7, 15, 16, 31, 32, 40, 63, 64, *(pytest.param(n, marks=pytest.mark.long) for n in range(41, 63, 3))]
)
def test_the_engine_agrees_with_the_plain_simulator_on_networks_of_any_size(
    n_hosts: int, red: str, edition: str
) -> None:
    network = large(n_hosts, seed=len(edition))
    trace = plain_games(network, red, 6, edition)
    found = replay(trace, network, edition)
    assert found.steps == 6 * STEPS
    assert found.mismatched_steps == 0, found.first_mismatch
    assert red == "sleep" or (trace["priv"] > 0).any(axis=(1, 2)).all()


def test_the_last_host_of_64_is_attacked_defended_and_compared() -> None:
    """Host 63 is the sign bit of a set."""
    network = large(64, seed=2)
    trace = Trace.join([plain_games(network, red, 12) for red in ("meander", "own")])
    last = len(network.hosts) - 1
    assert (trace["priv"][..., last] == 2).any()
    assert (trace["malware"] < 0).any()
    assert replay(trace, network).mismatched_steps == 0
    tables = compile_tables(network)
    tables[0]["prices"][7] = 0
    assert Replayer(trace, network).differs(tables)
