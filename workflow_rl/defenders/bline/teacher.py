"""The best play against B_line as a teacher: a policy with a memory imitates what is best for the belief behind it."""

from __future__ import annotations

import numpy as np

from workflow_rl.defenders.bline.beliefs import UNEXPANDED, full, sight_of
from workflow_rl.defenders.bline.graph import EMPTY
from workflow_rl.defenders.bline.moves import best_move, expand, follow, move_with
from workflow_rl.defenders.bline.plan import Plan, Starts
from workflow_rl.defenders.teacher import Exceptions, slip, teach
from workflow_rl.engine.bits import wide
from workflow_rl.engine.chance import sample
from workflow_rl.engine.compiled import compiled, compiled_once
from workflow_rl.engine.network import FIRST_PROGRAM
from workflow_rl.engine.state import State
from workflow_rl.engine.step import begin_one, step_one
from workflow_rl.envs.inference import begin, remember
from workflow_rl.envs.memory import B_LINE, N_WORDS, full_action, view_action, write_bits
from workflow_rl.training.rollout import Setup, World


@compiled
def first_belief(starts: Starts, s: State) -> int:
    """The belief at the start of a game against B_line; EMPTY if there is none for its first observation."""
    found: int = EMPTY
    if s.red == FIRST_PROGRAM and s.step == 0 and not s.green_acts:
        for k in range(starts.nodes.shape[0]):
            if starts.observations[k] == s.observation[0]:
                found = wide(starts.nodes[k])
    return found


@compiled_once
def planned_action(plan: Plan, node: int) -> int:
    """The best action in a belief. It depends on the plan alone, not on what was asked before."""
    expand(plan.beliefs, plan.task, node, plan.room)
    action: int = wide(plan.beliefs.action[best_move(plan.beliefs, node, plan.task.discount)[0]])
    return action


@compiled_once
def next_belief(plan: Plan, node: int, action: int, observation: int) -> int:
    """The belief after an action and what was seen; EMPTY if there is no room for more."""
    if full(plan.beliefs):
        return EMPTY
    move = move_with(plan.beliefs, plan.task, node, action, plan.room)
    then = follow(plan.beliefs, move, sight_of(observation))
    return EMPTY if then != EMPTY and plan.beliefs.first_move[then] == UNEXPANDED and full(plan.beliefs) else then


@compiled
def play_planned(
    plan: Plan, world: World, setup: Setup, rows: np.ndarray, n_told: int, exceptions: Exceptions,
    actions: np.ndarray, lessons: np.ndarray,
) -> None:  # fmt: skip
    """Plays a batch in the environments ``rows`` and writes what is played and what is to be learned.

    Against other attackers, and before the memory knows that it is B_line, the expert plays, who is told the first
    ``n_told`` types of the orders, and its exceptions.
    """
    t, key, leaderboard = world.tables[0], np.zeros(N_WORDS, np.int64), plan.task.world.leaderboard
    for i in rows:
        s, m, order = world.states[i], world.memories[i], setup.orders[setup.workflows[i, 0]][:n_told]
        node = first_belief(plan.starts, s)
        for step in range(actions.shape[1]):
            if m.foe == B_LINE and node != EMPTY:
                action = planned_action(plan, node)
            else:
                write_bits(m, key)
                action = teach(m, key, leaderboard, exceptions, order)
            if node != EMPTY:
                expand(plan.beliefs, plan.task, node, plan.room)
            played = slip(s, m, action)
            lessons[i, step] = view_action(action) if setup.host_decoy else action
            actions[i, step] = view_action(played) if setup.host_decoy else played
            action = full_action(m, actions[i, step]) if setup.host_decoy else played
            step_one(s, t, action, sample(s))
            node = next_belief(plan, node, action, s.observation[0]) if node != EMPTY else EMPTY
            remember(m, action, s.observation[0])
            if s.step == setup.max_steps:
                begin_one(s, t, world.takeovers[i])
                begin(m, s.observation[0])
                node = first_belief(plan.starts, s)
