"""CAGE Challenge 2 behind the Gymnasium API: many environments, one, and either simulator by its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2
from workflow_rl.envs.checks import OPTIONS, check_actions, check_reset_mask, check_seed, check_single_action, seeds_of
from workflow_rl.envs.cyborg_sim import Backend, check_backend
from workflow_rl.envs.game import Game
from workflow_rl.envs.takeover import Infos

if TYPE_CHECKING:
    from workflow_rl.envs.cyborg_vector import CyborgVectorEnv

if TYPE_CHECKING:
    pass


class CageVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many CAGE Challenge 2 networks under attack, simulated in parallel in one compiled loop.

    ## Description
    A network of 13 hosts. Red starts on User0 and attacks towards the operational server; blue monitors, repairs and
    places decoys. Exact with respect to CybORG 2.1, see docs/fidelity.md.

    ## Observation
    52 zeros and ones (float32), four per host in the order Defender, Enterprise0-2, Op_Host0-2, Op_Server0, User0-4:

    | numbers 4h, 4h+1 | activity in this step | numbers 4h+2, 4h+3 | blue's belief about the host |
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
    Minus 0.1 (User1-4, Op_Hosts, Defender) or 1 (Enterprise hosts, Op_Server0) for each host on which red is
    privileged, minus 10 while the operational service is down, minus 1 for a Restore.

    ## Start and end
    Red controls User0 and blue observes 52 zeros. With a ``takeover`` red then plays that many steps while blue only
    observes; steps and return count from there. Episodes never terminate. They are truncated after ``max_steps`` steps
    and the next one starts in the same step (SAME_STEP): ``infos["final_obs"]`` has the last observation and
    ``infos["final_info"]`` the infos of the last step.

    ## Infos (arrays over environments)
    | key | shape | meaning |
    |---|---|---|
    | ``compromised_before`` | (num_envs, 13) bool | hosts with a red session *before* the step (User0 never counts) |
    | ``red_level`` | (num_envs, 13) int8 | red's true level *after* the step: 0 none, 1 user, 2 privileged |
    | ``fixed_unit_type`` | (num_envs,) int8 | unit type of the target of Remove or Restore, -1 for other actions |
    | ``repaired_unit_type`` | (num_envs,) int8 | the same if it ended red's presence there, before red moved; else -1 |
    | ``takeover`` | (num_envs,) int32 | steps that red had played when blue took over |

    ## Seeds
    ``reset(seed=s)`` gives environment i the seed ``s + i``, as Gymnasium's own vector environments do; a list gives
    each its own seed. The game of environment i does not depend on the number of environments.

    ## Arguments
    Args:
        num_envs: the number of environments.
        red_agent: ``bline``, ``meander``, ``sleep``, or a comma-separated list that environments use in turn; default:
            the network's first.
        edition: ``current`` or ``leaderboard``, the two public versions of CybORG 2.1; default: the network's first.
        max_steps: the length of an episode; None for no limit.
        green_agent: ``sleep`` (standard) or ``active`` (scans hosts from time to time).
        network: a network, the path of its file, or the name of a bundled one; the numbers above are those of the
            default, CAGE Challenge 2.
        takeover: the number of steps that red plays before blue may act; a range such as ``"10-60"``, sampled for each
            episode; or a comma-separated list that environments use in turn.

    ## Version history
    * v0: exact on recorded traces of CybORG 2.1, both editions

    Example:
        >>> import gymnasium, workflow_rl
        >>> envs = gymnasium.make_vec("Cage2-v0", num_envs=3, red_agent="meander")
        >>> observations, infos = envs.reset(seed=0)
        >>> observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
        >>> observations.shape, infos["red_level"].shape
        ((3, 52), (3, 13))
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 (Gymnasium's type)
    autoreset_mode = AutoresetMode.SAME_STEP

    def __init__(
        self, num_envs: int = 1, red_agent: str | Sequence[str] | None = None, edition: str | None = None,
        max_steps: int | None = 100, green_agent: str = "sleep", network: Network | Path | str = CAGE2,
        takeover: str | int = 0,
    ) -> None:  # fmt: skip
        self.game = Game(num_envs, red_agent, edition, max_steps, green_agent, network, takeover)
        self.num_envs = self.game.n_envs
        self.single_observation_space, self.single_action_space = _spaces(self.game)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._all = np.ones(self.num_envs, bool)
        self._all.setflags(write=False)

    @property
    def network(self) -> Network:
        """The network that is defended."""
        return self.game.network

    @property
    def max_steps(self) -> int | None:
        """Length of an episode; None for no limit."""
        return self.game.max_steps or None

    @property
    def packed_observations(self) -> np.ndarray:
        """The current observations as 64-bit words, number k in bit k of word 0, and so on; (num_envs, n_words)."""
        return self.game.states["observation"].copy()

    def snapshot(self) -> np.ndarray:
        """A copy of the true states, an array of :func:`workflow_rl.engine.state_dtype`; shape (num_envs,)."""
        return self.game.states.copy()

    def state_arrays(self) -> dict[str, np.ndarray]:
        """The state of all games as plain arrays, for a checkpoint."""
        if not self.game.started.all():
            raise gymnasium.error.ResetNeeded("call reset() before state_arrays().")
        return {"states": self.game.states.view(np.uint8).copy(), "takeovers": self.game.takeovers.copy()}

    def restore_state_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores the state from :meth:`state_arrays`."""
        self.game.states[:] = arrays["states"].view(self.game.states.dtype)
        self.game.takeovers[:] = arrays.get("takeovers", self.game.takeovers)  # absent from older checkpoints
        self.game.started[:] = True

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, Infos]:
        """Starts new episodes.

        Args:
            seed: one seed, one per environment, or None to continue the generators (at first from random seeds).
            options: new values of ``red_agent`` and ``takeover``; ``reset_mask`` (num_envs,) bool selects environments.
        """
        game, options = self.game, dict(options or {})
        chosen = check_reset_mask(options.pop("reset_mask", None), self.num_envs)
        if seed is not None and not isinstance(seed, (list, tuple, np.ndarray)):
            super().reset(seed=check_seed(seed))
        seeds = seeds_of(seed, self.num_envs, self.np_random)
        if seeds is None and not game.started.all():
            seeds = self.np_random.integers(2**63, size=self.num_envs).astype(np.uint64)
        game.reset(seeds, chosen, options, (*OPTIONS, "reset_mask"))
        return self._observations(), self._with_masks(game.start_infos(self._all), chosen.copy())

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Plays one step in every environment; see the class for the infos."""
        game = self.game
        if not game.started.all():
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        actions = check_actions(actions, self.num_envs)
        observations, rewards, truncated, ended, infos = game.step(actions, autoreset=True)
        infos = self._end_episodes(infos, truncated) if ended else self._with_masks(infos, self._all)
        return observations, rewards, np.zeros(self.num_envs, bool), truncated, infos

    def _end_episodes(self, infos: Infos, ended: np.ndarray) -> Infos:
        """Moves the infos of ended episodes to ``final_info`` and replaces them with those of the new episodes."""
        rows = np.flatnonzero(ended)
        final_info = {}
        for key, start in self.game.start_infos(rows).items():
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
        return self.game.observations()

    @staticmethod
    def _with_masks(infos: Infos, present: np.ndarray) -> Infos:
        """Adds Gymnasium's ``_key`` masks of the environments for which a key is valid."""
        return infos | {f"_{key}": present for key in infos}


