from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import DATA
from tests.helpers import assert_refused, run, run_json
from workflow_rl import __version__

CURRENT, LEADERBOARD = DATA / "sample-current.npz", DATA / "sample-leaderboard.npz"


def test_help_and_version_load_none_of_the_heavy_libraries() -> None:
    code = "import sys; import workflow_rl.cli.__main__;print(sorted({'numba', 'torch', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    assert run("--version").stdout.strip() == __version__
    shown = run("--help").stdout
    assert all(command in shown for command in ("replay", "evaluate", "bench"))


def test_replay_prints_its_result_as_json_and_exits_with_0() -> None:
    result = run_json("replay", CURRENT)
    assert result["episodes"] == 96
    assert result["steps"] == 9600
    assert result["mismatched_steps"] == 0
    assert result["first_mismatch"] is None


def test_replay_in_words() -> None:
    done = run("replay", LEADERBOARD, "--edition", "leaderboard")
    assert done.returncode == 0
    assert done.stdout == "52 episodes, 5200 steps, leaderboard edition: 0 mismatched steps in 0 episodes.\n"


def test_replay_of_another_edition_exits_with_1_and_gives_a_hint() -> None:
    done = run("replay", LEADERBOARD)
    assert done.returncode == 1
    assert "First mismatch: " in done.stdout
    assert "All steps agree with the leaderboard edition: use --edition leaderboard." in done.stdout
    result = json.loads(run("replay", LEADERBOARD, "--json").stdout.splitlines()[-1])
    assert result["mismatched_steps"] > 0
    assert result["edition_that_fits"] == "leaderboard"
    assert set(result["first_mismatch"]) == {"file", "episode", "step", "fields"}


