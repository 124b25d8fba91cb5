"""Speed of the environments beside genuine CybORG in the same run. Timings are the best of several repeats."""

from __future__ import annotations

import importlib.util
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workflow_rl.engine.compiled import CACHE_VARIABLE
from workflow_rl.engine.network import Network, room_for
from workflow_rl.engine.network_file import as_network
from workflow_rl.engine.networks.generate import generate
from workflow_rl.engine.state import state_dtype
from workflow_rl.engine.step import step_envs
from workflow_rl.envs.env import CageEnv, CageVectorEnv
from workflow_rl.errors import UserError

SIZES = (1, 25, 200, 1000, 4096)
CAGE2_HOSTS, HOST_ENVS, TURNS = 13, 200, 5
ROUNDS = 100  # vector steps per timed call: one episode, one reset
FIRST_STEP = """
from workflow_rl.envs.env import CageVectorEnv
envs = CageVectorEnv(200)
envs.reset(seed=0)
envs.step([0] * 200)
"""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Machine:
    """Where the figures were measured."""

    processor: str
    cores: int | None
    python: str


@dataclass(frozen=True)
class EnvSpeeds:
    """Steps per second against one red agent; the dictionaries are by number of environments."""

    vector_steps_per_s: dict[str, float]
    engine_steps_per_s: dict[str, float]
    single_env_steps_per_s: float


@dataclass(frozen=True)
class EnvFigures(EnvSpeeds):
    """The figures of ``bench env``; the speeds are those against ``red_agent``."""

    red_agent: str
    by_red_agent: dict[str, EnvSpeeds]
    cyborg_steps_per_s: float | None
    ratio_to_cyborg_at_200: float | None
    cold_start_s: float
    cached_start_s: float
    bytes_per_env: int
    peak_memory_mb: float
    machine: Machine


