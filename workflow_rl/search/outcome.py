"""One evaluation of a search: the settings of its trainings, its suggestion and its outcome, both also as events."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from workflow_rl.config import SearchConfig, TrainConfig
from workflow_rl.search.ranking import Evaluated
from workflow_rl.search.strategies import Suggestion
from workflow_rl.training.collectors import derive_seeds
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.train_task import check_task
from workflow_rl.training.workflow import Workflow, unit_types

SEED_OF_TRAINING = 41  # purpose, see derive_seeds
SUGGESTION, EVALUATION = "suggestion", "evaluation"  # kinds of events


def training_config(config: SearchConfig, workflow: str, visit: int, replicate: int, start: str = "") -> TrainConfig:
    """Settings of one training of a search; ``start`` replaces the warm start.

    The seed depends on visit and replicate and not on the workflow: all workflows meet the same chance.
    """
    seed = int(derive_seeds(config.train.seed, (SEED_OF_TRAINING, visit, replicate), 1)[0] >> np.uint64(1))
    return replace(config.train, workflow=workflow, seed=seed, warm_start=start or config.train.warm_start)


def check_search(config: SearchConfig) -> None:
    """Refuses a search that cannot be."""
    check_task(training_config(config, ",".join(unit_types()), 0, 0))


@dataclass
class Evaluation:
    """One evaluation under way or done."""

    index: int
    suggestion: Suggestion
    visit: int
    results: dict[int, dict[str, Any]] = field(default_factory=dict)  # by replicate

    submitted: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, event: dict[str, Any]) -> Evaluation:
        """From the suggestion as an event."""
        figures = (event[name] for name in ("mean", "sigma", "bound", "reason"))
        return cls(event["index"], Suggestion(Workflow.parse(event["workflow"]).order, *figures), event["visit"])

    def evaluated(self) -> Evaluated:
        """Returns and how the workflow was kept."""
        results = [self.results[replicate] for replicate in sorted(self.results)]
        returns, errors = ([result[name] for result in results] for name in ("mean_return", "standard_error"))
        obedience = Obedience.pool([Obedience.read(result) for result in results])
        return Evaluated(self.suggestion.order, tuple(returns), tuple(errors), obedience)

    def suggested(self) -> dict[str, Any]:
        """The suggestion as an event."""
        figures = {name: value for name, value in asdict(self.suggestion).items() if name != "order"}
        return {"kind": SUGGESTION} | self._about() | figures

    def outcome(self) -> dict[str, Any]:
        """What came out, as an event."""
        found, results = self.evaluated(), [self.results[replicate] for replicate in sorted(self.results)]
        return (
            {"kind": EVALUATION}
            | self._about()
            | {
                "mean_return": found.value,
                "standard_error": found.standard_error,
                "returns": list(found.returns),
                **asdict(found.obedience),
                "updates": sum(result["updates"] for result in results),
                "episodes": sum(result["episodes"] for result in results),
                "stop_reason": ", ".join(sorted({result["stop_reason"] for result in results})),
            }
        )

    def _about(self) -> dict[str, Any]:
        return {"index": self.index, "workflow": ",".join(self.suggestion.order), "visit": self.visit}
