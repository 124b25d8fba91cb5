"""States of native environments, their reset and step: the common part of the Gymnasium environments in env.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network import GREEN_AGENTS, Network, room_for
from workflow_rl.engine.network_file import as_network
from workflow_rl.engine.observe import all_levels, unpacked
from workflow_rl.engine.state import allocate
from workflow_rl.engine.step import reset_envs, step_envs
from workflow_rl.engine.tables import compile_tables, fixed_unit_types
from workflow_rl.envs.checks import OPTIONS, check_options, parse_red_agents, positive_int
from workflow_rl.envs.takeover import Infos, start_infos, takeover_rows
from workflow_rl.errors import UserError, check_choice


@dataclass(frozen=True)
class Games:
    """The games of a training or an evaluation: network, opponent and rules."""

    network: Network
    red_agent: str
    edition: str
    max_steps: int
    takeover: str = "0"
    green_agent: str = "sleep"

    @classmethod
    def of(cls, config: TrainConfig, network: Network) -> Games:
        """The games that a training plays."""
        return cls(network, config.red_agent, config.edition, config.max_steps, config.takeover, config.green_agent)


class Game:
    """States of ``n_envs`` environments; see :class:`workflow_rl.CageVectorEnv` for the arguments."""

    def __init__(
        self, n_envs: int, red_agent: str | Sequence[str] | None, edition: str | None, max_steps: int | None,
        green_agent: str, network: Network | Path | str, takeover: str | int = 0,
    ) -> None:  # fmt: skip
        self.n_envs = positive_int("number of environments", n_envs, 1_000_000)
        self.max_steps = 0 if max_steps is None else positive_int("max_steps", max_steps, 2**31 - 1)
        self.network = as_network(network)
        self.tables = compile_tables(self.network, next(iter(self.network.editions)) if edition is None else edition)
        self.states = allocate(self.n_envs, room_for(self.network))
        self.takeovers = takeover_rows(takeover, self.n_envs)  # (n_envs, 3), see begin_one
        first = self.network.red_agents[0]
        self.set_red_agents(first if red_agent is None else red_agent, np.ones(self.n_envs, bool))
        greens = [check_choice("green agent", name.strip(), GREEN_AGENTS) for name in green_agent.split(",")]
        self.states["green_acts"] = np.resize([name == "active" for name in greens], self.n_envs)
        self.n_hosts, self.n_actions = len(self.network.hosts), self.network.n_actions
        self.n_bits = self.network.n_bits
        self.room = self.states["decoys"].shape[1]
        self.started = np.zeros(self.n_envs, bool)
        self.fixed_unit_type = fixed_unit_types(self.network)
        self.final_observations = np.zeros((self.n_envs, self.n_bits), np.float32)

    def set_red_agents(self, red_agent: str | Sequence[str], chosen: np.ndarray) -> None:
        """Assigns red agent i, modulo their number, to environment i if it is ``chosen``."""
        codes = [self.network.red_number(name) for name in parse_red_agents(red_agent, self.network)]
        if len(codes) > self.n_envs:
            raise UserError(f"{len(codes)} red agents were given for {self.n_envs} environments.")
        self.states["red"][chosen] = np.resize(codes, self.n_envs)[chosen]

    def reset(
        self, seeds: np.ndarray | None, chosen: np.ndarray, options: dict[str, Any], allowed: tuple[str, ...] = OPTIONS
    ) -> None:
        """Resets the ``chosen`` environments, with new generators if ``seeds`` are given."""
        check_options(options, allowed)
        later = takeover_rows(options["takeover"], self.n_envs) if "takeover" in options else self.takeovers
        if "red_agent" in options:
            self.set_red_agents(options["red_agent"], chosen)
        self.takeovers[chosen] = later[chosen]
        new = np.zeros(0, np.uint64) if seeds is None else seeds
        reset_envs(self.states, self.tables, self.takeovers, chosen, new, seeds is not None)
        self.started |= chosen

    def step(self, actions: np.ndarray, autoreset: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, Infos]:
        """Plays one step; returns observations, rewards, truncated, the number of ended episodes, and infos."""
        out = observations, rewards, truncated, _ = self.outputs()
        before, level = np.empty((self.n_envs, self.room), bool), np.empty((self.n_envs, self.room), np.int8)
        repaired = np.empty(self.n_envs, self.states["repaired"].dtype)
        played_before = self.takeovers[:, 2].copy()
        ended = step_envs(
            self.states, self.tables, self.takeovers, actions, self.max_steps, autoreset, *out, before, level, repaired
        )
        if ended < 0:
            raise UserError(
                f"action {actions[-1 - ended]} of environment {-1 - ended} does not exist; "
                f"allowed: 0 to {self.n_actions - 1}."
            )
        fixed = self.fixed_unit_type[actions]
        infos = {
            "compromised_before": before[:, : self.n_hosts],
            "red_level": level[:, : self.n_hosts],
            "fixed_unit_type": fixed,
            "repaired_unit_type": np.where(repaired != 0, fixed, np.int8(-1)),
            "takeover": played_before,
        }
        return observations, rewards, truncated, ended, infos

    def outputs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Output arrays of :func:`step_envs`: observations, rewards, truncated and final observations."""
        n = self.n_envs
        return np.empty((n, self.n_bits), np.float32), np.empty(n), np.empty(n, bool), self.final_observations

    def observations(self) -> np.ndarray:
        """What blue sees now; (n_envs, n_bits) float32."""
        return unpacked(self.states["observation"], self.n_bits).astype(np.float32)

    def start_infos(self, rows: np.ndarray) -> Infos:
        """Infos at the start of the episodes in the environments ``rows``."""
        level = np.zeros((len(self.states), self.room), np.int8)
        all_levels(self.states, level)
        return start_infos(level[rows, : self.n_hosts], self.takeovers[rows, 2])
