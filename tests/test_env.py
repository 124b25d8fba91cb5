from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import same
from workflow_rl import CageEnv, CageVectorEnv
from workflow_rl.engine.network import RED_AGENTS

REDS = st.sampled_from([*RED_AGENTS, "bline,meander", "sleep,meander,bline"])
EDITIONS = st.sampled_from(["current", "leaderboard"])
GREENS = st.sampled_from(["sleep", "active"])
SEEDS = st.integers(0, 2**64 - 1)


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


def test_environments_without_a_seed_differ() -> None:
    totals = set()
    for _ in range(4):
        envs = CageVectorEnv(20, red_agent="meander")
        envs.reset()
        totals.add(sum(envs.step([0] * 20)[1].sum() for _ in range(60)))
    assert len(totals) > 1


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
