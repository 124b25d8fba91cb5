"""Recorded games of genuine CybORG: reads the .npz trace format and translates its codes into the engine's.

The format of the files is that of CAGE Challenge 2; docs/fidelity.md describes it. Games of other networks are recorded
while they are played: their arrays have the same names, wider numbers and the network's own codes. All arrays of the
true state are *after* the step.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from workflow_rl.engine.network import RED_ACTIONS, Network
from workflow_rl.errors import TraceError

# The codes of the format, by name.
TRACE_RED_AGENTS = ("bline", "meander", "sleep")
TRACE_EXPLOITS = (
    "EternalBlue", "BlueKeep", "HTTPRFI", "HTTPSRFI", "SSHBruteForce", "SQLInjection", "HarakaRCE",
    "FTPDirectoryTraversal",
)  # fmt: skip
TRACE_DECOYS = ("Apache", "Femitter", "HarakaSMPT", "Smss", "SSHD", "Svchost", "Tomcat", "Vsftpd")
TRACE_PORTS = (21, 22, 25, 80, 135, 139, 443, 445, 3389, 3390, 53, 68)
TRACE_SCANNED_BIT = 15
TRACE_HOSTS, TRACE_SUBNETS, TRACE_ACTIONS = 13, 3, 145
CANDIDATES = "candidates"  # an array of live games of programs

# array: dimensions after the episodes ("T" steps, a number: that many), range of values (None: any)
_ARRAYS: dict[str, tuple[tuple[str | int, ...], tuple[int, int] | None]] = {
    "red_agent": ((), (0, len(TRACE_RED_AGENTS) - 1)),
    "n_steps": ((), None),
    "obs0": ((7,), None),
    "obs": (("T", 7), None),
    "blue_action": (("T",), (0, TRACE_ACTIONS - 1)),
    "reward": (("T",), None),
    "red_action": (("T",), (0, len(RED_ACTIONS))),
    "red_target": (("T",), (-1, TRACE_HOSTS - 1)),
    "red_success": (("T",), (0, 2)),
    "exploit": (("T",), (-1, len(TRACE_EXPLOITS) - 1)),
    "exploit_result": (("T",), (-1, 5)),
    "detect": (("T",), (-1, 1)),
    "green_target": (("T",), (-1, TRACE_HOSTS - 1)),
    "priv": (("T", TRACE_HOSTS), (0, 2)),
    "n_red": (("T", TRACE_HOSTS), None),
    "n_removable": (("T", TRACE_HOSTS), None),
    "decoys": (("T", TRACE_HOSTS), None),
    "malware": (("T",), None),
    "ot_running": (("T",), (0, 1)),
    "compromised": (("T", TRACE_HOSTS), (0, 3)),
    "red_ports": (("T", TRACE_HOSTS), None),
    "collision": (("T",), (0, 1)),
}


@dataclass(frozen=True)
class Codes:
    """What the numbers of a trace stand for, and the types that have room for them.

    ``candidates`` is an array that only live games of programs have: the hosts from which red drew its target.
    """

    red_agents: tuple[str, ...]
    exploits: tuple[str, ...]
    decoys: tuple[str, ...]
    ports: tuple[int, ...]
    scanned_bit: int
    action: type
    host_set: type
    port_set: type


CAGE2_CODES = Codes(
    TRACE_RED_AGENTS, TRACE_EXPLOITS, TRACE_DECOYS, TRACE_PORTS, TRACE_SCANNED_BIT, np.uint8, np.uint16, np.uint16
)
WIDE_SCANNED_BIT = 31


def codes_of(network: Network) -> Codes:
    """The codes of a live recording: those of the files where they can express the network, else its own."""
    if fits_format(network) and network.red_agents == TRACE_RED_AGENTS:
        return CAGE2_CODES
    return Codes(
        red_agents=network.red_agents,
        exploits=tuple(exploit.name for exploit in network.exploits),
        decoys=tuple(decoy.name for decoy in network.decoys),
        ports=network.ports,
        scanned_bit=WIDE_SCANNED_BIT,
        action=np.int16,
        host_set=np.int64,
        port_set=np.int64,
    )


@dataclass(frozen=True)
class Trace:
    """E recorded episodes of up to T steps; ``arrays`` holds the arrays of the format by name.

    ``digest`` is that of the network which a live recording was played on; files have none.
    """

    path: str
    arrays: dict[str, np.ndarray]
    codes: Codes = CAGE2_CODES
    digest: str = ""

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    @property
    def n_episodes(self) -> int:
        """E, the number of episodes."""
        return int(self["blue_action"].shape[0])

    @property
    def max_steps(self) -> int:
        """T, the number of steps of the longest episode."""
        return int(self["blue_action"].shape[1])

    def take(self, episodes: Sequence[int] | np.ndarray) -> Trace:
        """The trace of some of the episodes."""
        kept = {name: array[np.asarray(episodes)] for name, array in self.arrays.items()}
        return replace(self, arrays=kept)

    def red_agent(self, episode: int) -> str:
        """Name of the red agent of an episode."""
        return self.codes.red_agents[int(self["red_agent"][episode])]

    def played_by(self, red_agents: Iterable[str]) -> np.ndarray:
        """Which episodes were played by one of these red agents; (E,) bool."""
        numbers = [number for number, name in enumerate(self.codes.red_agents) if name in set(red_agents)]
        return np.isin(self["red_agent"], numbers)

    @staticmethod
    def join(traces: Sequence[Trace]) -> Trace:
        """One trace of all the episodes of ``traces`` of one network, which must have the same number of steps."""
        path = ", ".join(trace.path for trace in traces)
        joined = {name: np.concatenate([trace[name] for trace in traces]) for name in _ARRAYS}
        if all(CANDIDATES in trace.arrays for trace in traces):
            joined[CANDIDATES] = np.concatenate([trace[CANDIDATES] for trace in traces])
        return replace(traces[0], path=path, arrays=joined)


def load_trace(path: Path | str) -> Trace:
    """Reads a trace file.

    Raises:
        TraceError: there is no such file, or it is damaged or of another format.
    """
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise TraceError(f"{path}: not a trace: a single array instead of an .npz archive.")
        with archive:
            arrays = {name: archive[name] for name in _ARRAYS if name in archive.files}
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file.") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot read the trace ({error.strerror or error}).") from None
    except TraceError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, MemoryError):
        raise TraceError(f"{path}: not an .npz trace, or a damaged one.") from None
    _check(str(path), arrays)
    return Trace(str(path), arrays)


def code_map(codes: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """For each code of the format the engine's index of the same name; shape (len(codes),)."""
    return np.array([names.index(code) for code in codes], np.int64)


