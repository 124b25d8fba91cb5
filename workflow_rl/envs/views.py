"""Views: the observations and actions that a policy has, as wrappers of any vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space

from workflow_rl.config import ACTION_VIEWS, VIEWS
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.envs import memory
from workflow_rl.envs.checks import check_actions
from workflow_rl.envs.memory import MEMORY_DTYPE, WORD
from workflow_rl.errors import UserError, check_choice

MOST_BESIDE = 52  # bits of an observation that leave room in their word for the number of a workflow


@dataclass(frozen=True)
class View:
    """The observations and actions of a policy.

    Args:
        observation: ``plain``: four bits per host; ``short-memory``: also the hosts that blue restored; ``memory``:
            everything that blue can remember (memory.py).
        actions: ``full``: all actions; ``host-decoy``: one decoy action per host, which places the next useful decoy.
        network: the network; memories and host-decoy actions support only CAGE Challenge 2.
    """

    observation: str = "plain"
    actions: str = "full"
    network: Network | Path | str = field(default=CAGE2, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("view", self.observation, VIEWS)
        check_choice("action view", self.actions, ACTION_VIEWS)

    @property
    def remembers(self) -> bool:
        """Does the policy observe the memory?"""
        return self.observation != "plain"

    @property
    def tracks(self) -> bool:
        """Must the memory be updated?"""
        return self.remembers or self.actions == "host-decoy"

    @property
    def observed(self) -> int:
        """Number of bits of the environment's own observation."""
        return as_network(self.network).n_bits

    @property
    def first(self) -> int:
        """Number of these bits in word 0 of a key."""
        return min(self.observed, WORD)

    @property
    def n_bits(self) -> int:
        """Number of bits that the policy observes."""
        return {"plain": self.observed, "short-memory": memory.SHORT_BITS, "memory": memory.N_BITS}[self.observation]

    @property
    def n_words(self) -> int:
        """Number of words into which these bits are packed."""
        words = -(-self.observed // WORD)
        return {"plain": words, "short-memory": memory.SHORT_WORDS, "memory": memory.N_WORDS}[self.observation]

    @property
    def order_place(self) -> tuple[int, int]:
        """Word and bit of a key where the number of the workflow begins: above the observation, or in its own word."""
        return (0, self.observed) if self.observed <= MOST_BESIDE else (self.n_words, 0)

    @property
    def key_words(self) -> int:
        """Number of words of a key."""
        return max(self.n_words, self.order_place[0] + 1)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return memory.N_HOST_DECOY if self.actions == "host-decoy" else as_network(self.network).n_actions

    def __str__(self) -> str:
        """The view as text for messages.

        >>> str(View("memory", "host-decoy"))
        'view memory with host-decoy actions'
        """
        return f"view {self.observation} with {self.actions} actions"

    def keys(self, packed: np.ndarray) -> np.ndarray:
        """Keys (n_envs, key_words) of the ``packed_observations`` of environments with this view, for workflow 0."""
        words = np.zeros((len(packed), self.key_words), np.int64)
        if self.remembers:
            write_all(packed, words)
        else:
            words[:, : self.n_words] = packed[:, : self.n_words]
        return words

    def add_order(self, keys: np.ndarray, workflows: np.ndarray) -> np.ndarray:
        """``keys`` of workflow 0, changed to those of the given workflow numbers (n,)."""
        word, bit = self.order_place
        keys[:, word] |= workflows.astype(np.int64) << bit
        return keys


PLAIN = View()


@compiled
def write_all(memories: np.ndarray, words: np.ndarray) -> None:
    """Writes the bits of all memories into ``words`` (n_envs, n_words)."""
    for i in range(len(memories)):
        memory.write_bits(memories[i], words[i])


@compiled
def remember_all(memories: np.ndarray, actions: np.ndarray, packed: np.ndarray) -> None:
    """Updates all memories by one step; all arrays (n_envs,)."""
    for i in range(len(memories)):
        memory.remember(memories[i], actions[i], packed[i])


@compiled
def begin_some(memories: np.ndarray, packed: np.ndarray, chosen: np.ndarray) -> None:
    """Starts episodes in the ``chosen`` environments (n_envs,) bool with first observations ``packed`` (n_envs,)."""
    for i in range(len(memories)):
        if chosen[i]:
            memory.begin(memories[i], packed[i])


@compiled
def full_actions(memories: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """The environment actions (n_envs,) that host-decoy actions stand for, given the memories."""
    result = np.empty(len(actions), np.int64)
    for i in range(len(actions)):
        result[i] = memory.full_action(memories[i], actions[i])
    return result


def all_actions(view: View) -> np.ndarray:
    """The environment action of each action of a view, (n_actions,); a decoy action stands for the first decoy."""
    if view.actions == "full":
        return np.arange(view.n_actions)
    verbs = np.array([memory.ANALYSE, memory.REMOVE, memory.FIRST_DECOY, memory.RESTORE])
    return np.concatenate([[memory.SLEEP], (verbs[:, None] + np.arange(memory.N_HOSTS)).ravel()])


def view_actions(actions: np.ndarray) -> np.ndarray:
    """The host-decoy actions (n_envs,) that stand for environment actions."""
    return np.array([memory.view_action(action) for action in actions.tolist()])


def check_seen(network: Network, view: View) -> None:
    """Rejects a network that the view's memory does not support: it assumes the hosts and decoys of the challenge.

    Neither the values of hosts nor their unit types affect the memory.
    """

    def parts(of: Network) -> dict[str, object]:
        hosts = [replace(host, value=0.0, process_ids=(), unit_type="") for host in of.hosts]
        names = ("subnets", "blue", "decoys", "exploits", "red")
        return {"hosts": hosts} | {name: getattr(of, name) for name in names}

    known = parts(as_network(CAGE2)) if view.tracks else {}
    other = [name for name, part in known.items() if parts(network)[name] != part]
    if other:
        raise UserError(
            f"the {view} supports only CAGE Challenge 2; network {network.name!r} differs in {', '.join(other)}: use "
            "--view plain --actions full."
        )


def with_view(envs: Any, view: View) -> Any:
    """The environments with the observations and actions of the view."""
    return ViewedEnvs(envs, view) if view.tracks else envs


class ViewedEnvs(VectorWrapper):
    """Vector environments (native or CybORG) with a view that needs a memory.

    Observations are ``view.n_bits`` zeros and ones; there are ``view.n_actions`` actions. Every episode starts with an
    empty memory. Rewards and infos are those of the environments.

    Example:
        >>> from workflow_rl.envs.env import CageVectorEnv
        >>> envs = ViewedEnvs(CageVectorEnv(3), View("memory", "host-decoy"))
        >>> envs.reset(seed=0)[0].shape
        (3, 242)
        >>> observations, rewards, terminated, truncated, infos = envs.step([0, 37, 52])
        >>> envs.action_space.nvec.tolist()
        [53, 53, 53]
    """

    def __init__(self, envs: Any, view: View) -> None:
        check_seen(envs.network, view)
        super().__init__(envs)
        self.envs, self.view = envs, view
        self.single_observation_space = Box(0.0, 1.0, (view.n_bits,), np.float32)
        self.single_action_space = Discrete(view.n_actions)
        self.observation_space = batch_space(self.single_observation_space, envs.num_envs)
        self.action_space = batch_space(self.single_action_space, envs.num_envs)
        self.memories = np.zeros(envs.num_envs, MEMORY_DTYPE)

    @property
    def network(self) -> Network:
        """The network that is defended."""
        network: Network = self.envs.network
        return network

    @property
    def packed_observations(self) -> np.ndarray:
        """The memories, (num_envs,) of MEMORY_DTYPE, if the policy observes them; else the packed observations."""
        if self.view.remembers:
            return self.memories.copy()
        packed: np.ndarray = self.envs.packed_observations
        return packed

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts new episodes; see the environments for the arguments."""
        mask = (options or {}).get("reset_mask")
        observations, infos = self.envs.reset(seed=seed, options=options)
        chosen = np.ones(self.num_envs, bool) if mask is None else np.asarray(mask, bool)
        begin_some(self.memories, self.envs.packed_observations[:, 0], chosen)
        return self._seen(observations), infos

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays one step in every environment."""
        chosen = check_actions(actions, self.num_envs)
        wrong = np.flatnonzero((chosen < 0) | (chosen >= self.view.n_actions))
        if len(wrong):
            raise UserError(
                f"action {chosen[wrong[0]]} of environment {wrong[0]} does not exist; "
                f"allowed: 0 to {self.view.n_actions - 1}."
            )
        full = full_actions(self.memories, chosen) if self.view.actions == "host-decoy" else chosen
        observations, rewards, terminated, truncated, infos = self.envs.step(full)
        ended = terminated | truncated
        packed = self.envs.packed_observations[:, 0]
        for row in np.flatnonzero(ended):
            packed[row] = pack_words(np.asarray(infos["final_obs"][row])[None], View(network=self.network))[0, 0]
        remember_all(self.memories, full, packed)
        if ended.any():
            final = self._seen(observations)
            for row in np.flatnonzero(ended) if self.view.remembers else ():
                infos["final_obs"][row] = final[row].copy()
            begin_some(self.memories, self.envs.packed_observations[:, 0], ended)
        return self._seen(observations), rewards, terminated, truncated, infos

    def snapshot(self) -> np.ndarray:
        """A copy of the true states of native environments."""
        states: np.ndarray = self.envs.snapshot()
        return states

    def state_arrays(self) -> dict[str, np.ndarray]:
        """The state of all games and memories as plain arrays, for a checkpoint."""
        arrays: dict[str, np.ndarray] = self.envs.state_arrays()
        return arrays | {"memories": self.memories.view(np.uint8).copy()}

    def restore_state_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores the state from :meth:`state_arrays`."""
        self.envs.restore_state_arrays(arrays)
        self.memories[:] = arrays["memories"].view(MEMORY_DTYPE)

    def _seen(self, observations: np.ndarray) -> np.ndarray:
        """The policy's observations: the bits of the memories, or the environments' own observations."""
        return unpack_words(self.view.keys(self.memories), self.view) if self.view.remembers else observations


def unpack_words(keys: np.ndarray, view: View) -> np.ndarray:
    """The bits of keys (n, key_words) as zeros and ones, (n, n_bits) float32."""
    bits = np.empty((len(keys), view.n_bits), np.float32)
    bits[:, : view.first] = keys[:, :1] >> np.arange(view.first) & 1
    for number in range(1, view.n_words):
        first = view.first + WORD * (number - 1)
        width = min(WORD, view.n_bits - first)
        bits[:, first : first + width] = keys[:, number : number + 1] >> np.arange(width) & 1
    return bits


def pack_words(bits: np.ndarray, view: View) -> np.ndarray:
    """Keys (n, key_words) of bits (n, n_bits), the inverse of :func:`unpack_words`."""
    keys, first = np.zeros((len(bits), view.key_words), np.int64), 0
    for number in range(view.n_words):
        part = bits[:, first : first + (WORD if number else view.first)].astype(np.int64)
        keys[:, number] = (part << np.arange(part.shape[1])).sum(axis=1)
        first += part.shape[1]
    return keys
