"""The small memory: what it tells, that it tells it everywhere alike, and that inputs repeat in it."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers import agent_in, assert_refused, games, run, run_json
from workflow_rl import CageVectorEnv, OrderConditionedActorCritic, UserError
from workflow_rl.config import TrainConfig
from workflow_rl.defenders.export import export_agent
from workflow_rl.engine.bait import full_actions
from workflow_rl.engine.networks.copies import chosen_network
from workflow_rl.envs.inference import remember
from workflow_rl.envs.memory import (
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    FEMITTER,
    FIRST_DECOY,
    MEMORY_DTYPE,
    N_HOSTS,
    N_LINES,
    RESTORE,
    SLEEP,
    SMALL_BITS,
    USER1,
    USER2,
    forget,
    next_line,
    write_small,
)
from workflow_rl.envs.views import View, ViewedEnvs, pack_words, unpack_words
from workflow_rl.presets import command_of, make_config, make_search_config
from workflow_rl.training.actor import workflow_of
from workflow_rl.training.collectors import Collector, Conduct, Stream, workflow_codes
from workflow_rl.training.policy_file import PolicyFile, load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.rollout import sample_actions
from workflow_rl.training.workflow import all_workflows

SMALL = View("small-memory", "host-decoy")
ORDER = "enterprise,op_server,user,op_host,defender"
B_LINE, MEANDER, LINES, ROOTED = 0, 1, 2, 2 + N_LINES  # places in the second word
USER_FULL, USER_BAIT, WAY_FULL, WAY_BAIT, SERVER_FULL, SERVER_BAIT = range(ROOTED + 1, ROOTED + 7)


def scan(host: int) -> int:
    return 1 << 4 * host


def exploit(host: int) -> int:
    return 3 << 4 * host


def decoy(host: int) -> int:
    """Femitter, the one useful decoy of the Windows servers."""
    return FIRST_DECOY + N_HOSTS * FEMITTER + host


def told(*steps: tuple[int, int]) -> tuple[set[int], int]:
    """The bits of the second word after these actions and observations; and B_line's next line."""
    memory, words = np.zeros(1, MEMORY_DTYPE), np.zeros(2, np.int64)
    forget(memory[0])
    for action, observation in steps:
        remember(memory[0], action, observation)
    write_small(memory[0], words)
    assert words[0] == (steps[-1][1] if steps else 0)
    return {bit for bit in range(64) if int(words[1]) >> bit & 1}, int(next_line(memory[0]))


def test_before_the_attack_it_tells_nothing() -> None:
    assert told()[0] == told((SLEEP, 0), (decoy(ENTERPRISE1), 0))[0] == set()


def test_it_tells_who_attacks_and_which_line_b_line_will_execute_next() -> None:
    first, line = told((SLEEP, 0), (SLEEP, scan(USER1)))
    assert (first, line) == ({LINES + 2}, 2)  # too early to know the attacker
    known, line = told((SLEEP, 0), (SLEEP, scan(USER1)), (SLEEP, exploit(USER1)))
    assert (known, line) == ({B_LINE, LINES + 3}, 3)
    other, _ = told((SLEEP, 0), (SLEEP, scan(USER1)), (decoy(ENTERPRISE1), scan(USER2)))
    assert other == {MEANDER}  # no program to follow


def test_it_tells_of_the_hosts_on_b_lines_way_whether_they_were_baited_in_time() -> None:
    start = [(SLEEP, 0), (SLEEP, scan(USER1)), (SLEEP, exploit(USER1))]
    assert told(*start, (decoy(ENTERPRISE1), 0))[0] >= {WAY_FULL}
    assert WAY_FULL not in told(*start, (decoy(ENTERPRISE0), 0))[0]  # not the host that leads on from User1
    early = told(*start, (decoy(ENTERPRISE1), 0), (SLEEP, scan(ENTERPRISE1)))[0]
    assert {WAY_FULL, WAY_BAIT, ROOTED} <= early
    late = told(*start, (SLEEP, 0), (SLEEP, scan(ENTERPRISE1)), (decoy(ENTERPRISE1), 0))[0]
    assert WAY_FULL in late
    assert WAY_BAIT not in late
    assert SERVER_FULL in told(*start, (decoy(ENTERPRISE2), 0))[0]
    cleaned = told(*start, (decoy(ENTERPRISE1), 0), (SLEEP, scan(ENTERPRISE1)), (RESTORE + ENTERPRISE1, 0))[0]
    assert WAY_BAIT in cleaned  # red still believes in the decoy, which is gone
    assert WAY_FULL not in cleaned


