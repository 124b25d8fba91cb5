"""The second stage of a search: which workflows are trained to the end, and what all trainings together show.

The finalists are the best workflow of the first stage and its rivals. A rival reverses one priority of the best
workflow, between two types that red ever takes, by moving one type; those whose reversal seems to cost most are chosen.
Each finalist is trained ``replicates`` times for ``finish_episodes``, and ``replicates`` times twice as long. The worth
of a priority is the difference in return between the best finalist that has it and the best one that reverses it. The
priority matters if that difference is clear after both lengths, and if the longer trainings keep at least half of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from workflow_rl.config import SearchConfig, TrainConfig, is_incident
from workflow_rl.engine.network import Network
from workflow_rl.envs.checks import derive_seeds
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.game import Games
from workflow_rl.presets import make_config
from workflow_rl.search.findings import FinalistRow, Findings, PairEffect, RankingRow
from workflow_rl.search.gp import Order
from workflow_rl.search.outcome import DAMAGED, WorkflowEvaluation
from workflow_rl.search.ranking import CONFIDENCE, Posterior, Ranked
from workflow_rl.training.compliance import Obedience, type_masks
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.workflow import Workflow

SEED_OF_FINAL = 44  # purpose, see derive_seeds
FINISH_INCIDENT = 250  # episodes per environment in incidents, where effects are large
LENGTHS = (1, 2)  # times as long
LEARNING = (
    "lr", "entropy", "anneal", "epochs", "minibatch", "gamma", "clip", "gae_lambda", "normalise_advantages",
    "normalise_returns",
)  # fmt: skip
FINALISTS = "finalists"  # kind of event
STAYS = 0.5  # share of an effect that must be left after twice the training


@dataclass(frozen=True)
class Finalist:
    """A workflow to be finished; ``pair`` is the priority that it reverses, () for the best workflow itself."""

    order: Order
    pair: tuple[str, ...] = ()


def choose_finalists(
    posterior: Posterior, threshold: float, number: int, taken: Sequence[str] | None = None
) -> list[Finalist]:
    """The best workflow, and its rivals for the priorities whose reversal seems to cost most.

    Args:
        posterior: the process after the first stage.
        threshold: compliance at which a workflow counts as followed.
        number: number of finalists, at most.
        taken: the unit types that red ever takes, between which priorities can matter; default: all.
    """
    best = posterior.ranking(threshold)[0].order
    rivals: dict[Order, tuple[float, Finalist]] = {}
    for pair in combinations([name for name in best if taken is None or name in taken], 2):
        orders = [order for order in reversals(best, *pair) if order not in rivals]  # each pair has a rival of its own
        if orders:
            mean, order = max(zip(posterior.gp.predict(orders)[0].tolist(), orders, strict=True))
            rivals[order] = mean, Finalist(order, pair)
    ranked = sorted(rivals.values(), key=lambda rival: rival[0])
    return [Finalist(best), *(finalist for _, finalist in ranked[: number - 1])]


def reversals(order: Order, first: str, second: str) -> list[Order]:
    """Orders in which one of the two items is moved past the other one, and nothing else changes.

    So a loss of such an order is not caused by priorities between other items.

    >>> reversals(("a", "b", "c"), "a", "b")
    [('b', 'a', 'c'), ('b', 'c', 'a')]
    """
    found = []
    for moved in (first, second):
        rest = [item for item in order if item != moved]
        for place in range(len(order)):
            candidate = (*rest[:place], moved, *rest[place:])
            if candidate.index(second) < candidate.index(first) and candidate not in found:
                found.append(candidate)
    return found


def finalists_to_json(chosen: Sequence[Finalist]) -> list[list[str]]:
    """The choice for the run's log, from which a resumed search reads it."""
    return [[",".join(one.order), *one.pair] for one in chosen]


def finalists_in(events: Sequence[dict[str, Any]], network: Network) -> list[Finalist]:
    """The choice in a run's log, if there is one."""
    for event in events:
        if event.get("kind") == FINALISTS:
            try:
                chosen = [(Workflow.parse(order, network), pair) for order, *pair in event["finalists"]]
                return [Finalist(workflow.order, tuple(pair)) for workflow, pair in chosen]
            except DAMAGED:
                return []
    return []


def final_start(config: SearchConfig, network: Network) -> str:
    """Where finalists' trainings start: ``none``, or from the ``general`` policies that the search trains first."""
    return _finishing(config, network).warm_start


def _finishing(config: SearchConfig, network: Network) -> TrainConfig:
    """The preset by which finalists learn."""
    train = config.train
    return make_config("workflow", hosts=len(network.hosts), red_agent=train.red_agent, takeover=train.takeover)


