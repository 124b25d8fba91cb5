"""CAGE Challenge 2 behind the Gymnasium API: :class:`CageVectorEnv`, its single twin and the documented wrapper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from workflow_rl.engine import allocate, compile_tables
from workflow_rl.engine.observe import BITS_PER_HOST
from workflow_rl.engine.step import reset_envs, step_envs
from workflow_rl.engine.tables import HOSTS, fixed_hosts
from workflow_rl.errors import UserError
from workflow_rl.registration import register_envs
from workflow_rl.scenario import GREEN_AGENTS, RED_AGENTS, Scenario, check_choice, parse_red_agents
from workflow_rl.scenario_file import DEFAULT_SCENARIO, load_scenario

register_envs()

Infos = dict[str, Any]


class Game:
    """States of ``n_envs`` environments and everything that the two Gymnasium faces share."""

    def __init__(
        self,
        n_envs: int,
        red_agent: str | Sequence[str],
        edition: str,
        max_steps: int | None,
        green_agent: str,
        scenario: Scenario | Path | str,
    ) -> None:
        self.n_envs = _positive_int("number of environments", n_envs)
        self.max_steps = 0 if max_steps is None else _positive_int("max_steps", max_steps)
        self.scenario = scenario if isinstance(scenario, Scenario) else load_scenario(Path(scenario))
        self.tables = compile_tables(self.scenario, edition)
        self.states = allocate(self.n_envs)
        self.set_red_agents(red_agent)
        self.states["green_acts"] = check_choice("green agent", green_agent, GREEN_AGENTS) == "active"
        self.n_hosts, self.n_actions = len(self.scenario.hosts), self.scenario.n_actions
        self.n_bits = BITS_PER_HOST * self.n_hosts
        self.started = np.zeros(self.n_envs, bool)
        fixed = fixed_hosts(self.scenario)
        unit_types = np.array([self.scenario.unit_type_index(name) for name in self.scenario.host_names], np.int8)
        self.fixed_unit_type = np.where(fixed >= 0, unit_types[fixed], np.int8(-1))
        self.final_observations = np.zeros((self.n_envs, self.n_bits), np.float32)

    def set_red_agents(self, red_agent: str | Sequence[str]) -> None:
        """Environment i is attacked by agent i of the list, which starts again at its end."""
        codes = [RED_AGENTS.index(name) for name in parse_red_agents(red_agent)]
        self.states["red"] = np.resize(codes, self.n_envs)

    def reset(self, seeds: np.ndarray | None, chosen: np.ndarray, options: dict[str, Any]) -> None:
        """Resets the environments in ``chosen``, with new generators if ``seeds`` are given."""
        unknown = set(options) - {"red_agent"}
        if unknown:
            raise UserError(f"unknown reset option {sorted(unknown)[0]!r}; allowed: red_agent, reset_mask.")
        if "red_agent" in options:
            self.set_red_agents(options["red_agent"])
        reset_envs(self.states, self.tables, chosen, np.zeros(0, np.uint64) if seeds is None else seeds, seeds is not None)
        self.started |= chosen

    def step(
        self, actions: np.ndarray, autoreset: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray, np.ndarray]:
        """Plays one step; returns observations, rewards, truncated, episodes ended, compromised_before, red_level."""
        out = observations, rewards, truncated, _ = self.outputs()
        before, level = np.empty((self.n_envs, HOSTS), bool), np.empty((self.n_envs, HOSTS), np.int8)
        ended = step_envs(self.states, self.tables, actions, self.max_steps, autoreset, *out, before, level)
        if ended < 0:
            raise UserError(
                f"action {actions[-1 - ended]} of environment {-1 - ended} does not exist; "
                f"allowed: 0 to {self.n_actions - 1}."
            )
        return observations, rewards, truncated, ended, before[:, : self.n_hosts], level[:, : self.n_hosts]

    def outputs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """New observations, rewards and truncated for :func:`step_envs`, and the buffer of final observations."""
        n = self.n_envs
        return (
            np.empty((n, self.n_bits), np.float32),
            np.empty(n),
            np.empty(n, bool),
            self.final_observations,
        )

    def start_infos(self, n_envs: int) -> Infos:
        """The facts of an episode's start, in the form of those of a step."""
        level = np.zeros((n_envs, self.n_hosts), np.int8)
        level[:, self.scenario.host_names.index(self.scenario.red.foothold)] = 2
        return {
            "compromised_before": np.zeros((n_envs, self.n_hosts), bool),
            "red_level": level,
            "fixed_unit_type": np.full(n_envs, -1, np.int8),
        }

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        """Observation and action space of one environment."""
        return Box(0.0, 1.0, (self.n_bits,), np.float32), Discrete(self.n_actions)


class CageVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many CAGE Challenge 2 networks under attack, defended side by side in one compiled loop.

    ## Description
    A network of 13 hosts. Red starts on User0 and works its way to the operational server; blue watches, repairs and
    sets traps. Exact with respect to CybORG 2.1, see docs/fidelity.md.

    ## Observation
    52 zeros and ones (float32), four per host in the order Defender, Enterprise0-2, Op_Host0-2, Op_Server0, User0-4:

    | numbers 4h, 4h+1 | activity in this step | numbers 4h+2, 4h+3 | what blue believes of the host |
    |---|---|---|---|
    | 0 0 | none | 0 0 | not compromised |
    | 1 0 | scan | 1 0 | unknown (after Remove) |
    | 1 1 | exploit | 0 1 | user access |
    | | | 1 1 | privileged access |

    ## Actions
    One of 145 per environment: 0 Sleep, 1 Monitor, then ``2 + 13 * verb + host``:

    | verb | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 |
    |---|---|---|---|---|---|---|---|---|---|---|---|
    | action | Analyse | Remove | DecoyApache | DecoyFemitter | DecoyHarakaSMPT | DecoySmss | DecoySSHD | DecoySvchost | DecoyTomcat | DecoyVsftpd | Restore |
    | first | 2 | 15 | 28 | 41 | 54 | 67 | 80 | 93 | 106 | 119 | 132 |

    ## Rewards
    Minus 0.1 (User1-4, Op_Hosts, Defender) or 1 (Enterprise hosts, Op_Server0) for each host that red holds privileged,
    minus 10 while the operational service is down, minus 1 for a Restore.

    ## Start and end
    Red holds User0, blue sees 52 zeros. Episodes never terminate; they are truncated after ``max_steps`` steps and the
    next one starts in the same step (SAME_STEP): ``infos["final_obs"]`` has the last observation and
    ``infos["final_info"]`` the facts of the last step.

    ## Infos (arrays over environments)
    | key | shape | meaning |
    |---|---|---|
    | ``compromised_before`` | (num_envs, 13) bool | hosts with a red session *before* the step (User0 never counts) |
    | ``red_level`` | (num_envs, 13) int8 | red's true level *after* the step: 0 none, 1 user, 2 privileged |
    | ``fixed_unit_type`` | (num_envs,) int8 | unit type that Remove or Restore was aimed at, -1 for other actions |

    ## Seeds
    ``reset(seed=s)`` gives environment i the seed ``s + i``, as Gymnasium's own vector environments do; a list of seeds
    gives each its own. Environment i of a seed plays the same game whatever the number of environments.

    ## Arguments
    Args:
        num_envs: how many environments.
        red_agent: ``bline``, ``meander``, ``sleep``, or a comma list: environment i gets entry i, round and round.
        edition: ``current`` or ``leaderboard``, the two public states of CybORG 2.1.
        max_steps: length of an episode; None: endless.
        green_agent: ``sleep`` (standard) or ``active`` (scans hosts now and then).
        scenario: a scenario or the path of its file.

    ## Version history
    * v0: exact on recorded traces of CybORG 2.1, both editions

    Example:
        >>> import gymnasium
        >>> envs = gymnasium.make_vec("Cage2-v0", num_envs=3, red_agent="meander")
        >>> observations, infos = envs.reset(seed=0)
        >>> observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        >>> observations.shape, infos["red_level"].shape
        ((3, 52), (3, 13))
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}
    autoreset_mode = AutoresetMode.SAME_STEP

    def __init__(
        self,
        num_envs: int = 1,
        red_agent: str | Sequence[str] = "bline",
        edition: str = "current",
        max_steps: int | None = 100,
        green_agent: str = "sleep",
        scenario: Scenario | Path | str = DEFAULT_SCENARIO,
    ) -> None:
        self.game = Game(num_envs, red_agent, edition, max_steps, green_agent, scenario)
        self.num_envs = self.game.n_envs
        self.single_observation_space, self.single_action_space = self.game.spaces()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._all = np.ones(self.num_envs, bool)
        self._all.setflags(write=False)

    @property
    def scenario(self) -> Scenario:
        """Names and numbers of the challenge."""
        return self.game.scenario

    @property
    def packed_observations(self) -> np.ndarray:
        """The current observations as 64-bit words, number k in bit k; shape (num_envs,)."""
        return self.game.states["observation"].copy()

    def snapshot(self) -> np.ndarray:
        """A copy of the true states, an array of :data:`workflow_rl.engine.STATE_DTYPE`; shape (num_envs,)."""
        return self.game.states.copy()

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, Infos]:
        """Starts new episodes.

        Args:
            seed: one seed for all, one each, or None to let the generators go on (from random seeds at first).
            options: ``red_agent`` replaces the red agents; ``reset_mask`` (num_envs,) bool resets only some.
        """
        game, options = self.game, dict(options or {})
        chosen = _reset_mask(options.pop("reset_mask", None), self.num_envs)
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=_seed(seed))
        seeds = _seeds(seed, self.num_envs)
        if seeds is None and not game.started.all():
            seeds = self.np_random.integers(2**63, size=self.num_envs).astype(np.uint64)
        game.reset(seeds, chosen, options)
        return self._observations(), self._with_masks(game.start_infos(self.num_envs), chosen.copy())

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Plays one step in every environment; see the class for what comes back."""
        game = self.game
        if not game.started.all():
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        actions = _actions(actions, self.num_envs)
        observations, rewards, truncated, ended, before, level = game.step(actions, autoreset=True)
        infos: Infos = {
            "compromised_before": before,
            "red_level": level,
            "fixed_unit_type": game.fixed_unit_type[actions],
        }
        if ended:
            infos = self._end_episodes(infos, truncated)
        else:
            infos = self._with_masks(infos, self._all)
        return observations, rewards, np.zeros(self.num_envs, bool), truncated, infos

    def _end_episodes(self, infos: Infos, ended: np.ndarray) -> Infos:
        """Moves the facts of ended episodes to ``final_info``; the new ones start in their place."""
        rows = np.flatnonzero(ended)
        final_info = {}
        for key, start in self.game.start_infos(len(rows)).items():
            final = np.zeros_like(infos[key])
            final[rows] = infos[key][rows]
            infos[key][rows] = start
            final_info[key] = final
        final_obs = np.full(self.num_envs, None, object)
        for row in rows:
            final_obs[row] = self.game.final_observations[row].copy()
        final_infos = {"final_obs": final_obs, "final_info": self._with_masks(final_info, ended.copy())}
        return self._with_masks(infos, self._all) | self._with_masks(final_infos, ended.copy())

    def _observations(self) -> np.ndarray:
        bits = np.arange(self.game.n_bits)
        return (self.packed_observations[:, None] >> bits & 1).astype(np.float32)

    @staticmethod
    def _with_masks(infos: Infos, present: np.ndarray) -> Infos:
        """Adds Gymnasium's ``_key`` arrays, which tell the environments that a key speaks of."""
        return infos | {f"_{key}": present for key in infos}


