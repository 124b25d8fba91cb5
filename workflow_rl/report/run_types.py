"""A run as its report shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from workflow_rl.config import SearchConfig, TrainConfig
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import network_option
from workflow_rl.presets import command_of
from workflow_rl.search.findings import EvaluationRow, Findings
from workflow_rl.training.events import WorkflowResult

CURVES = ("return", "compliance", "entropy")


@dataclass(frozen=True)
class TrainingData:
    """Curves and result of one training."""

    name: str
    workflow: str
    updates: list[int]
    curves: dict[str, list[float | None]]  # by name, a value per update
    violations: np.ndarray  # of all batches, by repaired and due unit type; (n_types, n_types)
    judged: bool  # whether it has an order to keep
    seconds_collect: float
    seconds_update: float
    transitions: int
    result: WorkflowResult | None  # figures that are not shown may be None, where an old run lacks them
    damaged_lines: int
    damage: str  # why the result cannot be used; empty if it can, or if there is none


@dataclass(frozen=True)
class Prediction:
    """The process's prediction for a workflow, and the workflow's place on the map."""

    workflow: str
    mean: float
    sigma: float
    x: float
    y: float


@dataclass(frozen=True)
class ViolatedPair:
    """How often one unit type was repaired while another was due."""

    repaired: str
    due: str
    times: int


@dataclass(frozen=True)
class Violations:
    """Counts of repairs that were not due; rows are the repaired unit types, columns those that were due."""

    unit_types: list[str]
    counts: list[list[int]]
    judged: bool

    @property
    def counted(self) -> list[ViolatedPair]:
        """The pairs with violations, the most frequent first."""
        pairs = [
            ViolatedPair(repaired, due, times)
            for repaired, row in zip(self.unit_types, self.counts, strict=True)
            for due, times in zip(self.unit_types, row, strict=True)
            if times
        ]
        return sorted(pairs, key=lambda pair: -pair.times)


@dataclass(frozen=True)
class Time:
    """Seconds of all trainings by phase, and their transitions; general policies to start from included."""

    collect: float
    update: float
    transitions: float
    transitions_per_s: float


@dataclass(frozen=True)
class RunData(Findings):
    """A run as a report shows it; a training has empty findings."""

    run: str
    kind: str
    state: str
    config: SearchConfig | TrainConfig
    versions: dict[str, str]
    commit: str
    problem: str
    trainings: list[TrainingData]
    network: Network
    bases: list[TrainingData] = field(default_factory=list)
    finals: list[TrainingData] = field(default_factory=list)
    damaged_lines: int = 0
    evaluations: list[EvaluationRow] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    quantile: float = 1.96  # errors that make a 95 % interval; of a search Student's, for few replicates

    @property
    def train(self) -> TrainConfig:
        """Settings of the trainings."""
        return self.config.train if isinstance(self.config, SearchConfig) else self.config

    @property
    def asked_for(self) -> int | None:
        """Number of evaluations of a search once it is finished; None for a training."""
        return self.config.n_workflows if isinstance(self.config, SearchConfig) else None

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        return command_of(self.config, len(self.network.hosts)) + network_option(self.network, self.run)

    @property
    def where(self) -> str:
        """The network in a title; nothing for CAGE Challenge 2."""
        return "" if self.network.digest == as_network(CAGE2).digest else f", network {self.network.name}"

    @property
    def all_predicted(self) -> bool:
        """Is there a prediction for every workflow?"""
        return len(self.predictions) == math.factorial(len(self.unit_types))

    @property
    def unit_types(self) -> tuple[str, ...]:
        """Unit types of the network."""
        return self.network.unit_types

    @property
    def violations(self) -> Violations:
        """Violations in all batches of the run's trainings."""
        types = self.unit_types
        counts = sum((one.violations for one in self.trainings), np.zeros((len(types), len(types)), int))
        return Violations(list(types), counts.tolist(), any(one.judged for one in self.trainings))

    @property
    def time(self) -> Time:
        """Time and throughput of all trainings."""
        every = [*self.trainings, *self.bases, *self.finals]
        collect, update = (sum(getattr(one, f"seconds_{name}") for one in every) for name in ("collect", "update"))
        transitions, busy = float(sum(one.transitions for one in every)), collect + update
        return Time(collect, update, transitions, transitions / busy if busy else 0.0)
