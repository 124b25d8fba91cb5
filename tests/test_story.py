"""Episodes told step by step, and watched in the terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import DATA, ROOT
from tests.helpers import assert_refused, run, run_json
from workflow_rl import CageVectorEnv
from workflow_rl.defenders.names import blue_named
from workflow_rl.defenders.protocol import reference_policy
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.state import allocate
from workflow_rl.engine.step import reset_envs, step_envs_with
from workflow_rl.engine.tables import compile_tables
from workflow_rl.envs.takeover import takeover_rows
from workflow_rl.fidelity.replay import Replayer
from workflow_rl.fidelity.traces import TRACE_RED_AGENTS, Trace
from workflow_rl.report.lesson import costs, lesson
from workflow_rl.report.story import BELIEFS, SEED, Episodes, Story, hosts_of, judge, red_in_words, story_of_trace
from workflow_rl.training.compliance import NO_TYPE

UNIVERSAL = DATA / "universal.safetensors"
ORDER = "enterprise,op_server,user,op_host,defender"
OTHER = "user,op_server,enterprise,op_host,defender"


@pytest.fixture(scope="module")
def episodes() -> Episodes:
    """A defender that follows another order than the one by which it is judged."""
    return Episodes(
        blue_named(str(UNIVERSAL), ORDER, load_network()), "bline", load_network(), workflow=OTHER, n_episodes=40
    )


def test_a_story_is_the_game_that_the_environment_plays(episodes: Episodes, network: Network) -> None:
    """Its actions, played again with the same seed, give its levels, beliefs and rewards."""
    story = episodes.tell(7)
    envs = CageVectorEnv(40, red_agent="bline", max_steps=None)
    seeds = np.random.SeedSequence([SEED, 0, 5]).generate_state(40, np.uint64)
    envs.reset(seed=seeds.tolist())
    names = [network.action_name(action) for action in range(145)]
    total = 0.0
    for step, frame in enumerate(story.frames):
        actions = np.zeros(40, int)
        actions[7] = names.index(frame.blue)
        observations, rewards, _, _, infos = envs.step(actions)
        bits = observations[7].reshape(13, 4)
        total += rewards[7]
        assert frame.step == step + 1
        assert frame.level == infos["red_level"][7].tolist()
        assert frame.belief == [BELIEFS.index(believed(row[2:].tolist())) for row in bits]
        assert frame.activity == (bits[:, 0] + 2 * bits[:, 1]).astype(int).tolist()
        assert frame.reward == round(float(rewards[7]), 1)
        assert frame.total == pytest.approx(round(total, 1))
    assert story.total == pytest.approx(round(float(episodes.returns[7]), 1))


def believed(bits: list[float]) -> str:
    return {(0, 0): "clean", (1, 0): "unknown", (0, 1): "user", (1, 1): "privileged"}[int(bits[0]), int(bits[1])]


def test_fixes_are_judged_by_the_workflow_and_what_was_skipped_is_named(network: Network) -> None:
    before = np.zeros(13, bool)
    remove, restore = network.action_index("Remove", "User1"), network.action_index("Restore", "Enterprise1")
    user, enterprise = network.unit_types.index("user"), network.unit_types.index("enterprise")
    assert judge(network, OTHER, 0, before, NO_TYPE) is None
    assert judge(network, "", remove, before, NO_TYPE) is None
    found = judge(network, OTHER, remove, before, NO_TYPE)
    assert found is not None
    assert (found.verdict, found.unit_type, found.due) == ("idle", "user", "")
    before[[2, 9]] = True  # Enterprise1, User1
    verdicts = [judge(network, OTHER, *fix) for fix in ((remove, before, user), (restore, before, enterprise))]
    assert [(v.verdict, v.unit_type, v.due) for v in verdicts if v] == [
        ("in order", "user", "user"), ("violation", "enterprise", "user"),
    ]  # fmt: skip
    found = judge(network, OTHER, restore, before, NO_TYPE)
    assert found is not None
    assert (found.verdict, found.due) == ("idle", "user")


def test_the_verdicts_add_up_to_the_counts_of_compliance(episodes: Episodes) -> None:
    from workflow_rl.training.compliance import Compliance
    from workflow_rl.training.workflow import Workflow

    network = episodes.network
    order = np.tile(Workflow.parse(OTHER).indices(), (40, 1))
    compliance = Compliance(network, order, 0.0)
    from workflow_rl.engine.tables import fixed_unit_types

    fixed = fixed_unit_types(network)
    for actions, repaired, before in zip(episodes.actions, episodes.repaired, episodes.before, strict=True):
        compliance.update(fixed[actions], repaired, before)
    assert compliance.episodes["violations"].sum() > 0
    for episode in range(40):
        in_order, violations, idle = episodes.tell(episode).counts
        counts = compliance.episodes[episode]
        assert violations == counts["violations"]
        assert in_order == counts["repairs"] - counts["violations"]
        assert idle == counts["idle"]


def test_in_a_recorded_game_repairs_are_those_of_the_engine(samples: dict[str, Trace], network: Network) -> None:
    """A fix of a host that is held before and free after it is one; of those that red takes back the engine knows."""
    trace, verdicts = samples["current"], set()
    hosts = network.host_names
    for episode in range(0, trace.n_episodes, 4):
        frames = story_of_trace(trace, episode, network, "current", OTHER).frames
        for before, after in pairwise(frames):
            verb, _, host = after.blue.partition(" ")
            if after.fix is None:
                assert verb not in ("Remove", "Restore")
                continue
            verdicts.add(after.fix.verdict)
            held, free = before.level[hosts.index(host)] > 0 and host != "User0", after.level[hosts.index(host)] == 0
            if held and free:
                assert after.fix.verdict != "idle"
            if not held:
                assert after.fix.verdict == "idle"
    assert verdicts == {"in order", "violation", "idle"}


def test_median_best_worst_and_first_violation_are_what_they_say(episodes: Episodes) -> None:
    stories = {story.why: story for story in episodes.choose()}
    returns = np.sort(episodes.returns)
    assert stories["best"].total == pytest.approx(returns[-1], abs=0.05)
    assert stories["worst"].total == pytest.approx(returns[0], abs=0.05)
    assert stories["median"].total == pytest.approx(returns[20], abs=0.05)
    first = episodes.first_violation()
    assert first is not None
    assert stories["first violation"].counts[1] > 0
    assert all(episodes.tell(episode).counts[1] == 0 for episode in range(first))
    asleep = Episodes(reference_policy("sleep", load_network()), "bline", load_network(), workflow=ORDER, n_episodes=3)
    assert [story.why for story in asleep.choose()] == ["worst", "median", "best"]
    assert [story.why for story in episodes.choose()] == ["first violation", "worst", "median", "best"]


def test_the_lesson_of_an_episode_names_every_cost_and_the_first_violation(episodes: Episodes) -> None:
    network = episodes.network
    for episode in range(len(episodes.returns)):
        story = episodes.tell(episode)
        found = costs(story, network)
        assert sum(found.values()) == pytest.approx(-story.total)
        assert list(found.values()) == sorted(found.values(), reverse=True)
    story = next(story for story in episodes.choose() if story.why == "first violation")
    step, fix = next((f.step, f.fix) for f in story.frames if f.fix and f.fix.verdict == "violation")
    said = lesson(story, network)
    assert said.startswith(f"In step {step} {fix.unit_type} was repaired although {fix.due} was due")
    assert f"It cost {-story.total:.1f}: " in said
    asleep = Episodes(reference_policy("sleep", network), "bline", network, n_episodes=3).choose()[0]
    down = sum(frame.service_down for frame in asleep.frames)
    assert f"OTService was down for {down} steps ({10 * down:.1f})" in lesson(asleep, network)
    nothing = Episodes(reference_policy("sleep", network), "sleep", network, n_episodes=1).choose()[0]
    assert lesson(nothing, network) == "It cost nothing."


def test_a_recorded_game_is_told_as_it_was_recorded(samples: dict[str, Trace], network: Network) -> None:
    trace = samples["current"]
    for episode in (0, 45, 80):
        story = story_of_trace(trace, episode, network, "current")
        assert story.red_agent == TRACE_RED_AGENTS[trace["red_agent"][episode]]
        assert [frame.level for frame in story.frames] == trace["priv"][episode].tolist()
        assert story.total == pytest.approx(trace["reward"][episode].sum(), abs=0.05)
        wanted = [network.action_name(int(action)) for action in trace["blue_action"][episode]]
        assert [frame.blue for frame in story.frames] == wanted


def test_the_engine_and_a_recording_tell_the_same_story(samples: dict[str, Trace], network: Network) -> None:
    """Every recorded step in words, levels and decoys, from the recording and from the engine's state."""
    trace = samples["current"].take([0, 20, 45, 60, 80])
    replayer, tables = Replayer(trace, network), compile_tables(network, "current")
    told = [story_of_trace(trace, episode, network, "current") for episode in range(5)]
    states, rewards = allocate(5), np.zeros(5)
    from workflow_rl.engine.network import RED_AGENTS

    states["red"] = [RED_AGENTS.index(story.red_agent) for story in told]
    states["green_acts"] = 1
    reset_envs(states, tables, takeover_rows(0, 5), np.ones(5, bool), np.zeros(5, np.uint64), True)
    for step in range(100):
        step_envs_with(states, tables, replayer.actions[:, step], replayer.draws[:, step], rewards)
        for episode, story in enumerate(told):
            frame, hosts = story.frames[step], hosts_of(network, states[episode])
            assert frame.red == red_in_words(network, states[episode])
            for name in ("level", "belief", "activity"):
                assert getattr(frame, name) == getattr(hosts, name), (name, step)
            assert [sorted(names) for names in frame.decoys] == [sorted(names) for names in hosts.decoys]


