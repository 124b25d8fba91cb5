"""A search on very many workers as a discrete-event model, driven by what was measured.

The driver is one server: it takes in results, packs trainings and makes suggestions, one thing at a time. Workers
train. Which evaluations are under way, the rounds of suggestions and the sequence of taking in are those of
workflow_search; the seconds of each step come from ``python -m benchmarks cluster suggestions`` and ``evaluations``.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np

from workflow_rl.search.workflow_search import LATE, LATE_SECONDS, ROUNDS, width_of


@dataclass(frozen=True)
class Costs:
    """Seconds of the driver: for a training submitted and received, and for suggestions (see :func:`suggesting`)."""

    give_out: float
    take_in: float
    look: float  # for messages, per training under way; then all that have arrived are received
    fit: float  # of weights and noise, for 500 observations or more; in proportion to their square below
    factor: float  # of the factorisation, per cube of observations
    climb: float  # per square of observations and pending orders
    climb_least: float
    choose: float  # of one more order from the same factorisation, per observation and pending order
    batches: bool = True  # whether several suggestions share a factorisation and a climb

    def suggesting(self, observed: int, pending: int, number: int) -> float:
        """Seconds for ``number`` suggestions."""
        rows = observed + pending
        fit = self.fit * min(1.0, (observed / 500) ** 2)
        whole = self.factor * rows**3
        climb = self.climb_least + self.climb * rows**2
        if self.batches:
            return fit + whole + climb + number * self.choose * rows
        return fit + whole + number * climb


@dataclass(frozen=True)
class Work:
    """What the workers do: trainings, and how long they take."""

    seconds: np.ndarray  # of a training, to draw from
    start: float = 0.0  # of a worker's process, before its first training
    late_share: float = 0.0  # of trainings that take ten times as long
    replicates: int = 5

    def draw(self, rng: np.random.Generator) -> float:
        """Seconds of one training."""
        return float(rng.choice(self.seconds)) * (10.0 if rng.random() < self.late_share else 1.0)


@dataclass(frozen=True)
class Outcome:
    """How a simulated search went."""

    seconds: float
    busy_workers: float  # share of their time that they start or train, until the last suggestion
    busy_driver: float
    evaluations_per_second: float
    late: int  # evaluations that were overtaken


class Cluster:
    """One search.

    Args:
        workers: trainings at once.
        evaluations: workflows to evaluate.
        work: what workers do.
        costs: seconds of the driver.
        seed: of the draws.
    """

    def __init__(self, workers: int, evaluations: int, work: Work, costs: Costs, seed: int = 0) -> None:
        self.workers, self.evaluations, self.work, self.costs = workers, evaluations, work, costs
        self.rng = np.random.default_rng(seed)
        self.width = width_of(workers, work.replicates)
        self.left = [work.replicates] * evaluations  # trainings of each evaluation that the driver has not received
        self.under_way: dict[int, None] = {}  # evaluations not observed, in sequence
        self.late: set[int] = set()
        self.suggested = self.n_late = 0
        self.free, self.fresh = workers, workers
        self.waiting, self.inbox = deque[int](), deque[int]()
        self.running: list[tuple[float, int]] = []  # end and evaluation
        self.now = self.driving = self.trained = 0.0

    def go(self) -> Outcome:
        """Plays it to its end."""
        until, worked, idle_since = 0.0, 0.0, None
        patience = max(LATE_SECONDS, LATE * float(self.work.seconds.mean()))
        while self.suggested < self.evaluations or self.under_way:
            spent = self._drive()
            if spent is not None:
                self.now, self.driving = self.now + spent, self.driving + spent
            else:
                ended = self.running[0][0]
                held_up = self.free and not self.waiting and self.suggested < self.evaluations
                held_up = held_up and any(self.left[index] == 0 for index in self.under_way)
                idle_since = (self.now if idle_since is None else idle_since) if held_up else None
                if idle_since is not None and ended > idle_since + patience:
                    self.now, idle_since = max(self.now, idle_since + patience), None
                    last = max(index for index in self.under_way if self.left[index] == 0)
                    overtaken = {index for index in self.under_way if index < last and self.left[index]} - self.late
                    self.late |= overtaken
                    self.n_late += len(overtaken)
                else:
                    self.now = max(self.now, ended)
            self._listen(self.now)
            self._start(self.now)
            if self.suggested < self.evaluations:
                until, worked = self.now, self.trained - sum(end - self.now for end, _ in self.running)
        busy = worked / (until * self.workers) if until else self.trained / (self.now * self.workers)
        return Outcome(self.now, busy, self.driving / self.now, self.evaluations / self.now, self.n_late)

    def _drive(self) -> float | None:
        """The driver's next step and its seconds; None if there is nothing to do."""
        due = min(max(1, self.width // ROUNDS), self.evaluations - self.suggested)
        if due and len(self.under_way) - len(self.late) + due <= self.width:
            observed = self.suggested - len(self.under_way)
            spent = self.costs.suggesting(observed, len(self.under_way), due)
            spent += due * self.work.replicates * self.costs.give_out
            self._listen(self.now + spent)  # workers go on meanwhile, with what they have
            for index in range(self.suggested, self.suggested + due):
                self.under_way[index] = None
                self.waiting.extend([index] * self.work.replicates)
            self.suggested += due
            return spent
        first = next((index for index in self.under_way if index not in self.late), None)
        for index in [*self.late, *([] if first is None else [first])]:
            if self.left[index] == 0:
                del self.under_way[index]
                self.late.discard(index)
                return 0.0
        if self.inbox:
            number = len(self.inbox)
            for _ in range(number):
                self.left[self.inbox.popleft()] -= 1
            return number * self.costs.take_in + len(self.under_way) * self.work.replicates * self.costs.look
        return None

    def _start(self, at: float) -> None:
        while self.free and self.waiting:
            seconds = self.work.draw(self.rng)
            before = self.work.start if self.fresh else 0.0
            self.fresh = max(0, self.fresh - 1)
            heapq.heappush(self.running, (at + before + seconds, self.waiting.popleft()))
            self.free, self.trained = self.free - 1, self.trained + before + seconds

    def _listen(self, until: float) -> None:
        while self.running and self.running[0][0] <= until:
            end, index = heapq.heappop(self.running)
            self.inbox.append(index)
            self.free += 1
            self._start(end)
