from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_rl import CageEnv, CageVectorEnv, ParallelEnvWrapper, UserError
from workflow_rl.scenario import RED_AGENTS, Scenario

REDS = st.sampled_from([*RED_AGENTS, "bline,meander", "sleep,meander,bline"])
EDITIONS = st.sampled_from(["current", "leaderboard"])
GREENS = st.sampled_from(["sleep", "active"])
SEEDS = st.integers(0, 2**64 - 1)


def same(left: Any, right: Any) -> bool:
    """Are two infos, arrays or tuples of them the same, Nones included?"""
    if isinstance(left, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray) and left.dtype == object:
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return np.array_equal(left, right)


@pytest.mark.parametrize("red_agent", RED_AGENTS)
def test_gymnasium_accepts_the_single_environment(red_agent: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("Cage2-v0", red_agent=red_agent).unwrapped, skip_render_check=True)


def test_make_and_make_vec_know_the_environment() -> None:
    env, envs = gymnasium.make("Cage2-v0"), gymnasium.make_vec("Cage2-v0", num_envs=7, red_agent="meander")
    assert isinstance(env.unwrapped, CageEnv)
    assert isinstance(envs.unwrapped, CageVectorEnv)
    assert envs.num_envs == 7
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**63), reds=REDS, edition=EDITIONS, green=GREENS, n_envs=st.integers(1, 5),
    max_steps=st.integers(1, 12), play=SEEDS,
)  # fmt: skip
def test_the_vector_environment_equals_gymnasiums_vector_of_single_ones(
    seed: int, reds: str, edition: str, green: str, n_envs: int, max_steps: int, play: int
) -> None:
    options: dict[str, Any] = {"edition": edition, "green_agent": green, "max_steps": max_steps}
    agents = reds.split(",")[:n_envs]
    single = [lambda i=i: CageEnv(red_agent=agents[i % len(agents)], **options) for i in range(n_envs)]
    sync = SyncVectorEnv(single, autoreset_mode=AutoresetMode.SAME_STEP)
    ours = CageVectorEnv(n_envs, red_agent=agents, **options)
    assert same(ours.reset(seed=seed), sync.reset(seed=seed))
    generator = np.random.default_rng(play)
    for _ in range(30):
        actions = generator.integers(145, size=n_envs)
        assert same(ours.step(actions), sync.step(actions))


@settings(max_examples=30, deadline=None)
@given(
    seed=SEEDS,
    red=st.sampled_from(RED_AGENTS),
    edition=EDITIONS,
    green=GREENS,
    n_envs=st.integers(2, 40),
    data=st.data(),
)
def test_environment_i_of_a_seed_plays_the_same_game_beside_any_others(
    seed: int, red: str, edition: str, green: str, n_envs: int, data: st.DataObject
) -> None:
    """Whatever their number and their actions."""
    i = data.draw(st.integers(0, n_envs - 1))
    generator = np.random.default_rng(data.draw(SEEDS))
    options: dict[str, Any] = {"red_agent": red, "edition": edition, "green_agent": green, "max_steps": 20}
    many, alone = CageVectorEnv(n_envs, **options), CageVectorEnv(i + 1, **options)
    many.reset(seed=seed)
    alone.reset(seed=seed)
    for _ in range(45):
        actions = generator.integers(145, size=n_envs)
        others = generator.integers(145, size=i + 1)
        others[i] = actions[i]
        left, right = many.step(actions), alone.step(others)
        assert np.array_equal(left[0][i], right[0][i])
        assert left[1][i] == right[1][i]
        assert many.snapshot()[i] == alone.snapshot()[i]


