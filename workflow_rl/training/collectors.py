"""Collects batches: with the compiled rollout of the native engine, or step by step through any vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network import Network
from workflow_rl.engine.tables import fixed_unit_types
from workflow_rl.envs.checks import derive_seeds
from workflow_rl.envs.game import Game, Games
from workflow_rl.envs.memory import MEMORY_DTYPE
from workflow_rl.envs.takeover import Infos
from workflow_rl.envs.views import View, begin_some, pack_words, with_view
from workflow_rl.training.actor import Actor, Guard, make_guard, place_of
from workflow_rl.training.buffer import ParallelTrajectoryBuffer
from workflow_rl.training.compliance import EPISODE_DTYPE, FACTS, Compliance, type_masks
from workflow_rl.training.rollout import Found, Setup, World, rollout, sample_actions
from workflow_rl.training.workflow import Rota, Workflow, is_drawn, universal_workflows


@dataclass(frozen=True)
class Stream:
    """Random seeds that are independent of those of any other seed or purpose."""

    seed: int = 0
    purpose: tuple[int, ...] = ()

    def environments(self, number: int) -> np.ndarray:
        """Seeds of the environments; (number,) uint64."""
        return derive_seeds(self.seed, (*self.purpose, 1), number)

    def policy(self, number: int) -> np.ndarray:
        """States of the policy's generators, one per environment; (number,) uint64."""
        return derive_seeds(self.seed, (*self.purpose, 2), number)


@dataclass(frozen=True)
class Conduct:
    """How environments are played: workflows, alignment reward and view.

    Environment i gets workflow i modulo their number, or, with ``drawn``, another one in each episode. Without
    workflows the policy is general and gets no alignment reward. ``potential`` rewards changes of compliance instead of
    penalising violations.
    """

    workflows: tuple[Workflow, ...] = ()
    alignment_lambda: float = 0.0
    potential: bool = False
    greedy: bool = False  # play the most probable action
    view: View = field(default_factory=View)
    drawn: bool = False

    @classmethod
    def of(cls, config: TrainConfig, network: Network, greedy: bool = False) -> Conduct:
        """The conduct that the settings of a training ask for."""
        view = View(config.view, config.actions, network)
        potential = config.alignment == "potential"
        drawn = config.universal and is_drawn(network)
        return cls(workflows_of(config, network), config.alignment_lambda, potential, greedy, view, drawn)

    def rota(self, network: Network, n_envs: int) -> Rota:
        """Who has which workflow; without workflows, compliance with the first one is counted unrewarded."""
        types = network.unit_types
        orders = [workflow.indices() for workflow in self.workflows or (Workflow(types, types),)]
        return Rota(np.stack(orders), n_envs, self.drawn)

    def setup(self, network: Network, rota: Rota, max_steps: int) -> Setup:
        """The setup of the compiled rollout."""
        view = self.view
        return Setup(
            workflows=rota.numbers, orders=rota.orders, masks=type_masks(network),
            fixed_type=fixed_unit_types(network), place=place_of(view), max_steps=max_steps,
            alignment_lambda=float(self.alignment_lambda if self.workflows else 0.0), potential=self.potential,
            greedy=self.greedy, whole=view.whole, small=view.small, short=view.remembers and not view.whole,
            host_decoy=view.actions == "host-decoy", bait=view.bait, taught=False, guarded=False,
            guard=make_guard(view),
        )  # fmt: skip


def workflow_codes(workflows: tuple[Workflow, ...]) -> np.ndarray:
    """One-hot codes of workflows; (n_workflows, n_types * n_types), for a general policy (1, 0)."""
    return np.stack([w.one_hot() for w in workflows]) if workflows else np.zeros((1, 0), np.float32)


def workflows_of(config: TrainConfig, network: Network) -> tuple[Workflow, ...]:
    """The workflows that a training is conditioned on: all (of many a sample), one, or none."""
    if config.universal:
        return universal_workflows(network)
    return (Workflow.parse(config.workflow, network),) if config.workflow else ()


