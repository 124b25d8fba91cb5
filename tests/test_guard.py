"""The guard takes away what looks out of order, the same in the network, the compiled loop and the exported agent."""

from __future__ import annotations

import importlib.util
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers import games
from workflow_rl.defenders.export import export_agent
from workflow_rl.defenders.imitation import expert_teacher
from workflow_rl.defenders.names import CHAMPION, policy_path
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.envs.views import PLAIN, View
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.training.actor import Guard, block, make_guard
from workflow_rl.training.collectors import Collector, Conduct, Stream, workflow_codes
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.trainer import Training, train_workflow
from workflow_rl.training.workflow import Workflow, all_workflows

ORDER = "enterprise,user,op_server,defender,op_host"


def believed(network: Network, **hosts: int) -> int:
    """A packed observation in which blue believes something of some hosts: 1 unknown, 2 user, 3 privileged access."""
    return sum(belief << (4 * network.host_names.index(name) + 2) for name, belief in hosts.items())


def left(network: Network, guard: Guard, observation: int) -> set[str]:
    """Unit types that may still be fixed."""
    chances = np.ones(145, np.float32)
    block(chances, guard, Workflow.parse(ORDER).indices(), np.array([observation]))
    assert (chances[:15] == 1).all()  # Sleep, Monitor, Analyse
    assert (chances[28:132] == 1).all()  # decoys
    return {network.unit_types[guard.fixed[action]] for action in np.flatnonzero(chances) if guard.fixed[action] >= 0}


