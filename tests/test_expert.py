"""The defender by rules: every rule is used and has its reason, and together they hold what the results page says."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from tests.helpers import run, run_json
from workflow_rl.defenders.expert import RULES, TYPES, WAIT, advice
from workflow_rl.defenders.protocol import evaluate, reference_policy
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.views import View, ViewedEnvs
from workflow_rl.training.compliance import FACTS, Compliance, Obedience

USERS_FIRST = np.array([4, 2, 1, 3, 0])


def play_told(order: np.ndarray, red_agent: str, n_games: int, takeover: int = 0) -> tuple[np.ndarray, Obedience]:
    """Returns of games of 100 steps with the expert that is told an order, and how well it follows it."""
    envs = ViewedEnvs(CageVectorEnv(n_games, red_agent=red_agent, max_steps=None), View("memory", "full"))
    envs.reset(seed=17, options={"takeover": [str(takeover)] * n_games})
    judged, total = Compliance(load_network(), np.tile(order, (n_games, 1))), np.zeros(n_games)
    for _ in range(100):
        _, rewards, _, _, infos = envs.step(advice(envs.memories, False, order)[0])
        judged.update(*(infos[name] for name in FACTS))
        total += rewards
    return total, Obedience.of(judged.episodes)


def test_hosts_have_the_scenarios_types() -> None:
    network = load_network()
    assert TYPES.tolist() == [network.unit_type_index(name) for name in network.host_names]


@pytest.mark.parametrize("order", [*permutations((1, 2, 3, 4))][::5], ids=str)
def test_told_an_order_it_keeps_it_against_meander_and_loses_nothing(order: tuple[int, ...]) -> None:
    total, found = play_told(np.array([*order, 0]), "meander", 1000)
    assert found.follows(0.98)
    assert total.mean() > -15.5


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
def test_every_rule_is_used_and_says_why(edition: str) -> None:
    used: Counter[int] = Counter()
    for red_agent in ("bline", "meander"):
        envs = ViewedEnvs(CageVectorEnv(2000, red_agent=red_agent, edition=edition), View("memory", "full"))
        envs.reset(seed=1)
        for _ in range(100):
            actions, rules = advice(envs.memories, edition == "leaderboard")
            used.update(rules.tolist())
            used.update(advice(envs.memories, edition == "leaderboard", USERS_FIRST)[1].tolist())
            envs.step(actions)
    for takeover, green in ((30, "sleep"), (5, "sleep"), (0, "active")):
        envs = ViewedEnvs(CageVectorEnv(400, green_agent=green, takeover=takeover), View("memory", "full"))
        envs.reset(seed=1)
        for _ in range(50):
            actions, rules = advice(envs.memories, edition == "leaderboard")
            used.update(rules.tolist())
            envs.step(actions)
    missing = {RULES[i].name for i in range(len(RULES))} - {RULES[i].name for i in used}
    assert missing == (set() if edition == "leaderboard" else {"spoil Haraka"})
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(len(rule.reason) > 30 for rule in RULES)


@pytest.mark.parametrize(("edition", "total"), [("current", -51.3), ("leaderboard", -43.0)])
def test_the_expert_defends_better_than_the_official_winner(edition: str, total: float) -> None:
    """The results page has -50.7 and -42.2; the official winner had -54.57. Four standard errors of slack."""
    blue = reference_policy("expert", load_network(), edition)
    cells = [evaluate(blue, red, edition, 4000, seed=3) for red in ("bline", "meander")]
    assert sum(cell.mean for row in cells for cell in row.values()) > total


@pytest.mark.parametrize(
    ("red_agent", "takeover", "order", "at_least"),
    [
        ("bline", 30, (2, 1, 4, 3, 0), -32),
        ("bline", 30, (4, 3, 1, 2, 0), -65),
        ("meander", 40, (2, 1, 4, 3, 0), -45),
        ("meander", 40, (4, 3, 1, 2, 0), -126),
    ],
)
def test_told_an_order_it_cleans_up_in_that_order(
    red_agent: str, takeover: int, order: tuple[int, ...], at_least: float
) -> None:
    total, found = play_told(np.array(order), red_agent, 1000, takeover)
    assert found.follows(0.95)
    assert total.mean() > at_least


@pytest.mark.parametrize("red_agent", ["bline", "meander"])
def test_amid_noise_it_relies_on_what_red_alone_can_have_done(red_agent: str) -> None:
    envs = ViewedEnvs(CageVectorEnv(1000, red_agent=red_agent, green_agent="active"), View("memory", "full"))
    envs.reset(seed=4)
    total = np.zeros(1000)
    for step in range(100):
        total += envs.step(advice(envs.memories, False)[0])[1]
        if step == 12:
            assert envs.memories["noisy"].mean() > 0.95
    assert total.mean() > -22


@pytest.mark.parametrize("red_agent", ["bline", "meander", "sleep"])
@pytest.mark.parametrize("takeover", [0, 30])
def test_without_noise_none_is_heard(red_agent: str, takeover: int) -> None:
    envs = ViewedEnvs(CageVectorEnv(300, red_agent=red_agent, takeover=takeover), View("memory", "full"))
    envs.reset(seed=4)
    for _ in range(99):
        envs.step(advice(envs.memories, False)[0])
        assert not envs.memories["noisy"].any()


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