def test_a_seed_plays_the_same_game_in_another_process() -> None:
    import subprocess
    import sys

    code = (
        "from workflow_rl import CageVectorEnv; import numpy as np; envs = CageVectorEnv(3, red_agent='meander');"
        "envs.reset(seed=7); g = np.random.default_rng(1);"
        "print(sum(envs.step(g.integers(145, size=3))[1].sum() for _ in range(200)), envs.packed_observations.tolist())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert len(runs) == 1
    assert "[" in runs.pop()


def test_a_list_of_seeds_gives_each_environment_its_own() -> None:
    listed, counted = CageVectorEnv(3, red_agent="meander"), CageVectorEnv(3, red_agent="meander")
    listed.reset(seed=[5, 6, 7])
    counted.reset(seed=5)
    for _ in range(20):
        assert same(listed.step([0, 0, 0])[0], counted.step([0, 0, 0])[0])


def test_episodes_after_a_reset_without_seed_differ_and_still_follow_the_first_seed() -> None:
    def play() -> list[float]:
        env = CageEnv(red_agent="meander")
        rows = []
        for episode in range(3):
            env.reset(seed=11 if episode == 0 else None)
            rows.append(sum(env.step(0)[1] for _ in range(60)))
        return rows

    assert play() == play()
    assert len(set(play())) > 1


def test_environments_without_a_seed_differ() -> None:
    totals = set()
    for _ in range(4):
        envs = CageVectorEnv(20, red_agent="meander")
        envs.reset()
        totals.add(sum(envs.step([0] * 20)[1].sum() for _ in range(60)))
    assert len(totals) > 1


def test_infos_tell_what_compliance_needs(scenario: Scenario) -> None:
    env = CageEnv(red_agent="bline", max_steps=None)
    env.reset(seed=3)
    restore = scenario.action_index("Restore", "Enterprise1")
    before = np.zeros(13, bool)
    for step in range(60):
        *_, info = env.step(restore if step % 7 == 6 else 0)
        assert np.array_equal(info["compromised_before"], before)
        assert info["red_level"][8] == 2
        before = info["red_level"] > 0
        before[8] = False  # the foothold never counts
        wanted = scenario.unit_types.index("enterprise") if step % 7 == 6 else -1
        assert info["fixed_unit_type"] == wanted
    assert before.any()


def test_final_observation_and_facts_belong_to_the_ended_episode() -> None:
    envs, endless = (
        CageVectorEnv(4, red_agent="bline", max_steps=15),
        CageVectorEnv(4, red_agent="bline", max_steps=None),
    )
    envs.reset(seed=0)
    endless.reset(seed=0)
    for step in range(15):
        observations, _, terminated, truncated, infos = envs.step([0] * 4)
        expected = endless.step([0] * 4)
        assert not terminated.any()
        assert truncated.all() == (step == 14)
        assert ("final_obs" in infos) == (step == 14)
    assert not observations.any()
    assert np.array_equal(np.stack(infos["final_obs"]), expected[0])
    assert np.array_equal(infos["final_info"]["red_level"], expected[4]["red_level"])
    assert np.array_equal(infos["final_info"]["compromised_before"], expected[4]["compromised_before"])
    assert (infos["red_level"] == [0] * 8 + [2] + [0] * 4).all()


def test_returned_arrays_are_never_changed_later() -> None:
    envs = CageVectorEnv(3, red_agent="meander")
    first, _ = envs.reset(seed=0)
    kept = [envs.step([0] * 3) for _ in range(120)]
    copies = [(row[0].copy(), row[1].copy(), row[4]["red_level"].copy()) for row in kept]
    for _ in range(50):
        envs.step([5] * 3)
    assert not first.any()
    for row, copy in zip(kept, copies, strict=True):
        assert same(row[0], copy[0])
        assert same(row[1], copy[1])
        assert same(row[4]["red_level"], copy[2])


def test_packed_observations_are_the_same_numbers_as_bits() -> None:
    envs = CageVectorEnv(10, red_agent="meander", green_agent="active")
    observations, _ = envs.reset(seed=0)
    for _ in range(50):
        bits = envs.packed_observations[:, None] >> np.arange(52) & 1
        assert np.array_equal(bits, observations)
        observations = envs.step(envs.action_space.sample())[0]


def test_one_batch_can_mix_red_agents() -> None:
    envs = CageVectorEnv(6, red_agent="sleep,bline")
    envs.reset(seed=0)
    returns = np.sum([envs.step([0] * 6)[1] for _ in range(60)], axis=0)
    assert (returns[::2] == 0).all()
    assert (returns[1::2] < -100).all()


def test_reset_options_change_the_red_agent_or_reset_only_some() -> None:
    envs = CageVectorEnv(4, red_agent="sleep", max_steps=None)
    envs.reset(seed=0, options={"red_agent": "bline"})
    for _ in range(40):
        rewards = envs.step([0] * 4)[1]
    assert (rewards < -10).all()
    observations, infos = envs.reset(options={"reset_mask": np.array([True, False, True, False])})
    assert observations.any(axis=1).tolist() == [False, True, False, True]
    assert infos["_red_level"].tolist() == [True, False, True, False]
    assert (envs.step([0] * 4)[1] < -10).tolist() == [False, True, False, True]


def test_a_masked_reset_leaves_the_other_environments_and_their_red_agents_alone() -> None:
    envs = CageVectorEnv(2, red_agent="bline", max_steps=None)
    envs.reset(seed=0)
    for _ in range(6):
        envs.step([0, 0])
    before = envs.snapshot()
    envs.reset(options={"red_agent": "meander", "reset_mask": np.array([True, False])})
    after = envs.snapshot()
    assert after["red"].tolist() == [RED_AGENTS.index("meander"), RED_AGENTS.index("bline")]
    assert after["step"].tolist() == [0, 6]
    assert after[1] == before[1]


def test_a_list_of_seeds_may_leave_some_to_chance() -> None:
    envs, known = CageVectorEnv(2, red_agent="meander"), CageVectorEnv(1, red_agent="meander")
    envs.reset(seed=[4, None])
    known.reset(seed=4)
    for _ in range(20):
        assert np.array_equal(envs.step([0, 0])[0][0], known.step([0])[0][0])


def test_an_acting_green_scans_each_of_its_hosts_equally_often_and_half_of_the_time() -> None:
    envs = CageVectorEnv(500, red_agent="sleep", green_agent="active")
    envs.reset(seed=0)
    counts, steps = np.zeros(13), 0
    for _ in range(100):
        observations = envs.step([0] * 500)[0].reshape(500, 13, 4)
        counts += (observations[:, :, :2] == [1, 0]).all(axis=2).sum(axis=0)
        steps += 500
        assert not observations[:, :, 2:].any()
    expected = np.array([0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1]) / 16 * steps
    assert (counts[expected == 0] == 0).all()
    z = (counts - expected)[expected > 0] / np.sqrt(steps * (1 / 16) * (15 / 16))
    assert np.abs(z).max() < 4


def test_the_documented_wrapper_returns_four_values_and_new_episodes() -> None:
    envs = ParallelEnvWrapper(n_envs=25)
    assert envs.reset(seed=0).shape == (25, 52)
    for step in range(100):
        observations, rewards, dones, infos = envs.step(np.zeros(25, int))
        assert dones.all() == (step == 99)
    assert (observations.shape, rewards.shape, dones.shape) == ((25, 52), (25,), (25,))
    assert "final_obs" in infos
    envs.close()


BAD_ACTIONS = [
    ([0, 145, 0], "action 145 of environment 1 does not exist; allowed: 0 to 144"),
    ([0, 0, -1], "action -1 of environment 2 does not exist"),
    ([0, 0], r"actions must have the shape \(3,\), not \(2,\)"),
    ([[0, 0, 0]], r"actions must have the shape \(3,\), not \(1, 3\)"),
    (0, r"actions must have the shape \(3,\), not \(\)"),
    ([0.0, 1.0, 2.0], "actions must be whole numbers, not of type float64"),
    ([np.nan, 0, 0], "actions must be whole numbers, not of type float64"),
    ([True, False, True], "actions must be whole numbers, not of type bool"),
    (["a", "b", "c"], "actions must be whole numbers"),
    (None, "actions must be whole numbers"),
    ([[0], [0, 1], 2], "not rows of different lengths"),
]


@pytest.mark.parametrize(("actions", "complaint"), BAD_ACTIONS)
def test_bad_actions_are_refused_and_nothing_is_played(actions: Any, complaint: str) -> None:
    envs = CageVectorEnv(3)
    envs.reset(seed=0)
    before = envs.snapshot()
    with pytest.raises(UserError, match=complaint):
        envs.step(actions)
    assert (envs.snapshot() == before).all()


@pytest.mark.parametrize("action", [145, -1, 10**30, -(10**30), 1.0, np.nan, None, "0", [0, 1], True])
def test_a_bad_single_action_is_refused(action: Any) -> None:
    env = CageEnv()
    env.reset(seed=0)
    with pytest.raises(UserError):
        env.step(action)


@pytest.mark.parametrize("action", [np.int32(3), np.array(3), np.array([3])])
def test_a_single_action_may_be_any_kind_of_whole_number(action: Any) -> None:
    env = CageEnv()
    env.reset(seed=0)
    assert env.step(action)[1] == 0.0


def test_a_step_before_reset_or_after_the_end_is_refused() -> None:
    env = CageEnv(max_steps=1)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        CageVectorEnv(2).step([0, 0])
    env.reset(seed=0)
    assert env.step(0)[3]
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode is over"):
        env.step(0)


BAD_SETTINGS = [
    ({"num_envs": 0}, "number of environments must be a whole number from 1 to 1000000, not 0"),
    ({"num_envs": -3}, "to 1000000, not -3"),
    ({"num_envs": 2.5}, "to 1000000, not 2.5"),
    ({"num_envs": True}, "to 1000000, not True"),
    ({"max_steps": 0}, "max_steps must be a whole number from 1 to 2147483647, not 0"),
    ({"red_agent": "blin"}, "unknown red agent 'blin'; allowed: bline, meander, sleep"),
    ({"red_agent": ""}, "unknown red agent ''"),
    ({"red_agent": 3}, "red agents must be names, not 3"),
    ({"red_agent": "bline,meander"}, "2 red agents were given for 1 environments"),
    ({"num_envs": 10**20}, "whole number from 1 to 1000000"),
    ({"max_steps": 10**30}, "whole number from 1 to 2147483647"),
    ({"scenario": None}, "a scenario must be a Scenario or the path of its file, not None"),
    ({"edition": "newest"}, "unknown edition 'newest'; allowed: current, leaderboard"),
    ({"green_agent": "busy"}, "unknown green agent 'busy'; allowed: sleep, active"),
    ({"scenario": "nowhere.toml"}, "nowhere.toml: cannot read the scenario file"),
]


@pytest.mark.parametrize(("options", "complaint"), BAD_SETTINGS)
def test_impossible_settings_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        CageVectorEnv(**options)


@pytest.mark.parametrize(
    ("seed", "options", "complaint"),
    [
        (-1, None, "a seed must be a whole number"),
        (True, None, "a seed must be a whole number"),
        (1.5, None, "a seed must be a whole number"),
        ([1, 2], None, "2 seeds were given for 3 environments"),
        ([1, 2, "x"], None, "a seed must be a whole number from 0 to 2\\*\\*64 - 1, not 'x'"),
        (0, {"speed": 9}, "unknown reset option 'speed'; allowed: red_agent, reset_mask"),
        (0, {"red_agent": "nobody"}, "unknown red agent 'nobody'"),
        (0, {"reset_mask": np.zeros(3, bool)}, "reset_mask must be a bool array of shape"),
        (0, {"reset_mask": [True] * 3}, "reset_mask must be a bool array of shape"),
    ],
)
def test_a_bad_reset_is_refused(seed: Any, options: dict[str, Any] | None, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        CageVectorEnv(3).reset(seed=seed, options=options)
