"""Workflow: an order of unit types, highest priority first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.errors import UserError


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
        """Makes a workflow from a comma-separated list or a sequence of unit types."""
        names = text.split(",") if isinstance(text, str) else text
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
    return _all(as_network(network).unit_types)


@cache
def _all(types: tuple[str, ...]) -> tuple[Workflow, ...]:
    return tuple(Workflow(order, types) for order in permutations(types))