def test_a_restore_of_the_user_host_ends_that_red_is_privileged_there() -> None:
    moved_on = [(SLEEP, 0), (SLEEP, scan(USER1)), (SLEEP, exploit(USER1)), (SLEEP, 0), (SLEEP, scan(ENTERPRISE1))]
    assert ROOTED in told(*moved_on)[0]
    assert ROOTED not in told(*moved_on, (RESTORE + USER1, 0))[0]


def test_every_bit_has_its_place_and_keys_and_bits_are_the_same_thing() -> None:
    seen = np.zeros(SMALL.n_bits, bool)
    envs = ViewedEnvs(CageVectorEnv(200, red_agent="bline,meander"), SMALL)
    observations, _ = envs.reset(seed=0)
    generator = np.random.default_rng(0)
    for _ in range(100):
        seen |= observations.astype(bool).any(axis=0)
        keys = SMALL.keys(envs.packed_observations)
        assert np.array_equal(pack_words(observations, SMALL), keys)
        assert np.array_equal(unpack_words(keys, SMALL), observations)
        observations, *_ = envs.step(generator.integers(SMALL.n_actions, size=200))
    assert SMALL.n_bits == SMALL_BITS == 52 + 24
    assert seen[52:54].all()
    assert seen[52 + USER_FULL :].all()
    assert seen[54:].sum() > 15  # random play keeps B_line from the last lines


def test_the_number_of_the_workflow_disturbs_no_bit_of_it() -> None:
    workflows = all_workflows()
    ppo = ParallelOrderConditionedPPO(TrainConfig(device="cpu", view="small-memory"), workflow_codes(workflows))
    conduct = Conduct(workflows, view=View("small-memory"))
    collector = Collector(games("bline"), 120, 30, conduct, Stream(1))
    found = collector.collect(ppo)
    numbers = np.array([workflow_of(key, collector.setup.place) for key in found.keys[found.batch.rows[:, -1]]])
    assert np.array_equal(numbers, np.arange(120))
    bits = unpack_words(found.keys, conduct.view)
    assert np.array_equal(pack_words(bits, conduct.view)[:, 1], found.keys[:, 1])


def test_inputs_repeat_in_it_far_more_often_than_in_the_whole_memory() -> None:
    """This is why it trains in seconds: the fast path works by distinct input."""
    distinct = {}
    for name in ("plain", "small-memory", "memory"):
        view = View(name, "host-decoy")
        config = make_config("general", view=name, actions="host-decoy")
        ppo = ParallelOrderConditionedPPO(config)
        collector = Collector(games("bline"), 200, 100, Conduct(view=view), Stream(1))
        distinct[name] = collector.collect(ppo).n_rows
    assert distinct["plain"] < distinct["small-memory"] < distinct["memory"] / 2


def test_its_settings_come_with_it_and_the_command_of_a_run_repeats_them() -> None:
    plain, small = (make_config("workflow", workflow=ORDER, view=view) for view in ("plain", "small-memory"))
    assert (plain.actions, plain.gamma, plain.entropy) == ("full", 0.99, 0.01)
    assert (small.actions, small.gamma, small.entropy) == ("host-decoy", 0.97, 0.02)
    assert command_of(small) == f"workflow-rl train --workflow {ORDER} --view small-memory"
    other = make_config("workflow", workflow=ORDER, view="small-memory", gamma=0.99, actions="full")
    assert command_of(other).endswith("--gamma 0.99 --view small-memory --actions full")
    incident = make_config("workflow", workflow=ORDER, takeover="30")
    assert command_of(incident) == f"workflow-rl train --workflow {ORDER} --takeover 30"
    assert make_search_config(view="small-memory").train.actions == "host-decoy"


