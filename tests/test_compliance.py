"""Hand-computed cases of the definitions in compliance.py: repair, idle fix, due type, violation, compliance, kept."""

from __future__ import annotations

import numpy as np
import pytest

from workflow_rl import CageVectorEnv
from workflow_rl.engine.network import Network
from workflow_rl.engine.tables import EXPLOIT
from workflow_rl.training.compliance import (
    EPISODE_DTYPE,
    FACTS,
    IDLE,
    IN_ORDER,
    NO_TYPE,
    NOT_A_FIX,
    VIOLATION,
    Compliance,
    Obedience,
    due_type,
    judge_fix,
    type_masks,
)
from workflow_rl.training.workflow import Workflow

ORDER = Workflow.parse("user,enterprise,op_server,op_host,defender")
DEFENDER, ENTERPRISE, OP_SERVER, OP_HOST, USER = range(5)


def hosts(network: Network, *names: str) -> np.ndarray:
    """Compromised hosts as one row of ``compromised_before``."""
    return np.array([[name in names for name in network.host_names]])


@pytest.fixture
def compliance(network: Network) -> Compliance:
    return Compliance(network, ORDER.indices()[None], alignment_lambda=30.0)


def step(compliance: Compliance, network: Network, fixed: int, repairs: bool, *compromised: str) -> float:
    repaired = fixed if repairs else NO_TYPE
    return float(compliance.update(np.array([fixed]), np.array([repaired]), hosts(network, *compromised))[0])


def counts(compliance: Compliance) -> list[int]:
    return [int(compliance.episodes[0][name]) for name in ("repairs", "violations", "idle")]


class TestWhatIsARepair:
    """By the true state, in the engine's own blue half of a step; red sleeps unless it is said otherwise."""

    def play(self, network: Network, action: str, host: str, **held: str) -> list[str]:
        """Plays one action with red on some hosts (level: names); returns the repaired type, if any."""
        envs = CageVectorEnv(1, red_agent="sleep")
        envs.reset(seed=0)
        for level, names in held.items():
            envs.game.states[level] |= sum(1 << network.host_names.index(name) for name in names.split())
        infos = envs.step(np.array([network.action_index(action, host)]))[4]
        assert infos["fixed_unit_type"][0] == network.unit_type_index(host)
        repaired = int(infos["repaired_unit_type"][0])
        return [] if repaired == NO_TYPE else [network.unit_types[repaired]]

    def test_a_remove_that_ends_reds_only_session_is(self, network: Network) -> None:
        assert self.play(network, "Remove", "User1", traced="User1") == ["user"]

    def test_a_remove_that_leaves_a_session_is_not(self, network: Network) -> None:
        assert self.play(network, "Remove", "User1", traced="User1", untraced="User1") == []
        assert self.play(network, "Remove", "User1", untraced="User1") == []

    def test_a_remove_on_a_privileged_host_is_not_but_a_restore_is(self, network: Network) -> None:
        assert self.play(network, "Remove", "Enterprise1", privileged="Enterprise1") == []
        assert self.play(network, "Restore", "Enterprise1", privileged="Enterprise1") == ["enterprise"]

    def test_a_fix_of_a_clean_host_is_not_whatever_else_is_compromised(self, network: Network) -> None:
        assert self.play(network, "Restore", "Op_Server0", traced="User1") == []
        assert self.play(network, "Remove", "User2", traced="User1") == []

    def test_a_restore_of_reds_foothold_is_not(self, network: Network) -> None:
        assert self.play(network, "Restore", "User0") == []

    def test_it_is_one_even_if_red_comes_back_in_the_same_step(self, network: Network) -> None:
        envs = CageVectorEnv(1, red_agent="bline")
        envs.reset(seed=3)
        while True:  # until B_line gets in somewhere
            before = envs.snapshot()
            envs.step(np.zeros(1, int))
            after = envs.snapshot()
            taken = int(after["traced"][0]) & ~int(before["traced"][0])
            if after["red_action"][0] == EXPLOIT and taken:
                break
        host = network.host_names[taken.bit_length() - 1]
        envs.game.states[:] = before
        envs.game.states["traced"] |= taken  # as if red had been there already
        infos = envs.step(np.array([network.action_index("Restore", host)]))[4]
        assert infos["red_level"][0, network.host_names.index(host)] == 1
        assert infos["repaired_unit_type"][0] == network.unit_type_index(host)

    def test_the_last_step_of_an_episode_keeps_its_repair_in_final_info(self, network: Network) -> None:
        envs = CageVectorEnv(1, red_agent="sleep", max_steps=1)
        envs.reset(seed=0)
        envs.game.states["traced"] |= 1 << network.host_names.index("User1")
        infos = envs.step(np.array([network.action_index("Remove", "User1")]))[4]
        assert infos["final_info"]["repaired_unit_type"][0] == USER
        assert infos["repaired_unit_type"][0] == NO_TYPE


