from __future__ import annotations

import pytest

from workflow_rl.errors import UserError
from workflow_rl.training.workflow import Workflow, all_workflows

FIRST = "defender,enterprise,op_server,op_host,user"


def test_there_are_120_different_workflows_and_the_first_has_the_types_in_their_own_order() -> None:
    assert len(set(all_workflows())) == 120
    assert str(all_workflows()[0]) == FIRST


def test_the_code_has_a_one_at_position_times_five_plus_type() -> None:
    code = Workflow.parse("user,defender,enterprise,op_server,op_host").one_hot()
    assert code.shape == (25,)
    assert code.nonzero()[0].tolist() == [0 * 5 + 4, 1 * 5 + 0, 2 * 5 + 1, 3 * 5 + 2, 4 * 5 + 3]


def test_kendall_distance_counts_pairs_in_the_other_order() -> None:
    first, last = all_workflows()[0], all_workflows()[-1]
    assert first.kendall_distance(first) == 0
    assert first.kendall_distance(last) == last.kendall_distance(first) == 10
    assert first.kendall_distance(Workflow.parse("enterprise,defender,op_server,op_host,user")) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("user,op_server,enterprise,op_host", "'defender' is missing in the workflow"),
        ("user,user,op_server,enterprise,op_host,defender", "'user' appears 2 times in the workflow"),
        ("user,op_server,enterprise,op_host,router", "unknown unit type 'router' in the workflow; allowed: defender"),
        ("", "unknown unit type ''"),
    ],
)
def test_a_wrong_workflow_is_refused_with_its_fault(text: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        Workflow.parse(text)


def test_an_order_can_be_pasted_as_the_answer_shows_it() -> None:
    shown = "enterprise > user > op_server > op_host > defender"
    assert str(Workflow.parse(shown)) == "enterprise,user,op_server,op_host,defender"
