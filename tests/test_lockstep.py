"""The recorder tells the truth, and the engine keeps step with genuine CybORG while it plays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from tests.conftest import DATA
from tests.helpers import assert_refused, run, run_json
from workflow_rl import CyborgVectorEnv
from workflow_rl.defenders.names import LIVE_BLUES, blue_named
from workflow_rl.defenders.protocol import reference_policy
from workflow_rl.engine.network import GREEN_AGENTS, RED_AGENTS, Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.tables import compile_tables, fixed_hosts
from workflow_rl.envs.blue import Policy
from workflow_rl.fidelity.cyborg_recorder import Recorder
from workflow_rl.fidelity.lockstep import LiveGames, live_lockstep, record_games
from workflow_rl.fidelity.replay import Replayer, replay
from workflow_rl.fidelity.traces import TRACE_RED_AGENTS
from workflow_rl.training.compliance import FACTS

pytestmark = pytest.mark.needs("csle_cyborg")

PER_RED = 20  # live games; `workflow-rl replay --live N` plays more


@pytest.mark.parametrize("red", TRACE_RED_AGENTS)
def test_the_recorder_writes_down_what_the_recordings_of_others_say(red: str) -> None:
    """From the seed and the actions of a recorded game alone it gets every array of the recording."""
    recorded = dict(np.load(DATA / "sample-current.npz"))
    rows = np.flatnonzero(recorded["red_agent"] == TRACE_RED_AGENTS.index(red))[:8:2]
    compared: set[str] = set()
    with closing(CyborgVectorEnv(2, red_agent=red, max_steps=None, recorder=Recorder)) as envs:
        for pair in rows.reshape(-1, 2):
            envs.reset(seed=recorded["seed"][pair].tolist())
            for step in range(100):
                record = envs.step(recorded["blue_action"][pair, step].astype(int))[-1]["record"]
                for name in (name for name in record if not name.startswith("_")):
                    assert np.array_equal(record[name], recorded[name][pair, step]), (name, step)
                    compared.add(name)
    assert len(compared) == 19
    assert {"detect", "exploit_result", "red_ports", "n_removable", "collision"} <= compared


@pytest.mark.parametrize("games", [6, pytest.param(PER_RED, marks=pytest.mark.long)])
@pytest.mark.parametrize("red", RED_AGENTS)
def test_the_engine_keeps_step_with_genuine_cyborg(red: str, games: int, network: Network) -> None:
    """Random, ruled and trained blue, green asleep and acting."""
    blues = {name: blue_named(name, "", load_network()) for name in LIVE_BLUES}
    found = live_lockstep(LiveGames(games, (red,), seed=1000, jobs=2), blues, network)
    assert (found.episodes, found.steps) == (games, 100 * games)
    assert found.mismatched_steps == 0, found.first_mismatch
    assert {game.green_agent for game in found.games} == {"sleep", "active"}
    assert {game.blue for game in found.games} == set(LIVE_BLUES)
    assert all(game.episodes >= games // 6 for game in found.games)


class Noting(CyborgVectorEnv):
    """Genuine CybORG that keeps what its infos said."""

    said: list[dict[str, Any]]

    def reset(self, **options: Any) -> Any:
        self.said = []
        return super().reset(**options)

    def step(self, actions: Any) -> Any:
        played = super().step(actions)
        self.said.append(played[-1])
        return played


def fixer(rule: Policy | None) -> Policy:
    """Fixes hosts at random; with a rule in three of ten steps, and whenever the rule would do nothing."""
    fixes = np.flatnonzero(fixed_hosts(load_network()) >= 0)

    def act(packed: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        fix, often = generator.choice(fixes, size=len(packed)), generator.random(len(packed)) < 0.3
        ruled = fix if rule is None else rule(packed, generator)
        return np.where(often | (ruled == 0), fix, ruled)

    return act


FIXERS = {"random": fixer(None), "reactive-remove": reference_policy("reactive-remove", load_network())}
FIXERS |= {
    f"{rule} or random": fixer(reference_policy(rule, load_network()))
    for rule in ("reactive-remove", "reactive-restore")
}


@pytest.mark.parametrize("games", [4, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.parametrize("red", ["bline", "meander"])
def test_cyborgs_infos_and_the_engine_agree_in_every_step_on_what_was_repaired(
    red: str, games: int, network: Network
) -> None:
    """By identity of red's sessions there, by the state between blue's and red's move here."""
    hosts, rows, columns = fixed_hosts(network), np.arange(games)[:, None], np.arange(100)
    tables = compile_tables(network)
    fixes = repairs = idle = back = 0
    for number, (name, blue) in enumerate(FIXERS.items()):
        green = GREEN_AGENTS[number % 2]
        with closing(Noting(games, red_agent=red, green_agent=green, max_steps=None, recorder=Recorder)) as envs:
            trace = record_games(envs, blue, red, np.arange(games, dtype=np.uint64) + 5000, 100, ["0"])
            told = {fact: np.stack([infos[fact] for infos in envs.said], axis=1) for fact in (*FACTS, "red_level")}
        assert replay(trace, network).mismatched_steps == 0
        freed, target = Replayer(trace, network).repaired(tables), hosts[trace["blue_action"]]
        fixed, repaired = told["fixed_unit_type"], told["repaired_unit_type"]
        assert np.array_equal(fixed >= 0, target >= 0)
        assert np.array_equal(freed, np.where(repaired >= 0, 1 << target.clip(0).astype(np.int16), 0)), name
        assert np.array_equal(repaired, np.where(freed != 0, fixed, -1))
        held = (target >= 0) & told["compromised_before"][rows, columns, target]
        assert not (repaired >= 0)[~held].any()
        fixes, repairs = fixes + int((fixed >= 0).sum()), repairs + int((repaired >= 0).sum())
        idle += int((held & (repaired < 0)).sum())  # red was there and stayed
        back += int(((repaired >= 0) & (told["red_level"][rows, columns, target] > 0)).sum())  # red was there at once
    assert fixes > 300 * games
    assert repairs > 50 * games
    assert idle > 5 * games
    assert back > 0 or games < 10


