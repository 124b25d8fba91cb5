"""The answer of a search in words, and how an order was kept, for the terminal and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workflow_rl.search.findings import FinalistRow, Findings, PairEffect, RankingRow, SearchResult
from workflow_rl.training.compliance import Obedience

FEW = 6  # evaluations below which nothing is said about differences
SAME = "are statistically indistinguishable"
FINALIST_COLUMNS = ["return", "half as long", "compliance", "kept", "repairs", "idle fixes", "reverses"]
OBEDIENCE_COLUMNS = ["compliance", "kept", "repairs", "idle fixes"]


def decimals(value: float | None, digits: int) -> str:
    """A figure as a cell of a table; empty if it is undefined."""
    return "" if value is None else f"{value:.{digits}f}"


def finalist_rows(finalists: Sequence[FinalistRow]) -> list[list[str]]:
    """The finalists as rows of a table: the workflow and FINALIST_COLUMNS."""
    return [
        [
            row.workflow, f"{row.mean_return:.2f} ± {row.standard_error:.2f}", f"{row.half_as_long:.2f}",
            decimals(row.compliance, 3) or "nothing shown", decimals(row.kept, 3), f"{row.repairs:.1f}",
            f"{row.idle_fixes:.1f}", row.reverses + ("" if row.followed else " (NOT followed)"),
        ]
        for row in finalists
    ]  # fmt: skip


def against_best(row: RankingRow, digits: int) -> str:
    """How a workflow of the ranking compares with the best."""
    if not row.follows:
        return "not followed"
    return "= best" if row.equal_to_best else f"{row.behind_best:.{digits}f} ± {row.behind_error:.{digits}f} behind"


def sentences(result: SearchResult) -> list[str]:
    """The whole answer of a finished search."""
    lines = findings_in_words(result, result.evaluations)
    if result.defender:
        found = result.defender
        lines.append(
            f"The best of its {result.replicates} defenders is in {found.policy}: return {found.mean_return:.2f} ± "
            f"{found.standard_error:.2f}, {Obedience.read(vars(found)).words()}, on fresh games."
        )
    lines.append(f"{result.seconds:.1f} s, {result.transitions / 1e6:.1f} M transitions. All in {result.run}.")
    return [*lines, f"Report: {result.report}"] if result.report else lines


def findings_in_words(found: Findings, n_evaluations: int) -> list[str]:
    """What the evaluations of a search show, however many there are so far."""
    level = "to an unknown degree" if found.level_error is None else f"by {found.level_error:.1f}"
    about = (
        f"(In the ranking ± is for comparisons. The level common to all its workflows is uncertain {level}; "
        f"learned training noise: {found.training_noise:.2f}.)"
    )
    return ["", *_answer(found, n_evaluations), *_priorities(found.pair_weights, n_evaluations), about]


def _answer(found: Findings, n_evaluations: int) -> list[str]:
    """Which workflow is best, and which are as good."""
    followed, equals = sum(row.follows for row in found.ranking), len(found.equal_to_best)
    if found.best is None:
        what = "finalist" if found.finalists else "workflow"
        return [f"No {what} is followed as the threshold asks; there is no best one."]
    lines = [f"Best workflow: repair {in_words(found.best)}."]
    if n_evaluations < FEW:
        lines.append(f"{n_evaluations} evaluations are too few to compare workflows.")
    elif equals == followed > 1:
        lines.append(f"But all {followed} evaluated workflows {SAME}: any of them will do.")
    elif equals > 1:
        lines.append(f"{equals} of the {followed} evaluated and followed workflows {SAME} from it.")
    return lines


def _priorities(pairs: Sequence[PairEffect], n_evaluations: int) -> list[str]:
    """Which priorities matter, by the finished trainings if there are any."""
    matter, rest = ([pair for pair in pairs if pair.matters is wanted] for wanted in (True, False))
    if n_evaluations < FEW:
        return [f"Which priorities matter can be said after {FEW} evaluations or more."]
    if not matter:
        return [f"No priority between two unit types clearly matters; the largest: {_effect(rest[0])}."]
    lines = ["What matters:", *(f"  {_effect(pair)}" for pair in matter)]
    if rest:
        lines.append(f"No clear effect of the other {len(rest)} pairs; the largest: {_effect(rest[0])}.")
    return lines


def _effect(pair: PairEffect) -> str:
    digits = 1 if pair.effect >= 1 else 2
    figure = f"{pair.effect:+.{digits}f} ± {pair.standard_error:.{digits}f}"
    where = "" if pair.half_as_long is None else f" (trained half as long {pair.half_as_long:+.{digits}f})"
    return f"{pair.first} before {pair.second}: {figure} return{where}"


def in_words(workflow: str) -> str:
    """A workflow as a sentence.

    >>> in_words("enterprise,user,op_server")
    'enterprise first, then user, then op_server'
    """
    first, *rest = workflow.split(",")
    return f"{first} first" + "".join(f", then {name}" for name in rest)


def obedience_cells(found: Mapping[str, Any]) -> list[str]:
    """How an order was kept, as OBEDIENCE_COLUMNS of a table; repairs and idle fixes are those of an episode."""
    own = Obedience.read(found)
    kept = [f"{own.compliance:.3f} ± {own.compliance_error:.3f}", f"{own.kept:.3f}"] if own.shown else [own.words(), ""]
    return [*kept, f"{own.repairs:.1f}", f"{own.idle_fixes:.1f}"]
