"""The games against B_line, distinguished only where it matters to a defender that sees everything.

Such a defender needs no observation, so the remembered column, the malware flags and all that was displayed drop out,
and Analyse and Monitor are as good as Sleep. What is left is numbered: :func:`encode` gives two states the same *key*
only if no play of blue's can make the games that follow differ in reward; :func:`decode` writes a state of a key, on
which the engine itself plays on. Each reduction is exact:

* Red touches its user host, the Enterprise host that it reveals, and the fixed targets of its program, nothing else:
  all other hosts are left out; before the user host is drawn, all that may come to be touched are kept.
* Of the program only the line that comes next counts, and whether the line that looks at an empty scan was executed.
* Decoys of a host are void when no line that scans it can come any more. For a decoy only changes what a scan finds:
  an exploit of its port fails whether it is still there or not.
* What red remembers of a host's ports is void when each way to an exploit of it leads through a new scan that replaces
  it (where scans add to the memory: when no such way is left). A scan that comes back empty replaces nothing, but then
  the host is out of reach, and so it is void as well: red gains a session that opens the way only before a new scan.
* A host never scanned counts as scanned without decoys: no line exploits a host before one has scanned it.
* Pairs (memory, decoys) of a host are merged if they are bisimilar: equal chances of every outcome of an exploit, and
  merged pairs again after a scan, after a Restore and after whatever decoy can be placed (:func:`_merge`).
* Blue's Restore is remembered only where it changes a rule: on the host of the operational service, and where it
  breaks an exploit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from workflow_rl.engine.bits import has, lowest, wide
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.effects import reachable
from workflow_rl.engine.network import FIRST_PROGRAM, SMALL, Network
from workflow_rl.engine.state import FAILED, NOBODY, SUCCEEDED, State, reset_one
from workflow_rl.engine.tables import (
    DRAW_RANGE,
    DRAWN,
    EXPLOIT,
    NO_SERVICE,
    REFUSES,
    REVEALED_BY,
    SCAN,
    Tables,
)

PORT_SETS, DECOY_SETS, LINES = 4096, 256, SMALL.lines
NONE, TRACED, UNTRACED, PRIVILEGED = range(4)  # red's level on a host


class Reduction(NamedTuple):
    """What :func:`encode` and :func:`decode` look up; i counts the hosts that red may touch."""

    hosts: np.ndarray  # (n,) int64
    touched: np.ndarray  # (SMALL.hosts + 1,) int64, by user host, the last: not drawn yet; the set of hosts
    spoiled: int  # hosts on which a Restore changes a rule, as a set
    guard: int  # the line that is not executed after an empty scan, until it was executed once
    origin: np.ndarray  # (LINES, 2) int64: a line before each line, and the result that leads from one to the other
    forgotten: np.ndarray  # (LINES, 2, n) bool, by coming line and whether the guard was executed: memory is void
    idle: np.ndarray  # likewise: decoys are void
    port_rank: np.ndarray  # (n, PORT_SETS) int16
    decoy_rank: np.ndarray  # (n, DECOY_SETS) int16
    kinds: np.ndarray  # (n, port ranks, decoy ranks) int16: the kind of a pair (memory, decoys)
    n_kinds: np.ndarray  # (n,) int64
    kind_ports: np.ndarray  # (n, kinds) int64: a pair of each kind
    kind_decoys: np.ndarray  # (n, kinds) int64


@compiled
def coming_line(s: State, t: Tables) -> int:
    """The line of its program that B_line will execute in the next step."""
    line = t.line_success[s.line] if s.red_success == SUCCEEDED else t.line_failure[s.line]
    if t.line_unless_scanned[line] >= 0 and s.scan_empty and not has(s.lines_done, line):
        line = t.line_unless_scanned[line]
    return wide(line)


@compiled
def target_of(s: State, t: Tables, line: int) -> int:
    """The host that a scan or an exploit of this line goes to; NOBODY: not drawn yet."""
    target = wide(t.line_target[line])
    if target == DRAWN:
        target = wide(s.picked[0])
    elif target == REVEALED_BY:
        target = wide(NOBODY) if s.picked[0] == NOBODY else wide(lowest(t.reveals[s.picked[0]]))
    return target


@compiled
def encode(s: State, t: Tables, r: Reduction) -> int:
    """The key of a state: equal keys, equal games from here on."""
    line = coming_line(s, t)
    done = wide(1 if line == r.guard or has(s.lines_done, r.guard) else 0)
    touched = r.touched[s.picked[0]]  # NOBODY is the last row
    key = wide(((s.picked[0] + 1) * LINES + line) * 4 + done * 2 + s.service_down)
    for i in range(r.hosts.shape[0]):
        host = r.hosts[i]
        digit = wide(0)
        if has(touched, host):
            void = r.forgotten[line, done, i] or (t.scan_forgets and not reachable(s, t, t.subnet[host]))
            ports = t.genuine_ports[host] if void else t.genuine_ports[host] | s.ports[host]
            decoys = 0 if r.idle[line, done, i] else s.decoys[host]
            kind = r.kinds[i, r.port_rank[i, ports], r.decoy_rank[i, decoys]]
            level = PRIVILEGED * has(s.privileged, host) + UNTRACED * has(s.untraced, host) + has(s.traced, host)
            digit = wide((kind * 4 + level) * 2 + (1 if has(s.restored & r.spoiled, host) else 0))
        key = key * (8 * r.n_kinds[i]) + digit
    return key


@compiled
def decode(key: int, s: State, t: Tables, r: Reduction) -> None:
    """Writes a state with this key."""
    reset_one(s, t)
    s.red, s.green_acts, s.rng = FIRST_PROGRAM, 0, 0
    s.addresses, s.subnets = -1, -1  # B_line knows each place when it comes to its line
    for j in range(r.hosts.shape[0]):
        i = r.hosts.shape[0] - 1 - j
        host, radix = r.hosts[i], 8 * r.n_kinds[i]
        digit = key % radix
        key //= radix
        s.ports[host] = r.kind_ports[i, digit >> 3]
        s.decoys[host] = r.kind_decoys[i, digit >> 3]
        level, here = (digit >> 1) & 3, 1 << host
        s.privileged |= here if level == PRIVILEGED else 0
        s.untraced |= here if level == UNTRACED else 0
        s.traced |= here if level == TRACED else 0
        s.restored |= here if digit & 1 else 0
    s.service_down = key & 1
    s.lines_done = 1 << r.guard if key & 2 else 0
    line = (key >> 2) % LINES
    s.line, s.red_success = r.origin[line, 0], r.origin[line, 1]
    s.picked[0] = (key >> 2) // LINES - 1


@compiled
def _encode_all(states: np.ndarray, tables: np.ndarray, r: Reduction, keys: np.ndarray) -> None:
    for i in range(states.shape[0]):
        keys[i] = encode(states[i], tables[0], r)


def keys_of(states: np.ndarray, tables: np.ndarray, r: Reduction) -> np.ndarray:
    """The keys (n,) of states (n,) of games against B_line."""
    keys = np.empty(len(states), np.int64)
    _encode_all(states, tables, r, keys)
    return keys


def reduction(tables: np.ndarray, network: Network) -> Reduction:
    """The reduction for the tables of an edition; ``tables`` may know fewer user hosts than the scenario."""
    row = tables[0]
    users = _members(row["line_from"][1])
    ways = {user: _members(row["reveals"][user])[0] for user in users}
    fixed = {line.target for line in network.red.programs["bline"].program} & set(network.host_names)
    always = {network.host_names.index(name) for name in fixed}
    hosts = sorted({*users, *ways.values(), *always})
    touched = np.zeros(SMALL.hosts + 1, np.int64)
    touched[NOBODY] = _set(hosts)
    for user, way in ways.items():
        touched[user] = _set({user, way, *always})
    broken = [e for e in range(len(network.exploits)) if row["broken_by_restore"][e]]
    spoiled = {int(row["service_host"])} | {h for h in hosts if any(row["outcome"][h, e] for e in broken)}
    role = {**dict.fromkeys(users, DRAWN), **dict.fromkeys(ways.values(), REVEALED_BY)}
    targets = [role.get(host, host) for host in hosts]
    n_lines = len(network.red.programs["bline"].program)
    guard = next(line for line in range(n_lines) if row["line_unless_scanned"][line] >= 0)
    forgotten, idle = _void(row, guard, targets)
    assert all(row["line_success"][line - 1] == line for line in range(1, n_lines))
    assert row["line_failure"][0] == 0
    origin = np.array([(max(line - 1, 0), SUCCEEDED if line else FAILED) for line in range(LINES)])
    merged = [_merge(_pairs(row, network, host)) for host in hosts]
    return Reduction(
        np.array(hosts), touched, _set(spoiled & set(hosts)), guard, origin, forgotten, idle, *_look_up(merged)
    )


def _void(row: Any, guard: int, targets: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Where red's memory of each target, and the decoys there, cannot matter any more: (LINES, 2, n) each."""

    def follow(line: int, done: bool) -> set[tuple[int, bool]]:
        done = done or line == guard
        found = {(int(row[name][line]), done) for name in ("line_success", "line_failure")}
        return found | ({(int(row["line_unless_scanned"][guard]), done)} if (guard, False) in found else set())

    def reach(line: int, done: bool, wanted: int, target: int, ends: bool) -> bool:
        """Can a line that does ``wanted`` with ``target`` come, without a scan of it before if ``ends``?"""
        seen, todo = set(), [(line, done)]
        while todo:
            at = todo.pop()
            here = row["line_target"][at[0]] == target
            if here and row["line_action"][at[0]] == wanted:
                return True
            if at not in seen and not (ends and here and row["line_action"][at[0]] == SCAN):
                todo += follow(*at)
            seen.add(at)
        return False

    forgotten, idle = (np.zeros((LINES, 2, len(targets)), np.bool_) for _ in range(2))
    for line in range(LINES):
        for done in (False, True):
            for i, target in enumerate(targets):
                forgotten[line, int(done), i] = not reach(line, done, EXPLOIT, target, bool(row["scan_forgets"]))
                idle[line, int(done), i] = not reach(line, done, SCAN, target, False)
    return forgotten, idle


