"""The planner that looks ahead: what it knows, what it plays, and how its games are judged."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.limit.lookahead import LENGTH, Look, Played, gains_of, make_planner, play_games
from workflow_rl.defenders.expert import advice
from workflow_rl.engine.network import FIRST_PROGRAM, MEANDER
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.memory import MEMORY_DTYPE
from workflow_rl.envs.views import begin_some, remember_all

TINY = Look(rollouts=200, particles=500, horizon=10, sure=1.0)
GAMES = 3


@pytest.fixture(scope="module", params=["current", "leaderboard"])
def edition(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[FIRST_PROGRAM, MEANDER], ids=["bline", "meander"])
def red(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def played(edition: str, red: int) -> Played:
    return play_games(make_planner(edition, TINY), red, GAMES, seed=5)


def test_every_action_exists_and_no_return_is_positive(played: Played) -> None:
    assert played.notes.shape == (GAMES, LENGTH)
    assert ((played.notes["action"] >= 0) & (played.notes["action"] < load_network().n_actions)).all()
    assert (played.returns <= 0).all()


def test_the_same_seed_is_the_same_game(played: Played, edition: str, red: int) -> None:
    again = play_games(make_planner(edition, TINY), red, GAMES, seed=5)
    assert (again.returns == played.returns).all()
    assert (again.notes == played.notes).all()


def test_all_particles_fit_the_last_observation_and_know_the_attacker(played: Played, red: int) -> None:
    assert (played.notes["fitting"] > 0).all()
    assert (played.last["observation"] == played.state["observation"]).all()
    assert (played.last["red"] == red).all()
    assert (played.last["decoys"] == played.state["decoys"]).all()


def test_blue_does_not_know_the_attacker_before_it_has_seen_anything(played: Played) -> None:
    assert (played.notes["bline"][:, 0] == 0.5).all()


def last_game(edition: str, red: int) -> CageVectorEnv:
    """The environment with the luck of the last game."""
    envs = CageVectorEnv(1, red_agent=("bline", "meander")[red], edition=edition, max_steps=None)
    envs.reset(seed=0)
    envs.game.states["rng"] = np.random.SeedSequence([5, red]).generate_state(GAMES, np.uint64)[-1]
    return envs


def test_its_games_are_those_of_the_environment(played: Played, edition: str, red: int) -> None:
    envs = last_game(edition, red)
    rewards = [envs.step(np.array([action]))[1][0] for action in played.notes["action"][-1]]
    assert sum(rewards) == pytest.approx(played.returns[-1])


def test_without_looking_ahead_it_is_the_expert(edition: str, red: int) -> None:
    alone = play_games(make_planner(edition, Look(0, particles=1)), red, GAMES, seed=5)
    envs, memories, total = last_game(edition, red), np.zeros(1, MEMORY_DTYPE), 0.0
    begin_some(memories, np.zeros(1, np.int64), np.ones(1, bool))
    for note in alone.notes[-1]:
        actions, _ = advice(memories, edition == "leaderboard")
        assert actions[0] == note["usual"] == note["action"]
        total += envs.step(actions)[1][0]
        remember_all(memories, actions, envs.packed_observations[:, 0])
    assert total == pytest.approx(alone.returns[-1])


def test_actions_of_the_expert_gain_nothing_and_others_are_judged(played: Played, edition: str) -> None:
    gains = gains_of(make_planner(edition, TINY), played.notes, 4, seed=6)
    assert not np.isnan(gains).any()
    assert (gains[played.notes["action"] == played.notes["usual"]] == 0).all()


def test_a_long_look_finds_what_rules_of_the_wrong_edition_leave() -> None:
    """The expert's own rules leave hardly anything to find; those of the leaderboard edition do in the current one."""
    planner = make_planner("current", Look(rollouts=500, particles=300, horizon=25))._replace(leaderboard=True)
    played = play_games(planner, MEANDER, 40, seed=7)
    gains = gains_of(planner, played.notes, 50, seed=8).sum(axis=1)
    assert gains.mean() > 2.0
    assert gains.mean() > 10 * gains.std() / np.sqrt(len(gains))
