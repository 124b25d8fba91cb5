"""Whether trainings that fail mislead the search: values of known orders, some of them far too low.

``python -m benchmarks failures``: the value of an order of six items is a sum of two pair effects, as on cage2-fine.
Each evaluation has noise and, with a small chance, loses many points, as a training does that is stuck. GP-UCB runs as
it is, and without the second look at values that all others contradict.
"""

from __future__ import annotations

import statistics
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from math import sqrt
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.command import main
from workflow_rl.search.gp import Order, OrderGP
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.search.strategies import GPUCBSearch
from workflow_rl.training.compliance import Obedience

ITEMS = tuple("abcdef")
EFFECTS = {("a", "b"): 4.0, ("c", "d"): 3.0}
NOISE, ERROR, FAILS, LOSS = 0.3, 0.1, 0.05, 15.0
EVALUATIONS, SEEDS = 40, 20
FOLLOWED = Obedience(1.0, 0.0, 1.0, 1.0, 0.0)


def value(order: Order) -> float:
    """The true value of an order."""
    return -20.0 + sum(worth for (a, b), worth in EFFECTS.items() if order.index(a) < order.index(b))


def searched(seed: int, checks: bool) -> dict[str, float]:
    """One search: the regret of its choice, and how many clear pairs are true and false."""
    torch.set_num_threads(1)
    rng, search = np.random.default_rng(seed), GPUCBSearch(ITEMS, seed=seed)
    found: list[Evaluated] = []
    failures = 0
    with nullcontext() if checks else patch.multiple(OrderGP, doubtful=lambda _: [], failed=_none):
        for _ in range(EVALUATIONS):
            order = search.suggest(1)[0].order
            failed = rng.random() < FAILS
            failures += failed
            seen = value(order) + rng.normal(0.0, NOISE) - LOSS * failed
            search.observe(order, seen, ERROR)
            found.append(Evaluated(order, (seen,), (ERROR,), FOLLOWED))
        posterior = Posterior(ITEMS, found)
        best = posterior.ranking(0.95)[0].order
        clear = {(pair.first, pair.second) for pair in posterior.pair_effects() if pair.matters}
    regret = value(("a", "b", "c", "d", "e", "f")) - value(best)
    true = len(clear & EFFECTS.keys())
    return {"regret": regret, "true": true, "false": len(clear) - true, "failures": failures}


def _none(gp: OrderGP) -> np.ndarray:
    return np.zeros(len(gp.orders), bool)


def measure() -> dict[str, Any]:
    """Both ways with the same seeds."""
    figures: dict[str, Any] = {"evaluations": EVALUATIONS, "seeds": SEEDS, "chance": FAILS, "loss": LOSS}
    with ProcessPoolExecutor(2) as pool:
        for name, checks in (("checked", True), ("plain", False)):
            rows = list(pool.map(searched, range(SEEDS), [checks] * SEEDS))
            figures[name] = {key: statistics.fmean(row[key] for row in rows) for key in rows[0]}
            figures[name]["regret_error"] = statistics.stdev(row["regret"] for row in rows) / sqrt(SEEDS)
            figures[name]["false_error"] = statistics.stdev(row["false"] for row in rows) / sqrt(SEEDS)
    return figures


if __name__ == "__main__":
    main("failures")