Pair = tuple[int, int]
"""Ports of a host that red remembers, and decoys there now, as sets."""


class Pairs(NamedTuple):
    """All pairs that can come about on a host, and what becomes of them."""

    chances: dict[Pair, Hashable]  # of each outcome of an exploit, before and after a Restore
    scanned: dict[Pair, Pair]
    restored: dict[Pair, Pair]
    placed: dict[Pair, set[Pair]]


def _pairs(row: Any, network: Network, host: int) -> Pairs:
    genuine = int(row["genuine_ports"][host])
    needs = [1 << network.ports.index(decoy.needs_free) for decoy in network.decoys]
    pairs, todo = Pairs({}, {}, {}, {}), [(genuine, 0)]
    while todo:
        pair = ports, decoys = todo.pop()
        if pair in pairs.chances:
            continue
        listening = genuine | int(row["decoy_ports"][decoys])
        fitting = [d for d in _members(row["decoys_for_os"][host]) if not needs[d] & listening]
        pairs.chances[pair] = tuple(_chances(row, host, ports, restored) for restored in (False, True))
        pairs.scanned[pair] = (listening if row["scan_forgets"] else ports | listening, decoys)
        pairs.restored[pair] = (ports, 0)
        pairs.placed[pair] = {(ports, decoys | 1 << d) for d in fitting}
        todo += [pairs.scanned[pair], pairs.restored[pair], *pairs.placed[pair]]
    return pairs


