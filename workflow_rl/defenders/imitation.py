"""The teacher of a training: it plays the games, and a policy learns to imitate its actions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from workflow_rl.config import TrainConfig
from workflow_rl.defenders.paired_games import improved_teacher
from workflow_rl.defenders.teacher import Exceptions, teach, teach_all
from workflow_rl.engine.chance import sample
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.step import begin_one, step_one
from workflow_rl.envs.memory import N_WORDS, begin, full_action, remember, view_action, write_bits
from workflow_rl.envs.views import View
from workflow_rl.training.rollout import Setup, World


@compiled
def play_ahead(world: World, setup: Setup, leaderboard: bool, exceptions: Exceptions, actions: np.ndarray) -> None:
    """Plays a batch with the teacher and writes its actions (n_envs, n_steps) in the numbering of the view."""
    t, key = world.tables[0], np.zeros(N_WORDS, np.int64)
    for i in range(actions.shape[0]):
        s, memory = world.states[i], world.memories[i]
        for step in range(actions.shape[1]):
            write_bits(memory, key)
            action = teach(memory, key, leaderboard, exceptions)
            actions[i, step] = view_action(action) if setup.host_decoy else action
            action = full_action(memory, actions[i, step]) if setup.host_decoy else action
            step_one(s, t, action, sample(s))
            remember(memory, action, s.observation[0])
            if s.step == setup.max_steps:
                begin_one(s, t, world.takeovers[i])
                begin(memory, s.observation[0])


class ExpertTeacher:
    """The expert with exceptions, as a :class:`workflow_rl.training.collectors.Teacher`."""

    def __init__(self, edition: str, exceptions: Exceptions) -> None:
        self.leaderboard, self.exceptions = edition == "leaderboard", exceptions

    def plan(self, world: World, setup: Setup, actions: np.ndarray) -> None:
        """Writes its actions (n_envs, n_steps) for the next batch, which it plays on copies of the states."""
        copies = world._replace(states=world.states.copy(), memories=world.memories.copy())
        play_ahead(copies, setup, self.leaderboard, self.exceptions, actions)

    def actions(self, memories: np.ndarray, view: View, _orders: np.ndarray) -> np.ndarray:
        """Its actions (n,) for memories (n,), in the numbering of the view; it follows no order."""
        actions = np.empty(len(memories), np.int64)
        teach_all(memories, view.keys(memories), self.leaderboard, self.exceptions, actions)
        return view_actions(actions) if view.actions == "host-decoy" else actions


def view_actions(actions: np.ndarray) -> np.ndarray:
    """The host-decoy actions (n_envs,) that stand for environment actions of CAGE Challenge 2."""
    return np.array([view_action(action) for action in actions.tolist()])


def expert_teacher(config: TrainConfig, folder: Path | None, note: Callable[[str], None]) -> ExpertTeacher:
    """The expert, improved by the configured number of rounds of paired games."""
    return ExpertTeacher(config.edition, improved_teacher(config, folder, note))
