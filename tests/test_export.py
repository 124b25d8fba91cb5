"""The exported agent: numpy alone, our policy's actions, and CybORG's own evaluation loop."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import DATA as TEST_DATA
from tests.conftest import ROOT
from tests.helpers import agent_in, assert_refused, run, run_json
from workflow_rl import CageVectorEnv, UserError, load_policy
from workflow_rl.config import TrainConfig
from workflow_rl.defenders.export import export_agent
from workflow_rl.defenders.exported_agent import UNIT_TYPES
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.training.collectors import workflow_codes
from workflow_rl.training.compliance import FACTS, Compliance, Obedience
from workflow_rl.training.policy_file import PolicyFile
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.rollout import sample_actions
from workflow_rl.training.workflow import Workflow

UNIVERSAL = TEST_DATA / "universal.safetensors"
ORDER = "enterprise,op_server,user,op_host,defender"


def general_policy(path: Path) -> Path:
    """A general policy file with weights that make it act in many ways."""
    import torch

    from workflow_rl import OrderConditionedActorCritic

    torch.manual_seed(0)
    net = OrderConditionedActorCritic(52, 0, 145)
    with torch.no_grad():
        for weights in net.actor.parameters():
            weights.mul_(2)
    PolicyFile(net, "", False, "bline", "current").save(path)
    return path


@pytest.mark.parametrize("kind", ["workflow", "general"])
def test_the_agent_acts_as_our_policy_on_ten_thousand_observations(tmp_path: Path, kind: str) -> None:
    source, order = (UNIVERSAL, ORDER) if kind == "workflow" else (general_policy(tmp_path / "general"), "")
    export_agent(source, tmp_path / "agent", order)
    module = agent_in(tmp_path / "agent")
    envs = CageVectorEnv(100, red_agent="bline,meander")
    envs.reset(seed=0)
    ppo = ParallelOrderConditionedPPO(
        TrainConfig(device="cpu"), workflow_codes((Workflow.parse(order),) if order else ()), load_policy(source).net
    )
    sampling, greedy = module.Agent(seed=77), module.Agent(greedy=True)
    generators = np.array([77], np.uint64)
    chosen = set()
    for _ in range(100):
        observations = (envs.packed_observations >> np.arange(52) & 1).astype(int)
        probabilities = ppo.probabilities(envs.packed_observations)
        actions = []
        for observation, expected in zip(observations, probabilities, strict=True):
            np.testing.assert_allclose(sampling.probabilities(observation), expected, atol=2e-6)
            assert greedy.get_action(observation, 145) == expected.argmax()
            actions.append(sampling.get_action(observation, 145))
            assert actions[-1] == sample_actions(expected[None].copy(), generators)[0]
        chosen |= set(actions)
        envs.step(actions)
    assert len(chosen) > 20


@pytest.mark.parametrize("red", ["bline", "meander"])
def test_the_agent_keeps_its_order_in_fresh_games_as_well_as_the_evaluation_of_the_policy_claims(
    tmp_path: Path, network: Network, red: str
) -> None:
    """It sees observations alone; whether it repairs, and in which order, is judged by the true state."""
    claim = run_json(
        "evaluate", UNIVERSAL, "--workflow", ORDER, "--red-agent", red, "--episodes", "2000", "--seed", "1"
    )
    claimed = Obedience.read(claim["obedience"][red])
    export_agent(UNIVERSAL, tmp_path / "agent", ORDER)
    module, n = agent_in(tmp_path / "agent"), 300
    agents, envs = [module.Agent(seed=game) for game in range(n)], CageVectorEnv(n, red_agent=red, max_steps=None)
    kept, reversed_ = (
        Compliance(network, np.tile(Workflow.parse(order).indices(), (n, 1)))
        for order in (ORDER, ",".join(ORDER.split(",")[::-1]))
    )
    observations, _ = envs.reset(seed=123)
    for _ in range(100):
        actions = [agent.get_action(observation) for agent, observation in zip(agents, observations, strict=True)]
        observations, *_, infos = envs.step(actions)
        for judge in (kept, reversed_):
            judge.update(*(infos[name] for name in FACTS))
    found, wrong = Obedience.of(kept.episodes), Obedience.of(reversed_.episodes)
    assert claimed.compliance is not None
    assert claimed.compliance_error is not None
    assert found.compliance is not None
    assert found.compliance_error is not None
    error = np.hypot(found.compliance_error, claimed.compliance_error)
    assert error > 0
    assert abs(found.compliance - claimed.compliance) < 3 * error
    for name, per_episode in (("repairs", claimed.repairs), ("idle", claimed.idle_fixes)):
        counts = kept.episodes[name]
        assert abs(counts.mean() - per_episode) < 3 * counts.std(ddof=1) * np.sqrt(1 / n + 1 / 2000), name
    assert found.repairs > 1
    assert wrong.compliance is not None
    assert wrong.compliance < found.compliance - 3 * error  # the order is that of the agent, not any


def test_with_very_sharp_weights_only_rounding_parts_the_agent_from_our_policy(tmp_path: Path) -> None:
    """Where probabilities differ in the seventh digit a draw on the boundary may fall otherwise, hardly ever."""
    import torch

    policy = load_policy(general_policy(tmp_path / "general"))
    with torch.no_grad():
        list(policy.net.actor.parameters())[-2].mul_(10)
    policy.save(tmp_path / "sharp")
    export_agent(tmp_path / "sharp", tmp_path / "agent")
    agent, generators = agent_in(tmp_path / "agent").Agent(seed=77), np.array([77], np.uint64)
    ppo = ParallelOrderConditionedPPO(TrainConfig(device="cpu"), workflow_codes(()), policy.net)
    keys = np.random.default_rng(0).integers(2**52, size=3000)
    expected = ppo.probabilities(keys)
    different = 0
    for key, row in zip(keys, expected, strict=True):
        observation = key >> np.arange(52) & 1
        np.testing.assert_allclose(agent.probabilities(observation), row, atol=1e-5)
        different += agent.get_action(observation) != sample_actions(row[None].copy(), generators)[0]
    assert different <= 3


def test_the_agent_needs_neither_torch_nor_this_package(tmp_path: Path) -> None:
    export_agent(UNIVERSAL, tmp_path / "agent", ORDER, greedy=True)
    code = (
        "import sys; sys.path.insert(0, '.'); "
        "sys.modules.update({name: None for name in ('torch', 'workflow_rl', 'safetensors', 'gymnasium', 'scipy')}); "
        "from agent import Agent; agent = Agent(); agent.end_episode(); "
        "print(agent.get_action([0] * 52, 145), agent.workflow, agent.greedy)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path / "agent", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rf"\d+ {ORDER} True\n", done.stdout)


@pytest.mark.parametrize("drawn", [0.0, 1 - 2.0**-26, 1 - 2.0**-53])
def test_the_agent_takes_an_action_that_exists_whatever_is_drawn(tmp_path: Path, drawn: float) -> None:
    export_agent(UNIVERSAL, tmp_path / "agent", ORDER)
    agent = agent_in(tmp_path / "agent").Agent()
    agent._uniform = lambda: drawn
    observations = np.random.default_rng(0).integers(2, size=(50, 52))
    actions = [agent.get_action(observation) for observation in observations]
    assert all(0 <= action <= 144 for action in actions)
    assert len(set(actions)) == 1


def test_the_agent_refuses_an_observation_of_another_size(tmp_path: Path) -> None:
    export_agent(UNIVERSAL, tmp_path / "agent", ORDER)
    agent = agent_in(tmp_path / "agent").Agent()
    with pytest.raises(ValueError, match="must have 52 numbers, not 11293"):
        agent.get_action(np.zeros(11293), 145)


@pytest.mark.parametrize("name", [str(UNIVERSAL), "champion"])
@pytest.mark.needs("csle_cyborg")
def test_the_agent_plays_in_cyborgs_own_evaluation_loop(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of csle-cyborg's evaluation.py is executed; what it lacks is supplied around it.

    It cannot run as it is published: it opens a network file that the package does not have, writes into the package's
    folder, asks for names and a git commit, and expects the four values of an older Gym. Episodes: 2 instead of 100.
    """
    import csle_cyborg.agents.simple_agents.blue_load_agent as load_agent
    import csle_cyborg.agents.wrappers.challenge_wrapper as wrappers
    import csle_cyborg.main as simulator

    from workflow_rl.engine.cyborg.exporter import cyborg_scenario

    spec = importlib.util.find_spec("csle_cyborg.evaluation.evaluation")
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text("utf-8")
    assert "MAX_EPS = 100" in text
    export_agent(name, tmp_path / "agent", "" if name == "champion" else ORDER)
    exported = agent_in(tmp_path / "agent")

    class OldWrapper(wrappers.ChallengeWrapper):  # type: ignore[misc]
        def step(self, action: Any = None) -> Any:
            return super().step(action)[:4]

    class Main(simulator.Main):  # type: ignore[misc]
        def __init__(self, _: str, *arguments: Any, **options: Any) -> None:
            super().__init__(cyborg_scenario(load_network()), *arguments, **options)

    (tmp_path / "Evaluation").mkdir()
    monkeypatch.setattr(load_agent, "BlueLoadAgent", exported.Agent)
    monkeypatch.setattr(wrappers, "ChallengeWrapper", OldWrapper)
    monkeypatch.setattr(simulator, "Main", Main)
    monkeypatch.setattr(inspect, "getfile", lambda _: str(tmp_path / "CybORG.py"))
    monkeypatch.setattr(inspect, "getsource", lambda _: "def wrap(env):\n    return ChallengeWrapper(env)")
    monkeypatch.setattr("builtins.input", lambda _: "test")
    monkeypatch.setattr(subprocess, "check_output", lambda _: b"0" * 40)
    exec(compile(text.replace("MAX_EPS = 100", "MAX_EPS = 2"), spec.origin, "exec"), {"__name__": "__main__"})
    (written,) = (tmp_path / "Evaluation").glob("*_Agent.txt")
    found = re.findall(r"steps: (\d+), adversary: (\w+), mean: (\S+),", written.read_text("utf-8"))
    reds = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
    assert [(int(steps), red) for steps, red, _ in found] == [(n, red) for n in (30, 50, 100) for red in reds]
    assert all(-150 < float(mean) <= 0 for *_, mean in found)
    asleep = [float(mean) for _, red, mean in found if red == "SleepAgent"]
    assert all(mean == 0 if name == "champion" else mean > -2 for mean in asleep)
    assert (
        len(
            re.findall(
                r"'(?:Remove|Restore) \w+', '(?:ExploitRemoteService|PrivilegeEscalate)", written.read_text("utf-8")
            )
        )
        > 10
    )


