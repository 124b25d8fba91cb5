"""Training, searching and evaluating on genuine CybORG."""

from __future__ import annotations

import math
import os
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import DATA as TEST_DATA
from tests.helpers import assert_refused, games, run, run_json, same
from workflow_rl import CageVectorEnv, make_config, train_workflow
from workflow_rl.config import TrainConfig
from workflow_rl.defenders.names import Asked, evaluate_named, in_standard_errors
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.envs.cyborg_sim import Backend
from workflow_rl.errors import SimulatorError
from workflow_rl.runs import Run, read_config, read_tensors
from workflow_rl.training.collectors import Conduct, PlainCollector, Stream, workflow_codes
from workflow_rl.training.evaluation import FreshGames, evaluate_policy
from workflow_rl.training.events import UpdateEvent
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.workflow import Workflow

pytestmark = pytest.mark.needs("csle_cyborg")

UNIVERSAL = TEST_DATA / "universal.safetensors"
ORDER = "enterprise,op_server,user,op_host,defender"
SMALL: dict[str, Any] = {
    "workflow": ORDER, "warm_start": str(UNIVERSAL), "backend": "cyborg", "n_envs": 2, "max_steps": 20,
    "update_steps": 30, "max_episodes": 9, "min_episodes": 9, "n_eval_episodes": 10, "checkpoint_updates": 3,
}  # fmt: skip


