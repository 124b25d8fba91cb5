"""One environment of genuine CybORG behind the Gymnasium API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from workflow_rl.config import parse_takeover
from workflow_rl.engine.network import GREEN_AGENTS, Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.tables import fixed_hosts, fixed_unit_types
from workflow_rl.envs.checks import (
    OPTIONS,
    check_options,
    check_seed,
    check_single_action,
    parse_red_agents,
    positive_int,
)
from workflow_rl.envs.cyborg_sim import CyborgGame, check_network, check_package, check_playable, load_cyborg
from workflow_rl.envs.takeover import Infos, start_infos
from workflow_rl.errors import SimulatorError, UserError, check_choice

TAKEOVER = 11  # separates the generator of the takeover from that of the game


class CyborgEnv(gymnasium.Env[np.ndarray, int]):
    """One environment of genuine CybORG; spaces, rewards and infos as in :class:`workflow_rl.CageVectorEnv`.

    ``reset(seed=s)`` starts the game that CybORG plays after ``random.seed(s)``; later resets without a seed derive
    theirs from it. Python's global generator is not changed.

    Args:
        red_agent: ``bline``, ``meander`` or ``sleep``.
        edition: the edition of the installed CybORG; another one is refused.
        max_steps: length of an episode; None: endless.
        green_agent: ``sleep`` (the challenge's) or ``active``.
        network: a network or the path of its file.
        cyborg_path: a checkout of CybORG to use instead of csle-cyborg.
        recorder: makes a :class:`workflow_rl.fidelity.cyborg_recorder.Recorder` from a game. Its rows of the trace
            format are in ``infos["record"]``; those of the steps before the takeover are in ``opening``.
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
        check_package(self._package, edition)
        check_network(self._package, self.network, as_network(CAGE2))
        self._make_recorder, self._game, self._recorder = recorder, None, None  # type: tuple[Any, Any, Any]
        self._playing = ""  # the opponent of the running game
        self.red_agent, self.takeover = red_agent, str(takeover)
        self.opening: list[dict[str, np.ndarray]] = []  # rows of the trace format, of the steps before the takeover
        self._slept = 0  # the number of these steps
        self._fixed, self._targets = fixed_unit_types(self.network), fixed_hosts(self.network)
        self._foothold = self.network.host_names.index(self.network.red.foothold)
        self.observation_space = Box(0.0, 1.0, (4 * len(self.network.hosts),), np.float32)
        self.action_space: Any = Discrete(self.network.n_actions)
        self._seed: int | None = None
        self._episode, self._actions = 0, list[int]()
        self.observation = np.zeros(4 * len(self.network.hosts), np.float32)  # the latest one

    @property
    def red_agent(self) -> str:
        """The opponent; a change takes effect at the next reset."""
        return self._next_red

    @red_agent.setter
    def red_agent(self, red_agent: str | Sequence[str]) -> None:
        names = parse_red_agents(red_agent, self.network)
        if len(names) > 1:
            raise UserError(f"{len(names)} red agents were given for 1 environments.")
        check_playable(self.network, names)
        self._next_red = names[0]

    @property
    def takeover(self) -> str:
        """Steps that red plays before blue may act; a change takes effect at the next reset."""
        return self._takeover

    @takeover.setter
    def takeover(self, takeover: str) -> None:
        if len(parse_takeover(takeover)) > 1:
            raise UserError(f"{len(parse_takeover(takeover))} takeovers were given for 1 environments.")
        self._takeover = takeover

    @property
    def progress(self) -> tuple[str, str, int, int, list[int]]:
        """The state of the game as opponent, takeover, seed, number of the episode and blue's actions. Can be set."""
        self._check_running("the game can be asked for")
        assert self._seed is not None
        return self._playing, str(self._slept), self._seed, self._episode, self._actions.copy()

    @progress.setter
    def progress(self, progress: tuple[str, str, int, int, list[int]]) -> None:
        drawn_from = self.takeover
        self.red_agent, self.takeover, self._seed, self._episode, actions = progress
        self._start()
        self.takeover = drawn_from
        for action in actions:
            self._play(action)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Infos]:
        """Starts a new episode; the options ``red_agent`` and ``takeover`` replace these settings."""
        options = dict(options or {})
        check_options(options, OPTIONS)
        for name, value in options.items():
            setattr(self, name, value)
        if seed is not None:
            super().reset(seed=check_seed(seed))
            self._seed, self._episode = int(seed), 0
        elif self._seed is None:
            self._seed, self._episode = int(self.np_random.integers(2**63)), 0
        else:
            self._episode += 1
        self._start()
        start = start_infos(self._game.levels()[None], np.array([self._slept]))
        return self.observation.copy(), {key: value[0] for key, value in start.items()}

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
            infos["record"] = self._recorder.record(number, self.observation, reward)
        return self.observation.copy(), reward, False, self._ended, infos

    def _check_running(self, what: str) -> None:
        if self._seed is None:
            raise gymnasium.error.ResetNeeded(f"call reset() before {what}.")
        if self._game is None:
            raise gymnasium.error.ResetNeeded(f"the game broke off: call reset() before {what}.")

    @property
    def _ended(self) -> bool:
        return self.max_steps is not None and len(self._actions) >= self.max_steps

    def _start(self) -> None:
        """Begins the episode that ``_seed`` and ``_episode`` identify."""
        if self._game is None or self._playing != self._next_red:
            self._playing = self._next_red
            self._game = CyborgGame(self._package, self._playing, self.green_agent, self.network)
            self._recorder = self._make_recorder(self._game) if self._make_recorder else None
        assert self._seed is not None
        words = np.random.SeedSequence([self._seed, self._episode]).generate_state(2, np.uint64)
        seed = self._seed if self._episode == 0 else int(words[0]) << 64 | int(words[1])
        self._actions = list[int]()
        with self._explained():
            self.observation = self._game.reset(seed)
        if self._recorder is not None:
            self._recorder.start()
        self._sleep()

    def _sleep(self) -> None:
        """Plays the steps before blue takes over."""
        assert self._seed is not None
        least, most = parse_takeover(self.takeover)[0]
        own = np.random.default_rng([self._seed, self._episode, TAKEOVER])
        self._slept, self.opening = int(own.integers(least, most + 1)), []
        sleep = self.network.action_index("Sleep")
        for _ in range(self._slept):
            reward = self._play(sleep)
            if self._recorder is not None:
                self.opening.append(self._recorder.record(sleep, self.observation, reward))
        self._actions = list[int]()  # from now on blue's own

    def _play(self, action: int) -> float:
        self._actions.append(action)
        with self._explained():
            self.observation, reward = self._game.step(action)
        return float(reward)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._game = None  # half-played and unusable
            if not isinstance(error, Exception):
                raise
            raise SimulatorError(
                f"genuine CybORG failed with {type(error).__name__} ({error}) in step {len(self._actions)} of episode "
                f"{self._episode} of seed {self._seed} against {self._playing}."
            ) from error
