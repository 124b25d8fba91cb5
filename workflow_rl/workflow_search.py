"""ParallelWorkflowRLTrainer: the search. Suggest a workflow, train it until it is followed, evaluate, observe, repeat.

An *evaluation* of a workflow is ``replicates`` independent trainings; its value is their mean return. Replicate r of
every workflow starts from the same policy and plays the same games, so what remains between workflows is the workflows.
A re-visit goes on with the policies of the visit before, on new games.

Suggestion i is made from the evaluations 0 .. i - in_flight, those in between being pending, whichever finished first
and however many processes work: the run is a function of its settings. So a killed run that is resumed ends with the
same ranking as one that was left alone. Everything needed for that is in the run directory: the suggestions in
events.jsonl, and each training's own run under trainings/.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workflow_rl.collect import derive_seeds
from workflow_rl.config import SearchConfig, TrainConfig, check_jobs, make_search_config
from workflow_rl.errors import UserError
from workflow_rl.order_gp import Order
from workflow_rl.ranking import Evaluated, follows
from workflow_rl.run_store import Run, new_run_directory, read_result, read_search_config
from workflow_rl.search import Suggestion, make_search
from workflow_rl.search_result import Finished, search_result
from workflow_rl.train_task import check_task
from workflow_rl.trainer import WorkflowResult, base_config
from workflow_rl.worker_pool import Report, Task, WorkerPool
from workflow_rl.workflow import Workflow, unit_types

SEED_OF_TRAINING = 41  # purpose, see derive_seeds
SECONDS_BETWEEN_TICKS = 0.5
RESULT_KEYS = {item.name for item in fields(WorkflowResult)}
SUGGESTION, EVALUATION = "suggestion", "evaluation"  # kinds of events

Say = Callable[[dict[str, Any]], None]


def training_config(config: SearchConfig, workflow: str, visit: int, replicate: int, start: str = "") -> TrainConfig:
    """Settings of one training of a search; ``start`` replaces the warm start.

    The seed depends on visit and replicate and not on the workflow: all workflows meet the same chance.
    """
    seed = int(derive_seeds(config.train.seed, (SEED_OF_TRAINING, visit, replicate), 1)[0] >> np.uint64(1))
    warm_start = start or config.train.warm_start
    if warm_start == "universal":
        warm_start = f"universal:{replicate}"
    return replace(config.train, workflow=workflow, seed=seed, warm_start=warm_start)


def check_search(config: SearchConfig) -> None:
    """Refuses a search that cannot be."""
    for replicate in range(config.replicates):
        check_task(training_config(config, ",".join(unit_types()), 0, replicate))


@dataclass
class _Evaluation:
    """One evaluation under way or done."""

    index: int
    suggestion: Suggestion
    visit: int
    results: dict[int, dict[str, Any]] = field(default_factory=dict)  # by replicate

    submitted: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, event: dict[str, Any]) -> _Evaluation:
        """From the suggestion as an event."""
        figures = (event[name] for name in ("mean", "sigma", "bound", "reason"))
        return cls(event["index"], Suggestion(Workflow.parse(event["workflow"]).order, *figures), event["visit"])

    def evaluated(self) -> Evaluated:
        """Returns and compliance."""
        results = [self.results[replicate] for replicate in sorted(self.results)]
        returns, errors = ([result[name] for result in results] for name in ("mean_return", "standard_error"))
        compliance = float(np.mean([result["compliance"] for result in results]))
        return Evaluated(self.suggestion.order, tuple(returns), tuple(errors), compliance)

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
                "compliance": found.compliance,
                "counted_fixes": float(np.mean([result["counted_fixes"] for result in results])),
                "updates": sum(result["updates"] for result in results),
                "episodes": sum(result["episodes"] for result in results),
                "stop_reason": ", ".join(sorted({result["stop_reason"] for result in results})),
            }
        )

    def _about(self) -> dict[str, Any]:
        return {"index": self.index, "workflow": ",".join(self.suggestion.order), "visit": self.visit}


class WorkflowSearch:
    """A search in its run directory, where it stands.

    Args:
        run: the directory, new or with a search that was interrupted.
        jobs: trainings at once.
        say: told about everything that happens, as dictionaries with a ``kind``.
    """

    def __init__(self, run: Run[SearchConfig], jobs: int, say: Say = lambda _: None) -> None:
        self.run, self.config, self.jobs, self.say = run, run.config, jobs, say
        config = self.config
        self.search = make_search(config.strategy, unit_types(), config.train.seed, config.gp_beta, config.n_initial)
        self.evaluations: list[_Evaluation] = []
        self.bases: dict[int, dict[str, Any]] = {}
        self.n_observed = 0
        self._seconds_before, self._began = 0.0, time.perf_counter()

    def go(self) -> dict[str, Any]:
        """Runs the search to its end and returns the result, which is also in the directory."""
        torch.set_num_threads(1)  # the cores are the workers'
        self._recall()
        pool = WorkerPool(min(self.jobs, self.config.in_flight * self.config.replicates), self.run.path / "workers.log")
        try:
            self._train_bases(pool)
            self._advance(pool)
            while self.n_observed < len(self.evaluations):
                report = pool.report(SECONDS_BETWEEN_TICKS)
                if report is not None and report.kind == "done":
                    index, replicate = map(int, report.name.split("-"))
                    self.evaluations[index].results[replicate] = report.value
                    self._advance(pool)
                self._pass_on(report)
        finally:
            pool.close()
        return search_result(self.run, self._finished(), [*self.bases.values()], self.seconds)

    @property
    def seconds(self) -> float:
        """Time spent on the search, also before it was resumed."""
        return self._seconds_before + time.perf_counter() - self._began

    def _recall(self) -> None:
        """Takes up a run that was interrupted."""
        events = self.run.events()
        try:
            suggested = [event for event in events if event["kind"] == SUGGESTION]
            done = [event["index"] for event in events if event["kind"] == EVALUATION]
            self.evaluations = [_Evaluation.of(event) for event in suggested]
            self._seconds_before = float(next((e["seconds"] for e in reversed(events) if "seconds" in e), 0.0))
            numbers = [evaluation.index for evaluation in self.evaluations]
            whole = numbers == list(range(len(numbers))) and done == list(range(len(done)))
        except (KeyError, TypeError, AttributeError, ValueError):
            whole = False
        if not whole or len(done) > len(suggested):
            raise UserError(f"{self.run.path}/events.jsonl is damaged.")
        self.run.rewrite_events(events)
        for evaluation in self.evaluations:
            for replicate in range(self.config.replicates):
                path = self._path(evaluation.index, replicate)
                result = read_result(path)
                if result is not None:
                    if not result.keys() >= RESULT_KEYS:
                        raise UserError(f"{path}/result.json is damaged.")
                    evaluation.results[replicate] = result
        about = {"run": str(self.run.path), "config": self.config, "done": len(done), "seconds": self.seconds}
        self.say({"kind": "start"} | about)
        for evaluation in self.evaluations:
            self.say(evaluation.suggested() | {"finished": len(evaluation.results)})
        for index in done:
            if len(self.evaluations[index].results) < self.config.replicates:
                raise UserError(f"{self.run.path}: trainings of evaluation {index} are missing.")
            self._observe(self.evaluations[index])

    def _train_bases(self, pool: WorkerPool) -> None:
        """Where trainings start from a general policy: one per replicate, shared by all workflows."""
        if self.config.train.warm_start != "general":
            return
        for replicate in range(self.config.replicates):
            config = base_config(training_config(self.config, "", 0, replicate))
            pool.submit(Task(f"base {replicate}", self._base_path(replicate), config))
        while len(self.bases) < self.config.replicates:
            report = pool.report(SECONDS_BETWEEN_TICKS)
            if report is not None and report.kind == "done":
                self.bases[int(report.name.split()[1])] = report.value
            self._pass_on(report)

    def _pass_on(self, report: Report | None) -> None:
        news = {"kind": "tick"} if report is None else {"kind": report.kind, "name": report.name} | report.value
        self.say(news | {"seconds": self.seconds})

    def _advance(self, pool: WorkerPool) -> None:
        """Makes the suggestions that are due, takes in evaluations in their sequence, and gives out trainings."""
        more = True
        while True:
            following = self.evaluations[self.n_observed : self.n_observed + 1]
            if more and len(self.evaluations) < min(self.n_observed + self.config.in_flight, self.config.n_workflows):
                more = self._suggest()
            elif following and len(following[0].results) == self.config.replicates:
                self._take_in(following[0])
            else:
                break
        for evaluation in self.evaluations[self.n_observed :]:
            self._submit(evaluation, pool)

    def _suggest(self) -> bool:
        """Asks for the next workflow; False if the strategy has no more."""
        pending = [evaluation.suggestion.order for evaluation in self.evaluations[self.n_observed :]]
        found = self.search.suggest(1, pending)
        if not found:
            return False
        order = found[0].order
        visit = sum(evaluation.suggestion.order == order for evaluation in self.evaluations)
        self.evaluations.append(_Evaluation(len(self.evaluations), found[0], visit))
        self.run.log(self.evaluations[-1].suggested())
        self.say(self.evaluations[-1].suggested())
        return True

    def _submit(self, evaluation: _Evaluation, pool: WorkerPool) -> None:
        """Gives out the trainings of an evaluation, a re-visit's as soon as the visit before is done."""
        workflow, visit = ",".join(evaluation.suggestion.order), evaluation.visit
        same = [e for e in self.evaluations[: evaluation.index] if e.suggestion.order == evaluation.suggestion.order]
        for replicate in range(self.config.replicates):
            if replicate in evaluation.results or replicate in evaluation.submitted:
                continue
            start = str(self._base_path(replicate)) if self.config.train.warm_start == "general" else ""
            if same:
                if replicate not in same[-1].results:
                    continue
                start = str(self._path(same[-1].index, replicate))
            config = training_config(self.config, workflow, visit, replicate, start)
            pool.submit(Task(f"{evaluation.index}-{replicate}", self._path(evaluation.index, replicate), config))
            evaluation.submitted.add(replicate)

    def _take_in(self, evaluation: _Evaluation) -> None:
        """Observes the next evaluation in sequence and keeps that it was."""
        self._observe(evaluation)
        event = evaluation.outcome() | {"seconds": self.seconds}
        self.run.log(event)
        self.say(event | {"best": self._best()})

    def _observe(self, evaluation: _Evaluation) -> None:
        found = evaluation.evaluated()
        self.search.observe(found.order, found.value, found.standard_error)
        self.n_observed += 1

    def _best(self) -> dict[str, Any] | None:
        """The best workflow so far among those that are followed, as the process sees it."""
        compliance: dict[Order, list[float]] = {}
        for evaluation in self.evaluations[: self.n_observed]:
            found = evaluation.evaluated()
            compliance.setdefault(found.order, []).append(found.compliance)
        followed = [o for o, values in compliance.items() if follows(values, self.config.train.compliance_threshold)]
        if not followed:
            return None
        means, sigmas = self.search.model().predict(followed)
        top = int(np.argmax(means))
        return {"workflow": ",".join(followed[top]), "mean": float(means[top]), "sigma": float(sigmas[top])}

    def _finished(self) -> list[Finished]:
        """All evaluations with their trainings, in sequence."""
        return [
            Finished(
                e.suggested(),
                e.outcome(),
                e.evaluated(),
                [e.results[r] for r in sorted(e.results)],
                [self._path(e.index, r) for r in sorted(e.results)],
            )
            for e in self.evaluations
        ]

    def _path(self, index: int, replicate: int) -> Path:
        return self.run.path / "trainings" / f"{index:03d}-{replicate}"

    def _base_path(self, replicate: int) -> Path:
        return self.run.path / "bases" / f"{replicate}"


