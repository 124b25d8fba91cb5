"""The rule that a policy imitates at first where there are many hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers import grown
from tests.test_many_types import collectors
from workflow_rl import UserError
from workflow_rl.config import check_search_config
from workflow_rl.engine.network import BITS_PER_HOST, HOSTS_PER_WORD
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import chosen_network
from workflow_rl.envs.game import Games
from workflow_rl.presets import make_config, make_search_config
from workflow_rl.training.actor import ACCESS_BIT
from workflow_rl.training.collectors import Collector, Conduct, Stream, workflow_codes, workflows_of
from workflow_rl.training.events import StopReason
from workflow_rl.training.ppo import ParallelOrderConditionedPPO
from workflow_rl.training.rollout import World
from workflow_rl.training.rule import RuleTeacher, follow_rule, make_rule
from workflow_rl.training.trainer import Training, train_workflow


def seen(n_hosts: int, *suspects: int) -> np.ndarray:
    """Words of an observation in which these hosts look compromised."""
    words = np.zeros(-(-n_hosts // HOSTS_PER_WORD), np.int64)
    for host in suspects:
        words[host // HOSTS_PER_WORD] |= np.int64(1) << np.int64(BITS_PER_HOST * (host % HOSTS_PER_WORD) + ACCESS_BIT)
    return words


def test_the_rule_restores_the_host_whose_type_comes_first_and_then_the_most_valuable_one() -> None:
    network = chosen_network(None, "plant")
    rule, names, types = make_rule(network), network.host_names, network.unit_types
    mail, orders, reception = (names.index(name) for name in ("mail1", "orders", "reception"))
    none = np.zeros(len(names), np.int64)
    by_type = {host.name: host.unit_type for host in network.hosts}
    for first, second in ((mail, orders), (orders, mail)):
        order = [types.index(by_type[names[host]]) for host in (first, second)]
        order += [number for number in range(len(types)) if number not in order]
        observation = seen(len(names), mail, orders, reception)
        action = follow_rule(rule, np.array(order, np.int8), observation, none)
        assert network.action_parts(int(rule.bait.full[action])) == ("Restore", names[first])


def test_without_a_restore_the_rule_removes_and_without_either_it_only_places_decoys() -> None:
    network = load_network()
    suspect = network.host_names.index("Enterprise0")
    order, none = np.arange(len(network.unit_types), dtype=np.int8), np.zeros(len(network.hosts), np.int64)
    for left_out, verb in ((("Restore",), "Remove"), (("Restore", "Remove"), None)):
        verbs = tuple(own for own in network.blue.host_actions if own not in left_out)
        less = replace(network, blue=replace(network.blue, host_actions=verbs))
        rule = make_rule(less)
        action = follow_rule(rule, order, seen(len(network.hosts), suspect), none)
        assert action == 0 if verb is None else less.action_parts(int(rule.bait.full[action])) == (verb, "Enterprise0")


def test_the_foothold_of_red_is_never_restored_and_a_calm_network_gets_decoys_on_its_most_valuable_host() -> None:
    network = chosen_network(None, "plant")
    rule, names = make_rule(network), network.host_names
    order, none = np.arange(len(network.unit_types), dtype=np.int8), np.zeros(len(names), np.int64)
    useful = [host for host in rule.hosts if (rule.bait.useful[host] >= 0).any()]
    for observation in (seen(len(names)), seen(len(names), names.index(network.red.foothold))):
        action = follow_rule(rule, order, observation, none)
        assert rule.bait.full[action] == -1 - useful[0]
        assert network.hosts[useful[0]].value == max(network.hosts[host].value for host in useful)
    full = np.full(len(names), -1, np.int64)  # every decoy is everywhere
    assert follow_rule(rule, order, seen(len(names)), full) == 0


@pytest.mark.parametrize("size", [None, (14, 5), (40, 8)])
def test_both_ways_of_collecting_play_the_same_rule(size: tuple[int, int] | None) -> None:
    network = grown(*size) if size else load_network()
    config = make_config(
        "workflow", workflow=",".join(reversed(network.unit_types)), n_envs=6, update_steps=50, max_steps=20, seed=3,
        red_agent="meander", view="short-memory", actions="host-decoy", takeover="2-18", hosts=len(network.hosts),
    )  # fmt: skip
    ppo = ParallelOrderConditionedPPO(config, workflow_codes(workflows_of(config, network)), network=network)
    fast, plain = collectors(config, network)
    teacher = RuleTeacher(network)
    for _ in range(2):
        mine, theirs = fast.collect(ppo, teacher), plain.collect(ppo, teacher)
        assert np.array_equal(mine.batch.actions, theirs.batch.actions)
        assert np.array_equal(mine.batch.rewards, theirs.batch.rewards)
        assert (mine.batch.actions > 0).any()


def test_the_teacher_leaves_the_games_as_they_were() -> None:
    network = grown(14, 5)
    config = make_config("general", n_envs=4, update_steps=30, view="short-memory", actions="host-decoy")
    collector = Collector(Games.of(config, network), 4, 30, Conduct.of(config, network), Stream(1))
    before = collector.game.states.copy()
    actions = np.zeros((4, 30), np.int16)
    world = World(
        collector.game.states, collector.game.tables, collector.game.takeovers, collector.generators,
        collector.memories, collector.episodes,
    )  # fmt: skip
    RuleTeacher(network).plan(world, collector.setup, actions, actions.copy())
    assert np.array_equal(before, collector.game.states)
    assert actions.any()


def test_a_policy_that_imitates_the_rule_defends_far_better_than_one_that_does_not() -> None:
    network = chosen_network(None, "plant")
    order = "database,historian,control,mail,file,web,controller,workstation"
    taught = make_config(
        workflow=order, red_agent="meander", hosts=len(network.hosts), n_envs=100, max_episodes=14, min_episodes=1,
        n_eval_episodes=50,
    )  # fmt: skip
    assert taught.imitate_updates == 8
    found = train_workflow(taught, network=network)
    alone = train_workflow(replace(taught, imitate_updates=0), network=network)
    assert found.mean_return > 0.5 * alone.mean_return
    assert found.compliance is not None
    assert found.compliance > 0.9


def test_no_stop_rule_fires_while_the_teacher_plays() -> None:
    network = chosen_network(None, "plant")
    config = make_config(
        workflow=",".join(network.unit_types), red_agent="sleep", hosts=len(network.hosts), n_envs=4, max_steps=10,
        update_steps=10, max_episodes=4, min_episodes=0, imitate_updates=2, patience=1, n_eval_episodes=4,
    )  # fmt: skip
    training = Training(config, network, teacher=RuleTeacher(network))
    reasons: list[StopReason | None] = []
    while not reasons or reasons[-1] is None:
        reasons.append(training.should_stop(training.step()))
    assert reasons[:2] == [None, None]
    assert isinstance(reasons[-1], StopReason)
    assert training.best > -np.inf


def test_what_cannot_be_imitated_is_refused() -> None:
    with pytest.raises(UserError, match="a search cannot imitate the expert"):
        check_search_config(make_search_config(imitate_updates=2, view="memory"))
    with pytest.raises(UserError, match="imitate_updates needs a teacher"):
        train_workflow(make_config("general", imitate_updates=1, view="memory"), network=load_network())
