"""How good the search is: regret on tables whose truth is known, beside random search and round-robin in the same run.

On a stored table (``workflow_table``) an evaluation of a workflow yields its true return plus noise as large as the
one measured for an evaluation of the default search. On synthetic tables with more unit types the truth is a sum over
pairs. *Regret* is how much the chosen workflow's true return is below the best one's. The choice after n evaluations is
what a user would be told: of GP-UCB the visited order of best posterior mean, of the others that of best observed mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workflow_rl.bench import Say, machine
from workflow_rl.config import SearchConfig
from workflow_rl.errors import UserError
from workflow_rl.order_gp import Order, features
from workflow_rl.search import GPUCBSearch, OrderSearch, climb, make_search
from workflow_rl.workflow_table import WorkflowTable, read_table

COMPARED = ("gp-ucb", "random", "round-robin")
LOOKS = (5, 10, 20)  # evaluations after which the choice is judged
LARGE_ITEMS = tuple("ABCDEFGH")  # of the synthetic table: 40,320 orders
LARGE_EVALUATIONS = 60
LARGE_LOOKS = (10, 20, 30, 40, 50, 60)
CLOSE = 0.05  # of the range from worst to best
RANDOM_DRAWS = 20_000
NOISE_OVER_LARGEST_EFFECT = 0.1
IN_FLIGHT, BETA, N_INITIAL = SearchConfig.in_flight, SearchConfig.gp_beta, SearchConfig.n_initial


@dataclass(frozen=True)
class Objective:
    """Orders with known values, to be seen through noise."""

    items: Order
    value: Callable[[Sequence[Order]], np.ndarray]
    best: float
    worst: float
    noise: float  # deviation of an observation
    known_error: float  # what an observation's standard error would say of it


def bench_search(tables: Sequence[Path], seeds: int, large_seeds: int, jobs: int, say: Say) -> dict[str, Any]:
    """Regret on each table and on synthetic ones with 8 unit types.

    Args:
        tables: stored results of ``python -m benchmarks.workflow_table``.
        seeds: searches per table and strategy.
        large_seeds: synthetic tables, with one search each; 0: none.
        jobs: processes.
        say: told what is going on.
    """
    if seeds < 1 or large_seeds < 0 or not 1 <= jobs <= 1000:
        raise UserError(f"seeds {seeds} and jobs {jobs} must be at least 1, large seeds {large_seeds} at least 0.")
    read = {path: read_table(path) for path in tables}
    figures: dict[str, Any] = {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for path, table in read.items():
            found = {}
            for strategy in COMPARED:
                say(f"{path.stem}: {strategy}, {seeds} seeds")
                runs = pool.map(_table_regret, [path] * seeds, [strategy] * seeds, range(seeds), chunksize=5)
                found[strategy] = _summary(np.array(list(runs)), LOOKS, table.standard_error)
            ratio = _ratio(found["gp-ucb"]["median_regret"]["10"], found["random"]["median_regret"]["10"])
            figures[path.stem] = found | {
                "median_regret_at_10_over_random": ratio,
                "standard_error": table.standard_error,
                "range": float(np.ptp(table.by_task())),
                "seeds": seeds,
            }
        if large_seeds:
            say(f"8 unit types, {large_seeds} synthetic tables")
            figures["eight_unit_types"] = _large_summary(list(pool.map(large_regret, range(large_seeds))))
    return figures | {"machine": machine()}


def table_objective(table: WorkflowTable) -> Objective:
    """The table as an objective: the true return is that of the task, the noise that of one default evaluation."""
    truth = dict(zip(table.orders, table.by_task(), strict=True))
    known = table.evaluation_error / math.sqrt(table.returns.shape[1])

    def value(orders: Sequence[Order]) -> np.ndarray:
        return np.array([truth[order] for order in orders])

    return Objective(table.orders[0], value, max(truth.values()), min(truth.values()), table.standard_error, known)


def large_objective(seed: int) -> Objective:
    """A sum over pairs of 8 items, each pair with an effect of its own; noise as in the table of B_line.

    There one pair makes a difference of 4.4 and the deviation of an evaluation is 0.45, so noise is a tenth of the
    largest effect. The best order is found by climbing from many starts.
    """
    rng = np.random.default_rng([seed, 8])
    effects = rng.normal(0.0, 1.0, math.comb(len(LARGE_ITEMS), 2))
    noise = NOISE_OVER_LARGEST_EFFECT * float(np.abs(effects).max())

    def value(orders: Sequence[Order]) -> np.ndarray:
        return np.asarray(features(orders, LARGE_ITEMS).numpy() @ effects)

    best = float(value([climb(value, LARGE_ITEMS, rng)])[0])
    worst = float(value([climb(lambda some: -value(some), LARGE_ITEMS, rng)])[0])
    return Objective(LARGE_ITEMS, value, best, worst, noise, noise / 2)


def simulate(objective: Objective, strategy: str, seed: int, evaluations: int) -> list[Order]:
    """A search on an objective; what it would choose after each evaluation."""
    torch.set_num_threads(1)
    rng = np.random.default_rng([seed, 9])
    search = make_search(strategy, objective.items, seed, BETA, N_INITIAL)
    waiting: list[Order] = []
    choices = []
    for number in range(evaluations):
        while len(waiting) < min(IN_FLIGHT, evaluations - number):
            waiting.append(search.suggest(1, waiting)[0].order)
        order = waiting.pop(0)
        seen = float(objective.value([order])[0]) + objective.noise * float(rng.standard_normal())
        search.observe(order, seen, objective.known_error)
        choices.append(chosen(search))
    return choices


def chosen(search: OrderSearch) -> Order:
    """What a user would be told is best."""
    by_order: dict[Order, list[float]] = {}
    for observation in search.observations:
        by_order.setdefault(observation.order, []).append(observation.value)
    orders = sorted(by_order)
    if isinstance(search, GPUCBSearch):
        return orders[int(np.argmax(search.model().predict(orders)[0]))]
    return max(orders, key=lambda order: float(np.mean(by_order[order])))


def _table_regret(path: Path, strategy: str, seed: int) -> list[float]:
    objective = table_objective(read_table(path))
    choices = simulate(objective, strategy, seed, max(LOOKS))
    return [float(objective.best - objective.value([choices[look - 1]])[0]) for look in LOOKS]


def large_regret(seed: int) -> dict[str, Any]:
    """One synthetic table: regret of GP-UCB, and how many random orders until one is as close, without any noise."""
    objective = large_objective(seed)
    span = objective.best - objective.worst
    choices = simulate(objective, "gp-ucb", seed, LARGE_EVALUATIONS)
    share = [float(objective.best - objective.value([order])[0]) / span for order in choices]
    rng = np.random.default_rng([seed, 10])
    draws = [tuple(LARGE_ITEMS[i] for i in rng.permutation(len(LARGE_ITEMS))) for _ in range(RANDOM_DRAWS)]
    close = np.flatnonzero(objective.best - objective.value(draws) <= CLOSE * span)
    random_choices = simulate(objective, "random", seed, LARGE_EVALUATIONS)
    random_share = float(objective.best - objective.value([random_choices[-1]])[0]) / span
    first = next((number for number, s in enumerate(share, 1) if s <= CLOSE), None)
    return {
        "share": share,
        "first": first,
        "random_share": random_share,
        "random_first": int(close[0]) + 1 if len(close) else RANDOM_DRAWS,
    }


def _large_summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    final = np.array([run["share"][-1] for run in found])
    firsts = [run["first"] or math.inf for run in found]
    return {
        "orders": math.factorial(len(LARGE_ITEMS)),
        "evaluations": LARGE_EVALUATIONS,
        "tables": len(found),
        "within_5_percent": float((final <= CLOSE).mean()),
        "median_regret_percent": {
            str(look): 100 * float(np.median([run["share"][look - 1] for run in found])) for look in LARGE_LOOKS
        },
        "median_evaluations_to_5_percent": float(np.median(firsts)) if np.isfinite(np.median(firsts)) else None,
        "random_median_regret_percent": 100 * float(np.median([run["random_share"] for run in found])),
        "random_within_5_percent": float(np.mean([run["random_share"] <= CLOSE for run in found])),
        "random_median_draws_to_5_percent_without_noise": float(np.median([run["random_first"] for run in found])),
        "noise_over_largest_effect": NOISE_OVER_LARGEST_EFFECT,
    }


def _summary(regrets: np.ndarray, looks: Sequence[int], error: float) -> dict[str, Any]:
    """Figures of regrets (n_seeds, n_looks)."""

    def by_look(values: np.ndarray) -> dict[str, float]:
        return {str(look): float(value) for look, value in zip(looks, values, strict=True)}

    return {
        "median_regret": by_look(np.median(regrets, axis=0)),
        "mean_regret": by_look(regrets.mean(axis=0)),
        "within_one_standard_error": by_look((regrets <= error).mean(axis=0)),
    }


def _ratio(a: float, b: float) -> float | None:
    return a / b if b else None


def default_tables() -> list[Path]:
    """The stored tables of a checkout."""
    folder = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
    tables = [folder / f"workflow_table_{red}.json" for red in ("bline", "meander")]
    if not all(path.exists() for path in tables):
        raise UserError("there is no stored table here; give one with --table FILE.")
    return tables
