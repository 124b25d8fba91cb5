"""Incidents: red plays before blue takes over, everywhere in the same way, and no takeover is the challenge."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.helpers import assert_refused, games, run, run_json
from workflow_rl import CageVectorEnv, CyborgVectorEnv, ParallelEnvWrapper
from workflow_rl.defenders.export import export_agent
from workflow_rl.defenders.protocol import episode_returns, reference_policy
from workflow_rl.engine.network import RED_AGENTS
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.cyborg_env import CyborgEnv
from workflow_rl.envs.inference import begin, remember
from workflow_rl.envs.memory import (
    ANY_HOST,
    B_LINE,
    CLEANING,
    MEANDER,
    MEMORY_DTYPE,
    USER4,
    forget,
    unclean_hosts,
)
from workflow_rl.envs.views import View, with_view
from workflow_rl.errors import UserError
from workflow_rl.fidelity.lockstep import LiveGames, live_lockstep
from workflow_rl.presets import command_of, make_config
from workflow_rl.report.story import Episodes
from workflow_rl.runs import read_config
from workflow_rl.training.train_task import check_task
from workflow_rl.training.trainer import train_workflow

ORDER = "op_server,enterprise,user,defender,op_host"
cyborg = pytest.mark.needs("csle_cyborg")


def slept(n: int, steps: int, **options: Any) -> tuple[CageVectorEnv, np.ndarray, dict[str, Any]]:
    """Environments in which blue itself sleeps; the last observations and infos."""
    envs = CageVectorEnv(n, max_steps=None, **options)
    observations, infos = envs.reset(seed=7)
    for _ in range(steps):
        observations, _, _, _, infos = envs.step(np.zeros(n, int))
    return envs, observations, infos


@pytest.mark.parametrize("red", RED_AGENTS)
@pytest.mark.parametrize("green", ["sleep", "active"])
def test_blue_takes_over_what_it_would_have_seen_asleep(red: str, green: str) -> None:
    asleep, seen, infos = slept(40, 25, red_agent=red, green_agent=green)
    envs = CageVectorEnv(40, red_agent=red, green_agent=green, takeover=25)
    observations, start = envs.reset(seed=7)
    states, wanted = envs.snapshot(), asleep.snapshot()
    assert (states["step"] == 0).all()
    wanted["step"] = 0
    assert np.array_equal(states, wanted)
    assert np.array_equal(observations, seen)
    assert np.array_equal(start["red_level"], infos["red_level"])
    assert (start["takeover"] == 25).all()
    assert not start["compromised_before"].any()
    actions = np.random.default_rng(0).integers(145, size=(20, 40))
    for row in actions:
        ours, theirs = envs.step(row), asleep.step(row)
        assert np.array_equal(ours[0], theirs[0])
        assert np.array_equal(ours[1], theirs[1])
        assert np.array_equal(ours[4]["repaired_unit_type"], theirs[4]["repaired_unit_type"])


def test_a_takeover_after_no_steps_is_the_challenge() -> None:
    plain, none = CageVectorEnv(5, red_agent="meander"), CageVectorEnv(5, red_agent="meander", takeover="0")
    assert np.array_equal(plain.reset(seed=1)[0], none.reset(seed=1)[0])
    for row in np.random.default_rng(1).integers(145, size=(210, 5)):
        plain.step(row)
        none.step(row)
        assert np.array_equal(plain.snapshot(), none.snapshot())


def test_a_range_is_drawn_for_each_episode_from_the_environments_own_chance() -> None:
    envs, few = (CageVectorEnv(n, max_steps=3, takeover="4-9") for n in (300, 2))
    drawn = [infos["takeover"] for infos in (envs.reset(seed=5)[1], few.reset(seed=5)[1])]
    assert np.array_equal(drawn[0][:2], drawn[1])
    assert set(drawn[0].tolist()) == set(range(4, 10))
    for _ in range(3):
        infos = envs.step(np.zeros(300, int))[4]
    assert np.array_equal(infos["final_info"]["takeover"], drawn[0])  # which episode it was that ended
    assert set(infos["takeover"].tolist()) == set(range(4, 10))
    assert not np.array_equal(infos["takeover"], drawn[0])


def test_a_list_goes_round_the_environments_and_a_reset_can_replace_it() -> None:
    envs = CageVectorEnv(5, takeover="0,3")
    assert envs.reset(seed=0)[1]["takeover"].tolist() == [0, 3, 0, 3, 0]
    only = np.array([True, True, False, False, False])
    assert envs.reset(seed=0, options={"takeover": "7", "reset_mask": only})[1]["takeover"].tolist() == [7, 7, 0, 3, 0]


def test_steps_count_from_the_takeover_in_every_face_of_the_environment() -> None:
    envs = CageVectorEnv(2, max_steps=6, takeover=11)
    envs.reset(seed=0)
    ends = [envs.step([0, 0])[3].tolist() for _ in range(12)]
    assert ends == [[step % 6 == 5] * 2 for step in range(12)]
    env = gymnasium.make("Cage2-v0", takeover=30, max_steps=4)
    observation, info = env.reset(seed=3)
    assert observation.any()
    assert info["takeover"] == 30
    assert [env.step(0)[3] for _ in range(4)] == [False, False, False, True]
    wrapper = ParallelEnvWrapper(3, takeover=30)
    assert np.array_equal(wrapper.reset(seed=3)[0], observation)


def test_a_checkpoint_of_the_environments_goes_on_with_the_same_takeovers() -> None:
    envs, other = (CageVectorEnv(4, max_steps=5, takeover="0-20") for _ in range(2))
    envs.reset(seed=2)
    envs.step([0] * 4)
    other.restore_state_arrays(envs.state_arrays())
    for _ in range(9):
        ours, theirs = envs.step([1] * 4), other.step([1] * 4)
        assert np.array_equal(ours[0], theirs[0])
        assert np.array_equal(ours[4]["takeover"], theirs[4]["takeover"])


def test_a_memory_begins_with_a_look_at_what_is_taken_over() -> None:
    envs = with_view(CageVectorEnv(30, takeover=30, max_steps=2), View("memory"))
    envs.reset(seed=0)
    seen = np.zeros(1, MEMORY_DTYPE)
    for row, packed in enumerate(envs.envs.packed_observations[:, 0]):
        begin(seen[0], int(packed))
        assert envs.memories[row] == seen[0]
    begin(seen[0], 0)
    fresh = np.zeros(1, MEMORY_DTYPE)
    forget(fresh[0])
    assert seen[0] == fresh[0]  # nothing to see is the start of the challenge
    begin(seen[0], 1 << (4 * USER4))
    remember(fresh[0], 0, 1 << (4 * USER4))
    assert seen[0] == fresh[0]  # a scan of a user host tells no more than in a first step


@pytest.mark.parametrize(("red_agent", "steps", "foe"), [("bline", 30, B_LINE), ("meander", 40, MEANDER)])
def test_the_first_look_at_an_attack_tells_who_it_is_and_what_it_holds(red_agent: str, steps: int, foe: int) -> None:
    envs = with_view(CageVectorEnv(500, red_agent=red_agent, takeover=steps), View("memory"))
    _, infos = envs.reset(seed=1)
    assert (envs.memories["foe"] == foe).mean() > 0.98
    assert (envs.memories["incident"] == CLEANING).all()
    held = (infos["red_level"].astype(int) > 0) @ (1 << np.arange(13)) & ANY_HOST
    unclean = np.array([unclean_hosts(memory) for memory in envs.memories])
    assert (held & ~unclean == 0).mean() > 0.94
    if foe == B_LINE:
        assert (held & ~unclean == 0).all()
        assert (envs.memories["line"] == 14).all()
        assert (held >> envs.memories["user"] & 1).mean() > 0.95


@pytest.mark.parametrize("steps", [3, 4, 6, 8, 10, 12, 14, 16])
def test_b_lines_position_is_known_from_the_first_look(steps: int) -> None:
    envs = with_view(CageVectorEnv(500, red_agent="bline", takeover=steps), View("memory"))
    envs.reset(seed=2)
    truth = envs.snapshot()["line"]
    assert (envs.memories["foe"] != MEANDER).all()
    assert (np.abs(envs.memories["line"] - truth) <= 1).mean() > 0.85


@cyborg
def test_on_genuine_cyborg_blue_sleeps_until_the_takeover_and_a_checkpoint_knows_it() -> None:
    asleep, env = CyborgEnv("meander"), CyborgEnv("meander", takeover=9, max_steps=5)
    asleep.reset(seed=4)
    for _ in range(9):
        observation, *_, infos = asleep.step(0)
    taken, start = env.reset(seed=4)
    assert np.array_equal(taken, observation)
    assert np.array_equal(start["red_level"], infos["red_level"])
    assert start["takeover"] == 9
    env.step(3)
    again = CyborgEnv("meander", takeover="1-50")
    again.progress = env.progress
    assert again.takeover == "1-50"  # of the episodes to come
    assert np.array_equal(again.step(0)[0], env.step(0)[0])
    assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


@cyborg
def test_takeovers_of_many_cyborgs_are_drawn_by_seed_and_can_be_replaced() -> None:
    with closing(CyborgVectorEnv(2, takeover="1-9,0")) as envs:
        first = envs.reset(seed=[1, 2])[1]["takeover"].tolist()
        assert first[0] in range(1, 10)
        assert first[1] == 0
        assert envs.reset(seed=[1, 2])[1]["takeover"].tolist() == first
        assert envs.reset(seed=[1, 2], options={"takeover": "2"})[1]["takeover"].tolist() == [2, 2]
        with pytest.raises(UserError, match="3 takeovers were given for 2 environments"):
            envs.reset(options={"takeover": "1,2,3"})


@cyborg
@pytest.mark.parametrize("games", [6, pytest.param(36, marks=pytest.mark.long)])
def test_the_engine_keeps_step_through_the_takeover(games: int) -> None:
    """The steps before it are compared too, and blue's view at the takeover is that of the last of them."""
    blues = {name: reference_policy(name, load_network()) for name in ("random", "reactive-remove")}
    live = LiveGames(games, seed=50, jobs=2, max_steps=20, takeover="0-60")
    found = live_lockstep(live, blues, load_network())
    assert found.mismatched_steps == 0, found.first_mismatch
    assert found.steps > 30 * games


