"""One compiled loop for a whole rollout: engine, policy and compliance.

During a rollout the policy is fixed and its inputs are a few bits and a workflow, so inputs repeat. The actor is
evaluated once per distinct input and its distribution is stored in a row for later look-ups. Environments are
independent, so each plays all its steps before the next one starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.bait import Bait, full_action, put_restored
from workflow_rl.engine.bits import wide, word
from workflow_rl.engine.chance import mix, sample
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.state import State, compromised_hosts
from workflow_rl.engine.step import begin_one, step_one
from workflow_rl.envs.inference import begin, remember
from workflow_rl.envs.memory import Memory, write_bits, write_small
from workflow_rl.training.actor import EMPTY, Actor, Guard, Place, block, evaluate_actor, find, room_for, workflow_of
from workflow_rl.training.buffer import Batch, Inputs
from workflow_rl.training.compliance import NO_TYPE, count_fix, due_type, start_episode

GOLDEN = 0x9E3779B97F4A7C15
SCALE = 2.0**-53


class World(NamedTuple):
    """The state that persists between batches, changed in place."""

    states: np.ndarray  # (n_envs,) of state_dtype
    tables: np.ndarray  # (1,) of tables_dtype
    takeovers: np.ndarray  # (n_envs, 3) int32, see begin_one
    generators: np.ndarray  # (n_envs,) uint64: the policy's random numbers
    memories: np.ndarray  # (n_envs,) MEMORY_DTYPE; (1,) and unused if the view has not the whole memory
    episodes: np.ndarray  # (n_envs,) EPISODE_DTYPE: running counts


class Found(NamedTuple):
    """The outputs of a rollout."""

    inputs: Inputs
    batch: Batch
    finished: np.ndarray  # (most,) EPISODE_DTYPE, where at most ``most`` episodes can end
    final_keys: np.ndarray  # (most, key_words) int64: key of the input after the last step of each
    violations: np.ndarray  # (n_types, n_types) int64, incremented: repaired type, due type


class Setup(NamedTuple):
    """The parameters of a rollout other than the weights."""

    workflows: np.ndarray  # (n_envs, 2) int32: number in `orders` of the workflow of each environment, now and later
    orders: np.ndarray  # (n_workflows, n_types) int8: unit types, highest priority first
    masks: np.ndarray  # (n_types,) int64: hosts of each unit type
    fixed_type: np.ndarray  # (n_actions,) int8: unit type that an action fixes, -1 for none
    place: Place  # where the parts of a key are
    max_steps: int
    alignment_lambda: float
    potential: bool  # the alignment reward is for changes of the rate, not a penalty for violations
    greedy: bool
    whole: bool  # the whole memory (memory.py) is updated; the input is all of it,
    small: bool  # or a small part of it (write_small)
    short: bool  # the input is the observation and the hosts that blue restored
    host_decoy: bool  # actions are those of the host-decoy view
    bait: Bait  # for these
    taught: bool  # the batch already holds the actions of a teacher
    guarded: bool  # the guard masks fixes that look out of order
    guard: Guard


@compiled
def find_row(inputs: Inputs, key: np.ndarray, n_rows: int) -> int:
    """Row of ``key`` (n_words,); a new key gets row ``n_rows``."""
    slot = find(inputs.slots, inputs.keys, key)
    if inputs.slots[slot] == EMPTY:
        inputs.slots[slot] = n_rows
        for i in range(key.shape[0]):
            inputs.keys[n_rows, i] = key[i]
        return n_rows
    return wide(inputs.slots[slot])


@compiled
def write_key(s: State, memory: Memory, setup: Setup, high: int, key: np.ndarray) -> None:
    """Writes the policy's input as a key: the memory or the observation, and the shifted workflow number ``high``.

    What blue restored is read from the state, where it is as blue would remember it (likewise the decoys it placed).
    """
    if setup.small:
        write_small(memory, key)
    elif setup.whole:
        write_bits(memory, key)
    else:
        for i in range(setup.place.n_words):
            key[i] = s.observation[i] if i < setup.place.observed else 0
        if setup.short:
            put_restored(wide(s.restored), setup.place.restored, key)
    if setup.place.order_word:
        key[setup.place.order_word] = high
    else:
        key[0] |= high


@compiled
def new_row(inputs: Inputs, row: int, actor: Actor, setup: Setup, key: np.ndarray, hidden: np.ndarray) -> None:
    """Evaluates the actor for a new input; stores its most probable action and running sums of the probabilities."""
    line, best = inputs.cumulative[row], 0
    evaluate_actor(actor, key, line, hidden)
    if setup.guarded:
        block(line, setup.guard, setup.orders[workflow_of(key, setup.place)], key)
    for j in range(line.shape[0]):
        if line[j] > line[best]:
            best = j
    inputs.best[row] = best
    total = np.float32(0)
    for j in range(line.shape[0]):
        total += line[j]
        line[j] = total


@compiled
def choose(line: np.ndarray, u: float) -> int:
    """Samples an action by bisection: the first whose running sum exceeds ``u`` times the total."""
    level = np.float32(u * line[line.shape[0] - 1])
    low, high = 0, line.shape[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if line[middle] > level:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def rollout(world: World, actor: Actor, setup: Setup, found: Found) -> tuple[int, int]:
    """Plays one batch with the actor's policy or the teacher's actions.

    Returns the number of distinct inputs and the number of finished episodes.
    """
    inputs, batch, t = found.inputs, found.batch, world.tables[0]
    hidden, key = room_for(actor), np.zeros(inputs.keys.shape[1], np.int64)
    inputs.slots[:] = EMPTY
    n_rows, n_finished = 0, 0
    for i in range(world.states.shape[0]):
        s, episode, memory = world.states[i], world.episodes[i], world.memories[i if setup.whole else 0]
        order = setup.orders[setup.workflows[i, 0]]
        high = wide(setup.workflows[i, 0]) << setup.place.order_bit
        for step in range(batch.rows.shape[1]):
            write_key(s, memory, setup, high, key)
            row = find_row(inputs, key, n_rows)
            if row == n_rows:
                new_row(inputs, row, actor, setup, key, hidden)
                n_rows += 1
            world.generators[i] += word(GOLDEN)
            u = wide(mix(world.generators[i]) >> word(11)) * SCALE
            chosen = wide(inputs.best[row]) if setup.greedy else choose(inputs.cumulative[row], u)
            if setup.taught:
                chosen = wide(batch.actions[i, step])
                inputs.taught[row] = batch.lessons[i, step]
            action = full_action(setup.bait, s.decoys, chosen) if setup.host_decoy else chosen
            due = due_type(order, setup.masks, compromised_hosts(s, t))
            fixed = wide(setup.fixed_type[action])
            batch.rows[i, step], batch.actions[i, step] = row, chosen
            reward = step_one(s, t, action, sample(s)) / 10.0
            repaired = fixed if s.repaired else NO_TYPE
            bonus = count_fix(episode, found.violations, fixed, repaired, due, setup.alignment_lambda, setup.potential)
            episode.total += reward
            episode.alignment += bonus
            batch.rewards[i, step], batch.alignment[i, step] = reward, bonus
            batch.ended[i, step] = s.step == setup.max_steps
            if setup.whole:
                remember(memory, action, s.observation[0])
            if batch.ended[i, step]:
                episode.env = i
                found.finished[n_finished] = episode
                write_key(s, memory, setup, high, found.final_keys[n_finished])
                n_finished += 1
                start_episode(episode)
                begin_one(s, t, world.takeovers[i])
                order = setup.orders[setup.workflows[i, 1]]
                high = wide(setup.workflows[i, 1]) << setup.place.order_bit
                if setup.whole:
                    begin(memory, s.observation[0])
    return n_rows, n_finished


@compiled
def sample_actions(probabilities: np.ndarray, generators: np.ndarray) -> np.ndarray:
    """Samples one action per environment as :func:`rollout` does.

    Changes both arguments in place: ``probabilities`` (n_envs, n_actions) float32 become running sums, ``generators``
    (n_envs,) uint64 advance.
    """
    actions = np.empty(probabilities.shape[0], np.int64)
    for i in range(probabilities.shape[0]):
        total = np.float32(0)
        for j in range(probabilities.shape[1]):
            total += probabilities[i, j]
            probabilities[i, j] = total
        generators[i] += word(GOLDEN)
        actions[i] = choose(probabilities[i], wide(mix(generators[i]) >> word(11)) * SCALE)
    return actions