def test_replay_names_mismatches_that_follow_a_process_id_collision(tmp_path: Path) -> None:
    arrays = dict(np.load(CURRENT))
    arrays["collision"][0, 50:], arrays["reward"][0, 60] = 1, -99.0
    np.savez(tmp_path / "collided.npz", **arrays)
    done = run("replay", tmp_path / "collided.npz")
    assert done.returncode == 1
    assert "1 of them come after a process-id collision" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["replay", "missing.npz"], "missing.npz: no such file"),
        (["replay", "README.md"], "README.md: not an .npz trace"),
        (["replay", CURRENT, "--edition", "newest"], "unknown edition 'newest'; allowed: current, leaderboard"),
        (["evaluate", "best"], "unknown policy 'best'; allowed: sleep, random, reactive-restore, reactive-remove"),
        (["evaluate", "sleep", "--red-agent", "bline,nobody"], "unknown red agent 'nobody'"),
        (["evaluate", "sleep", "--edition", "old"], "unknown edition 'old'"),
        (["evaluate", "sleep", "--episodes", "0"], "the number of episodes must be from 2 to 10000000, not 0"),
        (["bench", "env", "--seconds", "0"], "the seconds per figure must be from 0.01 to 600, not 0"),
        (["bench", "env", "--red-agent", "nobody"], "unknown red agent 'nobody'"),
        (["bench", "env", "--hosts", "13,many"], "the numbers of hosts must be a comma list such as 13,30,60"),
        (["bench", "env", "--hosts", "65"], "65"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments: list[str | Path], complaint: str) -> None:
    assert_refused(run(*arguments), complaint)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["replay"], "give the files of recorded games, or --live with a number of games."),
        (["evaluate"], "Missing argument"),
        (["replay", "--speed", "9"], "--speed"),
        (["frobnicate"], "frobnicate"),
        (["evaluate", "sleep", "--episodes", "many"], "--episodes"),
        (["evaluate", "sleep", "--episodes", "1000000000"], "the number of episodes must be from 2 to 10000000"),
        (["evaluate", "sleep", "--seed", "-1"], "a seed must be a whole number from 0"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(arguments: list[str], complaint: str) -> None:
    assert_refused(run(*arguments), complaint)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
def test_an_interrupt_ends_cleanly_with_a_word() -> None:
    command = [sys.executable, "-m", "workflow_rl.cli", "evaluate", "random", "--episodes", "5000000"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job would ignore it
    )
    while cpu_seconds(process.pid) < 4.0:  # starting takes one or two: it plays
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "Interrupted."
    assert "Traceback" not in errors
    assert output == ""


def test_a_full_disk_under_standard_output_is_one_sentence_and_exit_code_2() -> None:
    command = f"{sys.executable} -m workflow_rl.cli evaluate sleep --episodes 2 --json > /dev/full"
    done = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "Error: cannot go on: No space left on device."
    assert "Traceback" not in done.stderr


def test_evaluate_prints_cells_and_total_as_json() -> None:
    result = run_json("evaluate", "reactive-restore", "--episodes", "40", "--red-agent", "meander,sleep")
    assert set(result["cells"]) == {"meander", "sleep"}
    assert set(result["cells"]["meander"]) == {"30", "50", "100"}
    means = [cell["mean"] for row in result["cells"].values() for cell in row.values()]
    assert result["total"] == pytest.approx(sum(means))
    assert result["cells"]["meander"]["100"]["standard_error"] > 0
    assert result["cells"]["sleep"]["100"] == {"mean": 0, "standard_error": 0, "standard_deviation": 0, "episodes": 40}


def test_evaluate_gives_the_same_table_twice() -> None:
    first, second = (run("evaluate", "random", "--episodes", "30").stdout for _ in range(2))
    assert first == second
    assert "Total of all means" in first


@pytest.mark.long
def test_bench_env_measures_networks_of_several_sizes() -> None:
    found = run_json("bench", "env", "--hosts", "13,20,40", "--seconds", "0.05", "--red-agent", "meander")
    assert found["bytes_per_env"] == {"13": 128, "20": 312, "40": 576}
    assert all(rate > 0 for rate in found["engine_steps_per_s"]["meander"].values())


def test_bench_env_prints_every_figure_as_json_and_progress_does_not_disturb_standard_output() -> None:
    done = run("bench", "env", "--seconds", "0.02", "--no-cyborg", "--json")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert "start-up" in done.stderr
    figures = json.loads(done.stdout)
    sizes = {"1", "25", "200", "1000", "4096"}
    for key in ("vector_steps_per_s", "engine_steps_per_s"):
        assert set(figures[key]) == sizes
        assert all(rate > 0 for rate in figures[key].values())
    for key in ("single_env_steps_per_s", "cold_start_s", "cached_start_s", "peak_memory_mb", "bytes_per_env"):
        assert figures[key] > 0
    assert figures["cyborg_steps_per_s"] is None
    assert figures["ratio_to_cyborg_at_200"] is None
    assert set(figures["by_red_agent"]) == {"bline", "meander"}


@pytest.mark.long
def test_bench_train_prints_every_figure_as_json() -> None:
    figures = run_json("bench", "train", "--updates", "3", "--plain-updates", "1")
    for red in ("bline", "meander"):
        assert figures[red]["transitions_per_s"] > 0
        assert "sb3_transitions_per_s" in figures[red]
    for key in ("plain", "network_only", "one_process", "two_process", "plain_two_threads"):
        assert figures[f"{key}_transitions_per_s"] > 0
    assert figures["ratio_to_network_only"] > 0
    assert set(figures["seconds_per_phase"]["bline"]) == {"seconds_collect", "seconds_update"}
    assert_refused(run("bench", "train", "--updates", "0"), "the numbers of updates must be at least 1")


def test_the_help_of_train_explains_every_setting_and_preset() -> None:
    from dataclasses import fields

    from workflow_rl.config import TrainConfig
    from workflow_rl.presets import PRESET_WORDS, PRESETS

    shown = " ".join(run("train", "--help", COLUMNS="200").stdout.split())
    for item in fields(TrainConfig):
        assert f"--{item.name.replace('_', '-')}" in shown
        assert item.metadata["help"].split(";")[0].split(" ... ")[0][:30] in shown
    for name in PRESETS:
        assert f" {name} {PRESET_WORDS[name]}" in shown