def final_config(
    config: SearchConfig, network: Network, order: Order, replicate: int, length: int, start: str
) -> TrainConfig:
    """Settings of a finalist's training from ``start``: the search's task and penalty, learned as ``workflow`` does."""
    train = config.train
    preset = _finishing(config, network)
    half = preset.max_episodes // 2  # the longer training is as long as the preset's
    usual = min(half, FINISH_INCIDENT) if is_incident(train.takeover) else half
    episodes = (config.finish_episodes or usual) * length
    seed = int(derive_seeds(train.seed, (SEED_OF_FINAL, replicate), 1)[0] >> np.uint64(1))
    return replace(
        train, workflow=",".join(order), seed=seed, warm_start=start, max_episodes=episodes, min_episodes=episodes,
        patience=0, **{name: getattr(preset, name) for name in LEARNING},
    )  # fmt: skip


def final_path(run: Path, number: int, replicate: int, length: int) -> Path:
    """Where a search keeps a training of a finalist."""
    return run / "finals" / f"{number}-{replicate}-{length}"


@dataclass(frozen=True)
class Finished:
    """A finalist with the results of its trainings, by length: a list over replicates each."""

    finalist: Finalist
    results: dict[int, list[WorkflowResult]]

    @property
    def workflow(self) -> str:
        """The workflow as text."""
        return ",".join(self.finalist.order)

    def mean(self, length: int) -> float:
        """Mean return of the trainings of a length."""
        return float(np.mean([result.mean_return for result in self.results[length]]))

    @property
    def obedience(self) -> Obedience:
        """How the longest trainings kept the order."""
        return Obedience.pool([Obedience.read(vars(result)) for result in self.results[LENGTHS[-1]]])


@dataclass(frozen=True)
class Verdict:
    """The comparison of the finalists: their rows, best first, and what the priorities are worth."""

    rows: list[FinalistRow]
    pairs: list[PairEffect]
    best: Finished | None  # None if no finalist is followed


def judge(finished: Sequence[Finished], posterior: Posterior, threshold: float) -> Verdict:
    """Compares the finalists.

    Two trainings of one workflow differ by chance. The size of that noise is estimated from all replicates together;
    with one replicate it is the training noise that the process learned in the first stage.
    """
    spreads = [np.var([r.mean_return for r in one.results[n]], ddof=1) for one in finished for n in LENGTHS
               if len(one.results[n]) > 1]  # fmt: skip
    replicates = len(finished[0].results[LENGTHS[0]])
    noise = math.sqrt(float(np.mean(spreads))) if spreads else posterior.gp.training_noise
    freedom = len(spreads) * (replicates - 1) or math.inf
    error = noise * math.sqrt(2 / replicates)
    comparisons = max(1, math.comb(len(finished), 2))  # the best of each side is not known beforehand
    clear, alone = (float(t.ppf(1 - (1 - CONFIDENCE) / 2 / n, freedom)) for n in (comparisons, 1))
    followed = {one.finalist: one.obedience.follows(threshold) for one in finished}
    weights = {frozenset((own.first, own.second)): own.weight for own in posterior.pair_effects()}
    pairs = []
    for pair in (one.finalist.pair for one in finished[1:]):
        has, reverses = _best_of_sides(finished, followed, pair)
        short, long = (has.mean(n) - reverses.mean(n) for n in LENGTHS)
        stays = min(abs(short), abs(long)) > clear * error and short * long > 0 and abs(long) >= STAYS * abs(short)
        matters = stays and followed[has.finalist] and followed[reverses.finalist]
        (first, second), sign, rival = (pair, 1, reverses) if long >= 0 else (pair[::-1], -1, has)
        figures = (abs(long), error, alone * error, weights[frozenset(pair)], matters, sign * short, rival.workflow)
        pairs.append(PairEffect(first, second, *figures))
    ranked = sorted(finished, key=lambda one: (not followed[one.finalist], -one.mean(LENGTHS[-1])))
    rows = [_row(one, noise, alone, followed[one.finalist]) for one in ranked]
    best = ranked[0] if followed[ranked[0].finalist] else None
    return Verdict(rows, sorted(pairs, key=lambda pair: -pair.effect), best)


def _best_of_sides(
    finished: Sequence[Finished], followed: dict[Finalist, bool], pair: tuple[str, ...]
) -> tuple[Finished, Finished]:
    """The best finalist that has a priority and the best that reverses it, preferably followed ones."""
    sides: dict[bool, list[Finished]] = {True: [], False: []}
    for one in finished:
        sides[one.finalist.order.index(pair[0]) < one.finalist.order.index(pair[1])].append(one)
    has, reverses = (
        max(side, key=lambda one: (followed[one.finalist], one.mean(LENGTHS[-1]))) for side in sides.values()
    )
    return has, reverses


