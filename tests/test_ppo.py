"""The two paths of an update give the same gradient; returns, advantages and loss agree with hand-computed cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import games
from workflow_rl.config import TrainConfig
from workflow_rl.defenders.imitation import ExpertTeacher
from workflow_rl.defenders.teacher import NO_EXCEPTIONS
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.views import View, with_view
from workflow_rl.presets import make_config
from workflow_rl.training.actor_critic import OrderConditionedActorCritic
from workflow_rl.training.buffer import ParallelTrajectoryBuffer, discounted
from workflow_rl.training.collectors import Collector, Conduct, PlainCollector, Stream, workflow_codes
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.rollout import sample_actions
from workflow_rl.training.trainer import PHASES, Training
from workflow_rl.training.workflow import all_workflows


def test_monte_carlo_returns_never_cross_episodes_and_go_on_with_the_value_after_the_last_step() -> None:
    rewards = np.array([[1.0, 2.0, 4.0, 8.0]])
    ended = np.array([[False, True, False, True]])
    advantages, values = np.empty_like(rewards), np.full_like(rewards, 0.25)
    discounted(rewards, ended, values, np.zeros((1, 4)), np.array([99.0]), 0.5, 1.0, advantages)
    assert (advantages + values).tolist() == [[2.0, 2.0, 8.0, 8.0]]
    after = np.array([[77.0, -4.0, 77.0, -16.0]])  # counts only where an episode ended
    discounted(rewards, ended, values, after, np.array([99.0]), 0.5, 1.0, advantages)
    assert (advantages + values).tolist() == [[1 + 0.5 * (2 - 2), 2 - 2, 4 + 0.5 * (8 - 8), 8 - 8]]


def test_a_batch_that_ends_within_an_episode_is_continued_by_the_critic() -> None:
    rewards, ended = np.array([[1.0, 1.0]]), np.zeros((1, 2), bool)
    advantages, values = np.empty_like(rewards), np.zeros_like(rewards)
    discounted(rewards, ended, values, np.zeros((1, 2)), np.array([4.0]), 0.5, 1.0, advantages)
    assert advantages.tolist() == [[1.0 + 0.5 * (1.0 + 0.5 * 4.0), 3.0]]


def test_generalised_advantages_agree_with_a_hand_computed_case() -> None:
    rewards, ended = np.array([[1.0, 0.0, 2.0]]), np.array([[False, False, True]])
    values, advantages = np.array([[0.5, 1.0, 1.5]]), np.empty((1, 3))
    for after in (0.0, -3.0):
        discounted(rewards, ended, values, np.full((1, 3), after), np.array([7.0]), 0.9, 0.8, advantages)
        deltas = [1.0 + 0.9 * 1.0 - 0.5, 0.0 + 0.9 * 1.5 - 1.0, 2.0 + 0.9 * after - 1.5]
        last = deltas[2]
        middle = deltas[1] + 0.72 * last
        assert advantages[0] == pytest.approx([deltas[0] + 0.72 * middle, middle, last])


@pytest.mark.parametrize("time_limit", ["bootstrap", "cut"])
@pytest.mark.parametrize(("view", "path"), [("plain", "auto"), ("plain", "plain"), ("memory", "auto")])
def test_at_the_time_limit_the_return_goes_on_with_the_value_of_the_observation_after_the_last_step(
    view: str, path: str, time_limit: str
) -> None:
    """By hand: the games are played again, and the critic is asked about what is seen after the last step."""
    config = make_config(
        "general", n_envs=4, update_steps=25, max_steps=10, seed=7, view=view, path=path, time_limit=time_limit,
        normalise_returns=False, normalise_advantages=False, gamma=0.9, gae_lambda=1.0, red_agent="meander",
        device="cpu",
    )  # fmt: skip
    training = Training(config, load_network())
    buffer = training.collector.collect(training.ppo)
    last_keys = training.collector.last_keys()
    training.ppo._targets(buffer, last_keys)
    envs = with_view(CageVectorEnv(4, red_agent="meander", max_steps=10), View(view, "full"))
    envs.reset(seed=Stream(7, (PHASES.index("main"),)).environments(4).tolist())
    rewards, seen = np.zeros((4, 25)), np.zeros((4, 25, View(view, "full").n_bits), np.float32)
    for step in range(25):
        observations, rewards[:, step], _, ended, infos = envs.step(buffer.batch.actions[:, step].astype(int))
        seen[:, step] = np.stack(infos["final_obs"]) if ended.all() else observations
    with torch.no_grad():
        values = training.ppo.net.critic(torch.from_numpy(seen)).squeeze(-1).numpy()
    wanted = np.zeros((4, 25))
    for step in reversed(range(25)):
        after = wanted[:, step + 1] if step < 24 else values[:, step]
        if step in (9, 19):
            after = values[:, step] if time_limit == "bootstrap" else np.zeros(4)
        wanted[:, step] = rewards[:, step] + 0.9 * after
    assert np.abs(values[:, [9, 19]]).min() > 1e-4  # the critic says something there
    np.testing.assert_allclose(buffer.returns, wanted, atol=1e-4)


def random_batch(seed: int, n_envs: int, n_steps: int, n_keys: int, n_workflows: int) -> ParallelTrajectoryBuffer:
    """A batch of few distinct inputs with random rewards, as a rollout would leave it."""
    generator = np.random.default_rng(seed)
    buffer = ParallelTrajectoryBuffer(n_envs, n_steps, max_steps=1)
    pool = generator.integers(1 << 52, size=n_keys) | generator.integers(n_workflows, size=n_keys) << 52
    picked = generator.integers(n_keys, size=(n_envs, n_steps))
    used, rows = np.unique(picked, return_inverse=True)
    buffer.batch.rows[:] = rows.reshape(picked.shape)
    buffer.n_rows = len(used)
    buffer.inputs.keys[: len(used), 0] = pool[used]
    buffer.batch.actions[:] = generator.integers(145, size=picked.shape)
    buffer.batch.rewards[:] = -generator.exponential(size=picked.shape)
    buffer.batch.alignment[:] = generator.normal(size=picked.shape)
    buffer.batch.ended[:] = generator.random(picked.shape) < 0.1
    buffer.n_finished = int(buffer.batch.ended.sum())
    buffer.final_keys[:, 0] = generator.choice(pool, size=buffer.n_finished)
    buffer.inputs.taught[: len(used)] = generator.integers(145, size=len(used))
    return buffer


def learner(path: str, dtype: torch.dtype, n_workflows: int, **values: Any) -> ParallelOrderConditionedPPO:
    codes = workflow_codes(all_workflows()[:n_workflows])
    config = make_config("parallel-200", **{"path": path, "lr": 0.003, "entropy": 0.01} | values)
    net = ParallelOrderConditionedPPO(config, codes).net.to(dtype)
    return ParallelOrderConditionedPPO(config, codes, net)


def gradients(ppo: ParallelOrderConditionedPPO) -> torch.Tensor:
    return torch.cat([p.grad.double().ravel() for p in ppo.net.parameters() if p.grad is not None])


BATCHES = {
    "seed": st.integers(0, 2**32),
    "n_envs": st.integers(1, 6),
    "n_steps": st.integers(2, 40),
    "n_keys": st.integers(1, 30),
    "n_workflows": st.integers(1, 4),
    "epochs": st.integers(1, 4),
    "entropy": st.sampled_from([0.0, 0.01]),
    "gae_lambda": st.sampled_from([1.0, 0.9]),
    "normalise_advantages": st.booleans(),
    "normalise_returns": st.booleans(),
}


@settings(max_examples=40, deadline=None)
@given(**BATCHES)
def test_the_fast_path_has_the_gradient_of_the_plain_one(
    seed: int, n_envs: int, n_steps: int, n_keys: int, n_workflows: int, epochs: int, **values: Any
) -> None:
    """With few digits in the first epoch only: Adam divides small gradients by themselves, which magnifies rounding."""
    for dtype, tolerance, n_epochs in ((torch.float64, 1e-10, epochs), (torch.float32, 1e-5, 1)):
        found = []
        for path in ("fast", "plain"):
            buffer = random_batch(seed, n_envs, n_steps, n_keys, n_workflows)
            ppo = learner(path, dtype, n_workflows, lr=1e-3, epochs=n_epochs, **values)
            stats = ppo.update(buffer, buffer.keys[np.zeros(n_envs, int)], imitate=seed % 3 == 0)
            found.append((gradients(ppo), stats))
        (fast, fast_stats), (plain, plain_stats) = found
        assert fast_stats.fast
        assert not plain_stats.fast
        assert float((fast - plain).norm() / plain.norm()) < tolerance
        if dtype == torch.float64:
            for name in ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction"):
                assert getattr(fast_stats, name) == pytest.approx(getattr(plain_stats, name), rel=1e-8, abs=1e-10)


def test_the_loss_agrees_with_a_hand_computed_case() -> None:
    """One input, uniform policy: ratio 1, so the loss is minus the mean advantage and the entropy is log 145."""
    buffer = random_batch(0, 1, 4, 1, 1)
    buffer.batch.actions[:], buffer.batch.alignment[:] = [[0, 1, 2, 3]], 0.0
    buffer.batch.rewards[:], buffer.batch.ended[:], buffer.n_finished = [[1.0, 2.0, 3.0, 6.0]], True, 4
    for path in ("fast", "plain"):
        ppo = learner(path, torch.float64, 1, epochs=1, normalise_returns=False, entropy=0.0)
        for parameter in ppo.net.parameters():
            torch.nn.init.zeros_(parameter)
        stats = ppo.update(buffer, buffer.keys)
        assert stats.policy_loss == pytest.approx(-3.0)
        assert stats.value_loss == pytest.approx((1 + 4 + 9 + 36) / 4)
        assert stats.entropy == pytest.approx(np.log(145))
        assert stats.kl == stats.clip_fraction == 0.0


def small(path: str, **values: Any) -> TrainConfig:
    return make_config("general", path=path, n_envs=6, update_steps=50, max_steps=25, seed=3, **values)


@pytest.mark.parametrize("view", ["plain", "short-memory", "small-memory", "memory"])
@pytest.mark.parametrize("actions", ["full", "host-decoy"])
@pytest.mark.parametrize("n_workflows", [0, 3])
def test_both_ways_of_collecting_give_the_same_batch(n_workflows: int, view: str, actions: str) -> None:
    """The same actions for the same generator state, the same rewards, alignment rewards and episodes."""
    workflows, seen = all_workflows()[:n_workflows], View(view, actions)
    config = small("auto", red_agent="meander", alignment_lambda=20.0, view=view, actions=actions)
    config = replace(config, alignment="penalty" if actions == "full" else "potential")
    teacher = ExpertTeacher("current", NO_EXCEPTIONS, n_workflows > 0, {}) if view == "memory" else None
    config = replace(config, takeover="2-30" if view != "plain" else "0", guard=view != "plain")
    ppo = ParallelOrderConditionedPPO(config, workflow_codes(workflows))
    conduct = Conduct(workflows, 20.0, config.alignment == "potential", view=seen)
    fast = Collector(games("meander", 25, config.takeover), 6, 50, conduct, Stream(3, (1,)))
    plain = PlainCollector(
        CageVectorEnv(6, red_agent="meander", max_steps=25, takeover=config.takeover), 50, 25, conduct
    )
    plain.start(Stream(3, (1,)).environments(6), Stream(3, (1,)).policy(6))
    for batch in range(3):
        left, right = (collector.collect(ppo, teacher if batch == 1 else None) for collector in (fast, plain))
        assert np.array_equal(left.batch.actions, right.batch.actions)
        if teacher and batch == 1:
            assert np.array_equal(left.inputs.taught[left.batch.rows], left.batch.actions)
            assert np.array_equal(right.inputs.taught[right.batch.rows], right.batch.actions)
        assert np.array_equal(left.keys[left.batch.rows], right.keys[right.batch.rows])
        assert left.batch.rewards == pytest.approx(right.batch.rewards)
        assert left.batch.alignment == pytest.approx(right.batch.alignment, abs=1e-5)
        assert np.array_equal(left.batch.ended, right.batch.ended)
        assert np.array_equal(left.final_keys, right.final_keys)
        mine, theirs = np.sort(left.finished_episodes(), order="env"), np.sort(right.finished_episodes(), order="env")
        for name in ("repairs", "violations", "idle", "env"):
            assert np.array_equal(np.sort(mine[name]), np.sort(theirs[name]))
        assert np.sort(mine["total"]) == pytest.approx(np.sort(theirs["total"]), abs=1e-4)
        assert np.array_equal(fast.last_keys(), plain.last_keys())


@pytest.mark.parametrize("entropy", [0.0, 0.01])
def test_the_gradient_that_is_measured_is_the_one_that_is_followed(entropy: float) -> None:
    """The first epoch's, of the actor; and measuring changes nothing that is learnt."""
    buffer = random_batch(5, 4, 30, 12, 2)
    last = buffer.keys[np.zeros(4, int)]
    looked, plain = (learner("plain", torch.float64, 2, lr=1e-3, epochs=1, entropy=entropy) for _ in range(2))
    measured = looked.gradient(buffer, last)
    looked.scale[:] = 0.0  # as before it was measured
    for ppo in (looked, plain):
        ppo.update(buffer, last)
    followed = torch.cat([p.grad.ravel() for p in plain.net.actor.parameters() if p.grad is not None])
    assert np.allclose(measured, followed.numpy(), rtol=1e-9, atol=1e-15)
    assert torch.equal(gradients(looked), gradients(plain))


