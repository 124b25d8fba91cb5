"""Views: the observations and actions that a policy has, as wrappers of any vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space

from workflow_rl.config import ACTION_VIEWS, VIEWS
from workflow_rl.engine.bait import (
    Bait,
    bait_of,
    forget_some,
    full_actions,
    note_all,
    notes_dtype,
    write_restored,
)
from workflow_rl.engine.compiled import compiled
from workflow_rl.engine.network import DECOY_PREFIX, Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.envs import memory
from workflow_rl.envs.checks import check_actions, pack_observations
from workflow_rl.envs.inference import begin, remember
from workflow_rl.envs.memory import MEMORY_DTYPE, SMALL_BITS, WORD, write_small
from workflow_rl.errors import UserError, check_choice

MOST_BESIDE = 52  # bits of an observation that leave room in their word for the number of a workflow


@dataclass(frozen=True)
class View:
    """The observations and actions of a policy.

    Args:
        observation: ``plain``: four bits per host; ``short-memory``: also the hosts that blue restored; ``memory``:
            everything that blue can remember in CAGE Challenge 2 (memory.py), whose hosts and attackers it knows;
            ``small-memory``: the few facts of it that help most (write_small).
        actions: ``full``: all actions; ``host-decoy``: one decoy action per host, which places the next useful decoy
            (bait.py).
        network: the network.
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
    def whole(self) -> bool:
        """Is the whole memory kept, which only CAGE Challenge 2 has? The policy observes all or a small part of it."""
        return self.observation in ("small-memory", "memory")

    @property
    def small(self) -> bool:
        """Does the policy observe the small memory?"""
        return self.observation == "small-memory"

    @property
    def restored_at(self) -> int:
        """Bit of a key where a memory begins (the short one: restored hosts): after the observation, beyond word 0."""
        return max(self.observed, WORD)

    @property
    def n_bits(self) -> int:
        """Number of bits that the policy observes."""
        short = self.observed + len(as_network(self.network).hosts)
        whole = {"small-memory": SMALL_BITS, "memory": memory.N_BITS}
        return ({"plain": self.observed, "short-memory": short} | whole)[self.observation]

    @property
    def n_words(self) -> int:
        """Number of words into which these bits are packed."""
        return -(-(self.restored_at + self.n_bits - self.observed) // WORD)

    @cached_property
    def bait(self) -> Bait:
        """The decoys of the network."""
        return bait_of(as_network(self.network))

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
        return len(self.bait.full) if self.actions == "host-decoy" else as_network(self.network).n_actions

    def __str__(self) -> str:
        """The view as text for messages.

        >>> str(View("memory", "host-decoy"))
        'view memory with host-decoy actions'
        """
        return f"view {self.observation} with {self.actions} actions"

    def keys(self, packed: np.ndarray) -> np.ndarray:
        """Keys (n_envs, key_words) of the ``packed_observations`` of environments with this view, for workflow 0.

        The short memory needs only the fields ``observation`` and ``restored``, which true states have too.
        """
        words = np.zeros((len(packed), self.key_words), np.int64)
        if self.whole:
            write_all(packed, words, self.small)
        elif self.remembers:
            seen = packed["observation"].reshape(len(packed), -1)
            words[:, : seen.shape[1]] = seen
            write_restored(packed["restored"].astype(np.int64), self.restored_at, words)
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
def write_all(memories: np.ndarray, words: np.ndarray, small: bool) -> None:
    """Writes the bits of all memories, or of the small part of each, into ``words`` (n_envs, n_words)."""
    for i in range(len(memories)):
        if small:
            write_small(memories[i], words[i])
        else:
            memory.write_bits(memories[i], words[i])


@compiled
def remember_all(memories: np.ndarray, actions: np.ndarray, packed: np.ndarray) -> None:
    """Updates all memories by one step; all arrays (n_envs,)."""
    for i in range(len(memories)):
        remember(memories[i], actions[i], packed[i])


@compiled
def begin_some(memories: np.ndarray, packed: np.ndarray, chosen: np.ndarray) -> None:
    """Starts episodes in the ``chosen`` environments (n_envs,) bool with first observations ``packed`` (n_envs,)."""
    for i in range(len(memories)):
        if chosen[i]:
            begin(memories[i], packed[i])


def all_actions(view: View) -> np.ndarray:
    """The environment action of each action of a view, (n_actions,); a decoy action stands for any decoy."""
    if view.actions == "full":
        return np.arange(view.n_actions)
    network = as_network(view.network)
    decoy = next((verb for verb in network.blue.host_actions if verb.startswith(DECOY_PREFIX)), "")
    first = network.action_index(decoy, network.host_names[0]) if decoy else 0
    return np.where(view.bait.full < 0, first - 1 - view.bait.full if decoy else 0, view.bait.full)


def unlike_cage2(network: Network) -> list[str]:
    """The parts of a network in which it differs from those of the challenge that the whole memory assumes."""

    def parts(of: Network) -> dict[str, object]:  # neither values nor unit types affect the memory
        hosts = [replace(host, value=0.0, process_ids=(), unit_type="") for host in of.hosts]
        names = ("subnets", "blue", "decoys", "exploits", "red")
        return {"hosts": hosts} | {name: getattr(of, name) for name in names}

    own = parts(network)
    return [name for name, part in parts(as_network(CAGE2)).items() if own[name] != part]


def check_seen(network: Network, view: View) -> None:
    """Rejects a network that the whole memory does not support."""
    other = unlike_cage2(network) if view.whole else []
    if other:
        raise UserError(
            f"the {view} supports only CAGE Challenge 2; network {network.name!r} differs in {', '.join(other)}; use "
            "--view short-memory or plain."
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
        (3, 244)
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
        self.bait = bait_of(envs.network)
        self.whole = not unlike_cage2(envs.network)  # then all that can be remembered is
        self.memories = np.zeros(envs.num_envs, MEMORY_DTYPE if self.whole else notes_dtype(envs.network))

    @property
    def network(self) -> Network:
        """The network that is defended."""
        network: Network = self.envs.network
        return network

    @property
    def packed_observations(self) -> np.ndarray:
        """The memories, (num_envs,), if the policy observes them; else the packed observations."""
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
        self._begin(chosen)
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
        full = full_actions(self.bait, self.memories, chosen) if self.view.actions == "host-decoy" else chosen
        observations, rewards, terminated, truncated, infos = self.envs.step(full)
        ended = terminated | truncated
        packed = self._packed()
        for row in np.flatnonzero(ended):
            packed[row] = pack_observations(np.asarray(infos["final_obs"][row])[None])[0]
        if self.whole:
            remember_all(self.memories, full, packed[:, 0])
        else:
            note_all(self.bait, self.memories, full, packed)
        if ended.any():
            final = self._seen(observations)
            for row in np.flatnonzero(ended) if self.view.remembers else ():
                infos["final_obs"][row] = final[row].copy()
            self._begin(ended)
        return self._seen(observations), rewards, terminated, truncated, infos

    def _packed(self) -> np.ndarray:
        """The packed observations of the environments, without words that the network does not need."""
        return np.ascontiguousarray(self.envs.packed_observations[:, : View(network=self.network).n_words])

    def _begin(self, chosen: np.ndarray) -> None:
        """Starts episodes in the ``chosen`` environments (num_envs,) bool."""
        packed = self._packed()
        if self.whole:
            begin_some(self.memories, packed[:, 0], chosen)
        else:
            forget_some(self.memories, packed, chosen)

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
        self.memories[:] = arrays["memories"].view(self.memories.dtype)

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
