"""Why the search begins with a design: how often it names what matters, by the number of its design points.

    python -m benchmarks design

Simulated default searches on the stored table of B_line: every training returns the true mean of its order with the
noise of one training. What matters there is enterprise before user.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import torch

from benchmarks.command import main
from benchmarks.results import RESULTS
from benchmarks.table_summary import FOLLOWED
from workflow_rl.config import SearchConfig
from workflow_rl.engine.network_file import load_network
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.search.strategies import make_search
from workflow_rl.studies.workflow_table import read_table

SEEDS = 30
POINTS = (0, 2, 4, 6, 8, 10)


def explanation(n_initial: int, seed: int) -> tuple[bool, int, float]:
    """One search: is the pair that matters named, how many others are, and how large its effect is said to be."""
    torch.set_num_threads(1)
    table = read_table(RESULTS / "workflow_table_bline.json")
    truth, items = table.by_task(), load_network().unit_types
    search = make_search("gp-ucb", items, seed, SearchConfig.gp_beta, n_initial)
    rng = np.random.default_rng(seed)
    found: list[Evaluated] = []
    for number in range(SearchConfig.n_workflows):
        waiting = [evaluated.order for evaluated in found[number:]]
        while len(waiting) < min(SearchConfig.in_flight, SearchConfig.n_workflows - number):
            order = search.suggest(1, waiting)[0].order
            returns = truth[table.task_of(order)] + table.noise * rng.standard_normal(SearchConfig.replicates)
            found.append(Evaluated(order, tuple(returns.tolist()), (table.evaluation_error,) * len(returns), FOLLOWED))
            waiting.append(order)
        search.observe(found[number].order, found[number].value, found[number].standard_error)
    pairs = Posterior(items, found).pair_effects()
    decisive = next(pair for pair in pairs if {pair.first, pair.second} == {"enterprise", "user"})
    return decisive.matters, sum(pair.matters for pair in pairs) - decisive.matters, decisive.effect


def measure() -> dict[str, Any]:
    """All numbers of design points."""
    figures: dict[str, Any] = {}
    with ProcessPoolExecutor(2) as pool:
        for points in POINTS:
            runs = list(pool.map(explanation, [points] * SEEDS, range(SEEDS)))
            figures[str(points)] = {
                "named": float(np.mean([run[0] for run in runs])),
                "others_named": float(np.mean([run[1] > 0 for run in runs])),
                "mean_effect": float(np.mean([run[2] for run in runs])),
                "seeds": SEEDS,
            }
            print(points, figures[str(points)], file=sys.stderr)
    return figures


if __name__ == "__main__":
    main("design")