def test_what_an_episode_returns_begins_with_the_takeover() -> None:
    """A sleeping blue after 30 steps of B_line: the service is down and stays so."""
    returns = episode_returns(reference_policy("sleep", load_network()), games("bline", takeover="30"), 50, 0, (1, 10))
    assert (returns[:, 0] > -14).all()
    assert (returns[:, 1] < -50).all()


def test_games_of_an_evaluation_do_not_depend_on_how_many_are_played_at_once() -> None:
    policy, mixed = reference_policy("reactive-restore", load_network()), games("bline", takeover="0,10-40")
    many, few = (episode_returns(policy, mixed, n, 3, (5, 20)) for n in (7, 4))
    assert np.array_equal(many[:4], few)


def test_a_story_begins_with_what_red_holds_and_what_it_costs() -> None:
    story = Episodes(
        reference_policy("sleep", load_network()), "bline", load_network(), workflow=ORDER, n_episodes=3, takeover="30"
    ).tell(0)
    first = story.frames[0]
    assert (first.step, first.blue, first.reward, first.service_down) == (0, "takes over after 30 steps", 0.0, True)
    assert first.red == "holds, with the cost per step: op_server (11.0), enterprise (2.0), user (0.1)"
    assert story.frames[1].reward == pytest.approx(-13.1)
    assert story.n_steps == 100
    assert (
        Episodes(reference_policy("sleep", load_network()), "bline", load_network(), n_episodes=3)
        .tell(0)
        .frames[0]
        .step
        == 1
    )


