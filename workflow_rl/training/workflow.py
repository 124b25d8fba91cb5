"""Workflow: an order of unit types, highest priority first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.errors import UserError

MOST_ENUMERATED = 8  # unit types whose workflows can be listed: 40,320
MOST_UNIVERSAL = 5  # unit types up to which a universal training has all workflows at once
N_DRAWN = 120  # workflows that a batch draws beyond that
PURPOSE = 3  # of the random numbers that draw them


@dataclass(frozen=True, order=True)
class Workflow:
    """A permutation of the unit types of a network.

    >>> workflow = Workflow.parse("user,op_server,enterprise,op_host,defender")
    >>> workflow.order[0], workflow.rank("enterprise")
    ('user', 2)
    >>> workflow.one_hot().reshape(5, 5).sum(axis=1).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> workflow.kendall_distance(Workflow.parse("op_server,user,enterprise,op_host,defender"))
    1
    """

    order: tuple[str, ...]
    unit_types: tuple[str, ...] = field(repr=False)  # of the network; their positions are the indices of the types

    def __post_init__(self) -> None:
        types = self.unit_types
        for name in self.order:
            if name not in types:
                raise UserError(f"unknown unit type {name!r} in the workflow; allowed: {', '.join(types)}.")
        repeated = [f"{name!r} appears {n} times" for name in types if (n := self.order.count(name)) > 1]
        missing = [f"{name!r} is missing" for name in types if name not in self.order]
        if repeated or missing:
            problems = " and ".join(repeated + missing)
            raise UserError(f"{problems} in the workflow; it must name each of {', '.join(types)} once.")

    @classmethod
    def parse(cls, text: str | Sequence[str], network: Network | Path | str = CAGE2) -> Workflow:
        """Makes a workflow from unit types: a sequence, or a text that separates them by commas or ``>``."""
        names = text.replace(">", ",").split(",") if isinstance(text, str) else text
        return cls(tuple(name.strip() for name in names), as_network(network).unit_types)

    def __str__(self) -> str:
        return ",".join(self.order)

    def rank(self, unit_type: str) -> int:
        """Position of a unit type; 0 is the highest priority."""
        return self.order.index(unit_type)

    def indices(self) -> np.ndarray:
        """Indices of the unit types, highest priority first; (n_types,) int8."""
        return np.array([self.unit_types.index(name) for name in self.order], np.int8)

    def one_hot(self) -> np.ndarray:
        """One-hot code (n_types * n_types,): entry ``position * n_types + type`` is 1 if the type has that position."""
        code = np.zeros((len(self.order), len(self.order)), np.float32)
        code[np.arange(len(self.order)), self.indices()] = 1
        return code.ravel()

    def kendall_distance(self, other: Workflow) -> int:
        """Number of pairs of unit types that the two workflows order differently."""
        pairs = combinations(self.order, 2)
        return sum(other.rank(first) > other.rank(second) for first, second in pairs)


def all_workflows(network: Network | Path | str = CAGE2) -> tuple[Workflow, ...]:
    """All workflows in lexicographic order of the unit type indices; 120 for five types."""
    types = as_network(network).unit_types
    if len(types) > MOST_ENUMERATED:
        number = math.factorial(len(types))
        raise UserError(f"{len(types)} unit types have {number:,} workflows, too many to treat each: name one.")
    return _all(types)


def is_drawn(network: Network) -> bool:
    """Are there too many workflows for a universal training to give each of them to an environment?"""
    return len(network.unit_types) > MOST_UNIVERSAL


def universal_workflows(network: Network | Path | str = CAGE2) -> tuple[Workflow, ...]:
    """The workflows for which a universal policy is evaluated: all, or as many as five types have, drawn once for all.

    >>> len(universal_workflows())
    120
    """
    network = as_network(network)
    if not is_drawn(network):
        return all_workflows(network)
    types = network.unit_types
    orders = np.unique(draw_orders(len(types), 2 * N_DRAWN, np.random.default_rng(0)), axis=0)
    chosen = np.random.default_rng(1).permutation(len(orders))[:N_DRAWN]
    return tuple(Workflow(tuple(types[i] for i in orders[number]), types) for number in chosen)


def draw_orders(n_types: int, number: int, rng: np.random.Generator) -> np.ndarray:
    """Random orders as indices of unit types; (number, n_types) int8."""
    return rng.permuted(np.tile(np.arange(n_types, dtype=np.int8), (number, 1)), axis=1)


class Rota:
    """Which workflow each environment has: always the same one, or one that is drawn anew for each episode.

    ``orders`` (n_workflows, n_types) int8 is the table of those in use. ``numbers`` (n_envs, 2) int32 has the places in
    it of each environment's workflow: in the episode that goes on when a batch begins, and in later ones of the batch.
    ``now`` (n_envs,) has those of the current episode.

    Args:
        orders: the workflows; environment i has number i modulo their number.
        n_envs: the number of environments.
        drawn: draw workflows instead; then call :meth:`start`.
    """

    def __init__(self, orders: np.ndarray, n_envs: int, drawn: bool = False) -> None:
        self.orders, self.drawn, self.batches = orders, drawn, 0
        self.entropy: tuple[int, ...] = (PURPOSE,)
        self.now = (np.arange(n_envs) % len(orders)).astype(np.int32)
        self.numbers = np.repeat(self.now[:, None], 2, axis=1)

    def start(self, seed: int, purpose: tuple[int, ...]) -> None:
        """Draws the first workflows."""
        self.entropy = (seed, *purpose, PURPOSE)
        if self.drawn:
            self.orders = self._draw()
            self.now[:] = np.arange(len(self.now)) % len(self.orders)

    def _draw(self) -> np.ndarray:
        rng = np.random.default_rng([*self.entropy, self.batches])
        return draw_orders(self.orders.shape[1], min(N_DRAWN, len(self.now)), rng)

    def begin_batch(self, codes: np.ndarray) -> np.ndarray:
        """Draws the workflows of the episodes that will begin in the next batch; returns the codes of those in use.

        ``codes`` are those of workflows that are not drawn.
        """
        if not self.drawn:
            return codes
        self.batches += 1
        going_on, number = np.unique(self.orders[self.now], axis=0, return_inverse=True)
        new = self._draw()
        self.orders = np.concatenate([going_on, new])
        self.now[:] = number.ravel()
        self.numbers[:, 0], self.numbers[:, 1] = self.now, len(going_on) + np.arange(len(self.now)) % len(new)
        return codes_of(self.orders)

    def end_episodes(self, ended: np.ndarray) -> None:
        """Gives the environments (n_envs,) bool whose episode ended their next workflow."""
        self.now[ended] = self.numbers[ended, 1]

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint must keep between two batches."""
        return {"orders": self.orders[self.now], "drawn": np.array([self.batches])} if self.drawn else {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores the state from :meth:`arrays`."""
        if self.drawn:
            self.orders, self.batches = arrays["orders"].astype(np.int8), int(arrays["drawn"][0])
            self.now[:] = np.arange(len(self.now))


def codes_of(orders: np.ndarray) -> np.ndarray:
    """:meth:`Workflow.one_hot` of orders (n, n_types); (n, n_types * n_types)."""
    codes: np.ndarray = np.eye(orders.shape[1], dtype=np.float32)[orders].reshape(len(orders), -1)
    return codes


@cache
def _all(types: tuple[str, ...]) -> tuple[Workflow, ...]:
    return tuple(Workflow(order, types) for order in permutations(types))
