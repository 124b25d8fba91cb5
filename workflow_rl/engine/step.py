"""The fixed order of one turn, and the loops over environments. No chance is drawn in :func:`step_one`."""

from __future__ import annotations

import numpy as np

from workflow_rl.engine.bits import wide
from workflow_rl.engine.chance import Chance, sample, seed_one
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.effects import act_blue, attack, escalate, impact, scan, sweep
from workflow_rl.engine.observe import (
    BELIEF_PRIVILEGED,
    BELIEFS,
    Records,
    believe,
    levels,
    no_records,
    show_both,
    unpack,
    unpack_set,
)
from workflow_rl.engine.opponents import choose_red, green_acts
from workflow_rl.engine.state import NO_EXPLOIT, NO_RESULT, NOBODY, UNKNOWN, State, compromised_hosts, reset_one
from workflow_rl.engine.tables import ESCALATE, EXPLOIT, IMPACT, SCAN, SWEEP, Tables

SLEEP = 0  # blue's action


@compiled
def step_one(s: State, t: Tables, action: int, chance: Chance) -> int:
    """Plays one step of one environment in place: blue, green, red, reward, monitor. Deterministic.

    Args:
        s: state, changed in place; ``s.observation`` is what blue sees afterwards.
        t: tables of the network and edition.
        action: blue's action, 0 .. n_actions - 1 (not checked here).
        chance: the draws of this step.

    Returns:
        The reward in tenths, zero or negative.
    """
    host = wide(t.action_host[action])
    for i in range(s.observation.shape[0]):
        s.observation[i] &= BELIEFS
    s.irregular = 0
    held = compromised_hosts(s, t)
    decoy_host = host if act_blue(s, t, action) else NOBODY
    s.repaired = held & ~compromised_hosts(s, t)
    found_malware = s.malware & t.analyses[action] != 0

    green = green_acts(s, t, chance)
    choose_red(s, t, chance)
    red = act_red(s, t, chance)

    show_both(s, green, red, decoy_host)
    if found_malware:
        believe(s, host, BELIEF_PRIVILEGED)
    s.step += 1
    return -(price(s, t) + (t.price_restore if t.restores[action] else 0))


@compiled
def act_red(s: State, t: Tables, chance: Chance) -> Records:
    """Carries out the action that red has chosen."""
    s.exploit, s.exploit_result, s.detected = NO_EXPLOIT, NO_RESULT, -1
    action, target = s.red_action, wide(s.red_target)
    if action == EXPLOIT:
        return attack(s, t, target, chance)
    if action == SCAN:
        return scan(s, t, target)
    if action == ESCALATE:
        escalate(s, t, target)
    elif action == IMPACT:
        impact(s, target)
    elif action == SWEEP:
        sweep(s, t, target)
    else:
        s.red_success = UNKNOWN
    return no_records()


@compiled
def price(s: State, t: Tables) -> int:
    """What the state costs per step, in tenths."""
    held = t.prices[0, s.privileged & 255] + t.prices[1, (s.privileged >> 8) & 255]
    for number in range(2, t.prices.shape[0]):
        held += t.prices[number, (s.privileged >> (8 * number)) & 255]
    return held + (t.price_service_down if s.service_down else 0)


@compiled
def first_bad_action(actions: np.ndarray, n_actions: int) -> int:
    """Index of the first action that does not exist, or -1."""
    for i in range(actions.shape[0]):
        if actions[i] < 0 or actions[i] >= n_actions:
            return i
    return -1


@compiled
def begin_one(s: State, t: Tables, takeover: np.ndarray) -> None:
    """Start of an episode: red plays while blue sleeps, until blue takes over.

    Args:
        s: state, changed in place; steps are counted from the takeover.
        t: tables of the network and edition.
        takeover: (3,) int32: the least and the largest number of steps that red plays before blue takes over; the
            number drawn for this episode is written to the last entry.
    """
    reset_one(s, t)
    steps = wide(takeover[0])
    if takeover[1] > steps:
        steps += (sample(s).pick * (wide(takeover[1]) - steps + 1)) >> 32
    for _ in range(steps):
        step_one(s, t, SLEEP, sample(s))
    s.step = 0
    takeover[2] = steps


@compiled
def reset_envs(
    states: np.ndarray, tables: np.ndarray, takeovers: np.ndarray, chosen: np.ndarray, seeds: np.ndarray, reseed: bool
) -> None:
    """Resets the environments in ``chosen`` (bool, (n_envs,)), with new generators if ``reseed``."""
    for i in range(states.shape[0]):
        if chosen[i]:
            if reseed:
                seed_one(states[i], seeds[i])
            begin_one(states[i], tables[0], takeovers[i])


@compiled
def step_envs_with(
    states: np.ndarray, tables: np.ndarray, actions: np.ndarray, draws: np.ndarray, rewards: np.ndarray
) -> None:
    """Plays one step of every environment with given draws; no end of episode, no reset.

    Args:
        states: (n_envs,) states, changed in place.
        tables: (1,).
        actions: (n_envs,) int64.
        draws: (n_envs, 4) int64, columns as in :class:`~workflow_rl.engine.chance.Draw`.
        rewards: (n_envs,) float64, written.
    """
    for i in range(states.shape[0]):
        chance = Chance(draws[i, 0], draws[i, 1], draws[i, 2], draws[i, 3])
        rewards[i] = step_one(states[i], tables[0], actions[i], chance) / 10.0


@compiled
def step_envs(
    states: np.ndarray,
    tables: np.ndarray,
    takeovers: np.ndarray,
    actions: np.ndarray,
    max_steps: int,
    autoreset: bool,
    observations: np.ndarray,
    rewards: np.ndarray,
    truncated: np.ndarray,
    final_observations: np.ndarray,
    compromised_before: np.ndarray | None,
    red_level: np.ndarray | None,
    repaired: np.ndarray | None,
) -> int:
    """Plays one step of every environment with its own chance, in arrays that the caller provides.

    ``states``, ``tables`` and ``takeovers`` (n_envs, 3) are as in :func:`reset_envs`, ``actions`` (n_envs,) int64. An
    episode ends after ``max_steps`` steps (0: never); with ``autoreset`` the next one starts in the same step.

    Written are ``observations`` (n_envs, 4 * n_hosts) float32, ``rewards`` (n_envs,) float64, ``truncated`` (n_envs,)
    bool: the episode ended with this step, and its last observation in ``final_observations``. Written unless None are
    ``compromised_before`` (n_envs, room) bool: hosts compromised before the step; ``red_level`` (n_envs, room) int8: 0
    none, 1 user, 2 privileged, after the step and before a reset; ``repaired`` (n_envs,): the set of hosts that blue's
    action freed of red.

    Returns the number of episodes that ended, or ``-1 - i``, with nothing played, if action i does not exist.
    """
    t = tables[0]
    bad = first_bad_action(actions, t.n_actions)
    if bad >= 0:
        return -1 - bad
    ended = 0
    for i in range(states.shape[0]):
        s = states[i]
        if compromised_before is not None:
            unpack_set(compromised_hosts(s, t), compromised_before[i])
        rewards[i] = step_one(s, t, actions[i], sample(s)) / 10.0
        if red_level is not None:
            levels(s, red_level[i])
        if repaired is not None:
            repaired[i] = s.repaired
        truncated[i] = s.step == max_steps
        if truncated[i]:
            ended += 1
            if autoreset:
                unpack(s.observation, final_observations[i])
                begin_one(s, t, takeovers[i])
        unpack(s.observation, observations[i])
    return ended
