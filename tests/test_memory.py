"""What a defender remembers: true where it can be checked against the engine, and nothing that it could not know."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from workflow_rl.defenders.protocol import reference_policy
from workflow_rl.engine.network import RED_AGENTS, Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.tables import DRAWN, REVEALED_BY, compile_tables
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.inference import remember
from workflow_rl.envs.memory import (
    AFTER_FAILURE,
    AFTER_SUCCESS,
    ANALYSE,
    B_LINE,
    DEFENDER,
    ENTERPRISE1,
    FIRST_DECOY,
    FITTING,
    MEANDER,
    MEMORY_DTYPE,
    MOST_DECOYS,
    N_BITS,
    N_HOST_DECOY,
    N_HOSTS,
    N_LINES,
    N_WORDS,
    NOBODY,
    REMOVE,
    RESTORE,
    SLEEP,
    SOMEONE,
    USEFUL,
    USER4,
    b_line_target,
    forget,
    full_action,
    next_decoy,
    view_action,
    write_bits,
)
from workflow_rl.envs.views import View, ViewedEnvs

REMEMBERED = View("memory", "full")


def play(red_agent: str, edition: str, n_envs: int, steps: int, blue: str, seed: int = 0) -> Any:
    """Yields memories and true states before each step, and blue's actions."""
    envs = ViewedEnvs(CageVectorEnv(n_envs, red_agent=red_agent, edition=edition, max_steps=None), REMEMBERED)
    envs.reset(seed=seed)
    policy, generator = reference_policy(blue, load_network(), edition), np.random.default_rng(seed)
    for _ in range(steps):
        memories = envs.packed_observations
        actions = policy(memories, generator)
        yield memories, envs.snapshot(), actions
        envs.step(actions)


def test_hosts_actions_and_decoys_have_the_scenarios_numbers(network: Network) -> None:
    names = network.host_names
    assert (names[DEFENDER], names[USER4], len(names)) == ("Defender", "User4", N_HOSTS)
    wanted = {"Analyse": ANALYSE, "Remove": REMOVE, "DecoyApache": FIRST_DECOY, "Restore": RESTORE}
    for verb, number in wanted.items():
        assert [network.action_index(verb, name) for name in names] == list(range(number, number + N_HOSTS))
    assert network.action_index("Sleep") == SLEEP
    envs = CageVectorEnv(1, max_steps=None)
    for host, name in enumerate(names):
        for bit, decoy in enumerate(network.decoys):
            envs.reset(seed=0)
            envs.step([network.action_index(f"Decoy{decoy.name}", name)])
            assert (envs.snapshot()[0]["decoys"][host] == 1 << bit) == (FITTING[host] >> bit & 1 == 1)


def test_b_lines_program_is_the_scenarios(network: Network) -> None:
    tables = compile_tables(network)[0]
    assert tables["line_success"][:N_LINES].tolist() == AFTER_SUCCESS.tolist()
    assert tables["line_failure"][:N_LINES].tolist() == AFTER_FAILURE.tolist()
    for user in np.flatnonzero(tables["line_from"][1] >> np.arange(N_HOSTS) & 1).tolist():
        assert 1 << b_line_target(user) == tables["reveals"][user]
    assert {DRAWN, REVEALED_BY} < set(tables["line_target"][:N_LINES].tolist())


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
@pytest.mark.parametrize("red_agent", RED_AGENTS)
def test_the_memory_has_every_decoy_and_restore_of_the_true_state(red_agent: str, edition: str) -> None:
    for memories, states, _ in play(red_agent, edition, 60, 100, "random"):
        assert np.array_equal(memories["decoys"], states["decoys"][:, :N_HOSTS])
        assert np.array_equal(memories["restored"], states["restored"])
        assert np.array_equal(memories["observation"], states["observation"][:, 0])


