"""One evaluation of a search: the settings and places of its trainings, its suggestion and its outcome."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.config import SearchConfig, TrainConfig
from workflow_rl.engine.network import Network
from workflow_rl.envs.checks import derive_seeds
from workflow_rl.errors import UserError
from workflow_rl.runs import is_number
from workflow_rl.search.findings import EvaluationRow
from workflow_rl.search.ranking import Evaluated
from workflow_rl.search.strategies import Suggestion
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.workflow import Workflow

SEED_OF_TRAINING = 41  # purpose, see derive_seeds
SUGGESTION, EVALUATION = "suggestion", "evaluation"  # kinds of events in the log
PREDICTED = ("mean", "sigma", "bound")
DAMAGED = (KeyError, TypeError, ValueError, AttributeError, UserError)  # raised by events that cannot be read


def training_config(config: SearchConfig, workflow: str, visit: int, replicate: int, start: str = "") -> TrainConfig:
    """Settings of one training of a search; ``start`` replaces the warm start.

    The seed depends on visit and replicate, not on the workflow: all workflows are trained on the same games.
    """
    seed = int(derive_seeds(config.train.seed, (SEED_OF_TRAINING, visit, replicate), 1)[0] >> np.uint64(1))
    return replace(config.train, workflow=workflow, seed=seed, warm_start=start or config.train.warm_start)


def training_path(run: Path, index: int, replicate: int) -> Path:
    """Where a search keeps a training of one of its evaluations."""
    return run / "trainings" / f"{index:03d}-{replicate}"


@dataclass
class WorkflowEvaluation:
    """One evaluation of a workflow, in progress or done."""

    index: int
    suggestion: Suggestion
    visit: int
    results: dict[int, WorkflowResult] = field(default_factory=dict)  # by replicate
    submitted: set[int] = field(default_factory=set)

    @classmethod
    def from_json(cls, event: dict[str, Any], network: Network) -> WorkflowEvaluation:
        """From the suggestion in the log; raises one of DAMAGED if it is not whole."""
        mean, sigma, bound = predicted = [event[name] for name in PREDICTED]
        if not (all(map(is_number, predicted)) or predicted == [None] * 3) or not isinstance(event["index"], int):
            raise ValueError("the number or the prediction of a suggestion is damaged")
        suggestion = Suggestion(Workflow.parse(event["workflow"], network).order, event["reason"], mean, sigma, bound)
        return cls(event["index"], suggestion, event["visit"])

    @property
    def workflow(self) -> str:
        """The workflow as text."""
        return ",".join(self.suggestion.order)

    @property
    def trained(self) -> list[WorkflowResult]:
        """Results of the finished trainings, by replicate."""
        return [self.results[replicate] for replicate in sorted(self.results)]

    def evaluated(self) -> Evaluated:
        """Returns, and how the order was kept."""
        returns, errors = zip(*((one.mean_return, one.standard_error) for one in self.trained), strict=True)
        obedience = Obedience.pool([Obedience.read(vars(one)) for one in self.trained])
        return Evaluated(self.suggestion.order, returns, errors, obedience)

    def row(self) -> EvaluationRow:
        """Prediction and outcome, once all trainings are done."""
        found, guess = self.evaluated(), self.suggestion
        return EvaluationRow(
            self.index, self.workflow, self.visit, guess.mean, guess.sigma, guess.bound, guess.reason, found.value,
            found.standard_error, found.returns, **asdict(found.obedience),
            updates=sum(one.updates for one in self.trained), episodes=sum(one.episodes for one in self.trained),
            stop_reason=", ".join(sorted({one.stop_reason for one in self.trained})),
        )  # fmt: skip

    def suggested(self) -> dict[str, object]:
        """The suggestion for the log."""
        about = {"index": self.index, "workflow": self.workflow, "visit": self.visit}
        return about | {name: getattr(self.suggestion, name) for name in (*PREDICTED, "reason")}

    def outcome(self) -> dict[str, object]:
        """The outcome for the log."""
        return {name: value for name, value in asdict(self.row()).items() if name not in (*PREDICTED, "reason")}
