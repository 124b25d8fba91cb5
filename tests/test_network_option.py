"""A network of one's own in every command: ``--network``, the copy in a run, and the digest in a policy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from tests.conftest import DATA, ROOT
from tests.helpers import Here, agent_in, assert_refused, run, run_json
from workflow_rl import CageVectorEnv, ParallelEnvWrapper
from workflow_rl.config import TrainConfig
from workflow_rl.defenders.export import export_agent
from workflow_rl.engine.bait import full_actions
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network, load_network
from workflow_rl.engine.networks.copies import copy_of, network_of
from workflow_rl.envs.views import View, with_view
from workflow_rl.errors import UserError
from workflow_rl.presets import MANY_HOSTS, make_config
from workflow_rl.report.build import Games, run_page
from workflow_rl.report.run_data import order_plane, report_data
from workflow_rl.runs import Run, read_about, read_events, read_tensors, tensor_bytes
from workflow_rl.search.executor import Job
from workflow_rl.search.remote_training import DONE, pack, train_away
from workflow_rl.search.run_search import ParallelWorkflowRLTrainer
from workflow_rl.search.verdict import Verdict
from workflow_rl.training.collectors import workflow_codes
from workflow_rl.training.limits import limit_of
from workflow_rl.training.policy_file import PolicyFile, load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.rollout import sample_actions
from workflow_rl.training.train_task import check_task
from workflow_rl.training.trainer import train_workflow
from workflow_rl.training.workflow import Workflow

TINY = [
    "--n-envs",
    "10",
    "--max-episodes",
    "3",
    "--min-episodes",
    "1",
    "--warm-updates",
    "1",
    "--n-eval-episodes",
    "10",
]
ORDER = "desk,office,op_server,op_host,defender"
HOST = """[[hosts]]
name = "{name}"
unit_type = "{kind}"
os = "linux"
value = 0.1
guessable = "ubuntu"
services = [{{ process = "sshd", account = "root", type = "ssh", ports = [22] }}]
"""


def write_network(path: Path, name: str, users: int = 1, operational: int = 0, red: str = "bline") -> Path:
    """CAGE Challenge 2 with more hosts, unit types of other names and maybe another name of its first red agent."""
    text = CAGE2.read_text("utf-8").replace('name = "cage2"', f'name = "{name}"')
    text = text.replace('"user"', '"desk"').replace('"enterprise"', '"office"').replace("[red.bline]", f"[red.{red}]")
    more = [f"User{5 + i}" for i in range(users)], [f"Op_Host{3 + i}" for i in range(operational)]
    for last, names in (("User4", more[0]), ("Op_Host2", more[1])):
        added = "".join(f', "{one}"' for one in names)
        assert f'"{last}"]\n' in text
        text = text.replace(f'"{last}"]\n', f'"{last}"{added}]\n', 1)
    hosts = [HOST.format(name=one, kind="desk") for one in more[0]]
    hosts += [HOST.format(name=one, kind="op_host") for one in more[1]]
    path.write_text(text.replace("[operational_service]", "".join(hosts) + "[operational_service]"), "utf-8")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Files of networks by their number of hosts; the larger one's first red agent has a name of its own."""
    folder = tmp_path_factory.mktemp("networks")
    return {
        14: write_network(folder / "fourteen.toml", "fourteen"),
        20: write_network(folder / "twenty.toml", "twenty", 4, 3, "storm"),
    }


