"""Genuine CybORG 2.1: importing it, and playing one game without side effects on the rest of the process."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import gymnasium.spaces
import numpy as np

from workflow_rl.config import BACKENDS
from workflow_rl.engine.cyborg.exporter import cyborg_scenario
from workflow_rl.engine.cyborg.problems import cyborg_problems
from workflow_rl.engine.cyborg.rules import PRIVILEGED, cyborg_names
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.envs.cyborg_agents import ProgramAgent, scanning_green
from workflow_rl.errors import MissingExtraError, UserError, check_choice, install_hint

FORK, CHECKOUT = "csle_cyborg", "CybORG"
INSTALL = install_hint("cyborg")


@dataclass(frozen=True)
class CyborgPackage:
    """An imported CybORG: the fork from PyPI, which accepts a scenario, or a checkout, which has its own file."""

    name: str
    edition: str
    simulator: Any
    wrapper: Any
    red_agents: dict[str, Any]
    green_agent: Any
    scenario_file: str = ""


@functools.cache
def load_cyborg(path: str = "") -> CyborgPackage:
    """Imports csle-cyborg or, where a ``path`` is given, the user's own checkout of CybORG.

    Raises:
        MissingExtraError: it is not installed, or cannot be imported.
        UserError: there is no CybORG of a known edition at ``path``.
    """
    return _checkout(path) if path else _fork()


def _fork() -> CyborgPackage:
    try:
        part = functools.partial(_part, FORK)
        red = {
            "bline": part("agents.simple_agents.b_line").B_lineAgent,
            "meander": part("agents.simple_agents.meander").RedMeanderAgent,
            "sleep": part("agents.simple_agents.sleep_agent").SleepAgent,
        }
        return CyborgPackage(
            name=f"csle-cyborg {importlib.metadata.version('csle-cyborg')}",
            edition=_edition(FORK, part("simulator.session"), part("shared.enums")),
            simulator=part("main").Main,
            wrapper=part("agents.wrappers.challenge_wrapper").ChallengeWrapper,
            red_agents=red,
            green_agent=part("agents.simple_agents.green_agent").GreenAgent,
        )
    except ImportError as error:
        reason = "" if error.name == FORK else f" completely ({error})"
        raise MissingExtraError(f"genuine CybORG is not installed{reason}; {INSTALL}.") from None


def _checkout(path: str) -> CyborgPackage:
    places = [Path(path, *below) for below in ((), (CHECKOUT,), (CHECKOUT, CHECKOUT))]
    root = next((place for place in places if (place / "Agents").is_dir() and (place / "__init__.py").is_file()), None)
    if root is None:
        raise UserError(f"{path}: no checkout of CybORG (a folder with CybORG/Agents in it).")
    scenario = root / "Shared" / "Scenarios" / "Scenario2.yaml"
    if not scenario.is_file():
        raise UserError(
            f"{path}: this CybORG has no Scenario2 ({scenario} is missing), so it is not of CAGE Challenge 2."
        )
    try:
        with _gym():
            return _package_in(root, scenario)
    except UserError:
        raise
    except Exception as error:  # an old checkout under a new Python can fail in any way
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        if missing and not missing.startswith(CHECKOUT):
            needs = f"needs the Python package {missing!r}, which is not installed here; install it first"
            raise UserError(f"{path}: this CybORG {needs}.") from None
        raise UserError(f"{path}: this CybORG cannot be imported here ({type(error).__name__}: {error}).") from None


def _package_in(root: Path, scenario: Path) -> CyborgPackage:
    package = _import_from(root)
    part = functools.partial(_part, CHECKOUT)
    agents = part("Agents")
    red = {"bline": agents.B_lineAgent, "meander": agents.RedMeanderAgent, "sleep": agents.SleepAgent}
    return CyborgPackage(
        name=f"CybORG in {root}",
        edition=_edition(str(root), part("Simulator.Session"), part("Shared.Enums")),
        simulator=package.CybORG,
        wrapper=part("Agents.Wrappers").ChallengeWrapper,
        red_agents=red,
        green_agent=agents.GreenAgent,
        scenario_file=str(scenario),
    )


@contextmanager
def _gym() -> Iterator[None]:
    """Lets a checkout import Gymnasium under the name ``gym`` if that is not installed; Env and spaces are the same."""
    if importlib.util.find_spec("gym") is not None:
        yield
        return
    sys.modules |= {"gym": gymnasium, "gym.spaces": gymnasium.spaces}
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "gym"]:
            del sys.modules[name]


def _part(package: str, name: str) -> ModuleType:
    return importlib.import_module(f"{package}.{name}")


def _import_from(root: Path) -> ModuleType:
    """Imports the package in ``root`` without adding its parent folder to the path."""
    known = sys.modules.get(CHECKOUT)
    if known is not None:
        if Path(str(known.__file__)).parent.resolve() != root.resolve():
            raise ImportError(f"another CybORG is loaded already, from {known.__file__}")
        return known
    spec = importlib.util.spec_from_file_location(
        CHECKOUT, root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = sys.modules[CHECKOUT] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[CHECKOUT]
        raise
    return module


def _edition(where: str, sessions: ModuleType, enums: ModuleType) -> str:
    """Which of the two public states of version 2.1 this is, detected by the rules in which they differ."""
    replaces_ports = hasattr(sessions.RedAbstractSession, "clearports")
    keeps_versions = enums.ProcessVersion.parse_string("x") == "x"
    if replaces_ports != keeps_versions:
        raise UserError(f"{where}: a state of CybORG between the current and the leaderboard edition.")
    return "current" if replaces_ports else "leaderboard"


@dataclass(frozen=True)
class Backend:
    """Where games are played.

    Args:
        name: ``native`` or ``cyborg``.
        cyborg_path: a checkout of CybORG to use instead of csle-cyborg.
        jobs: processes that genuine CybORG may have for an evaluation; no result depends on it.
    """

    name: str = "native"
    cyborg_path: str = ""
    jobs: int = 1


NATIVE = Backend()


def check_backend(backend: Backend, edition: str = "") -> None:
    """Refuses an unknown backend, CybORG that is not there, and an edition (if given) that it does not play."""
    check_choice("backend", backend.name, BACKENDS)
    if backend.name == "native":
        if backend.cyborg_path:
            raise UserError("a CybORG path was given, but the backend is native; use backend cyborg.")
        return
    package = load_cyborg(backend.cyborg_path)
    if edition:
        check_package(package, edition)


class CyborgGame:
    """One network of genuine CybORG behind its own ChallengeWrapper.

    CybORG draws all its random numbers from Python's global ``random``. Each game has a state of its own, which is
    installed for every call and exchanged for the caller's afterwards: games disturb neither the caller nor each other.

    Observations and actions are in the network's order, which is that of the scenario. Only names differ: ``names`` has
    those that CybORG plays under.
    """

    def __init__(self, package: CyborgPackage, red_agent: str, green_agent: str, network: Network) -> None:
        check_playable(network, (red_agent,))
        self.network, self.names = network, cyborg_names(network)
        self._chance = random.Random(0).getstate()
        own = functools.partial(ProgramAgent, network, red_agent, self.names, lambda: self.controller.state)
        agents = {"Red": package.red_agents.get(red_agent, own)}
        if green_agent == "active":
            agents["Green"] = scanning_green(package.green_agent, [self.names[name] for name in network.green.scans])
        with self._own_chance():
            self.cyborg = package.simulator(package.scenario_file or cyborg_scenario(network), "sim", agents=agents)
            self.wrapper = package.wrapper(env=self.cyborg, agent_name="Blue")
        actions = self.inner_wrapper("possible_actions").possible_actions
        names = [(type(action).__name__, getattr(action, "hostname", "")) for action in actions]
        parts = [network.action_parts(number) for number in range(network.n_actions)]
        if names != [(verb, self.names.get(host, "")) for verb, host in parts]:
            raise UserError(f"{package.name} numbers blue's actions differently from the network.")

    @property
    def controller(self) -> Any:
        """CybORG's own controller; its ``state`` is the truth."""
        return self.cyborg.environment_controller

    def inner_wrapper(self, name: str) -> Any:
        """The outermost of CybORG's nested wrappers that has an attribute of this name."""
        wrapper = self.wrapper
        while not hasattr(wrapper, name):
            wrapper = wrapper.env
        return wrapper

    def reset(self, seed: int) -> np.ndarray:
        """Starts the game that CybORG plays after ``random.seed(seed)``; returns the observation."""
        self._chance = random.Random(seed).getstate()
        with self._own_chance():
            result = self.wrapper.reset()
        return np.asarray(result[0] if isinstance(result, tuple) else result, np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float]:
        """Plays one step; returns observation and reward."""
        with self._own_chance():
            observation, reward = self.wrapper.step(action)[:2]
        return np.asarray(observation, np.float32), float(reward)

    def levels(self) -> np.ndarray:
        """Red's true level on each host: 0 none, 1 user, 2 privileged; int8."""
        levels, ours = np.zeros(len(self.network.hosts), np.int8), list(self.names.values())
        for session in self.controller.state.sessions["Red"].values():
            host = ours.index(session.host)
            levels[host] = max(levels[host], 2 if session.username in PRIVILEGED.values() else 1)
        return levels

    def red_sessions(self, host: int) -> list[Any]:
        """Red's sessions on a host; the same object before and after a step means that blue did not end it."""
        name = self.names[self.network.host_names[host]]
        return [session for session in self.controller.state.sessions["Red"].values() if session.host == name]

    @contextmanager
    def _own_chance(self) -> Iterator[None]:
        callers = random.getstate()
        random.setstate(self._chance)
        try:
            yield
        finally:
            self._chance = random.getstate()
            random.setstate(callers)


def check_package(package: CyborgPackage, edition: str) -> None:
    """Refuses an edition that this CybORG does not play."""
    if edition != package.edition:
        raise UserError(
            f"{package.name} plays the {package.edition} edition, not {edition}; "
            "for another one give the path of a checkout of it (--cyborg-path; in Python cyborg_path)."
        )


def check_network(package: CyborgPackage, network: Network, bundled: Network) -> None:
    """Refuses any network but the ``bundled`` one for a checkout, which plays its own Scenario2."""
    if package.scenario_file and network != bundled:
        raise UserError(f"{package.name} plays its own Scenario2; give no other network with it.")


def check_playable(network: Network, red_agents: Iterable[str]) -> None:
    """Refuses a network that genuine CybORG does not play as described, or not with these red agents."""
    problems = cyborg_problems(network, as_network(CAGE2), red_agents)
    if problems:
        more = f" (and {len(problems) - 1} more reasons)" if len(problems) > 1 else ""
        raise UserError(f"genuine CybORG cannot play the network {network.name}: {problems[0]}{more}.")
