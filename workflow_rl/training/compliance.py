"""The one definition of repairs, compliance with a workflow, and the alignment reward.

A *fix* is Remove or Restore. It is a *repair* if its target was compromised before the step and is not after blue's
action, before red moves. Any other fix is *idle* and does not count. The *due* type is the compromised unit type of
highest priority before the step. A repair of another type is a *violation*. Over all episodes,

    compliance = 1 - violations / repairs            undefined without a repair
    kept       = share of the episodes with a repair that have no violation

The alignment reward of a step is -alignment_lambda for a violation (``penalty``), or, for comparison (``potential``),
alignment_lambda * (rate_t - rate_(t-1)), where rate is the compliance of the episode so far, 0 before the first repair.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from workflow_rl.engine.bits import wide
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import Network

EPISODE_DTYPE = np.dtype(
    [
        ("total", np.float64),  # sum of environment rewards
        ("alignment", np.float64),  # sum of alignment rewards
        ("repairs", np.int32),
        ("violations", np.int32),  # repairs of a type that was not due
        ("idle", np.int32),  # fixes that repaired nothing
        ("env", np.int32),
    ],
    align=True,
)
Episode: TypeAlias = Any
"""A record of :data:`EPISODE_DTYPE`, as Numba sees it."""

FACTS = ("fixed_unit_type", "repaired_unit_type", "compromised_before")
"""The environment infos that :meth:`Compliance.update` needs, in order."""

NOT_A_FIX, IDLE, IN_ORDER, VIOLATION = range(4)
# Controller of an adaptive penalty: step size, limits of the error, limits of the multiplier.
HELD_SPEED, HELD_OFF, HELD_LIMITS = 0.2, (-0.025, 0.05), (5.0, 60.0)
NO_TYPE = -1
VIOLATION_TEXT = re.compile(r"(\w+) instead of (\w+): (\d+)")
NOTHING = "nothing shown"
LEAST_REPAIRS = 0.5  # repairs per episode below which compliance says nothing about an order


@dataclass(frozen=True)
class Obedience:
    """How well a set of episodes follows a workflow; figures are None where they are undefined."""

    compliance: float | None
    compliance_error: float | None  # standard error over independent episodes
    kept: float | None
    repairs: float  # per episode
    idle_fixes: float  # per episode

    @classmethod
    def of(cls, episodes: np.ndarray) -> Obedience:
        """The figures of finished episodes, an array of :data:`EPISODE_DTYPE`."""
        repairs, violations = episodes["repairs"].astype(float), episodes["violations"].astype(float)
        shown, idle = repairs > 0, float(episodes["idle"].mean())
        if not shown.any():
            return cls(None, None, None, 0.0, idle)
        share, n = violations.sum() / repairs.sum(), len(episodes)
        spread = float(np.sqrt(((violations - share * repairs) ** 2).sum() / (n * max(1, n - 1))))  # ratio estimator
        kept = float((violations[shown] == 0).mean())
        return cls(1.0 - float(share), spread / float(repairs.mean()), kept, float(repairs.mean()), idle)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Obedience:
        """Picks the figures by name from a result or an event."""
        return cls(**{item.name: values[item.name] for item in fields(cls)})

    @classmethod
    def pool(cls, each: Sequence[Obedience]) -> Obedience:
        """Pools several trainings, each evaluated on the same number of episodes."""
        repairs, idle = ([getattr(one, name) for one in each] for name in ("repairs", "idle_fixes"))
        known = [one for one in each if one.compliance is not None]
        if not known:
            return cls(None, None, None, 0.0, float(np.mean(idle)))
        weights = np.array([one.repairs for one in known]) / sum(repairs)
        share = float(weights @ [one.compliance for one in known])
        error = float(np.linalg.norm(weights * [one.compliance_error for one in known]))
        kept = float(np.mean([one.kept for one in known]))
        return cls(share, error, kept, float(np.mean(repairs)), float(np.mean(idle)))

    @property
    def shown(self) -> bool:
        """Are there enough repairs to judge compliance?"""
        return self.repairs >= LEAST_REPAIRS

    def follows(self, threshold: float) -> bool:
        """Is the workflow followed: enough repairs, and compliance and kept both at least the threshold?"""
        return self.shown and min(self.compliance or 0.0, self.kept or 0.0) >= threshold

    def words(self) -> str:
        """As text, e.g. ``compliance 0.993 ± 0.001, kept 0.981, 3.2 repairs and 20.1 idle fixes per episode``."""
        per_episode = f"{self.repairs:.1f} repairs and {self.idle_fixes:.1f} idle fixes per episode"
        if not self.shown or self.compliance is None:
            return f"{NOTHING}: {per_episode}"
        return f"compliance {self.compliance:.3f} ± {self.compliance_error:.3f}, kept {self.kept:.3f}, {per_episode}"


def type_masks(network: Network) -> np.ndarray:
    """Bit set of the hosts of each unit type without red's foothold, which never counts; (n_types,) int64."""
    masks = np.zeros(len(network.unit_types), np.int64)
    for index, host in enumerate(network.hosts):
        if host.name != network.red.foothold:
            masks[network.unit_types.index(host.unit_type)] |= np.int64(1) << np.int64(index)
    return masks


