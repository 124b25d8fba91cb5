"""Which decoys help on which host, from the network's data alone; and what blue remembers of those that it placed.

A decoy helps if it fits the clean host and attracts an exploit that no genuine service of the host answers. The next
decoy of a host is the one that attracts the exploit of highest weight, because red prefers that one. One decoy per
exploit is enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import BITS_PER_HOST, DECOY_PREFIX, Decoy, Host, Network

Notes = Any
"""A record of :func:`notes_dtype`, or any other with the fields ``decoys`` and ``restored``; changed in place."""

NOBODY = -1
NO_ACTION = -1
DECOY_VERB = ""  # stands for all decoy verbs among those of the host-decoy actions
WORD = 64


class Bait(NamedTuple):
    """What blue must know to place decoys; sets of decoys have one bit for each."""

    host: np.ndarray  # (n_actions,) int64: host of each action, NOBODY for none
    restores: np.ndarray  # (n_actions,) bool
    places: np.ndarray  # (n_actions,) int64: set of the decoy that the action places; empty if it never fits
    beside: np.ndarray  # (n_actions,) int64: decoys beside which it cannot be placed
    useful: np.ndarray  # (n_hosts, most) int64: actions that place useful decoys, best first, then NO_ACTION
    full: np.ndarray  # (n_host_decoy,) int64: action of each host-decoy action; -1 - host: the host's next decoy


def notes_dtype(network: Network) -> np.dtype:
    """What blue remembers in any network: the last observation, the decoys on each host, and what it restored."""
    words = -(-BITS_PER_HOST * len(network.hosts) // WORD)
    return np.dtype(
        [("observation", np.int64, (words,)), ("decoys", np.int64, (len(network.hosts),)), ("restored", np.int64)]
    )


def bait_of(network: Network) -> Bait:
    """The decoys of a network."""
    names, decoys = network.host_names, {DECOY_PREFIX + decoy.name: decoy for decoy in network.decoys}
    numbers = {verb: number for number, verb in enumerate(decoys)}
    host = np.full(network.n_actions, NOBODY, np.int64)
    restores, places, beside = np.zeros(len(host), bool), np.zeros_like(host), np.zeros_like(host)
    for action in range(network.n_actions):
        verb, name = network.action_parts(action)
        host[action] = names.index(name) if name else NOBODY
        restores[action] = verb == "Restore"
        if verb in decoys and fits(network.hosts[host[action]], decoys[verb]):
            places[action] = 1 << numbers[verb]
            same = [i for i, other in enumerate(network.decoys) if other.opens == decoys[verb].needs_free]
            beside[action] = sum(1 << i for i in same)
    rows = [useful_decoys(network, one) for one in network.hosts]
    useful = np.full((len(rows), max(1, *map(len, rows))), NO_ACTION, np.int64)
    for number, row in enumerate(rows):
        useful[number, : len(row)] = [network.action_index(DECOY_PREFIX + decoy.name, names[number]) for decoy in row]
    return Bait(host, restores, places, beside, useful, np.array(_host_decoy_actions(network), np.int64))


def fits(host: Host, decoy: Decoy) -> bool:
    """Can the decoy be placed on the clean host?"""
    taken = [port for service in host.services for port in service.ports]
    return decoy.os in ("", host.os) and decoy.needs_free not in taken


def useful_decoys(network: Network, host: Host) -> list[Decoy]:
    """The decoys that help on a host, best first."""
    genuine = {(service.type, port) for service in host.services for port in service.ports}
    chosen: list[Decoy] = []
    for exploit in sorted(network.exploits, key=lambda exploit: -exploit.weight):
        answering = [
            decoy
            for decoy in network.decoys
            if (decoy.imitates, decoy.opens) == (exploit.type, exploit.port)
            and DECOY_PREFIX + decoy.name in network.blue.host_actions
            and fits(host, decoy)
        ]
        if (exploit.type, exploit.port) not in genuine and answering and answering[0] not in chosen:
            chosen.append(answering[0])
    return chosen


def _host_decoy_actions(network: Network) -> list[int]:
    """The first action without a target; then Analyse, Remove, a decoy and Restore of each host."""
    own = network.blue.host_actions
    verbs = [verb for verb in ("Analyse", "Remove", DECOY_VERB, "Restore") if verb in (DECOY_VERB, *own)]
    names = network.host_names
    return [0] + [
        network.action_index(verb, name) if verb else -1 - number for verb in verbs for number, name in enumerate(names)
    ]


@compiled
def next_decoy(bait: Bait, there: int, host: int) -> int:
    """The action that places the most useful missing decoy on a host with the decoys ``there``; 0 if none is."""
    for i in range(bait.useful.shape[1]):
        action: int = bait.useful[host, i]
        if action != NO_ACTION and there & (bait.places[action] | bait.beside[action]) == 0:
            return action
    return 0


@compiled
def full_action(bait: Bait, decoys: np.ndarray, action: int) -> int:
    """The action that a host-decoy action stands for, given the set of decoys on each host."""
    full: int = bait.full[action]
    return next_decoy(bait, decoys[-1 - full], -1 - full) if full < 0 else full


@compiled
def note_action(bait: Bait, notes: Notes, action: int) -> None:
    """Records blue's action."""
    host = bait.host[action]
    if bait.restores[action]:
        notes.decoys[host] = 0
        notes.restored |= 1 << host
    elif bait.places[action] and notes.decoys[host] & bait.beside[action] == 0:
        notes.decoys[host] |= bait.places[action]


@compiled
def note_all(bait: Bait, notes: np.ndarray, actions: np.ndarray, observations: np.ndarray) -> None:
    """Records actions (n_envs,) and the packed observations (n_envs, n_words) that followed them."""
    for i in range(len(notes)):
        note_action(bait, notes[i], actions[i])
        for k in range(observations.shape[1]):
            notes[i].observation[k] = observations[i, k]


@compiled
def forget_some(notes: np.ndarray, observations: np.ndarray, chosen: np.ndarray) -> None:
    """Starts episodes in the ``chosen`` environments (n_envs,) bool with first observations (n_envs, n_words)."""
    for i in range(len(notes)):
        if chosen[i]:
            notes[i].restored = 0
            for host in range(notes[i].decoys.shape[0]):
                notes[i].decoys[host] = 0
            for k in range(observations.shape[1]):
                notes[i].observation[k] = observations[i, k]


@compiled
def full_actions(bait: Bait, notes: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """:func:`full_action` of each environment; (n_envs,)."""
    result = np.empty(len(actions), np.int64)
    for i in range(len(actions)):
        result[i] = full_action(bait, notes[i].decoys, actions[i])
    return result


@compiled
def write_restored(restored: np.ndarray, first: int, words: np.ndarray) -> None:
    """Writes sets of restored hosts (n_envs,) into ``words`` (n_envs, n_words), beginning with bit ``first``."""
    for i in range(len(restored)):
        put_restored(restored[i], first, words[i])


@compiled
def put_restored(restored: int, first: int, key: np.ndarray) -> None:
    """Writes the set of restored hosts into a key, beginning with bit ``first``; its bits there must be 0."""
    at = first & (WORD - 1)
    key[first >> 6] |= restored << at
    if at and (first >> 6) + 1 < key.shape[0]:
        key[(first >> 6) + 1] |= (restored >> (WORD - at)) & ((1 << at) - 1)
