"""Plays a network's fresh games for an evaluation: in the compiled rollout, or on genuine CybORG."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import numpy as np

from workflow_rl.backends import Backend, make_envs
from workflow_rl.collect import ENVIRONMENTS, POLICY, Collector, PlainCollector, derive_seeds
from workflow_rl.compliance import EPISODE_DTYPE
from workflow_rl.ppo import ParallelOrderConditionedPPO
from workflow_rl.scenario import parse_red_agents
from workflow_rl.scores import Progress
from workflow_rl.takeover import takeovers_of
from workflow_rl.workflow import Workflow

Play = Callable[[ParallelOrderConditionedPPO, tuple[Workflow, ...], Progress], tuple[np.ndarray, np.ndarray]]
"""From policy and workflow (or none) to the finished episodes (n_episodes,) and rewards (n_episodes, max_steps)."""


@dataclass(frozen=True)
class FreshGames:
    """Which games to play; the fields are those of :func:`workflow_rl.policy_evaluation.evaluate_network`."""

    red_agent: str
    edition: str
    n_episodes: int
    max_steps: int
    seed: int
    purpose: tuple[int, ...]
    greedy: bool
    takeover: str = "0"

    @contextmanager
    def players(self, backend: Backend) -> Iterator[Play]:
        """A function that plays all the games on the backend."""
        if backend.name == "native":
            yield self._play_native
            return
        n_envs = min(backend.jobs, self.n_episodes)
        envs = make_envs(
            backend, n_envs, red_agent=self._reds(np.arange(n_envs)), edition=self.edition, max_steps=None,
            takeover=takeovers_of(self.takeover, np.arange(n_envs)),
        )  # fmt: skip
        with closing(envs):
            yield lambda ppo, workflows, progress: self._play_cyborg(envs, ppo, workflows, progress)

    def _reds(self, episodes: np.ndarray) -> list[str]:
        """Opponents of some episodes."""
        names = parse_red_agents(self.red_agent)
        return [names[episode % len(names)] for episode in episodes.tolist()]

    def _play_native(
        self, ppo: ParallelOrderConditionedPPO, workflows: tuple[Workflow, ...], progress: Progress
    ) -> tuple[np.ndarray, np.ndarray]:
        collector = Collector(
            self.n_episodes, self.max_steps, self.max_steps, self.red_agent, self.edition, workflows, 0.0, self.seed,
            self.purpose, self.greedy, ppo.view, takeover=self.takeover,
        )  # fmt: skip
        buffer = collector.collect(ppo)
        progress(self.n_episodes)
        return buffer.finished_episodes(), buffer.batch.rewards

    def _play_cyborg(
        self, envs: object, ppo: ParallelOrderConditionedPPO, workflows: tuple[Workflow, ...], progress: Progress
    ) -> tuple[np.ndarray, np.ndarray]:
        """As many games at a time as there are environments; each has seeds of its own, so grouping is no matter."""
        config = replace(
            ppo.config, update_steps=self.max_steps, max_steps=self.max_steps, alignment_lambda=0.0, anchor=0.0,
            imitate_updates=0,
        )  # fmt: skip
        collector = PlainCollector(envs, config, workflows, self.greedy, row_by_row=True)
        seeds = derive_seeds(self.seed, (*self.purpose, ENVIRONMENTS), self.n_episodes)
        generators = derive_seeds(self.seed, (*self.purpose, POLICY), self.n_episodes)
        episodes = np.zeros(self.n_episodes, EPISODE_DTYPE)
        rewards = np.zeros((self.n_episodes, self.max_steps), np.float32)
        n_envs = len(collector.episodes)
        for first in range(0, self.n_episodes, n_envs):
            rows = (
                np.arange(first, first + n_envs) % self.n_episodes
            )  # the last group is filled up with the first games
            collector.start(seeds[rows], generators[rows], self._reds(rows), takeovers_of(self.takeover, rows))
            played = collector.collect(ppo).batch.rewards
            kept = min(n_envs, self.n_episodes - first)
            episodes[rows[:kept]], rewards[rows[:kept]] = collector.episodes[:kept], played[:kept]
            progress(kept)
        return episodes, rewards
