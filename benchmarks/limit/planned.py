"""What a defender could reach against B_line that sees only what blue sees, and knows that it is B_line."""

from __future__ import annotations

from typing import Any

import numpy as np

from workflow_rl.defenders.bline.graph import EMPTY
from workflow_rl.defenders.bline.moves import expand
from workflow_rl.defenders.bline.orders import World, all_games
from workflow_rl.defenders.bline.plan import LENGTH, Plan, least_regret, make_plan, make_task
from workflow_rl.defenders.bline.teacher import first_belief, next_belief, planned_action
from workflow_rl.defenders.teacher import NO_EXCEPTIONS, Exceptions, teach
from workflow_rl.engine.bits import wide
from workflow_rl.engine.chance import sample, seed_one
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import FIRST_PROGRAM, Network
from workflow_rl.engine.state import compromised_hosts
from workflow_rl.engine.step import begin_one, step_one
from workflow_rl.envs.blue import cell_of
from workflow_rl.envs.inference import begin, remember
from workflow_rl.envs.memory import B_LINE, MEMORY_DTYPE, N_WORDS, write_bits
from workflow_rl.training.compliance import EPISODE_DTYPE, Obedience, due_type

HORIZON = 160  # steps in which the states of all these games come up
DISCOUNT, PRICE = 0.985, 50.0


@compiled
def _play(
    plan: Plan, seeds: np.ndarray, takeover: np.ndarray, memory: np.ndarray, expert: Exceptions, episodes: np.ndarray
) -> None:
    t, m, s = plan.task.world.tables[0], memory[0], plan.room.states[2]
    key, order, masks = np.zeros(N_WORDS, np.int64), plan.task.order, plan.task.world.masks
    for i in range(seeds.shape[0]):
        s.red, s.green_acts = FIRST_PROGRAM, 0
        seed_one(s, seeds[i])
        begin_one(s, t, takeover)
        begin(m, s.observation[0])
        node = first_belief(plan.starts, s)
        for _ in range(LENGTH):
            if node != EMPTY and m.foe == B_LINE:
                action = planned_action(plan, node)
            else:  # the opponent is not known yet, or the belief is lost
                write_bits(m, key)
                action = teach(m, key, plan.task.world.leaderboard, expert, order)
            before = compromised_hosts(s, t)
            if node != EMPTY:
                expand(plan.beliefs, plan.task, node, plan.room)
            episodes[i].total += step_one(s, t, action, sample(s)) / 10.0
            if s.repaired:
                episodes[i].repairs += 1
                due = due_type(order, masks, before)
                episodes[i].violations += 1 if order.shape[0] and wide(s.repaired) & masks[due] == 0 else 0
            node = next_belief(plan, node, action, s.observation[0]) if node != EMPTY else EMPTY
            remember(m, action, s.observation[0])


def play(plan: Plan, games: int, seed: int, takeover: int) -> np.ndarray:
    """Episodes (games,) of the plan in the engine's own games, after the expert's opening."""
    episodes = np.zeros(games, EPISODE_DTYPE)
    seeds = np.random.SeedSequence([seed, takeover]).generate_state(games, np.uint64)
    rows = np.array([takeover, takeover, 0], np.int32)
    _play(plan, seeds, rows, np.zeros(1, MEMORY_DTYPE), NO_EXCEPTIONS, episodes)
    return episodes


def planned_limit(
    network: Network, world: World, order: str, takeover: int, tries: int, games: int, seed: int
) -> dict[str, Any]:
    """The plan's return in games, and a lower bound of what any play with this knowledge loses in 100 steps.

    Args:
        network: CAGE Challenge 2.
        world: all games against B_line.
        order: unit types; may be empty.
        takeover: steps that red plays first.
        tries: games from which the plan is made.
        games: games that measure it.
        seed: of these games.
    """
    types = np.array([network.unit_types.index(name) for name in order.split(",") if name], np.int64)
    plan = make_plan(make_task(world, types, PRICE, DISCOUNT), {takeover: 1.0}, tries, scale=4)
    episodes = play(plan, games, seed, takeover)
    cell, found = cell_of(episodes["total"]), Obedience.of(episodes)
    return {
        "mean": cell.mean, "standard_error": cell.standard_error, "kept": found.kept, "compliance": found.compliance,
        "repairs": found.repairs, "least_regret": least_regret(plan, LENGTH), "games": games, "tries": tries,
    }  # fmt: skip


def world_of(network: Network, edition: str) -> World:
    """All games against B_line that the plans need."""
    return all_games(network, edition, HORIZON)