def _chances(row: Any, host: int, ports: int, restored: bool) -> Hashable:
    """Chance of each outcome of an exploit of ``host`` when red remembers ``ports``."""
    options = _members(row["options"][ports])
    others = len(options) - 1
    best = Fraction(int(row["best_exploit"]), DRAW_RANGE) if others else Fraction(1)
    chances: dict[int, Fraction] = {}
    for number, exploit in enumerate(options):
        outcome = int(row["outcome"][host, exploit])
        if outcome == REFUSES or (restored and row["broken_by_restore"][exploit]):
            outcome = NO_SERVICE
        chances[outcome] = chances.get(outcome, Fraction(0)) + (best if number == 0 else (1 - best) / others)
    return tuple(sorted(chances.items()))


def _merge(pairs: Pairs) -> dict[Pair, int]:
    """The kind of each pair, by refining a partition until all pairs of a kind go on alike."""
    kinds = _number(list(pairs.chances), lambda pair: pairs.chances[pair])
    while True:

        def goes_on(pair: Pair, kinds: dict[Pair, int] = kinds) -> Hashable:
            placed = frozenset(kinds[other] for other in pairs.placed[pair]) | {kinds[pair]}
            return kinds[pair], kinds[pairs.scanned[pair]], kinds[pairs.restored[pair]], placed

        finer = _number(list(pairs.chances), goes_on)
        if len(set(finer.values())) == len(set(kinds.values())):
            return kinds
        kinds = finer


def _number(pairs: list[Pair], mark: Callable[[Pair], Hashable]) -> dict[Pair, int]:
    """Numbers the pairs by their marks, in the order in which these appear."""
    numbers: dict[Hashable, int] = {}
    return {pair: numbers.setdefault(mark(pair), len(numbers)) for pair in pairs}


def _look_up(merged: list[dict[Pair, int]]) -> tuple[np.ndarray, ...]:
    """The last six fields of a :class:`Reduction`."""
    n, most = len(merged), max(len(kinds) for kinds in merged)
    port_rank, decoy_rank = np.full((n, PORT_SETS), -1, np.int16), np.full((n, DECOY_SETS), -1, np.int16)
    kinds = np.full((n, most, most), -1, np.int16)
    kind_ports, kind_decoys = np.zeros((n, most), np.int64), np.zeros((n, most), np.int64)
    for i, table in enumerate(merged):
        for rank, ports in enumerate(sorted({pair[0] for pair in table})):
            port_rank[i, ports] = rank
        for rank, decoys in enumerate(sorted({pair[1] for pair in table})):
            decoy_rank[i, decoys] = rank
        for (ports, decoys), kind in reversed(table.items()):  # the first of a kind, which has least, stands for it
            kinds[i, port_rank[i, ports], decoy_rank[i, decoys]] = kind
            kind_ports[i, kind], kind_decoys[i, kind] = ports, decoys
    n_kinds = np.array([max(table.values()) + 1 for table in merged])
    return port_rank, decoy_rank, kinds, n_kinds, kind_ports, kind_decoys


def _members(mask: int) -> list[int]:
    return [i for i in range(16) if int(mask) >> i & 1]


def _set(members: Any) -> int:
    return sum(1 << int(member) for member in members)
