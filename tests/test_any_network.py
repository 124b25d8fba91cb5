"""The engine keeps step with genuine CybORG on other networks and against programs that users write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.programs import random_program, with_programs
from tests.programs import NASTY
from tests.variants import variant
from workflow_rl import CyborgVectorEnv
from workflow_rl.defenders.protocol import reference_policy
from workflow_rl.engine.chance import ABSENT, Draw, force
from workflow_rl.engine.network import BITS_PER_HOST, RED_ACTIONS, Network, Service, room_for
from workflow_rl.engine.observe import ACTIVITY_EXPLOIT, ACTIVITY_SCAN
from workflow_rl.engine.state import allocate
from workflow_rl.engine.step import reset_envs, step_envs_with
from workflow_rl.engine.tables import NO_SERVICE, compile_tables
from workflow_rl.envs.takeover import takeover_rows
from workflow_rl.errors import TraceError
from workflow_rl.fidelity.cyborg_recorder import Recorder
from workflow_rl.fidelity.lockstep import LiveGames, LockstepResult, live_lockstep, record_games
from workflow_rl.fidelity.replay import Replayer, replay
from workflow_rl.fidelity.traces import CANDIDATES, Trace

pytestmark = pytest.mark.needs("csle_cyborg")

BLUES = ("random", "reactive-remove", "reactive-restore")
SCAN, EXPLOIT = (RED_ACTIONS.index(name) for name in ("DiscoverNetworkServices", "ExploitRemoteService"))


def lockstep(network: Network, reds: tuple[str, ...], games: int, steps: int = 100, seed: int = 0) -> LockstepResult:
    """Live games with green asleep and acting."""
    blues = {name: reference_policy(name, network) for name in BLUES}
    return live_lockstep(LiveGames(games, reds, max_steps=steps, seed=seed), blues, network)


def recorded(network: Network, red: str, games: int, blue: str = "random", steps: int = 100) -> Trace:
    """A live recording with an acting green."""
    envs = CyborgVectorEnv(1, red, network=network, green_agent="active", max_steps=None, recorder=Recorder)
    policy = reference_policy(blue, network)
    with closing(envs):
        return Trace.join(
            [record_games(envs, policy, red, np.array([i], np.uint64), steps, ["0"]) for i in range(games)]
        )


def own_program(n_hosts: int, seed: int) -> Network:
    """A random network, with a random program ``own`` beside the stock agents."""
    network = variant(n_hosts, seed)
    return with_programs(network, {"own": random_program(network, seed)})


@pytest.mark.parametrize("games", [3, pytest.param(12, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", NASTY)
def test_the_engine_keeps_step_with_a_program_that_does_what_no_stock_agent_does(
    name: str, games: int, network: Network
) -> None:
    found = lockstep(with_programs(network, {name: NASTY[name]}), (name,), games, 100 if games > 3 else 60)
    assert found.mismatched_steps == 0, found.first_mismatch
    assert found.episodes == games


def test_b_line_written_as_a_program_plays_the_games_of_genuine_b_line(network: Network) -> None:
    """From equal seeds, chance included: the recordings are the same in every array."""
    copied = with_programs(network, {"straight": network.red.programs["bline"]})
    for blue in ("random", "reactive-remove"):
        genuine, ours = (recorded(copied, red, 4, blue) for red in ("bline", "straight"))
        assert set(ours.arrays) - set(genuine.arrays) == {CANDIDATES}
        for name in set(genuine.arrays) - {"red_agent"}:
            assert np.array_equal(genuine[name], ours[name]), name
        assert (ours[CANDIDATES] != 0).sum() == 4  # drawn once in each game


@pytest.mark.parametrize(
    "n_hosts",
    [7, 12, 16, 33, *(pytest.param(n, marks=pytest.mark.long) for n in (9, 13, 14, 20, 27, 31, 32, 40, 52, 64))],
)
def test_the_engine_keeps_step_with_genuine_cyborg_on_a_network_of_any_size(n_hosts: int) -> None:
    """Services, systems, values and what hosts reveal are drawn; red is B_line, Meander and a random program."""
    found = lockstep(own_program(n_hosts, seed=1), ("bline", "meander", "own"), 3 if n_hosts in (7, 12, 16, 33) else 12)
    assert found.mismatched_steps == 0, found.first_mismatch
    assert found.steps == 100 * found.episodes


@pytest.mark.long
def test_the_engine_keeps_step_with_genuine_cyborg_on_ten_generated_networks() -> None:
    pytest.importorskip("workflow_rl.engine.networks.generate")
    from benchmarks.networks import networks, play

    played = [play(network) for network in networks(10, seed=1000)]
    assert [one.problem for one in played] == [""] * 10
    assert sum(one.steps for one in played) >= 10 * 12 * 100
    assert sum(one.mismatched_steps for one in played) == 0


def changed(network: Network, name: str, **fields: Any) -> Network:
    """The network with another host."""
    hosts = tuple(replace(host, **fields) if host.name == name else host for host in network.hosts)
    return replace(network, hosts=hosts)


def test_the_first_of_two_services_on_a_port_answers(network: Network) -> None:
    """As in CybORG: a web service of SYSTEM before the one of an ordinary account makes HTTPRFI privileged at once."""
    place = network.host_names.index("Enterprise1")
    services = (Service("w3wp.exe", "SYSTEM", (80,), "web"), *network.hosts[place].services)
    double = changed(network, "Enterprise1", services=services, process_ids=())
    found = lockstep(double, ("meander",), 6)
    assert found.mismatched_steps == 0, found.first_mismatch
    rfi = [exploit.name for exploit in network.exploits].index("HTTPRFI")
    outcomes = [compile_tables(one)[0]["outcome"][place, rfi] for one in (network, double)]
    assert outcomes[0] != outcomes[1]


def test_a_guessed_password_of_a_privileged_account_is_privileged_at_once_and_leaves_no_file(network: Network) -> None:
    guessed = changed(network, "Enterprise0", guessable="root")
    found = lockstep(guessed, ("meander",), 3)
    assert found.mismatched_steps == 0, found.first_mismatch
    trace, place = recorded(guessed, "meander", 2), network.host_names.index("Enterprise0")
    assert (trace["priv"][..., place] == 2).any()
    assert not (trace["malware"] >> place & 1).any()


def test_two_copies_of_a_decoy_make_a_scan_of_a_host_with_one_port_look_like_an_exploit(network: Network) -> None:
    """Vsftpd opens port 80 and checks another: with the web service there are three sockets on one port."""
    web = (Service("apache2", "www-data", (80,), "web"),)
    alone = changed(network, "User3", services=web, process_ids=())
    decoy = alone.action_index("DecoyVsftpd", "User3")

    def stack(packed: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        return np.where(generator.random(len(packed)) < 0.15, decoy, 0)

    found = live_lockstep(LiveGames(12, ("bline", "meander")), {"stack": stack}, alone)
    assert found.mismatched_steps == 0, found.first_mismatch
    tables = compile_tables(alone)
    states = allocate(1, room_for(alone))
    reset_envs(states, tables, takeover_rows(0, 1), np.ones(1, bool), np.zeros(1, np.uint64), True)
    states["green_acts"] = 1
    scan = np.full((1, len(Draw)), force(ABSENT))
    scan[0, Draw.GREEN] = force(network.host_names.index("User3"))
    seen = []
    for action in (0, decoy, 0, decoy, 0):  # green scans the host in each step
        step_envs_with(states, tables, np.array([action]), scan, np.zeros(1))
        seen.append(int(states["observation"][0, 0]) >> BITS_PER_HOST * network.host_names.index("User3") & 3)
    assert seen == [ACTIVITY_SCAN, ACTIVITY_EXPLOIT, ACTIVITY_SCAN, ACTIVITY_EXPLOIT, ACTIVITY_EXPLOIT]


def test_a_live_recording_knows_its_network(network: Network) -> None:
    trace = recorded(network, "bline", 1, steps=5)
    assert trace.digest == network.digest
    assert replay(trace, network).mismatched_steps == 0
    dearer = replace(network, reward=replace(network.reward, restore=2.0))
    with pytest.raises(TraceError, match=r"played on another network .* than 'cage2'"):
        replay(trace, dearer)


# A wrong entry in the tables of a wide network, chosen so that the recording depends on it: each function changes one
# and takes the network, its tables and the recordings by red agent.
Recordings = dict[str, Trace]
Mutant = Callable[[Network, np.ndarray, Recordings], str]


@pytest.fixture(scope="module", params=[24, 44], ids=["32 bits", "64 bits"])
def wide(request: pytest.FixtureRequest) -> tuple[Network, Recordings]:
    network = own_program(request.param, seed=3)
    return network, {red: recorded(network, red, 2) for red in ("bline", "meander", "own")}


def high_host(network: Network, condition: np.ndarray) -> int:
    """The last host for which a condition (E, T, hosts) ever holds; it is beyond the first 16."""
    host = int(np.flatnonzero(condition.any(axis=(0, 1)))[-1])
    assert 16 <= host < len(network.hosts)
    return host


def wrong_gateway(network: Network, tables: np.ndarray, _: Recordings) -> str:
    place = network.subnet_names.index("Operational")
    tables[0]["gateways"][place] = 1 << network.host_names.index("Defender")
    return "bline"


def wrong_price(network: Network, tables: np.ndarray, recordings: Recordings) -> str:
    host = high_host(network, recordings["meander"]["priv"] == 2)
    held = np.flatnonzero(np.arange(256) >> host % 8 & 1)
    tables[0]["prices"][host // 8, held] += 1
    return "meander"


def wrong_reveal(network: Network, tables: np.ndarray, recordings: Recordings) -> str:
    user = int(recordings["bline"]["red_target"][0, 1])
    assert tables[0]["reveals"][user] == 1 << network.host_names.index(network.hosts[user].reveals[0])
    tables[0]["reveals"][user] = 1 << network.host_names.index("Defender")
    return "bline"


def wrong_decoy_port(network: Network, tables: np.ndarray, recordings: Recordings) -> str:
    trace = recordings["meander"]
    aimed = (trace["red_action"] == SCAN)[..., None] & (trace["red_target"][..., None] == np.arange(len(network.hosts)))
    host = high_host(network, aimed & (trace["decoys"] > 0))
    placed = trace["decoys"][..., host][aimed[..., host] & (trace["decoys"][..., host] > 0)][0]
    tables[0]["decoy_ports"][placed] ^= 1 << network.ports.index(53)  # which only Defender has
    return "meander"


def first_line(network: Network, tables: np.ndarray) -> int:
    """The first line of the program ``own``, which follows the line on which every program waits for its first step."""
    return int(tables[0]["line_success"][tables[0]["first_line"][network.red_number("own")]])


def wrong_line(network: Network, tables: np.ndarray, _: Recordings) -> str:
    first = first_line(network, tables)
    tables[0]["line_success"][first + 1] = first
    return "own"


def wrong_candidates(network: Network, tables: np.ndarray, recordings: Recordings) -> str:
    first = first_line(network, tables)
    rows = np.flatnonzero(tables[0]["line_known"][first : first + 32]) + first
    assert len(rows) > 0
    assert (recordings["own"][CANDIDATES] != 0).any()
    tables[0]["line_from"][rows] ^= 1 << network.host_names.index(network.red.foothold)
    return "own"


def wrong_sweep(network: Network, tables: np.ndarray, recordings: Recordings) -> str:
    host = high_host(network, recordings["meander"]["red_ports"] != 0)
    tables[0]["subnet_hosts"][tables[0]["subnet"][host]] &= ~(1 << host)
    return "meander"


def wrong_outcome(network: Network, tables: np.ndarray, recordings: Recordings) -> str:
    trace = recordings["meander"]
    taken = (trace["exploit_result"] == 0)[..., None] & (
        trace["red_target"][..., None] == np.arange(len(network.hosts))
    )
    host = high_host(network, taken)
    exploit = int(trace["exploit"][taken[..., host]][0])
    tables[0]["outcome"][host, exploit] = NO_SERVICE
    return "meander"


def wrong_retake(network: Network, tables: np.ndarray, _: Recordings) -> str:
    tables[0]["retakes"][: len(network.red.meander.retakes)] = 0
    return "meander"


MUTANTS: list[Mutant] = [
    wrong_gateway, wrong_price, wrong_reveal, wrong_decoy_port, wrong_line, wrong_candidates, wrong_sweep,
    wrong_outcome, wrong_retake,
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_entry_in_the_tables_of_a_wide_network_is_noticed(
    mutant: Mutant, wide: tuple[Network, Recordings]
) -> None:
    network, recordings = wide
    tables = compile_tables(network)
    before = tables.tobytes()
    red = mutant(network, tables, recordings)
    assert tables.tobytes() != before
    replayer = Replayer(recordings[red], network)
    assert not replayer.differs(compile_tables(network))
    assert replayer.differs(tables)