@compiled
def due_type(order: np.ndarray, masks: np.ndarray, compromised: int) -> int:
    """The compromised unit type of highest priority, or NO_TYPE.

    ``order`` and ``masks`` (n_types,) are the unit types by priority and the bit sets of their hosts; ``compromised``
    is the bit set of the hosts compromised before the step.
    """
    for position in range(order.shape[0]):
        if masks[order[position]] & compromised:
            return wide(order[position])
    return NO_TYPE


@compiled
def judge_fix(fixed: int, repaired: int, due: int) -> int:
    """Classifies an action by the unit types that it targeted, that it repaired, and that was due (or NO_TYPE)."""
    if fixed == NO_TYPE:
        return NOT_A_FIX
    if repaired == NO_TYPE:
        return IDLE
    return IN_ORDER if repaired == due else VIOLATION


@compiled
def rate(episode: Episode) -> float:
    """Compliance of the episode so far; 0 before the first repair."""
    return 1.0 - episode.violations / episode.repairs if episode.repairs > 0 else 0.0


@compiled
def start_episode(episode: Episode) -> None:
    """Resets the running counts of one environment."""
    episode.total, episode.alignment = 0.0, 0.0
    episode.repairs, episode.violations, episode.idle = 0, 0, 0


@compiled
def count_fix(
    episode: Episode, violations: np.ndarray, fixed: int, repaired: int, due: int, strength: float, potential: bool
) -> float:
    """Counts an action, classified by :func:`judge_fix`, in its episode; returns the alignment reward."""
    kind = judge_fix(fixed, repaired, due)
    if kind == NOT_A_FIX:
        return 0.0
    if kind == IDLE:
        episode.idle += 1
        return 0.0
    before = rate(episode)
    episode.repairs += 1
    if kind == VIOLATION:
        episode.violations += 1
        violations[repaired, due] += 1
    if potential:
        return strength * (rate(episode) - before)
    return -strength if kind == VIOLATION else 0.0


@compiled
def due_types(orders: np.ndarray, masks: np.ndarray, compromised: np.ndarray) -> np.ndarray:
    """:func:`due_type` of orders (n_envs, n_types) and sets of hosts (n_envs,)."""
    due = np.empty(compromised.shape[0], np.int64)
    for i in range(compromised.shape[0]):
        due[i] = due_type(orders[i], masks, compromised[i])
    return due


@compiled
def count_fixes(
    episodes: np.ndarray, violations: np.ndarray, fixed: np.ndarray, repaired: np.ndarray, due: np.ndarray,
    strength: float, potential: bool,
) -> np.ndarray:  # fmt: skip
    """:func:`count_fix` for one step of every environment; returns the alignment rewards (n_envs,)."""
    bonus = np.zeros(fixed.shape[0])
    for i in range(fixed.shape[0]):
        bonus[i] = count_fix(episodes[i], violations, fixed[i], repaired[i], due[i], strength, potential)
    return bonus


