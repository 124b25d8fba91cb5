"""A defender's own playbook: what it repaired while what else was held, and the orders that it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import DATA
from tests.helpers import assert_refused, games, run, run_json
from workflow_rl.defenders.playbook import PURPOSE, Pair, _orders, _pairs, read_playbook
from workflow_rl.defenders.protocol import reference_policy
from workflow_rl.engine.network import RED_AGENTS
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.training.compliance import EPISODE_DTYPE, Compliance, Obedience
from workflow_rl.training.workflow import all_workflows

ORDER = "user,op_server,enterprise,op_host,defender"


def test_pairs_count_what_was_repaired_while_the_other_was_held() -> None:
    """By hand: types 0 to 2; 5 repairs of 0 while 1 was held, 2 of 1 while 0 was, one of 1 with nothing else held."""
    counts = np.zeros((3, 8), int)
    counts[0, 0b011], counts[1, 0b011], counts[1, 0b010] = 5, 2, 1
    found = _pairs(counts, ("a", "b", "c"))
    assert found[0] == Pair("a", "b", 5, 2)
    assert [(pair.times, pair.reversed) for pair in found[1:]] == [(0, 0), (0, 0)]


def test_an_order_is_broken_where_something_of_higher_priority_was_held() -> None:
    """By hand: in game 0 an enterprise host is repaired while a user host is held, in game 1 nothing else is held."""
    types = load_network().unit_types
    enterprise, user = types.index("enterprise"), types.index("user")
    counts = np.zeros((2, 5, 32), int)
    counts[0, enterprise, 1 << enterprise | 1 << user] = 1
    counts[1, enterprise, 1 << enterprise] = 3
    for order, found in _orders(counts, np.array([2, 3]), load_network()).items():
        first = order.split(",").index("enterprise") < order.split(",").index("user")
        assert (found.compliance, found.kept) == ((1.0, 1.0) if first else (0.75, 0.5))
        assert (found.repairs, found.idle_fixes) == (2.0, 0.5)


@pytest.mark.parametrize("takeover", ["0", "30"])
def test_the_figures_of_an_order_are_those_of_compliance(takeover: str) -> None:
    """The same games judged order by order in the other place where repairs are counted."""
    blue, n = reference_policy("reactive-remove", load_network()), 40
    book = read_playbook(blue, games("bline", takeover=takeover), n, seed=3)
    envs = CageVectorEnv(n, max_steps=None, takeover=takeover)
    workflows = all_workflows()[::13]
    seeds = np.random.SeedSequence([3, RED_AGENTS.index("bline"), PURPOSE]).generate_state(n, np.uint64)
    envs.reset(seed=seeds.tolist())
    judges = [Compliance(envs.network, np.stack([workflow.indices()] * n)) for workflow in workflows]
    total = np.zeros(n)
    for _ in range(100):
        _, rewards, _, _, infos = envs.step(blue(envs.packed_observations, np.random.default_rng(0)))
        total += rewards
        for judge in judges:
            judge.update(infos["fixed_unit_type"], infos["repaired_unit_type"], infos["compromised_before"])
    assert book.mean_return == pytest.approx(total.mean())
    for workflow, judge in zip(workflows, judges, strict=True):
        assert judge.episodes.dtype == EPISODE_DTYPE
        assert book.orders[str(workflow)] == Obedience.of(judge.episodes)


def test_the_champion_repairs_enterprise_before_user_and_keeps_the_orders_that_say_so() -> None:
    line, meander = run_json("playbook", "champion", "--episodes", "300")["playbooks"]
    assert line["pairs"][0]["first"] == "enterprise"
    assert line["pairs"][0]["then"] == "user"
    assert (line["pairs"][0]["reversed"], [pair["times"] for pair in line["pairs"][1:]]) == (0, [0] * 9)
    wanted = {str(w) for w in all_workflows() if w.rank("enterprise") < w.rank("user")}
    assert set(line["kept"]) == wanted
    assert len(meander["kept"]) == 120
    shown = run("playbook", "champion", "--episodes", "50", "--red-agent", "bline").stdout
    assert "It keeps 60 of the 120 orders" in shown
    assert "Never both held when one was repaired: defender and enterprise" in shown


def test_any_callable_has_a_playbook_and_bad_input_is_refused() -> None:
    asleep = read_playbook(lambda packed, _: np.zeros(len(packed), int), games("meander", takeover="40"), 5)
    assert (asleep.repairs, asleep.kept) == (0.0, [])
    assert_refused(run("playbook", "nobody"), "unknown policy 'nobody'")
    assert_refused(run("playbook", "expert", "--workflow", ORDER), "it takes no workflow")
    assert_refused(run("playbook", "champion", "--workflow", "user"), "workflow")
    assert_refused(run("playbook", DATA / "universal.safetensors"), "say which one with --workflow")
    assert_refused(run("playbook", "expert", "--red-agent", "green"), "unknown red agent 'green'")
    assert_refused(run("playbook", "expert", "--episodes", "1"), "number of episodes must be from 2")
    assert_refused(run("playbook", "expert", "--takeover", "5-1"), "must start with the smaller number")
