"""Views of the game as wrappers: the same promises on our engine and on genuine CybORG."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import DATA as TEST_DATA
from tests.conftest import require
from tests.helpers import assert_refused, run
from workflow_rl import CageVectorEnv, CyborgVectorEnv, UserError
from workflow_rl.defenders.names import DATA
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.memory import MEMORY_DTYPE, N_BITS, N_HOST_DECOY
from workflow_rl.envs.views import PLAIN, View, ViewedEnvs, begin_some, remember_all, unpack_words, with_view
from workflow_rl.fidelity.cyborg_recorder import Recorder
from workflow_rl.presets import make_config
from workflow_rl.runs import read_tensors, write_tensors
from workflow_rl.training.actor_critic import OrderConditionedActorCritic
from workflow_rl.training.evaluation import policy_of
from workflow_rl.training.policy_file import FORMER, PolicyFile, load_policy
from workflow_rl.training.train_task import check_task

MEMORY, SMALL = View("memory", "host-decoy"), View("small-memory", "host-decoy")


@pytest.fixture(params=["native", "cyborg"])
def make(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Makes environments of a simulator, which are closed after the test."""
    if request.param == "cyborg":
        require("csle_cyborg")
    made: list[Any] = []

    def envs(num_envs: int, view: View, **options: Any) -> ViewedEnvs:
        plain = (CageVectorEnv if request.param == "native" else CyborgVectorEnv)(num_envs, **options)
        viewed = ViewedEnvs(plain, view)
        made.append(viewed)
        return viewed

    yield envs
    for one in made:
        one.close()


@pytest.mark.parametrize("view", [MEMORY, View("plain", "host-decoy"), View("memory", "full"), SMALL])
def test_a_view_keeps_the_promises_of_a_vector_environment(make: Any, view: View) -> None:
    envs = make(3, view, max_steps=7, red_agent="bline,meander,sleep")
    observations, _ = envs.reset(seed=4)
    assert observations.shape == (3, view.n_bits)
    assert envs.single_action_space.n == view.n_actions
    for step in range(1, 16):
        before = envs.packed_observations
        actions = np.random.default_rng(step).integers(view.n_actions, size=3)
        observations, rewards, _, truncated, infos = envs.step(actions)
        assert observations in envs.observation_space
        assert np.array_equal(observations, unpack_words(view.keys(envs.packed_observations), view))
        assert rewards.shape == (3,)
        assert truncated.all() == (step % 7 == 0)
        if truncated.all():  # the memory begins anew, the last observation still has it
            assert all(last.shape == (view.n_bits,) for last in infos["final_obs"])
            assert not envs.memories["scanned"].any()
            assert not np.array_equal(before, envs.packed_observations) or not view.remembers
    assert envs.memories["decoys"].any()


def larger(network: Network) -> Network:
    """The challenge with a fourteenth host."""
    hosts = (*network.hosts, replace(network.hosts[-1], name="User5"))
    subnets = [replace(s, hosts=(*s.hosts, "User5")) if "User4" in s.hosts else s for s in network.subnets]
    return replace(network, hosts=hosts, subnets=tuple(subnets))


def test_the_whole_memory_refuses_a_network_that_it_does_not_know(network: Network) -> None:
    for view in (MEMORY, View("memory", "full")):
        sentence = f"the {view} supports only CAGE Challenge 2; .* differs in hosts, subnets; use --view"
        with pytest.raises(UserError, match=sentence):
            ViewedEnvs(CageVectorEnv(1, network=larger(network)), view)
    assert with_view(CageVectorEnv(1, network=larger(network)), PLAIN).single_action_space.n == 145 + 11
    dearer = replace(network, hosts=tuple(replace(host, value=5.0) for host in network.hosts))
    assert ViewedEnvs(CageVectorEnv(1, network=dearer), MEMORY).reset(seed=0)[0].shape == (1, 244)
    types = ("defender", "enterprise", "op_server", "op_host", "user", "file_server")
    finer = tuple(replace(host, unit_type="file_server" if host.name == "User3" else host.unit_type)
                  for host in network.hosts)  # fmt: skip
    finer_network = replace(network, unit_types=types, hosts=finer)
    assert ViewedEnvs(CageVectorEnv(1, network=finer_network), MEMORY).reset(seed=0)[0].shape == (1, 244)


@pytest.mark.needs("csle_cyborg")
def test_a_memory_kept_beside_cyborg_is_the_one_that_the_engine_would_keep() -> None:
    """The champion plays genuine CybORG; its recorded game, replayed in the engine, leaves the same memories."""
    policy = policy_of(DATA / "champion-current.safetensors", "", load_network())
    options: dict[str, Any] = {"red_agent": "meander", "max_steps": None}
    with closing(ViewedEnvs(CyborgVectorEnv(1, recorder=Recorder, **options), View("memory", "full"))) as envs:
        envs.reset(seed=[3])
        actions, kept = [], []
        for _ in range(60):
            actions.append(int(policy(envs.packed_observations, np.random.default_rng(0))[0]))
            envs.step(actions[-1:])
            kept.append((envs.packed_observations, envs.envs.packed_observations))
    memory = np.zeros(1, MEMORY_DTYPE)
    begin_some(memory, np.zeros(1, np.int64), np.ones(1, bool))
    for action, (wanted, packed) in zip(actions, kept, strict=True):
        remember_all(memory, np.array([action]), packed[:, 0])
        assert np.array_equal(memory, wanted)
    assert memory["foe"].tolist() == [2]
    assert memory["decoys"].any()


