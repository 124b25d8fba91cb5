"""The limit of defence: exact against B_line, an estimate against Meander."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

from workflow_rl.engine import STATE_DTYPE, Draw, allocate, compile_tables, force
from workflow_rl.engine.chance import ABSENT
from workflow_rl.engine.state import NO_EXPLOIT
from workflow_rl.engine.step import reset_envs, step_envs_with
from workflow_rl.errors import UserError
from workflow_rl.evaluation import evaluate, reference_policy
from workflow_rl.scenario_file import load_scenario
from workflow_rl.studies.bline_graph import STATES
from workflow_rl.studies.bline_limit import Solution, bline_limit, simulate, solve
from workflow_rl.studies.bline_states import keys_of

EDITIONS = ("current", "leaderboard")
HORIZON = 18  # B_line needs 15 steps to its last line
N_DRAWS = 2**32


@cache
def solution(edition: str) -> Solution:
    scenario = load_scenario()
    return solve(compile_tables(scenario, edition), scenario, HORIZON, keep_all=True)


def rows_of(states: np.ndarray, solved: Solution) -> np.ndarray:
    """The numbers of states (n,) in the graph; all must be there."""
    keys = solved.graph.keys[: solved.graph.sizes[STATES]]
    order = np.argsort(keys)
    wanted = keys_of(states, solved.tables, solved.reduction)
    rows: np.ndarray = order[np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)]
    assert np.array_equal(keys[rows], wanted)
    return rows


def games_of_a_careless_defender(solved: Solution, n_games: int, seed: int) -> list[np.ndarray]:
    """True states, unreduced, before each step: a defender that often sleeps and else does anything at all."""
    generator, states, rewards = np.random.default_rng(seed), allocate(n_games), np.zeros(n_games)
    reset_envs(states, solved.tables, np.ones(n_games, bool), np.arange(n_games, dtype=np.uint64), True)
    seen = []
    for _ in range(HORIZON - 1):
        seen.append(states.copy())
        actions = generator.integers(145, size=n_games)
        actions[generator.random(n_games) < np.linspace(0, 1, n_games)] = 0
        step_envs_with(states, solved.tables, actions, generator.integers(N_DRAWS, size=(n_games, 4)), rewards)
    return seen


def every_outcome(states: np.ndarray, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For states (n,), next states (n, 145, k), rewards in tenths, and chances, 0 where chance cannot have it so."""
    users = [i for i in range(13) if int(tables["bline_users"][0]) >> i & 1]
    draws = np.array(list(itertools.product(users, range(8), (0, 1), (ABSENT,))))
    shape = (len(states), 145, len(draws))
    after = np.broadcast_to(states[:, None, None], shape).reshape(-1).copy()
    actions = np.broadcast_to(np.arange(145)[:, None], shape).reshape(-1).copy()
    forced = force(np.broadcast_to(draws, (*shape, 4)).reshape(-1, 4).copy())
    rewards = np.zeros(len(after))
    step_envs_with(after, tables, actions, forced, rewards)
    after, rewards, forced = after.reshape(shape), rewards.reshape(shape), -1 - forced.reshape(*shape, 4)
    possible = after["irregular"] == 0
    drawn = after["exploit"] != NO_EXPLOIT
    exploit, best = forced[..., Draw.EXPLOIT], np.where(possible, after["exploit"], 99).min(axis=2, keepdims=True)
    n_options = np.array([[len(set(e[p].tolist())) for e, p in zip(*row, strict=True)] for row in zip(exploit, possible, strict=True)])
    others = np.maximum(n_options[..., None] - 1, 1)
    chances = np.where(exploit == best, np.where(n_options[..., None] == 1, 1.0, 0.75), 0.25 / others)
    chances = np.where(drawn, chances, 1 / 8)
    detected = np.where(after["detected"] == 1, 0.95, np.where(after["detected"] == 0, 0.05, 0.5))
    chances = chances * detected * np.where(states["user"][:, None, None] < 0, 0.25, 0.25) * possible
    assert np.allclose(chances.sum(axis=2), 1)
    return after, 10 * rewards, chances


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_values_solve_bellmans_equation_of_the_unreduced_game_with_all_145_actions(edition: str) -> None:
    """With no steps to go the value is 0; so by induction the values are the optimum, where this holds."""
    solved = solution(edition)
    lines = set()
    for step, states in enumerate(games_of_a_careless_defender(solved, 12, seed=5)):
        after, rewards, chances = every_outcome(states, solved.tables)
        here, there = rows_of(states, solved), rows_of(after.reshape(-1), solved).reshape(after.shape)
        lines |= set(states["line"].tolist())
        for to_go in range(1, HORIZON - step + 1):
            best = (chances * (rewards + solved.values[to_go - 1, there])).sum(axis=2).max(axis=1)
            assert np.allclose(best, solved.values[to_go, here], rtol=0, atol=1e-6)
    assert lines == set(range(15))