def test_a_folder_is_written_whole_and_never_over_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = export_agent(UNIVERSAL, tmp_path / "a" / "b", ORDER)
    assert result["files"] == ["README.md", "agent.py", "network.toml", "policy.safetensors"]
    exported = load_policy(tmp_path / "a" / "b")
    assert (exported.workflow, exported.universal) == (ORDER, False)
    assert list(load_network().unit_types) == UNIT_TYPES
    with pytest.raises(UserError, match="already exists; give a new folder"):
        export_agent(UNIVERSAL, tmp_path / "a" / "b", ORDER)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert export_agent(UNIVERSAL, Path("."), ORDER)["files"] == result["files"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "empty"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([UNIVERSAL, "new"], "the policy follows any workflow: say which one with --workflow."),
        ([UNIVERSAL, "new", "--workflow", "user,enterprise"], "'op_host' is missing in the workflow"),
        (["nowhere", "new"], "unknown policy 'nowhere'; allowed: champion, expert, or the path of a run"),
        ([ROOT / "README.md", "new"], "damaged, or not one of our files"),
        ([UNIVERSAL, "/proc/new", "--workflow", ORDER], "/proc/new: cannot be written"),
    ],
)
def test_an_export_that_cannot_be_is_refused(tmp_path: Path, arguments: list[str | Path], complaint: str) -> None:
    assert_refused(run("export", *arguments, cwd=tmp_path), complaint)
    assert not list(tmp_path.iterdir())