class CageEnv(gymnasium.Env[np.ndarray, int]):
    """One CAGE Challenge 2 network; observation, actions, rewards and infos as in :class:`CageVectorEnv`.

    The environment does not reset itself: after ``truncated`` call ``reset``.

    Example:
        >>> import gymnasium
        >>> env = gymnasium.make("Cage2-v0", red_agent="bline", max_steps=30)
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(0)
        >>> observation.shape, reward
        ((52,), 0.0)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        red_agent: str | Sequence[str] = "bline",
        edition: str = "current",
        max_steps: int | None = 100,
        green_agent: str = "sleep",
        scenario: Scenario | Path | str = DEFAULT_SCENARIO,
    ) -> None:
        self.game = Game(1, red_agent, edition, max_steps, green_agent, scenario)
        self.observation_space, self.action_space = self.game.spaces()
        self._action = np.zeros(1, np.int64)
        self._ended = False

    @property
    def scenario(self) -> Scenario:
        """Names and numbers of the challenge."""
        return self.game.scenario

    def snapshot(self) -> np.ndarray:
        """A copy of the true state, an array of :data:`workflow_rl.engine.STATE_DTYPE`; shape (1,)."""
        return self.game.states.copy()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Infos]:
        """Starts a new episode; see :meth:`CageVectorEnv.reset`."""
        game = self.game
        if seed is not None:
            super().reset(seed=_seed(seed))
        seeds = _seeds(seed, 1)
        if seeds is None and not game.started.all():
            seeds = self.np_random.integers(2**63, size=1).astype(np.uint64)
        game.reset(seeds, np.ones(1, bool), dict(options or {}))
        self._ended = False
        return np.zeros(game.n_bits, np.float32), _first(game.start_infos(1))

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, Infos]:
        """Plays one step."""
        if not self.game.started[0]:
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        if self._ended:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() before the next step().")
        if not isinstance(action, (int, np.integer)) or isinstance(action, bool):
            action = _single_action(action)
        self._action[0] = action
        observations, rewards, truncated, ended, before, level = self.game.step(self._action, autoreset=False)
        self._ended = ended > 0
        fixed = self.game.fixed_unit_type[action]
        infos = {"compromised_before": before[0], "red_level": level[0], "fixed_unit_type": fixed}
        return observations[0], float(rewards[0]), False, self._ended, infos


class ParallelEnvWrapper:
    """The environments as the design documents know them: ``reset`` and ``step`` with arrays, four values back.

    Args:
        n_envs: how many environments.
        options: as for :class:`CageVectorEnv` (``red_agent``, ``edition``, ``max_steps``, ...).

    Example:
        >>> envs = ParallelEnvWrapper(n_envs=25)
        >>> envs.reset(seed=0).shape
        (25, 52)
        >>> observations, rewards, dones, infos = envs.step([0] * 25)
        >>> observations.shape, rewards.shape, dones.shape
        ((25, 52), (25,), (25,))
    """

    def __init__(self, n_envs: int = 25, **options: Any) -> None:
        self.envs = CageVectorEnv(n_envs, **options)
        self.n_envs = self.envs.num_envs

    def reset(self, seed: int | Sequence[int] | None = None) -> np.ndarray:
        """Starts new episodes; returns observations (n_envs, 52)."""
        return self.envs.reset(seed=seed)[0]

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Plays one step in every environment.

        Returns:
            observations (n_envs, 52), after the end of an episode the first of the next one; rewards (n_envs,);
            dones (n_envs,) bool; infos as in :class:`CageVectorEnv`.
        """
        observations, rewards, terminated, truncated, infos = self.envs.step(actions)
        return observations, rewards, terminated | truncated, infos

    def close(self) -> None:
        """Nothing is left running; here for the sake of code that closes its environments."""
        self.envs.close()