def test_of_two_compromised_types_the_one_of_higher_priority_is_due(network: Network) -> None:
    masks = type_masks(network)
    both = (1 << network.host_names.index("Enterprise1")) | (1 << network.host_names.index("User3"))
    assert due_type(ORDER.indices(), masks, both) == USER
    assert due_type(Workflow.parse("enterprise,user,op_server,op_host,defender").indices(), masks, both) == ENTERPRISE
    assert due_type(ORDER.indices(), masks, 0) == NO_TYPE


def test_reds_foothold_alone_makes_nothing_due(network: Network) -> None:
    assert due_type(ORDER.indices(), type_masks(network), 1 << network.host_names.index("User0")) == NO_TYPE


def test_a_fix_is_judged_by_what_it_repaired_and_what_was_due() -> None:
    assert judge_fix(NO_TYPE, NO_TYPE, USER) == NOT_A_FIX
    assert judge_fix(USER, NO_TYPE, NO_TYPE) == IDLE
    assert judge_fix(USER, NO_TYPE, USER) == IDLE
    assert judge_fix(ENTERPRISE, NO_TYPE, USER) == IDLE
    assert judge_fix(USER, USER, USER) == IN_ORDER
    assert judge_fix(ENTERPRISE, ENTERPRISE, USER) == VIOLATION


def test_repairing_a_lower_unit_while_a_higher_one_is_compromised_is_a_violation(
    compliance: Compliance, network: Network
) -> None:
    assert step(compliance, network, ENTERPRISE, True, "Enterprise1", "User3") == -30.0
    assert compliance.violations[ENTERPRISE, USER] == 1
    assert counts(compliance) == [1, 1, 0]


def test_an_idle_fix_is_neither_for_nor_against_anybody(compliance: Compliance, network: Network) -> None:
    for fixed in (USER, ENTERPRISE):  # due or not
        assert step(compliance, network, fixed, False, "User3") == 0.0
    assert counts(compliance) == [0, 0, 2]
    assert Obedience.of(compliance.episodes).compliance is None


def test_a_repaired_type_that_is_compromised_again_is_due_again(compliance: Compliance, network: Network) -> None:
    step(compliance, network, USER, True, "User3", "Enterprise0")
    step(compliance, network, ENTERPRISE, True, "Enterprise0")
    assert Obedience.of(compliance.episodes).compliance == 1.0
    step(compliance, network, ENTERPRISE, True, "Enterprise0", "User3")
    assert Obedience.of(compliance.episodes).compliance == pytest.approx(2 / 3)


def test_the_penalty_is_for_violations_and_nothing_is_paid_for_obeying(
    compliance: Compliance, network: Network
) -> None:
    rewards = [
        step(compliance, network, USER, True, "User3"),
        step(compliance, network, ENTERPRISE, True, "User3", "Enterprise0"),
        step(compliance, network, NO_TYPE, False, "User3"),
        step(compliance, network, ENTERPRISE, True, "User3", "Enterprise0"),
    ]
    assert rewards == [0.0, -30.0, 0.0, -30.0]


def test_the_potential_is_lambda_times_the_change_of_the_rate(network: Network) -> None:
    compliance = Compliance(network, ORDER.indices()[None], alignment_lambda=30.0, potential=True)
    rewards = [
        step(compliance, network, USER, True, "User3"),  # 1 of 1: rate 0 -> 1
        step(compliance, network, USER, False, "User3"),  # idle
        step(compliance, network, ENTERPRISE, True, "User3", "Enterprise0"),  # 1 of 2: 1 -> 1/2
        step(compliance, network, USER, True, "User3"),  # 2 of 3: 1/2 -> 2/3
    ]
    assert rewards == pytest.approx([30.0, 0.0, -15.0, 5.0])
    compliance.start_episodes(np.array([True]))
    assert step(compliance, network, USER, True, "User3") == pytest.approx(30.0)