class PlayedNet(Protocol):
    """The part of an actor-critic that a rollout needs."""

    guard: Guard | None

    def compiled_actor(self, codes: np.ndarray, view: View) -> Actor:
        """The actor for the compiled rollout."""
        ...


class Learner(Protocol):
    """The part of :class:`workflow_rl.ParallelOrderConditionedPPO` that a collector needs."""

    codes: np.ndarray

    @property
    def net(self) -> PlayedNet:
        """The actor-critic."""
        ...

    def probabilities(self, keys: np.ndarray) -> np.ndarray:
        """Action probabilities (n, n_actions) of inputs given as keys (n, key_words)."""
        ...


class Teacher(Protocol):
    """A defender that plays while a policy imitates it; actions are in the numbering of the view."""

    def plan(self, world: World, setup: Setup, actions: np.ndarray, lessons: np.ndarray) -> None:
        """Writes what it plays in the next batch, (n_envs, n_steps), and what is to be learned from it."""
        ...

    def actions(self, memories: np.ndarray, view: View, orders: np.ndarray, /) -> np.ndarray:
        """Its actions (n,) for memories (n,) and orders (n, n_types)."""
        ...


class Collector:
    """Collects batches of ``n_steps`` steps from the native engine with the compiled rollout.

    ``stream`` seeds environments and policy. Episodes continue from batch to batch.
    """

    def __init__(
        self, games: Games, n_envs: int, n_steps: int, conduct: Conduct | None = None, stream: Stream | None = None
    ) -> None:
        conduct, stream = conduct or Conduct(view=View(network=games.network)), stream or Stream()
        view, network = conduct.view, games.network
        self.game = Game(
            n_envs, games.red_agent, games.edition, games.max_steps, games.green_agent, network, games.takeover
        )
        self.game.reset(stream.environments(n_envs), np.ones(n_envs, bool), {})
        self.generators = stream.policy(n_envs)
        self.episodes = np.zeros(n_envs, EPISODE_DTYPE)
        self.view = view
        self.memories = np.zeros(n_envs if view.whole else 1, MEMORY_DTYPE)
        begin_some(self.memories, self.game.states["observation"][:, 0].copy(), np.ones(len(self.memories), bool))
        self.buffer = ParallelTrajectoryBuffer(n_envs, n_steps, view.n_actions, games.max_steps, True, view.key_words)
        self.violations = np.zeros((len(network.unit_types),) * 2, np.int64)
        self.ordered = bool(conduct.workflows)
        self.rota = conduct.rota(network, n_envs)
        self.rota.start(stream.seed, stream.purpose)
        self.setup = conduct.setup(network, self.rota, games.max_steps)

    def collect(self, ppo: Learner, teacher: Teacher | None = None) -> ParallelTrajectoryBuffer:
        """Plays one batch with the policy of ``ppo``, or with the teacher's actions."""
        buffer, game = self.buffer, self.game
        self.violations[:] = 0
        world = World(game.states, game.tables, game.takeovers, self.generators, self.memories, self.episodes)
        ppo.codes = self.rota.begin_batch(ppo.codes)
        setup = self.setup._replace(
            workflows=self.rota.numbers, orders=self.rota.orders, taught=teacher is not None,
            guarded=ppo.net.guard is not None,
        )  # fmt: skip
        if teacher is not None:
            teacher.plan(world, setup, buffer.batch.actions, buffer.batch.lessons)
        found = Found(buffer.inputs, buffer.batch, buffer.finished, buffer.final_room, self.violations)
        actor = ppo.net.compiled_actor(ppo.codes, self.view)
        buffer.n_rows, buffer.n_finished = rollout(world, actor, setup, found)
        self.rota.end_episodes(np.any(buffer.batch.ended, axis=1))
        return buffer

    def set_strength(self, alignment_lambda: float) -> None:
        """Changes the strength of the alignment reward, where there is one."""
        if self.ordered:
            self.setup = self.setup._replace(alignment_lambda=alignment_lambda)

    def last_keys(self) -> np.ndarray:
        """Keys of the inputs after the batch; (n_envs, key_words)."""
        states = self.game.states
        seen = self.memories if self.view.whole else states if self.view.remembers else states["observation"]
        return self.view.add_order(self.view.keys(seen), self.rota.now)

    def arrays(self) -> dict[str, np.ndarray]:
        """The complete state between two batches as plain arrays."""
        arrays = self.rota.arrays() | {"states": self.game.states.view(np.uint8)}
        arrays |= {"generators": self.generators, "episodes": self.episodes.view(np.uint8)}
        return arrays | ({"memories": self.memories.view(np.uint8)} if self.view.whole else {})

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores the state from :meth:`arrays`."""
        self.game.states[:] = arrays["states"].view(self.game.states.dtype)
        self.generators[:] = arrays["generators"]
        self.episodes[:] = arrays["episodes"].view(EPISODE_DTYPE)
        self.rota.restore(arrays)
        if self.view.whole:
            self.memories[:] = arrays["memories"].view(MEMORY_DTYPE)

    def close(self) -> None:
        """Does nothing: the engine has no processes."""


class PlainCollector:
    """Collects batches from any vector environment step by step, evaluating the policy on every observation.

    The same seed gives the same batch as :class:`Collector`, up to rounding in the policy. Call :meth:`start` before
    the first batch. ``row_by_row`` evaluates the policy for one environment at a time: batched arithmetic rounds
    differently, and the games must not depend on the number of environments.
    """

    def __init__(self, envs: Any, n_steps: int, max_steps: int, conduct: Conduct, row_by_row: bool = False) -> None:
        network, n, view = envs.network, envs.num_envs, conduct.view
        self.view, self.row_by_row = view, row_by_row
        self.envs = with_view(envs, view)
        self.buffer = ParallelTrajectoryBuffer(n, n_steps, view.n_actions, max_steps, False, view.key_words)
        self.ordered = bool(conduct.workflows)
        self.rota = conduct.rota(network, n)
        self.setup = setup = conduct.setup(network, self.rota, max_steps)
        orders = self.rota.orders[self.rota.now]
        self.compliance = Compliance(network, orders, setup.alignment_lambda, setup.potential)
        self.episodes = self.compliance.episodes
        self.generators = np.zeros(n, np.uint64)

    def started(self, stream: Stream) -> PlainCollector:
        """Starts the first episodes and returns the collector; closes the environments if that fails."""
        self.rota.start(stream.seed, stream.purpose)
        try:
            self.start(stream.environments(len(self.generators)), stream.policy(len(self.generators)))
        except BaseException:
            self.close()
            raise
        return self

    def start(
        self, seeds: np.ndarray, generators: np.ndarray, red_agents: Sequence[str] = (), takeovers: Sequence[str] = ()
    ) -> None:
        """Starts new episodes.

        Args:
            seeds: seeds of the environments, (n_envs,) uint64.
            generators: states of the policy's generators, (n_envs,) uint64.
            red_agents: new red agent of each environment; empty to keep the current ones.
            takeovers: new takeover of each environment; empty to keep the current ones.
        """
        changed = {"red_agent": list(red_agents), "takeover": list(takeovers)}
        self.envs.reset(seed=seeds.tolist(), options={name: value for name, value in changed.items() if value})
        self.generators = generators.copy()
        self.compliance.start_episodes(np.ones(len(seeds), bool))

    def collect(self, ppo: Learner, teacher: Teacher | None = None) -> ParallelTrajectoryBuffer:
        """Plays one batch with the policy of ``ppo``, or with the teacher's actions."""
        buffer, batch = self.buffer, self.buffer.batch
        self.violations[:] = 0
        ppo.codes = self.rota.begin_batch(ppo.codes)
        size = batch.rows.size
        batch.rows[:] = np.arange(size).reshape(batch.rows.shape)
        keys = buffer.inputs.keys.reshape((*batch.rows.shape, -1))
        taught = buffer.inputs.taught.reshape(batch.rows.shape)
        buffer.n_rows, buffer.n_finished = size, 0
        finals = []  # keys after the last step of each episode, in step-major order
        for step in range(batch.rows.shape[1]):
            keys[:, step] = self.last_keys()
            probabilities = self._probabilities(ppo, keys[:, step])
            sampled = sample_actions(probabilities.copy(), self.generators)
            batch.actions[:, step] = probabilities.argmax(axis=1) if self.setup.greedy else sampled
            if teacher is not None:
                orders = self.rota.orders[self.rota.now]
                batch.actions[:, step] = taught[:, step] = teacher.actions(self.envs.memories, self.view, orders)
            _, rewards, terminated, truncated, infos = self.envs.step(batch.actions[:, step])
            assert not terminated.any(), "episodes are truncated by the time limit and never terminate"
            batch.rewards[:, step], batch.ended[:, step] = rewards, truncated
            batch.alignment[:, step] = self._count(infos, batch.ended[:, step])
            finals.append(self._final_keys(infos, batch.ended[:, step]))
            self._end_episodes(batch.rewards[:, step], batch.alignment[:, step], batch.ended[:, step])
        by_step = np.argsort(np.nonzero(batch.ended)[1], kind="stable")  # from step-major to environment-major order
        buffer.final_keys[by_step] = np.concatenate(finals)
        return buffer

    def _probabilities(self, ppo: Learner, keys: np.ndarray) -> np.ndarray:
        if not self.row_by_row:
            return ppo.probabilities(keys)
        return np.concatenate([ppo.probabilities(keys[i : i + 1]) for i in range(len(keys))])

    def set_strength(self, alignment_lambda: float) -> None:
        """Changes the strength of the alignment reward, where there is one."""
        if self.ordered:
            self.compliance.alignment_lambda = alignment_lambda

    def last_keys(self) -> np.ndarray:
        """Keys of the current inputs; (n_envs, key_words)."""
        return self.view.add_order(self.view.keys(self.envs.packed_observations), self.rota.now)

    def _final_keys(self, infos: Infos, ended: np.ndarray) -> np.ndarray:
        """Keys of the inputs after the last step of the episodes that just ended; (n_ended, key_words)."""
        rows = np.flatnonzero(ended)
        if not len(rows):
            return np.zeros((0, self.view.key_words), np.int64)
        final = np.stack([infos["final_obs"][row] for row in rows])
        return self.view.add_order(pack_words(final, self.view), self.rota.now[rows])

    def arrays(self) -> dict[str, np.ndarray]:
        """The complete state between two batches as plain arrays."""
        own = {"generators": self.generators, "episodes": self.episodes.view(np.uint8)}
        games: dict[str, np.ndarray] = self.envs.state_arrays()
        return games | own | self.rota.arrays()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores the state from :meth:`arrays`."""
        self.envs.restore_state_arrays(arrays)
        self.rota.restore(arrays)
        self.generators[:] = arrays["generators"]
        self.episodes[:] = arrays["episodes"].view(EPISODE_DTYPE)

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()

    @property
    def violations(self) -> np.ndarray:
        """Violations of the last batch by repaired and due unit type; (n_types, n_types)."""
        return self.compliance.violations

    def _count(self, infos: Infos, ended: np.ndarray) -> np.ndarray:
        facts = [infos[name] for name in FACTS]
        self.compliance.orders = self.rota.orders[self.rota.now]
        if ended.any():
            final = [infos["final_info"][name] for name in FACTS]
            facts = [np.where(ended[(...,) + (None,) * (b.ndim - 1)], a, b) for a, b in zip(final, facts, strict=True)]
        return self.compliance.update(*facts)

    def _end_episodes(self, rewards: np.ndarray, alignment: np.ndarray, ended: np.ndarray) -> None:
        self.episodes["total"] += rewards
        self.episodes["alignment"] += alignment
        rows = np.flatnonzero(ended)
        if not len(rows):
            return
        self.episodes["env"] = np.arange(len(self.episodes))
        start = self.buffer.n_finished
        self.buffer.finished[start : start + len(rows)] = self.episodes[rows]
        self.buffer.n_finished += len(rows)
        self.compliance.start_episodes(ended)
        self.rota.end_episodes(ended)
