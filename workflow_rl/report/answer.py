"""What was found, in words: the answer of a search, its finalists, and how an order was kept, for every reader."""

from __future__ import annotations

from typing import Any

from workflow_rl.config import opponent_words
from workflow_rl.training.compliance import Obedience

FEW = 6  # evaluations below which nothing is said about differences


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _opponent(result: dict[str, Any]) -> str:
    return opponent_words(result["red_agent"], result.get("takeover", "0"))


FINALIST_COLUMNS = ["return", "half as long", "compliance", "kept", "repairs", "idle fixes", "reverses"]


def finalist_rows(result: dict[str, Any]) -> list[list[str]]:
    """The finalists as rows of a table: the workflow and FINALIST_COLUMNS."""
    return [
        [
            row["workflow"], f"{row['mean_return']:.2f} ± {row['standard_error']:.2f}", f"{row['half_as_long']:.2f}",
            _number(row["compliance"], 3) or "nothing shown", _number(row["kept"], 3), f"{row['repairs']:.1f}",
            f"{row['idle_fixes']:.1f}", row["reverses"] + ("" if row["followed"] else " (NOT followed)"),
        ]
        for row in result["finalists"]
    ]  # fmt: skip


def sentences(result: dict[str, Any]) -> list[str]:
    """The answer to the user, plainly."""
    lines = ["", *_answer(result), *_priorities(result)]
    level = "to an unknown degree" if result["level_error"] is None else f"by {result['level_error']:.1f}"
    lines.append(
        f"(In the ranking ± is for comparisons. The level common to all its workflows is uncertain {level}; "
        f"training noise as learned: {result['training_noise']:.2f}.)"
    )
    if result["defender"]:
        found = result["defender"]
        lines.append(
            f"The best of its {result['replicates']} defenders is in {found['policy']}: return "
            f"{found['mean_return']:.2f} ± {found['standard_error']:.2f}, {Obedience.read(found).words()}, on games of "
            "its own."
        )
    lines.append(f"{result['seconds']:.1f} s, {result['transitions'] / 1e6:.1f} M transitions. All in {result['run']}.")
    if "report" in result:
        lines.append(f"To look at: {result['report']}")
    return lines


def _answer(result: dict[str, Any]) -> list[str]:
    """Which workflow is best, and which are as good."""
    followed = sum(row["follows"] for row in result["ranking"])
    equals = len(result["equal_to_best"])
    if result["best"] is None:
        what = "finalist" if result["finalists"] else "workflow"
        return [f"No {what} is followed as the threshold asks; there is no best one."]
    lines = [f"Best workflow: repair {in_words(result['best'])}."]
    if result["evaluations"] < FEW:
        lines.append(f"{result['evaluations']} evaluations are too few to tell workflows apart.")
    elif equals == followed > 1:
        lines.append(f"But none of the {followed} evaluated workflows can be told apart from it: any of them will do.")
    elif equals > 1:
        lines.append(f"{equals} of the {followed} evaluated and followed workflows cannot be told apart from it.")
    return lines


def _priorities(result: dict[str, Any]) -> list[str]:
    """Which priorities matter, by the finished trainings if there are any."""
    pairs = result["pair_weights"]
    matter, rest = ([pair for pair in pairs if pair["matters"] is wanted] for wanted in (True, False))
    if result["evaluations"] < FEW:
        return [f"Which priorities matter can be said after {FEW} evaluations or more."]
    if not matter:
        return [f"No priority between two unit types clearly matters; the largest: {_effect(rest[0])}."]
    lines = ["What matters:", *(f"  {_effect(pair)}" for pair in matter)]
    return lines + ([f"Nothing clear of the other {len(rest)} pairs; the largest: {_effect(rest[0])}."] if rest else [])


def _effect(pair: dict[str, Any]) -> str:
    digits = 1 if pair["effect"] >= 1 else 2
    figure = f"{pair['effect']:+.{digits}f} ± {pair['standard_error']:.{digits}f}"
    where = "" if pair["half_as_long"] is None else f" (trained half as long {pair['half_as_long']:+.{digits}f})"
    return f"{pair['first']} before {pair['second']}: {figure} return{where}"


def in_words(workflow: str) -> str:
    """A workflow as a sentence.

    >>> in_words("enterprise,user,op_server")
    'enterprise first, then user, then op_server'
    """
    first, *rest = workflow.split(",")
    return f"{first} first" + "".join(f", then {name}" for name in rest)


OBEDIENCE_COLUMNS = ["compliance", "kept", "repairs", "idle fixes"]


def obedience_cells(found: dict[str, Any]) -> list[str]:
    """How an order was kept, as cells of a table; repairs and idle fixes are those of an episode."""
    own = Obedience.read(found)
    kept = [f"{own.compliance:.3f} ± {own.compliance_error:.3f}", f"{own.kept:.3f}"] if own.shown else [own.words(), ""]
    return [*kept, f"{own.repairs:.1f}", f"{own.idle_fixes:.1f}"]