@pytest.mark.long
def test_a_training_on_cyborg_whose_process_was_killed_resumes_to_the_same_policy(tmp_path: Path) -> None:
    config = make_config(**SMALL)
    with closing(Run.create(tmp_path / "whole", config, copy_of(load_network()))) as whole:
        expected = train_workflow(config, whole)
    events: list[UpdateEvent] = []

    def kill(event: UpdateEvent) -> None:
        events.append(event)
        if event.update == 5:  # after the checkpoint of update 3, which is in the middle of an episode
            import multiprocessing

            os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)

    with (
        closing(Run.create(tmp_path / "killed", config, copy_of(load_network()))) as killed,
        pytest.raises(SimulatorError, match="by SIGKILL"),
    ):
        train_workflow(config, killed, kill)
    assert read_tensors(tmp_path / "killed" / "checkpoint.safetensors")[0]["lengths"].tolist() == [10, 10]
    with closing(Run.open(tmp_path / "killed")) as resumed:
        found = train_workflow(resumed.config, resumed)
    assert [event["update"] for event in resumed.events()] == list(range(1, 7))
    policies = [(tmp_path / name / "policy.safetensors").read_bytes() for name in ("whole", "killed")]
    assert policies[0] == policies[1]
    for name in ("mean_return", "followed", "compliance", "kept", "repairs", "idle_fixes"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.repairs > 0
    assert found.backend == "cyborg"
    assert len(events) == 5


def test_the_network_is_asked_row_by_row_where_the_number_of_environments_must_not_matter() -> None:
    """Sums over several rows at once are rounded otherwise; in some hundred games one takes another turn for it."""
    workflows = (Workflow.parse(ORDER),)
    ppo = ParallelOrderConditionedPPO(TrainConfig(device="cpu"), workflow_codes(workflows), load_policy(UNIVERSAL).net)
    keys = np.random.default_rng(0).integers(2**52, size=64)
    envs = CageVectorEnv(64)
    rows, batch = (
        PlainCollector(envs, 1, 1, Conduct(workflows), flag)._probabilities(ppo, keys) for flag in (True, False)
    )
    assert all(np.array_equal(rows[i], ppo.probabilities(keys[i : i + 1])[0]) for i in range(64))
    np.testing.assert_allclose(rows, batch, rtol=1e-4)


def test_an_evaluation_on_cyborg_does_not_depend_on_the_number_of_processes() -> None:
    policy = load_policy(UNIVERSAL)
    workflows = (Workflow.parse(ORDER),)
    ppo = ParallelOrderConditionedPPO(TrainConfig(device="cpu"), workflow_codes(workflows), policy.net)
    found = [
        evaluate_policy(
            ppo, workflows, FreshGames(games("bline,meander", 25), 5, Stream(1, (2,))), (25,), Backend("cyborg", "", n)
        )
        for n in (1, 2)
    ]
    assert found[0].by_workflow == found[1].by_workflow
    assert same(found[0].episode_returns, found[1].episode_returns)
    assert found[0].obedience.repairs > 0.5
    tables = [evaluate_named(Asked("random", "bline", 3, load_network()), Backend("cyborg", "", n)) for n in (1, 3)]
    assert tables[0] == tables[1]
    assert tables[0]["cells"]["bline"]["100"]["standard_deviation"] > 0


def test_the_two_ways_to_play_greedily_agree() -> None:
    """The plain collector, which CybORG needs, and the compiled rollout."""
    workflows = (Workflow.parse(ORDER),)
    ppo = ParallelOrderConditionedPPO(TrainConfig(device="cpu"), workflow_codes(workflows), load_policy(UNIVERSAL).net)
    stream = Stream(3, (4,))
    compiled = evaluate_policy(ppo, workflows, FreshGames(games("meander", 60), 20, stream, greedy=True))
    envs = CageVectorEnv(20, red_agent="meander", max_steps=None)
    collector = PlainCollector(envs, 60, 60, Conduct(workflows, greedy=True))
    collector.start(stream.environments(20), stream.policy(20))
    rewards = collector.collect(ppo).batch.rewards
    np.testing.assert_allclose(rewards.sum(axis=1), compiled.episode_returns, rtol=1e-5)


@pytest.mark.long
def test_the_challenges_table_stands_beside_the_native_engines() -> None:
    found = run_json(
        "evaluate", "reactive-restore", "--backend", "cyborg", "--protocol", "challenge", "--episodes", "6"
    )
    assert found["protocol"] == "challenge"
    assert found["cyborg"] == "csle-cyborg 0.0.3"
    assert (found["episodes"], found["native"]["episodes"]) == (6, 1000)
    for table in (found, found["native"]):
        cells = [cell for row in table["cells"].values() for cell in row.values()]
        assert [*table["cells"]] == ["bline", "meander", "sleep"]
        assert [*table["cells"]["bline"]] == ["30", "50", "100"]
        assert all({"mean", "standard_error"} <= set(cell) for cell in cells)
        assert table["total"] == pytest.approx(sum(cell["mean"] for cell in cells))
    assert all(abs(value) < 5 for row in found["difference"].values() for value in row.values())
    assert found["difference"]["sleep"] == {"30": 0.0, "50": 0.0, "100": 0.0}


def test_the_total_has_the_error_of_games_that_serve_for_all_lengths() -> None:
    table = evaluate_named(Asked("random", "bline,meander", 500, load_network()))
    others = [
        evaluate_named(Asked("random", "bline,meander", 500, load_network(), seed))["total"] for seed in range(1, 41)
    ]
    assert 0.7 < table["total_standard_error"] / np.std(others, ddof=1) < 1.4


@pytest.mark.long
def test_training_on_both_simulators_can_be_measured_side_by_side() -> None:
    found = run_json("bench", "cyborg", "--processes", "2", "--updates", "1", "--native-updates", "2")
    assert found["processes"] == 2
    for red in ("bline", "meander"):
        speeds = found[red]
        assert speeds["ratio"] == pytest.approx(speeds["native_transitions_per_s"] / speeds["cyborg_transitions_per_s"])
        assert min(speeds.values()) > 0
    assert found["start_s"] > 0


def test_differences_are_judged_by_the_spread_of_both_samples() -> None:
    quiet = {"mean": 0.0, "standard_deviation": 0.0, "episodes": 10}
    wide = {"mean": -0.1, "standard_deviation": 1.0, "episodes": 1000}
    assert in_standard_errors(quiet, quiet) == 0
    assert in_standard_errors(quiet, wide) == pytest.approx(0.1 / (math.sqrt(999 / 1008) * math.sqrt(0.101)))
    assert in_standard_errors(quiet, quiet | {"mean": 1.0}) is None


@pytest.mark.long
def test_a_search_on_cyborg_trains_evaluates_and_ranks(tmp_path: Path) -> None:
    size = ["--n-envs", "2", "--max-steps", "50", "--update-steps", "50", "--max-episodes", "1", "--min-episodes", "1"]
    count = ["--n-workflows", "2", "--replicates", "1", "--n-eval-episodes", "6", "--jobs", "2", "--no-report"]
    ends = ["--finalists", "2", "--finish-episodes", "1", "--warm-updates", "2", "--compliance-threshold", "0"]
    found = run_json("search", "--backend", "cyborg", *size, *count, *ends, "--run-dir", tmp_path / "run")
    assert len(found["ranking"]) == len(found["finalists"]) == 2
    assert all(row["repairs"] > 0 for row in found["ranking"])
    assert read_config(tmp_path / "run" / "bases" / "0").backend == "native"
    for kind, number in (("trainings", 2), ("finals", 4)):
        folders = list((tmp_path / "run" / kind).iterdir())
        assert [read_config(folder).backend for folder in folders] == ["cyborg"] * number
    assert Path(found["run"], "policy.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["evaluate", "sleep", "--backend", "cybrog"], "unknown backend 'cybrog'; allowed: native, cyborg."),
        (["evaluate", "sleep", "--cyborg-path", "x"], "a CybORG path was given, but the backend is native"),
        (["evaluate", "sleep", "--backend", "cyborg", "--cyborg-path", "x"], "x: no checkout of CybORG"),
        (["evaluate", "sleep", "--backend", "cyborg", "--jobs", "0"], "jobs must be from 1 to 1000, not 0."),
        (["evaluate", "sleep", "--backend", "cyborg", "--edition", "leaderboard"], "plays the current edition"),
        (["evaluate", "sleep", "--jobs", "2"], "--jobs is for --backend cyborg"),
        (["evaluate", "sleep", "--greedy"], "sleep is a reference defender: it takes neither a workflow nor --greedy."),
        (["evaluate", "sleep", "--protocol", "x"], "unknown protocol 'x'; allowed: challenge."),
        (["evaluate", "sleep", "--protocol", "challenge", "--red-agent", "bline"], "plays all red agents"),
        (["train", "--backend", "cyborg", "--path", "fast"], "path 'fast' needs the native engine"),
        (
            ["evaluate", UNIVERSAL, "--backend", "cyborg"],
            "say which one with --workflow; all take hours on CybORG.",
        ),
        (["train", "--backend", "cyborg", "--n-envs", "100000"], "n_envs must be at most 10000 on CybORG"),
        (["bench", "cyborg", "--processes", "-1"], "the number of processes must be a whole number from 1 to 1000"),
        (["train", "--backend", "x"], "unknown backend 'x'; allowed: native, cyborg."),
        (["bench", "cyborg", "--updates", "0"], "the numbers of updates must be at least 1, not 0 and 100."),
    ],
)
def test_what_cannot_be_on_cyborg_is_refused(arguments: list[str | Path], complaint: str, tmp_path: Path) -> None:
    assert_refused(run(*arguments, cwd=tmp_path), complaint)
    assert not list(tmp_path.iterdir())
