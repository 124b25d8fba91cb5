"""Policy inputs as hashable keys, the actor's forward pass on one key, and the guard that masks out-of-order fixes.

A key is a few 64-bit words: the packed observation, what blue remembers (memory.py), and the number of the workflow
where :attr:`workflow_rl.envs.views.View.order_place` says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.bits import lowest, wide, word
from workflow_rl.engine.chance import mix
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import BITS_PER_HOST, HOSTS_PER_WORD
from workflow_rl.engine.network_file import as_network
from workflow_rl.engine.tables import fixed_unit_types
from workflow_rl.envs.memory import ANY_HOST, WORD
from workflow_rl.envs.views import View, all_actions, pack_words, unpack_words
from workflow_rl.runs import Json
from workflow_rl.training.compliance import NO_TYPE, due_type, type_masks

EMPTY = -1  # a free slot of a hash table
NO_HOST = -1
LEAST = np.float32(1e-30)  # probability of an action that must not vanish
ACCESS_BIT = 3  # bit of a host's four observation bits that is set if blue believes that red has access


class Place(NamedTuple):
    """Where the parts of a key are."""

    n_words: int  # that hold bits of the input
    first: int  # number of them in word 0
    mask: int  # these bits
    order_word: int  # the number of the workflow
    order_bit: int
    observed: int  # words of the observation alone
    restored: int  # bit where the restored hosts of a short memory begin


class Actor(NamedTuple):
    """The actor's weights for compiled code, transposed so that inputs come first."""

    first: np.ndarray  # (n_bits, hidden)
    order_bias: np.ndarray  # (n_workflows, hidden): bias of the first layer plus the contribution of the workflow code
    second: np.ndarray  # (hidden, hidden)
    second_bias: np.ndarray
    third: np.ndarray  # (hidden, n_actions)
    third_bias: np.ndarray
    place: Place


