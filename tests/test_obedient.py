"""The obedient champion: one policy for every order, which keeps it, also in incidents, and can be taken along."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.helpers import agent_in, run_json
from workflow_rl.defenders.export import export_agent
from workflow_rl.defenders.imitation import expert_teacher
from workflow_rl.defenders.names import DATA, blue_named
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.views import View, ViewedEnvs
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.training.events import UpdateEvent
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.trainer import train_workflow

ENTERPRISE_FIRST = "enterprise,op_server,user,defender,op_host"
USER_FIRST = "user,enterprise,op_server,op_host,defender"


def stored(part: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"obedient_{part}.json").read_text("utf-8"))["figures"]


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
def test_the_file_is_for_every_order_and_plays_its_most_probable_action(edition: str) -> None:
    policy = load_policy(DATA / f"obedient-{edition}.safetensors")
    assert (policy.edition, policy.view, policy.greedy) == (edition, View("memory", "host-decoy"), True)
    assert (policy.workflow, policy.universal) == ("", True)


@pytest.mark.parametrize("order", [ENTERPRISE_FIRST, USER_FIRST])
@pytest.mark.parametrize(("red", "takeover"), [("bline", "0"), ("meander", "0"), ("bline", "30"), ("meander", "40")])
def test_told_an_order_the_champion_keeps_it_and_has_the_stored_return(order: str, red: str, takeover: str) -> None:
    options = ["--workflow", order, "--red-agent", red, "--takeover", takeover, "--episodes", "400"]
    found = run_json("evaluate", "champion", *options)
    cell, rows = found["cells"][red]["100"], stored("orders")["cells"][f"{red} {takeover}"]["rows"]
    known = next(row for row in rows if row["order"] == order)
    assert abs(cell["mean"] - known["mean"]) < 4 * np.hypot(cell["standard_error"], known["standard_error"])
    assert found["obedience"][red]["compliance"] > 0.95
    assert found["obedience"][red]["kept"] > 0.9


@pytest.mark.parametrize(("part", "in_the_challenge"), [("orders", 0.98), ("leaderboard", 0.95)])
def test_every_order_is_kept_also_in_incidents(part: str, in_the_challenge: float) -> None:
    cells = stored(part)["cells"]
    assert all(len(cell["rows"]) == 120 for cell in cells.values())
    for name in ("bline 0", "meander 0", "bline 30", "meander 40"):
        least = in_the_challenge if name.endswith(" 0") else 0.95
        assert cells[name]["least_compliance"] >= least
        assert cells[name]["least_kept"] >= least


def test_the_stored_games_on_cyborg_agree_with_the_engines() -> None:
    assert stored("cyborg")["games"] >= 300
    assert stored("cyborg")["largest_difference"] < 3


def test_plans_are_close_to_the_best_that_blue_can_know_and_below_the_limit() -> None:
    for takeover, rows in stored("known")["takeovers"].items():
        for order, row in rows.items():
            if order != "free":
                assert row["mean"] - 4 * row["standard_error"] < row["bound"] < row["limit"], (takeover, order)
                assert row["mean"] > row["bound"] - 0.5  # the plan is close to what no play can exceed
    cells = stored("orders")["cells"]
    for row in (*cells["bline 0"]["rows"], *cells["bline 30"]["rows"]):
        assert row["mean"] - 4 * row["standard_error"] < row["limit"]


def test_the_exported_agent_keeps_the_order_action_by_action(tmp_path: Path) -> None:
    export_agent("champion", tmp_path / "agent", workflow=USER_FIRST)
    agent, blue = agent_in(tmp_path / "agent").Agent(), blue_named("champion", USER_FIRST, load_network())
    generator = np.random.default_rng(0)
    for game, (red, takeover) in enumerate((("bline", 0), ("meander", 0), ("bline", 30), ("meander", 40)) * 2):
        envs = ViewedEnvs(CageVectorEnv(1, red_agent=red, takeover=takeover, max_steps=None), View("memory", "full"))
        envs.reset(seed=[game])
        for _ in range(60):
            observation = envs.envs.packed_observations[0, 0] >> np.arange(52) & 1
            wanted = blue(envs.packed_observations, generator)
            assert agent.get_action(observation, 145) == wanted[0]
            envs.step(wanted)
        agent.end_episode()


def test_watching_it_shows_the_order_that_it_was_told() -> None:
    story = run_json("watch", "champion", "--workflow", USER_FIRST, "--takeover", "30", "--episode", "1")
    assert story["workflow"] == USER_FIRST
    assert len(story["frames"]) == 101  # the first is what blue takes over


@pytest.mark.long
def test_a_training_that_was_killed_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    config = make_config(
        "obedient", n_envs=120, hidden=16, plan_games=50, improve_rounds=0, imitate_updates=4, max_episodes=4,
        takeover="0,30,0", n_eval_episodes=3, checkpoint_updates=1, red_agent="bline,meander",
    )  # fmt: skip

    def die(event: UpdateEvent) -> None:
        if event.update == 3:
            raise KeyboardInterrupt

    with closing(Run.create(tmp_path / "whole", config, copy_of(load_network()))) as run:
        train_workflow(config, run, teacher=expert_teacher)
    killed = Run.create(tmp_path / "killed", config, copy_of(load_network()))
    with closing(killed), pytest.raises(KeyboardInterrupt):
        train_workflow(config, killed, say=die, teacher=expert_teacher)
    with closing(Run.open(tmp_path / "killed")) as run:
        train_workflow(config, run, teacher=expert_teacher)
    one, two = (load_policy(tmp_path / name).net.parameters() for name in ("whole", "killed"))
    assert all(bool((a == b).all()) for a, b in zip(one, two, strict=True))
