"""The teacher of a training: it plays the games, and a policy learns to imitate its actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from workflow_rl.config import TrainConfig, check_jobs, parse_takeover
from workflow_rl.defenders.bline.orders import all_games, orders_of
from workflow_rl.defenders.bline.plan import Plan, make_plan, make_task
from workflow_rl.defenders.bline.teacher import play_planned
from workflow_rl.defenders.paired_games import improved_teacher
from workflow_rl.defenders.teacher import Exceptions, teach, teach_all
from workflow_rl.engine.chance import sample
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.step import begin_one, step_one
from workflow_rl.envs.inference import begin, remember
from workflow_rl.envs.memory import N_WORDS, full_action, view_action, write_bits
from workflow_rl.envs.views import View
from workflow_rl.training.collectors import workflows_of
from workflow_rl.training.rollout import Setup, World

PRICE = 50.0  # points that a violation costs in planning: more than it can ever gain
DISCOUNT = 0.985
USUAL_COST = 0.1  # regret of a step, in tenths, below that of any good play
HORIZON = 200  # steps in which all states of games against B_line come up
Tasks = dict[tuple[int, ...], Plan]
"""Plans by the order of the unit types that B_line takes; without a workflow by the empty order."""


@compiled
def play_ahead(
    world: World, setup: Setup, leaderboard: bool, n_told: int, exceptions: Exceptions, actions: np.ndarray
) -> None:
    """Plays a batch with the teacher and writes its actions (n_envs, n_steps) in the numbering of the view.

    It is told the first ``n_told`` types of each order.
    """
    t, key = world.tables[0], np.zeros(N_WORDS, np.int64)
    for i in range(actions.shape[0]):
        s, memory, order = world.states[i], world.memories[i], setup.orders[setup.workflows[i, 0]][:n_told]
        for step in range(actions.shape[1]):
            write_bits(memory, key)
            action = teach(memory, key, leaderboard, exceptions, order)
            actions[i, step] = view_action(action) if setup.host_decoy else action
            action = full_action(memory, actions[i, step]) if setup.host_decoy else action
            step_one(s, t, action, sample(s))
            remember(memory, action, s.observation[0])
            if s.step == setup.max_steps:
                begin_one(s, t, world.takeovers[i])
                begin(memory, s.observation[0])


class ExpertTeacher:
    """The expert with exceptions and plans, as a :class:`workflow_rl.training.collectors.Teacher`.

    Args:
        edition: the edition of the rules.
        exceptions: the situations in which the expert is overruled.
        told: whether the expert is told the orders of the training.
        plans: what is best against B_line; empty: the expert plays.
    """

    def __init__(self, edition: str, exceptions: Exceptions, told: bool, plans: Tasks) -> None:
        self.leaderboard, self.exceptions, self.told, self.plans = edition == "leaderboard", exceptions, told, plans

    def plan(self, world: World, setup: Setup, actions: np.ndarray, lessons: np.ndarray) -> None:
        """Writes what it plays (n_envs, n_steps) in the next batch, on copies of the states, and what it teaches."""
        copies = world._replace(states=world.states.copy(), memories=world.memories.copy())
        setup = setup._replace(orders=setup.orders.astype(np.int64))
        n_told = setup.orders.shape[1] if self.told else 0
        if not self.plans:
            play_ahead(copies, setup, self.leaderboard, n_told, self.exceptions, actions)
            lessons[:] = actions
        orders = setup.orders[setup.workflows[:, 0]].tolist()
        for order, plan in self.plans.items():
            rows = [i for i, whole in enumerate(orders) if tuple(kind for kind in whole if kind in order) == order]
            play_planned(plan, copies, setup, np.array(rows, np.int64), n_told, self.exceptions, actions, lessons)

    def actions(self, memories: np.ndarray, view: View, orders: np.ndarray) -> np.ndarray:
        """Its actions (n,) for memories (n,) and orders (n, n_types), in the numbering of the view, without plans."""
        actions = np.empty(len(memories), np.int64)
        told = orders[:, : orders.shape[1] if self.told else 0].astype(np.int64)
        teach_all(memories, view.keys(memories), self.leaderboard, self.exceptions, told, actions)
        return view_actions(actions) if view.actions == "host-decoy" else actions


def view_actions(actions: np.ndarray) -> np.ndarray:
    """The host-decoy actions (n_envs,) that stand for environment actions of CAGE Challenge 2."""
    return np.array([view_action(action) for action in actions.tolist()])


def expert_teacher(config: TrainConfig, folder: Path | None, note: Callable[[str], None]) -> ExpertTeacher:
    """The expert, improved by the configured number of rounds of paired games, with plans against B_line."""
    plans = plan_tasks(config, note) if config.plan_games else {}
    return ExpertTeacher(config.edition, improved_teacher(config, folder, note), config.conditioned, plans)


def plan_tasks(config: TrainConfig, note: Callable[[str], None]) -> Tasks:
    """Plans for every order of the unit types that B_line takes that the training has."""
    network = as_network(CAGE2)
    note(f"planning against B_line, {config.plan_games:,} games for each order that differs: this takes minutes")
    world = all_games(network, config.edition, HORIZON)
    taken = {int(kind) for order in orders_of(world.reduction, network).values() for kind in order}
    orders = [w.indices().tolist() for w in workflows_of(config, network)] or [[]]
    wanted = list(dict.fromkeys(tuple(kind for kind in order if kind in taken) for order in orders))
    ranges = parse_takeover(config.takeover)
    counts: Counter[int] = Counter()
    for least, most in ranges:
        counts.update(dict.fromkeys(range(least, most + 1), 1.0 / (most - least + 1)))
    takeovers = {steps: count / len(ranges) for steps, count in counts.items()}

    def make(order: tuple[int, ...]) -> Plan:
        task = make_task(world, np.array(order, np.int64), PRICE, DISCOUNT)
        return make_plan(task, takeovers, config.plan_games, config.seed, USUAL_COST, scale=2)

    with ThreadPoolExecutor(check_jobs(None)) as pool:
        return dict(zip(wanted, pool.map(make, wanted), strict=True))