def bench_env(seconds: float, red_agents: tuple[str, ...], with_cyborg: bool, network: Network, say: Say) -> EnvFigures:
    """Steps per second of engine and environments, start-up, memory and, where installed, of genuine CybORG.

    Args:
        seconds: how long to measure each figure.
        red_agents: opponents; the headline figures are those of the last one, usually the slowest.
        with_cyborg: measure genuine CybORG as well, if csle-cyborg is installed.
        network: the network that is played.
        say: called with a line of progress.
    """
    check_seconds(seconds)
    by_red = {}
    for red in red_agents:
        say(f"environments against {red}")
        by_red[red] = EnvSpeeds(
            {str(n): _vector_speed(CageVectorEnv(n, red, network=network), seconds) for n in SIZES},
            {str(n): _engine_speed(CageVectorEnv(n, red, network=network), seconds) for n in SIZES},
            _single_speed(CageEnv(red, network=network), seconds),
        )
    headline = red_agents[-1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cyborg = None
    if with_cyborg and importlib.util.find_spec("csle_cyborg") is not None:
        say(f"genuine CybORG against {headline}")
        cyborg = cyborg_speed(headline, max(5.0, 5 * seconds), network)
    elif with_cyborg:
        say("genuine CybORG is not installed (extra: cyborg); no ratio")
    say("start-up")
    cold, cached = _start_up()
    return EnvFigures(
        **vars(by_red[headline]),
        red_agent=headline,
        by_red_agent=by_red,
        cyborg_steps_per_s=cyborg,
        ratio_to_cyborg_at_200=by_red[headline].vector_steps_per_s["200"] / cyborg if cyborg else None,
        cold_start_s=cold,
        cached_start_s=cached,
        bytes_per_env=state_dtype(room_for(network)).itemsize,
        peak_memory_mb=memory,
        machine=machine(),
    )


@dataclass(frozen=True)
class HostFigures:
    """The figures of ``bench env --hosts``; the dictionaries are by number of hosts."""

    n_envs: int
    engine_steps_per_s: dict[str, dict[str, float]]  # by red agent
    bytes_per_env: dict[str, int]
    machine: Machine


def bench_hosts(sizes: tuple[int, ...], seconds: float, red_agents: tuple[str, ...], say: Say) -> HostFigures:
    """Steps per second of the engine alone in generated networks of several sizes; that of 13 hosts is CAGE-2.

    The sizes are measured in turn, several times; the best of each counts.
    """
    check_seconds(seconds)
    networks = {str(n): as_network("cage2") if n == CAGE2_HOSTS else generate(n, _types_for(n), 0) for n in sizes}
    best: dict[str, dict[str, float]] = {red: dict.fromkeys(networks, 0.0) for red in red_agents}
    for turn in range(TURNS):
        say(f"turn {turn + 1} of {TURNS}")
        for red in red_agents:
            for hosts, network in networks.items():
                envs = CageVectorEnv(HOST_ENVS, red, network=network)
                best[red][hosts] = max(best[red][hosts], _engine_speed(envs, seconds / TURNS))
    room = {hosts: state_dtype(room_for(network)).itemsize for hosts, network in networks.items()}
    return HostFigures(HOST_ENVS, best, room, machine())


def _types_for(hosts: int) -> int:
    return max(3, min(8, hosts // 2))


def check_seconds(seconds: float) -> None:
    """Refuses an impossible duration."""
    if not 0.01 <= seconds <= 600:
        raise UserError(f"the seconds per figure must be from 0.01 to 600, not {seconds}.")


def machine() -> Machine:
    """This machine."""
    return Machine(_processor(), os.cpu_count(), platform.python_version())


def best_rate(play: Callable[[], int], seconds: float, repeats: int = 5) -> float:
    """Units per second of the fastest of ``repeats`` runs of ``play``, which returns the number of units done."""
    play()  # warm-up, compilation included
    best = 0.0
    for _ in range(repeats):
        done, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds / repeats:
            done += play()
        best = max(best, done / elapsed)
    return best


def _random_actions(n_envs: int, n_actions: int) -> np.ndarray:
    return np.random.default_rng(0).integers(n_actions, size=(ROUNDS, n_envs))


def _vector_speed(envs: CageVectorEnv, seconds: float) -> float:
    """Through the public API: actions checked, new arrays every step, autoreset every 100 steps."""
    envs.reset(seed=0)
    actions = _random_actions(envs.num_envs, envs.network.n_actions)

    def play() -> int:
        for row in actions:
            envs.step(row)
        return actions.size

    return best_rate(play, seconds)


def _engine_speed(envs: CageVectorEnv, seconds: float) -> float:
    """The compiled loop alone: chance, rules, rewards, float32 observations and autoreset, into the same arrays."""
    envs.reset(seed=0)
    game, actions = envs.game, _random_actions(envs.num_envs, envs.network.n_actions)
    outputs = game.outputs()

    def play() -> int:
        for row in actions:
            step_envs(game.states, game.tables, game.takeovers, row, ROUNDS, True, *outputs, None, None, None)
        return actions.size

    return best_rate(play, seconds)


def _single_speed(env: CageEnv, seconds: float) -> float:
    env.reset(seed=0)
    actions = _random_actions(1, env.network.n_actions)[:, 0].tolist()

    def play() -> int:
        env.reset()
        for action in actions:
            env.step(action)
        return len(actions)

    return best_rate(play, seconds)


def _start_up() -> tuple[float, float]:
    """Seconds from the start of a new process to the end of its first step, with an empty and with a full cache."""
    with tempfile.TemporaryDirectory() as directory:
        times = []
        for _ in range(2):
            start = time.perf_counter()
            environment = os.environ | {CACHE_VARIABLE: directory}
            subprocess.run([sys.executable, "-c", FIRST_STEP], env=environment, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
    return times[0], times[1]


def cyborg_speed(red_agent: str, seconds: float, network: Network) -> float:
    """Steps per second of genuine CybORG behind its own wrapper: uniform blue, whole episodes, resets not timed."""
    from workflow_rl.envs.cyborg_sim import CyborgGame, load_cyborg

    game, callers = CyborgGame(load_cyborg(), red_agent, "sleep", network), random.getstate()
    actions = random.Random(1)
    steps, elapsed = 0, 0.0
    try:
        random.seed(0)
        while elapsed < seconds:
            game.wrapper.reset()
            start = time.perf_counter()
            for _ in range(ROUNDS):
                game.wrapper.step(actions.randrange(network.n_actions))
            elapsed += time.perf_counter() - start
            steps += ROUNDS
    finally:
        random.setstate(callers)
    return steps / elapsed


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor()
