"""A defender that needs only numpy, Python 3.7 or newer, and the files in its folder.

It has the interface of CybORG's agents: an evaluation calls ``get_action`` in every step and ``end_episode`` after
every episode. Observations are the numbers of ChallengeWrapper, four per host of network.toml (52 in CAGE Challenge 2),
actions its integers (145 in CAGE Challenge 2).

    from agent import Agent

    agent = Agent()
"""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

N_OBSERVED = 52  # of CAGE Challenge 2, in files that do not say it
WORDS = {"plain": 0, "short-memory": 2, "small-memory": 2, "memory": 4}  # of the packed memory, by view
UNIT_TYPES = ["defender", "enterprise", "op_server", "op_host", "user"]  # as N_OBSERVED
_MASK = 2**64 - 1
_MODULES: dict[str, Any] = {}


class Agent:
    """The blue agent.

    Args:
        path: the policy file; default: policy.safetensors or the expert's rules in the folder of this file.
        greedy: take the most probable action; default: as exported.
        seed: the seed of sampled actions.
        workflow: the workflow that a universal policy is conditioned on; default: as exported.
    """

    def __init__(self, path: str = "", greedy: bool | None = None, seed: int = 0, workflow: str = "") -> None:
        rules = Path(__file__).with_name("rules.json")
        self._expert = not path and rules.exists()
        weights: dict[str, np.ndarray] = {}
        if self._expert:
            about = json.loads(rules.read_text("utf-8"))
        else:
            weights, about = read_policy(Path(path) if path else Path(__file__).with_name("policy.safetensors"))
        wanted = about.get("agent", about)
        self.greedy = bool(wanted.get("greedy", False)) if greedy is None else greedy
        self.workflow = workflow or wanted.get("workflow", about["workflow"])
        self._leaderboard = about["edition"] == "leaderboard"
        self._words = WORDS[about.get("view", "plain")]
        self._small = about.get("view") == "small-memory"
        self._remembers = self._expert or self._words > 0
        self._host_decoy = about.get("actions") == "host-decoy"
        network = about.get("network", {})
        self.n_observed = int(network.get("n_observed", N_OBSERVED))
        self.n_inputs = int(about.get("n_bits", self.n_observed))
        layers = (0, 2, 4) if weights else ()
        self._layers = [(weights[f"actor.{i}.weight"], weights[f"actor.{i}.bias"]) for i in layers]
        types = network.get("unit_types", UNIT_TYPES)
        self._order = [types.index(name) for name in self.workflow.split(",") if name]
        self._guard = about.get("guard") or {}
        self._code = _one_hot(self.workflow, types) if about.get("n_code", 0) else np.zeros(0)
        self._state = seed & _MASK
        self._bait = wanted.get("bait")  # in other networks than CAGE Challenge 2
        self._tracks = self._remembers or self._host_decoy
        self._last_action: int | None = None
        self._memory: Any = None
        self.end_episode()

    def get_action(self, observation: Any, action_space: Any = None) -> int:  # noqa: ARG002 (CybORG's interface)
        """Chooses the next action."""
        seen = self._checked(observation)
        self._notice(seen)
        if self._expert:
            expert = _beside("cage2_expert")
            action = int(expert.advise(self._memory, self._leaderboard, expert.NO_ORDER)[0])
        else:
            action = self._choose(self._inputs(seen))
        self._last_action = action
        return action

    def _checked(self, observation: Any) -> np.ndarray:
        """The numbers of an observation."""
        if isinstance(observation, tuple):  # observation and infos, as the reset of newer wrappers returns them
            observation = observation[0]
        seen = np.asarray(observation, np.float32).ravel()
        if seen.shape != (self.n_observed,):
            raise ValueError(f"the observation must have {self.n_observed} numbers, not {len(seen)}")
        return seen

    def _notice(self, seen: np.ndarray) -> None:
        """Updates the memory with the last action and the new observation."""
        if self._memory is None:
            return
        if isinstance(self._memory, Notes):
            if self._last_action is not None:
                self._memory.note(self._last_action)
            return
        packed = sum(1 << int(bit) for bit in np.flatnonzero(seen))
        if self._last_action is None:
            _beside("cage2_inference").begin(self._memory, packed)
        else:
            _beside("cage2_inference").remember(self._memory, self._last_action, packed)

    def _inputs(self, seen: np.ndarray) -> np.ndarray:
        """The policy's input: the observation, or the bits of the memory."""
        if not self._remembers:
            return seen
        if isinstance(self._memory, Notes):
            return np.concatenate([seen, np.array(self._memory.restored, np.float32)])
        module = _beside("cage2_memory")
        write = module.write_small if self._small else module.write_bits
        words = np.zeros(self._words, object)  # integers of any size
        write(self._memory, words)
        rest = [int(word) >> bit & 1 for word in words[1:] for bit in range(64)]
        first = [int(words[0]) >> bit & 1 for bit in range(self.n_observed)]
        return np.array((first + rest)[: self.n_inputs], np.float32)

    def _choose(self, inputs: np.ndarray) -> int:
        chances = self._probabilities(inputs)
        if self.greedy:
            action = int(chances.argmax())
        else:
            sums = np.cumsum(chances, dtype=np.float32)
            above = np.searchsorted(sums, np.float32(self._uniform() * float(sums[-1])), side="right")
            action = min(int(above), len(sums) - 1)  # the product may be rounded up to the total
        if not self._host_decoy:
            return action
        if isinstance(self._memory, Notes):
            return self._memory.full_action(action)
        return int(_beside("cage2_memory").full_action(self._memory, action))

    def end_episode(self) -> None:
        """Clears the memory."""
        self._last_action = None
        self._memory = (Notes(self._bait) if self._bait else _new_memory()) if self._tracks else None

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Does nothing; part of CybORG's interface."""

    def train(self, results: Any) -> None:
        """Does nothing; part of CybORG's interface."""

    def probabilities(self, observation: Any) -> np.ndarray:
        """Probability of each action of the policy, float32, given the observation and the current memory."""
        return self._probabilities(self._inputs(self._checked(observation)))

    def _probabilities(self, inputs: np.ndarray) -> np.ndarray:
        hidden = np.concatenate([inputs, self._code.astype(np.float32)])
        for weight, bias in self._layers[:-1]:
            hidden = np.tanh(weight @ hidden + bias)
        weight, bias = self._layers[-1]
        logits = weight @ hidden + bias
        if self._guard:
            self._apply_guard(logits, inputs)
        chances = np.exp(logits - logits.max())
        return np.asarray(chances / chances.sum(), np.float32)

    def _apply_guard(self, logits: np.ndarray, inputs: np.ndarray) -> None:
        """Masks fixes of a type while one of higher priority looks compromised.

        A policy that would wait although an urgent host looks compromised must restore what looks due.
        """
        guard, packed = self._guard, sum(1 << int(bit) for bit in np.flatnonzero(inputs[: self.n_observed]))
        looks = [packed & guard["suspect"][kind] for kind in self._order]
        first = next((place for place, seen in enumerate(looks) if seen), len(looks))
        later = self._order[first + 1 :]
        logits[[action for action, kind in enumerate(guard["fixed"]) if kind in later]] = -np.inf
        if packed & guard.get("urgent", 0) and guard["waits"][logits.argmax()]:  # absent from older files
            logits[[action for action, bit in enumerate(guard["restored"]) if not bit & looks[first]]] = -np.inf

    def _uniform(self) -> float:
        """The next number in [0, 1) of a splitmix64 generator."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        word = self._state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((word ^ (word >> 31)) >> 11) * 2.0**-53


class Notes:
    """What blue remembers in any network: the set of its decoys on each host, and which hosts it restored.

    Args:
        bait: the tables that the export wrote, one entry per action: its host, whether it restores, the decoy it
            places, the decoys beside which that is impossible; then the useful decoys of each host, and the action
            of each host-decoy action.
    """

    def __init__(self, bait: dict[str, Any]) -> None:
        self.bait = bait
        self.decoys, self.restored = [0] * len(bait["useful"]), [0] * len(bait["useful"])

    def note(self, action: int) -> None:
        """Records an action."""
        host = self.bait["host"][action]
        if self.bait["restores"][action]:
            self.decoys[host], self.restored[host] = 0, 1
        elif self.decoys[host] & self.bait["beside"][action] == 0:
            self.decoys[host] |= self.bait["places"][action]

    def full_action(self, action: int) -> int:
        """The action that a host-decoy action stands for: the host's first useful decoy that is missing, or none."""
        full: int = self.bait["full"][action]
        if full >= 0:
            return full
        there, places, beside = self.decoys[-1 - full], self.bait["places"], self.bait["beside"]
        useful = (action for action in self.bait["useful"][-1 - full] if there & (places[action] | beside[action]) == 0)
        return next(useful, 0)