def _first(infos: Infos) -> Infos:
    return {key: value[0] for key, value in infos.items()}


def _positive_int(what: str, value: object) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise UserError(f"{what} must be a whole number of at least 1, not {value!r}.")
    return int(value)


def _seed(seed: object) -> int:
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise UserError(f"a seed must be a whole number from 0 to 2**64 - 1, not {seed!r}.")
    return int(seed)


def _seeds(seed: int | Sequence[int] | None, n_envs: int) -> np.ndarray | None:
    """Seed of each environment, (n_envs,) uint64, or None."""
    if seed is None:
        return None
    if isinstance(seed, (int, np.integer)):
        return np.uint64(_seed(seed)) + np.arange(n_envs, dtype=np.uint64)
    if len(seed) != n_envs:
        raise UserError(f"{len(seed)} seeds were given for {n_envs} environments.")
    return np.array([_seed(one) for one in seed], np.uint64)


def _reset_mask(mask: Any, n_envs: int) -> np.ndarray:
    if mask is None:
        return np.ones(n_envs, bool)
    if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (n_envs,) or not mask.any():
        raise UserError(f"reset_mask must be a bool array of shape ({n_envs},) with at least one True.")
    return mask


def _actions(actions: Any, n_envs: int) -> np.ndarray:
    """Actions as int64; whether they exist is checked where they are played."""
    array = np.asarray(actions)
    if array.dtype.kind not in "iu":
        raise UserError(f"actions must be whole numbers, not of type {array.dtype}.")
    if array.shape != (n_envs,):
        raise UserError(f"actions must have the shape ({n_envs},), not {array.shape}.")
    return array.astype(np.int64, copy=False)


def _single_action(action: Any) -> int:
    array = np.asarray(action)
    if array.dtype.kind not in "iu" or array.size != 1:
        raise UserError(f"an action must be one whole number, not {action!r}.")
    return int(array.reshape(()))
