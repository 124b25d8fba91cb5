"""Many environments of genuine CybORG: one process each, which never outlives its owner; failures are explained."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_all_start_methods
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from workflow_rl.config import MOST_PROCESSES
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.envs.checks import (
    OPTIONS,
    check_actions,
    check_options,
    check_reset_mask,
    check_seed,
    pack_observations,
    parse_red_agents,
    positive_int,
    seeds_of,
)
from workflow_rl.envs.cyborg_env import CyborgEnv
from workflow_rl.envs.cyborg_sim import check_playable
from workflow_rl.envs.parent_watch import end_with
from workflow_rl.envs.takeover import Infos, takeover_rows
from workflow_rl.errors import SimulatorError, UserError


class CyborgVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many environments of genuine CybORG, with the contract of :class:`workflow_rl.CageVectorEnv`.

    Each environment has a process of its own (Gymnasium's AsyncVectorEnv, observations in shared memory); a single one
    runs in this process. If a process dies, all are closed and a :class:`SimulatorError` explains why. Processes end
    with the one that started them, however that ends. Seeds, infos and autoreset are as in CageVectorEnv, but a seed
    denotes a different game there.

    Args:
        num_envs: number of environments, each with a process.
        red_agent: ``bline``, ``meander``, ``sleep``, or a comma list, whose entries the environments use in turn.
        takeover: steps that red plays before blue may act, a range of them, or a comma list used in the same way.
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
        self.network = as_network(options.get("network", CAGE2))
        self._action_dtype = np.min_scalar_type(self.network.n_actions - 1)  # in checkpoints
        kinds = list(zip(self._spread(red_agent), self._takeovers(takeover), strict=True))
        first = CyborgEnv(kinds[0][0], **options)  # checks the options, and imports CybORG before the processes fork
        self.max_steps = first.max_steps
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
        self._started = np.zeros(self.num_envs, bool)
        self.observations = np.zeros((self.num_envs, self.network.n_bits), np.float32)

    def _spread(self, red_agent: str | Sequence[str]) -> list[str]:
        names = parse_red_agents(red_agent, self.network)
        check_playable(self.network, names)
        if len(names) > self.num_envs:
            raise UserError(f"{len(names)} red agents were given for {self.num_envs} environments.")
        return [names[i % len(names)] for i in range(self.num_envs)]

    def _takeovers(self, takeover: str | int | Sequence[str]) -> list[str]:
        return [f"{least}-{most}" for least, most, _ in takeover_rows(takeover, self.num_envs).tolist()]

    @property
    def packed_observations(self) -> np.ndarray:
        """The current observations as 64-bit words; (num_envs, n_words), as in CageVectorEnv."""
        return pack_observations(self.observations)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, Infos]:
        """Starts new episodes; seeds and options are as in CageVectorEnv."""
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
        self.observations = observations
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
        self.observations = observations
        return observations.copy(), rewards, terminated, truncated, infos

    def state_arrays(self) -> dict[str, np.ndarray]:
        """The states of all games as plain arrays: opponents, takeovers, seeds, episodes and blue's actions."""
        if not self._started.all():
            raise gymnasium.error.ResetNeeded("call reset() before state_arrays().")
        with self._guarded():
            games = self.envs.get_attr("progress")
        played = np.zeros((self.num_envs, max(len(actions) for *_, actions in games)), self._action_dtype)
        for row, (*_, actions) in zip(played, games, strict=True):
            row[: len(actions)] = actions
        return {
            "reds": np.array([red.encode() for red, *_ in games], "S8").view(np.uint8).reshape(self.num_envs, 8),
            "takeovers": np.array([int(takeover) for _, takeover, *_ in games], np.int64),
            "seeds": np.array([seed for _, _, seed, *_ in games], np.uint64),
            "episode_numbers": np.array([episode for *_, episode, _ in games], np.int64),
            "lengths": np.array([len(actions) for *_, actions in games], np.int64),
            "played": played,
        }

    def restore_state_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Restores what :meth:`state_arrays` returned, by playing the actions again."""
        reds = [bytes(row).rstrip(b"\0").decode() for row in arrays["reds"]]
        arrays = {"takeovers": np.zeros(self.num_envs, np.int64)} | arrays  # older checkpoints have none
        names = ("takeovers", "seeds", "episode_numbers", "lengths", "played")
        rows = zip(reds, *(arrays[name] for name in names), strict=True)
        games = [(red, str(k), int(seed), int(number), row[:n].tolist()) for red, k, seed, number, n, row in rows]
        with self._guarded():
            self.envs.set_attr("progress", games)
            self.observations = np.stack(self.envs.get_attr("observation"))
        self._started[:] = True

    def close(self, **_: Any) -> None:
        """Ends the processes."""
        if self.num_envs > 1:
            self._finalizer()
        self.closed = True

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Ends all processes when one fails, and explains how it died."""
        if self.closed:
            raise gymnasium.error.ClosedEnvironmentError("the environments are closed.")
        try:
            yield
        except (EOFError, ConnectionError) as error:
            cause = cause_of_death(self.envs)
            self.close()
            raise SimulatorError(f"{cause}; the environments were closed.") from error
        except BaseException:  # also Ctrl-C: pending answers would be mistaken for those to the next request
            if self.num_envs > 1:
                self.close()
            raise


