"""The verdict of a search: the sentences that a person reads, case by case."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest

from workflow_rl.config import chain
from workflow_rl.presets import make_search_config
from workflow_rl.search.findings import FinalistRow, Findings, PairEffect, RankingRow, row_from_json
from workflow_rl.search.verdict import FEW, Source, count_orders, verdict

TYPES = ("enterprise", "op_server", "user")
ORDERS = [",".join(order) for order in permutations(TYPES)]
BEST = ORDERS[0]
USER = PairEffect("enterprise", "user", 5.03, 0.31, 0.6, 1.0, True)
SERVER = PairEffect("op_server", "user", 2.0, 0.3, 0.6, 1.0, True)
SMALL = PairEffect("enterprise", "op_server", 0.13, 0.6, 1.2, 1.0, False)
SOURCE = Source("runs/one", make_search_config())
EVERY = "Each priority is clear at 95 % for all 3 pairs of unit types together; worth is return per game."
LEVEL = "The ± of the ranking are for comparisons; the level common to all orders is uncertain by 0.4."
HERE = (
    "This is against bline and for a defender that watches from the first step; after a breach that is found late "
    "(--takeover 30) another order can be best."
)
FEW_SAID = "too few to compare orders; {} more would do, 20 in all are usual."
REPORT = "workflow-rl report runs/one"
DEFENDER = ["workflow-rl watch runs/one --episode worst", "workflow-rl evaluate runs/one --backend cyborg", REPORT]


def ranked(follows: int = 6, equal: int = 6, repairs: float = 3.0) -> list[RankingRow]:
    """All orders; the first ones are followed, and of these the first are equal to the best."""
    shown: dict[str, Any] = {"compliance": 0.99, "compliance_error": 0.01, "kept": 0.98, "idle_fixes": 1.0}
    return [
        row_from_json(RankingRow, shown | {
            "workflow": order, "mean_return": -15.0 - place, "standard_error": 0.5, "repairs": repairs,
            "follows": place < follows, "equal_to_best": place < min(follows, equal),
        })
        for place, order in enumerate(ORDERS)
    ]  # fmt: skip


def finalist(workflow: str, followed: bool = True, gain: float = 0.0) -> FinalistRow:
    return FinalistRow(
        workflow,
        "",
        -14.0,
        0.2,
        0.5,
        -14.0 - gain,
        followed,
        0.99,
        0.01,
        0.98,
        repairs=3.0,
        idle_fixes=1.0,
        updates=700,
    )


def found(*pairs: PairEffect, best: str | None = BEST, rows: list[RankingRow] | None = None, **other: Any) -> Findings:
    """Findings with these effects of pairs, largest first."""
    rows = ranked() if rows is None else rows
    equal = [row.workflow for row in rows if row.equal_to_best] if best else []
    return Findings(best, equal, other.get("finalists", []), list(pairs), rows, 0.5, 0.4)


REVERSED = replace(SERVER, matters=False, effect=1.5, standard_error=1.0)
CASES = {
    "nothing evaluated": (
        found(best=None, rows=[]), 0,
        ["Nothing has been evaluated yet."], [], 0, "",
        ["workflow-rl search", REPORT],
    ),
    "one": (
        found(SMALL), 1,
        ["No order is best yet: 1 evaluation is " + FEW_SAID.format(5)], [], 0, "",
        ["workflow-rl search", *DEFENDER],
    ),
    "five": (
        found(USER, SMALL), 5,
        ["No order is best yet: 5 evaluations are " + FEW_SAID.format(1)], [], 0, "",
        ["workflow-rl search", *DEFENDER],
    ),
    "all equal": (
        found(REVERSED, SMALL), 20,
        ["The order makes no difference that 20 evaluations can show: all 6 orders are equal.",
         "The largest difference, which may be chance: op_server before user, 1.5 ± 1.0.",
         "Take any order, such as enterprise > op_server > user."],
        [LEVEL, HERE], 6, BEST,
        ["workflow-rl search --n-workflows 45", *DEFENDER],
    ),
    "one clear pair": (
        found(USER, SMALL, REVERSED, rows=ranked(equal=3)), 20,
        ["Repair enterprise before user: worth 5.0 ± 0.3.",
         "Nothing else in the order makes a difference that 20 evaluations can show.",
         "3 of the 6 orders have this priority and are equal; take any, such as enterprise > op_server > user."],
        [EVERY, LEVEL, HERE], 3, BEST,
        [*DEFENDER, "workflow-rl search --n-workflows 80"],
    ),
    "two clear pairs": (
        found(USER, SERVER, SMALL, rows=ranked(equal=2)), 20,
        ["Repair enterprise before user (worth 5.0 ± 0.3) and op_server before user (worth 2.0 ± 0.3).",
         "Nothing else in the order makes a difference that 20 evaluations can show.",
         "2 of the 6 orders have these priorities and are equal; take any, such as enterprise > op_server > user."],
        [EVERY, LEVEL, HERE], 2, BEST,
        [*DEFENDER, "workflow-rl search --n-workflows 80"],
    ),
    "all pairs clear": (
        found(USER, SERVER, replace(SMALL, matters=True, effect=1.2), rows=ranked(equal=1)), 20,
        ["Repair enterprise before user (worth 5.0 ± 0.3), op_server before user (worth 2.0 ± 0.3) and enterprise "
         "before op_server (worth 1.2 ± 0.6).",
         "One of the 6 orders has these priorities: enterprise > op_server > user."],
        [EVERY, LEVEL, HERE], 1, BEST,
        [*DEFENDER, "workflow-rl search --n-workflows 80"],
    ),
    "worse orders without a clear pair": (
        found(REVERSED, SMALL, rows=ranked(equal=4)), 20,
        ["Repair enterprise > op_server > user: 2 of the 6 evaluated orders are clearly worse, but no single priority "
         "explains it.", "4 evaluated orders are equal; this is one of them."],
        [LEVEL, HERE], 0, BEST,
        ["workflow-rl search --n-workflows 45", *DEFENDER],
    ),
    "best not followed": (
        found(USER, SMALL, best=None, rows=ranked(follows=0)), 20,
        ["No order is best: the defenders of all 6 evaluated orders do not follow their order as the threshold asks."],
        [], 0, "",
        ["workflow-rl search --max-episodes 100", REPORT],
    ),
    "few, and none followed": (
        found(USER, SMALL, best=None, rows=ranked(follows=0)[:2]), 2,
        ["No order is best: the defenders of both evaluated orders do not follow their order as the threshold asks."],
        [], 0, "",
        ["workflow-rl search --max-episodes 100", REPORT],
    ),
    "nothing shown": (
        found(USER, SMALL, best=None, rows=ranked(follows=0, repairs=0.3)), 20,
        ["Nothing is shown: the defenders of all 6 evaluated orders repair less than once in two games, so no order is "
         "best."],
        [], 0, "",
        ["workflow-rl search --takeover 30", REPORT],
    ),
    "damaged trainings": (
        found(replace(USER, half_as_long=4.8), SMALL, rows=ranked(follows=4, equal=3),
              finalists=[finalist(BEST, gain=3.2), finalist(ORDERS[3]), finalist(ORDERS[1], followed=False)]), 20,
        ["Repair enterprise before user: worth 5.0 ± 0.3.",
         "Nothing else in the order makes a difference that 20 evaluations can show.",
         "3 of the 6 orders have this priority and are equal; take any, such as enterprise > op_server > user."],
        ["Each priority is clear at 95 % for all comparisons together, and again after half the training; worth is "
         "return per game.",
         "1 of the 3 finalists was not followed and was not compared.",
         "2 of the 6 evaluated orders were not followed and were left out.",
         "1 of the 3 finalists gained up to 3.2 from twice the training: they have not converged, and figures may "
         "change.",
         LEVEL, HERE], 3, BEST,
        [*DEFENDER, "workflow-rl search --replicates 8"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_person_reads_what_is_known_how_sure_it_is_and_what_to_do(case: str) -> None:
    findings, n_evaluations, known, sure, equal, best, commands = CASES[case]
    said = verdict(findings, n_evaluations, SOURCE)
    assert list(said.known) == known
    assert list(said.sure) == sure
    assert (said.equal_orders, said.best) == (equal, best)
    assert [step.command for step in said.next_steps] == commands
    matter = [pair for pair in findings.pair_weights if pair.matters]
    assert list(said.priorities) == (matter if best else [])


def test_a_running_search_is_not_told_to_start_again() -> None:
    config = make_search_config(n_workflows=30)
    said = verdict(found(USER, SMALL), 12, Source("runs/my run", config, " --network plant", finished=False))
    assert said.known[0] == "Repair enterprise before user: worth 5.0 ± 0.3."
    assert [(step.what, step.command) for step in said.next_steps] == [
        ("Go on if it was interrupted: 18 evaluations are left", "workflow-rl search --resume 'runs/my run'"),
        ("Look at it so far", "workflow-rl report 'runs/my run'"),
    ]


def test_a_command_repeats_the_settings_and_the_network_of_the_run() -> None:
    config = make_search_config(red_agent="meander", n_workflows=3, seed=7)
    step = verdict(found(SMALL), 3, Source("runs/one", config, " --network plant")).next_steps[0]
    assert step.what == "Compare orders: 20 evaluations"
    assert step.command == "workflow-rl search --red-agent meander --seed 7 --network plant"


def test_many_priorities_do_not_make_the_headline_longer() -> None:
    names = "abcde"
    pairs = [PairEffect(a, b, 9.0 - i, 0.1, 0.2, 1.0, True) for i, (a, b) in enumerate(pairwise(names))]
    row = replace(ranked()[0], workflow=",".join(names))
    said = verdict(replace(found(*pairs, rows=[row]), best=row.workflow), 20)
    assert said.known[0].count("before") == 3
    assert said.known[1] == "Also d before e (worth 6.0 ± 0.1)."
    assert said.equal_orders == 1


def test_the_number_of_equal_orders_is_that_of_all_orders_with_the_priorities() -> None:
    types = ("a", "b", "c", "d", "e")
    pairs = [
        PairEffect(first, second, 1.0, 0.1, 0.2, 1.0, True) for first, second in (("a", "c"), ("b", "c"), ("c", "e"))
    ]
    have = [o for o in permutations(types) if all(o.index(p.first) < o.index(p.second) for p in pairs)]
    assert count_orders(types, pairs) == len(have)
    assert count_orders(types, []) == math.factorial(5)
    circle = [*pairs, replace(pairs[0], first="e", second="a")]
    assert count_orders(types, circle) == 0
    said = verdict(found(USER, SMALL, replace(USER, first="user", second="enterprise")), FEW)
    assert said.known[-1] == f"No order has all of these priorities; the best one is {chain(BEST)}."
