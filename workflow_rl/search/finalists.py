"""The second stage of a search: which workflows are trained to the end, and what their trainings say.

The finalists are the best workflow of the first stage and, for those of its priorities (between types that red ever
takes) whose reversal seems to cost most, the best workflow in which one type is moved so that the priority is reversed.
Each is trained ``replicates`` times from scratch, once as long as ``finish_episodes`` says and once twice as long. What
a priority is worth is the difference in return between the best finalist that has it and the best one that reverses it.
It matters if that difference is clear after both lengths, and the longer trainings have kept at least half of it.
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
from workflow_rl.engine.network_file import CAGE2
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.errors import UserError
from workflow_rl.presets import make_config
from workflow_rl.search.gp import Order
from workflow_rl.search.ranking import CONFIDENCE, PairEffect, Posterior
from workflow_rl.training.collectors import derive_seeds
from workflow_rl.training.compliance import Obedience, type_masks
from workflow_rl.training.workflow import Workflow

SEED_OF_FINAL = 44  # purpose, see derive_seeds
FINISH_EPISODES = {"bline": 350, "": 1000}  # by opponent; "" is any other
FINISH_INCIDENT = 250  # in incidents, where effects are large
LENGTHS = (1, 2)  # times as long
LEARNING = (
    "lr", "entropy", "anneal", "epochs", "minibatch", "gamma", "clip", "gae_lambda", "normalise_advantages",
    "normalise_returns",
)  # fmt: skip
FINALISTS = "finalists"  # kind of event
STAYS = 0.5  # share of an effect that must be left after twice the training


@dataclass(frozen=True)
class Finalist:
    """A workflow to be finished; ``pair`` is the priority of the best one that it reverses, () for the best itself."""

    order: Order
    pair: tuple[str, ...] = ()


def choose_finalists(
    posterior: Posterior, threshold: float, number: int, taken: Sequence[str] | None = None
) -> list[Finalist]:
    """The best workflow, and the best ones with a priority of it reversed: those whose reversal seems to cost most.

    Args:
        posterior: what the first stage found.
        threshold: of being followed.
        number: of finalists, at most.
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
    """Orders in which one of the two items is moved to the other side of the other one, and nothing else is.

    So what such an order loses is not owed to priorities that have nothing to do with the two.

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


def finalists_event(chosen: Sequence[Finalist]) -> dict[str, Any]:
    """The choice as an event of the run's log, from which it is taken afterwards."""
    return {"kind": FINALISTS, "finalists": [[",".join(one.order), *one.pair] for one in chosen]}


def finalists_in(events: Sequence[dict[str, Any]]) -> list[Finalist]:
    """The choice that a run has made, if any."""
    for event in events:
        if event.get("kind") == FINALISTS:
            try:
                return [Finalist(Workflow.parse(order).order, tuple(pair)) for order, *pair in event["finalists"]]
            except (KeyError, TypeError, ValueError, AttributeError, UserError):
                return []
    return []


def final_start(config: SearchConfig) -> str:
    """Where finalists' trainings start: ``none``, or from the ``general`` policies that the search trains first."""
    return make_config("workflow", red_agent=config.train.red_agent, takeover=config.train.takeover).warm_start


def final_config(config: SearchConfig, order: Order, replicate: int, length: int, start: str) -> TrainConfig:
    """Settings of a finalist's training from ``start``: the search's task and penalty, learned as ``workflow`` does."""
    train = config.train
    red = train.red_agent if train.red_agent in FINISH_EPISODES else ""
    usual = FINISH_INCIDENT if is_incident(train.takeover) else FINISH_EPISODES[red]
    episodes = (config.finish_episodes or usual) * length
    seed = int(derive_seeds(train.seed, (SEED_OF_FINAL, replicate), 1)[0] >> np.uint64(1))
    preset = make_config("workflow", red_agent=train.red_agent, takeover=train.takeover)
    return replace(
        train, workflow=",".join(order), seed=seed, warm_start=start, max_episodes=episodes, min_episodes=episodes,
        patience=0, **{name: getattr(preset, name) for name in LEARNING},
    )  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """A finalist with the results and directories of its trainings, by length: a list over replicates each."""

    finalist: Finalist
    results: dict[int, list[dict[str, Any]]]
    paths: dict[int, list[Path]]

    def mean(self, length: int) -> float:
        """Mean return of the trainings of a length."""
        return float(np.mean([result["mean_return"] for result in self.results[length]]))

    @property
    def obedience(self) -> Obedience:
        """That of the longest trainings."""
        return Obedience.pool([Obedience.read(result) for result in self.results[LENGTHS[-1]]])


@dataclass(frozen=True)
class Verdict:
    """What the finished trainings say: the finalists, best first, and what the priorities are worth."""

    rows: list[dict[str, Any]]
    pairs: list[PairEffect]
    best: Finished | None  # None if no finalist is followed