class CageEnv(gymnasium.Env[np.ndarray, int]):
    """One CAGE Challenge 2 network with the observations, actions, rewards and infos of :class:`CageVectorEnv`.

    The environment does not reset itself: call ``reset`` after ``truncated``.

    Example:
        >>> import gymnasium, workflow_rl
        >>> env = gymnasium.make("Cage2-v0", red_agent="bline", max_steps=30)
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(0)
        >>> observation.shape, reward
        ((52,), 0.0)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self, red_agent: str | Sequence[str] | None = None, edition: str | None = None, max_steps: int | None = 100,
        green_agent: str = "sleep", network: Network | Path | str = CAGE2, takeover: str | int = 0,
    ) -> None:  # fmt: skip
        self.game = Game(1, red_agent, edition, max_steps, green_agent, network, takeover)
        self.observation_space, self.action_space = _spaces(self.game)
        self._action = np.zeros(1, np.int64)
        self._ended = False

    @property
    def network(self) -> Network:
        """The network that is defended."""
        return self.game.network

    def snapshot(self) -> np.ndarray:
        """A copy of the true state, an array of :func:`workflow_rl.engine.state_dtype`; shape (1,)."""
        return self.game.states.copy()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Infos]:
        """Starts a new episode; see :meth:`CageVectorEnv.reset`."""
        game = self.game
        if seed is not None:
            super().reset(seed=check_seed(seed))
        seeds = seeds_of(seed, 1, self.np_random)
        if seeds is None and not game.started.all():
            seeds = self.np_random.integers(2**63, size=1).astype(np.uint64)
        game.reset(seeds, np.ones(1, bool), dict(options or {}))
        self._ended = False
        return game.observations()[0], _first(game.start_infos(np.zeros(1, int)))

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, Infos]:
        """Plays one step."""
        if not self.game.started[0]:
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        if self._ended:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() before the next step().")
        if type(action) is not int or not 0 <= action < 256:
            action = check_single_action(action)
        self._action[0] = action
        observations, rewards, _, ended, infos = self.game.step(self._action, autoreset=False)
        self._ended = ended > 0
        return observations[0], float(rewards[0]), False, self._ended, _first(infos)


def _spaces(game: Game) -> tuple[Any, Any]:
    """Observation and action space of one environment."""
    return Box(0.0, 1.0, (game.n_bits,), np.float32), Discrete(game.n_actions)


def _first(infos: Infos) -> Infos:
    return {key: value[0] for key, value in infos.items()}


def make_envs(backend: Backend, num_envs: int, **options: Any) -> CageVectorEnv | CyborgVectorEnv:
    """Environments of a backend; options as for :class:`CageVectorEnv`."""
    check_backend(backend)
    if backend.name == "native":
        return CageVectorEnv(num_envs, **options)
    from workflow_rl.envs.cyborg_vector import CyborgVectorEnv

    return CyborgVectorEnv(num_envs, cyborg_path=backend.cyborg_path, **options)