def test_the_next_useful_decoy_fits_and_is_new_until_there_are_none() -> None:
    memory = np.zeros(1, MEMORY_DTYPE)
    forget(memory[0])
    for host in range(N_HOSTS):
        placed = []
        while (action := next_decoy(memory[0], host)) != SLEEP:
            before = int(memory[0]["decoys"][host])
            remember(memory[0], action, 0)
            assert int(memory[0]["decoys"][host]).bit_count() == before.bit_count() + 1
            placed.append((action - FIRST_DECOY) // N_HOSTS)
        assert placed == [decoy for decoy in USEFUL[host].tolist() if decoy != NOBODY]
        assert len(placed) <= MOST_DECOYS


def test_host_decoy_actions_stand_for_what_they_say(network: Network) -> None:
    memory = np.zeros(1, MEMORY_DTYPE)
    forget(memory[0])
    names = [network.action_name(int(full_action(memory[0], action))) for action in range(N_HOST_DECOY)]
    assert names[:2] == ["Sleep", "Analyse Defender"]
    assert names[14] == "Remove Defender"
    assert names[27 + 10] == "DecoyFemitter User2"
    assert names[27 + 12] == "Sleep"  # no decoy helps on User4
    assert names[-1] == "Restore User4"
    for action in range(N_HOST_DECOY):
        full = int(full_action(memory[0], action))
        if full != SLEEP:
            assert view_action(full) == action


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
def test_the_attacker_is_recognised_after_three_steps_and_never_mistaken(edition: str) -> None:
    for red_agent, wanted in (("bline", B_LINE), ("meander", MEANDER), ("sleep", SOMEONE)):
        for step, (memories, _, _) in enumerate(play(red_agent, edition, 500, 100, "expert")):
            assert set(memories["foe"].tolist()) <= {wanted, SOMEONE}
            if step >= 3:
                assert (memories["foe"] == wanted).all()


@pytest.mark.parametrize("edition", ["current", "leaderboard"])
def test_b_line_is_followed_through_its_program(edition: str) -> None:
    """Where it stands is a guess; it is right nearly always, and then the next line is known as well."""
    right = total = 0
    for step, (memories, states, _) in enumerate(play("bline", edition, 500, 100, "expert")):
        if step > 1:
            right += int((memories["line"] == states["line"]).sum())
            total += len(states)
    assert right / total > 0.95


def test_bits_are_those_of_the_memory_and_all_have_their_place() -> None:
    seen = np.zeros((N_WORDS, 64), bool)
    words = np.zeros(N_WORDS, np.int64)
    for red_agent in ("bline", "meander"):
        for memories, _, _ in play(red_agent, "leaderboard", 200, 100, "random"):
            for memory in memories[::20]:
                write_bits(memory, words)
                assert words[0] == memory["observation"]
                seen |= (words[:, None] >> np.arange(64) & 1).astype(bool)
    used = np.concatenate([seen[0, :52], seen[1:].ravel()])
    assert not used[N_BITS:].any()
    assert not seen[0, 52:].any()
    never = np.flatnonzero(~used[:N_BITS])
    assert len(never) < 40  # decoys that random play hardly completes, long ages of hosts that it disturbs


def test_the_memory_knows_neither_the_length_nor_the_time_of_an_episode() -> None:
    """From the third step on, equal events leave equal bits whenever they happen."""
    keys = []
    for waited in (5, 29, 95):
        memory, words = np.zeros(1, MEMORY_DTYPE), np.zeros(N_WORDS, np.int64)
        forget(memory[0])
        for _ in range(waited):
            remember(memory[0], SLEEP, 0)
        remember(memory[0], SLEEP, 1 << (4 * 9))  # a scan of User1
        write_bits(memory[0], words)
        keys.append(words.tolist())
    assert keys[0] == keys[1] == keys[2]
    assert list(inspect.signature(remember).parameters) == ["m", "action", "observation"]


@pytest.mark.parametrize("found", [False, True])
def test_an_analyse_that_finds_nothing_clears_the_suspicion_of_a_second_scan(found: bool) -> None:
    memory, files = np.zeros(1, MEMORY_DTYPE), 12 << (4 * ENTERPRISE1)
    forget(memory[0])
    for _ in range(2):
        remember(memory[0], SLEEP, 1 << (4 * ENTERPRISE1))
    assert memory[0]["again"] == 1 << ENTERPRISE1
    remember(memory[0], ANALYSE + ENTERPRISE1, files if found else 0)
    assert memory[0]["again"] == (1 << ENTERPRISE1 if found else 0)
    remember(memory[0], SLEEP, 1 << (4 * ENTERPRISE1))  # until it is scanned again
    assert memory[0]["again"] == 1 << ENTERPRISE1