@pytest.mark.parametrize(
    ("takeover", "sentence"),
    [
        ("-1", "not '-1'"),
        ("x", "not 'x'"),
        ("60-10", "must start with the smaller number, not '60-10'"),
        ("10001", "at most 10000 steps, not 10001"),
        ("", "not ''"),
        ("1.5", "not '1.5'"),
    ],
)
def test_a_takeover_that_is_none_is_refused(takeover: str, sentence: str) -> None:
    for make in (lambda: CageVectorEnv(2, takeover=takeover), lambda: make_config(takeover=takeover)):
        with pytest.raises(UserError, match="takeover") as caught:
            make()
        assert sentence in str(caught.value)
    assert_refused(run("watch", "expert", f"--takeover={takeover}"), sentence)


def test_a_policy_knows_the_takeover_it_was_trained_for(tmp_path: Path) -> None:
    place = tmp_path / "run"
    size = ("--n-envs", "10", "--max-episodes", "2", "--min-episodes", "1", "--n-eval-episodes", "20")
    trained = run_json(
        "train", "--preset", "parallel-25", *size, "--workflow", ORDER, "--takeover", "30", "--run-dir", place
    )
    own = run_json("evaluate", place, "--red-agent", "bline", "--episodes", "20")
    assert own["takeover"] == "30"
    free = run_json("evaluate", place, "--red-agent", "bline", "--episodes", "20", "--takeover", "0")
    assert own["cells"]["bline"]["30"]["mean"] < free["cells"]["bline"]["30"]["mean"]
    assert trained["mean_return"] < -100
    story = run_json("watch", place, "--episode", "0")
    assert story["frames"][0]["blue"] == "takes over after 30 steps"
    assert_refused(run("evaluate", place, "--protocol", "challenge", "--takeover", "5"), "has no takeover")
    exported = export_agent(str(place), tmp_path / "agent")
    assert exported["takeover"] == "30"
    assert "red plays 30 steps before blue takes over" in (tmp_path / "agent" / "README.md").read_text()


