"""Checks of what users give to environments: names of red agents, actions, options; and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workflow_rl.engine.network import Network
from workflow_rl.errors import UserError, check_choice

OPTIONS = ("red_agent", "takeover")  # options of a reset


def parse_red_agents(red_agent: str | Sequence[str], network: Network) -> tuple[str, ...]:
    """Red agents of the network from a comma-separated list or a sequence of names.

    >>> from workflow_rl.engine.network_file import load_network
    >>> parse_red_agents("bline,meander", load_network())
    ('bline', 'meander')
    """
    known = network.red_agents
    if not isinstance(red_agent, (str, list, tuple)):
        raise UserError(f"red agents must be names, not {red_agent!r}; allowed: {', '.join(known)}.")
    names = [name.strip() for name in red_agent.split(",")] if isinstance(red_agent, str) else list(red_agent)
    if not names:
        raise UserError(f"no red agent given; allowed: {', '.join(known)}, or a comma-separated list of them.")
    return tuple(check_choice("red agent", name, known) for name in names)


def pack_observations(observations: np.ndarray) -> np.ndarray:
    """Observations (n, n_bits) of zeros and ones as 64-bit words, number k in bit k of word 0; (n, n_words) int64."""
    n, n_bits = observations.shape
    words = np.zeros((n, -(-n_bits // 64)), np.int64)
    for first in range(0, n_bits, 64):
        part = observations[:, first : first + 64].astype(np.int64)
        words[:, first // 64] = (part << np.arange(part.shape[1])).sum(axis=1)
    return words


def check_options(options: dict[str, Any], allowed: tuple[str, ...]) -> None:
    """Rejects unknown options of a reset; callers that support ``reset_mask`` remove it first."""
    unknown = set(options) - set(OPTIONS)
    if unknown:
        raise UserError(f"unknown reset option {sorted(unknown, key=str)[0]!r}; allowed: {', '.join(allowed)}.")


def positive_int(what: str, value: object, most: int) -> int:
    """Returns ``value`` if it is an integer from 1 to ``most``."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 1 <= value <= most:
        raise UserError(f"{what} must be a whole number from 1 to {most}, not {value!r}.")
    return int(value)


def check_seed(seed: object) -> int:
    """Returns ``seed`` if it is a valid seed."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise UserError(f"a seed must be a whole number from 0 to 2**64 - 1, not {seed!r}.")
    return int(seed)


def seeds_of(seed: Any, n_envs: int, fresh: np.random.Generator) -> np.ndarray | None:
    """Seeds of the environments, (n_envs,) uint64, or None; a None in a list becomes a random seed from ``fresh``."""
    if seed is None:
        return None
    if not isinstance(seed, (list, tuple, np.ndarray)):
        return np.uint64(check_seed(seed)) + np.arange(n_envs, dtype=np.uint64)
    if len(seed) != n_envs:
        raise UserError(f"{len(seed)} seeds were given for {n_envs} environments.")
    return np.array([fresh.integers(2**63) if one is None else check_seed(one) for one in seed], np.uint64)


def check_reset_mask(mask: Any, n_envs: int) -> np.ndarray:
    """The environments to reset as a mask; None means all."""
    if mask is None:
        return np.ones(n_envs, bool)
    if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (n_envs,) or not mask.any():
        raise UserError(f"reset_mask must be a bool array of shape ({n_envs},) with at least one True.")
    return mask


def check_actions(actions: Any, n_envs: int) -> np.ndarray:
    """Actions as int64; the engine checks their range."""
    try:
        array = np.asarray(actions)
    except ValueError:
        raise UserError(f"actions must have the shape ({n_envs},), not rows of different lengths.") from None
    if array.dtype.kind not in "iu":
        raise UserError(f"actions must be whole numbers, not of type {array.dtype}.")
    if array.shape != (n_envs,):
        raise UserError(f"actions must have the shape ({n_envs},), not {array.shape}.")
    return array.astype(np.int64, copy=False)


def check_single_action(action: Any) -> int:
    """An action from anything that holds one integer."""
    if isinstance(action, int) and not isinstance(action, bool):
        return max(-1, min(action, 2**31))  # the engine rejects both bounds
    array = np.asarray(action)
    if array.dtype.kind not in "iu" or array.size != 1:
        raise UserError(f"an action must be one whole number, not {action!r}.")
    return int(array.reshape(()))


def derive_seeds(seed: int, purpose: tuple[int, ...], number: int) -> np.ndarray:
    """Seeds that share nothing with those of another seed or purpose; (number,) uint64."""
    return np.random.SeedSequence([seed, *purpose]).generate_state(number, np.uint64)