def test_only_the_environments_asked_for_forget(make: Any) -> None:
    envs = make(3, MEMORY, max_steps=None)
    envs.reset(seed=0)
    envs.step([27 + 10] * 3)
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert (envs.memories["decoys"].sum(axis=1) > 0).tolist() == [False, True, True]


def test_a_view_goes_on_from_its_state_arrays(make: Any) -> None:
    envs, other = make(2, MEMORY, max_steps=30), make(2, MEMORY, max_steps=30)
    envs.reset(seed=1)
    for step in range(10):
        envs.step([step, 52 - step])
    other.reset(seed=2)
    other.restore_state_arrays(envs.state_arrays())
    for step in range(10):
        left, right = envs.step([step + 20, step + 30]), other.step([step + 20, step + 30])
        assert np.array_equal(left[0], right[0])
        assert np.array_equal(left[1], right[1])


@pytest.mark.parametrize("actions", [[0, 53], [-1, 0], [0.5, 0], [0]])
def test_actions_that_a_view_has_not_are_refused(actions: Any) -> None:
    envs = ViewedEnvs(CageVectorEnv(2), MEMORY)
    envs.reset(seed=0)
    with pytest.raises(UserError, match=r"does not exist; allowed: 0 to 52|whole numbers|must have the shape"):
        envs.step(actions)


def test_a_plain_view_is_the_environment_itself() -> None:
    envs = CageVectorEnv(2)
    assert with_view(envs, PLAIN) is envs
    with pytest.raises(UserError, match="unknown view 'all'; allowed: plain, short-memory, small-memory, memory"):
        View("all")
    with pytest.raises(UserError, match="unknown action view 'none'; allowed: full, host-decoy"):
        View("plain", "none")


def saved(path: Path, view: View, edition: str = "current", **sizes: int) -> Path:
    wanted: dict[str, Any] = {"n_bits": view.n_bits, "n_code": 0, "n_actions": view.n_actions} | sizes
    PolicyFile(OrderConditionedActorCritic(**wanted), "", False, "bline", edition, view, True).save(path)
    return path


def test_a_policy_file_says_its_view_and_older_ones_are_plain(tmp_path: Path) -> None:
    found = load_policy(saved(tmp_path / "policy", MEMORY, "leaderboard"))
    assert (found.view, found.edition, found.greedy) == (MEMORY, "leaderboard", True)
    assert (found.net.n_bits, found.net.n_actions) == (N_BITS, N_HOST_DECOY)
    arrays, meta = read_tensors(saved(tmp_path / "plain", PLAIN))
    older = {name: value for name, value in meta.items() if name not in ("view", "actions", "greedy")}
    write_tensors(tmp_path / "old", arrays, older | {"format": FORMER})
    old = load_policy(tmp_path / "old")
    assert (old.view, old.greedy) == (PLAIN, False)


def test_a_policy_for_another_edition_or_view_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "policy", MEMORY, "leaderboard")
    sentence = "the policy was trained for the leaderboard edition, not for the current one."
    assert_refused(run("evaluate", path, "--edition", "current"), sentence)
    assert_refused(run("watch", path, "--edition", "current"), sentence)
    assert_refused(run("export", path, tmp_path / "agent", "--edition", "current"), sentence)
    assert run("evaluate", path, "--episodes", "2").returncode == 0  # its own edition is the default
    order = "user,op_server,enterprise,op_host,defender"
    words = "the warm start has view memory with host-decoy actions, but view plain with full actions was requested."
    assert_refused(run("train", "--workflow", order, "--warm-start", path, cwd=tmp_path), words)
    with pytest.raises(UserError, match="the warm start has view plain with full actions, but view memory with full"):
        check_task(
            make_config(workflow=order, view="memory", warm_start=str(TEST_DATA / "universal.safetensors")),
            load_network(),
        )
    with pytest.raises(UserError, match="one decoy action per host: use --actions host-decoy"):
        check_task(make_config("general", imitate_updates=1), load_network())
    assert_refused(
        run("train", "--view", "all"), "unknown view 'all'; allowed: plain, short-memory, small-memory, memory."
    )
    assert_refused(run("train", "--actions", "all"), "unknown actions 'all'; allowed: full, host-decoy.")


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"workflow": 5}, "damaged, workflow is 5."),
        ({"universal": True}, "damaged, its inputs and its workflow do not fit."),
        ({"edition": "latest"}, "made for an unknown edition, 'latest'."),
        ({"edition": None}, "damaged, edition is None."),
        ({"greedy": "no"}, "damaged, greedy is 'no'."),
        ({"view": "all"}, "unknown view 'all'"),
        ({"actions": 3}, "unknown action view 3"),
    ],
)
def test_a_file_with_an_odd_description_is_refused(tmp_path: Path, changed: dict[str, Any], complaint: str) -> None:
    arrays, meta = read_tensors(saved(tmp_path / "policy", MEMORY))
    write_tensors(tmp_path / "policy", arrays, meta | changed)
    for command in (["evaluate"], ["watch"], ["export"]):
        where = [str(tmp_path / "new")] if command == ["export"] else []
        assert_refused(run(*command, tmp_path / "policy", *where), complaint)


def test_a_file_whose_sizes_are_not_those_of_its_view_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "policy", MEMORY, n_bits=52)
    words = "a policy of 52 + 0 inputs and 53 actions does not fit the view memory with host-decoy actions."
    assert_refused(run("evaluate", path), words)