def exported(folder: Path) -> Any:
    """The module of an exported agent."""
    spec = importlib.util.spec_from_file_location("guarded_agent", folder / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_types_before_and_with_the_one_that_looks_due_may_be_fixed(network: Network) -> None:
    guard = make_guard(View(network=network))
    everything = set(network.unit_types)
    assert left(network, guard, 0) == everything
    assert left(network, guard, believed(network, Enterprise2=2)) == {"enterprise"}
    assert left(network, guard, believed(network, User3=3)) == {"enterprise", "user"}
    assert left(network, guard, believed(network, User3=2, Enterprise0=3)) == {"enterprise"}
    assert left(network, guard, believed(network, Op_Host1=2)) == everything  # the last of the order
    assert left(network, guard, believed(network, Enterprise2=1)) == everything  # removed: nobody knows
    assert left(network, guard, believed(network, User0=3)) == everything  # red's foothold never counts
    scans = sum(1 << (4 * host) for host in range(13))
    assert left(network, guard, scans) == everything


@pytest.mark.parametrize("view", [PLAIN, View("short-memory", "host-decoy"), View("small-memory"), View("memory")])
def test_the_network_and_the_compiled_loop_take_away_the_same(view: View) -> None:
    config = make_config("parallel-25", workflow=ORDER, view=view.observation, actions=view.actions, guard=True, seed=3)
    workflows = all_workflows()[::17]
    ppo = ParallelOrderConditionedPPO(config, workflow_codes(workflows))
    found = Collector(games("meander", takeover="40"), 16, 60, Conduct(workflows, view=view), Stream(1)).collect(ppo)
    chances, rows = ppo.probabilities(found.keys), found.inputs.cumulative[: found.n_rows]
    theirs = np.diff(rows, axis=1, prepend=0) / rows[:, -1:]
    assert chances == pytest.approx(theirs, abs=1e-5)
    assert np.array_equal(chances == 0, theirs == 0)
    assert (chances == 0).any()
    with torch.no_grad():
        free = torch.softmax(ppo.net.actor(ppo._inputs(found.keys)), -1).numpy()
    assert (free > 0).all()


def test_a_general_policy_has_nothing_to_guard() -> None:
    ppo = ParallelOrderConditionedPPO(make_config("general", guard=True))
    assert ppo.net.guard is None


def test_a_guarded_policy_is_guarded_wherever_it_goes(tmp_path: Path) -> None:
    """Its file, and the agent that is exported from it, which is asked about the same observations."""
    config = make_config(
        "parallel-25", workflow=ORDER, takeover="30", guard=True, view="short-memory", max_episodes=2, min_episodes=1
    )
    run = Run.create(tmp_path / "run", config, copy_of(load_network()))
    train_workflow(config, run)
    run.close()
    policy = load_policy(tmp_path / "run")
    assert policy.net.guard is not None
    export_agent(tmp_path / "run", tmp_path / "agent")
    module = exported(tmp_path / "agent")
    agent = module.Agent(str(tmp_path / "run" / "policy.safetensors"))  # any policy file, not only the exported one
    assert module.Agent()._guard == agent._guard
    ppo = ParallelOrderConditionedPPO(config, workflow_codes((Workflow.parse(ORDER),)), policy.net)
    conduct = Conduct((Workflow.parse(ORDER),), view=policy.view)
    keys = Collector(games("bline", takeover="30"), 5, 40, conduct)
    seen = keys.collect(ppo).keys
    blocked = 0
    for key in seen[:: max(1, len(seen) // 40)]:
        inputs = np.array([key[0] >> bit & 1 for bit in range(52)] + [key[1] >> bit & 1 for bit in range(13)], float)
        theirs = agent._probabilities(inputs.astype(np.float32))
        ours = ppo.probabilities(key[None])[0]
        assert theirs == pytest.approx(ours, abs=1e-6)
        assert np.array_equal(theirs == 0, ours == 0)
        blocked += int((ours == 0).sum())
    assert blocked


def test_with_the_memory_a_false_alarm_on_defender_blocks_nothing(network: Network) -> None:
    defender_first = Workflow.parse("defender,enterprise,user,op_server,op_host").indices()
    for view, left_over in ((View("memory", "full"), 145), (PLAIN, 145 - 24)):  # Remove and Restore of the others
        chances = np.ones(145, np.float32)
        block(chances, make_guard(view), defender_first, np.array([believed(network, Defender=2)]))
        assert chances.sum() == left_over


def test_the_guard_is_off_while_the_expert_is_imitated_and_on_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, Any] = {"n_envs": 120, "hidden": 8, "plan_games": 0, "improve_rounds": 0, "takeover": "0"}
    config = make_config("obedient", **values, imitate_updates=1, max_episodes=1, red_agent="meander")
    training = Training(config, load_network(), teacher=expert_teacher(config, None, lambda _: None))
    learn, seen = training.ppo.update, []

    def watch(*arguments: Any) -> Any:
        seen.append(training.ppo.net.guard)
        return learn(*arguments)

    monkeypatch.setattr(training.ppo, "update", watch)
    with closing(training):
        training.step()
        assert seen == [None]
        assert training.ppo.net.guard is not None


def test_with_the_memory_blue_does_not_wait_while_red_holds_the_operational_server(network: Network) -> None:
    guard = make_guard(View("memory", "full"))

    def allowed(wanted: str, **hosts: int) -> list[str]:
        names = [network.action_name(action) for action in range(network.n_actions)]
        chances = np.zeros(len(names), np.float32)  # as after a softmax that leaves the others no chance
        chances[names.index(wanted)] = 1
        block(chances, guard, Workflow.parse(ORDER).indices(), np.array([believed(network, **hosts)]))
        return [names[action] for action in np.flatnonzero(chances)]

    assert allowed("Sleep", Op_Server0=3) == ["Restore Op_Server0"]
    assert allowed("DecoyTomcat User1", Op_Server0=2, User3=3, User0=3) == ["Restore User3"]
    held = {"Op_Server0": 2, "User3": 3, "Enterprise0": 2, "Enterprise2": 3}
    assert allowed("Sleep", **held) == ["Restore Enterprise0", "Restore Enterprise2"]
    for wanted in ("Restore Enterprise1", "Remove Enterprise0", "Analyse User2"):  # blue may know more than it sees
        assert allowed(wanted, **held) == [wanted]
    assert allowed("Sleep", Op_Server0=1) == ["Sleep"]  # removed: nobody knows
    assert allowed("Sleep", Enterprise2=3) == ["Sleep"]
    assert make_guard(PLAIN).urgent == 0


def test_the_exported_obedient_champion_does_not_wait_either(tmp_path: Path) -> None:
    """The network and the exported agent leave the same actions."""
    order = "user,enterprise,op_server,op_host,defender"
    policy = load_policy(policy_path(CHAMPION, "current", load_network(), workflow=order))
    assert policy.net.guard is not None
    workflows = (Workflow.parse(order),)
    ppo = ParallelOrderConditionedPPO(
        make_config("obedient", workflow=order, takeover="30"), workflow_codes(workflows), policy.net
    )
    collector = Collector(games("bline", takeover="30"), 40, 3, Conduct(workflows, view=policy.view), Stream(5))
    keys = collector.collect(ppo).keys
    export_agent(CHAMPION, tmp_path / "agent", workflow=order)
    agent, urgent = exported(tmp_path / "agent").Agent(), 0
    for key in keys:
        inputs = ppo._inputs(key[None])[0, : policy.view.n_bits].numpy()
        ours, theirs = ppo.probabilities(key[None])[0], agent._probabilities(inputs)
        assert np.array_equal(theirs == 0, ours == 0)
        if int(key[0]) >> 4 * load_network().host_names.index("Op_Server0") + 3 & 1:
            urgent += 1
            assert not policy.net.guard.waits[ours.argmax()]
    assert urgent
