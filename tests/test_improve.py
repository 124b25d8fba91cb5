"""Paired games: they mend what is wrong, do not depend on threads, and a run goes on where it was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workflow_rl.defenders import paired_games as module
from workflow_rl.defenders.expert import NO_ORDER
from workflow_rl.defenders.paired_games import STANDARD, Mix, clustered, improve, improved_teacher
from workflow_rl.defenders.teacher import NO_EXCEPTIONS, Exceptions, make_exceptions, teach
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.memory import (
    ENTERPRISE0,
    FIRST_DECOY,
    MEMORY_DTYPE,
    N_BITS,
    N_WORDS,
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
from workflow_rl.training.train_task import check_task

FIRST = np.zeros(N_WORDS, np.int64)  # the key of an episode's start
_memory = np.zeros(1, MEMORY_DTYPE)
forget(_memory[0])
write_bits(_memory[0], FIRST)
BLUNDER = make_exceptions(FIRST[None], np.array([RESTORE + USER4]))


def small(exceptions: Exceptions, jobs: int, games: Mix = STANDARD) -> tuple[Exceptions, dict[str, float]]:
    return improve("current", exceptions, 7, jobs, n_games=300, least=0.2, mix_of=games)


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


def test_with_acting_green_other_situations_come_up_and_threads_do_not_matter() -> None:
    games = Mix(planned=True, green=0.5)
    (one, _), (two, _) = small(BLUNDER, 1, games), small(BLUNDER, 2, games)
    assert in_order(one) == in_order(two)
    assert in_order(one) != in_order(small(BLUNDER, 1)[0])


def test_an_exception_does_not_break_the_order_that_the_teacher_is_told() -> None:
    """Blue sees Enterprise0 and User4 broken into: an exception may not repair one before the other."""
    memory, key = np.zeros(1, MEMORY_DTYPE), np.zeros(N_WORDS, np.int64)
    forget(memory[0])
    memory[0]["step"], memory[0]["observation"] = 3, 1 << (4 * ENTERPRISE0 + 3) | 1 << (4 * USER4 + 3)
    write_bits(memory[0], key)
    table = make_exceptions(key[None], np.array([RESTORE + USER4]))
    users_first, servers_first = np.array([4, 1, 2, 3, 0]), np.array([1, 4, 2, 3, 0])
    assert teach(memory[0], key, False, table, NO_ORDER) == RESTORE + USER4
    assert teach(memory[0], key, False, table, users_first) == RESTORE + USER4
    assert teach(memory[0], key, False, table, servers_first) == RESTORE + ENTERPRISE0


def test_pairs_from_one_state_are_one_observation() -> None:
    values = np.random.default_rng(0).normal(size=8)
    mean, error = clustered(np.tile(values, 50), 0, 8)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(8))
    assert clustered(np.roll(np.tile(values, 50), -3), 3, 8)[1] == pytest.approx(error)


def test_a_run_keeps_its_rounds_and_goes_on_after_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []

    def round_of(
        _: str, exceptions: Exceptions, seed: int, __: int, mix_of: Mix
    ) -> tuple[Exceptions, dict[str, float]]:
        assert mix_of == Mix(planned=True, green=2 / 11)
        played.append(seed)
        key = np.full((1, N_WORDS), len(exceptions.keys) + 1)
        new = make_exceptions(np.concatenate([exceptions.keys, key]), np.append(exceptions.actions, 5))
        return new, {"situations": 10.0, "found": 1.0}

    monkeypatch.setattr(module, "improve", round_of)
    said: list[str] = []
    config = make_config("champion", improve_rounds=4)
    whole = improved_teacher(config, tmp_path, said.append)
    assert len(whole.keys) == config.improve_rounds == len(set(played)) == len(said) / 2
    assert said[1].startswith("paired games, round 1 of 4: 10 situations, better actions in 1 of them")
    assert read_tensors(tmp_path / "teacher.safetensors")[1]["rounds"] == 4
    again = improved_teacher(make_config("champion", improve_rounds=5), tmp_path)  # killed after four
    assert len(played) == 5
    assert len(again.keys) == 5
    assert in_order(improved_teacher(config, None)) == in_order(whole)


def test_a_teacher_that_is_damaged_or_of_another_task_is_refused(tmp_path: Path) -> None:
    config, path = make_config("champion"), tmp_path / "teacher.safetensors"
    keys, actions = np.ones((2, N_WORDS), np.int64), np.array([1, 2], np.int16)
    about = {"format": "workflow_rl teacher 2", "edition": "current", "seed": 0, "n_bits": N_BITS, "rounds": 4}
    about |= {"green_agent": config.green_agent, "planned": True}
    write_tensors(path, {"keys": keys, "actions": actions}, about)
    assert len(improved_teacher(config, tmp_path).actions) == 2
    for wrong in (
        {"edition": "leaderboard"},
        {"seed": 1},
        {"n_bits": 240},
        {"rounds": "x"},
        {"format": ""},
        {"planned": False},
    ):
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
    ("values", "words"),
    [
        ({"imitate_updates": 0, "plan_games": 0}, "paired games improve a teacher: use --imitate-updates"),
        ({"imitate_updates": 0, "improve_rounds": 0}, "a plan against B_line is for a policy that imitates it"),
        ({"green_agent": "sleep,loud"}, "unknown green agent 'loud'"),
    ],
)
def test_a_teacher_for_nobody_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        check_task(make_config("champion", **values), load_network())
