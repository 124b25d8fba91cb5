"""The defender by rules: every rule is used and has its reason, and together they hold what the results page says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.helpers import run, run_json
from workflow_rl.defenders.expert import RULES, WAIT, advice
from workflow_rl.defenders.protocol import evaluate, reference_policy
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.views import View, ViewedEnvs


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
def test_every_rule_is_used_and_says_why(edition: str) -> None:
    used: Counter[int] = Counter()
    for red_agent in ("bline", "meander"):
        envs = ViewedEnvs(CageVectorEnv(400, red_agent=red_agent, edition=edition), View("memory", "full"))
        envs.reset(seed=1)
        for _ in range(100):
            actions, rules = advice(envs.memories, edition == "leaderboard")
            used.update(rules.tolist())
            envs.step(actions)
    missing = {RULES[i].name for i in range(len(RULES))} - {RULES[i].name for i in used}
    assert missing == (set() if edition == "leaderboard" else {"spoil Haraka"})
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(len(rule.reason) > 30 for rule in RULES)


@pytest.mark.parametrize(("edition", "total"), [("current", -51.9), ("leaderboard", -44.1)])
def test_the_expert_defends_better_than_the_official_winner(edition: str, total: float) -> None:
    """The results page has -51.4 and -43.6; the official winner had -54.57. Four standard errors of slack."""
    blue = reference_policy("expert", load_network(), edition)
    cells = [evaluate(blue, red, edition, 4000, seed=3) for red in ("bline", "meander")]
    assert sum(cell.mean for row in cells for cell in row.values()) > total


def test_against_a_sleeping_red_it_costs_nothing_and_does_nothing() -> None:
    cells = evaluate(reference_policy("expert", load_network()), "sleep", n_episodes=20)
    assert all(cell.mean == 0 for cell in cells.values())
    envs = ViewedEnvs(CageVectorEnv(1, red_agent="sleep"), View("memory", "full"))
    envs.reset(seed=0)
    for step in range(100):
        actions, rules = advice(envs.memories, False)
        assert step < 2 or rules[0] == WAIT
        envs.step(actions)


def test_it_acts_the_same_whatever_is_played_beside_it() -> None:
    envs = ViewedEnvs(CageVectorEnv(30, red_agent="bline,meander"), View("memory", "full"))
    envs.reset(seed=5)
    for _ in range(100):
        memories = envs.packed_observations
        actions, _ = advice(memories, True)
        alone = np.concatenate([advice(memories[i : i + 1], True)[0] for i in range(30)])
        assert np.array_equal(actions, alone)
        envs.step(actions)


def test_watch_names_the_rules_and_their_reasons() -> None:
    story = run_json("watch", "expert", "--red-agent", "meander", "--episode", "0")
    reasons = [frame["reason"] for frame in story["frames"]]
    assert reasons[0] == f"opening: {RULES[1].reason}"
    assert all(reason.partition(":")[0] in {rule.name for rule in RULES} for reason in reasons)
    lines = run("watch", "expert", "--episode", "0").stdout.splitlines()
    assert lines[1].endswith("(opening)")
