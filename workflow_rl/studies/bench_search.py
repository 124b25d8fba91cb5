"""Regret of the search on tables whose true returns are known, beside random search and round-robin in the same run.

On a stored table (``workflow_table``) an evaluation of a workflow yields its true return plus noise as large as the
standard error of the table's means. On synthetic tables with more unit types the true return is a sum over pairs.
*Regret* is the difference between the true returns of the best and of the chosen workflow. The workflow chosen after n
evaluations is the visited one with the best posterior mean, for every strategy; random search is also measured with the
best observed mean, without a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import permutations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workflow_rl.config import SearchConfig
from workflow_rl.errors import UserError
from workflow_rl.search.gp import Order, features
from workflow_rl.search.strategies import OrderSearch, make_search
from workflow_rl.studies.bench import Machine, Say, machine
from workflow_rl.studies.workflow_table import WorkflowTable, read_table

COMPARED = ("gp-ucb", "random", "round-robin")
OBSERVED = "random, best observed"  # random search without the model
LOOKS = (5, 10, 20)  # evaluations after which the choice is judged
LARGE_ITEMS = tuple("ABCDEFGH")  # of the synthetic table: 40,320 orders
LARGE_EVALUATIONS = 60
LARGE_LOOKS = (10, 20, 30, 40, 50, 60)
NORMAL = 1.96  # deviations of a 95 % interval
CLOSE = 0.05  # of the range from worst to best
RANDOM_DRAWS = 20_000
LARGE_NOISE = {  # deviation of an observation over the range of the table
    "eight_unit_types": 0.01,  # about a tenth of the largest effect of a pair, as against B_line
    "eight_unit_types_noisy": 0.1,  # a tenth of the range, as against B_line
}
IN_FLIGHT, BETA, N_INITIAL = SearchConfig.in_flight, SearchConfig.gp_beta, SearchConfig.n_initial


@dataclass(frozen=True)
class Objective:
    """Orders with known values, observed with noise."""

    items: Order
    value: Callable[[Sequence[Order]], np.ndarray]
    best: float
    worst: float
    noise: float  # deviation of an observation
    known_error: float  # the standard error that is reported with an observation


@dataclass(frozen=True)
class Regret:
    """Figures of one strategy on one table; the dictionaries are by number of evaluations."""

    median_regret: dict[str, float]
    mean_regret: dict[str, float]
    interval: dict[str, float]  # half the width of the mean's 95 % interval
    within_one_standard_error: dict[str, float]


@dataclass(frozen=True)
class TableFigures:
    """All strategies on one stored table."""

    by_strategy: dict[str, Regret]
    median_regret_at_10_over_random: float | None
    standard_error: float
    range: float
    seeds: int


@dataclass(frozen=True)
class LargeRun:
    """One synthetic table: regret as a share of the range, and when a search first came within CLOSE of the best."""

    share: list[float]  # of GP-UCB after each evaluation
    first: float  # evaluations of GP-UCB; infinite: never
    random_share: float
    random_first: int  # random orders, without noise


@dataclass(frozen=True)
class LargeFigures:
    """Synthetic tables of 8 unit types with one level of noise."""

    orders: int
    evaluations: int
    tables: int
    noise_over_range: float
    within_5_percent: float
    median_regret_percent: dict[str, float]
    median_evaluations_to_5_percent: float | None
    random_median_regret_percent: float
    random_within_5_percent: float
    random_median_draws_to_5_percent_without_noise: float


@dataclass(frozen=True)
class SearchFigures:
    """The figures of ``bench search``, by the name of the table."""

    tables: dict[str, TableFigures]
    large: dict[str, LargeFigures]
    machine: Machine

    def to_json(self) -> dict[str, Any]:
        """One object per table, with one per strategy in those of stored tables."""
        plain = asdict(self)
        tables = {name: found | found.pop("by_strategy") for name, found in plain["tables"].items()}
        return tables | plain["large"] | {"machine": plain["machine"]}


def bench_search(
    tables: Sequence[Path], seeds: int, large_seeds: int, jobs: int, unit_types: Order, say: Say
) -> SearchFigures:
    """Regret on each table and on synthetic ones with 8 unit types.

    Args:
        tables: stored results of ``python -m benchmarks workflow_table``.
        seeds: number of searches per table and strategy.
        large_seeds: number of synthetic tables, with one search each; 0: none.
        jobs: number of processes.
        unit_types: unit types of the network, whose orders are searched on stored tables.
        say: called with a line of progress.
    """
    if seeds < 1 or large_seeds < 0 or not 1 <= jobs <= 1000:
        raise UserError(f"seeds {seeds} and jobs {jobs} must be at least 1, large seeds {large_seeds} at least 0.")
    read = {path.stem: read_table(path) for path in tables}
    if len(read) < len(tables):
        raise UserError("the tables must have different names.")
    for name, table in read.items():
        if not set(table.orders[0]) <= set(unit_types):
            raise UserError(f"{name}: not a table of workflows of {', '.join(unit_types)}.")
    stored, synthetic = {}, {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for name, table in read.items():
            found = {}
            for strategy in (*COMPARED, OBSERVED):
                say(f"{name}: {strategy}, {seeds} seeds")
                search = partial(_table_regret, table, unit_types, strategy)
                runs = pool.map(search, range(seeds), chunksize=5)
                found[strategy] = _summary(np.array(list(runs)), LOOKS, table.standard_error)
            at_10, randoms = (found[strategy].median_regret["10"] for strategy in ("gp-ucb", "random"))
            spread = float(np.ptp(list(table.by_task().values())))
            ratio = at_10 / randoms if randoms else None
            stored[name] = TableFigures(found, ratio, table.standard_error, spread, seeds)
        for name, noise in LARGE_NOISE.items() if large_seeds else ():
            say(f"{name}, {large_seeds} synthetic tables")
            large = pool.map(large_regret, range(large_seeds), [noise] * large_seeds)
            synthetic[name] = large_summary(list(large), noise)
    return SearchFigures(stored, synthetic, machine())


def table_objective(table: WorkflowTable, unit_types: Order) -> Objective:
    """The table as an objective on all orders of ``unit_types``: the true return is that of the task."""
    truth = table.by_task()
    known = table.evaluation_error / math.sqrt(table.returns.shape[1])

    def value(orders: Sequence[Order]) -> np.ndarray:
        return np.array([truth[table.task_of(order)] for order in orders])

    return Objective(unit_types, value, max(truth.values()), min(truth.values()), table.standard_error, known)


def large_objective(seed: int, noise_over_range: float) -> Objective:
    """A sum over pairs of 8 items, each pair with an effect of its own, drawn from a normal distribution."""
    rng = np.random.default_rng([seed, 8])
    effects = rng.normal(0.0, 1.0, math.comb(len(LARGE_ITEMS), 2))

    def value(orders: Sequence[Order]) -> np.ndarray:
        return np.asarray(features(orders, LARGE_ITEMS).numpy() @ effects)

    everything = value(list(permutations(LARGE_ITEMS)))
    best, worst = float(everything.max()), float(everything.min())
    noise = noise_over_range * (best - worst)
    return Objective(LARGE_ITEMS, value, best, worst, noise, noise / 2)


def simulate(objective: Objective, strategy: str, seed: int, looks: Sequence[int]) -> list[Order]:
    """Searches an objective and returns the order chosen after each number of evaluations in ``looks``."""
    torch.set_num_threads(1)
    evaluations, choose = max(looks), best_observed if strategy == OBSERVED else chosen
    rng = np.random.default_rng([seed, 9])
    search = make_search(strategy.split(",")[0], objective.items, seed, BETA, N_INITIAL)
    waiting: list[Order] = []
    choices = []
    for number in range(evaluations):
        while len(waiting) < min(IN_FLIGHT, evaluations - number):
            waiting.append(search.suggest(1, waiting)[0].order)
        order = waiting.pop(0)
        seen = float(objective.value([order])[0]) + objective.noise * float(rng.standard_normal())
        search.observe(order, seen, objective.known_error)
        if number + 1 in looks:
            choices.append(choose(search))
    return choices


def chosen(search: OrderSearch) -> Order:
    """The visited order with the best posterior mean."""
    orders = sorted({observation.order for observation in search.observations})
    return orders[int(np.argmax(search.model().predict(orders)[0]))]


def best_observed(search: OrderSearch) -> Order:
    """The order with the best mean of its observations."""
    by_order: dict[Order, list[float]] = {}
    for observation in search.observations:
        by_order.setdefault(observation.order, []).append(observation.value)
    return max(sorted(by_order), key=lambda order: float(np.mean(by_order[order])))


def _table_regret(table: WorkflowTable, unit_types: Order, strategy: str, seed: int) -> list[float]:
    objective = table_objective(table, unit_types)
    return list(objective.best - objective.value(simulate(objective, strategy, seed, LOOKS)))


def large_regret(seed: int, noise_over_range: float) -> LargeRun:
    """Searches one synthetic table."""
    objective = large_objective(seed, noise_over_range)
    span = objective.best - objective.worst
    every = range(1, LARGE_EVALUATIONS + 1)
    share = (objective.best - objective.value(simulate(objective, "gp-ucb", seed, every))) / span
    random_share = (objective.best - objective.value(simulate(objective, "random", seed, [LARGE_EVALUATIONS]))) / span
    rng = np.random.default_rng([seed, 10])
    draws = [tuple(LARGE_ITEMS[i] for i in rng.permutation(len(LARGE_ITEMS))) for _ in range(RANDOM_DRAWS)]
    close = np.flatnonzero(objective.best - objective.value(draws) <= CLOSE * span)
    first = np.flatnonzero(share <= CLOSE)
    return LargeRun(
        share=share.tolist(),
        first=int(first[0]) + 1 if len(first) else math.inf,
        random_share=float(random_share[0]),
        random_first=int(close[0]) + 1 if len(close) else RANDOM_DRAWS,
    )


def large_summary(found: Sequence[LargeRun], noise_over_range: float) -> LargeFigures:
    """The figures of some synthetic tables."""
    first = float(np.median([run.first for run in found]))
    return LargeFigures(
        orders=math.factorial(len(LARGE_ITEMS)),
        evaluations=LARGE_EVALUATIONS,
        tables=len(found),
        noise_over_range=noise_over_range,
        within_5_percent=float(np.mean([run.share[-1] <= CLOSE for run in found])),
        median_regret_percent={
            str(look): 100 * float(np.median([run.share[look - 1] for run in found])) for look in LARGE_LOOKS
        },
        median_evaluations_to_5_percent=first if math.isfinite(first) else None,
        random_median_regret_percent=100 * float(np.median([run.random_share for run in found])),
        random_within_5_percent=float(np.mean([run.random_share <= CLOSE for run in found])),
        random_median_draws_to_5_percent_without_noise=float(np.median([run.random_first for run in found])),
    )


def _summary(regrets: np.ndarray, looks: Sequence[int], error: float) -> Regret:
    """Figures of regrets (n_seeds, n_looks)."""
    half = NORMAL * regrets.std(axis=0) / math.sqrt(len(regrets))
    rows = (np.median(regrets, axis=0), regrets.mean(axis=0), half, (regrets <= error).mean(axis=0))
    return Regret(*({str(look): float(value) for look, value in zip(looks, row, strict=True)} for row in rows))


def default_tables() -> list[Path]:
    """The stored tables of a checkout."""
    folder = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
    tables = [folder / f"workflow_table_{kind}.json" for kind in ("bline", "meander")]
    if not all(path.exists() for path in tables):
        raise UserError(
            "the stored tables are part of a checkout, not of the installed package; give one with --table FILE."
        )
    return tables