class ParallelWorkflowRLTrainer:
    """The search with the names of the design documents.

        trainer = ParallelWorkflowRLTrainer(n_envs=200, n_workflows=20)
        result = trainer.run_workflow_search()
        print(result["best"])

    Args:
        n_envs: environments of each training, side by side.
        n_workflows: evaluations of workflows.
        train_episodes_per_env: most episodes of each environment; ``max_episodes`` on the command line.
        compliance_threshold: compliance at which a workflow counts as followed.
        update_every_steps: steps of each environment between two updates; ``update_steps`` on the command line.
        jobs: trainings at once; default: one per core.
        run_dir: where to keep the run; default: a new one under runs/.
        preset: name of a preset.
        settings: any other setting of ``workflow-rl search``.
    """

    def __init__(
        self,
        n_envs: int | None = None,
        n_workflows: int | None = None,
        train_episodes_per_env: int | None = None,
        compliance_threshold: float | None = None,
        update_every_steps: int | None = None,
        jobs: int | None = None,
        run_dir: str | Path | None = None,
        preset: str = "",
        **settings: Any,
    ) -> None:
        named = {
            "n_envs": n_envs,
            "n_workflows": n_workflows,
            "max_episodes": train_episodes_per_env,
            "compliance_threshold": compliance_threshold,
            "update_steps": update_every_steps,
        }
        given = {name: value for name, value in named.items() if value is not None}
        for name in given.keys() & settings.keys():
            raise UserError(f"{name} is given twice.")
        self.config = make_search_config(preset, **given, **settings)
        self.jobs, self.run_dir = check_jobs(jobs), Path(run_dir) if run_dir else None
        check_search(self.config)

    def run_workflow_search(self, say: Say = lambda _: None) -> dict[str, Any]:
        """Runs the search; the result is that of ``workflow-rl search --json``."""
        return new_search(self.config, self.run_dir, self.jobs, say)


def new_search(config: SearchConfig, path: Path | None, jobs: int, say: Say) -> dict[str, Any]:
    """Runs a search in a new directory and returns its result."""
    check_search(config)
    return _finish(Run.create(path or new_run_directory("search"), config), jobs, say)


def resume_search(path: Path, jobs: int, say: Say = lambda _: None) -> dict[str, Any]:
    """Goes on with a search that was interrupted and returns its result."""
    read_search_config(path)  # a search at all?
    if read_result(path) is not None:
        raise UserError(f"{path} is finished; there is nothing to resume.")
    return _finish(Run.open_search(path), jobs, say)


def _finish(run: Run[SearchConfig], jobs: int, say: Say) -> dict[str, Any]:
    try:
        return WorkflowSearch(run, jobs, say).go()
    finally:
        run.close()