def _row(one: Finished, noise: float, quantile: float, followed: bool) -> FinalistRow:
    last = one.results[LENGTHS[-1]]
    error = noise / math.sqrt(len(last))
    return FinalistRow(
        one.workflow, " before ".join(one.finalist.pair), one.mean(LENGTHS[-1]), error,
        quantile * noise / math.sqrt(len(last)), one.mean(LENGTHS[0]), followed, **asdict(one.obedience),
        updates=last[0].updates,
    )  # fmt: skip


def findings(
    posterior: Posterior, evaluations: Sequence[WorkflowEvaluation], finished: Sequence[Finished], threshold: float
) -> tuple[Findings, Finished | None]:
    """What the evaluations and the finalists show; and the best finalist.

    Args:
        posterior: the process after all evaluations.
        evaluations: all evaluations, each with all of its results.
        finished: the finalists, if there was a second stage; then the answer is theirs.
        threshold: compliance at which a workflow counts as followed.
    """
    rows = [_ranking_row(place, evaluations) for place in posterior.ranking(threshold)]
    return settle(posterior, rows, finished, threshold)


def _ranking_row(place: Ranked, evaluations: Sequence[WorkflowEvaluation]) -> RankingRow:
    own = [one for one in evaluations if one.suggestion.order == place.order]
    results = [result for one in own for result in one.trained]
    return RankingRow(
        ",".join(place.order), place.mean, place.error, **asdict(place.obedience), visits=place.visits,
        stop_reason=", ".join(sorted({result.stop_reason for result in results})), follows=place.follows,
        behind_best=place.behind, behind_error=place.behind_error, equal_to_best=place.equal,
        observed_return=float(np.mean([one.evaluated().value for one in own])),
        episodes=sum(result.episodes for result in results),
    )  # fmt: skip


def settle(
    posterior: Posterior, ranking: list[RankingRow], finished: Sequence[Finished], threshold: float
) -> tuple[Findings, Finished | None]:
    """The answer of a search, by the finalists if there are any; and the best finalist."""
    effects, winner, rows = posterior.pair_effects(), None, list[FinalistRow]()
    if finished:
        verdict = judge(finished, posterior, threshold)
        winner, rows = verdict.best, verdict.rows
        best = winner.workflow if winner else None
        settled = [{pair.first, pair.second} for pair in verdict.pairs]
        others = [replace(pair, matters=False) for pair in effects if {pair.first, pair.second} not in settled]
        effects = [*verdict.pairs, *others]
        equal = [row.workflow for row in ranking if best and row.follows and _keeps(row.workflow, effects)]
        ranking = [replace(row, equal_to_best=row.workflow in equal) for row in ranking]
    else:
        best = ranking[0].workflow if ranking[0].follows else None
        equal = [row.workflow for row in ranking if best and row.follows and row.equal_to_best]
    return Findings(best, equal, rows, effects, ranking, posterior.gp.training_noise, posterior.level_error), winner


def _keeps(workflow: str, effects: list[PairEffect]) -> bool:
    """Does a workflow have all priorities that matter?"""
    order = workflow.split(",")
    return all(order.index(pair.first) < order.index(pair.second) for pair in effects if pair.matters)


TAKEN_GAMES, TAKEN_STEPS, TAKEN_SEED = 2000, 100, 7  # that show which unit types red takes


def taken_types(games: Games) -> tuple[str, ...]:
    """Unit types of which a host was ever compromised, in games without defence and in games with random actions.

    >>> from workflow_rl.engine.network_file import load_network
    >>> taken_types(Games(load_network(), "bline", "current", 100))
    ('enterprise', 'op_server', 'user')
    """
    taken = 0
    for idle in (True, False):
        envs = CageVectorEnv(
            TAKEN_GAMES, red_agent=games.red_agent, edition=games.edition, network=games.network,
            takeover=games.takeover,
        )  # fmt: skip
        envs.reset(seed=TAKEN_SEED)
        rng = np.random.default_rng(TAKEN_SEED)
        for _ in range(TAKEN_STEPS):
            actions = np.zeros(TAKEN_GAMES, int) if idle else rng.integers(envs.network.n_actions, size=TAKEN_GAMES)
            held = envs.step(actions)[4]["compromised_before"].any(axis=0)
            taken |= sum(1 << int(host) for host in np.flatnonzero(held))
    masks = zip(envs.network.unit_types, type_masks(envs.network), strict=True)
    return tuple(name for name, mask in masks if int(mask) & taken)