def policy_with_it(path: Path, view: View = SMALL) -> Path:
    """A policy file whose weights make it act in many ways."""
    torch.manual_seed(0)
    net = OrderConditionedActorCritic(view.n_bits, 25, view.n_actions)
    with torch.no_grad():
        for weights in net.actor.parameters():
            weights.mul_(2)
    PolicyFile(net, ORDER, False, "bline", "current", view).save(path)
    return path


@pytest.mark.parametrize("actions", ["full", "host-decoy"])
def test_an_exported_agent_remembers_and_acts_as_the_policy_does(tmp_path: Path, actions: str) -> None:
    view = View("small-memory", actions)
    path = policy_with_it(tmp_path / "policy", view)
    result = export_agent(path, tmp_path / "agent")
    files = ["README.md", "agent.py", "cage2_inference.py", "cage2_memory.py", "network.toml", "policy.safetensors"]
    assert sorted(result["files"]) == files
    for source in (tmp_path / "agent").glob("*.py"):
        ast.parse(source.read_text("utf-8"), feature_version=(3, 7))
        assert "workflow_rl." not in source.read_text("utf-8")
    agent, net = agent_in(tmp_path / "agent").Agent(seed=77), load_policy(path).net
    config = TrainConfig(device="cpu", view="small-memory", actions=actions)
    workflow = next(w for w in all_workflows() if str(w) == ORDER)
    ppo, generators = ParallelOrderConditionedPPO(config, workflow_codes((workflow,)), net), np.array([77], np.uint64)
    for game, red in enumerate(("bline", "meander") * 3):
        envs = ViewedEnvs(CageVectorEnv(1, red_agent=red, max_steps=None), view)
        envs.reset(seed=[game])
        for _ in range(60):
            chosen = sample_actions(ppo.probabilities(view.keys(envs.packed_observations)), generators)
            wanted = full_actions(view.bait, envs.memories, chosen) if actions == "host-decoy" else chosen
            assert agent.get_action(envs.envs.packed_observations[0, 0] >> np.arange(52) & 1, 145) == wanted[0]
            envs.step(chosen)
        agent.end_episode()


def test_another_network_than_cage2_is_refused() -> None:
    envs = CageVectorEnv(1, network=chosen_network(None, "plant"))
    with pytest.raises(UserError, match="the view small-memory with host-decoy actions supports only CAGE Challenge 2"):
        ViewedEnvs(envs, SMALL)


def test_every_command_takes_it(tmp_path: Path) -> None:
    small = ["--view", "small-memory", "--actions", "host-decoy", "--n-envs", "20", "--max-episodes", "3"]
    small += ["--min-episodes", "1", "--n-eval-episodes", "4"]
    trained = run_json("train", "--workflow", ORDER, *small, "--run-dir", tmp_path / "run")
    assert trained["workflow"] == ORDER
    played = run_json("evaluate", tmp_path / "run", "--episodes", "4")
    assert played["obedience"]
    assert len(run_json("watch", tmp_path / "run")["frames"]) == 100
    assert run("export", tmp_path / "run", tmp_path / "agent").returncode == 0
    assert agent_in(tmp_path / "agent").Agent().n_inputs == SMALL_BITS
    words = [
        "--n-workflows",
        "2",
        "--replicates",
        "1",
        "--no-finish",
        "--jobs",
        "1",
        "--run-dir",
        str(tmp_path / "search"),
    ]
    searched = run("search", *small, *words, cwd=tmp_path)
    assert searched.returncode == 0, searched.stderr
    message = "with other views a rule that has one decoy action per host: use --actions host-decoy."
    full = ["--view", "small-memory", "--actions", "full"]
    assert_refused(run("train", *full, "--imitate-updates", "1", cwd=tmp_path), message)