# ---------------------------------------------------------------------------------------------------- in the terminal


def test_watch_prints_a_line_per_step_where_there_is_no_terminal() -> None:
    done = run("watch", UNIVERSAL, "--workflow", ORDER, "--episode", "3")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 102
    assert "workflow enterprise,op_server" in lines[0]
    assert lines[1].startswith("  1  blue: ")
    assert lines[-1].startswith("Return -")
    assert run("watch", UNIVERSAL, "--workflow", ORDER, "--episode", "3").stdout == done.stdout


def test_watch_says_at_the_end_what_went_wrong(network: Network) -> None:
    done = run("watch", "sleep", "--red-agent", "bline", "--episode", "worst")
    story = Episodes(reference_policy("sleep", network), "bline", network).choose()[0]
    assert done.stdout.splitlines()[-1].endswith(f"after 100 steps. {lesson(story, network)}")


def test_watch_tells_the_same_story_as_json() -> None:
    found = run_json("watch", "reactive-restore", "--red-agent", "meander", "--episode", "best", "--seed", "4")
    games = Episodes(reference_policy("reactive-restore", load_network()), "meander", load_network(), seed=4)
    (story,) = [story for story in games.choose() if story.why == "best"]
    assert [frame["blue"] for frame in found["frames"]] == [frame.blue for frame in story.frames]
    assert found["why"] == "reactive-restore: best of 200 episodes"
    assert isinstance(story, Story)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nobody"], "unknown policy 'nobody'"),
        (["sleep", "--episode", "funniest"], "unknown episode 'funniest'; allowed: median, best, worst, violation."),
        (["sleep", "--red-agent", "bline,meander"], "unknown red agent 'bline,meander'"),
        (["champion", "--episode", "violation"], "champion follows no workflow; say by which one it is to be judged"),
        (["sleep", "--episode", "9999999"], "episode must be at most 99999, not 9999999."),
        (["sleep", "--speed", "0"], "the speed must be from 0.01 to 1000 steps per second, not 0.0."),
        ([UNIVERSAL], "the policy follows any workflow: say which one with --workflow."),
        ([DATA / "sample-current.npz", "--episode", "5000"], "episode 5000 is not in"),
        ([DATA / "sample-current.npz", "--red-agent", "bline"], "a recorded game has its own red agent"),
        (["nowhere.npz"], "nowhere.npz: no such file."),
    ],
)
def test_what_cannot_be_watched_is_refused(arguments: list[str | Path], complaint: str) -> None:
    assert_refused(run("watch", *arguments), complaint)


def test_watch_plays_in_a_terminal_and_obeys_its_keys() -> None:
    """Pause, to the end, a step back, leave."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "workflow_rl.cli", "watch", str(DATA / "sample-current.npz"), "--speed", "1"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment, cwd=ROOT)
    os.close(follower)
    seen = read_until(leader, "step 1 of 100")
    for key, expected in ((" ", "step 1 of 100"), ("\x1b[F", "step 100 of 100"), ("\x1b[D", "step 99 of 100")):
        os.write(leader, key.encode())
        seen += read_until(leader, expected)
    os.write(leader, b"q")
    seen += read_until(leader, "after 100 steps.")
    assert process.wait(timeout=20) == 0
    os.close(leader)
    assert "true access" in seen
    assert "Op_Server0" in seen


def read_until(terminal: int, words: str, seconds: float = 40.0) -> str:
    """What appears on the terminal until some words do."""
    text, end = "", time.monotonic() + seconds
    while words not in text:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"{words!r} did not appear in {text[-2000:]!r}"
        text += os.read(terminal, 65536).decode(errors="replace")
    return text
