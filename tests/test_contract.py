"""What environments promise, held to both simulators: our engine and genuine CybORG, a process per environment."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.conftest import require
from tests.helpers import same
from workflow_rl import CageEnv, CageVectorEnv, CyborgEnv, CyborgVectorEnv, ParallelEnvWrapper, UserError
from workflow_rl.engine.network import RED_AGENTS, Network
from workflow_rl.training.compliance import FACTS

Make = Callable[..., Any]


@pytest.fixture(params=["native", "cyborg"], scope="module")
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "cyborg":
        require("csle_cyborg")
    return str(request.param)


@pytest.fixture
def single(backend: str) -> Make:
    """Makes one environment."""
    return CageEnv if backend == "native" else CyborgEnv


@pytest.fixture
def vector(backend: str) -> Iterator[Make]:
    """Makes a vector environment, which is closed after the test."""
    made: list[Any] = []

    def make(num_envs: int = 1, **options: Any) -> Any:
        made.append((CageVectorEnv if backend == "native" else CyborgVectorEnv)(num_envs, **options))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


@pytest.fixture(scope="module")
def three(backend: str) -> Iterator[Any]:
    """Three environments for requests that are refused, after a reset."""
    with closing((CageVectorEnv if backend == "native" else CyborgVectorEnv)(3)) as envs:
        envs.reset(seed=0)
        yield envs


@pytest.mark.parametrize("red_agent", RED_AGENTS)
def test_gymnasium_accepts_the_single_environment(single: Make, red_agent: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(single(red_agent=red_agent), skip_render_check=True)


@pytest.mark.parametrize(("reds", "green"), [("bline,meander,sleep", "sleep"), ("meander,bline", "active")])
def test_the_vector_environment_equals_gymnasiums_vector_of_single_ones(
    single: Make, vector: Make, reds: str, green: str
) -> None:
    agents = reds.split(",")
    options: dict[str, Any] = {"green_agent": green, "max_steps": 8}
    makers = [lambda i=i: single(red_agent=agents[i % len(agents)], **options) for i in range(3)]
    sync = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    ours = vector(3, red_agent=agents, **options)
    assert ours.metadata["autoreset_mode"] is ours.autoreset_mode is AutoresetMode.SAME_STEP
    assert same(ours.reset(seed=5), sync.reset(seed=5))
    generator = np.random.default_rng(6)
    for _ in range(20):
        actions = generator.integers(145, size=3)
        assert same(ours.step(actions), sync.step(actions))


def test_environment_i_of_a_seed_plays_the_same_game_beside_any_others(vector: Make) -> None:
    many, alone = vector(4, red_agent="meander", max_steps=12), vector(2, red_agent="meander", max_steps=12)
    many.reset(seed=3)
    alone.reset(seed=3)
    generator = np.random.default_rng(0)
    for _ in range(30):
        actions = generator.integers(145, size=4)
        left, right = many.step(actions), alone.step([generator.integers(145), actions[1]])
        assert np.array_equal(left[0][1], right[0][1])
        assert left[1][1] == right[1][1]


def test_a_list_of_seeds_gives_each_environment_its_own_and_may_leave_some_to_chance(vector: Make) -> None:
    listed, counted = vector(3, red_agent="meander"), vector(3, red_agent="meander")
    listed.reset(seed=[5, 6, None])
    counted.reset(seed=5)
    for _ in range(20):
        assert same(listed.step([0, 0, 0])[0][:2], counted.step([0, 0, 0])[0][:2])


def test_episodes_after_a_reset_without_seed_differ_and_still_follow_the_first_seed(single: Make) -> None:
    def play() -> list[bytes]:
        env = single(red_agent="meander")
        rows = []
        for episode in range(3):
            env.reset(seed=11 if episode == 0 else None)
            rows.append(np.stack([env.step(0)[0] for _ in range(12)]).tobytes())
        return rows

    assert play() == play()
    assert len(set(play())) == 3


def test_an_environment_without_any_seed_plays_another_game_each_time(single: Make) -> None:
    games = set()
    for _ in range(4):
        env = single(red_agent="meander")
        env.reset()
        games.add(np.stack([env.step(0)[0] for _ in range(20)]).tobytes())
    assert len(games) == 4


def test_infos_tell_what_compliance_needs(single: Make, network: Network) -> None:
    env = single(red_agent="bline", max_steps=None)
    env.reset(seed=3)
    restore = network.action_index("Restore", "Enterprise2")
    before, repaired = np.zeros(13, bool), set()
    for step in range(60):
        *_, info = env.step(restore if step % 7 == 6 else 0)
        assert np.array_equal(info["compromised_before"], before)
        there = before[network.host_names.index("Enterprise2")]  # Restore always frees its target
        assert info["red_level"][8] == 2
        before = info["red_level"] > 0
        before[8] = False  # the foothold never counts
        wanted = network.unit_types.index("enterprise") if step % 7 == 6 else -1
        assert info["fixed_unit_type"] == wanted
        assert info["repaired_unit_type"] == (wanted if there else -1)
        assert info["fixed_unit_type"].dtype == info["repaired_unit_type"].dtype == np.int8
        repaired.add((wanted >= 0, bool(there)))
    assert before.any()
    assert len(repaired) == 4


def test_final_observation_and_facts_belong_to_the_ended_episode(vector: Make, network: Network) -> None:
    envs, endless = vector(3, red_agent="bline", max_steps=15), vector(3, red_agent="bline", max_steps=None)
    assert (envs.max_steps, endless.max_steps) == (15, None)
    envs.reset(seed=0)
    endless.reset(seed=0)
    actions = [0] * 3
    for step in range(15):
        observations, _, terminated, truncated, infos = envs.step(actions)
        expected = endless.step(actions)
        assert not terminated.any()
        assert truncated.all() == (step == 14)
        assert ("final_obs" in infos) == (step == 14)
        if step == 13:  # in the last step a repair
            hosts = [network.host_names[max(np.flatnonzero(levels))] for levels in infos["red_level"]]
            actions = [network.action_index("Restore", host) for host in hosts]
    assert not observations.any()
    assert not envs.packed_observations.any()
    assert np.array_equal(np.stack(infos["final_obs"]), expected[0])
    for name in (*FACTS, "red_level"):
        assert np.array_equal(infos["final_info"][name], expected[4][name])
    repaired = [network.unit_type_index(host) for host in hosts]
    assert infos["final_info"]["repaired_unit_type"].tolist() == repaired
    assert (infos["repaired_unit_type"] == -1).all()
    assert (infos["red_level"] == [0] * 8 + [2] + [0] * 4).all()


def test_returned_arrays_are_never_changed_later(vector: Make) -> None:
    envs = vector(3, red_agent="meander", max_steps=25)
    first, _ = envs.reset(seed=0)
    kept = [envs.step([0] * 3) for _ in range(40)]
    copies = [(row[0].copy(), row[1].copy(), row[4]["red_level"].copy()) for row in kept]
    for _ in range(15):
        envs.step([5] * 3)
    assert not first.any()
    for row, copy in zip(kept, copies, strict=True):
        assert same(row[0], copy[0])
        assert same(row[1], copy[1])
        assert same(row[4]["red_level"], copy[2])


def test_packed_observations_are_the_same_numbers_as_bits(vector: Make) -> None:
    envs = vector(3, red_agent="meander", green_agent="active")
    envs.action_space.seed(0)
    observations, _ = envs.reset(seed=0)
    for _ in range(30):
        bits = envs.packed_observations >> np.arange(52) & 1
        assert np.array_equal(bits, observations)
        observations = envs.step(envs.action_space.sample())[0]
    assert observations.any()


def test_one_batch_can_mix_red_agents(vector: Make) -> None:
    envs = vector(4, red_agent="sleep,bline")
    envs.reset(seed=0)
    returns = np.sum([envs.step([0] * 4)[1] for _ in range(45)], axis=0)
    assert (returns[::2] == 0).all()
    assert (returns[1::2] < -100).all()


def test_reset_options_change_the_red_agent_or_reset_only_some(vector: Make) -> None:
    envs = vector(4, red_agent="sleep", max_steps=None)
    envs.reset(seed=0, options={"red_agent": "bline"})
    for _ in range(40):
        rewards = envs.step([0] * 4)[1]
    assert (rewards < -10).all()
    observations, infos = envs.reset(options={"reset_mask": np.array([True, False, True, False])})
    assert observations.any(axis=1).tolist() == [False, True, False, True]
    assert infos["_red_level"].tolist() == [True, False, True, False]
    assert (envs.step([0] * 4)[1] < -10).tolist() == [False, True, False, True]


def test_a_masked_reset_leaves_the_red_agents_of_the_other_environments_alone(vector: Make) -> None:
    envs = vector(2, red_agent="bline", max_steps=None)
    envs.reset(seed=0)
    envs.reset(seed=1, options={"red_agent": "sleep", "reset_mask": np.array([True, False])})
    rewards = np.sum([envs.step([0, 0])[1] for _ in range(20)], axis=0)
    assert rewards[0] == 0 > rewards[1]


def test_the_games_can_be_written_down_and_taken_up_again(vector: Make) -> None:
    options = {"red_agent": "bline,meander,sleep", "max_steps": 20}
    envs, others = vector(3, **options), vector(3, **options)
    envs.reset(seed=0)
    generator = np.random.default_rng(1)
    for _ in range(27):  # in the middle of the second episode
        envs.step(generator.integers(145, size=3))
    written = {name: array.copy() for name, array in envs.state_arrays().items()}
    actions = generator.integers(145, size=(20, 3))  # beyond its end
    expected = [envs.step(row) for row in actions]
    others.restore_state_arrays(written)
    assert same([others.step(row) for row in actions], expected)
    assert same(others.packed_observations, envs.packed_observations)


def test_games_that_have_not_begun_cannot_be_written_down(vector: Make) -> None:
    envs = vector(2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        envs.state_arrays()
    assert envs.reset(seed=0)[0].shape == (2, 52)


def test_the_documented_wrapper_returns_four_values_and_new_episodes(backend: str) -> None:
    envs = ParallelEnvWrapper(n_envs=3, backend=backend, max_steps=10)
    assert envs.reset(seed=0).shape == (3, 52)
    for step in range(10):
        observations, rewards, dones, infos = envs.step(np.zeros(3, int))
        assert dones.all() == (step == 9)
    assert (observations.shape, rewards.shape, dones.shape) == ((3, 52), (3,), (3,))
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
def test_bad_actions_are_refused_and_nothing_is_played(three: Any, actions: Any, complaint: str) -> None:
    before = three.state_arrays()
    with pytest.raises(UserError, match=complaint):
        three.step(actions)
    assert same(three.state_arrays(), before)


@pytest.mark.parametrize("action", [145, -1, 10**30, -(10**30), 1.0, np.nan, None, "0", [0, 1], True])
def test_a_bad_single_action_is_refused(single: Make, action: Any) -> None:
    env = single()
    env.reset(seed=0)
    with pytest.raises(UserError):
        env.step(action)


@pytest.mark.parametrize("action", [np.int32(3), np.array(3), np.array([3])])
def test_a_single_action_may_be_any_kind_of_whole_number(single: Make, action: Any) -> None:
    env = single()
    env.reset(seed=0)
    assert env.step(action)[1] == 0.0


def test_a_step_before_reset_or_after_the_end_is_refused(single: Make, vector: Make) -> None:
    env = single(max_steps=1)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        vector(2).step([0, 0])
    env.reset(seed=0)
    assert env.step(0)[3]
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode is over"):
        env.step(0)


BAD_SETTINGS = [
    ({"num_envs": 0}, "number of environments must be a whole number from 1 to 10+, not 0"),
    ({"num_envs": -3}, "to 10+, not -3"),
    ({"num_envs": 2.5}, "to 10+, not 2.5"),
    ({"num_envs": True}, "to 10+, not True"),
    ({"max_steps": 0}, "max_steps must be a whole number from 1 to 2147483647, not 0"),
    ({"red_agent": "blin"}, "unknown red agent 'blin'; allowed: bline, meander, sleep"),
    ({"red_agent": ""}, "unknown red agent ''"),
    ({"red_agent": 3}, "red agents must be names, not 3"),
    ({"red_agent": "bline,meander"}, "2 red agents were given for 1 environments"),
    ({"num_envs": 10**20}, "whole number from 1 to 10+"),
    ({"max_steps": 10**30}, "whole number from 1 to 2147483647"),
    ({"network": None}, "a network must be a Network, the path of its file or a name, not None"),
    ({"edition": "newest"}, "unknown edition 'newest'; allowed: current, leaderboard"),
    ({"green_agent": "busy"}, "unknown green agent 'busy'; allowed: sleep, active"),
    ({"network": "nowhere.toml"}, "nowhere.toml: cannot read the network file"),
]


@pytest.mark.parametrize(("options", "complaint"), BAD_SETTINGS)
def test_impossible_settings_are_refused(vector: Make, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        vector(**options)


@pytest.mark.parametrize(
    ("seed", "options", "complaint"),
    [
        (-1, None, "a seed must be a whole number"),
        (True, None, "a seed must be a whole number"),
        (1.5, None, "a seed must be a whole number"),
        ([1, 2], None, "2 seeds were given for 3 environments"),
        ([1, 2, "x"], None, "a seed must be a whole number from 0 to 2\\*\\*64 - 1, not 'x'"),
        (0, {"speed": 9}, "unknown reset option 'speed'; allowed: red_agent, takeover, reset_mask"),
        (0, {"red_agent": "nobody"}, "unknown red agent 'nobody'"),
        (0, {"reset_mask": np.zeros(3, bool)}, "reset_mask must be a bool array of shape"),
        (0, {"reset_mask": [True] * 3}, "reset_mask must be a bool array of shape"),
    ],
)
def test_a_bad_reset_is_refused(three: Any, seed: Any, options: dict[str, Any] | None, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        three.reset(seed=seed, options=options)
