from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import DATA, oracle_files
from tests.mutants import TABLE_MUTANTS, TableMutant
from workflow_rl.engine.network import RED_ACTIONS, Network
from workflow_rl.engine.tables import compile_tables
from workflow_rl.errors import TraceError
from workflow_rl.fidelity.meander_check import meander_candidates
from workflow_rl.fidelity.replay import Replayer, ReplayResult, replay
from workflow_rl.fidelity.traces import TRACE_EXPLOITS, TRACE_PORTS, Trace, code_map, load_trace, translate_masks

EDITIONS = ("current", "leaderboard")


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_sample_of_recorded_games_is_replayed_without_a_mismatch(
    network: Network, samples: dict[str, Trace], edition: str
) -> None:
    result = replay(samples[edition], network, edition)
    assert result.steps == samples[edition]["blue_action"].size
    assert (result.mismatched_steps, result.first_mismatch) == (0, None)


@pytest.mark.parametrize(("edition", "steps"), [("current", 160_000), ("leaderboard", 30_000)])
def test_all_recorded_games_are_replayed_without_a_mismatch(network: Network, edition: str, steps: int) -> None:
    total = ReplayResult()
    for path in oracle_files(edition):
        total.add(replay(load_trace(path), network, edition))
    assert (total.steps, total.mismatched_steps, total.first_mismatch) == (steps, 0, None)


def test_the_wrong_edition_is_noticed_in_exactly_the_episodes_that_differ(network: Network) -> None:
    total = ReplayResult()
    for path in oracle_files("leaderboard"):
        total.add(replay(load_trace(path), network, "current"))
    assert total.mismatched_episodes == 73  # counted by the makers of the recordings


