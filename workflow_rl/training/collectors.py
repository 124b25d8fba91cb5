"""Collects batches: the compiled rollout of the native engine, and the plain one through any vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.backends import Backend, make_envs
from workflow_rl.envs.game import Game
from workflow_rl.envs.memory import MEMORY_DTYPE
from workflow_rl.envs.views import PLAIN, View, begin_some, pack_words, with_view
from workflow_rl.training.buffer import ParallelTrajectoryBuffer
from workflow_rl.training.compliance import EPISODE_DTYPE, FACTS, Compliance, type_masks
from workflow_rl.training.guard import make_guard
from workflow_rl.training.keys import KEY_BITS
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.rollout import Found, Task, World, rollout, sample_actions
from workflow_rl.training.workflow import Workflow, all_workflows

ENVIRONMENTS, POLICY = 1, 2  # what a seed is for


def derive_seeds(seed: int, purpose: tuple[int, ...], number: int) -> np.ndarray:
    """Seeds that share nothing with those of another seed or purpose; (number,) uint64."""
    return np.random.SeedSequence([seed, *purpose]).generate_state(number, np.uint64)


def workflow_codes(workflows: tuple[Workflow, ...]) -> np.ndarray:
    """One-hot codes; (n_workflows, 25), for a general policy (1, 0)."""
    return np.stack([w.one_hot() for w in workflows]) if workflows else np.zeros((1, 0), np.float32)


def workflows_of(config: TrainConfig) -> tuple[Workflow, ...]:
    """The workflows that a training is about: all, one, or none."""
    if config.universal:
        return all_workflows()
    return (Workflow.parse(config.workflow),) if config.workflow else ()


class Teacher(Protocol):
    """Chooses the actions while it is imitated."""

    def plan(self, world: World, task: Task, actions: np.ndarray) -> None:
        """Writes its actions (n_envs, n_steps) in the games that come, as the view numbers them."""
        ...

    def actions(self, memories: np.ndarray, view: View) -> np.ndarray:
        """Its actions for some memories, as the view numbers them; (n,)."""
        ...


class Collector:
    """Plays the native engine with the compiled rollout and keeps what goes on from batch to batch.

    Args:
        n_envs: environments.
        n_steps: steps of each in a batch.
        max_steps: length of an episode.
        red_agent: the opponent.
        edition: the rules.
        workflows: environment i has workflow i, round and round; none: a general policy.
        alignment_lambda: strength of the alignment reward.
        seed: of environments and policy.
        purpose: further numbers that keep this collector's chance apart from others' of the same seed.
        greedy: play the most probable action.
        view: of the policy.
        potential: reward the change of the rate instead of punishing violations.
        takeover: steps that red plays before.
    """

    def __init__(
        self,
        n_envs: int,
        n_steps: int,
        max_steps: int,
        red_agent: str,
        edition: str,
        workflows: tuple[Workflow, ...] = (),
        alignment_lambda: float = 0.0,
        seed: int = 0,
        purpose: tuple[int, ...] = (),
        greedy: bool = False,
        view: View = PLAIN,
        potential: bool = False,
        takeover: str = "0",
    ) -> None:
        network = load_network()
        self.game = Game(n_envs, red_agent, edition, max_steps, "sleep", network, takeover)
        self.game.reset(derive_seeds(seed, (*purpose, ENVIRONMENTS), n_envs), np.ones(n_envs, bool), {})
        self.generators = derive_seeds(seed, (*purpose, POLICY), n_envs)
        self.episodes = np.zeros(n_envs, EPISODE_DTYPE)
        self.view = view
        self.memories = np.zeros(n_envs if view.tracks else 1, MEMORY_DTYPE)
        begin_some(self.memories, self.game.states["observation"].copy(), np.ones(len(self.memories), bool))
        self.buffer = ParallelTrajectoryBuffer(n_envs, n_steps, view.n_actions, max_steps, True, view.n_words)
        self.violations = np.zeros((len(network.unit_types),) * 2, np.int64)
        self.ordered = bool(workflows)
        strength = alignment_lambda if workflows else 0.0
        self.task = make_task(
            network, n_envs, workflows, max_steps, strength, self.game.fixed_unit_type, greedy, view, potential
        )

    def collect(self, ppo: ParallelOrderConditionedPPO, teacher: Teacher | None = None) -> ParallelTrajectoryBuffer:
        """Plays one batch with the policy of ``ppo``, or with the teacher's actions."""
        buffer = self.buffer
        self.violations[:] = 0
        game = self.game
        world = World(game.states, game.tables, game.takeovers, self.generators, self.memories, self.episodes)
        task = self.task._replace(taught=teacher is not None, guarded=ppo.net.guard is not None)
        if teacher is not None:
            teacher.plan(world, task, buffer.batch.actions)
        found = Found(buffer.inputs, buffer.batch, buffer.finished, buffer.final_room, self.violations)
        buffer.n_rows, buffer.n_finished = rollout(world, ppo.net.compiled_actor(ppo.codes), task, found)
        return buffer

    def set_strength(self, alignment_lambda: float) -> None:
        """Changes the strength of the alignment reward, where there is one."""
        if self.ordered:
            self.task = self.task._replace(alignment_lambda=alignment_lambda)

    def last_keys(self) -> np.ndarray:
        """Inputs after the batch; (n_envs, n_words)."""
        keys = self.view.keys(self.memories if self.view.remembers else self.game.states["observation"].copy())
        keys[:, 0] |= self.task.workflows.astype(np.int64) << KEY_BITS
        return keys

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that goes on from batch to batch, as plain arrays."""
        arrays = {
            "states": self.game.states.view(np.uint8),
            "generators": self.generators,
            "episodes": self.episodes.view(np.uint8),
        }
        return arrays | ({"memories": self.memories.view(np.uint8)} if self.view.tracks else {})

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes back what :meth:`arrays` gave."""
        self.game.states[:] = arrays["states"].view(self.game.states.dtype)
        self.generators[:] = arrays["generators"]
        self.episodes[:] = arrays["episodes"].view(EPISODE_DTYPE)
        if self.view.tracks:
            self.memories[:] = arrays["memories"].view(MEMORY_DTYPE)

    def close(self) -> None:
        """Nothing is left running."""