def test_what_a_run_says_of_itself_names_the_takeover(tmp_path: Path) -> None:
    size = ("--n-envs", "5", "--max-episodes", "1", "--min-episodes", "1", "--n-eval-episodes", "20")
    options = ("--workflow", ORDER, "--takeover", "30", "--no-guard", "--warm-start", "none")
    run_json("train", *size, *options, "--run-dir", tmp_path / "run")
    assert run_json("runs", "--folder", tmp_path)["runs"][0]["red_agent"] == "bline, takeover after 30 steps"
    command = command_of(read_config(tmp_path / "run"))
    assert "--takeover 30" in command
    assert "--no-guard" in command
    assert "--view" not in command  # the incident's own
    shown = run("evaluate", tmp_path / "run", "--episodes", "5").stdout
    assert "blue takes over after 30 steps" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"takeover": "0,1,2", "n_envs": 2}, "n_envs 2 is too small for 3 takeovers"),
        ({"takeover": "0,1,2", "n_eval_episodes": 2}, "n_eval_episodes 2 is too small for 3 takeovers"),
    ],
)
def test_a_task_that_cannot_be_is_refused_before_it_starts(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        check_task(make_config(**values), load_network())
    assert sentence in str(caught.value)


def test_a_checkpoint_from_before_there_were_takeovers_still_opens() -> None:
    envs = CageVectorEnv(3)
    envs.reset(seed=0)
    arrays = {name: array for name, array in envs.state_arrays().items() if name != "takeovers"}
    envs.step([0] * 3)
    envs.restore_state_arrays(arrays)
    assert (envs.snapshot()["step"] == 0).all()


def test_a_training_on_a_range_of_takeovers_gives_the_same_policy_again() -> None:
    config = make_config("parallel-25", workflow=ORDER, takeover="0-40", n_envs=8, max_episodes=3, min_episodes=1)
    first, second = (train_workflow(config) for _ in range(2))
    assert first.mean_return == second.mean_return
    assert first.compliance == second.compliance