@pytest.mark.parametrize("mutant", TABLE_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_replay_notices_a_wrong_table_entry(network: Network, samples: dict[str, Trace], mutant: TableMutant) -> None:
    tables = compile_tables(network, mutant.edition)
    mutant.change(tables)
    assert Replayer(samples[mutant.edition], network).differs(tables)


FIELDS = (
    "obs", "reward", "red_action", "red_target", "red_success", "exploit", "exploit_result", "detect", "priv", "n_red",
    "n_removable", "decoys", "malware", "ot_running", "compromised", "red_ports", "obs0",
)  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_a_replay_notices_a_changed_value_in_every_array(
    network: Network, samples: dict[str, Trace], name: str
) -> None:
    trace = samples["current"].take([5])
    changed = trace[name].copy()
    if name in ("exploit", "exploit_result", "detect"):
        place = tuple(np.argwhere(changed >= 0)[0])
        changed[place] = 0 if changed[place] else 1
    elif name == "obs0":
        changed[0, 0] ^= 128
    elif name in ("priv", "n_red", "n_removable", "compromised", "decoys", "red_ports"):
        changed[0, 20, 12] = 0 if changed[0, 20, 12] else 1 if name != "red_ports" else 0x8001
    elif name == "reward":
        changed[0, 20] -= 0.1
    elif name == "obs":
        changed[0, 20, 0] ^= 128
    else:
        changed[0, 20] = changed[0, 20] ^ 1
    result = replay(Trace("changed", trace.arrays | {name: changed}), network)
    assert result.mismatched_steps > 0
    assert result.first_mismatch is not None
    assert result.first_mismatch.file == "changed"


def test_a_step_beyond_the_recorded_length_of_an_episode_is_not_compared(
    network: Network, samples: dict[str, Trace]
) -> None:
    trace = samples["current"].take([5])
    reward, n_steps = trace["reward"].copy(), trace["n_steps"].copy()
    reward[0, 50:], n_steps[0] = -99.0, 50
    result = replay(Trace("short", trace.arrays | {"reward": reward, "n_steps": n_steps}), network)
    assert (result.steps, result.mismatched_steps) == (50, 0)


def test_a_recording_is_refused_by_a_network_without_its_red_agents(
    network: Network, samples: dict[str, Trace]
) -> None:
    renamed = replace(network, red=replace(network.red, programs={"straight": network.red.programs["bline"]}))
    with pytest.raises(TraceError, match="cannot be replayed in network 'cage2'"):
        replay(samples["current"], renamed)


def test_the_first_mismatch_names_episode_step_and_values(network: Network, samples: dict[str, Trace]) -> None:
    trace = samples["current"].take([5, 6, 7])
    reward = trace["reward"].copy()
    reward[2, 40] -= 1
    reward[1, 60] -= 1
    result = replay(Trace("two", trace.arrays | {"reward": reward}), network)
    assert result.mismatched_steps == result.mismatched_episodes == 2
    assert result.mismatches_by_field == {"reward": 2}
    first = result.first_mismatch
    assert first is not None
    assert (first.episode, first.step) == (1, 60)
    assert first.fields["reward"].recorded == pytest.approx(first.fields["reward"].engine - 1)


def test_meander_picks_each_host_as_often_as_our_candidate_sets_predict(network: Network) -> None:
    """A candidate set that is too large would hold hosts that genuine CybORG never picks."""
    expected, variance, picked = np.zeros(13), np.zeros(13), np.zeros(13)
    for path in oracle_files("current"):
        trace = load_trace(path)
        masks = meander_candidates(trace, network)
        drawn = np.isin(
            trace["red_action"],
            [RED_ACTIONS.index("DiscoverNetworkServices"), RED_ACTIONS.index("ExploitRemoteService")],
        )
        members = masks[drawn][:, None] >> np.arange(13) & 1
        size = members.sum(axis=1, keepdims=True)
        several = size[:, 0] > 1
        chance = members[several] / size[several]
        expected += chance.sum(axis=0)
        variance += (chance * (1 - chance)).sum(axis=0)
        picked += np.bincount(trace["red_target"][drawn][several], minlength=13)
    possible = variance > 0
    z = (picked - expected)[possible] / np.sqrt(variance[possible])
    assert picked.sum() > 5_000
    assert np.abs(z).max() < 4
    assert picked[~possible].sum() == 0


def test_red_chooses_each_exploit_as_often_as_our_options_predict(network: Network) -> None:
    """An option too many would go unnoticed in a replay, which forces the choice; not in the frequencies."""
    tables, names = compile_tables(network)[0], [exploit.name for exploit in network.exploits]
    codes = code_map(TRACE_EXPLOITS, names)
    expected, variance, chosen = np.zeros(8), np.zeros(8), np.zeros(8)
    for path in oracle_files("current"):
        trace = load_trace(path)
        memory = translate_masks(trace["red_ports"], np.array([network.ports.index(port) for port in TRACE_PORTS]))
        for episode, step in np.argwhere(trace["exploit"] >= 0):  # an exploit does not change what red remembers
            options = int(tables["options"][memory[episode, step, trace["red_target"][episode, step]]])
            members = [e for e in range(8) if options >> e & 1]
            if len(members) > 1:
                chance = np.zeros(8)
                chance[members] = 0.25 / (len(members) - 1)
                chance[members[0]] = 0.75
                expected += chance
                variance += chance * (1 - chance)
                chosen[codes[trace["exploit"][episode, step]]] += 1
    assert chosen.sum() > 25_000
    assert np.abs((chosen - expected) / np.sqrt(variance)).max() < 4


def damaged(tmp_path: Path, **changes: np.ndarray | None) -> Path:
    arrays = dict(np.load(DATA / "sample-current.npz"))
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value
    path = tmp_path / "damaged.npz"
    np.savez(path, **arrays)
    return path


def test_a_file_that_is_no_trace_is_refused_in_one_sentence(tmp_path: Path) -> None:
    text, array, cut = tmp_path / "text.npz", tmp_path / "array.npy", tmp_path / "cut.npz"
    text.write_text("hello", "utf-8")
    np.save(array, np.zeros(3))
    cut.write_bytes((DATA / "sample-current.npz").read_bytes()[:20_000])
    flipped = tmp_path / "flipped.npz"
    content = bytearray((DATA / "sample-current.npz").read_bytes())
    content[9_000:9_100] = bytes(100)
    flipped.write_bytes(content)
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, blue_action=np.array([{}], object))
    for path in (text, array, cut, flipped, pickled, tmp_path / "missing.npz", tmp_path):
        with pytest.raises(TraceError) as error:
            load_trace(path)
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)


def test_a_trace_with_a_missing_array_or_impossible_values_is_refused(
    tmp_path: Path, samples: dict[str, Trace]
) -> None:
    action = samples["current"]["blue_action"].copy()
    action[3, 4] = 145
    cases: list[tuple[dict[str, np.ndarray | None], str]] = [
        ({"red_ports": None}, "array 'red_ports' is missing"),
        ({"blue_action": action}, "array 'blue_action' holds 145; allowed: 0 to 144"),
        ({"reward": np.zeros((3, 100))}, r"array 'reward' must have the shape \(96, 100\), not \(3, 100\)"),
        ({"reward": np.zeros((96, 100), np.int8)}, "array 'reward' has the wrong type int8"),
        ({"blue_action": np.zeros(0, np.uint8)}, "array 'blue_action' must have the shape"),
        ({"obs": np.zeros((96, 100, 7), np.int64)}, "array 'obs' has the wrong type int64"),
        ({"red_target": np.full((96, 100), -1, np.int8)}, "array 'red_target' does not fit array 'red_action'"),
        ({"n_steps": np.full(96, 101, np.uint16)}, "array 'n_steps' must be from 1 to 100"),
    ]
    for changes, complaint in cases:
        with pytest.raises(TraceError, match=complaint):
            load_trace(damaged(tmp_path, **changes))