def test_each_environment_has_its_own_workflow(network: Network) -> None:
    other = Workflow.parse("enterprise,user,op_server,op_host,defender")
    both = Compliance(network, np.stack([ORDER.indices(), other.indices()]), alignment_lambda=10.0)
    users = np.array([USER, USER])
    rewards = both.update(users, users, np.repeat(hosts(network, "User3", "Enterprise0"), 2, axis=0))
    assert rewards.tolist() == [0.0, -10.0]


def episodes(*rows: tuple[int, int, int]) -> np.ndarray:
    """Finished episodes with so many repairs, violations and idle fixes."""
    found = np.zeros(len(rows), EPISODE_DTYPE)
    for name, column in zip(("repairs", "violations", "idle"), zip(*rows, strict=True), strict=True):
        found[name] = column
    return found


def test_compliance_is_pooled_over_episodes_and_kept_is_a_share_of_those_with_a_repair() -> None:
    found = Obedience.of(episodes((3, 0, 4), (1, 1, 0), (0, 0, 9), (4, 0, 3)))
    assert found.compliance == pytest.approx(1 - 1 / 8)  # and not the mean of 1, 0 and 1
    assert found.kept == pytest.approx(2 / 3)
    assert (found.repairs, found.idle_fixes) == (2.0, 4.0)


def test_the_error_of_compliance_is_that_of_repeated_looks() -> None:
    rng = np.random.default_rng(5)

    def look() -> Obedience:
        repairs = rng.poisson(3, 500)
        return Obedience.of(episodes(*((n, int(rng.binomial(n, 0.02)), 0) for n in repairs.tolist())))

    looks = [look() for _ in range(300)]
    spread = np.std([one.compliance or 0.0 for one in looks])
    assert np.mean([one.compliance_error for one in looks if one.compliance_error is not None]) == pytest.approx(
        spread, rel=0.15
    )


def test_without_a_repair_nothing_is_defined_and_nothing_is_followed() -> None:
    found = Obedience.of(episodes((0, 0, 7), (0, 0, 1)))
    assert (found.compliance, found.compliance_error, found.kept) == (None, None, None)
    assert found.words() == "nothing shown: 0.0 repairs and 4.0 idle fixes per episode"
    assert not found.follows(0.0)


def test_less_than_one_repair_in_two_episodes_shows_nothing() -> None:
    assert not Obedience.of(episodes((1, 0, 0), (0, 0, 0), (0, 0, 0))).follows(0.5)
    assert Obedience.of(episodes((1, 0, 0), (0, 0, 0))).follows(1.0)


def test_an_order_is_followed_if_compliance_and_kept_both_reach_the_threshold() -> None:
    seldom = Obedience.of(episodes(*[(30, 1, 0)] * 10))
    assert seldom.compliance == pytest.approx(29 / 30)
    assert not seldom.follows(0.95)  # no episode without a violation
    assert Obedience.of(episodes(*[(30, 0, 0)] * 19, (30, 1, 0))).follows(0.95)


def test_pooling_trainings_is_pooling_their_episodes() -> None:
    left, right = episodes((3, 1, 0), (2, 0, 2)), episodes((8, 0, 0), (1, 0, 0))
    pooled, whole = (
        Obedience.pool([Obedience.of(left), Obedience.of(right)]),
        Obedience.of(np.concatenate([left, right])),
    )
    assert pooled.compliance == pytest.approx(whole.compliance)
    assert (pooled.repairs, pooled.idle_fixes, pooled.kept) == (whole.repairs, whole.idle_fixes, whole.kept)
    nothing = Obedience.of(episodes((0, 0, 1)))
    assert Obedience.pool([nothing, nothing]).compliance is None
    assert Obedience.pool([nothing, Obedience.of(right)]).compliance == 1.0


def test_the_facts_that_environments_tell_are_enough_to_count(network: Network) -> None:
    envs = CageVectorEnv(50, red_agent="bline", max_steps=None)
    envs.reset(seed=1)
    compliance = Compliance(network, np.tile(ORDER.indices(), (50, 1)))
    rng = np.random.default_rng(1)
    fixes = [action for action in range(145) if envs.game.fixed_unit_type[action] != NO_TYPE]
    for _ in range(100):
        infos = envs.step(rng.choice(fixes, 50))[4]
        compliance.update(*(infos[name] for name in FACTS))
    total = compliance.episodes
    assert (total["repairs"] + total["idle"] == 100).all()
    assert 0 < total["violations"].sum() == compliance.violations.sum() < total["repairs"].sum()