def _beside(name: str) -> Any:
    """Imports a module from the folder of this file."""
    if name not in _MODULES:
        spec = importlib.util.spec_from_file_location(name, str(Path(__file__).with_name(f"{name}.py")))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        if name != "cage2_memory":
            sys.modules["cage2_memory"] = _beside("cage2_memory")  # the others must import this agent's own copy
        spec.loader.exec_module(module)
        _MODULES[name] = module
    return _MODULES[name]


def _new_memory() -> Any:
    """The memory at the start of an episode: plain Python numbers with the field names of MEMORY_DTYPE."""
    module, memory = _beside("cage2_memory"), SimpleNamespace()
    for name in module.MEMORY_DTYPE.names:
        shape = module.MEMORY_DTYPE[name].shape
        setattr(memory, name, [0] * shape[0] if shape else 0)
    module.forget(memory)
    return memory


def read_policy(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and description of a safetensors file: the length of the header, a JSON header, then the data."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length].decode())
    about = json.loads(header.pop("__metadata__")["meta"])
    arrays = {}
    for name, item in header.items():
        start, end = item["data_offsets"]
        data, dtype = content[8 + length + start : 8 + length + end], {"F32": "<f4", "F64": "<f8"}[item["dtype"]]
        arrays[name] = np.frombuffer(data, dtype).reshape(item["shape"])
    return arrays, about


def _one_hot(workflow: str, unit_types: list[str]) -> np.ndarray:
    """The one-hot code of a workflow: entry ``position * n_types + type`` is 1 if the type has that position."""
    order = [unit_types.index(name) for name in workflow.split(",")]
    code = np.zeros((len(order), len(order)), np.float32)
    code[np.arange(len(order)), order] = 1
    return code.ravel()
