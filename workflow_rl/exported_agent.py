"""A trained defender for CAGE Challenge 2 that needs numpy and the file policy.safetensors beside it, nothing else.

It has the interface of CybORG's agents: an evaluation calls ``get_action`` in every step and ``end_episode`` in
between. Observations are the 52 numbers of ChallengeWrapper, actions its 145 integers. Python 3.7 or newer.

    from agent import Agent

    agent = Agent()
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

UNIT_TYPES = ["defender", "enterprise", "op_server", "op_host", "user"]
_MASK = 2**64 - 1


class Agent:
    """Blue.

    Args:
        path: the policy; default: policy.safetensors beside this file.
        greedy: always take the most probable action; default: as the policy was exported.
        seed: of the agent's own chance.
        workflow: for a policy that follows any order; default: as it was exported.
    """

    def __init__(self, path: str = "", greedy: bool | None = None, seed: int = 0, workflow: str = "") -> None:
        weights, about = read_policy(Path(path) if path else Path(__file__).with_name("policy.safetensors"))
        wanted = about.get("agent", {})
        self.greedy = bool(wanted.get("greedy", False)) if greedy is None else greedy
        self.workflow = workflow or wanted.get("workflow", about["workflow"])
        self.n_inputs = int(about["n_bits"])
        self._layers = [(weights[f"actor.{i}.weight"], weights[f"actor.{i}.bias"]) for i in (0, 2, 4)]
        self._code = _one_hot(self.workflow, wanted.get("unit_types", UNIT_TYPES)) if about["n_code"] else np.zeros(0)
        self._state = seed & _MASK

    def get_action(self, observation: Any, action_space: Any = None) -> int:  # noqa: ARG002 (CybORG's interface)
        """The number of the action to take."""
        chances = self.probabilities(observation)
        if self.greedy:
            return int(chances.argmax())
        sums = np.cumsum(chances, dtype=np.float32)
        above = np.searchsorted(sums, np.float32(self._uniform() * float(sums[-1])), side="right")
        return min(int(above), len(sums) - 1)  # the product may be rounded up to the whole sum

    def end_episode(self) -> None:
        """Nothing is remembered from episode to episode."""

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Nothing to set; CybORG asks all its agents."""

    def train(self, results: Any) -> None:
        """Nothing to learn any more; CybORG tells all its agents."""

    def probabilities(self, observation: Any) -> np.ndarray:
        """Probability of each action; (145,) float32."""
        if isinstance(observation, tuple):  # an observation with its infos, as newer wrappers return it from reset
            observation = observation[0]
        seen = np.asarray(observation, np.float32).ravel()
        if seen.shape != (self.n_inputs,):
            raise ValueError(f"the observation must have {self.n_inputs} numbers, not {len(seen)}")
        hidden = np.concatenate([seen, self._code.astype(np.float32)])
        for weight, bias in self._layers[:-1]:
            hidden = np.tanh(weight @ hidden + bias)
        weight, bias = self._layers[-1]
        logits = weight @ hidden + bias
        chances = np.exp(logits - logits.max())
        return np.asarray(chances / chances.sum(), np.float32)

    def _uniform(self) -> float:
        """The next number from 0 to 1 of a splitmix64 generator."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        word = self._state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((word ^ (word >> 31)) >> 11) * 2.0**-53


def read_policy(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and description of a safetensors file: eight bytes of length, that much JSON, then the numbers."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length].decode())
    about = json.loads(header.pop("__metadata__")["meta"])
    arrays = {}
    for name, item in header.items():
        start, end = item["data_offsets"]
        numbers = np.frombuffer(
            content[8 + length + start : 8 + length + end], {"F32": "<f4", "F64": "<f8"}[item["dtype"]]
        )
        arrays[name] = numbers.reshape(item["shape"])
    return arrays, about


def _one_hot(workflow: str, unit_types: list[str]) -> np.ndarray:
    """The workflow as the network sees it: number ``position * n_types + type`` is 1 if the type is there."""
    order = [unit_types.index(name) for name in workflow.split(",")]
    code = np.zeros((len(order), len(order)), np.float32)
    code[np.arange(len(order)), order] = 1
    return code.ravel()