def place_of(view: View) -> Place:
    """Where the parts of the keys of a view are."""
    mask = -1 if view.first == WORD else (1 << view.first) - 1
    return Place(view.n_words, view.first, mask, *view.order_place, -(-view.observed // WORD), view.restored_at)


@compiled
def workflow_of(key: np.ndarray, place: Place) -> int:
    """Number of the workflow in a key."""
    number: int = wide(key[place.order_word] >> place.order_bit)
    return number


@compiled
def find(slots: np.ndarray, keys: np.ndarray, key: np.ndarray) -> int:
    """Slot of ``key`` (n_words,) in a hash table of rows of ``keys``, or the free slot where it belongs."""
    mask = slots.shape[0] - 1
    scattered = mix(word(key[0]))
    for i in range(1, key.shape[0]):
        scattered = mix(scattered ^ word(key[i]))
    slot: int = wide(scattered & word(mask))
    while slots[slot] != EMPTY:
        same = True
        for i in range(key.shape[0]):
            same = same and keys[slots[slot], i] == key[i]
        if same:
            break
        slot = (slot + 1) & mask
    return slot


def unpack_inputs(keys: np.ndarray, view: View, codes: np.ndarray) -> np.ndarray:
    """Inputs of the actor-critic from keys (n, key_words); (n, n_bits + n_code) float32."""
    if not codes.shape[1]:
        return unpack_words(keys, view)
    word, bit = view.order_place
    return np.concatenate([unpack_words(keys, view), codes[keys[:, word] >> bit].astype(np.float32)], axis=1)


@compiled
def room_for(actor: Actor) -> np.ndarray:
    """Room in which :func:`evaluate_actor` works; (2, hidden)."""
    return np.empty((2, actor.second.shape[0]), np.float32)


@compiled
def evaluate_actor(actor: Actor, key: np.ndarray, probabilities: np.ndarray, hidden: np.ndarray) -> None:
    """Writes the action probabilities (n_actions,) of one input; ``hidden`` (2, hidden) is scratch space."""
    a, b = hidden[0], hidden[1]
    place, workflow = actor.place, workflow_of(key, actor.place)
    for j in range(a.shape[0]):
        a[j] = actor.order_bias[workflow, j]
    for i in range(place.n_words):
        bits = key[i] if i else key[i] & place.mask
        first = place.first + WORD * (i - 1) if i else 0
        while bits:
            bit = first + lowest(bits)
            bits &= bits - 1
            for j in range(a.shape[0]):
                a[j] += actor.first[bit, j]
    for j in range(a.shape[0]):
        a[j] = np.tanh(a[j])
        b[j] = actor.second_bias[j]
    for k in range(a.shape[0]):
        for j in range(b.shape[0]):
            b[j] += a[k] * actor.second[k, j]
    for j in range(probabilities.shape[0]):
        probabilities[j] = actor.third_bias[j]
    for k in range(b.shape[0]):
        value = np.float32(np.tanh(b[k]))
        for j in range(probabilities.shape[0]):
            probabilities[j] += value * actor.third[k, j]
    top = probabilities[0]
    for j in range(probabilities.shape[0]):
        top = max(top, probabilities[j])
    total = np.float32(0)
    for j in range(probabilities.shape[0]):
        probabilities[j] = np.exp(probabilities[j] - top)
        total += probabilities[j]
    for j in range(probabilities.shape[0]):
        probabilities[j] /= total


class Guard(NamedTuple):
    """Masks fixes that are out of order according to the observation, both in training and in play.

    A host looks compromised if blue believes that red has user or privileged access to it. Violations that the
    observation does not reveal are left to the policy and the penalty. Where the policy would
    wait although an urgent host looks compromised, it must restore a host of the due type that looks compromised.
    """

    masks: np.ndarray  # (n_types,) int64: hosts of each unit type
    fixed: np.ndarray  # (n_actions,) int8: unit type that each action of the view fixes, NO_TYPE for none
    access: np.ndarray  # (n_words of the observation,) int64: the bits that mark hosts as compromised
    restored: np.ndarray  # (n_actions,) int8: host that each action of the view restores, NO_HOST for none
    waits: np.ndarray  # (n_actions,) bool: neither fixes nor looks
    urgent: int  # set of the hosts that blue must not leave to red


def make_guard(view: View) -> Guard:
    """Builds the guard for the actions of a view.

    With the memory, blue knows which hosts red never holds, and the host whose service must not stop is urgent:
    policies with the memory imitate a teacher and have nothing else to help them in situations that it never met.
    """
    network = as_network(view.network)
    masks = type_masks(network) & (ANY_HOST if view.observation == "memory" else -1)
    bits = np.zeros((1, view.observed))
    bits[:, ACCESS_BIT::BITS_PER_HOST] = 1
    access = pack_words(bits, View(network=network))[0, : -(-view.observed // WORD)]
    actions = all_actions(view)
    parts = [network.action_parts(int(action)) for action in actions]
    restored = [network.host_names.index(host) if verb == "Restore" else NO_HOST for verb, host in parts]
    urgent = 1 << network.host_names.index(network.operational_service.host) if view.observation == "memory" else 0
    waits = np.array([verb not in ("Analyse", "Remove", "Restore") for verb, _ in parts])
    return Guard(masks, fixed_unit_types(network)[actions], access, np.array(restored, np.int8), waits, urgent)


def guard_content(guard: Guard) -> Json:
    """The guard as a policy file keeps it for exported agents: sets of hosts as bits of an observation."""
    return {
        "suspect": [access_bits(int(mask)) for mask in guard.masks],
        "fixed": guard.fixed.tolist(),
        "restored": [access_bits(1 << host) if host != NO_HOST else 0 for host in guard.restored.tolist()],
        "waits": guard.waits.tolist(),
        "urgent": access_bits(guard.urgent),
    }


def access_bits(hosts: int) -> int:
    """The bits of an observation, as one number, that mark the hosts of a set as compromised."""
    return sum(1 << BITS_PER_HOST * host + ACCESS_BIT for host in range(64) if hosts >> host & 1)


@compiled
def suspected(key: np.ndarray, guard: Guard) -> int:
    """Set of the hosts that look compromised."""
    hosts: int = wide(0)
    for i in range(guard.access.shape[0]):
        bits = key[i] & guard.access[i]
        while bits:
            hosts |= 1 << (HOSTS_PER_WORD * i + lowest(bits) // BITS_PER_HOST)
            bits &= bits - 1
    return hosts


@compiled
def block(probabilities: np.ndarray, guard: Guard, order: np.ndarray, key: np.ndarray) -> None:
    """Sets the probabilities (n_actions,) of actions to 0 that the guard masks, by the observation in a key."""
    suspects = suspected(key, guard)
    due = due_type(order, guard.masks, suspects)
    if due == NO_TYPE:
        return
    later = wide(0)  # set of types with lower priority than the one that looks due
    for position in range(order.shape[0]):
        if later or order[position] == due:
            later |= 1 << wide(order[position])
    later &= ~(1 << due)
    for action in range(probabilities.shape[0]):
        fixed = wide(guard.fixed[action])
        if fixed != NO_TYPE and (later >> fixed) & 1:
            probabilities[action] = 0.0
    if suspects & guard.urgent and guard.waits[np.argmax(probabilities)]:
        for action in range(probabilities.shape[0]):
            host = guard.restored[action]
            helps = host != NO_HOST and (suspects & guard.masks[due]) >> wide(host) & 1
            probabilities[action] = max(probabilities[action], LEAST) if helps else 0.0
