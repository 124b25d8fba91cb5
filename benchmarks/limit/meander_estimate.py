"""What a defender that sees everything reaches against Meander: an estimate, not the limit itself.

The rules of meander_rules.py are played. That gives a lower bound of the limit, as exact as the games are many; nothing
proves that no play is better. What can be tried is to look one step ahead: in each state other actions are compared by
games that go on by the rules, with the same luck, and one that is clearly ahead is taken. The gain is reported.

The worth of an order of repair is estimated in the same spirit: where the rules would repair a host out of order, a
host of the type that is due is repaired instead. That too is a lower bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from benchmarks.limit.meander_rules import Patience, cheat
from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.engine.bits import has, lowest, wide, word
from workflow_rl.engine.chance import mix, sample, seed_one
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.effects import act_blue
from workflow_rl.engine.network import MEANDER
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.state import State, allocate, compromised_hosts, reset_one, sessions
from workflow_rl.engine.step import step_one
from workflow_rl.engine.tables import Tables, compile_tables
from workflow_rl.envs.blue import cell_of
from workflow_rl.envs.memory import (
    FIRST_DECOY,
    MOST_DECOYS,
    N_HOSTS,
    NOBODY,
    REMOVE,
    RESTORE,
    SLEEP,
    USEFUL,
    USER0,
    USER3,
    USER4,
)
from workflow_rl.training.compliance import due_type, type_masks

TAKEN = ("enterprise", "op_server", "op_host", "user")  # unit types that Meander ever takes
PURPOSE = 10  # of the games, for their seeds
GLANCE, LOOK = 64, 512  # games after which an action is dropped if it is not ahead, and games of a decision
SURE = 2.0  # standard errors by which an action must be ahead, twice, the second time with fresh luck


class Rules(NamedTuple):
    """What the games of an estimate share."""

    tables: np.ndarray
    leaderboard: bool
    patience: Patience


@compiled
def play_on(s: State, t: Tables, first: int, to_go: int, rules: Rules, trial: np.ndarray) -> int:
    """Return, in tenths, of ``first`` and then the rules until the end; changes the state."""
    total, action = wide(0), first
    for left in range(to_go - 1, -1, -1):
        total += step_one(s, t, action, sample(s))
        if left:
            action = cheat(s, t, left, rules.patience, rules.leaderboard, trial)
    return total


@compiled
def candidates(s: State, leaderboard: bool, actions: np.ndarray) -> int:
    """Writes the actions that can matter, Sleep first; returns how many."""
    actions[0], n = SLEEP, 1
    for host in range(N_HOSTS):
        if has(s.traced, host):
            actions[n] = REMOVE + host
            n += 1
        spoils = leaderboard and host in (USER3, USER4) and not has(s.restored, host)
        if host != USER0 and (has(sessions(s), host) or spoils):
            actions[n] = RESTORE + host
            n += 1
        for k in range(MOST_DECOYS):
            decoy = USEFUL[host, k]
            if decoy != NOBODY and not has(s.scanned, host) and not has(s.decoys[host], decoy):
                actions[n] = FIRST_DECOY + N_HOSTS * decoy + host
                n += 1
                break
    return n


@compiled
def look_ahead(
    s: State, t: Tables, usual: int, to_go: int, rules: Rules, luck: int, scratch: np.ndarray, actions: np.ndarray,
    returns: np.ndarray,
) -> int:  # fmt: skip
    """The action that is clearly better than the ``usual`` one if the rules go on after it; else the usual one.

    ``returns`` (2, 2 * LOOK) is overwritten: of the usual action and of another, in the same games.
    """
    best, gain = usual, 0.0
    n = candidates(s, rules.leaderboard, actions)
    for choice in range(-1, n):
        row, action = (0, usual) if choice < 0 else (1, actions[choice])
        if choice >= 0 and action == usual:
            continue
        ahead, mean = True, 0.0
        for first, last, sure in ((0, GLANCE, 0.0), (GLANCE, LOOK, SURE), (LOOK, 2 * LOOK, SURE)):
            for i in range(first, last):
                scratch[0] = s
                seed_one(scratch[0], luck + word(i))
                returns[row, i] = play_on(scratch[0], t, action, to_go, rules, scratch[1:])
            more = returns[1, first:last] - returns[0, first:last]
            mean = more.mean()
            if row == 1 and mean <= sure * more.std() / np.sqrt(last - first):
                ahead = False
                break
        if row == 1 and ahead and mean > gain:
            best, gain = action, mean
    return best


@compiled
def obey(s: State, t: Tables, action: int, order: np.ndarray, masks: np.ndarray, trial: np.ndarray) -> int:
    """The action, or instead of a violation of the order a repair of the type that is due."""
    held = compromised_hosts(s, t)
    trial[0] = s
    act_blue(trial[0], t, action)
    gone = held & ~compromised_hosts(trial[0], t)
    due = due_type(order, masks, held)
    if not gone or gone & masks[due]:
        return action
    host = lowest(wide(held & masks[due]))
    return REMOVE + host if has(s.traced, host) else RESTORE + host


@compiled
def play(
    seeds: np.ndarray, n_steps: int, rules: Rules, order: np.ndarray, masks: np.ndarray, ahead: bool,
    scratch: np.ndarray, actions: np.ndarray, samples: np.ndarray, returns: np.ndarray,
) -> int:  # fmt: skip
    """Plays a game of each seed by the rules, looking one step ahead if asked; returns how many steps that changed.

    An ``order`` (unit types, highest priority first; may be empty) is kept.
    """
    s, t, changes = scratch[0], rules.tables[0], 0
    for i in range(seeds.shape[0]):
        s.red = MEANDER
        seed_one(s, seeds[i])
        reset_one(s, t)
        total = wide(0)
        for to_go in range(n_steps, 0, -1):
            action = wide(cheat(s, t, to_go, rules.patience, rules.leaderboard, scratch[1:]))
            if order.shape[0]:
                action = wide(obey(s, t, action, order, masks, scratch[1:]))
            if ahead:
                luck = mix(seeds[i] ^ word(to_go))
                other = wide(look_ahead(s, t, action, to_go, rules, luck, scratch[2:], actions, samples))
                changes += other != action
                action = other
            total += step_one(s, t, action, sample(s))
        returns[i] = total / 10
    return changes


def returns_of(
    rules: Rules, n_steps: int, games: int, seed: int, ahead: bool = False, order: Sequence[int] = ()
) -> tuple[np.ndarray, int]:
    """Returns (games,) in games of ``n_steps``, and how many steps looking ahead has changed."""
    masks = type_masks(load_network())
    seeds = np.random.SeedSequence([seed, PURPOSE, n_steps]).generate_state(games, np.uint64)
    returns, samples, actions = np.empty(games), np.zeros((2, 2 * LOOK)), np.zeros(3 * N_HOSTS + 1, np.int64)
    changes = play(
        seeds, n_steps, rules, np.array(order, np.int64), masks, ahead, allocate(4), actions, samples, returns
    )
    return returns, changes


def meander_estimate(
    edition: str = "current",
    games: int = 20_000,
    seed: int = 0,
    lengths: Sequence[int] = CHALLENGE_LENGTHS,
    ahead_games: int = 100,
    ahead_length: int = 50,
    order_games: int = 5_000,
) -> dict[str, Any]:
    """An estimate of the limit of defence against Meander: what the cheating rules reach, and whether more was found.

    Args:
        edition: the rules of the game.
        games: how many of each length.
        seed: of the games.
        lengths: of the games; each is played on its own, for the defender knows when it ends.
        ahead_games: games in which it also looks one step ahead; 0: none.
        ahead_length: their length.
        order_games: games of each length in which each order is kept; 0: none.

    Returns:
        ``cells`` by length: mean and standard error; ``ahead``: what looking ahead gained in the same games;
        ``orders``: cells of every order of the types that red takes.
    """
    began = time.perf_counter()
    rules = Rules(compile_tables(load_network(), edition), edition == "leaderboard", Patience())
    cells = {}
    for length in lengths:
        cell = cell_of(returns_of(rules, length, games, seed)[0])
        cells[str(length)] = {"mean": cell.mean, "standard_error": cell.standard_error, "games": games}
    result = {"edition": edition, "kind": "estimate", "games": games, "seed": seed, "cells": cells}
    if ahead_games:
        result["ahead"] = _gain(rules, ahead_length, ahead_games, seed)
    if order_games:
        result["orders"] = _orders(rules, lengths, order_games, seed)
    return result | {"seconds": time.perf_counter() - began}


def _orders(rules: Rules, lengths: Sequence[int], games: int, seed: int) -> dict[str, dict[str, Any]]:
    """What the rules reach if they keep each order, in the same games."""
    types, found = load_network().unit_types, {}
    taken = [number for number, name in enumerate(types) if name in TAKEN]
    for order in permutations(taken):
        cells = {str(n): cell_of(returns_of(rules, n, games, seed, order=order)[0]) for n in lengths}
        found[",".join(types[kind] for kind in order)] = {
            n: {"mean": cell.mean, "standard_error": cell.standard_error, "games": games} for n, cell in cells.items()
        }
    return found


def _gain(rules: Rules, length: int, games: int, seed: int) -> dict[str, Any]:
    usual, _ = returns_of(rules, length, games, seed)
    other, changes = returns_of(rules, length, games, seed, ahead=True)
    cell = cell_of(other - usual)
    return {
        "length": length,
        "games": games,
        "changed_steps": changes / (games * length),
        "gain": cell.mean,
        "standard_error": cell.standard_error,
    }
