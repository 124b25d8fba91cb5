"""The training loop: presets, stop rules, learning, and runs that survive a kill."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.conftest import DATA
from tests.helpers import assert_refused, games, run, run_json
from workflow_rl.config import TrainConfig, config_from_json, config_to_json
from workflow_rl.defenders.names import DATA as PACKAGE_DATA
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.errors import UserError
from workflow_rl.presets import PRESETS, make_config
from workflow_rl.runs import Run, read_events, read_tensors, write_tensors
from workflow_rl.training.collectors import Collector, Conduct, Stream, workflow_codes
from workflow_rl.training.compliance import HELD_LIMITS, held
from workflow_rl.training.evaluation import FreshGames, evaluate_policy
from workflow_rl.training.events import StopReason
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.trainer import Training, train_workflow
from workflow_rl.training.workflow import Workflow, all_workflows

WORKFLOW = "enterprise,user,op_server,op_host,defender"
SMALL = {"n_envs": 20, "max_episodes": 6, "min_episodes": 2, "warm_updates": 3, "n_eval_episodes": 10}


def small(**values: Any) -> TrainConfig:
    return make_config(**(SMALL | values))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_end_to_end_from_the_command_line(preset: str, tmp_path: Path) -> None:
    short = ["--max-episodes", "2", "--min-episodes", "1", "--n-eval-episodes", "4", "--warm-updates", "1"]
    task = [] if preset in ("general", "original", "universal", "champion", "obedient") else ["--workflow", WORKFLOW]
    short += ["--n-envs", "120"] if preset in ("universal", "champion", "obedient") else []
    if preset in ("champion", "obedient"):
        short += ["--n-eval-episodes", "11", "--improve-rounds", "0", "--plan-games", "5", "--takeover", "0"]
    result = run_json("train", "--preset", preset, *task, *short, "--run-dir", tmp_path / "run", "--no-tensorboard")
    wanted = {
        "workflow", "followed", "compliance", "compliance_error", "kept", "repairs", "idle_fixes", "mean_return",
        "standard_error", "updates", "episodes", "stop_reason", "seconds", "run",
    }  # fmt: skip
    assert wanted <= set(result)
    assert result["stop_reason"] in ("max_episodes", "followed")
    assert result["mean_return"] < 0
    assert load_policy(tmp_path / "run").workflow == (WORKFLOW if task else "")


def test_presets_have_the_sizes_of_the_documents() -> None:
    sizes = {name: (make_config(name).n_envs, make_config(name).batch, make_config(name).epochs) for name in PRESETS}
    assert sizes["sequential"] == (1, 100, 4)
    assert sizes["mini-batch"] == (1, 500, 4)
    assert sizes["standard"] == (8, 2048, 4)
    assert sizes["parallel-25"] == (25, 2500, 4)
    assert sizes["parallel-200"] == (200, 20_000, 4)
    assert sizes["aggressive"] == (500, 50_000, 4)
    assert sizes["original"] == (200, 20_000, 6)
    original, champion = make_config("original"), make_config("champion")
    assert original.max_episodes * 200 == 100_000
    for preset in (original, champion):
        assert (preset.view, preset.actions, preset.conditioned) == ("memory", "host-decoy", False)
    assert set(champion.red_agent.split(",")) == {"bline", "meander", "sleep"}
    assert config_from_json(json.loads(json.dumps(config_to_json(make_config("standard"))))) == make_config("standard")


def test_a_general_training_estimates_advantages_as_suits_its_opponent_and_every_preset_bootstraps() -> None:
    bline, meander, mixed = (make_config(red_agent=red) for red in ("bline", "meander", "bline,meander"))
    assert (bline.gae_lambda, bline.normalise_advantages) == (0.95, True)
    for other in (meander, mixed):
        assert (other.gae_lambda, other.normalise_advantages) == (1.0, False)
    assert make_config(red_agent="bline", gae_lambda=0.5).gae_lambda == 0.5
    assert {make_config(name).time_limit for name in PRESETS} == {"bootstrap"}


@pytest.mark.long
def test_with_a_bootstrap_at_the_time_limit_more_is_learned() -> None:
    def learned(time_limit: str) -> float:
        settings: dict[str, Any] = {"max_episodes": 150, "time_limit": time_limit, "n_eval_episodes": 200}
        return float(np.mean([train_workflow(make_config(seed=seed, **settings)).mean_return for seed in range(2)]))

    assert learned("bootstrap") > learned("cut")  # by 11 points where this was written


def test_a_run_of_the_former_definition_is_refused_and_left_alone(tmp_path: Path) -> None:
    Run.create(tmp_path / "run", small(workflow=WORKFLOW), copy_of(load_network())).close()
    about = json.loads((tmp_path / "run" / "config.json").read_text("utf-8"))
    del about["definition"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(about), "utf-8")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    for words in (["train", "--resume"], ["report"], ["search", "--resume"]):
        assert_refused(run(*words, tmp_path / "run"), "fixes that repaired nothing counted as compliance")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_policy_of_the_former_definition_is_refused_if_it_has_a_workflow(tmp_path: Path) -> None:
    arrays, meta = read_tensors(DATA / "universal.safetensors")
    write_tensors(tmp_path / "old.safetensors", arrays, meta | {"format": "workflow_rl policy 1"})
    with pytest.raises(UserError, match="where fixes that repaired nothing counted as compliance; train it again"):
        load_policy(tmp_path / "old.safetensors")
    assert_refused(run("evaluate", tmp_path / "old.safetensors"), "train it again")
    assert (
        load_policy(PACKAGE_DATA / "champion-current.safetensors").workflow == ""
    )  # of the same format, without a workflow


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    def weights(seed: int) -> np.ndarray:
        training = Training(small(preset="general", seed=seed), load_network())
        for _ in range(4):
            training.step()
        return np.concatenate([array.ravel() for array in training.ppo.arrays().values()])

    assert np.array_equal(weights(1), weights(1))
    assert not np.array_equal(weights(1), weights(2))


def test_a_general_policy_learns_to_defend() -> None:
    training = Training(make_config("general", max_episodes=120), load_network())
    events = [training.step() for _ in range(120)]
    assert (events[0].mean_return or 0.0) < -500
    assert (events[-1].mean_return or -1000.0) > -60


class Answer:
    """Fresh episodes that say that the workflow is followed, or not."""

    def __init__(self, followed: bool) -> None:
        self.followed = followed

    def follows(self, _: float) -> bool:
        return self.followed


def stops(training: Training, events: list[tuple[float | None, float]], followed: bool) -> tuple[list[Any], list[int]]:
    """What the stop rules say after updates with such (compliance, return), and which asked for fresh episodes."""
    asked: list[int] = []

    def evaluate(n_episodes: int, *_: Any, **__: Any) -> Answer:
        assert n_episodes == training.config.n_eval_episodes
        asked.append(training.update)
        return Answer(followed)

    training.evaluate = evaluate  # type: ignore[method-assign,assignment]
    reasons = []
    for update, (compliance, mean_return) in enumerate(events, 1):
        training.update = update
        event: Any = SimpleNamespace(compliance=compliance, mean_return=mean_return)
        reasons.append(training.should_stop(event))
    return reasons, asked


def test_a_workflow_that_is_followed_stops_the_training_after_confirmation() -> None:
    training = Training(small(workflow=WORKFLOW, patience=0, min_episodes=2, max_episodes=50), load_network())
    events = [(0.97, -9.0), (None, -9.0), (0.9, -9.0), (0.96, -9.0)]
    reasons, asked = stops(training, events, followed=True)
    assert reasons == [None, None, None, StopReason.FOLLOWED]
    assert asked == [4]  # the first had too few episodes, the others too little compliance


def test_one_lucky_batch_is_not_obedience() -> None:
    training = Training(small(workflow=WORKFLOW, patience=0, max_episodes=50), load_network())
    reasons, asked = stops(training, [(1.0, -1.0)] * 7, followed=False)
    assert reasons == [None] * 7
    assert asked == [2, 3, 4, 5, 6, 7]  # from min_episodes on


def test_with_patience_a_followed_workflow_is_trained_until_its_return_stops_rising() -> None:
    training = Training(small(workflow=WORKFLOW, patience=2, min_episodes=1, max_episodes=50), load_network())
    returns = [-20.0, -15.0, -14.99, -10.0, -9.99, -9.98]
    reasons, asked = stops(training, [(1.0, value) for value in returns], followed=True)
    assert reasons == [None] * 5 + [StopReason.FOLLOWED]
    assert asked == [6]


def test_patience_alone_does_not_end_a_training_that_does_not_follow() -> None:
    training = Training(small(workflow=WORKFLOW, patience=2, min_episodes=1, max_episodes=6), load_network())
    reasons, _ = stops(training, [(0.3, -1.0)] * 6, followed=False)
    assert reasons == [None] * 5 + [StopReason.MAX_EPISODES]


def test_an_episode_without_a_repair_says_nothing_to_the_stop_rule() -> None:
    training = Training(small(workflow=WORKFLOW), load_network())
    assert training.compliance() is None
    training.latest[:10] = 0.8
    assert training.compliance() == pytest.approx(0.8)


def test_patience_ends_a_general_training_that_gains_nothing() -> None:
    training = Training(small(preset="general", patience=3, max_episodes=50), load_network())
    reasons, _ = stops(training, [(None, -1.0)] * 5, followed=False)
    assert reasons[:4] == [None, None, None, StopReason.PATIENCE]


def test_the_penalty_rises_over_an_annealed_training() -> None:
    training = Training(small(workflow=WORKFLOW, alignment_lambda=8.0, max_episodes=50), load_network())
    strengths = []
    for update in (0, 12, 25, 49):
        training.update = update
        training.step()
        assert isinstance(training.collector, Collector)
        strengths.append(training.collector.setup.alignment_lambda)
    assert strengths == pytest.approx([2.0, 2.0 + 6.0 * 0.48, 8.0, 8.0])


def test_a_penalty_held_by_kept_rises_while_the_order_is_broken_and_falls_while_it_is_kept() -> None:
    assert held(20.0, 0.94, 0.975, 15.0) > 20.0
    assert held(20.0, 1.0, 0.975, 15.0) < 20.0
    assert held(20.0, 0.975, 0.975, 15.0) == 20.0
    assert held(20.0, 0.0, 0.975, 15.0) == held(20.0, 0.5, 0.975, 15.0)  # one bad batch moves it by a bounded step
    assert held(HELD_LIMITS[1], 0.0, 0.975, 15.0) == HELD_LIMITS[1]
    assert held(HELD_LIMITS[0], 1.0, 0.975, 15.0) == HELD_LIMITS[0]
    assert held(0.0, 0.0, 0.975, 0.0) == 0.0  # who asks for no penalty gets none
    assert held(100.0, 0.0, 0.975, 100.0) == 100.0


def test_the_held_penalty_is_what_is_rewarded_and_survives_a_checkpoint(tmp_path: Path) -> None:
    config = small(workflow=WORKFLOW, takeover="30", max_episodes=50, warm_start="none")
    whole, again = (Training(config, load_network()) for _ in range(2))
    for _ in range(3):
        event = whole.step()
        assert isinstance(whole.collector, Collector)
        used = whole.collector.setup.alignment_lambda
        assert whole.multiplier == held(used, event.kept or 0.0, config.kept_target, config.alignment_lambda)
    assert whole.multiplier > config.alignment_lambda  # nobody keeps an order at first
    write_tensors(tmp_path / "checkpoint", whole.arrays(), whole.counters())
    again.restore(*read_tensors(tmp_path / "checkpoint"))
    for training in (whole, again):
        training.step()
    assert again.multiplier == whole.multiplier
    left, right = whole.ppo.arrays(), again.ppo.arrays()
    assert all(np.array_equal(left[name], right[name]) for name in left)


def test_without_a_penalty_there_is_none_to_adapt() -> None:
    assert make_config(workflow=WORKFLOW, takeover="30").kept_target > 0
    assert make_config(workflow=WORKFLOW, takeover="30", alignment="potential").kept_target == 0


def test_orders_that_differ_only_in_types_that_red_never_takes_ask_for_the_same_repairs() -> None:
    """The tables of incidents train each order of the types that red takes: the same play breaks all its workflows."""
    ppo = ParallelOrderConditionedPPO(small())
    broken = []
    for workflow in (
        "op_server,user,enterprise,defender,op_host",
        "defender,op_server,op_host,user,enterprise",
        "enterprise,user,op_server,defender,op_host",
    ):
        collector = Collector(games("bline", takeover="30"), 100, 100, Conduct((Workflow.parse(workflow),)))
        episodes = collector.collect(ppo).finished_episodes()
        broken.append((episodes["violations"].tolist(), episodes["repairs"].tolist()))
    assert broken[0] == broken[1]
    assert broken[0][0] != broken[2][0]
    assert broken[0][1] == broken[2][1]


def final_checkpoint(path: Path) -> dict[str, np.ndarray]:
    return read_tensors(path / "policy.safetensors")[0]


@pytest.mark.parametrize("view", ["plain", "memory"])
@pytest.mark.parametrize("path", ["auto", "plain"])
def test_batches_kept_for_replay_and_memories_survive_a_checkpoint(path: str, view: str, tmp_path: Path) -> None:
    config = small(preset="general", replay_batches=2, path=path, max_episodes=20, view=view, update_steps=35)
    whole = Training(config, load_network())
    for _ in range(3):
        whole.step()
    again = Training(config, load_network())
    write_tensors(tmp_path / "checkpoint", whole.arrays(), whole.counters())
    again.restore(*read_tensors(tmp_path / "checkpoint"))
    for training in (whole, again):
        training.step()
    left, right = whole.ppo.arrays(), again.ppo.arrays()
    assert all(np.array_equal(left[name], right[name]) for name in left)


@pytest.mark.long
@pytest.mark.parametrize(("path", "episodes"), [("auto", 800), ("plain", 40)])
def test_a_run_killed_at_any_moment_and_resumed_has_the_same_weights(tmp_path: Path, path: str, episodes: int) -> None:
    config = make_config(
        workflow=WORKFLOW, n_envs=20, max_episodes=episodes, min_episodes=episodes, warm_start="general",
        warm_updates=20, checkpoint_updates=3, n_eval_episodes=10, path=path,
    )  # fmt: skip
    with closing(Run.create(tmp_path / "whole", config, copy_of(load_network()))) as whole:
        train_workflow(config, whole)
    killed = tmp_path / "killed"
    Run.create(killed, config, copy_of(load_network())).close()
    kills, moments = 0, random.Random(0)
    while not (killed / "result.json").exists():
        process = get_context("fork").Process(target=go_on, args=(killed,))  # no start-up: most of the time it trains
        before = len(read_events(killed))
        process.start()
        while process.is_alive() and len(read_events(killed)) <= before:
            time.sleep(0.01)
        process.join(moments.random() * 0.3 if kills < 7 else None)
        if process.is_alive():
            process.kill()
            kills += 1
        process.join()
    assert kills >= 5
    one, other = final_checkpoint(tmp_path / "whole"), final_checkpoint(killed)
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    places = [(event["phase"], event["update"]) for event in read_events(killed)]
    assert places == [(e["phase"], e["update"]) for e in read_events(tmp_path / "whole")]


def go_on(path: Path) -> None:
    with closing(Run.open(path)) as run:
        train_workflow(run.config, run)


@pytest.mark.long
def test_a_killed_program_goes_on_with_resume(tmp_path: Path) -> None:
    config = [
        "--workflow", WORKFLOW, "--n-envs", "20", "--max-episodes", "60", "--min-episodes", "60", "--path", "plain",
        "--checkpoint-updates", "3", "--n-eval-episodes", "10", "--no-tensorboard",
    ]  # fmt: skip
    command = [sys.executable, "-m", "workflow_rl.cli", "train", *config, "--run-dir", str(tmp_path / "killed")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(read_events(tmp_path / "killed")) < 8:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "result.json").exists()
    assert run("train", "--resume", tmp_path / "killed", "--no-tensorboard").returncode == 0
    assert run("train", *config, "--run-dir", tmp_path / "whole").returncode == 0
    one, other = final_checkpoint(tmp_path / "whole"), final_checkpoint(tmp_path / "killed")
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_run_killed_during_its_last_evaluation_ends_the_same(tmp_path: Path) -> None:
    config = small(preset="general", max_episodes=6, checkpoint_updates=3)
    whole = Run.create(tmp_path / "whole", config, copy_of(load_network()))
    result = train_workflow(config, whole)
    checkpoint = whole.load_checkpoint()
    assert checkpoint is not None
    assert checkpoint[1]["update"] == 3  # not 6: the last updates are made again
    os.remove(tmp_path / "whole" / "result.json")
    again = train_workflow(config, whole)
    assert (again.updates, again.mean_return) == (result.updates, result.mean_return) == (6, result.mean_return)


def test_a_batch_in_which_no_episode_ends_is_an_ordinary_one() -> None:
    result = train_workflow(small(preset="general", n_envs=4, update_steps=30, max_episodes=2, patience=2))
    assert result.updates == 7
    assert result.compliance is None


def test_the_error_of_a_universal_policy_is_not_made_small_by_shared_chance() -> None:
    """Workflows are evaluated on the same games, so averaging over them does not average chance away."""
    policy = load_policy(DATA / "universal.safetensors")
    workflows = all_workflows()[::12]
    ppo = ParallelOrderConditionedPPO(TrainConfig(), workflow_codes(workflows), policy.net)
    fresh = [FreshGames(games("bline"), 60, Stream(seed, (5,))) for seed in (*range(30), 99)]
    *found, other = (evaluate_policy(ppo, workflows, one) for one in fresh)
    means, error = [one.mean_return for one in found], other.standard_error
    assert 0.6 < error / np.std(means, ddof=1) < 1.6


def test_a_run_directory_in_use_is_refused(tmp_path: Path) -> None:
    held = Run.create(tmp_path / "run", small(workflow=WORKFLOW), copy_of(load_network()))
    with pytest.raises(UserError, match="is in use by another process"):
        Run.open(tmp_path / "run")
    held.close()
    Run.open(tmp_path / "run").close()
    with pytest.raises(UserError, match="already holds a run"):
        Run.create(tmp_path / "run", small(workflow=WORKFLOW), copy_of(load_network()))


def test_a_cut_off_last_event_is_ignored_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"update": 1}\n{"upd', "utf-8")
    assert read_events(tmp_path) == [{"update": 1}]
    (tmp_path / "events.jsonl").write_text('{"upd\n{"update": 2}\n', "utf-8")
    with pytest.raises(UserError, match=r"events.jsonl is damaged in line 1"):
        read_events(tmp_path)


def test_a_trained_policy_can_be_evaluated_and_used_as_a_warm_start(tmp_path: Path) -> None:
    config = small(workflow=WORKFLOW)
    held = Run.create(tmp_path / "run", config, copy_of(load_network()))
    result = train_workflow(config, held)
    held.close()
    table = run_json("evaluate", tmp_path / "run", "--episodes", "20", "--red-agent", "bline")
    assert set(table["cells"]["bline"]) == {"30", "50", "100"}
    assert 0 <= table["obedience"]["bline"]["compliance"] <= 1
    again = train_workflow(small(workflow=WORKFLOW, warm_start=str(tmp_path / "run")))
    assert again.updates <= result.updates
    assert (tmp_path / "run" / "progress.csv").read_text("utf-8").startswith("phase,update,episodes,return")


def test_tensorboard_and_events_hold_every_figure(tmp_path: Path) -> None:
    arguments = ["--n-envs", "10", "--max-episodes", "3", "--min-episodes", "1", "--n-eval-episodes", "4"]
    arguments += ["--workflow", WORKFLOW]
    assert run("train", *arguments, "--run-dir", tmp_path / "run").returncode == 0
    event = read_events(tmp_path / "run")[-1]
    for name in (
        "return", "alignment", "total", "compliance", "kept", "repairs", "idle_fixes", "violations", "entropy", "kl",
        "seconds_collect", "seconds_update", "transitions_per_s", "cpu_share", "memory_mb",
    ):  # fmt: skip
        assert event[name] is not None
    assert list((tmp_path / "run" / "tensorboard").rglob("events.out.tfevents.*"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--workflow", "user,user,op_server,enterprise,op_host,defender"], "'user' appears 2 times in the workflow"),
        (
            ["--workflow", "user,user,op_host,enterprise,defender"],
            "'user' appears 2 times and 'op_server' is missing in the workflow",
        ),
        (["--workflow", "user,op_server"], "'op_host' is missing in the workflow"),
        (["--preset", "quick"], "unknown preset 'quick'; allowed: workflow, general"),
        (
            ["--preset", "standard", "--minibatch", "4096"],
            "minibatch 4096 is larger than the batch of 2048 transitions",
        ),
        (["--n-envs", "0"], "n_envs must be a whole number of at least 1, not 0"),
        (["--compliance-threshold", "1.2"], "compliance_threshold must be from 0 to 1, not 1.2"),
        (["--lr", "nan"], "lr must be from 0 to 10, not nan"),
        (["--time-limit", "never"], "unknown time_limit 'never'; allowed: bootstrap, cut."),
        (["--red-agent", "nobody"], "unknown red agent 'nobody'"),
        (["--edition", "old"], "unknown edition 'old'"),
        (["--device", "cuda"], "device 'cuda' is not available on this machine"),
        (["--workflow", WORKFLOW, "--universal"], "give either one workflow or --universal"),
        (["--workflow", WORKFLOW, "--warm-start", "nowhere"], "unknown warm_start 'nowhere'; allowed: none, general"),
        (["--resume", "nowhere"], "nowhere holds no run"),
        (["--resume", "nowhere", "--n-envs", "3"], "--resume goes on with the run's own settings"),
        (["--universal", "--n-envs", "8"], "n_envs 8 is too small for 120 workflows"),
        (["--path", "fast", "--minibatch", "64"], "path 'fast' needs the full batch"),
        (["--warm-start", "general"], "a warm start needs a workflow"),
        (
            ["--workflow", WORKFLOW, "--warm-start", str(DATA / "universal.safetensors"), "--hidden", "32"],
            "hidden is 32, but that of the warm start is 64",
        ),
        (["--workflow", WORKFLOW, "--warm-start", "universal"], "warm_start 'universal' was removed"),
        (["--alignment", "per-fix"], "unknown alignment 'per-fix'; allowed: penalty, potential."),
        (["--kept-target", "1.5"], "kept_target must be from 0 to 1, not 1.5."),
        (["--alignment", "potential", "--kept-target", "0.9"], "kept_target adapts a penalty"),
        (["--alignment-lambda", "nan"], "alignment_lambda must be from 0 to 1e+06, not nan."),
        (["--alignment-lambda", "-3"], "alignment_lambda must be from 0 to 1e+06, not -3.0."),
        (["--seed", "99999999999999999999999"], "seed must be at most"),
        (["--n-envs", "100000000"], "n_envs must be at most 1000000"),
        (["--min-episodes", "9000"], "min_episodes 9000 is larger than max_episodes"),
    ],
)
def test_bad_settings_are_one_sentence_and_exit_code_2(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    assert_refused(run("train", *arguments, cwd=tmp_path), complaint)
    assert not (tmp_path / "runs").exists()


def test_damaged_policies_are_refused_in_one_sentence(tmp_path: Path) -> None:
    config = small(workflow=WORKFLOW)
    held = Run.create(tmp_path / "run", config, copy_of(load_network()))
    train_workflow(config, held)
    held.close()
    good = (tmp_path / "run" / "policy.safetensors").read_bytes()
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(good[: len(good) // 2])
    arrays, meta = read_tensors(tmp_path / "run" / "policy.safetensors")
    shape, other = tmp_path / "shape.safetensors", tmp_path / "other.safetensors"
    write_tensors(shape, arrays | {"actor.0.weight": np.zeros((64, 52), np.float32)}, meta)
    write_tensors(other, arrays, meta | {"format": "something"})
    for path, complaint in (
        (cut, "damaged"),
        (shape, "'actor.0.weight' have the shape (64, 52)"),
        (other, "not a policy"),
    ):
        assert_refused(run("evaluate", path), complaint)
    lame, listed = tmp_path / "lame.safetensors", tmp_path / "listed.safetensors"
    write_tensors(lame, arrays, {key: value for key, value in meta.items() if key != "n_bits"})
    write_tensors(listed, arrays, [1, 2])  # type: ignore[arg-type]
    for path in (lame, listed):
        assert_refused(run("evaluate", path), "not a policy file")
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(good)
    os.remove(tmp_path / "run" / "result.json")
    done = run("train", "--resume", tmp_path / "run")
    assert done.returncode == 2
    assert "checkpoint.safetensors is not a checkpoint" in done.stderr
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(good[:100])
    done = run("train", "--resume", tmp_path / "run")
    assert done.returncode == 2
    assert "checkpoint.safetensors: damaged" in done.stderr
