"""Paired games: they mend what is wrong, do not depend on threads, and a run goes on where it was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workflow_rl.defenders import paired_games as module
from workflow_rl.defenders.expert import NO_ORDER
from workflow_rl.defenders.paired_games import (
    FREE,
    WEIGHTS,
    Play,
    Task,
    clustered,
    improve,
    improved_teacher,
    play_on,
)
from workflow_rl.defenders.teacher import NO_EXCEPTIONS, Exceptions, make_exceptions, task_number, teach, write_key
from workflow_rl.engine.chance import seed_one
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.state import allocate
from workflow_rl.engine.step import begin_one
from workflow_rl.engine.tables import compile_tables
from workflow_rl.envs.inference import begin
from workflow_rl.envs.memory import (
    ENTERPRISE2,
    FIRST_DECOY,
    MEMORY_DTYPE,
    N_BITS,
    N_WORDS,
    OBSERVATION_BITS,
    RESTORE,
    SLEEP,
    USER4,
    forget,
    write_bits,
)
from workflow_rl.errors import UserError
from workflow_rl.presets import make_config
from workflow_rl.runs import read_tensors, write_tensors
from workflow_rl.training.actor import EMPTY, find
from workflow_rl.training.compliance import type_masks
from workflow_rl.training.train_task import check_task

FIRST = np.zeros(N_WORDS, np.int64)  # the key of an episode's start
_memory = np.zeros(1, MEMORY_DTYPE)
forget(_memory[0])
write_bits(_memory[0], FIRST)
BLUNDER = make_exceptions(FIRST[None], np.array([RESTORE + USER4]))


def small(exceptions: Exceptions, jobs: int, task: Task = FREE) -> tuple[Exceptions, dict[str, float]]:
    return improve("current", exceptions, 7, jobs, n_games=300, least=0.2, task=task)


def in_order(exceptions: Exceptions) -> list[tuple[list[int], int]]:
    return sorted(zip(exceptions.keys.tolist(), exceptions.actions.tolist(), strict=True))


def test_the_table_of_exceptions_finds_what_was_put_into_it_and_nothing_else() -> None:
    keys = np.unique(np.random.default_rng(0).integers(-(2**62), 2**62, size=(500, N_WORDS)), axis=0)
    table = make_exceptions(keys[::2], np.arange(len(keys[::2])))
    for i, key in enumerate(keys):
        row = table.slots[find(table.slots, table.keys, key)]
        assert row == (i // 2 if i % 2 == 0 else EMPTY)


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
def test_the_teacher_is_the_expert_but_for_its_exceptions(edition: str) -> None:
    usual = teach(_memory[0], FIRST, edition == "leaderboard", NO_EXCEPTIONS, NO_ORDER)
    assert usual >= FIRST_DECOY
    assert teach(_memory[0], FIRST, edition == "leaderboard", BLUNDER, NO_ORDER) == RESTORE + USER4


def test_a_blunder_is_found_and_mended_whatever_the_number_of_threads() -> None:
    (one, figures), (two, _) = small(BLUNDER, 1), small(BLUNDER, 2)
    assert in_order(one) == in_order(two)
    (mended,) = [action for key, action in in_order(one) if key == FIRST.tolist()]
    assert mended not in (RESTORE + USER4, SLEEP)
    assert figures["expected_gain"] > 2  # a needless Restore in step 1 costs three cells 1 each, for each attacker
    assert figures["exceptions"] == len(one.keys)


def test_an_order_that_is_told_has_its_own_exceptions_and_other_games_too() -> None:
    order = (4, 1, 2, 3, 0)
    key = FIRST.copy()
    write_key(_memory[0], task_number(order), key)
    assert key.tolist() != FIRST.tolist()
    blunder = make_exceptions(key[None], np.array([RESTORE + USER4]))
    task = Task(order, 50, ("meander",), green=0.3, incidents=0.3)
    (one, _), (two, _) = small(blunder, 1, task), small(blunder, 2, task)
    assert in_order(one) == in_order(two)
    assert {row[0] >> OBSERVATION_BITS for row in one.keys.tolist()} == {task_number(order)}
    (mended,) = [action for row, action in in_order(one) if row == key.tolist()]
    assert mended != RESTORE + USER4


def test_a_violation_of_the_order_has_its_price() -> None:
    """Op_Server0 first: whoever takes over B_line's attack and restores Enterprise2 violates that order."""
    network = load_network()
    states, memory, key = allocate(1), np.zeros(1, MEMORY_DTYPE), np.zeros(N_WORDS, np.int64)
    tables, order = compile_tables(network), np.array([2, 1, 4, 3, 0])
    returns = []
    for price in (0, 70):
        seed_one(states[0], 5)
        begin_one(states[0], tables[0], np.array([30, 30, 0], np.int32))
        begin(memory[0], states[0]["observation"][0])
        play = Play(tables, False, NO_EXCEPTIONS, order, 1, price, type_masks(network), WEIGHTS)
        returns.append(play_on(states[0], memory[0], RESTORE + ENTERPRISE2, play, key))
    assert returns[0] - returns[1] == 70 * WEIGHTS[0]


