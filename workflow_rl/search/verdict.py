"""The answer of a search for people: what is known, how sure it is, and what to do next.

Terminal, report and JSON show the same verdict. A search that is still running has one too.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist

from workflow_rl.config import SearchConfig, chain, is_incident
from workflow_rl.presets import command_of, make_search_config
from workflow_rl.search.findings import FinalistRow, Findings, PairEffect, RankingRow, SearchResult
from workflow_rl.training.compliance import Obedience

FEW = 6  # evaluations below which nothing is said about differences
ENOUGH = SearchConfig.n_workflows
NAMED = 3  # priorities in the headline; the others follow in a sentence of their own
MOST = 10  # times the budget; more is not proposed
PRECISE = 4  # times the budget halve the errors
BREACH = "30"  # steps that red plays before blue, after which the order decides


@dataclass(frozen=True)
class NextStep:
    """Something to do next; ``command`` is empty if there is none."""

    what: str
    command: str


@dataclass(frozen=True)
class Verdict:
    """What a search shows, in sentences; the first one of ``known`` is the headline."""

    known: tuple[str, ...]
    sure: tuple[str, ...]
    next_steps: tuple[NextStep, ...]
    priorities: tuple[PairEffect, ...]  # those that matter, largest first
    equal_orders: int  # orders that have these priorities; 0 if nothing can be said about all orders
    best: str  # the order to use if one must be picked; empty if there is none


@dataclass(frozen=True)
class Source:
    """The run of a search as commands name it; ``network`` is the option that names its network, if it needs one."""

    run: str
    config: SearchConfig
    network: str = ""
    hosts: int = 0  # of that network
    finished: bool = True


def verdict(found: Findings, n_evaluations: int, source: Source | None = None) -> Verdict:
    """The verdict of a search.

    Args:
        found: what the search found: its result, or the findings so far.
        n_evaluations: number of evaluations.
        source: the run, which next steps name; without it there are none.
    """
    said = found.best is not None and n_evaluations >= FEW
    priorities = tuple(pair for pair in found.pair_weights if pair.matters) if said else ()
    apart = said and not priorities and _clearly_worse(found) > 0
    equal = 0 if not said or apart else count_orders(_types(found), priorities)
    if not found.ranking:
        known: list[str] = ["Nothing has been evaluated yet."]
    elif found.best is None:
        known = [_no_best(found)]
    elif n_evaluations < FEW:
        known = [_too_few(n_evaluations)]
    elif priorities:
        known = _what_matters(found, priorities, equal, n_evaluations)
    else:
        known = _nothing_matters(found, n_evaluations)
    sure = _how_sure(found, priorities, said) + (_where(source.config) if source and said else [])
    steps = _next_steps(found, n_evaluations, priorities, source) if source else []
    best = found.best if said and found.best else ""
    return Verdict(tuple(known), tuple(sure), tuple(steps), priorities, equal, best)


def worth(pair: PairEffect) -> str:
    """An effect with its standard error, with as many digits as it deserves."""
    digits = 1 if pair.effect >= 1 else 2
    return f"{pair.effect:.{digits}f} ± {pair.standard_error:.{digits}f}"


def count_orders(types: Sequence[str], priorities: Sequence[PairEffect]) -> int:
    """Number of orders of the types that have all these priorities.

    >>> pair = PairEffect("a", "b", 5.0, 0.3, 0.6, 1.0, True)
    >>> count_orders("abc", [pair])
    3
    """
    places = {name: place for place, name in enumerate(types)}
    before = [0] * len(types)  # bit set of the types that must come earlier
    for pair in priorities:
        before[places[pair.second]] |= 1 << places[pair.first]

    @cache
    def ways(placed: int) -> int:
        left = [place for place in range(len(types)) if not placed >> place & 1]
        return sum(ways(placed | 1 << place) for place in left if not before[place] & ~placed) if left else 1

    return ways(0)


def _types(found: Findings) -> list[str]:
    return found.ranking[0].workflow.split(",")


def _clearly_worse(found: Findings) -> int:
    """Followed orders that are clearly worse than the best one."""
    return sum(row.follows for row in found.ranking) - len(found.equal_to_best)


def _no_best(found: Findings) -> str:
    rows = found.finalists or found.ranking
    what = ("finalist" if found.finalists else "evaluated order") + ("s" if len(rows) > 1 else "")
    all_of = f"{'both' if len(rows) == 2 else f'all {len(rows)}'} {what}" if len(rows) > 1 else f"the only {what}"
    if _shows_nothing(found):
        return f"Nothing is shown: the defenders of {all_of} repair less than once in two games, so no order is best."
    return f"No order is best: the defenders of {all_of} do not follow their order as the threshold asks."


def _shows_nothing(found: Findings) -> bool:
    """Did all defenders repair too seldom to show anything?"""
    return not any(Obedience.read(vars(row)).shown for row in found.finalists or found.ranking)


def _too_few(n_evaluations: int) -> str:
    one = n_evaluations == 1
    return (
        f"No order is best yet: {n_evaluations} evaluation{' is' if one else 's are'} too few to compare orders; "
        f"{FEW - n_evaluations} more would do, {ENOUGH} in all are usual."
    )


def _what_matters(found: Findings, priorities: Sequence[PairEffect], equal: int, n_evaluations: int) -> list[str]:
    def named(pair: PairEffect) -> str:
        return f"{pair.first} before {pair.second} (worth {worth(pair)})"

    first, rest = priorities[:NAMED], priorities[NAMED:]
    if len(priorities) == 1:
        known = [f"Repair {first[0].first} before {first[0].second}: worth {worth(first[0])}."]
    else:
        known = [f"Repair {_listed([named(pair) for pair in first])}."]
    if rest:
        known.append(f"Also {_listed([named(pair) for pair in rest])}.")
    if len(priorities) < len(found.pair_weights):
        known.append(f"Nothing else in the order makes a difference that {n_evaluations} evaluations can show.")
    every, best = math.factorial(len(_types(found))), chain(found.best or "")
    if equal > 1:
        them = "this priority" if len(priorities) == 1 else "these priorities"
        known.append(f"{equal} of the {every} orders have {them} and are equal; take any, such as {best}.")
    elif equal == 1:
        known.append(f"One of the {every} orders has these priorities: {best}.")
    else:
        known.append(f"No order has all of these priorities; the best one is {best}.")
    return known


def _nothing_matters(found: Findings, n_evaluations: int) -> list[str]:
    best, worse, every = chain(found.best or ""), _clearly_worse(found), math.factorial(len(_types(found)))
    evaluated, equals = sum(row.follows for row in found.ranking), len(found.equal_to_best)
    if worse > 0:
        them = "one evaluated order is" if worse == 1 else f"{worse} of the {evaluated} evaluated orders are"
        known = [f"Repair {best}: {them} clearly worse, but no single priority explains it."]
        return [*known, f"{equals} evaluated orders are equal; this is one of them."] if equals > 1 else known
    known = [f"The order makes no difference that {n_evaluations} evaluations can show: all {every} orders are equal."]
    largest = found.pair_weights[0] if found.pair_weights else None
    if largest:
        pair = f"{largest.first} before {largest.second}"
        known.append(f"The largest difference, which may be chance: {pair}, {worth(largest)}.")
    return [*known, f"Take any order, such as {best}."]


def _how_sure(found: Findings, priorities: Sequence[PairEffect], said: bool) -> list[str]:
    sure = []
    if priorities:
        pairs = f"all {len(found.pair_weights)} pairs of unit types" if not found.finalists else "all comparisons"
        lengths = ", and again after half the training" if found.finalists else ""
        sure.append(f"Each priority is clear at 95 % for {pairs} together{lengths}; worth is return per game.")
    sure += _unfollowed(found.finalists, "finalist") + _unfollowed(found.ranking, "evaluated order")
    growing = _growing(found)
    if growing:
        most = max(growing, key=lambda row: row.mean_return - row.half_as_long)
        gain = most.mean_return - most.half_as_long
        sure.append(
            f"{len(growing)} of the {len(found.finalists)} finalists gained up to {gain:.1f} from twice the training: "
            "they have not converged, and figures may change."
        )
    if said and found.level_error is not None:
        sure.append(
            f"The ± of the ranking are for comparisons; the level common to all orders is uncertain by "
            f"{found.level_error:.1f}."
        )
    return sure


def _growing(found: Findings) -> list[FinalistRow]:
    """Finalists that gained clearly from twice the training."""
    return [row for row in found.finalists if row.mean_return - row.half_as_long > math.sqrt(2) * row.interval]


def _where(config: SearchConfig) -> list[str]:
    """What the answer is an answer to."""
    train = config.train
    if is_incident(train.takeover):
        return [f"This is against {train.red_agent}, after a breach that is found after {train.takeover} steps."]
    return [
        f"This is against {train.red_agent} and for a defender that watches from the first step; after a breach that "
        f"is found late (--takeover {BREACH}) another order can be best."
    ]


def _unfollowed(rows: Sequence[FinalistRow] | Sequence[RankingRow], what: str) -> list[str]:
    """How many orders were not followed; nothing if all or none were, which the headline says."""
    bad = [row for row in rows if not (row.followed if isinstance(row, FinalistRow) else row.follows)]
    if not bad or len(bad) == len(rows):
        return []
    was = "was" if len(bad) == 1 else "were"
    effect = "left out" if what != "finalist" else "not compared"
    return [f"{len(bad)} of the {len(rows)} {what}s {was} not followed and {was} {effect}."]


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _next_steps(
    found: Findings, n_evaluations: int, priorities: Sequence[PairEffect], source: Source
) -> list[NextStep]:
    run = shlex.quote(source.run)
    if not source.finished:
        left = max(0, source.config.n_workflows - n_evaluations)
        go_on = NextStep(
            f"Go on if it was interrupted: {left} evaluations are left", f"workflow-rl search --resume {run}"
        )
        return [go_on, NextStep("Look at it so far", f"workflow-rl report {run}")]
    steps = [NextStep("See curves, figures and games in a page", f"workflow-rl report {run}")]
    if found.best is not None:
        steps = [
            NextStep(_defender(found, source), f"workflow-rl watch {run} --episode worst"),
            NextStep("Check it on genuine CybORG", f"workflow-rl evaluate {run} --backend cyborg"),
            *steps,
        ]
    more = _more(found, n_evaluations, priorities, source)
    return [*steps, more] if priorities else [more, *steps]


def _defender(found: Findings, source: Source) -> str:
    """The file of the defender, and how good it is."""
    own = found.defender if isinstance(found, SearchResult) else None
    figures = f" (return {own.mean_return:.1f} ± {own.standard_error:.1f} on fresh games)" if own else ""
    file = own.policy if own else f"{source.run}/policy.safetensors"
    return f"Watch the defender, {file}{figures}"


def _more(found: Findings, n_evaluations: int, priorities: Sequence[PairEffect], source: Source) -> NextStep:
    """The search that would show more."""
    config, train = source.config, source.config.train
    if _growing(found):
        config = replace(config, finish_episodes=0)
    if not found.ranking or (found.best is not None and n_evaluations < FEW):
        what, better = f"Compare orders: {ENOUGH} evaluations", replace(config, n_workflows=ENOUGH)
    elif found.best is None and _shows_nothing(found) and not is_incident(train.takeover):
        task = {name: getattr(train, name) for name in ("red_agent", "edition", "backend", "seed")}
        what, better = (
            "Games after a breach give the defender something to repair",
            make_search_config(hosts=source.hosts, **task, takeover=BREACH),
        )
    elif found.best is None:
        longer = 2 * train.max_episodes
        what, better = (
            f"Train twice as long: {longer} episodes",
            replace(config, train=replace(train, max_episodes=longer)),
        )
    else:
        times = _times(found, priorities)
        what = "Show differences half as large" if priorities or times >= MOST else "Show whether the largest is there"
        if found.finalists:  # their errors, which decide, fall with the number of trainings
            better = replace(config, replicates=min(100, math.ceil(times * config.replicates)))
            what += f": about {better.replicates} trainings of each order"
        else:
            better = replace(config, n_workflows=math.ceil(times * n_evaluations))
            what += f": about {better.n_workflows} evaluations"
    return NextStep(what, command_of(better, source.hosts) + source.network)


def _times(found: Findings, priorities: Sequence[PairEffect]) -> float:
    """How many times the budget would show half the differences or, if none was shown, the largest one seen."""
    if priorities or not found.pair_weights or not found.pair_weights[0].effect:
        return PRECISE
    largest = found.pair_weights[0]
    clear = NormalDist().inv_cdf(1 - 0.025 / len(found.pair_weights))
    return min(MOST, max(2.0, (clear * largest.standard_error / largest.effect) ** 2))