LIES: dict[str, Callable[[Any], Any]] = {
    "detect": lambda value: 1 - value if value >= 0 else value,
    "exploit": lambda value: (value + 1) % 8 if value >= 0 else value,
    "red_target": lambda value: (value + 1) % 3 if value >= 0 else value,
    "green_target": lambda value: 9 if value < 0 else -1,
    "reward": lambda value: value - 0.1,
    "priv": lambda value: np.where(value == 2, 1, value),
}


@pytest.mark.parametrize("field", LIES)
def test_a_lockstep_notices_a_single_false_chance_or_fact(
    field: str, monkeypatch: pytest.MonkeyPatch, network: Network
) -> None:
    record, told = Recorder.record, list[str]()

    def lie(recorder: Recorder, *facts: Any) -> dict[str, Any]:
        row = record(recorder, *facts)
        false = np.asarray(LIES[field](row[field]), row[field].dtype)
        if not told and not np.array_equal(false, row[field]):
            told.append(field)
            row[field] = false
        return row

    monkeypatch.setattr(Recorder, "record", lie)
    live = LiveGames(1, ("bline",), ("active",), 60, seed=5)
    found = live_lockstep(live, {"random": reference_policy("random", load_network())}, network)
    assert told == [field]
    assert found.mismatched_steps > 0
    assert found.first_mismatch is not None


def test_the_same_seed_plays_the_same_live_games_whatever_the_number_of_processes(network: Network) -> None:
    blues = {"random": reference_policy("random", load_network())}
    lives = [LiveGames(3, ("meander",), ("sleep",), 12, seed=3, jobs=jobs) for jobs in (1, 3)]
    found = [live_lockstep(live, blues, network) for live in lives]
    assert found[0] == found[1]
    assert found[0].steps == 36


def test_live_games_are_played_from_the_command_line() -> None:
    found = run_json("replay", "--live", "2", "--red-agent", "meander", "--blue", "reactive-restore", "--jobs", "1")
    assert (found["episodes"], found["steps"], found["mismatched_steps"]) == (2, 200, 0)
    assert found["cyborg"] == "csle-cyborg 0.0.3"
    assert [game["green_agent"] for game in found["games"]] == ["sleep", "active"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--live", "0"], "the number of games must be from 1 to 1000000, not 0."),
        (["--live", "3", "tests/data/sample-current.npz"], "give either files or --live, not both."),
        ([], "give the files of recorded games, or --live with a number of games."),
        (["--live", "3", "--edition", "leaderboard"], "with --live the edition is that of the CybORG at hand"),
        (["--live", "3", "--green-agent", "busy"], "unknown green agent 'busy'; allowed: sleep, active."),
        (["--live", "3", "--blue", "nobody"], "unknown policy 'nobody'"),
        (["--live", "3", "--seed", "-1"], "a seed must be a whole number"),
        (["--live", "2", "--seed", "18446744073709551615"], "not 18446744073709551616."),
        (["tests/data/sample-current.npz", "--red-agent", "bline"], "need --live."),
    ],
)
def test_live_games_that_cannot_be_are_refused(arguments: list[str], complaint: str) -> None:
    assert_refused(run("replay", *arguments), complaint)
