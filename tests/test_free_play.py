from __future__ import annotations

import numpy as np
import pytest

from benchmarks.free_play import LIMIT, compare
from workflow_rl.defenders.protocol import evaluate, reference_policy
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.errors import UserError


def test_mean_returns_of_free_play_agree_with_the_reference_tables() -> None:
    """50,000 episodes of each reference policy against each red agent, both editions, at 30, 50 and 100 steps."""
    rows = list(compare(n_episodes=50_000))
    assert len(rows) == 111
    assert [row for row in rows if abs(row["z"]) > LIMIT] == []


def test_an_episode_is_the_same_game_however_many_are_played() -> None:
    policy = reference_policy("reactive-restore", load_network())
    few, many = (
        evaluate(policy, "meander", n_episodes=50),
        evaluate(policy, "meander", n_episodes=50, lengths=(100, 30)),
    )
    assert few[30] == many[30]
    assert few[100] == many[100]


def test_seeds_change_the_games_and_equal_seeds_do_not() -> None:
    policy = reference_policy("random", load_network())
    first, again, other = (evaluate(policy, "bline", n_episodes=20, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_reactive_policies_clean_the_first_host_that_looks_compromised(network: Network) -> None:
    user, unknown, privileged = 0b1000, 0b0100, 0b1100
    packed = np.array([0, user << 4 * 3 | privileged << 4 * 9, unknown << 4 * 12, 0b0011 << 4 * 2, privileged])[:, None]
    generator = np.random.default_rng(0)

    def names(policy: str) -> list[str]:
        return [
            network.action_name(action)
            for action in reference_policy(policy, load_network())(packed, generator).tolist()
        ]

    assert names("reactive-restore") == ["Sleep", "Restore Enterprise2", "Restore User4", "Sleep", "Restore Defender"]
    assert names("reactive-remove") == ["Sleep", "Remove Enterprise2", "Restore User4", "Sleep", "Restore Defender"]


def test_impossible_evaluations_are_refused() -> None:
    policy = reference_policy("sleep", load_network())
    with pytest.raises(UserError, match="unknown policy 'best'; allowed: sleep, random"):
        reference_policy("best", load_network())
    with pytest.raises(UserError, match="the number of episodes must be from 2 to 10000000, not 1"):
        evaluate(policy, "bline", n_episodes=1)
    with pytest.raises(UserError, match="a seed must be a whole number"):
        evaluate(policy, "bline", seed=-1)
    with pytest.raises(UserError, match="unknown red agent"):
        evaluate(policy, "bline,meander")
