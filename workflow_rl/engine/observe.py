"""From connection records to what blue sees: the activity of each host and the remembered column.

Each host has four bits, `activity` (two) and `compromised` (two):

    activity      None 00, Scan 10, Exploit 11            this step only
    compromised   No 00, Unknown 10, User 01, Privileged 11    remembered; a belief, not the truth

Bit k of host h is bit 4 * h + k of the packed observation and number 4 * h + k of the unpacked one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workflow_rl.engine.bits import count, lowest, wide
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import BITS_PER_HOST, COPIES, DECOYS, HOSTS_PER_WORD
from workflow_rl.engine.state import NOBODY, State
from workflow_rl.engine.tables import Tables

ACTIVITY_NONE, ACTIVITY_SCAN, ACTIVITY_EXPLOIT = 0b00, 0b01, 0b11  # the first of the two bits is the low one
BELIEF_NO, BELIEF_UNKNOWN, BELIEF_USER, BELIEF_PRIVILEGED = 0b0000, 0b0100, 0b1000, 0b1100
# the same for all hosts of a word, the sign bit included
BELIEFS = sum(BELIEF_PRIVILEGED << (BITS_PER_HOST * host) for host in range(HOSTS_PER_WORD)) - (1 << 64)
BELIEFS_UNKNOWN = sum(BELIEF_UNKNOWN << (BITS_PER_HOST * host) for host in range(HOSTS_PER_WORD))
MANY = 3  # records or ports that make a pattern


class Records(NamedTuple):
    """Connection records that one agent left on one host in one step (``host`` NOBODY: none)."""

    host: int
    number: int
    ports: int  # set of local ports
    shell: int  # 1 if one of them is a new shell, which has a local port of its own


@compiled
def records_on(host: int, number: int, ports: int, shell: int) -> Records:
    """Records with all fields widened to 64 bits, so that their type is always the same."""
    return Records(wide(host), wide(number), wide(ports), wide(shell))


@compiled
def no_records() -> Records:
    """No record."""
    return records_on(NOBODY, 0, 0, 0)


@compiled
def keeps_copies(s: State) -> bool:
    """Does this record know second copies of decoys? Known when compiled; a small one is never given such networks."""
    return s.picked.shape[0] > 1


@compiled
def without_copies(s: State, decoys: int) -> int:
    """A set of decoys without the marks of second copies."""
    return decoys & DECOYS if keeps_copies(s) else decoys


@compiled
def listening_ports(s: State, t: Tables, host: int) -> int:
    """Ports on which somebody listens, decoys included."""
    return t.genuine_ports[host] | t.decoy_ports[without_copies(s, s.decoys[host])]


@compiled
def scan_records(s: State, t: Tables, host: int) -> Records:
    """The records of a scan: one per listening socket; more than two copies of a decoy show nothing new."""
    decoys = wide(s.decoys[host]) & COPIES if keeps_copies(s) else wide(s.decoys[host])
    return records_on(host, t.genuine_sockets[host] + count(decoys), listening_ports(s, t, host), 0)


@compiled
def judge(number: int, different_ports: int, shell: int, decoy_placed: bool) -> int:
    """Activity of a host from its records of this step, at least one."""
    if decoy_placed:
        number += 1
    if number >= MANY and different_ports >= MANY:
        return ACTIVITY_SCAN
    if shell or (number >= MANY and different_ports == 1):
        return ACTIVITY_EXPLOIT
    return ACTIVITY_NONE if decoy_placed else ACTIVITY_SCAN


@compiled
def word_of(s: State, host: int) -> int:
    """Which word of the observation holds the bits of ``host``."""
    return host // HOSTS_PER_WORD if s.observation.shape[0] > 1 else 0


@compiled
def place_of(s: State, host: int) -> int:
    """Where in its word the bits of ``host`` begin."""
    return BITS_PER_HOST * (host % HOSTS_PER_WORD if s.observation.shape[0] > 1 else host)


@compiled
def believe(s: State, host: int, belief: int) -> None:
    """Sets the remembered column of ``host`` to ``belief``."""
    i, at = word_of(s, host), place_of(s, host)
    s.observation[i] = (s.observation[i] & ~(BELIEF_PRIVILEGED << at)) | (belief << at)


@compiled
def show(s: State, records: Records, decoy_host: int) -> None:
    """Adds the activity that ``records`` reveal; an Exploit is remembered as User."""
    if records.host == NOBODY:
        return
    activity = judge(records.number, count(records.ports) + records.shell, records.shell, records.host == decoy_host)
    if activity == ACTIVITY_EXPLOIT:
        believe(s, records.host, BELIEF_USER)
    s.observation[word_of(s, records.host)] |= activity << place_of(s, records.host)


@compiled
def show_both(s: State, green: Records, red: Records, decoy_host: int) -> None:
    """Records of green and red on one host in one step are judged together."""
    if green.host == red.host and green.host != NOBODY:
        show(s, Records(red.host, green.number + red.number, green.ports | red.ports, red.shell), decoy_host)
    else:
        show(s, green, decoy_host)
        show(s, red, decoy_host)


@compiled
def unpack(words: np.ndarray, out: np.ndarray) -> None:
    """Writes the bits of a packed observation as zeros and ones, lowest first."""
    for i in range(words.shape[0]):
        mask = words[i]
        first = 64 * i
        for bit in range(min(64, out.shape[0] - first)):
            out[first + bit] = (mask >> bit) & 1


def unpacked(words: np.ndarray, n_bits: int) -> np.ndarray:
    """Packed observations (n, n_words) as zeros and ones; (n, n_bits) int64."""
    bits = np.arange(n_bits)
    seen: np.ndarray = words[:, bits >> 6] >> (bits & 63) & 1
    return seen


def by_host(words: np.ndarray, n_hosts: int) -> np.ndarray:
    """The four bits of each host in packed observations (n, n_words), as a number; (n, n_hosts) int64."""
    hosts = np.arange(n_hosts)
    shifted: np.ndarray = words[:, hosts // HOSTS_PER_WORD] >> BITS_PER_HOST * (hosts % HOSTS_PER_WORD)
    return shifted & ((1 << BITS_PER_HOST) - 1)


@compiled
def unpack_set(mask: int, out: np.ndarray) -> None:
    """Writes the members of a set as ones, the others as zeros."""
    for bit in range(out.shape[0]):
        out[bit] = (mask >> bit) & 1


@compiled
def levels(s: State, out: np.ndarray) -> None:
    """Writes red's true level on each host: 0 none, 1 user, 2 privileged."""
    privileged, user = wide(s.privileged), wide(s.traced | s.untraced)
    for host in range(out.shape[0]):
        out[host] = 2 * ((privileged >> host) & 1) + ((user >> host) & 1)


@compiled
def all_levels(states: np.ndarray, out: np.ndarray) -> None:
    """The same for all environments; (n_envs, n_hosts)."""
    for i in range(states.shape[0]):
        levels(states[i], out[i])


@compiled
def revealed_host(t: Tables, user: int) -> int:
    """The host that a program goes to from its user host."""
    return NOBODY if user == NOBODY else lowest(t.reveals[user])
