"""Recorded games of genuine CybORG: reads the .npz trace format and translates its codes into the engine's.

The format is described in docs/fidelity.md. All arrays of the true state are *after* the step.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
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
TRACE_HOSTS, TRACE_SUBNETS = 13, 3

# array: dimensions after the episodes ("T" steps, a number: that many), range of values (None: any)
_ARRAYS: dict[str, tuple[tuple[str | int, ...], tuple[int, int] | None]] = {
    "red_agent": ((), (0, len(TRACE_RED_AGENTS) - 1)),
    "n_steps": ((), None),
    "obs0": ((7,), None),
    "obs": (("T", 7), None),
    "blue_action": (("T",), (0, 144)),
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
class Trace:
    """E recorded episodes of up to T steps; ``arrays`` holds the arrays of the format by name."""

    path: str
    arrays: dict[str, np.ndarray]

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
        return Trace(self.path, {name: array[np.asarray(episodes)] for name, array in self.arrays.items()})

    @staticmethod
    def join(traces: Sequence[Trace]) -> Trace:
        """One trace of all the episodes of ``traces``, which must have the same number of steps."""
        path = ", ".join(trace.path for trace in traces)
        return Trace(path, {name: np.concatenate([trace[name] for trace in traces]) for name in _ARRAYS})


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


def check_fits(trace: Trace, network: Network) -> None:
    """Refuses a network whose hosts, exploits, decoys or ports are not those of CAGE Challenge 2."""
    exploits, decoys = [e.name for e in network.exploits], [d.name for d in network.decoys]
    if (
        len(network.hosts) != TRACE_HOSTS
        or sorted(exploits) != sorted(TRACE_EXPLOITS)
        or sorted(decoys) != sorted(TRACE_DECOYS)
        or sorted(network.ports) != sorted(TRACE_PORTS)
    ):
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