@pytest.fixture(scope="module", params=[14, 20])
def trained(request: pytest.FixtureRequest, files: dict[int, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of the program; its network's file is gone afterwards."""
    folder = tmp_path_factory.mktemp("trained")
    mine = Path(shutil.copy(files[request.param], folder / "mine.toml"))
    words = ["train", "--network", str(mine), "--workflow", ORDER, *TINY, "--run-dir", str(folder / "run")]
    done = run(*words, "--no-tensorboard")
    assert done.returncode == 0, done.stderr
    mine.unlink()
    return folder / "run"


def n_hosts(path: Path) -> int:
    return len(network_of(path).hosts)


def test_a_run_keeps_a_byte_copy_of_its_network_and_the_digest(trained: Path, files: dict[int, Path]) -> None:
    mine = files[n_hosts(trained)]
    assert (trained / "network.toml").read_bytes() == mine.read_bytes()
    about = {"name": mine.stem, "digest": load_network(mine).digest}
    assert read_about(trained)["network"] == about
    stored = read_tensors(trained / "policy.safetensors")[1]
    assert stored["network"] == about | {
        "n_observed": 4 * n_hosts(trained), "unit_types": ["defender", "office", "op_server", "op_host", "desk"]
    }  # fmt: skip


def test_the_opponent_is_the_first_of_the_network_if_none_is_named(trained: Path) -> None:
    expected = "storm" if n_hosts(trained) == 20 else "bline"
    assert read_about(trained)["config"]["red_agent"] == expected
    assert load_policy(trained).red_agent == expected


def test_a_run_is_evaluated_on_its_own_network_without_being_told(trained: Path, files: dict[int, Path]) -> None:
    found = run_json("evaluate", trained, "--episodes", "20")
    network = load_network(files[n_hosts(trained)])
    assert tuple(found["cells"]) == network.red_agents
    assert found["network"] == network.name
    assert found["limits"][network.red_agents[0]] == {"30": None, "50": None, "100": None}
    told = run_json("evaluate", trained, "--episodes", "20", "--network", files[n_hosts(trained)])
    assert told["cells"] == found["cells"]


@pytest.mark.parametrize("command", ["evaluate", "watch", "report", "playbook", "export"])
def test_another_network_than_the_runs_own_is_refused(
    trained: Path, files: dict[int, Path], command: str, tmp_path: Path
) -> None:
    other = files[34 - n_hosts(trained)]
    words = [command, str(trained)] + [str(tmp_path / "agent")] * (command == "export")
    own, theirs = network_of(trained), load_network(other)
    words_of = [f"network {one.name!r} ({one.digest})" for one in (own, theirs)]
    done = run(*words, "--network", other)
    assert_refused(done, f"{trained} is of {words_of[0]}, not of {words_of[1]}; leave --network out.")
    assert not (tmp_path / "agent").exists()


def test_an_episode_on_ones_own_network_can_be_watched(trained: Path) -> None:
    story = run_json("watch", trained, "--episode", "0")
    assert story["workflow"] == ORDER
    assert len(story["frames"][0]["level"]) == n_hosts(trained)
    assert story["red_agent"] == network_of(trained).red_agents[0]
    assert run("watch", trained, "--red-agent", "meander").stdout.startswith(f"{trained}: median of 200 episodes")


def test_the_report_of_a_run_shows_its_own_network(trained: Path) -> None:
    result = run_json("report", trained)
    page, network = Path(result["report"]).read_text("utf-8"), network_of(trained)
    assert all(f"<strong>{name}</strong>" in page for name in network.host_names)
    assert f"edition, network {network.name}</title>" in page
    assert f"--network {trained}/network.toml" in page
    assert f">{network.red_agents[0]}</td>" in page


def test_a_playbook_on_ones_own_network_names_its_unit_types(trained: Path) -> None:
    found = run_json("playbook", trained, "--episodes", "20")["playbooks"]
    assert [book["red_agent"] for book in found] == [network_of(trained).red_agents[0], "meander"]
    assert {pair["first"] for pair in found[0]["pairs"]} <= set(network_of(trained).unit_types)


def test_an_exported_agent_brings_its_network_and_acts_as_the_policy_does(trained: Path, tmp_path: Path) -> None:
    run_json("export", trained, tmp_path / "agent", "--greedy")
    network = network_of(trained)
    assert (tmp_path / "agent" / "network.toml").read_bytes() == (trained / "network.toml").read_bytes()
    assert f"network {network.name!r}" in (tmp_path / "agent" / "README.md").read_text("utf-8")
    agent = agent_in(tmp_path / "agent").Agent()
    envs = CageVectorEnv(1, network=network)
    observation = envs.reset(seed=3)[0][0]
    for _ in range(30):
        action = agent.get_action(observation)
        assert 0 <= action < network.n_actions
        observation = envs.step([action])[0][0]
    with pytest.raises(ValueError, match=f"must have {network.n_bits} numbers, not 52"):
        agent.get_action([0] * 52)
    again = run_json("evaluate", tmp_path / "agent" / "policy.safetensors", "--episodes", "20")
    assert again["cells"] == run_json("evaluate", trained, "--episodes", "20")["cells"]


def test_a_policy_of_one_network_is_refused_on_another_with_both_names(trained: Path, tmp_path: Path) -> None:
    shutil.copy(trained / "policy.safetensors", tmp_path / "alone.safetensors")
    own, cage2 = network_of(trained), load_network()
    words = f"the policy was trained on network {own.name!r} ({own.digest}), not on network 'cage2' ({cage2.digest})."
    assert_refused(run("evaluate", tmp_path / "alone.safetensors"), words)
    with pytest.raises(UserError) as error:
        load_policy(tmp_path / "alone.safetensors", cage2)
    assert str(error.value) == f"{tmp_path}/alone.safetensors: {words}"
    assert load_policy(tmp_path / "alone.safetensors", trained / "network.toml").workflow == ORDER
    words = f"the policy was trained on network 'cage2' ({cage2.digest}), not on network {own.name!r} ({own.digest})."
    universal = DATA / "universal.safetensors"  # an older file, which names no network
    assert_refused(run("evaluate", universal, "--network", trained / "network.toml"), words)


def test_a_damaged_network_in_a_policy_is_refused(trained: Path, tmp_path: Path) -> None:
    arrays, meta = read_tensors(trained / "policy.safetensors")
    (tmp_path / "policy").write_bytes(tensor_bytes(arrays, meta | {"network": ["cage2"]}))
    with pytest.raises(UserError, match="damaged, its network is "):
        load_policy(tmp_path / "policy")


def tiny_run(path: Path, network: Network, **values: Any) -> Run[Any]:
    config = make_config(
        "general", **{"n_envs": 4, "max_episodes": 5, "n_eval_episodes": 4, "checkpoint_updates": 1} | values,
    )  # fmt: skip
    return Run.create(path, config, copy_of(network))


def test_a_network_file_that_changes_between_kill_and_resume_has_no_effect(
    files: dict[int, Path], tmp_path: Path
) -> None:
    mine, whole, killed = tmp_path / "mine.toml", tmp_path / "whole", tmp_path / "killed"
    shutil.copy(files[14], mine)
    words = [
        "train", "--network", str(mine), "--n-envs", "4", "--max-episodes", "60", "--path", "plain",
        "--checkpoint-updates", "1", "--n-eval-episodes", "4", "--no-tensorboard", "--run-dir",
    ]  # fmt: skip
    assert run(*words, whole).returncode == 0
    command = [sys.executable, "-m", "workflow_rl.cli", *words, str(killed)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(read_events(killed)) < 3:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not (killed / "result.json").exists()
    mine.write_text(mine.read_text("utf-8").replace("restore = 1.0", "restore = 9.0"), "utf-8")
    refused = run("train", "--resume", killed, "--network", mine)
    assert_refused(refused, f"{killed} is of network 'fourteen'")
    done = run("train", "--resume", killed, "--no-tensorboard")
    assert done.returncode == 0, done.stderr
    left, right = (read_tensors(path / "policy.safetensors")[0] for path in (whole, killed))
    assert all(np.array_equal(left[name], right[name]) for name in left)


def test_a_copy_that_was_tampered_with_is_refused_and_nothing_is_lost(files: dict[int, Path], tmp_path: Path) -> None:
    path, mine = tmp_path / "run", load_network(files[14])
    tiny_run(path, mine).close()
    original = (path / "network.toml").read_bytes()
    (path / "network.toml").write_bytes(original.replace(b"restore = 1.0", b"restore = 9.0"))
    before = {one.name: one.read_bytes() for one in path.iterdir()}
    for words in (["train", "--resume"], ["report"], ["watch"], ["evaluate"]):
        assert_refused(run(*words, path), f"{path}/network.toml was changed: it has the digest ")
    assert {one.name: one.read_bytes() for one in path.iterdir()} == before
    (path / "network.toml").unlink()
    assert_refused(run("train", "--resume", path), f"{path}/network.toml: cannot read the network file")
    (path / "network.toml").write_bytes(original)
    assert run("train", "--resume", path, "--no-tensorboard").returncode == 0


def test_a_run_without_a_network_is_one_of_cage2(tmp_path: Path, network: Network) -> None:
    with closing(tiny_run(tmp_path / "run", network)) as made:
        train_workflow(made.config, made)
    assert (tmp_path / "run" / "network.toml").read_bytes() == CAGE2.read_bytes()
    about = json.loads((tmp_path / "run" / "config.json").read_text("utf-8"))
    del about["network"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(about), "utf-8")
    (tmp_path / "run" / "network.toml").unlink()
    assert network_of(tmp_path / "run") == network
    found = run_json("evaluate", tmp_path / "run", "--episodes", "10")
    assert found["network"] == "cage2"
    assert "--network" not in Path(run_json("report", tmp_path / "run")["report"]).read_text("utf-8")


def test_a_network_made_in_python_is_kept_as_text(tmp_path: Path, network: Network) -> None:
    mine = replace(network, name="dear", reward=replace(network.reward, restore=3.0))
    with closing(tiny_run(tmp_path / "run", mine)) as made:
        assert train_workflow(made.config, made).mean_return < 0
        with pytest.raises(UserError, match="is of network 'dear'"):
            train_workflow(made.config, made, network=network)
    assert network_of(tmp_path / "run") == mine
    assert load_policy(tmp_path / "run").view.network == mine


def test_a_directory_with_another_network_file_is_left_alone(tmp_path: Path, files: dict[int, Path]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "network.toml").write_text("mine", "utf-8")
    done = run("train", "--network", files[14], *TINY, "--run-dir", tmp_path / "run")
    assert_refused(done, "network.toml already exists and holds another network; choose another directory.")
    assert (tmp_path / "run" / "network.toml").read_text("utf-8") == "mine"
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.parametrize("hosts", [14, 20])
def test_a_search_on_ones_own_network_trains_there_and_its_report_says_so(
    files: dict[int, Path], hosts: int, tmp_path: Path
) -> None:
    mine = Path(shutil.copy(files[hosts], tmp_path / "mine.toml"))
    words = [
        "search", "--network", str(mine), *TINY, "--n-workflows", "2", "--replicates", "1", "--n-initial", "2",
        "--no-finish", "--compliance-threshold", "0.0", "--jobs", "1", "--run-dir", str(tmp_path / "run"),
    ]  # fmt: skip
    result = run_json(*words)
    assert set(result["best"].split(",")) == {"desk", "office", "op_server", "op_host", "defender"}
    digest = load_network(mine).digest
    mine.unlink()
    copies = sorted((tmp_path / "run").rglob("network.toml"))
    many = hosts > MANY_HOSTS  # then trainings begin with a rule instead of a policy, and have a short memory
    assert len(copies) == (3 if many else 4)  # of the search, its two trainings and the policy that they start from
    assert {load_network(copy).digest for copy in copies} == {digest}
    assert load_policy(tmp_path / "run").view.n_bits == (5 if many else 4) * hosts
    assert "User5" in Path(result["report"]).read_text("utf-8")
    data = report_data(tmp_path / "run", network_of(tmp_path / "run"))
    assert (len(data.evaluations), len(data.predictions), data.problem) == (2, 120, "")
    name = network_of(tmp_path / "run").name
    assert run_json("evaluate", tmp_path / "run", "--episodes", "10")["network"] == name
    assert [row["network"] for row in run_json("runs", "--folder", tmp_path)["runs"]] == [name]
    assert f" on {name} " in run("runs", "--folder", tmp_path).stdout


def test_a_search_is_resumed_on_its_own_network(files: dict[int, Path], tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "n_envs": 10, "max_episodes": 2, "min_episodes": 1, "warm_updates": 1, "n_eval_episodes": 10, "replicates": 1,
        "n_initial": 2, "finish": False, "compliance_threshold": 0.0,
    }  # fmt: skip
    trainer = ParallelWorkflowRLTrainer(
        n_workflows=2, run_dir=tmp_path / "run", network=str(files[20]), in_flight=2, **settings
    )
    assert trainer.config.train.red_agent == "storm"
    result = trainer.run_workflow_search(executor=Here())
    (tmp_path / "run" / "result.json").unlink()
    assert_refused(
        run("search", "--resume", tmp_path / "run", "--network", files[14]), f"{tmp_path}/run is of network 'twenty'"
    )
    again = run_json("search", "--resume", tmp_path / "run", "--jobs", "1", "--no-report")
    assert again["ranking"] == result.to_json()["ranking"]
    with pytest.raises(UserError, match="no network 'nowhere'; bundled: cage2"):
        ParallelWorkflowRLTrainer(network="nowhere")


def test_a_training_away_from_its_directory_has_the_content_of_the_network(
    files: dict[int, Path], tmp_path: Path
) -> None:
    mine = Path(shutil.copy(files[20], tmp_path / "mine.toml"))
    config = make_config(
        "general", red_agent="storm", n_envs=4, max_episodes=5, n_eval_episodes=4, checkpoint_updates=1
    )
    parcel = pack(Job("0-0", tmp_path / "run", config, load_network(mine)), 0.0, 0.0)
    assert parcel is not None
    assert parcel.files["network.toml"] == mine.read_bytes()
    mine.unlink()
    shutil.rmtree(tmp_path / "run")  # which another machine does not have
    messages = dict(train_away(parcel))
    (tmp_path / "policy").write_bytes(messages[DONE]["policy.safetensors"])
    assert load_policy(tmp_path / "policy", files[20]).view.n_bits == 80


def test_a_directory_of_a_training_on_another_network_is_refused(files: dict[int, Path], tmp_path: Path) -> None:
    config = make_config("general", n_envs=4, max_episodes=5, n_eval_episodes=4)
    assert pack(Job("0-0", tmp_path / "run", config, load_network(files[14])), 0.0, 0.0) is not None
    with pytest.raises(UserError, match="is of network 'fourteen'"):
        pack(Job("0-0", tmp_path / "run", config, load_network()), 0.0, 0.0)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["evaluate", "champion"], "champion was trained on CAGE Challenge 2; it cannot defend network 'fourteen'"),
        (["watch", "expert"], "expert knows only CAGE Challenge 2; it cannot defend network 'fourteen'"),
        (["export", "expert", "agent"], "expert knows only CAGE Challenge 2; it cannot defend network 'fourteen'"),
        (["export", "champion", "agent"], "champion was trained on CAGE Challenge 2"),
        (["evaluate", "sleep", "--protocol", "challenge"], "protocol is that of CAGE Challenge 2, not of network"),
        (["evaluate", "sleep", "--red-agent", "storm"], "unknown red agent 'storm'; allowed: bline, meander, sleep"),
        (["train", "--preset", "champion"], "supports only CAGE Challenge 2; network 'fourteen' differs in hosts"),
        (["train", "--view", "memory"], "use --view short-memory or plain."),
        (["search", "--view", "memory"], "use --view short-memory or plain."),
        (["train", "--view", "small-memory"], "use --view short-memory or plain."),
        (["train", "--workflow", "user,enterprise,op_server,op_host,defender"], "unknown unit type 'user'"),
    ],
)  # fmt: skip
def test_what_only_cage2_has_is_refused_elsewhere(
    files: dict[int, Path], words: list[str], complaint: str, tmp_path: Path
) -> None:
    assert_refused(run(*words, "--network", files[14], cwd=tmp_path), complaint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("nowhere", "no network 'nowhere'; bundled: cage2"),
        ("nowhere.toml", "nowhere.toml: cannot read the network file (No such file or directory)."),
        (str(ROOT), "cannot read the network file (Is a directory)."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["train", "search", "evaluate sleep", "watch sleep", "playbook sleep", "bench env"])
def test_a_network_that_cannot_be_read_is_refused_in_one_sentence(
    command: str, given: str, complaint: str, tmp_path: Path
) -> None:
    assert_refused(run(*command.split(), "--network", given, cwd=tmp_path), complaint)


def test_reference_defenders_play_on_any_network(files: dict[int, Path]) -> None:
    for name in ("sleep", "random", "reactive-remove"):
        found = run_json("evaluate", name, "--network", files[20], "--episodes", "10")
        assert list(found["cells"]) == ["storm", "meander", "sleep"]
        assert found["cells"]["storm"]["100"]["mean"] < 0
    assert len(run_json("watch", "random", "--network", files[20])["frames"][0]["level"]) == 20


def test_environments_of_any_network_are_made_by_its_path(files: dict[int, Path]) -> None:
    assert gymnasium.make("Cage2-v0", network=str(files[20])).reset(seed=0)[0].shape == (80,)
    envs = gymnasium.make_vec("Cage2-v0", num_envs=3, network=str(files[20]))
    assert envs.reset(seed=0)[0].shape == (3, 80)
    assert ParallelEnvWrapper(2, network=files[14]).reset(seed=0).shape == (2, 56)
    first, named = (CageVectorEnv(5, red, network=files[20]) for red in (None, "storm"))
    first.reset(seed=1)
    named.reset(seed=1)
    for _ in range(20):
        first.step([0] * 5)
        named.step([0] * 5)
    assert np.array_equal(first.snapshot(), named.snapshot())


def test_a_memory_works_where_only_the_unit_types_differ(network: Network) -> None:
    kinds = {host.name: host.name.lower() for host in network.hosts[:7]}
    hosts = tuple(replace(host, unit_type=kinds.get(host.name, host.unit_type)) for host in network.hosts)
    used = {host.unit_type for host in hosts}
    fine = replace(network, name="fine", unit_types=tuple(dict.fromkeys(sorted(used))), hosts=hosts)
    envs = with_view(CageVectorEnv(2, network=fine), View("memory", "host-decoy", fine))
    assert envs.reset(seed=0)[0].shape[1] == with_view(CageVectorEnv(1), View("memory")).reset(seed=0)[0].shape[1]
    check_task(make_config("general", view="memory", actions="host-decoy"), fine)


def test_an_incident_on_ones_own_network_has_its_short_memory_and_is_exported_with_it(
    files: dict[int, Path], tmp_path: Path
) -> None:
    words = ["train", "--network", str(files[20]), "--workflow", ORDER, "--takeover", "10", *TINY, "--no-tensorboard"]
    done = run(*words, "--patience", "0", "--run-dir", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    policy = load_policy(tmp_path / "run")
    assert (policy.view.observation, policy.view.actions) == ("short-memory", "host-decoy")
    assert run_json("evaluate", tmp_path / "run", "--episodes", "10")["takeover"] == "10"
    assert run_json("watch", tmp_path / "run", "--episode", "1")["frames"][0]["step"] == 0
    assert run("export", tmp_path / "run", tmp_path / "agent").returncode == 0
    assert sorted(path.name for path in (tmp_path / "agent").iterdir()) == [
        "README.md", "agent.py", "network.toml", "policy.safetensors",
    ]  # fmt: skip
    assert agent_in(tmp_path / "agent").Agent().get_action([0] * 80) in range(load_network(files[20]).n_actions)


@pytest.mark.parametrize("observation", ["plain", "short-memory"])
def test_an_agent_that_remembers_its_decoys_acts_as_our_policy_on_any_network(
    files: dict[int, Path], tmp_path: Path, observation: str
) -> None:
    network = load_network(files[20])
    view = View(observation, "host-decoy", network)
    config = TrainConfig(device="cpu", view=observation, actions="host-decoy", guard=True)
    ppo = ParallelOrderConditionedPPO(config, workflow_codes((Workflow.parse(ORDER, network),)), network=network)
    with torch.no_grad():
        for weights in ppo.net.actor.parameters():
            weights.mul_(2)
    PolicyFile(ppo.net, ORDER, False, "meander", "current", view).save(tmp_path / "policy")
    export_agent(tmp_path / "policy", tmp_path / "agent", network=network)
    agent, generator = agent_in(tmp_path / "agent").Agent(seed=5), np.array([5], np.uint64)
    envs = with_view(CageVectorEnv(1, "meander", network=network, max_steps=60), view)
    observations, verbs = envs.reset(seed=1)[0], set()
    for step in range(600):
        expected = ppo.probabilities(view.keys(envs.packed_observations))
        chosen = sample_actions(expected.copy(), generator)
        action = agent.get_action(observations[0][: network.n_bits])
        assert action == full_actions(view.bait, envs.memories, chosen)[0], step
        verbs.add(network.action_parts(action)[0])
        observations, _, _, truncated, _ = envs.step(chosen)
        if truncated[0]:
            agent.end_episode()
    assert len(verbs) > 5


def test_a_limit_is_known_only_for_cage2(network: Network) -> None:
    order = "op_server,enterprise,user,defender,op_host"
    assert limit_of(order, "bline", "current", "30", 100, network) is not None
    assert limit_of(order, "bline", "current", "30", 100, replace(network, name="cage3")) is None


def test_a_page_escapes_the_names_of_a_network(files: dict[int, Path], tmp_path: Path) -> None:
    path, evil = tmp_path / "run", "<script>alert(1)</script>"
    with closing(tiny_run(path, load_network(files[14]))) as made:
        train_workflow(made.config, made)
    first = network_of(path).unit_types[0]
    hosts = tuple(
        replace(host, name=host.name.replace("User5", evil), unit_type=host.unit_type.replace(first, evil))
        for host in network_of(path).hosts
    )
    subnets = tuple(
        replace(
            one, name=one.name.replace("Operational", evil), hosts=tuple(h.replace("User5", evil) for h in one.hosts)
        )
        for one in network_of(path).subnets
    )
    hostile = replace(
        network_of(path), name=evil, hosts=hosts, subnets=subnets, unit_types=(evil, *network_of(path).unit_types[1:])
    )
    story = run_json("watch", path, "--episode", "0")
    assert story["frames"]
    data = report_data(path, hostile)
    page = run_page(data, Games(problem=evil), Verdict((evil,), (), (), (), 1, ""))
    assert evil not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("n_types", [1, 2, 3, 8])
def test_any_number_of_unit_types_has_a_map(n_types: int) -> None:
    types = tuple("abcdefgh"[:n_types])
    orders = [types, types[::-1], (*types[1:], types[0])][: max(1, n_types)]
    for expected in (np.arange(len(orders), dtype=float), np.zeros(len(orders))):
        plane = order_plane(types, list(dict.fromkeys(orders)), expected[: len(dict.fromkeys(orders))])
        assert plane.shape == (len(dict.fromkeys(orders)), 2)
        assert np.isfinite(plane).all()


def test_a_bundled_name_and_its_path_are_the_same_network() -> None:
    assert as_network("cage2") == as_network(str(CAGE2)) == load_network()