def judge(finished: Sequence[Finished], posterior: Posterior, threshold: float) -> Verdict:
    """Compares the finalists.

    Two trainings of one workflow differ by chance; how much is seen in all pairs of them together. With one replicate
    it is what the process learned about the trainings of the first stage.
    """
    spreads = [np.var([r["mean_return"] for r in one.results[n]], ddof=1) for one in finished for n in LENGTHS
               if len(one.results[n]) > 1]  # fmt: skip
    replicates = len(finished[0].results[LENGTHS[0]])
    noise = math.sqrt(float(np.mean(spreads))) if spreads else posterior.gp.training_noise
    freedom = len(spreads) * (replicates - 1) or math.inf
    error = noise * math.sqrt(2 / replicates)
    comparisons = max(1, math.comb(len(finished), 2))  # the best of each side is not known beforehand
    clear, alone = (float(t.ppf(1 - (1 - CONFIDENCE) / 2 / n, freedom)) for n in (comparisons, 1))
    followed = {one.finalist: one.obedience.follows(threshold) for one in finished}
    pairs = []
    for pair in (one.finalist.pair for one in finished[1:]):
        has, reverses = _best_of_sides(finished, followed, pair)
        short, long = (has.mean(n) - reverses.mean(n) for n in LENGTHS)
        stays = min(abs(short), abs(long)) > clear * error and short * long > 0 and abs(long) >= STAYS * abs(short)
        names = pair if long >= 0 else pair[::-1]
        weight = next(own.weight for own in posterior.pair_effects() if {own.first, own.second} == {*names})
        matters = stays and followed[has.finalist] and followed[reverses.finalist]
        sign = 1 if long >= 0 else -1
        rival = ",".join((reverses if long >= 0 else has).finalist.order)
        figures = (abs(long), error, alone * error, weight, matters, sign * short, rival)
        pairs.append(PairEffect(names[0], names[1], *figures))
    ranked = sorted(finished, key=lambda one: (not followed[one.finalist], -one.mean(LENGTHS[-1])))
    rows = [_row(one, noise, alone, followed[one.finalist]) for one in ranked]
    best = ranked[0] if followed[ranked[0].finalist] else None
    return Verdict(rows, sorted(pairs, key=lambda pair: -pair.effect), best)


def _best_of_sides(
    finished: Sequence[Finished], followed: dict[Finalist, bool], pair: tuple[str, ...]
) -> tuple[Finished, Finished]:
    """The best finalist that has a priority and the best that reverses it; one that is followed, if there is any."""
    sides: dict[bool, list[Finished]] = {True: [], False: []}
    for one in finished:
        sides[one.finalist.order.index(pair[0]) < one.finalist.order.index(pair[1])].append(one)
    has, reverses = (
        max(side, key=lambda one: (followed[one.finalist], one.mean(LENGTHS[-1]))) for side in sides.values()
    )
    return has, reverses


def _row(one: Finished, noise: float, quantile: float, followed: bool) -> dict[str, Any]:
    """A finalist for people and programs."""
    last = one.results[LENGTHS[-1]]
    own = one.obedience
    return {
        "workflow": ",".join(one.finalist.order),
        "reverses": " before ".join(one.finalist.pair),
        "mean_return": one.mean(LENGTHS[-1]),
        "standard_error": noise / math.sqrt(len(last)),
        "interval": quantile * noise / math.sqrt(len(last)),
        "half_as_long": one.mean(LENGTHS[0]),
        "followed": followed,
        "compliance": own.compliance,
        "compliance_error": own.compliance_error,
        "kept": own.kept,
        "repairs": own.repairs,
        "idle_fixes": own.idle_fixes,
        "updates": last[0]["updates"],
    }


def settle(
    posterior: Posterior, ranking: list[dict[str, Any]], finished: Sequence[Finished], threshold: float
) -> tuple[dict[str, Any], Verdict | None]:
    """What a search found: best, equal_to_best, finalists, pair_weights; by the finalists, if there are any.

    ``ranking`` are the rows of the first stage as dictionaries; workflow, follows and equal_to_best are looked at.
    """
    effects = posterior.pair_effects()
    verdict = judge(finished, posterior, threshold) if finished else None
    if verdict is None:
        best = ranking[0]["workflow"] if ranking[0]["follows"] else None
        equal = [row["workflow"] for row in ranking if best and row["follows"] and row["equal_to_best"]]
    else:
        best = ",".join(verdict.best.finalist.order) if verdict.best else None
        settled = [{pair.first, pair.second} for pair in verdict.pairs]
        others = [replace(pair, matters=False) for pair in effects if {pair.first, pair.second} not in settled]
        effects = [*verdict.pairs, *others]
        equal = [row["workflow"] for row in ranking if best and row["follows"] and _keeps(row["workflow"], effects)]
    found = {"best": best, "equal_to_best": equal, "finalists": verdict.rows if verdict else []}
    return found | {"pair_weights": [asdict(pair) for pair in effects]}, verdict


def _keeps(workflow: str, effects: list[PairEffect]) -> bool:
    """Has a workflow all priorities that matter?"""
    order = workflow.split(",")
    return all(order.index(pair.first) < order.index(pair.second) for pair in effects if pair.matters)


TAKEN_GAMES, TAKEN_STEPS, TAKEN_SEED = 2000, 100, 7  # that show which unit types red takes


def taken_types(red_agent: str, edition: str, takeover: str, network: Network | Path | str = CAGE2) -> tuple[str, ...]:
    """Unit types of which a host was ever compromised, in games without defence and in games with random actions.

    >>> taken_types("bline", "current", "0")
    ('enterprise', 'op_server', 'user')
    """
    taken = 0
    for idle in (True, False):
        envs = CageVectorEnv(TAKEN_GAMES, red_agent=red_agent, edition=edition, takeover=takeover, network=network)
        envs.reset(seed=TAKEN_SEED)
        rng = np.random.default_rng(TAKEN_SEED)
        for _ in range(TAKEN_STEPS):
            actions = np.zeros(TAKEN_GAMES, int) if idle else rng.integers(envs.network.n_actions, size=TAKEN_GAMES)
            held = envs.step(actions)[4]["compromised_before"].any(axis=0)
            taken |= sum(1 << int(host) for host in np.flatnonzero(held))
    masks = zip(envs.network.unit_types, type_masks(envs.network), strict=True)
    return tuple(name for name, mask in masks if int(mask) & taken)
