"""The challenge's evaluation protocol (returns at 30, 50 and 100 steps) and the reference policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from workflow_rl.config import CHALLENGE_LENGTHS
from workflow_rl.defenders.expert import RULES, advice
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import AnyNetwork, in_words
from workflow_rl.engine.observe import BELIEF_PRIVILEGED, BELIEF_USER, by_host
from workflow_rl.envs.blue import (
    REMEMBERED,
    Cell,
    Defender,
    OwnPolicy,
    Policy,
    Progress,
    begin_games,
    cell_of,
    check_episodes,
    most_at_once,
    table_of,
    view_of,
)
from workflow_rl.envs.checks import check_seed, parse_red_agents
from workflow_rl.envs.cyborg_sim import NATIVE, Backend
from workflow_rl.envs.env import make_envs
from workflow_rl.envs.game import Games
from workflow_rl.envs.takeover import takeovers_of
from workflow_rl.envs.views import check_seen, with_view
from workflow_rl.errors import UserError, check_choice
from workflow_rl.runs import Json

BATCH = 2000  # episodes played in parallel


def evaluate(
    policy: Policy, red_agent: str, edition: str = "current", n_episodes: int = 1000,
    lengths: Sequence[int] = CHALLENGE_LENGTHS, seed: int = 0, progress: Progress = lambda _: None,
    backend: Backend = NATIVE,
) -> dict[int, Cell]:  # fmt: skip
    """Plays ``n_episodes`` games and reports the return at each of the ``lengths``; all lengths share the games.

    Episode e of a seed is the same game for any ``n_episodes`` if the policy is deterministic. Different seeds share
    no games. ``progress`` is called with the number of newly finished episodes.
    """
    games = Games(as_network(CAGE2), red_agent, edition, max(lengths))
    returns = episode_returns(policy, games, n_episodes, seed, lengths, progress, backend)
    return {length: cell_of(column) for length, column in zip(lengths, returns.T, strict=True)}


def episode_returns(
    policy: Policy, games: Games, n_episodes: int, seed: int, lengths: Sequence[int] = CHALLENGE_LENGTHS,
    progress: Progress = lambda _: None, backend: Backend = NATIVE,
) -> np.ndarray:  # fmt: skip
    """Return of each game at each length, (n_episodes, n_lengths); see :func:`evaluate`."""
    red_agent = games.red_agent
    check_choice("red agent", red_agent, games.network.red_agents)
    check_episodes(n_episodes)
    check_seed(seed)
    number = games.network.red_number(red_agent)
    seeds = np.random.SeedSequence([seed, number]).generate_state(n_episodes, np.uint64)
    own = [seed, number, 1]
    returns = np.empty((n_episodes, len(lengths)))
    size = most_at_once(policy, min(n_episodes, BATCH if backend.name == "native" else backend.jobs))
    together = backend.name == "native" or isinstance(policy, OwnPolicy)
    act = _with_one_generator(policy, own) if together else _with_generator_each(policy, own)
    rules = {"edition": games.edition, "max_steps": None, "green_agent": games.green_agent}
    plain = make_envs(backend, size, network=games.network, red_agent=red_agent, **rules)
    with closing(with_view(plain, view_of(policy))) as envs:
        for start in range(0, n_episodes, size):
            rows = np.arange(start, start + size) % n_episodes  # the last batch is padded with the first games
            kept = min(size, n_episodes - start)
            begin_games(policy)
            returns[rows[:kept]] = _play(envs, act, rows, seeds[rows], games.takeover, lengths)[:kept]
            progress(kept)
    return returns


def evaluate_table(
    policy: Policy, games: Games, n_episodes: int, seed: int, progress: Progress = lambda _: None,
    backend: Backend = NATIVE,
) -> Json:  # fmt: skip
    """Evaluates against each red agent at the challenge's lengths, in the form of :func:`table_of`."""
    returns = {}
    for red in dict.fromkeys(parse_red_agents(games.red_agent, games.network)):
        one = replace(games, red_agent=red)
        returns[red] = episode_returns(policy, one, n_episodes, seed, CHALLENGE_LENGTHS, progress, backend)
    return table_of(returns)


Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Maps packed observations (n_envs, n_words) and episode numbers (n_envs,) to actions (n_envs,)."""


def _with_one_generator(policy: Policy, seed: list[int]) -> Act:
    generator = np.random.default_rng(seed)
    return lambda packed, _: policy(packed, generator)


def _with_generator_each(policy: Policy, seed: list[int]) -> Act:
    """Gives each episode its own generator, so that the grouping of episodes does not matter."""
    generators: dict[int, np.random.Generator] = {}

    def act(packed: np.ndarray, episodes: np.ndarray) -> np.ndarray:
        for number in [known for known in generators if known not in episodes]:
            del generators[number]
        actions = []
        for i, number in enumerate(episodes.tolist()):
            generator = generators.setdefault(number, np.random.default_rng([*seed, number]))
            actions.append(policy(packed[i : i + 1], generator))
        return np.concatenate(actions)

    return act


def _play(
    envs: Any, act: Act, episodes: np.ndarray, seeds: np.ndarray, takeover: str, lengths: Sequence[int]
) -> np.ndarray:
    envs.reset(seed=seeds.tolist(), options={"takeover": takeovers_of(takeover, episodes)})
    total, returns = np.zeros(len(seeds)), np.empty((len(seeds), len(lengths)))
    for step in range(1, max(lengths) + 1):
        total += envs.step(act(envs.packed_observations, episodes))[1]
        for column, length in enumerate(lengths):
            if step == length:
                returns[:, column] = total
    return returns


def reference_policy(name: str, network: AnyNetwork, edition: str = "current") -> Policy:
    """One of :data:`REFERENCE_POLICIES` by name; only the expert depends on the edition, and on CAGE Challenge 2."""
    check_choice("policy", name, REFERENCE_POLICIES)
    network = as_network(network)
    if name != EXPERT:
        return _REFERENCE[name](network)
    try:
        check_seen(network, REMEMBERED)
    except UserError:
        raise UserError(f"{EXPERT} knows only CAGE Challenge 2; it cannot defend {in_words(network)}.") from None
    return _expert(edition)


def _expert(edition: str) -> Defender:
    leaderboard = edition == "leaderboard"

    def explain(memories: np.ndarray) -> list[str]:
        return [f"{RULES[rule].name}: {RULES[rule].reason}" for rule in advice(memories, leaderboard)[1].tolist()]

    return Defender(lambda memories, _: advice(memories, leaderboard)[0], explain)


def _reactive(network: Network, remove_users: bool) -> Policy:
    """Fixes the first host that looks compromised: Restore or, for user access if ``remove_users``, Remove."""
    sleep, n_hosts = network.action_index("Sleep"), len(network.hosts)
    remove, restore = (network.action_index(verb, network.host_names[0]) for verb in ("Remove", "Restore"))

    def act(packed: np.ndarray, _: np.random.Generator) -> np.ndarray:
        beliefs = by_host(packed, n_hosts) & BELIEF_PRIVILEGED
        host = (beliefs > 0).argmax(axis=1)  # the first that is not believed to be clean
        belief = beliefs[np.arange(len(packed)), host]
        verb = np.where((belief == BELIEF_USER) & remove_users, remove, restore)
        return np.where(belief > 0, verb + host, sleep)

    return act


_REFERENCE: dict[str, Callable[[Network], Policy]] = {
    "sleep": lambda network: lambda packed, _: np.full(len(packed), network.action_index("Sleep")),
    "random": lambda network: lambda packed, generator: generator.integers(network.n_actions, size=len(packed)),
    "reactive-restore": lambda network: _reactive(network, remove_users=False),
    "reactive-remove": lambda network: _reactive(network, remove_users=True),
}
EXPERT = "expert"
WINNER, LIMIT = "official winner, as published", "limit: sees the true state"
PUBLISHED_EDITION = "leaderboard"  # of the official final scores
Cells = dict[str, dict[str, tuple[float, ...]]]  # mean returns at CHALLENGE_LENGTHS, by defender and red agent
ANCHORS: dict[str, Cells] = {  # by edition; beside the published scores, champion_table.json and study_limit.json
    "leaderboard": {
        WINNER: {"bline": (-3.47, -6.41, -13.76), "meander": (-5.64, -8.69, -16.60)},
        EXPERT: {"bline": (-2.89, -4.88, -9.88), "meander": (-4.89, -7.07, -12.65)},
        LIMIT: {"bline": (-2.51, -4.21, -8.43)},
    },
    "current": {
        EXPERT: {"bline": (-3.47, -6.07, -12.59), "meander": (-5.30, -8.16, -15.18)},
        LIMIT: {"bline": (-3.09, -5.43, -11.28)},
    },
}
REFERENCE_POLICIES = (*_REFERENCE, EXPERT)
