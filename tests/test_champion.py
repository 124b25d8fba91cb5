"""The champions that come with the package: what they are, how well they defend, and that they can be taken along."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import DATA as TEST_DATA
from tests.conftest import ROOT
from tests.helpers import agent_in, assert_refused, run, run_json
from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.defenders.export import export_agent
from workflow_rl.defenders.names import DATA, blue_named
from workflow_rl.defenders.protocol import evaluate
from workflow_rl.engine.network import RED_AGENTS
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.views import View, ViewedEnvs
from workflow_rl.training.policy_file import load_policy

EDITIONS = ("current", "leaderboard")
ORDER = "user,enterprise,op_host,op_server,defender"


def stored(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"champion_{name}.json").read_text("utf-8"))["figures"]


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_file_says_what_it_is_for(edition: str) -> None:
    policy = load_policy(DATA / f"champion-{edition}.safetensors")
    assert (policy.edition, policy.view, policy.greedy) == (edition, View("memory", "host-decoy"), True)
    assert (policy.workflow, policy.universal) == ("", False)
    assert set(policy.red_agent.split(",")) == set(RED_AGENTS)


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", ["champion", "expert"])
def test_by_the_official_protocol_it_has_the_stored_total(edition: str, name: str) -> None:
    table = run_json("evaluate", name, "--protocol", "challenge", "--edition", edition, "--episodes", "2000")
    known = stored("table")["editions"][edition][name]
    apart = (table["total"] - known["total"]) / np.hypot(table["total_standard_error"], known["total_standard_error"])
    assert abs(apart) < 4
    assert set(table["cells"]) == set(RED_AGENTS)
    assert all(table["cells"]["sleep"][str(length)]["mean"] == 0 for length in CHALLENGE_LENGTHS)


def test_the_stored_totals_are_better_than_the_official_winner_and_the_champion_than_the_expert() -> None:
    for edition, wanted in (("leaderboard", -42.6), ("current", -50.9)):
        row = stored("table")["editions"][edition]
        assert row["champion"]["total"] - 3 * row["champion"]["total_standard_error"] > wanted
        assert row["champion"]["total"] > row["expert"]["total"] > row["original"]["total"]


def test_the_champions_trained_again_were_killed_in_the_middle_and_ended_with_the_bundled_weights() -> None:
    paths = sorted((ROOT / "benchmarks" / "results").glob("repeat_*.json"))
    assert {path.stem for path in paths} >= {"repeat_obedient_current", "repeat_champion_leaderboard"}
    for path in paths:
        found = json.loads(path.read_text("utf-8"))["figures"]
        assert found["same_weights"] is True
        assert 0 < found["killed_after"] < found["updates"]


def test_the_stored_games_on_cyborg_agree_with_the_engines() -> None:
    for found in stored("cyborg")["policies"].values():
        assert found["largest_difference"] < 3
        cells = [cell for row in found["cells"].values() for cell in row.values()]
        assert all(cell["episodes"] >= 300 for cell in cells)


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", ["champion", "expert"])
def test_the_exported_agent_acts_as_ours_in_whole_episodes(name: str, edition: str, tmp_path: Path) -> None:
    result = export_agent(name, tmp_path / "agent", edition=edition)
    own = ["policy.safetensors"] if name == "champion" else ["rules.json", "cage2_expert.py"]
    assert sorted(result["files"]) == sorted(
        ["README.md", "agent.py", "cage2_inference.py", "cage2_memory.py", "network.toml", *own]
    )
    agent, blue = agent_in(tmp_path / "agent").Agent(), blue_named(name, "", load_network(), edition)
    generator, actions = np.random.default_rng(0), set()
    for game, red in enumerate(("bline", "meander", "sleep") * 4):
        envs = ViewedEnvs(CageVectorEnv(1, red_agent=red, edition=edition, max_steps=None), View("memory", "full"))
        envs.reset(seed=[game])
        for _ in range(100):
            observation = envs.envs.packed_observations[0, 0] >> np.arange(52) & 1
            wanted = blue(envs.packed_observations, generator)
            assert agent.get_action(observation, 145) == wanted[0]
            actions.add(int(wanted[0]))
            envs.step(wanted)
        agent.end_episode()
    assert len(actions) > 15


@pytest.mark.parametrize("name", ["champion", "expert"])
def test_the_exported_agent_needs_numpy_alone_and_an_old_python(name: str, tmp_path: Path) -> None:
    export_agent(name, tmp_path / "agent", edition="leaderboard")
    for path in (tmp_path / "agent").glob("*.py"):
        ast.parse(path.read_text("utf-8"), feature_version=(3, 7))
        assert "workflow_rl." not in path.read_text("utf-8")
    code = (
        "import sys; sys.path.insert(0, '.'); "
        "sys.modules.update({name: None for name in ('torch', 'workflow_rl', 'safetensors', 'numba', 'gymnasium')}); "
        "from agent import Agent; agent = Agent(); print(agent.get_action([0] * 52), agent.get_action([0] * 52)); "
        "agent.end_episode(); print(agent.get_action([0] * 52))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path / "agent", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.split()[0] == second  # the memory begins anew with an episode
    assert first.split()[0] != first.split()[1]


def test_watch_and_export_know_the_champion_by_name(tmp_path: Path) -> None:
    story = run_json("watch", "champion", "--edition", "leaderboard", "--red-agent", "meander", "--episode", "3")
    assert (story["edition"], story["red_agent"], len(story["frames"])) == ("leaderboard", "meander", 100)
    assert story["frames"][0]["blue"] == "DecoyFemitter User2"
    done = run_json("export", "champion", tmp_path / "agent", "--edition", "leaderboard")
    assert (done["edition"], done["greedy"]) == ("leaderboard", True)
    assert "leaderboard edition" in (tmp_path / "agent" / "README.md").read_text("utf-8")
    found = run_json("evaluate", tmp_path / "agent", "--takeover", "0", "--episodes", "10")
    assert found["edition"] == "leaderboard"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["evaluate", "champion", "--workflow", "user,enterprise"], "workflow"),
        (["evaluate", "champion", "--green-agent", "loud"], "unknown green agent 'loud'"),
        (["evaluate", "champion", "--protocol", "challenge", "--green-agent", "active"], "green sleeps"),
        (["evaluate", "champion", "--edition", "latest"], "unknown edition 'latest'"),
        (["evaluate", "expert", "--greedy"], "it takes neither a workflow nor --greedy"),
        (["export", "expert", "new", "--greedy"], "it takes neither a workflow nor --greedy"),
        (["export", "champion", "new", "--edition", "latest"], "unknown edition 'latest'"),
        (["evaluate", "champions"], "unknown policy 'champions'; allowed: sleep, random, "),
        (["watch", "champion", "--edition", "latest"], "unknown edition 'latest'"),
        (["search", "--preset", "champion"], "does not train a single workflow"),
        (
            ["train", "--preset", "champion", "--view", "plain"],
            "a plan against B_line is for a policy that imitates it: use --view memory",
        ),
        (["train", "--preset", "champion", "--n-envs", "12"], "n_envs 12 is too small for 13 takeovers"),
        (["export", "random", "new"], "random cannot be exported; allowed: champion, expert, or the path"),
        (["train", "--workflow", ORDER, "--greedy"], "--greedy is for policies"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    assert_refused(run(*arguments, cwd=tmp_path), complaint)
    assert not list(tmp_path.iterdir())


def test_a_path_is_a_path_even_if_it_sounds_like_a_name(tmp_path: Path) -> None:
    """./expert is the user's file, expert is ours."""
    (tmp_path / "expert").write_bytes((TEST_DATA / "universal.safetensors").read_bytes())
    order = ["--workflow", "enterprise,op_server,user,defender,op_host", "--episode", "0", "--json"]
    shown = run("watch", "./expert", *order, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    frames = json.loads(shown.stdout.splitlines()[-1])["frames"]
    assert not any(frame["reason"] for frame in frames)
    assert_refused(run("evaluate", "./sleep", cwd=tmp_path), "unknown policy './sleep'")


@pytest.mark.parametrize("edition", EDITIONS)
def test_an_acting_green_agent_does_not_break_the_memory(edition: str) -> None:
    """The challenge has none; whoever lets it act gets scans by everybody, and a defender that goes on."""
    blue = blue_named("champion", "", load_network(), edition)
    envs = ViewedEnvs(
        CageVectorEnv(50, red_agent="bline", edition=edition, green_agent="active"), View("memory", "full")
    )
    envs.reset(seed=0)
    total = np.zeros(50)
    for _ in range(100):
        total += envs.step(blue(envs.packed_observations, np.random.default_rng(0)))[1]
    asleep = evaluate(blue_named("sleep", "", load_network()), "bline", edition, 50)[100]
    assert total.mean() > asleep.mean / 2
