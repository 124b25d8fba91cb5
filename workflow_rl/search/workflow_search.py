"""The search: suggest a workflow, train it on a small budget, evaluate, observe, repeat; then finish the finalists.

An *evaluation* of a workflow is ``replicates`` independent trainings; its value is their mean return. Replicate r of
every workflow starts from the same policy and plays the same games. A second evaluation plays other games.

Evaluations are observed in suggestion order, whichever finishes first: suggestion i depends on the evaluations
0 .. i - in_flight, those in between being pending, however many processes work. (With 16 or more in flight, suggestions
come in rounds, and a round waits until there is room for all of it.) So the run is a function of its settings, and a
resumed run ends with the same ranking as an uninterrupted one.

With in_flight 0 the executor's room decides how many are in flight, and an evaluation that would leave the room empty
for long is overtaken: then the run also depends on the machines.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from workflow_rl.config import SearchConfig
from workflow_rl.engine.network import Network
from workflow_rl.envs.game import Games
from workflow_rl.errors import UserError
from workflow_rl.runs import Run
from workflow_rl.search import executor as events  # what is told
from workflow_rl.search.executor import Executor, Job, Machines, Restarted, Trained
from workflow_rl.search.finalists import (
    FINALISTS,
    LENGTHS,
    Finished,
    choose_finalists,
    final_config,
    final_path,
    final_start,
    finalists_in,
    finalists_to_json,
    taken_types,
)
from workflow_rl.search.findings import SearchResult
from workflow_rl.search.gp import Order
from workflow_rl.search.outcome import (
    DAMAGED,
    EVALUATION,
    SUGGESTION,
    WorkflowEvaluation,
    training_config,
    training_path,
)
from workflow_rl.search.ranking import Posterior
from workflow_rl.search.result import search_result
from workflow_rl.search.strategies import make_search
from workflow_rl.search.worker_pool import training_result
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.train_task import base_config

SECONDS_BETWEEN_TICKS = 0.5
ROUNDS = 8  # rounds of suggestions in a full set of evaluations in flight
LATE, LATE_SECONDS = 0.5, 5.0  # mean trainings, or seconds, that room stays empty before evaluations are overtaken
RESTARTED, MACHINES, RESUMED, OVERTAKEN, FINAL = "restarted", "machines", "resumed", "overtaken", "final"  # kinds


def width_of(room: int, replicates: int) -> int:
    """Evaluations in flight for so much room: twice the number that fills it, for they are observed in order.

    With fewer, machines would wait for the slowest; benchmarks/cluster_model.py shows how long.
    """
    return max(2, math.ceil(2 * room / replicates))


class WorkflowSearch:
    """A search in its run directory.

    Args:
        run: the directory, new or of an interrupted search.
        executor: where to train; closed at the end.
        network: the hosts and subnets to defend.
        say: called with every event.
    """

    def __init__(
        self, run: Run[SearchConfig], executor: Executor, network: Network, say: events.Say = lambda _: None
    ) -> None:
        self.network = network
        self.run, self.config, self.executor, self.say = run, run.config, executor, say
        config = self.config
        types, seed = self.network.unit_types, config.train.seed
        self.search = make_search(config.strategy, types, seed, config.gp_beta, config.n_initial)
        self.evaluations: list[WorkflowEvaluation] = []
        self.visits: Counter[Order] = Counter()
        self.in_flight: dict[int, WorkflowEvaluation] = {}  # those not yet observed, by number
        self.late: set[int] = set()  # those of them that the search no longer waits for
        self.obedience: dict[Order, list[Obedience]] = {}  # of the observed ones
        self.others: dict[str, WorkflowResult] = {}  # trainings of bases and finalists, by name
        self.best: events.BestSoFar | None = None
        self._logged: set[str] = set()  # finalists' trainings whose end is already in the log
        self._seconds_before, self._began = 0.0, time.perf_counter()
        self._idle_since: float | None = None
        self._looked = 0.0  # for late evaluations
        self._more = True  # whether the strategy has more orders

    def go(self) -> SearchResult:
        """Runs the search to its end and returns the result, which is also in the directory."""
        torch.set_num_threads(1)  # the other cores belong to the workers
        try:
            self._recall()
            bases = self._train_bases()
            for evaluation in self.in_flight.values():
                self._submit(evaluation)
            self._advance()
            while self.in_flight:
                self._wait()
            posterior = Posterior(self.network.unit_types, [evaluation.evaluated() for evaluation in self.evaluations])
            finished = self._finish(posterior) if self.config.finish else []
        finally:
            self.executor.close()
        return search_result(self.run, posterior, self.evaluations, finished, bases, self.seconds, self.network)

    @property
    def width(self) -> int:
        """Number of evaluations that may be in flight: as configured, or by the room."""
        return self.config.in_flight or width_of(self.executor.room, self.config.replicates)

    @property
    def seconds(self) -> float:
        """Time spent on the search, also before it was resumed."""
        return self._seconds_before + time.perf_counter() - self._began

    def _tell(self, what: events.What | None) -> None:
        self.say(events.SearchEvent(self.seconds, what))

    def _log(self, kind: str, **values: object) -> None:
        self.run.log({"kind": kind} | values | {"seconds": self.seconds})

    def _recall(self) -> None:
        """Reads the log and the trainings of an interrupted run."""
        log = self.run.events()
        done: list[int] = []
        try:
            for event in log:
                if event["kind"] == SUGGESTION:
                    self._add(WorkflowEvaluation.from_json(event, self.network))
                elif event["kind"] == EVALUATION:
                    done.append(event["index"])
                elif event["kind"] == OVERTAKEN:
                    self.late.update(event["indices"])
                elif event["kind"] == FINAL:
                    self._logged.add(event["name"])
            self._seconds_before = float(next((e["seconds"] for e in reversed(log) if "seconds" in e), 0.0))
            numbers = [evaluation.index for evaluation in self.evaluations]
            whole = numbers == list(range(len(numbers))) and len(set(done)) == len(done) and {*done} <= {*numbers}
            whole = whole and (done == sorted(done) or not self.config.in_flight)
        except DAMAGED:
            whole = False
        if not whole:
            raise UserError(f"{self.run.path}/events.jsonl is damaged.")
        self.run.rewrite_events(log)
        if log:
            self._log(RESUMED, done=len(done))
        for evaluation in self.evaluations:
            for replicate in range(self.config.replicates):
                result = training_result(training_path(self.run.path, evaluation.index, replicate))
                if result is not None:
                    evaluation.results[replicate] = result
        self._tell(events.Started(str(self.run.path), self.config, len(done)))
        for evaluation in self.evaluations:
            if evaluation.index not in done:
                self._tell(events.Suggested(evaluation.index, evaluation.suggestion, len(evaluation.results)))
        for index in done:
            if not self._complete(self.evaluations[index]):
                raise UserError(f"{self.run.path}: trainings of evaluation {index} are missing.")
            self._observe(self.evaluations[index])

    def _base_path(self, replicate: int) -> Path:
        return self.run.path / "bases" / f"{replicate}"

    def _train_bases(self) -> list[WorkflowResult]:
        """Trains the general policies from which trainings start, if they do: one per replicate, for all workflows."""
        starts = [self.config.train.warm_start] + [final_start(self.config, self.network)] * self.config.finish
        if "general" not in starts:
            return []
        names = [f"base {replicate}" for replicate in range(self.config.replicates)]
        for replicate, name in enumerate(names):
            config = base_config(training_config(self.config, "", 0, replicate))
            self.executor.submit(Job(name, self._base_path(replicate), config, self.network))
        return self._wait_for(names)

    def _finish(self, posterior: Posterior) -> list[Finished]:
        """Trains the finalists to the end."""
        config, start = self.config, final_start(self.config, self.network)
        chosen = finalists_in(self.run.events(), self.network)
        if not chosen:
            taken = taken_types(Games.of(config.train, self.network))
            chosen = choose_finalists(posterior, config.train.compliance_threshold, config.finalists, taken)
            self._log(FINALISTS, finalists=finalists_to_json(chosen))
        self._tell(events.FinalistsChosen([",".join(one.order) for one in chosen]))
        names: dict[tuple[int, int], list[str]] = {}
        for length in reversed(LENGTHS):  # the longest first: no core waits at the end
            for k, finalist in enumerate(chosen):
                names[k, length] = [f"final {k}-{replicate}-{length}" for replicate in range(config.replicates)]
                for replicate, name in enumerate(names[k, length]):
                    base = str(self._base_path(replicate)) if start == "general" else start
                    settings = final_config(config, self.network, finalist.order, replicate, length, base)
                    path = final_path(self.run.path, k, replicate, length)
                    self.executor.submit(Job(name, path, settings, self.network))
        return [
            Finished(finalist, {length: self._wait_for(names[k, length]) for length in LENGTHS})
            for k, finalist in enumerate(chosen)
        ]

    def _wait_for(self, names: list[str]) -> list[WorkflowResult]:
        """Waits for trainings of bases or finalists."""
        while not self.others.keys() >= {*names}:
            self._wait()
        return [self.others[name] for name in names]

    def _wait(self) -> None:
        """Waits for news of the executor, processes them and passes them on."""
        news = self.executor.news(SECONDS_BETWEEN_TICKS)
        if news is None or time.monotonic() - self._looked > SECONDS_BETWEEN_TICKS:
            self._look_for_late_ones()
        if isinstance(news, Restarted | Machines):
            self._log(RESTARTED if isinstance(news, Restarted) else MACHINES, **asdict(news))
        elif isinstance(news, Trained):
            self._keep(news)
        if self.evaluations and isinstance(news, Trained | Machines):
            self._advance()
        self._tell(news)

    def _keep(self, news: Trained) -> None:
        """Keeps the result of a training."""
        if not news.name.startswith(("base", FINAL)):
            index, replicate = map(int, news.name.split("-"))
            self.evaluations[index].results[replicate] = news.result
            return
        self.others[news.name] = news.result
        if news.name.startswith(FINAL) and news.name not in self._logged:  # a resumed run has it in its log
            self._log(FINAL, name=news.name)

    def _advance(self) -> None:
        """Makes the suggestions that are due and observes evaluations in order, until there is nothing to do."""
        while True:
            due, following = self._due(), self._following()
            if due:
                self._suggest(due)
            elif following:
                self._conclude(following)
            else:
                break

    def _due(self) -> int:
        """Number of suggestions to make now: a round, when there is room for all of it."""
        if not self._more:
            return 0
        waited_for = len(self.in_flight) - len(self.late)
        round_ = min(max(1, self.width // ROUNDS), self.config.n_workflows - len(self.evaluations))
        return round_ if waited_for + round_ <= self.width else 0

    def _following(self) -> WorkflowEvaluation | None:
        """The evaluation to observe next, if it is done: a late one, or the first in order."""
        first = next((index for index in self.in_flight if index not in self.late), None)
        numbers = sorted(self.late) + ([] if first is None else [first])
        return next((e for e in map(self.in_flight.__getitem__, numbers) if self._complete(e)), None)

    def _complete(self, evaluation: WorkflowEvaluation) -> bool:
        return len(evaluation.results) == self.config.replicates

    def _look_for_late_ones(self) -> None:
        """Stops waiting for evaluations that hold up others, where the room decides how many are in flight."""
        trainings = sum(len(e.submitted - e.results.keys()) for e in self.in_flight.values())
        now = self._looked = time.monotonic()
        held_up = self._more and 0 < len(self.evaluations) < self.config.n_workflows
        if self.config.in_flight or not held_up or trainings >= self.executor.room:
            self._idle_since = None
            return
        self._idle_since = self._idle_since or now
        seconds = [result.seconds for evaluation in self.evaluations for result in evaluation.results.values()]
        if now - self._idle_since <= max(LATE_SECONDS, LATE * float(np.mean(seconds))):
            return
        self._idle_since = None
        last = max((index for index, e in self.in_flight.items() if self._complete(e)), default=0)
        open_ = {i: e for i, e in self.in_flight.items() if not self._complete(e) and i not in self.late}
        late = [i for i, e in open_.items() if i < last or len(e.submitted) < self.config.replicates]
        if late:
            self.late.update(late)
            text = f"the search goes on without evaluation {', '.join(str(i + 1) for i in late)}, which takes long."
            overtaken = events.Overtaken(late, text)
            self._log(OVERTAKEN, **asdict(overtaken))
            self._tell(overtaken)
            self._advance()

    def _suggest(self, number: int) -> None:
        """Asks for the next workflows and submits their trainings."""
        found = self.search.suggest(number, [evaluation.suggestion.order for evaluation in self.in_flight.values()])
        self._more = len(found) == number
        for suggestion in found:
            self._add(WorkflowEvaluation(len(self.evaluations), suggestion, self.visits[suggestion.order]))
        new = self.evaluations[len(self.evaluations) - len(found) :]
        self.run.log(
            *({"kind": SUGGESTION} | one.suggested() for one in new)
        )  # all or none: a resumed run has the same rounds
        for evaluation in new:
            self._tell(events.Suggested(evaluation.index, evaluation.suggestion))
            self._submit(evaluation)

    def _add(self, evaluation: WorkflowEvaluation) -> None:
        self.evaluations.append(evaluation)
        self.visits[evaluation.suggestion.order] += 1
        self.in_flight[evaluation.index] = evaluation

    def _submit(self, evaluation: WorkflowEvaluation) -> None:
        """Submits the trainings of an evaluation."""
        for replicate in sorted({*range(self.config.replicates)} - evaluation.results.keys() - evaluation.submitted):
            start = str(self._base_path(replicate)) if self.config.train.warm_start == "general" else ""
            config = training_config(self.config, evaluation.workflow, evaluation.visit, replicate, start)
            path = training_path(self.run.path, evaluation.index, replicate)
            self.executor.submit(Job(f"{evaluation.index}-{replicate}", path, config, self.network))
            evaluation.submitted.add(replicate)

    def _conclude(self, evaluation: WorkflowEvaluation) -> None:
        """Observes an evaluation and logs it."""
        self._observe(evaluation)
        self._log(EVALUATION, **evaluation.outcome())
        if self._due() or self.width < 2 * ROUNDS:  # then the next suggestion needs the same model
            self.best = self._best()
        self._tell(events.Observed(evaluation.row(), self.best))

    def _observe(self, evaluation: WorkflowEvaluation) -> None:
        found = evaluation.evaluated()
        self.search.observe(found.order, found.value, found.standard_error)
        self.obedience.setdefault(found.order, []).append(found.obedience)
        del self.in_flight[evaluation.index]
        self.late.discard(evaluation.index)

    def _best(self) -> events.BestSoFar | None:
        """The followed workflow with the highest posterior mean so far."""
        threshold = self.config.train.compliance_threshold
        followed = [order for order, each in self.obedience.items() if Obedience.pool(each).follows(threshold)]
        if not followed:
            return None
        means, sigmas = self.search.model().predict(followed)
        top = int(np.argmax(means))
        return events.BestSoFar(",".join(followed[top]), float(means[top]), float(sigmas[top]))