class Compliance:
    """Tracks compliance of environments that are stepped through the Gymnasium API.

    ``orders`` (n_envs, n_types) is the workflow of each environment as unit type indices, highest priority first.
    ``potential`` rewards changes of the compliance rate instead of penalising violations.
    """

    def __init__(
        self, network: Network, orders: np.ndarray, alignment_lambda: float = 0.0, potential: bool = False
    ) -> None:
        self.potential = potential
        self.masks, self.orders, self.alignment_lambda = type_masks(network), orders, alignment_lambda
        n_types = len(network.unit_types)
        self.hosts = 1 << np.arange(len(network.hosts))
        self.episodes = np.zeros(len(orders), EPISODE_DTYPE)
        self.violations = np.zeros((n_types, n_types), np.int64)

    def update(self, fixed: np.ndarray, repaired: np.ndarray, compromised_before: np.ndarray) -> np.ndarray:
        """Counts the fixes of one step; returns the alignment rewards (n_envs,).

        Args:
            fixed: unit type that each action targets, -1 for none; (n_envs,).
            repaired: unit type that each action repaired, -1 for none; (n_envs,).
            compromised_before: hosts compromised before the step; (n_envs, n_hosts) bool.
        """
        due = due_types(self.orders, self.masks, compromised_before @ self.hosts)
        return count_fixes(
            self.episodes, self.violations, fixed.astype(np.int64), repaired.astype(np.int64), due,
            float(self.alignment_lambda), self.potential,
        )  # fmt: skip

    def start_episodes(self, ended: np.ndarray) -> None:
        """Resets the counts of the environments whose episode ended; (n_envs,) bool."""
        self.episodes[ended] = np.zeros(1, EPISODE_DTYPE)


def violations_to_text(counts: np.ndarray, types: Sequence[str]) -> str:
    """Violations of a batch for its event, most frequent first, from counts by repaired and due type.

    >>> violations_to_text(np.array([[0, 2], [12, 0]]), ("user", "enterprise"))
    'enterprise instead of user: 12; user instead of enterprise: 2'
    """
    pairs = [(int(counts[pair]), pair) for pair in zip(*np.nonzero(counts), strict=True)]
    return "; ".join(f"{types[a]} instead of {types[b]}: {n}" for n, (a, b) in sorted(pairs, reverse=True))


def violations_from_text(texts: Sequence[str], types: Sequence[str]) -> np.ndarray:
    """Sum of the counts in texts of :func:`violations_to_text`; (n_types, n_types). Unreadable parts are left out.

    >>> violations_from_text(["enterprise instead of user: 12", "None"], ("user", "enterprise")).tolist()
    [[0, 0], [12, 0]]
    """
    counts = np.zeros((len(types), len(types)), int)
    for repaired, due, number in VIOLATION_TEXT.findall("; ".join(texts)):
        if repaired in types and due in types:
            counts[types.index(repaired), types.index(due)] += int(number)
    return counts


def held(multiplier: float, kept: float, target: float, start: float) -> float:
    """The next multiplier of an adaptive penalty: it grows while ``kept`` is below ``target`` and shrinks otherwise.

        next = multiplier * exp(speed * (target - kept)), with the difference and the result clipped

    The limits of the result are widened if the multiplier started outside of them.

    >>> held(20.0, 0.9, 0.975, 15.0) > 20.0 > held(20.0, 1.0, 0.975, 15.0)
    True
    """
    off = min(max(target - kept, HELD_OFF[0]), HELD_OFF[1])
    least, most = min(HELD_LIMITS[0], start), max(HELD_LIMITS[1], start)
    return min(max(multiplier * math.exp(HELD_SPEED * off), least), most)
