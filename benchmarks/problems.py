"""Whether the search finds good orders outside cyber defence: three problems over orders with known optima.

``python -m benchmarks problems``: linear ordering, where every pair of items has an effect, as the kernel assumes;
flow shop scheduling; quadratic assignment, where positions count and not which item comes first. GP-UCB with its
defaults, random search, local search and simulated annealing evaluate equally many orders of each instance.

Values have no noise, so the best order is the best one evaluated. An order that is evaluated again counts again. A
search ends at the optimum, which the strategies do not know: no later evaluation could change a figure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from benchmarks.command import main
from benchmarks.problem_optima import KINDS, Problem, make_problem
from workflow_rl.config import SearchConfig
from workflow_rl.search.orders import changes
from workflow_rl.search.strategies import make_search

SIZES = (8, 10, 12)
BUDGETS = (50, 100, 200)
INSTANCES = 6  # of each kind and size
RANDOM_ORDERS = 5000  # whose mean is a gap of 1
ERROR = 1e-3  # standard error told to the model: below its own floor, a thousandth of the spread, which keeps it stable
FIRST = 10  # random orders from which annealing takes its first temperature
COOLING = 0.01  # last temperature over the first

Steps = Generator[Sequence[int], float, None]  # yields orders, is sent their values


def ours(name: str, n: int, seed: int) -> Steps:
    """A strategy of the package."""
    items = [chr(ord("a") + number) for number in range(n)]
    search = make_search(name, items, seed, SearchConfig.gp_beta, SearchConfig.n_initial)
    while True:
        order = search.suggest(1)[0].order
        search.observe(order, (yield [items.index(item) for item in order]), ERROR)


def local_search(n: int, seed: int) -> Steps:
    """First improvement over all swaps and moves in random order; at a local optimum, again from a random order."""
    rng = np.random.default_rng(seed)
    while True:
        here, better = rng.permutation(n), True
        height = yield here.tolist()
        while better:
            better = False
            for places in rng.permutation(changes(n)):
                value = yield here[places].tolist()
                if value > height:
                    here, height, better = here[places], value, True
                    break


def annealing(n: int, budget: int, seed: int) -> Steps:
    """Random swaps and moves from the best of some random orders, cooled geometrically until the budget is spent."""
    rng = np.random.default_rng(seed)
    orders, values = [rng.permutation(n) for _ in range(FIRST)], list[float]()
    for order in orders:
        values.append((yield order.tolist()))
    here, height, first = orders[int(np.argmax(values))], max(values), float(np.std(values))
    for step in range(budget - FIRST):
        temperature = first * COOLING ** (step / (budget - FIRST))
        there = here[list(changes(n)[rng.integers(len(changes(n)))])]
        value = yield there.tolist()
        if value >= height or rng.random() < math.exp((value - height) / max(temperature, 1e-9)):
            here, height = there, value


STRATEGIES: dict[str, Callable[[int, int, int], Steps]] = {
    "gp_ucb": lambda n, _, seed: ours("gp-ucb", n, seed),
    "random": lambda n, _, seed: ours("random", n, seed),
    "local_search": lambda n, _, seed: local_search(n, seed),
    "annealing": annealing,
}


@dataclass(frozen=True)
class Trace:
    """The best value after each evaluation, different orders among them, and the seconds of suggesting."""

    best: list[float]
    different: int
    seconds: float

    def after(self, budget: int) -> float:
        """The best value after so many evaluations."""
        return self.best[min(budget, len(self.best)) - 1]


def play(strategy: Steps, problem: Problem, budget: int, optimum: float) -> Trace:
    """Evaluates what the strategy suggests, until the budget is spent or the optimum is found."""
    best, seen, seconds = list[float](), set[tuple[int, ...]](), 0.0
    value: float | None = None
    while len(best) < budget and (not best or best[-1] < optimum):
        start = time.perf_counter()
        order = next(strategy) if value is None else strategy.send(value)
        seconds += time.perf_counter() - start
        value = problem.value(order)
        seen.add(tuple(order))
        best.append(max(value, best[-1] if best else value))
    return Trace(best, len(seen), seconds)


@dataclass(frozen=True)
class Row:
    """One instance: the gap of each strategy after each budget, and how GP-UCB searched."""

    kind: str
    items: int
    seed: int
    optimum: float
    random_mean: float
    gaps: dict[str, dict[str, float]]
    evaluations: int
    different: int
    seconds: float


def instance(kind: str, n: int, seed: int, budgets: Sequence[int] = BUDGETS) -> Row:
    """All strategies on one instance; shorter searches are beginnings of the longest, but annealing cools by budget."""
    torch.set_num_threads(1)
    problem, rng = make_problem(kind, n, seed), np.random.default_rng(seed)
    optimum = problem.optimum()
    usual = float(np.mean([problem.value(rng.permutation(n).tolist()) for _ in range(RANDOM_ORDERS)]))
    gaps, traces = dict[str, dict[str, float]](), dict[str, Trace]()
    for name, make in STRATEGIES.items():
        gaps[name] = {}
        for budget in reversed(budgets):
            if name not in traces or name == "annealing":
                traces[name] = play(make(n, budget, seed), problem, budget, optimum)
            gaps[name][str(budget)] = (optimum - traces[name].after(budget)) / (optimum - usual)
    gp = traces["gp_ucb"]
    return Row(kind, n, seed, optimum, usual, gaps, len(gp.best), gp.different, gp.seconds)


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Mean gaps, shares solved, and how much larger the gap of GP-UCB is than that of each other strategy."""
    figures: dict[str, Any] = {"instances": len(rows)}
    for name in STRATEGIES:
        figures[name] = {}
        for budget in rows[0].gaps[name]:
            own = np.array([row.gaps[name][budget] for row in rows])
            than = np.array([row.gaps["gp_ucb"][budget] for row in rows]) - own
            figures[name][budget] = {
                "gap": float(own.mean()),
                "gap_error": _error(own),
                "solved": float((own == 0).mean()),
            }
            if name != "gp_ucb":
                figures[name][budget] |= {"gp_ucb_minus_this": float(than.mean()), "difference_error": _error(than)}
    return figures


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def measure() -> dict[str, Any]:
    """All instances, the largest first; figures by kind and size, and by kind over all sizes."""
    start = time.perf_counter()
    cells = list(product(reversed(SIZES), reversed(KINDS), range(INSTANCES)))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        rows = list(pool.map(instance, *zip(*((kind, n, seed) for n, kind, seed in cells), strict=True)))
    figures: dict[str, Any] = {"instances": INSTANCES, "seconds": time.perf_counter() - start}
    for kind in KINDS:
        own = [row for row in rows if row.kind == kind]
        figures[kind] = {str(n): summary([row for row in own if row.items == n]) for n in SIZES}
        figures[kind]["all"] = summary(own)
    for n in SIZES:
        own = [row for row in rows if row.items == n]
        spent = sum(row.seconds for row in own) / sum(row.evaluations for row in own)
        figures.setdefault("seconds_per_suggestion", {})[str(n)] = spent
    return figures | {"rows": [asdict(row) for row in rows]}


if __name__ == "__main__":
    main("problems")