class CyborgProcesses(AsyncVectorEnv):
    """Gymnasium's AsyncVectorEnv, but it raises the error of a process without printing a traceback."""

    def _raise_if_errors(self, successes: Iterable[bool]) -> None:
        if not all(successes):
            _, kind, error, _ = self.error_queue.get()
            raise error if isinstance(error, Exception) else kind(error)


def in_own_process(owner: int, make: Callable[[], Any]) -> Any:
    """Makes an environment; in another process than its owner's, ignores Ctrl-C and ends with the owner."""
    if os.getpid() != owner:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the life of the process)
        end_with(owner)
    return make()


def start_processes(makers: Sequence[Callable[[], Any]]) -> CyborgProcesses:
    """Starts one process per environment; if one fails, none is left."""
    envs = CyborgProcesses.__new__(CyborgProcesses)
    how = "fork" if "fork" in get_all_start_methods() else "spawn"
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            CyborgProcesses.__init__(envs, makers, context=how, autoreset_mode=AutoresetMode.SAME_STEP)
    except (EOFError, ConnectionError) as error:
        cause = cause_of_death(envs)
        end_processes(envs)
        raise SimulatorError(f"{cause} at its start.") from error
    except OSError as error:
        end_processes(envs)
        raise SimulatorError(f"cannot start {len(makers)} processes of CybORG: {_why(error)}.") from error
    except BaseException:
        end_processes(envs)
        raise
    return envs


def _why(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "shared memory (/dev/shm) is full"
    if error.errno == errno.EAGAIN:
        return "the system allows no more processes"
    return str(error.strerror or error)


def end_processes(envs: Any) -> None:
    """Ends all processes that were started and closes their files; CybORG has nothing to save."""
    envs.closed = True
    processes = [process for process in getattr(envs, "processes", []) if process.pid is not None]
    if processes and processes[0]._parent_pid != os.getpid():  # this is a copy in a process forked later
        return
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(2)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
    for pipe in getattr(envs, "parent_pipes", []):
        if pipe is not None:
            pipe.close()
    if hasattr(envs, "error_queue"):
        envs.error_queue.close()
        envs.error_queue = None  # closes its pipe
    envs.processes = []


def cause_of_death(envs: Any) -> str:
    """Which environment's process has ended, and how."""
    for number, process in enumerate(getattr(envs, "processes", [])):
        process.join(0.5 if number == 0 else 0.05)
        code = process.exitcode
        if code is not None:
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            return f"the process of CybORG environment {number} (id {process.pid}) {how}"
    return "a process of CybORG no longer answers"
