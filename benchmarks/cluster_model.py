"""A search on very many workers as a discrete-event model, driven by what was measured.

The driver is one server: it takes in results, packs trainings and makes suggestions, one thing at a time. Workers
train. Which evaluations are under way, the rounds of suggestions and the sequence of taking in are those of
workflow_search; the seconds of each step come from ``python -m benchmarks.cluster suggestions`` and ``evaluations``.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from workflow_rl.workflow_search import ROUNDS


@dataclass(frozen=True)
class Costs:
    """Seconds of the driver: for a training given out and taken in, and for suggestions (see :func:`suggesting`)."""

    give_out: float
    take_in: float
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
class Outcome:
    """How a simulated search went."""

    seconds: float
    busy_workers: float  # share of their time that they train, until the last suggestion
    busy_driver: float
    evaluations_per_second: float


def simulate(
    workers: int, evaluations: int, replicates: int, training: np.ndarray, costs: Costs, seed: int = 0
) -> Outcome:
    """Plays one search.

    Args:
        workers: trainings at once.
        evaluations: workflows to evaluate.
        replicates: trainings of each.
        training: seconds of trainings, to draw from.
        costs: seconds of the driver.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    width = max(2, math.ceil(workers / replicates) + 1)
    round_size = max(1, width // ROUNDS)
    left = [replicates] * evaluations
    suggested = observed = 0
    free, waiting = workers, deque[int]()
    running: list[tuple[float, int]] = []  # end and evaluation
    inbox = deque[int]()  # results that the driver has not taken in
    now = worked = driving = trained = 0.0
    full_until = worked_until_full = 0.0

    def start(at: float) -> None:
        nonlocal free, trained
        while free and waiting:
            seconds = float(rng.choice(training))
            heapq.heappush(running, (at + seconds, waiting.popleft()))
            free, trained = free - 1, trained + seconds

    def listen(until: float) -> None:
        nonlocal free
        while running and running[0][0] <= until:
            end, evaluation = heapq.heappop(running)
            inbox.append(evaluation)
            free += 1
            start(end)

    while observed < evaluations:
        due = min(round_size, evaluations - suggested)
        if due and suggested - observed + due <= width:
            spent = costs.suggesting(observed, suggested - observed, due) + due * replicates * costs.give_out
            waiting.extend(number for number in range(suggested, suggested + due) for _ in range(replicates))
            suggested += due
        elif observed < suggested and left[observed] == 0:
            observed, spent = observed + 1, 0.0
        elif inbox:
            left[inbox.popleft()] -= 1
            spent = costs.take_in
        else:
            now = max(now, running[0][0])
            listen(now)
            continue
        now, driving = now + spent, driving + spent
        listen(now)
        start(now)
        if suggested < evaluations:
            full_until, worked_until_full = now, trained - sum(end - now for end, _ in running)
    worked = worked_until_full / (full_until * workers) if full_until else trained / (now * workers)
    return Outcome(now, worked, driving / now, evaluations / now)
