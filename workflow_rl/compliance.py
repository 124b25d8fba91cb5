"""The one definition of a compliant fix, and the alignment reward that is made from it.

A *fix* is Remove or Restore. A *counted* fix is one taken while at least one host was compromised before the step; it
is *compliant* if the unit type of its target is the one of highest priority among the compromised types. With nothing
compromised it is *preventive*: neither. Per environment and episode

    compliance = compliant / counted          undefined without a counted fix
    rate_t     = compliance so far, 0 before the first counted fix
    alignment reward of a step = alignment_lambda * (rate_t - rate_(t-1))
"""

from __future__ import annotations

import numpy as np

from workflow_rl.engine.bits import wide
from workflow_rl.engine.compiled import compiled
from workflow_rl.scenario import Scenario

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
def count_fixes(
    fixed_type: np.ndarray,
    compromised: np.ndarray,
    orders: np.ndarray,
    masks: np.ndarray,
    counts: np.ndarray,
    violations: np.ndarray,
) -> np.ndarray:
    """Counts the fixes of one step of every environment; returns how much each rate has changed, (n_envs,).

    Args:
        fixed_type: unit type that each action fixed, NO_TYPE for none; (n_envs,).
        compromised: set of hosts compromised before the step; (n_envs,).
        orders: unit types of each environment's workflow, highest priority first; (n_envs, n_types).
        masks: hosts of each unit type; (n_types,).
        counts: counted, compliant and preventive fixes, added to; (3, n_envs).
        violations: by fixed and due type, added to; (n_types, n_types).
    """
    change = np.zeros(fixed_type.shape[0])
    counted, compliant, preventive = counts[0], counts[1], counts[2]
    for i in range(fixed_type.shape[0]):
        due = due_type(orders[i], masks, compromised[i])
        kind = judge_fix(fixed_type[i], due)
        before = rate(compliant[i], counted[i])
        if kind == PREVENTIVE:
            preventive[i] += 1
        elif kind == COMPLIANT:
            compliant[i] += 1
            counted[i] += 1
        elif kind == VIOLATION:
            counted[i] += 1
            violations[fixed_type[i], due] += 1
        change[i] = rate(compliant[i], counted[i]) - before
    return change


class Compliance:
    """Compliance of environments that are stepped one by one through the Gymnasium API.

    Args:
        scenario: names and numbers of the challenge.
        orders: workflow of each environment, unit types as numbers, highest priority first; (n_envs, n_types).
        alignment_lambda: strength of the alignment reward.
    """

    def __init__(self, scenario: Scenario, orders: np.ndarray, alignment_lambda: float) -> None:
        self.masks, self.orders, self.alignment_lambda = type_masks(scenario), orders, alignment_lambda
        n_types = len(scenario.unit_types)
        self.hosts = 1 << np.arange(len(scenario.hosts))
        self.counts = np.zeros((3, len(orders)), np.int64)
        self.counted, self.compliant, self.preventive = self.counts
        self.violations = np.zeros((n_types, n_types), np.int64)

    def update(self, fixed_type: np.ndarray, compromised_before: np.ndarray) -> np.ndarray:
        """Counts the fixes of one step; returns the alignment reward of each environment.

        Args:
            fixed_type: unit type that each action fixed, -1 for none; (n_envs,).
            compromised_before: hosts compromised before the step; (n_envs, n_hosts) bool.
        """
        compromised, fixed = compromised_before @ self.hosts, fixed_type.astype(np.int64)
        return self.alignment_lambda * count_fixes(
            fixed, compromised, self.orders, self.masks, self.counts, self.violations
        )

    def rates(self) -> np.ndarray:
        """Compliance of each environment's episode so far; nan where it is undefined; (n_envs,)."""
        return np.where(self.counted > 0, self.compliant / np.maximum(self.counted, 1), np.nan)

    def start_episodes(self, ended: np.ndarray) -> None:
        """Forgets the counts of environments whose episode ended; (n_envs,) bool."""
        self.counts[:, ended] = 0
