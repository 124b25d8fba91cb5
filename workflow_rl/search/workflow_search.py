"""The search. Suggest a workflow, train it in a small budget, evaluate, observe, repeat; then finish the finalists.

An *evaluation* of a workflow is ``replicates`` independent trainings; its value is their mean return. Replicate r of
every workflow starts from the same policy and plays the same games, so what remains between workflows is the workflows.
A re-visit is as good as a first one: new trainings from the same start, with other chance.

Evaluations are taken in in the sequence of their suggestions, whichever finished first: suggestion i is made from the
evaluations 0 .. i - in_flight, those in between being pending, however many processes work. (From 16 under way on,
suggestions come in rounds, and a round waits until there is room for all of it.) So the run is a function of its
settings, and a killed run that is resumed ends with the same ranking as one that was left alone. Everything needed for
that is in the run directory: the suggestions in events.jsonl, and each training's own run under bases/, trainings/
and finals/ (finalists.py).

With in_flight 0 the room that the executor has decides how many are under way, and an evaluation that would leave it
empty for long is overtaken. Then the run also depends on the machines, but every suggestion is still what the search
says to what is observed and pending before it in events.jsonl.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workflow_rl.config import SearchConfig
from workflow_rl.errors import UserError
from workflow_rl.runs import Run, read_result
from workflow_rl.search.executor import Executor, Report, Task
from workflow_rl.search.finalists import (
    LENGTHS,
    Finished,
    choose_finalists,
    final_config,
    final_start,
    finalists_event,
    finalists_in,
    taken_types,
)
from workflow_rl.search.gp import Order
from workflow_rl.search.outcome import EVALUATION, SUGGESTION, Evaluation, training_config
from workflow_rl.search.ranking import Posterior
from workflow_rl.search.result import Done, search_result
from workflow_rl.search.strategies import make_search
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.train_task import base_config
from workflow_rl.training.workflow import unit_types

SECONDS_BETWEEN_TICKS = 0.5
RESULT_KEYS = {item.name for item in fields(WorkflowResult)}
ROUNDS = 8  # suggestions are made in rounds, so many to a full set of evaluations under way
LATE, LATE_SECONDS = 0.5, 5.0  # mean trainings, or seconds, that room stays empty before evaluations are overtaken
RESTARTED, MACHINES, RESUMED, OVERTAKEN = "restarted", "machines", "resumed", "overtaken"  # kinds of further events
FINAL = "final"

Say = Callable[[dict[str, Any]], None]


def width_of(room: int, replicates: int) -> int:
    """Evaluations under way for so much room: twice what fills it, for they are taken in in sequence.

    With fewer, machines would wait for the slowest; benchmarks/cluster_model.py shows how long.
    """
    return max(2, math.ceil(2 * room / replicates))


class WorkflowSearch:
    """A search in its run directory, where it stands.

    Args:
        run: the directory, new or with a search that was interrupted.
        executor: who trains; is closed at the end.
        say: told about everything that happens, as dictionaries with a ``kind``.
    """

    def __init__(self, run: Run[SearchConfig], executor: Executor, say: Say = lambda _: None) -> None:
        self.run, self.config, self.executor, self.say = run, run.config, executor, say
        config = self.config
        self.search = make_search(config.strategy, unit_types(), config.train.seed, config.gp_beta, config.n_initial)
        self.evaluations: list[Evaluation] = []
        self.visits: Counter[Order] = Counter()  # the same by workflow
        self.under_way: dict[int, Evaluation] = {}  # those not yet taken in, by number
        self.late: set[int] = set()  # those of them that are no longer waited for
        self.obedience: dict[Order, list[Obedience]] = {}  # of those taken in
        self.bases: dict[int, dict[str, Any]] = {}
        self.finals: dict[str, dict[str, Any]] = {}  # results of finalists' trainings, by name
        self._logged: set[str | None] = set()  # those of them whose end is in the log already
        self.best: dict[str, Any] | None = None  # so far
        self._seconds_before, self._began = 0.0, time.perf_counter()
        self._idle_since: float | None = None
        self._looked = 0.0  # for late ones
        self._more = True  # whether the strategy has more orders

    def go(self) -> dict[str, Any]:
        """Runs the search to its end and returns the result, which is also in the directory."""
        torch.set_num_threads(1)  # the cores are the workers'
        try:
            self._recall()
            self._train_bases()
            for evaluation in self.under_way.values():
                self._submit(evaluation)
            self._advance()
            while self.under_way:
                self._hear(self.executor.report(SECONDS_BETWEEN_TICKS))
            done = self._evaluated()
            posterior = Posterior(unit_types(), [item.evaluated for item in done])
            finished = self._finish(posterior) if self.config.finish else []
        finally:
            self.executor.close()
        return search_result(self.run, posterior, done, finished, [*self.bases.values()], self.seconds)

    def _finish(self, posterior: Posterior) -> list[Finished]:
        """Trains the finalists to the end."""
        config = self.config
        chosen = finalists_in(self.run.events())
        if not chosen:
            taken = taken_types(config.train.red_agent, config.train.edition, config.train.takeover)
            chosen = choose_finalists(posterior, config.train.compliance_threshold, config.finalists, taken)
            self.run.log(finalists_event(chosen) | {"seconds": self.seconds})
        self.say(finalists_event(chosen) | {"seconds": self.seconds})
        places = [(n, k, r) for n in reversed(LENGTHS) for k in range(len(chosen)) for r in range(config.replicates)]
        names = {(n, k, r): f"final {k}-{r}-{n}" for n, k, r in places}  # the longest first: no core waits at the end
        for (n, k, r), name in names.items():
            start = str(self._base_path(r)) if final_start(config) == "general" else final_start(config)
            task = final_config(config, chosen[k].order, r, n, start)
            self.executor.submit(Task(name, self._final_path(k, r, n), task))
        while len(self.finals) < len(names):
            self._hear(self.executor.report(SECONDS_BETWEEN_TICKS))
        replicates = range(config.replicates)
        return [
            Finished(
                one,
                {n: [self.finals[names[n, k, r]] for r in replicates] for n in LENGTHS},
                {n: [self._final_path(k, r, n) for r in replicates] for n in LENGTHS},
            )
            for k, one in enumerate(chosen)
        ]

    @property
    def width(self) -> int:
        """Evaluations that may be under way: as asked for, or by the room."""
        return self.config.in_flight or width_of(self.executor.room, self.config.replicates)

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
            for event in suggested:
                self._add(Evaluation.of(event))
            self._seconds_before = float(next((e["seconds"] for e in reversed(events) if "seconds" in e), 0.0))
            numbers = [evaluation.index for evaluation in self.evaluations]
            whole = numbers == list(range(len(numbers))) and len(set(done)) == len(done) and {*done} <= {*numbers}
            whole = whole and (done == sorted(done) or not self.config.in_flight)
        except (KeyError, TypeError, AttributeError, ValueError):
            whole = False
        if not whole:
            raise UserError(f"{self.run.path}/events.jsonl is damaged.")
        self.run.rewrite_events(events)
        self._logged = {event.get("name") for event in events if event["kind"] == FINAL}
        overtaken = {index for event in events if event["kind"] == OVERTAKEN for index in event["indices"]}
        self.late = overtaken - {*done}
        if events:
            self.run.log({"kind": RESUMED, "done": len(done), "seconds": self.seconds})
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
            self.say(
                evaluation.suggested() | {"finished": len(evaluation.results), "observed": evaluation.index in done}
            )
        for index in done:
            if len(self.evaluations[index].results) < self.config.replicates:
                raise UserError(f"{self.run.path}: trainings of evaluation {index} are missing.")
            self._observe(self.evaluations[index])

    def _train_bases(self) -> None:
        """Where trainings start from a general policy: one per replicate, shared by all workflows."""
        starts = [self.config.train.warm_start] + [final_start(self.config)] * self.config.finish
        if "general" not in starts:
            return
        for replicate in range(self.config.replicates):
            config = base_config(training_config(self.config, "", 0, replicate))
            self.executor.submit(Task(f"base {replicate}", self._base_path(replicate), config))
        while len(self.bases) < self.config.replicates:
            self._hear(self.executor.report(SECONDS_BETWEEN_TICKS))

    def _hear(self, report: Report | None) -> None:
        """Takes in news of the executor and passes them on."""
        if report is None or time.monotonic() - self._looked > SECONDS_BETWEEN_TICKS:
            self._look_for_late_ones()
        if report is None:
            self.say({"kind": "tick", "seconds": self.seconds})
            return
        news = {"kind": report.kind, "name": report.name} | report.value | {"seconds": self.seconds}
        if report.kind in (RESTARTED, MACHINES):
            self.run.log(news)
        elif report.kind == "done" and report.name.startswith("base"):
            self.bases[int(report.name.split()[1])] = report.value
        elif report.kind == "done" and report.name.startswith("final"):
            self.finals[report.name] = report.value
            if report.name not in self._logged:  # as it is in a run that was resumed
                self.run.log({"kind": FINAL, "name": report.name, "seconds": self.seconds})
        elif report.kind == "done":
            index, replicate = map(int, report.name.split("-"))
            self.evaluations[index].results[replicate] = report.value
        if self.evaluations and report.kind in ("done", MACHINES):
            self._advance()
        self.say(news)

    def _advance(self) -> None:
        """Makes the suggestions that are due, takes in evaluations in their sequence, and gives out trainings."""
        while True:
            due, following = self._due(), self._following()
            if due:
                self._suggest(due)
            elif following:
                self._take_in(following)
            else:
                break

    def _due(self) -> int:
        """Suggestions to be made now: a round, when there is room for all of it."""
        if not self._more:
            return 0
        waited_for = len(self.under_way) - len(self.late)
        round_ = min(max(1, self.width // ROUNDS), self.config.n_workflows - len(self.evaluations))
        return round_ if waited_for + round_ <= self.width else 0

    def _following(self) -> Evaluation | None:
        """The evaluation to take in next, if it is done: the first in sequence, or a late one."""
        first = next((index for index in self.under_way if index not in self.late), None)
        numbers = sorted(self.late) + ([] if first is None else [first])
        return next((e for e in map(self.under_way.__getitem__, numbers) if self._complete(e)), None)

    def _complete(self, evaluation: Evaluation) -> bool:
        return len(evaluation.results) == self.config.replicates

    def _look_for_late_ones(self) -> None:
        """Goes on without evaluations that hold up others, where the room decides how many are under way."""
        trainings = sum(len(e.submitted - e.results.keys()) for e in self.under_way.values())
        now = self._looked = time.monotonic()
        held_up = self._more and 0 < len(self.evaluations) < self.config.n_workflows
        if self.config.in_flight or not held_up or trainings >= self.executor.room:
            self._idle_since = None
            return
        self._idle_since = self._idle_since or now
        seconds = [result["seconds"] for evaluation in self.evaluations for result in evaluation.results.values()]
        if now - self._idle_since > max(LATE_SECONDS, LATE * float(np.mean(seconds))):
            self._idle_since = None
            last = max((index for index, e in self.under_way.items() if self._complete(e)), default=0)
            open_ = {i: e for i, e in self.under_way.items() if not self._complete(e) and i not in self.late}
            late = [i for i, e in open_.items() if i < last or len(e.submitted) < self.config.replicates]
            if not late:
                return
            self.late.update(late)
            text = f"the search goes on without evaluation {', '.join(str(i + 1) for i in late)}, which takes long."
            event = {"kind": OVERTAKEN, "indices": late, "text": text, "seconds": self.seconds}
            self.run.log(event)
            self.say(event)
            self._advance()

    def _suggest(self, number: int) -> None:
        """Asks for the next workflows and gives out their trainings."""
        found = self.search.suggest(number, [evaluation.suggestion.order for evaluation in self.under_way.values()])
        self._more = len(found) == number
        for suggestion in found:
            self._add(Evaluation(len(self.evaluations), suggestion, self.visits[suggestion.order]))
        new = self.evaluations[len(self.evaluations) - len(found) :]
        self.run.log(*(evaluation.suggested() for evaluation in new))  # a round is kept whole, so it is the same one
        for evaluation in new:
            self.say(evaluation.suggested())
            self._submit(evaluation)

    def _add(self, evaluation: Evaluation) -> None:
        self.evaluations.append(evaluation)
        self.visits[evaluation.suggestion.order] += 1
        self.under_way[evaluation.index] = evaluation

    def _submit(self, evaluation: Evaluation) -> None:
        """Gives out the trainings of an evaluation."""
        workflow, visit = ",".join(evaluation.suggestion.order), evaluation.visit
        for replicate in sorted({*range(self.config.replicates)} - evaluation.results.keys() - evaluation.submitted):
            start = str(self._base_path(replicate)) if self.config.train.warm_start == "general" else ""
            config = training_config(self.config, workflow, visit, replicate, start)
            self.executor.submit(
                Task(f"{evaluation.index}-{replicate}", self._path(evaluation.index, replicate), config)
            )
            evaluation.submitted.add(replicate)

    def _take_in(self, evaluation: Evaluation) -> None:
        """Observes the next evaluation in sequence and keeps that it was."""
        self._observe(evaluation)
        event = evaluation.outcome() | {"seconds": self.seconds}
        self.run.log(event)
        if self._due() or self.width < 2 * ROUNDS:  # then the next suggestion needs the same model
            self.best = self._best()
        self.say(event | {"best": self.best})

    def _observe(self, evaluation: Evaluation) -> None:
        found = evaluation.evaluated()
        self.search.observe(found.order, found.value, found.standard_error)
        self.obedience.setdefault(found.order, []).append(found.obedience)
        del self.under_way[evaluation.index]
        self.late.discard(evaluation.index)

    def _best(self) -> dict[str, Any] | None:
        """The best workflow so far among those that are followed, as the process sees it."""
        threshold = self.config.train.compliance_threshold
        followed = [order for order, each in self.obedience.items() if Obedience.pool(each).follows(threshold)]
        if not followed:
            return None
        means, sigmas = self.search.model().predict(followed)
        top = int(np.argmax(means))
        return {"workflow": ",".join(followed[top]), "mean": float(means[top]), "sigma": float(sigmas[top])}

    def _evaluated(self) -> list[Done]:
        """All evaluations with their trainings, in sequence."""
        return [
            Done(
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

    def _final_path(self, number: int, replicate: int, length: int) -> Path:
        return self.run.path / "finals" / f"{number}-{replicate}-{length}"

    def _base_path(self, replicate: int) -> Path:
        return self.run.path / "bases" / f"{replicate}"