def make_task(
    network: Network,
    n_envs: int,
    workflows: tuple[Workflow, ...],
    max_steps: int,
    alignment_lambda: float,
    fixed_type: np.ndarray,
    greedy: bool,
    view: View = PLAIN,
    potential: bool = False,
) -> Task:
    """What a rollout needs to know; without workflows compliance is counted for the first one and not rewarded."""
    orders = np.stack([workflow.indices() for workflow in workflows or all_workflows()[:1]])
    numbers = (np.arange(n_envs) % len(orders)).astype(np.int16)
    return Task(
        numbers, orders, type_masks(network), fixed_type, max_steps, float(alignment_lambda), potential, greedy,
        view.tracks, view.remembers, view.actions == "host-decoy", False, False, make_guard(network, view),
    )  # fmt: skip


class PlainCollector:
    """Plays any vector environment step by step: the network for every observation, no look-up, no compiled loop.

    The same seed gives the same batch as :class:`Collector`, up to the rounding of the network's arithmetic.
    :meth:`start` comes before the first batch.

    Args:
        envs: the environments.
        config: steps of a batch, length of an episode, strength of the alignment reward.
        workflows: environment i has workflow i, round and round; none: a general policy.
        greedy: play the most probable action.
        row_by_row: ask the network for one environment at a time; arithmetic on several at once is rounded otherwise,
            and what an environment plays must not depend on how many there are.
    """

    def __init__(
        self,
        envs: Any,
        config: TrainConfig,
        workflows: tuple[Workflow, ...],
        greedy: bool = False,
        row_by_row: bool = False,
    ) -> None:
        network, n, view = envs.network, envs.num_envs, View(config.view, config.actions)
        self.view, self.config, self.row_by_row = view, config, row_by_row
        self.envs = with_view(envs, view)
        self.buffer = ParallelTrajectoryBuffer(
            n, config.update_steps, view.n_actions, config.max_steps, False, view.n_words
        )
        fixed_type = np.zeros(network.n_actions, np.int8)
        self.ordered = bool(workflows)
        strength = config.alignment_lambda if workflows else 0.0
        self.task = make_task(
            network, n, workflows, config.max_steps, strength, fixed_type, greedy, view,
            config.alignment == "potential",
        )  # fmt: skip
        self.compliance = Compliance(network, self.task.orders[self.task.workflows], strength, self.task.potential)
        self.episodes = self.compliance.episodes
        self.generators = np.zeros(n, np.uint64)

    @classmethod
    def of(cls, config: TrainConfig, workflows: tuple[Workflow, ...], purpose: tuple[int, ...]) -> PlainCollector:
        """Started, on the environments of a training."""
        envs = make_envs(
            Backend(config.backend, config.cyborg_path), config.n_envs,
            red_agent=config.red_agent, edition=config.edition, max_steps=config.max_steps, takeover=config.takeover,
        )  # fmt: skip
        collector = cls(envs, config, workflows)
        try:
            collector.start(
                derive_seeds(config.seed, (*purpose, ENVIRONMENTS), config.n_envs),
                derive_seeds(config.seed, (*purpose, POLICY), config.n_envs),
            )
        except BaseException:
            collector.close()
            raise
        return collector

    def start(
        self, seeds: np.ndarray, generators: np.ndarray, red_agents: Sequence[str] = (), takeovers: Sequence[str] = ()
    ) -> None:
        """Begins new episodes.

        Args:
            seeds: of the environments, (n_envs,) uint64.
            generators: of the policy's chance, (n_envs,) uint64.
            red_agents: of the environments, where they change.
            takeovers: likewise.
        """
        changed = {"red_agent": list(red_agents), "takeover": list(takeovers)}
        self.envs.reset(seed=seeds.tolist(), options={name: value for name, value in changed.items() if value})
        self.generators = generators.copy()
        self.compliance.start_episodes(np.ones(len(seeds), bool))

    def collect(self, ppo: ParallelOrderConditionedPPO, teacher: Teacher | None = None) -> ParallelTrajectoryBuffer:
        """Plays one batch with the policy of ``ppo``, or with the teacher's actions."""
        buffer, batch = self.buffer, self.buffer.batch
        self.violations[:] = 0
        size = batch.rows.size
        batch.rows[:] = np.arange(size).reshape(batch.rows.shape)
        keys = buffer.inputs.keys.reshape((*batch.rows.shape, -1))
        taught = buffer.inputs.taught.reshape(batch.rows.shape)
        buffer.n_rows, buffer.n_finished = size, 0
        finals = []  # keys after last steps, step by step
        for step in range(batch.rows.shape[1]):
            keys[:, step] = self.last_keys()
            probabilities = self._probabilities(ppo, keys[:, step])
            sampled = sample_actions(probabilities.copy(), self.generators)
            batch.actions[:, step] = probabilities.argmax(axis=1) if self.task.greedy else sampled
            if teacher is not None:
                batch.actions[:, step] = taught[:, step] = teacher.actions(self.envs.memories, self.view)
            _, rewards, terminated, truncated, infos = self.envs.step(batch.actions[:, step])
            assert not terminated.any(), "the game has no end of its own; the time limit truncates it"
            batch.rewards[:, step], batch.ended[:, step] = rewards, truncated
            batch.alignment[:, step] = self._count(infos, batch.ended[:, step])
            finals.append(self._final_keys(infos, batch.ended[:, step]))
            self._end_episodes(batch.rewards[:, step], batch.alignment[:, step], batch.ended[:, step])
        by_step = np.argsort(np.nonzero(batch.ended)[1], kind="stable")  # places of the keys, by environment and step
        buffer.final_keys[by_step] = np.concatenate(finals)
        return buffer

    def _probabilities(self, ppo: ParallelOrderConditionedPPO, keys: np.ndarray) -> np.ndarray:
        if not self.row_by_row:
            return ppo.probabilities(keys)
        return np.concatenate([ppo.probabilities(keys[i : i + 1]) for i in range(len(keys))])

    def set_strength(self, alignment_lambda: float) -> None:
        """Changes the strength of the alignment reward, where there is one."""
        if self.ordered:
            self.compliance.alignment_lambda = alignment_lambda

    def last_keys(self) -> np.ndarray:
        """The current inputs; (n_envs, n_words)."""
        keys = self.view.keys(self.envs.packed_observations)
        keys[:, 0] |= self.task.workflows.astype(np.int64) << KEY_BITS
        return keys

    def _final_keys(self, infos: dict[str, Any], ended: np.ndarray) -> np.ndarray:
        """Inputs after the last step of the episodes that ended with this one; (n_ended, n_words)."""
        rows = np.flatnonzero(ended)
        keys = np.zeros((len(rows), self.view.n_words), np.int64)
        if len(rows):
            keys[:] = pack_words(np.stack([infos["final_obs"][row] for row in rows]), self.view.n_words)
            keys[:, 0] |= self.task.workflows[rows].astype(np.int64) << KEY_BITS
        return keys

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that goes on from batch to batch, as plain arrays."""
        own = {"generators": self.generators, "episodes": self.episodes.view(np.uint8)}
        games: dict[str, np.ndarray] = self.envs.state_arrays()
        return games | own

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes back what :meth:`arrays` gave."""
        self.envs.restore_state_arrays(arrays)
        self.generators[:] = arrays["generators"]
        self.episodes[:] = arrays["episodes"].view(EPISODE_DTYPE)

    def close(self) -> None:
        """Ends the environments' processes, if they have any."""
        self.envs.close()

    @property
    def violations(self) -> np.ndarray:
        """Violations of the last batch, by repaired and due unit type."""
        return self.compliance.violations

    def _count(self, infos: dict[str, Any], ended: np.ndarray) -> np.ndarray:
        facts = [infos[name] for name in FACTS]
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