def test_the_compiled_actor_is_the_networks_own() -> None:
    workflows = all_workflows()[:5]
    codes = workflow_codes(workflows)
    ppo = ParallelOrderConditionedPPO(make_config("general"), codes)
    collector = Collector(games("meander"), 10, 100, Conduct(workflows))
    buffer = collector.collect(ppo)
    running = buffer.inputs.cumulative[: buffer.n_rows]
    probabilities = np.diff(running, prepend=0.0, axis=1)
    assert np.abs(probabilities - ppo.probabilities(buffer.keys)).max() < 1e-6
    assert np.array_equal(buffer.inputs.best[: buffer.n_rows], ppo.probabilities(buffer.keys).argmax(axis=1))


def test_imitation_makes_the_experts_actions_the_most_probable_ones() -> None:
    for path in ("fast", "plain"):
        ppo = learner(path, torch.float32, 1, lr=0.003, epochs=4)
        for _ in range(60):
            buffer = random_batch(7, 4, 30, 6, 1)
            ppo.update(buffer, buffer.keys[np.zeros(4, int)], imitate=True)
        assert np.array_equal(ppo.probabilities(buffer.keys).argmax(axis=1), buffer.inputs.taught[: buffer.n_rows])


def test_widening_a_general_policy_for_a_workflow_changes_nothing_at_first() -> None:
    general = OrderConditionedActorCritic(52, 0, 145)
    wide = general.widened(25)
    inputs = torch.rand(9, 52)
    coded = torch.cat([inputs, torch.rand(9, 25)], dim=1)
    for left, right in zip(general(inputs), wide(coded), strict=True):
        assert torch.allclose(left, right, atol=1e-6)


