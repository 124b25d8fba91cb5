"""Hand-computed cases of the definitions in compliance.py."""

from __future__ import annotations

import numpy as np
import pytest

from workflow_rl.compliance import (
    COMPLIANT,
    NO_TYPE,
    NOT_A_FIX,
    PREVENTIVE,
    VIOLATION,
    Compliance,
    due_type,
    judge_fix,
    type_masks,
)
from workflow_rl.scenario import Scenario
from workflow_rl.workflow import Workflow

ORDER = Workflow.parse("user,enterprise,op_server,op_host,defender")
DEFENDER, ENTERPRISE, OP_SERVER, OP_HOST, USER = range(5)


def hosts(scenario: Scenario, *names: str) -> np.ndarray:
    """Compromised hosts as one row of ``compromised_before``."""
    return np.array([[name in names for name in scenario.host_names]])


@pytest.fixture
def compliance(scenario: Scenario) -> Compliance:
    return Compliance(scenario, ORDER.indices()[None], alignment_lambda=30.0)


def step(compliance: Compliance, scenario: Scenario, fixed: int, *compromised: str) -> float:
    return float(compliance.update(np.array([fixed]), hosts(scenario, *compromised))[0])


def test_of_two_compromised_types_the_one_of_higher_priority_is_due(scenario: Scenario) -> None:
    masks = type_masks(scenario)
    both = (1 << scenario.host_names.index("Enterprise1")) | (1 << scenario.host_names.index("User3"))
    assert due_type(ORDER.indices(), masks, both) == USER
    assert due_type(Workflow.parse("enterprise,user,op_server,op_host,defender").indices(), masks, both) == ENTERPRISE
    assert due_type(ORDER.indices(), masks, 0) == NO_TYPE


def test_a_fix_is_judged_by_the_type_that_was_due() -> None:
    assert judge_fix(NO_TYPE, USER) == NOT_A_FIX
    assert judge_fix(USER, NO_TYPE) == PREVENTIVE
    assert judge_fix(USER, USER) == COMPLIANT
    assert judge_fix(ENTERPRISE, USER) == VIOLATION


def test_restoring_a_lower_unit_while_a_higher_one_is_compromised_is_a_violation(
    compliance: Compliance, scenario: Scenario
) -> None:
    assert step(compliance, scenario, ENTERPRISE, "Enterprise1", "User3") == 0.0
    assert compliance.violations[ENTERPRISE, USER] == 1
    assert [compliance.episodes[0][name] for name in ("counted", "compliant", "preventive")] == [1, 0, 0]
    assert compliance.rates()[0] == 0.0


def test_a_fix_with_nothing_compromised_is_preventive_and_changes_no_rate(
    compliance: Compliance, scenario: Scenario
) -> None:
    assert step(compliance, scenario, OP_SERVER) == 0.0
    assert [compliance.episodes[0][name] for name in ("counted", "preventive")] == [0, 1]
    assert np.isnan(compliance.rates()[0])


def test_reds_foothold_alone_counts_as_nothing_compromised(compliance: Compliance, scenario: Scenario) -> None:
    assert step(compliance, scenario, USER, "User0") == 0.0
    assert [compliance.episodes[0][name] for name in ("counted", "preventive")] == [0, 1]


def test_a_repaired_type_that_is_compromised_again_is_due_again(compliance: Compliance, scenario: Scenario) -> None:
    step(compliance, scenario, USER, "User3", "Enterprise0")
    step(compliance, scenario, ENTERPRISE, "Enterprise0")
    assert compliance.rates()[0] == 1.0
    step(compliance, scenario, ENTERPRISE, "Enterprise0", "User3")
    assert compliance.rates()[0] == pytest.approx(2 / 3)


def test_the_alignment_reward_is_lambda_times_the_change_of_the_rate(
    compliance: Compliance, scenario: Scenario
) -> None:
    rewards = [
        step(compliance, scenario, USER, "User3"),  # 1 of 1: rate 0 -> 1
        step(compliance, scenario, ENTERPRISE, "User3"),  # 1 of 2: 1 -> 1/2
        step(compliance, scenario, -1, "User3"),  # no fix
        step(compliance, scenario, USER, "User3"),  # 2 of 3: 1/2 -> 2/3
    ]
    assert rewards == pytest.approx([30.0, -15.0, 0.0, 5.0])
    assert sum(rewards) == pytest.approx(30 * compliance.rates()[0])


def test_an_episode_without_a_counted_fix_has_no_compliance(compliance: Compliance, scenario: Scenario) -> None:
    step(compliance, scenario, -1, "User3")
    assert np.isnan(compliance.rates()[0])


def test_the_end_of_an_episode_starts_the_rate_at_zero_again(compliance: Compliance, scenario: Scenario) -> None:
    step(compliance, scenario, USER, "User3")
    compliance.start_episodes(np.array([True]))
    assert np.isnan(compliance.rates()[0])
    assert step(compliance, scenario, USER, "User3") == pytest.approx(30.0)


def test_a_reward_per_fix_is_paid_for_every_counted_fix(scenario: Scenario) -> None:
    """For comparison with the potential, which pays nothing for the second compliant fix in a row."""
    compliance = Compliance(scenario, ORDER.indices()[None], alignment_lambda=3.0, per_fix=True)
    assert step(compliance, scenario, USER, "User3") == 3.0
    assert step(compliance, scenario, USER, "User3") == 3.0
    assert step(compliance, scenario, ENTERPRISE, "User3") == -3.0
    assert step(compliance, scenario, USER) == 0.0
    assert step(compliance, scenario, -1, "User3") == 0.0
    assert compliance.rates().tolist() == [pytest.approx(2 / 3)]


def test_each_environment_has_its_own_workflow(scenario: Scenario) -> None:
    other = Workflow.parse("enterprise,user,op_server,op_host,defender")
    both = Compliance(scenario, np.stack([ORDER.indices(), other.indices()]), alignment_lambda=10.0)
    rewards = both.update(np.array([USER, USER]), np.repeat(hosts(scenario, "User3", "Enterprise0"), 2, axis=0))
    assert rewards.tolist() == [10.0, 0.0]
    assert both.rates().tolist() == [1.0, 0.0]