def test_pairs_from_one_state_are_one_observation() -> None:
    values = np.random.default_rng(0).normal(size=8)
    mean, error = clustered(np.tile(values, 50), 0, 8)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(8))
    assert clustered(np.roll(np.tile(values, 50), -3), 3, 8)[1] == pytest.approx(error)


def test_a_run_keeps_its_rounds_and_goes_on_after_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []

    def round_of(_: str, exceptions: Exceptions, seed: int, __: int) -> tuple[Exceptions, dict[str, float]]:
        played.append(seed)
        key = np.full((1, N_WORDS), len(exceptions.keys) + 1)
        new = make_exceptions(np.concatenate([exceptions.keys, key]), np.append(exceptions.actions, 5))
        return new, {"situations": 10.0, "found": 1.0}

    monkeypatch.setattr(module, "improve", round_of)
    said: list[str] = []
    config = make_config("champion")
    whole = improved_teacher(config, tmp_path, said.append)
    assert len(whole.keys) == config.improve_rounds == len(set(played)) == len(said) / 2
    assert said[1].startswith("paired games, round 1 of 3: 10 situations, better actions in 1 of them")
    assert read_tensors(tmp_path / "teacher.safetensors")[1]["rounds"] == 3
    again = improved_teacher(make_config("champion", improve_rounds=4), tmp_path)  # killed after three
    assert len(played) == 4
    assert len(again.keys) == 4
    assert in_order(improved_teacher(config, None)) == in_order(whole)


def test_a_teacher_that_is_damaged_or_of_another_task_is_refused(tmp_path: Path) -> None:
    config, path = make_config("champion"), tmp_path / "teacher.safetensors"
    keys, actions = np.ones((2, N_WORDS), np.int64), np.array([1, 2], np.int16)
    about = {"format": "workflow_rl teacher 1", "edition": "current", "seed": 0, "n_bits": N_BITS, "rounds": 3}
    write_tensors(path, {"keys": keys, "actions": actions}, about)
    assert len(improved_teacher(config, tmp_path).actions) == 2
    for wrong in ({"edition": "leaderboard"}, {"seed": 1}, {"n_bits": 240}, {"rounds": "x"}, {"format": ""}):
        write_tensors(path, {"keys": keys, "actions": actions}, about | wrong)
        with pytest.raises(UserError, match="is not the teacher of this run's settings"):
            improved_teacher(config, tmp_path)
    damaged: list[dict[str, np.ndarray]] = [
        {"keys": keys}, {"actions": actions}, {"keys": keys[:, :3].copy(), "actions": actions},
        {"keys": keys, "actions": actions[:1].copy()}, {"keys": keys, "actions": actions + 3000},
    ]  # fmt: skip
    for arrays in damaged:
        write_tensors(path, arrays, about)
        with pytest.raises(UserError, match="damaged"):
            improved_teacher(config, tmp_path)


@pytest.mark.parametrize(
    "values", [{"imitate_updates": 0}, {"workflow": "user,enterprise,op_host,op_server,defender", "greedy": False}]
)
def test_paired_games_for_nobody_or_for_a_workflow_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="paired games improve a teacher without a workflow"):
        check_task(make_config("champion", **values), load_network())
