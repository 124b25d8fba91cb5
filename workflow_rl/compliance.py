"""The one definition of a compliant fix, and the alignment reward that is made from it.

A *fix* is Remove or Restore. A *counted* fix is one taken while at least one host was compromised before the step; it
is *compliant* if the unit type of its target is the one of highest priority among the compromised types. With nothing
compromised it is *preventive*: neither. Per environment and episode

    compliance = compliant / counted          undefined without a counted fix
    rate_t     = compliance so far, 0 before the first counted fix
    alignment reward of a step = alignment_lambda * (rate_t - rate_(t-1))

or, for comparison (``alignment`` per-fix), alignment_lambda for each compliant fix and as much less for each violation.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from workflow_rl.engine.bits import wide
from workflow_rl.engine.compiled import compiled
from workflow_rl.scenario import Scenario

EPISODE_DTYPE = np.dtype(
    [
        ("total", np.float64),  # sum of environment rewards
        ("alignment", np.float64),  # sum of alignment rewards
        ("counted", np.int32),
        ("compliant", np.int32),
        ("preventive", np.int32),
        ("env", np.int32),
    ],
    align=True,
)


Episode: TypeAlias = Any
"""A record of :data:`EPISODE_DTYPE`, as Numba sees it."""

NOT_A_FIX, PREVENTIVE, COMPLIANT, VIOLATION = range(4)
NO_TYPE = -1


def type_masks(scenario: Scenario) -> np.ndarray:
    """Set of hosts of each unit type, without red's foothold, which never counts; shape (n_types,) int64."""
    masks = np.zeros(len(scenario.unit_types), np.int64)
    for index, host in enumerate(scenario.hosts):
        if host.name != scenario.red.foothold:
            masks[scenario.unit_types.index(host.unit_type)] |= 1 << index
    return masks


@compiled
def due_type(order: np.ndarray, masks: np.ndarray, compromised: int) -> int:
    """The compromised unit type of highest priority, or NO_TYPE.

    Args:
        order: unit types, highest priority first; (n_types,).
        masks: hosts of each unit type; (n_types,).
        compromised: set of compromised hosts before the step.
    """
    for position in range(order.shape[0]):
        if masks[order[position]] & compromised:
            return wide(order[position])
    return NO_TYPE


@compiled
def judge_fix(fixed_type: int, due: int) -> int:
    """What kind of fix an action was, from the unit type it fixed (NO_TYPE: none) and the type that was due."""
    if fixed_type == NO_TYPE:
        return NOT_A_FIX
    if due == NO_TYPE:
        return PREVENTIVE
    return COMPLIANT if fixed_type == due else VIOLATION


@compiled
def rate(compliant: int, counted: int) -> float:
    """Compliance so far; 0 before the first counted fix."""
    return compliant / counted if counted > 0 else 0.0


@compiled
def start_episode(episode: Episode) -> None:
    """Clears the running counts of one environment."""
    episode.total, episode.alignment = 0.0, 0.0
    episode.counted, episode.compliant, episode.preventive = 0, 0, 0


@compiled
def count_fix(
    episode: Episode, violations: np.ndarray, kind: int, fixed: int, due: int, strength: float, per_fix: bool
) -> float:
    """Counts a fix in the environment's episode; returns the alignment reward."""
    before = rate(episode.compliant, episode.counted)
    if kind == PREVENTIVE:
        episode.preventive += 1
    elif kind == COMPLIANT:
        episode.compliant += 1
        episode.counted += 1
    elif kind == VIOLATION:
        episode.counted += 1
        violations[fixed, due] += 1
    if per_fix:
        return strength * ((kind == COMPLIANT) - (kind == VIOLATION))
    return strength * (rate(episode.compliant, episode.counted) - before)


@compiled
def count_fixes(
    fixed_type: np.ndarray,
    compromised: np.ndarray,
    orders: np.ndarray,
    masks: np.ndarray,
    episodes: np.ndarray,
    violations: np.ndarray,
    strength: float,
    per_fix: bool,
) -> np.ndarray:
    """Counts the fixes of one step of every environment; returns the alignment rewards, (n_envs,).

    Args:
        fixed_type: unit type that each action fixed, NO_TYPE for none; (n_envs,).
        compromised: set of hosts compromised before the step; (n_envs,).
        orders: unit types of each environment's workflow, highest priority first; (n_envs, n_types).
        masks: hosts of each unit type; (n_types,).
        episodes: running counts, added to; (n_envs,) of EPISODE_DTYPE.
        violations: by fixed and due type, added to; (n_types, n_types).
        strength: ``alignment_lambda``.
        per_fix: reward each fix, not the change of the rate.
    """
    bonus = np.zeros(fixed_type.shape[0])
    for i in range(fixed_type.shape[0]):
        due = due_type(orders[i], masks, compromised[i])
        kind = judge_fix(fixed_type[i], due)
        bonus[i] = count_fix(episodes[i], violations, kind, fixed_type[i], due, strength, per_fix)
    return bonus


class Compliance:
    """Compliance of environments that are stepped one by one through the Gymnasium API.

    Args:
        scenario: names and numbers of the challenge.
        orders: workflow of each environment, unit types as numbers, highest priority first; (n_envs, n_types).
        alignment_lambda: strength of the alignment reward.
        per_fix: reward each fix, not the change of the rate.
    """

    def __init__(self, scenario: Scenario, orders: np.ndarray, alignment_lambda: float, per_fix: bool = False) -> None:
        self.per_fix = per_fix
        self.masks, self.orders, self.alignment_lambda = type_masks(scenario), orders, alignment_lambda
        n_types = len(scenario.unit_types)
        self.hosts = 1 << np.arange(len(scenario.hosts))
        self.episodes = np.zeros(len(orders), EPISODE_DTYPE)
        self.violations = np.zeros((n_types, n_types), np.int64)

    def update(self, fixed_type: np.ndarray, compromised_before: np.ndarray) -> np.ndarray:
        """Counts the fixes of one step; returns the alignment reward of each environment.

        Args:
            fixed_type: unit type that each action fixed, -1 for none; (n_envs,).
            compromised_before: hosts compromised before the step; (n_envs, n_hosts) bool.
        """
        compromised, fixed = compromised_before @ self.hosts, fixed_type.astype(np.int64)
        return count_fixes(
            fixed, compromised, self.orders, self.masks, self.episodes, self.violations, float(self.alignment_lambda),
            self.per_fix,
        )  # fmt: skip

    def rates(self) -> np.ndarray:
        """Compliance of each environment's episode so far; nan where it is undefined; (n_envs,)."""
        counted, compliant = self.episodes["counted"], self.episodes["compliant"]
        return np.where(counted > 0, compliant / np.maximum(counted, 1), np.nan)

    def start_episodes(self, ended: np.ndarray) -> None:
        """Forgets the counts of environments whose episode ended; (n_envs,) bool."""
        self.episodes[ended] = np.zeros(1, EPISODE_DTYPE)
