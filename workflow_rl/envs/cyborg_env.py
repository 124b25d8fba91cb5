"""Genuine CybORG behind the contract of :class:`workflow_rl.CageVectorEnv`: one process per environment."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from workflow_rl.config import MOST_PROCESSES, parse_takeover
from workflow_rl.engine.network import GREEN_AGENTS, Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.step import SLEEP
from workflow_rl.engine.tables import fixed_hosts, fixed_unit_types
from workflow_rl.envs.checks import (
    OPTIONS,
    check_actions,
    check_options,
    check_reset_mask,
    check_seed,
    check_single_action,
    parse_red_agents,
    positive_int,
    seeds_of,
)
from workflow_rl.envs.cyborg_processes import cause_of_death, end_processes, in_own_process, start_processes
from workflow_rl.envs.cyborg_sim import CyborgGame, check_package, load_cyborg
from workflow_rl.envs.game import Infos, start_infos
from workflow_rl.envs.takeover import takeover_rows
from workflow_rl.errors import SimulatorError, UserError, check_choice

TAKEOVER = 11  # what a seed is for, beside the game


class CyborgEnv(gymnasium.Env[np.ndarray, int]):
    """One network of genuine CybORG; observation, actions, rewards and infos as in :class:`workflow_rl.CageVectorEnv`.

    ``reset(seed=s)`` starts the game that CybORG plays after ``random.seed(s)``; the episodes that follow without a
    seed are derived from it. Python's global generator is left as it was.

    Args:
        red_agent: ``bline``, ``meander`` or ``sleep``.
        edition: that of the CybORG at hand, or it is refused.
        max_steps: length of an episode; None: endless.
        green_agent: ``sleep`` (standard) or ``active``.
        network: a network or the path of its file.
        cyborg_path: a checkout of CybORG to use instead of csle-cyborg.
        recorder: made from a :class:`CyborgGame`, puts a row of the trace format into ``infos["record"]``, those of the
            takeover into ``opening``; see :class:`workflow_rl.fidelity.cyborg_recorder.Recorder`.
        takeover: steps that red plays before blue may act, or a range of them.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        red_agent: str | Sequence[str] = "bline",
        edition: str = "current",
        max_steps: int | None = 100,
        green_agent: str = "sleep",
        network: Network | Path | str = CAGE2,
        cyborg_path: str = "",
        recorder: Callable[[CyborgGame], Any] | None = None,
        takeover: str | int = 0,
    ) -> None:
        self.network = as_network(network)
        self.max_steps = None if max_steps is None else positive_int("max_steps", max_steps, 2**31 - 1)
        self.green_agent = check_choice("green agent", green_agent, GREEN_AGENTS)
        check_choice("edition", edition, self.network.editions)
        self._package = load_cyborg(cyborg_path)
        check_package(self._package, edition, self.network)
        self._make_recorder, self._game, self._recorder = recorder, None, None  # type: tuple[Any, Any, Any]
        self._playing = ""  # the opponent of the running game
        self.red_agent, self.takeover = red_agent, str(takeover)
        self.opening: list[dict[str, np.ndarray]] = []  # rows of the trace format, of the steps before the takeover
        self._slept = 0  # how many those were
        self._fixed, self._targets = fixed_unit_types(self.network), fixed_hosts(self.network)
        self._foothold = self.network.host_names.index(self.network.red.foothold)
        self.observation_space = Box(0.0, 1.0, (4 * len(self.network.hosts),), np.float32)
        self.action_space: Any = Discrete(self.network.n_actions)
        self._seed: int | None = None
        self._episode, self._actions = 0, bytearray()
        self._observation = np.zeros(4 * len(self.network.hosts), np.float32)

    @property
    def red_agent(self) -> str:
        """The opponent; another one takes over at the next reset."""
        return self._next_red

    @red_agent.setter
    def red_agent(self, red_agent: str | Sequence[str]) -> None:
        names = parse_red_agents(red_agent)
        if len(names) > 1:
            raise UserError(f"{len(names)} red agents were given for 1 environments.")
        self._next_red = names[0]

    @property
    def takeover(self) -> str:
        """Steps that red plays before; another number counts from the next reset."""
        return self._takeover

    @takeover.setter
    def takeover(self, takeover: str) -> None:
        if len(parse_takeover(takeover)) > 1:
            raise UserError(f"{len(parse_takeover(takeover))} takeovers were given for 1 environments.")
        self._takeover = takeover

    @property
    def progress(self) -> tuple[str, str, int, int, bytes]:
        """Where the game stands: opponent, takeover, seed, number of the episode, blue's actions. Can be set."""
        self._check_running("the game can be asked for")
        assert self._seed is not None
        return self._playing, str(self._slept), self._seed, self._episode, bytes(self._actions)

    @progress.setter
    def progress(self, progress: tuple[str, str, int, int, bytes]) -> None:
        drawn_from = self.takeover
        self.red_agent, self.takeover, self._seed, self._episode, actions = progress
        self._start()
        self.takeover = drawn_from
        for action in actions:
            self._play(action)

    @property
    def observation(self) -> np.ndarray:
        """The latest observation; (52,)."""
        return self._observation

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Infos]:
        """Starts a new episode; option ``red_agent`` replaces the opponent."""
        options = dict(options or {})
        check_options(options, OPTIONS)
        if "red_agent" in options:
            self.red_agent = options["red_agent"]
        if "takeover" in options:
            self.takeover = options["takeover"]
        if seed is not None:
            super().reset(seed=check_seed(seed))
            self._seed, self._episode = int(seed), 0
        elif self._seed is None:
            self._seed, self._episode = int(self.np_random.integers(2**63)), 0
        else:
            self._episode += 1
        self._start()
        start = start_infos(self._game.levels()[None], np.array([self._slept]))
        infos = {key: value[0] for key, value in start.items()}
        return self._observation.copy(), infos

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, Infos]:
        """Plays one step."""
        self._check_running("step()")
        if self._ended:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() before the next step().")
        number = check_single_action(action)
        if not 0 <= number < self.network.n_actions:
            raise UserError(f"action {number} does not exist; allowed: 0 to {self.network.n_actions - 1}.")
        before = self._game.levels() > 0
        before[self._foothold] = False
        target = self._targets[number]
        held = self._game.red_sessions(target)
        reward = self._play(number)
        left = {id(session) for session in self._game.red_sessions(target)}
        repaired = before[target] and not any(id(session) in left for session in held)
        infos = {
            "compromised_before": before,
            "red_level": self._game.levels(),
            "fixed_unit_type": self._fixed[number],
            "repaired_unit_type": self._fixed[number] if repaired else np.int8(-1),
            "takeover": np.int32(self._slept),
        }
        if self._recorder is not None:
            infos["record"] = self._recorder.record(number, self._observation, reward)
        return self._observation.copy(), reward, False, self._ended, infos

    def _check_running(self, what: str) -> None:
        if self._seed is None:
            raise gymnasium.error.ResetNeeded(f"call reset() before {what}.")
        if self._game is None:
            raise gymnasium.error.ResetNeeded(f"the game broke off: call reset() before {what}.")

    @property
    def _ended(self) -> bool:
        return self.max_steps is not None and len(self._actions) >= self.max_steps

    def _start(self) -> None:
        """Begins the episode that ``_seed`` and ``_episode`` stand for."""
        if self._game is None or self._playing != self._next_red:
            self._playing = self._next_red
            self._game = CyborgGame(self._package, self._playing, self.green_agent, self.network)
            self._recorder = self._make_recorder(self._game) if self._make_recorder else None
        assert self._seed is not None
        words = np.random.SeedSequence([self._seed, self._episode]).generate_state(2, np.uint64)
        seed = self._seed if self._episode == 0 else int(words[0]) << 64 | int(words[1])
        self._actions = bytearray()
        with self._explained():
            self._observation = self._game.reset(seed)
        if self._recorder is not None:
            self._recorder.start()
        self._sleep()

    def _sleep(self) -> None:
        """Red plays until blue takes over."""
        assert self._seed is not None
        least, most = parse_takeover(self.takeover)[0]
        own = np.random.default_rng([self._seed, self._episode, TAKEOVER])
        self._slept, self.opening = int(own.integers(least, most + 1)), []
        for _ in range(self._slept):
            reward = self._play(SLEEP)
            if self._recorder is not None:
                self.opening.append(self._recorder.record(SLEEP, self._observation, reward))
        self._actions = bytearray()  # those of blue's own

    def _play(self, action: int) -> float:
        self._actions.append(action)
        with self._explained():
            self._observation, reward = self._game.step(action)
        return float(reward)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._game = None  # half-played: nothing can be built on it
            if not isinstance(error, Exception):
                raise
            raise SimulatorError(
                f"genuine CybORG failed with {type(error).__name__} ({error}) in step {len(self._actions)} of episode "
                f"{self._episode} of seed {self._seed} against {self._playing}."
            ) from error


class CyborgVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Genuine CybORG many times over, with the contract of :class:`workflow_rl.CageVectorEnv`.

    Each environment has a process of its own (Gymnasium's AsyncVectorEnv, observations in shared memory); a single one
    lives in this process. A process that dies ends them all with a :class:`SimulatorError` that says how; processes end
    with the one that started them, whatever ends that. Seeds, infos and autoreset as in CageVectorEnv; the games are
    CybORG's own, so the same seed is another game there and here.

    Args:
        num_envs: how many environments, and processes.
        red_agent: ``bline``, ``meander``, ``sleep``, or a comma list: environment i gets entry i, round and round.
        takeover: steps that red plays before, likewise.
        options: as for :class:`CyborgEnv`.

    Example:
        >>> envs = CyborgVectorEnv(1, red_agent="meander")
        >>> observations, infos = envs.reset(seed=0)
        >>> observations.shape, infos["red_level"].shape
        ((1, 52), (1, 13))
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012
    autoreset_mode = AutoresetMode.SAME_STEP

    def __init__(
        self,
        num_envs: int = 1,
        red_agent: str | Sequence[str] = "bline",
        takeover: str | int | Sequence[str] = 0,
        **options: Any,
    ) -> None:
        self.num_envs = positive_int("number of environments", num_envs, MOST_PROCESSES)
        kinds = list(zip(self._spread(red_agent), self._takeovers(takeover), strict=True))
        first = CyborgEnv(kinds[0][0], **options)  # refuses what is wrong, and imports CybORG before the processes fork
        self.network, self.max_steps = first.network, first.max_steps
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        makers = [
            partial(in_own_process, os.getpid(), partial(CyborgEnv, red, takeover=after, **options))
            for red, after in kinds
        ]
        if self.num_envs == 1:
            self.envs: Any = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        else:
            self.envs = start_processes(makers)
            self._finalizer = weakref.finalize(self, end_processes, self.envs)
        self.observation_space, self.action_space = self.envs.observation_space, self.envs.action_space
        self._bits = np.arange(4 * len(self.network.hosts))
        self._started = np.zeros(self.num_envs, bool)
        self._observations = np.zeros((self.num_envs, len(self._bits)), np.float32)

    def _spread(self, red_agent: str | Sequence[str]) -> list[str]:
        names = parse_red_agents(red_agent)
        if len(names) > self.num_envs:
            raise UserError(f"{len(names)} red agents were given for {self.num_envs} environments.")
        return [names[i % len(names)] for i in range(self.num_envs)]

    def _takeovers(self, takeover: str | int | Sequence[str]) -> list[str]:
        return [f"{least}-{most}" for least, most, _ in takeover_rows(takeover, self.num_envs).tolist()]

    @property
    def packed_observations(self) -> np.ndarray:
        """The current observations as 64-bit words, number k in bit k; shape (num_envs,)."""
        packed: np.ndarray = (self._observations.astype(np.int64) << self._bits).sum(axis=1)
        return packed

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, Infos]:
        """Starts new episodes; seeds and options as in CageVectorEnv."""
        options = dict(options or {})
        chosen = check_reset_mask(options.pop("reset_mask", None), self.num_envs)
        check_options(options, (*OPTIONS, "reset_mask"))
        if seed is not None and not isinstance(seed, (list, tuple, np.ndarray)):
            super().reset(seed=check_seed(seed))
        seeds = seeds_of(seed, self.num_envs, self.np_random)
        if seeds is None and not self._started.all():
            seeds = self.np_random.integers(2**63, size=self.num_envs).astype(np.uint64)
        changed = {"red_agent": self._spread, "takeover": self._takeovers}
        changed_to = {name: spread(options[name]) for name, spread in changed.items() if name in options}
        with self._guarded():
            for name, new in changed_to.items():
                old = self.envs.get_attr(name)
                self.envs.set_attr(name, [n if c else o for n, o, c in zip(new, old, chosen, strict=True)])
            listed = [None] * self.num_envs if seeds is None else [int(one) for one in seeds]
            mask = None if chosen.all() else {"reset_mask": chosen}
            observations, infos = self.envs.reset(seed=listed, options=mask)
        self._started |= chosen
        self._observations = observations
        return observations.copy(), infos

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Plays one step in every environment."""
        if not self._started.all():
            raise gymnasium.error.ResetNeeded("call reset() before step().")
        actions = check_actions(actions, self.num_envs)
        wrong = np.flatnonzero((actions < 0) | (actions >= self.network.n_actions))
        if len(wrong):
            raise UserError(
                f"action {actions[wrong[0]]} of environment {wrong[0]} does not exist; "
                f"allowed: 0 to {self.network.n_actions - 1}."
            )
        with self._guarded():
            observations, rewards, terminated, truncated, infos = self.envs.step(actions)
        self._observations = observations
        return observations.copy(), rewards, terminated, truncated, infos

    def state_arrays(self) -> dict[str, np.ndarray]:
        """Where all games stand, as plain arrays: opponents, takeovers, seeds, episodes, blue's actions in them."""
        if not self._started.all():
            raise gymnasium.error.ResetNeeded("call reset() before state_arrays().")
        with self._guarded():
            games = self.envs.get_attr("progress")
        longest = max(len(actions) for *_, actions in games)
        padded = [np.frombuffer(actions.ljust(longest, b"\0"), np.uint8) for *_, actions in games]
        return {
            "reds": np.array([red.encode() for red, *_ in games], "S8").view(np.uint8).reshape(self.num_envs, 8),
            "takeovers": np.array([int(takeover) for _, takeover, *_ in games], np.int64),
            "seeds": np.array([seed for _, _, seed, *_ in games], np.uint64),
            "episode_numbers": np.array([episode for *_, episode, _ in games], np.int64),
            "lengths": np.array([len(actions) for *_, actions in games], np.int64),
            "played": np.stack(padded),
        }

    def restore_state_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes back what :meth:`state_arrays` gave, by playing the actions again."""
        reds = [bytes(row).rstrip(b"\0").decode() for row in arrays["reds"]]
        arrays = {"takeovers": np.zeros(self.num_envs, np.int64)} | arrays  # older checkpoints have none
        names = ("takeovers", "seeds", "episode_numbers", "lengths", "played")
        rows = zip(reds, *(arrays[name] for name in names), strict=True)
        games = [(red, str(k), int(seed), int(number), row[:n].tobytes()) for red, k, seed, number, n, row in rows]
        with self._guarded():
            self.envs.set_attr("progress", games)
            self._observations = np.stack(self.envs.get_attr("observation"))
        self._started[:] = True

    def close(self, **_: Any) -> None:
        """Ends the processes."""
        if self.num_envs > 1:
            self._finalizer()
        self.closed = True

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Ends all processes when one fails, and says how it died."""
        if self.closed:
            raise gymnasium.error.ClosedEnvironmentError("the environments are closed.")
        try:
            yield
        except (EOFError, ConnectionError) as error:
            cause = cause_of_death(self.envs)
            self.close()
            raise SimulatorError(f"{cause}; the environments were closed.") from error
        except BaseException:  # Ctrl-C too: answers of some processes would be taken for those to the next question
            if self.num_envs > 1:
                self.close()
            raise
