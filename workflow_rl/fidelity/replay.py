"""Replays recorded games through the engine with the recorded chance and compares everything after every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workflow_rl.engine.chance import ABSENT, GREEN_SLEEPS, Draw, force
from workflow_rl.engine.network import BITS_PER_HOST, DECOYS, MEANDER, RED_AGENTS, Network, room_for
from workflow_rl.engine.observe import BELIEF_NO, BELIEF_PRIVILEGED, BELIEF_UNKNOWN, BELIEF_USER, by_host, unpacked
from workflow_rl.engine.state import NO_OPTION, NO_RESULT, allocate
from workflow_rl.engine.step import reset_envs, step_envs_with
from workflow_rl.engine.tables import ESCALATE, EXPLOIT, SCAN, compile_tables
from workflow_rl.envs.takeover import takeover_rows
from workflow_rl.fidelity.meander_check import meander_candidates
from workflow_rl.fidelity.traces import (
    CANDIDATES,
    Trace,
    check_fits,
    code_map,
    translate_masks,
)

# The format's codes of the remembered column: 0 No, 1 User, 2 Privileged, 3 Unknown.
_BELIEF_CODES = {BELIEF_NO: 0, BELIEF_USER: 1, BELIEF_PRIVILEGED: 2, BELIEF_UNKNOWN: 3}

assert (NO_RESULT, NO_OPTION) == (-1, 5)  # exploit results have the format's codes


@dataclass(frozen=True)
class Difference:
    """One field of one step, as recorded and as the engine has it."""

    recorded: Any
    engine: Any


@dataclass(frozen=True)
class Mismatch:
    """The first step of an episode that differs, with every field that does; episode and step count from 0."""

    file: str
    episode: int
    step: int
    fields: dict[str, Difference]


@dataclass
class ReplayResult:
    """How many steps were replayed, how many of them differ, and where the first one is."""

    episodes: int = 0
    steps: int = 0
    mismatched_steps: int = 0
    mismatched_episodes: int = 0
    mismatched_after_collision: int = 0
    first_mismatch: Mismatch | None = None
    mismatches_by_field: dict[str, int] = field(default_factory=dict)

    def add(self, other: ReplayResult) -> None:
        """Adds the counts of another replay."""
        for name in ("episodes", "steps", "mismatched_steps", "mismatched_episodes", "mismatched_after_collision"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_mismatch = self.first_mismatch or other.first_mismatch
        for name, number in other.mismatches_by_field.items():
            self.mismatches_by_field[name] = self.mismatches_by_field.get(name, 0) + number


@dataclass
class EditionResult(ReplayResult):
    """The result under the rules of one edition; ``edition_that_fits`` has no mismatches, empty if there is none."""

    edition: str = ""
    edition_that_fits: str = ""


def replay(trace: Trace, network: Network, edition: str = "current") -> ReplayResult:
    """Plays all episodes of ``trace`` side by side by the rules of ``edition`` and compares each step."""
    return Replayer(trace, network).run(compile_tables(network, edition))


def replay_all(
    traces: Sequence[Trace], network: Network, edition: str, progress: Callable[[int], None] = lambda _: None
) -> EditionResult:
    """Replays several traces; if some steps differ, looks for an edition under which none does."""
    total = EditionResult(edition=edition, edition_that_fits=edition)
    for trace in traces:
        total.add(replay(trace, network, edition))
        progress(1)
    if total.mismatched_steps:
        others = [name for name in network.editions if name != edition]
        fitting = (n for n in others if not any(replay(trace, network, n).mismatched_steps for trace in traces))
        total.edition_that_fits = next(fitting, "")
    return total


class Replayer:
    """A recording prepared for comparison; it can be played with several tables, correct or mutated ones."""

    def __init__(self, trace: Trace, network: Network) -> None:
        check_fits(trace, network)
        self.trace, self.network = trace, network
        self.recorded, self.draws = _recorded(trace, network), _forced_draws(trace, network)
        self.actions = trace["blue_action"].astype(np.int64)
        self.played = np.arange(trace.max_steps) < trace["n_steps"][:, None]

    def run(self, tables: np.ndarray) -> ReplayResult:
        """Plays with ``tables`` and compares each step."""
        shape = self.trace["blue_action"].shape
        wrong = {name: np.zeros(shape, bool) for name in self.recorded}
        first: dict[int, Mismatch] = {}  # by episode
        for step, name, rows, value in self._differences(tables):
            wrong[name][:, step] = rows
            self._note_first(first, name, step, rows, value)
        return _summary(self.trace, wrong, self.played, first)

    def differs(self, tables: np.ndarray) -> bool:
        """Whether any step differs; stops at the first one."""
        return next(self._differences(tables), None) is not None

    def _differences(self, tables: np.ndarray) -> Iterator[tuple[int, str, np.ndarray, np.ndarray]]:
        """Yields step, field, which episodes differ in it (E,) and the engine's values."""
        trace, n = self.trace, self.trace.n_episodes
        for step, states, rewards in self._play(tables):
            for name, value in _engine_values(states, rewards, self.network, trace):
                differs = value != self.recorded[name][:, step]
                if differs.any():
                    rows = differs.reshape(n, -1).any(axis=1) & self.played[:, step]
                    if rows.any():
                        yield step, name, rows, value

    def _play(self, tables: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yields each step with the states (E,) and rewards (E,) after it."""
        trace, n = self.trace, self.trace.n_episodes
        states, rewards = allocate(n, room_for(self.network)), np.zeros(n)
        states["red"] = [self.network.red_number(trace.red_agent(episode)) for episode in range(n)]
        states["green_acts"] = 1
        reset_envs(states, tables, takeover_rows(0, n), np.ones(n, bool), np.zeros(n, np.uint64), True)
        for step in range(trace.max_steps):
            step_envs_with(states, tables, self.actions[:, step], self.draws[:, step], rewards)
            yield step, states, rewards

    def repaired(self, tables: np.ndarray) -> np.ndarray:
        """Hosts that blue's action freed of red in each step, by the engine; (E, T) int64."""
        found = np.zeros(self.actions.shape, np.int64)
        for step, states, _ in self._play(tables):
            found[:, step] = states["repaired"]
        return found

    def _note_first(
        self, first: dict[int, Mismatch], name: str, step: int, wrong: np.ndarray, value: np.ndarray
    ) -> None:
        """Keeps the values that differ in the first wrong step of each episode."""
        for episode in np.flatnonzero(wrong).tolist():
            here = first.setdefault(episode, Mismatch(self.trace.path, episode, step, {}))
            if here.step == step:
                pair = self.recorded[name][episode, step], value[episode]
                here.fields[name] = Difference(*(np.asarray(one).tolist() for one in pair))


def _summary(
    trace: Trace, wrong: dict[str, np.ndarray], played: np.ndarray, first: dict[int, Mismatch]
) -> ReplayResult:
    any_wrong = np.any(list(wrong.values()), axis=0)
    start_wrong = trace["obs0"].any(axis=1)  # the observation after a reset is all zeros
    any_wrong[:, 0] |= start_wrong
    for episode in np.flatnonzero(start_wrong).tolist():
        first[episode] = Mismatch(trace.path, episode, 0, {"obs0": Difference("not all zeros", "all zeros")})
    return ReplayResult(
        episodes=trace.n_episodes,
        steps=int(played.sum()),
        mismatched_steps=int(any_wrong.sum()),
        mismatched_episodes=int(any_wrong.any(axis=1).sum()),
        mismatched_after_collision=int((any_wrong & (trace["collision"] > 0)).sum()),
        first_mismatch=first[min(first)] if first else None,
        mismatches_by_field={name: int(array.sum()) for name, array in wrong.items() if array.any()},
    )


def _forced_draws(trace: Trace, network: Network) -> np.ndarray:
    """The recorded outcome of every chance event; shape (E, T, 4)."""
    draws = np.full((*trace["blue_action"].shape, len(Draw)), force(ABSENT), np.int64)
    exploits = code_map(trace.codes.exploits, [exploit.name for exploit in network.exploits])
    target, exploit, detect, green = (
        trace[name].astype(np.int64) for name in ("red_target", "exploit", "detect", "green_target")
    )
    aimed = (target >= 0) & np.isin(trace["red_action"], (SCAN, EXPLOIT, ESCALATE))
    draws[..., Draw.PICK] = force(np.where(aimed, target, ABSENT))
    draws[..., Draw.EXPLOIT] = force(np.where(exploit >= 0, exploits[exploit], ABSENT))
    draws[..., Draw.DETECTED] = force(np.where(detect >= 0, detect, ABSENT))
    draws[..., Draw.GREEN] = force(np.where(green >= 0, green, GREEN_SLEEPS))
    return draws


def _recorded(trace: Trace, network: Network) -> dict[str, np.ndarray]:
    """The recorded fields of every step in the engine's codes; shapes (E, T, ...)."""
    exploits = code_map(trace.codes.exploits, [exploit.name for exploit in network.exploits])
    exploit = trace["exploit"].astype(np.int64)
    decoys = code_map(trace.codes.decoys, [decoy.name for decoy in network.decoys])
    removable, level = trace["n_removable"] > 0, trace["priv"]
    ports = translate_masks(trace["red_ports"], np.array([network.ports.index(port) for port in trace.codes.ports]))
    scanned = trace["red_ports"] >> trace.codes.scanned_bit & 1
    return {
        "obs": np.unpackbits(trace["obs"], axis=-1)[..., : BITS_PER_HOST * len(network.hosts)],
        "reward": trace["reward"],
        "red_action": trace["red_action"],
        "red_target": trace["red_target"],
        "red_success": trace["red_success"],
        "exploit": np.where(exploit >= 0, exploits[exploit], -1),
        "exploit_result": trace["exploit_result"],
        "detect": trace["detect"],
        "level": level,
        "has_sessions": trace["n_red"] > 0,
        "removable": removable & (level < 2),  # the engine keeps no lesser session beside a privileged one
        "decoys": translate_masks(trace["decoys"], decoys),
        "malware": trace["malware"],
        "ot_running": trace["ot_running"],
        "compromised": trace["compromised"],
        "red_ports": np.where(scanned, ports, 0),
        "candidates": meander_candidates(trace, network) + trace.arrays.get(CANDIDATES, 0),
        "impossible_chance": np.zeros(trace["blue_action"].shape, bool),
    }


def _engine_values(
    states: np.ndarray, rewards: np.ndarray, network: Network, trace: Trace
) -> Iterator[tuple[str, np.ndarray]]:
    """The engine's value of each field of :func:`_recorded`; shapes (E, ...)."""
    n_hosts = len(network.hosts)
    hosts = np.arange(n_hosts)
    privileged, traced, untraced = (states[name][:, None] >> hosts & 1 for name in ("privileged", "traced", "untraced"))
    beliefs = by_host(states["observation"], n_hosts) & BELIEF_PRIVILEGED
    codes = np.zeros(BELIEF_PRIVILEGED + 1, np.int64)
    codes[list(_BELIEF_CODES)] = list(_BELIEF_CODES.values())
    yield "obs", unpacked(states["observation"], network.n_bits)
    yield "reward", rewards.copy()
    for name in ("red_action", "red_target", "red_success", "exploit", "exploit_result"):
        yield name, states[name].copy()
    yield "detect", states["detected"].copy()
    yield "level", np.where(privileged, 2, traced | untraced)
    yield "has_sessions", (privileged | traced | untraced) > 0
    yield "removable", traced > 0
    yield "decoys", states["decoys"][:, :n_hosts] & DECOYS
    yield "malware", states["malware"].copy()
    yield "ot_running", 1 - states["service_down"]
    yield "compromised", codes[beliefs]
    yield "red_ports", states["ports"][:, :n_hosts].copy()
    known = trace.played_by(RED_AGENTS[MEANDER : MEANDER + 1]) | (CANDIDATES in trace.arrays)
    yield "candidates", np.where(known, states["candidates"], 0)
    yield "impossible_chance", states["irregular"] > 0