def translate_masks(masks: np.ndarray, bit_map: np.ndarray) -> np.ndarray:
    """Bit masks with bit i moved to bit ``bit_map[i]``; other bits are dropped."""
    moved = np.zeros(masks.shape, np.int64)
    for bit, new_bit in enumerate(bit_map):
        moved |= (masks.astype(np.int64) >> bit & 1) << int(new_bit)
    return moved


def as_set(members: Iterable[int]) -> int:
    """A set of hosts as 64 bits with a sign: host 63 is the sign."""
    mask = sum(1 << member for member in set(members))
    return mask - (1 << 64) if mask >> 63 else mask


def fits_format(network: Network) -> bool:
    """Whether hosts, exploits, decoys and ports are those of CAGE Challenge 2."""
    exploits, decoys = [e.name for e in network.exploits], [d.name for d in network.decoys]
    return (
        len(network.hosts) == TRACE_HOSTS
        and len(network.subnets) == TRACE_SUBNETS
        and network.n_actions == TRACE_ACTIONS
        and sorted(exploits) == sorted(TRACE_EXPLOITS)
        and sorted(decoys) == sorted(TRACE_DECOYS)
        and sorted(network.ports) == sorted(TRACE_PORTS)
    )


def check_fits(trace: Trace, network: Network) -> None:
    """Refuses another network than that of a live recording, and for a file one that is not like CAGE Challenge 2."""
    if trace.digest and trace.digest != network.digest:
        raise TraceError(
            f"{trace.path}: played on another network (digest {trace.digest}) than {network.name!r} ({network.digest})."
        )
    if not trace.digest and not fits_format(network):
        raise TraceError(f"{trace.path}: a trace of CAGE Challenge 2 cannot be replayed in network {network.name!r}.")


def _check(path: str, arrays: dict[str, np.ndarray]) -> None:
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise TraceError(f"{path}: not a trace of CAGE Challenge 2: array {missing[0]!r} is missing.")
    shape = arrays["blue_action"].shape
    if len(shape) != 2 or 0 in shape:
        raise TraceError(f"{path}: array 'blue_action' must have the shape (episodes, steps), not {shape}.")
    for name, (dimensions, allowed) in _ARRAYS.items():
        array = arrays[name]
        wanted = (shape[0], *(shape[1] if d == "T" else d for d in dimensions))
        if array.shape != wanted:
            raise TraceError(f"{path}: array {name!r} must have the shape {wanted}, not {array.shape}.")
        packed = name in ("obs", "obs0") and array.dtype != np.uint8
        if packed or array.dtype.kind not in ("f" if name == "reward" else "iub"):
            raise TraceError(f"{path}: array {name!r} has the wrong type {array.dtype}.")
        if allowed is not None and (array.min() < allowed[0] or array.max() > allowed[1]):
            worst = array.min() if array.min() < allowed[0] else array.max()
            raise TraceError(f"{path}: array {name!r} holds {worst}; allowed: {allowed[0]} to {allowed[1]}.")
    if arrays["n_steps"].min() < 1 or arrays["n_steps"].max() > shape[1]:
        raise TraceError(f"{path}: array 'n_steps' must be from 1 to {shape[1]}.")
    _check_targets(path, arrays["red_action"], arrays["red_target"])


def _check_targets(path: str, actions: np.ndarray, targets: np.ndarray) -> None:
    """Checks that a sweep has a subnet as its target, and every other action but Sleep a host."""
    sweep = actions == RED_ACTIONS.index("DiscoverRemoteSystems")
    aimed = (actions > 0) & (actions < len(RED_ACTIONS))
    if (targets[aimed] < 0).any() or (targets[sweep] >= TRACE_SUBNETS).any():
        raise TraceError(f"{path}: array 'red_target' does not fit array 'red_action'.")