def test_replayed_batches_take_part_in_the_update() -> None:
    without, with_one = (learner("fast", torch.float32, 1, replay_batches=n) for n in (0, 2))
    for ppo in (without, with_one):
        for seed in (1, 2, 3):
            buffer = random_batch(seed, 4, 30, 10, 1)
            ppo.update(buffer, buffer.keys[np.zeros(4, int)])
    assert len(with_one.recent) == 2
    assert not torch.equal(gradients(without), gradients(with_one))


def test_minibatches_visit_every_transition_once_per_epoch() -> None:
    ppo = learner("auto", torch.float32, 1, minibatch=32, n_envs=4, update_steps=30, epochs=1)
    buffer = random_batch(5, 4, 30, 10, 1)
    data = ppo._samples(buffer, np.zeros((4, 30)), np.arange(120.0).reshape(4, 30))
    parts = ppo._parts(data, 0)
    assert [part.size for part in parts] == [32, 32, 32, 24]
    assert sorted(float(value) for part in parts for value in part.returns) == list(range(120))
    assert not ppo.update(buffer, buffer.keys[np.zeros(4, int)]).fast


def test_a_toy_task_with_a_known_answer_is_learned_by_both_paths() -> None:
    """Four inputs, each with one right action that is rewarded: a bandit."""
    keys, right = np.array([1, 2, 4, 8]), np.array([5, 17, 99, 140])
    for path in ("fast", "plain"):
        ppo = learner(path, torch.float32, 1, lr=0.01, epochs=4, normalise_advantages=True, time_limit="cut")
        generators = np.arange(64, dtype=np.uint64) * np.uint64(7919)
        for _ in range(60):
            buffer = ParallelTrajectoryBuffer(64, 4, max_steps=1)
            buffer.n_rows, buffer.inputs.keys[:4, 0] = 4, keys
            buffer.batch.rows[:], buffer.batch.alignment[:], buffer.batch.ended[:] = np.arange(4), 0.0, True
            buffer.n_finished = buffer.batch.ended.size
            for column in range(4):
                actions = sample_actions(ppo.probabilities(np.repeat(keys[column], 64)), generators)
                explored = np.where(generators % np.uint64(10) == 0, right[column], actions)
                buffer.batch.actions[:, column] = explored
                buffer.batch.rewards[:, column] = explored == right[column]
            ppo.update(buffer, np.repeat(keys[0], 64))
        chances = ppo.probabilities(keys)[np.arange(4), right]
        assert chances.min() > 0.9
