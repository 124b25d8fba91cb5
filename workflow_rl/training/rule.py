"""A simple rule that defends any network in any order, and the teacher that plays it.

The rule repairs what looks compromised: it restores the host whose unit type comes first in the order, of several the
most valuable one. If nothing looks compromised, it places the next decoy on the most valuable host that lacks one.
With many hosts a policy that first imitates this rule learns in seconds what it does not find by itself in minutes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.bait import Bait, full_action, next_decoy
from workflow_rl.engine.bits import wide
from workflow_rl.engine.chance import sample
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import Network
from workflow_rl.engine.step import begin_one, step_one
from workflow_rl.envs.views import View
from workflow_rl.training.actor import Guard, make_guard, suspected
from workflow_rl.training.compliance import NO_TYPE, due_type
from workflow_rl.training.rollout import Setup, World

NOTHING = 0  # the action without a target


class Rule(NamedTuple):
    """The data of the rule for one network; actions are those of the host-decoy view."""

    hosts: np.ndarray  # (n_hosts,) int64: the most valuable first
    restores: np.ndarray  # (n_hosts,) int64: the action that restores each host, or Remove where blue has no Restore
    places: np.ndarray  # (n_hosts,) int64: the action that places the next decoy on it
    guard: Guard
    bait: Bait


def make_rule(network: Network) -> Rule:
    """The rule for a network."""
    view = View("plain", "host-decoy", network)
    full = view.bait.full.tolist()
    verb = next((verb for verb in ("Restore", "Remove") if verb in network.blue.host_actions), None)
    repairs = [full.index(network.action_index(verb, name)) if verb else NOTHING for name in network.host_names]
    return Rule(
        hosts=np.argsort([-host.value for host in network.hosts], kind="stable").astype(np.int64),
        restores=np.array(repairs),
        places=np.array([full.index(-1 - number) for number in range(len(network.hosts))]),
        guard=make_guard(view),
        bait=view.bait,
    )


@compiled
def follow_rule(rule: Rule, order: np.ndarray, observation: np.ndarray, decoys: np.ndarray) -> int:
    """The action of the rule for an order (n_types,), the words of an observation, and the decoys on each host."""
    suspects = suspected(observation, rule.guard)
    due = due_type(order, rule.guard.masks, suspects)
    action: int = NOTHING
    for host in rule.hosts:
        if due != NO_TYPE:
            if (rule.guard.masks[due] & suspects) >> host & 1:
                action = wide(rule.restores[host])
                break
        elif next_decoy(rule.bait, wide(decoys[host]), host) != NOTHING:
            action = wide(rule.places[host])
            break
    return action


@compiled
def play_rule(world: World, setup: Setup, rule: Rule, actions: np.ndarray) -> None:
    """Plays a batch with the rule and writes its actions (n_envs, n_steps)."""
    t = world.tables[0]
    for i in range(actions.shape[0]):
        s, order = world.states[i], setup.orders[setup.workflows[i, 0]]
        for step in range(actions.shape[1]):
            actions[i, step] = follow_rule(rule, order, s.observation, s.decoys)
            step_one(s, t, full_action(rule.bait, s.decoys, wide(actions[i, step])), sample(s))
            if s.step == setup.max_steps:
                begin_one(s, t, world.takeovers[i])
                order = setup.orders[setup.workflows[i, 1]]


@compiled
def follow_all(
    rule: Rule, orders: np.ndarray, observations: np.ndarray, decoys: np.ndarray, actions: np.ndarray
) -> None:
    """Writes the actions (n,) for orders (n, n_types), observations (n, n_words) and decoys (n, n_hosts)."""
    for i in range(len(actions)):
        actions[i] = follow_rule(rule, orders[i], observations[i], decoys[i])


class RuleTeacher:
    """The rule as a :class:`workflow_rl.training.collectors.Teacher`."""

    def __init__(self, network: Network) -> None:
        self.rule = make_rule(network)

    def plan(self, world: World, setup: Setup, actions: np.ndarray, lessons: np.ndarray) -> None:
        """Writes its actions (n_envs, n_steps) for the next batch, which it plays on copies of the states."""
        play_rule(world._replace(states=world.states.copy()), setup, self.rule, actions)
        lessons[:] = actions

    def actions(self, memories: np.ndarray, _view: View, orders: np.ndarray) -> np.ndarray:
        """Its actions (n,) for memories (n,) and orders (n, n_types)."""
        actions = np.empty(len(memories), np.int64)
        observations = memories["observation"].reshape(len(memories), -1)
        follow_all(self.rule, orders, observations, memories["decoys"], actions)
        return actions
