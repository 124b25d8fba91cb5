"""Reads a network file (cage2.toml) into a :class:`Network`, or explains what is wrong with it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from workflow_rl.engine.network import Network
from workflow_rl.engine.networks.complaint import named, shown
from workflow_rl.engine.networks.mistakes import Examination, examine
from workflow_rl.errors import NetworkError, UserError

NETWORKS = Path(__file__).parent / "networks"
CAGE2 = NETWORKS / "cage2.toml"
CONTENT = "_content"  # attribute of a network that was read from a file: the file's bytes
LARGEST_FILE = 1_000_000  # bytes
LONGEST_PATH = 4000  # of Linux, about


def load_network(path: Path = CAGE2) -> Network:
    """Reads and validates a network file.

    Raises:
        NetworkError: the file is missing, is not TOML (with the line), or a field is wrong (with its name).
    """
    return _whole(examine_file(Path(path)))


def parse_network(content: bytes, where: str) -> Network:
    """The network in the content of a file; ``where`` names it in messages."""
    return _whole(_examine(where, content))


def _whole(examined: Examination) -> Network:
    """The network of a file without mistakes."""
    if examined.network is None:
        more = f"; {len(examined.mistakes) - 1} more: see workflow-rl network check" if examined.mistakes[1:] else ""
        raise NetworkError(f"{str(examined.mistakes[0])[:-1]}{more}.")
    return examined.network


def bundled() -> tuple[str, ...]:
    """Names of the networks that come with the program."""
    return tuple(sorted(path.stem for path in NETWORKS.glob("*.toml")))


def as_network(network: Network | Path | str) -> Network:
    """The network itself, the bundled one of that name, or the one in the file of that path."""
    if not isinstance(network, (Network, Path, str)):
        raise UserError(f"a network must be a Network, the path of its file or a name, not {network!r}.")
    if isinstance(network, Network):
        return network
    return load_network(network_path(network))


def network_path(network: Path | str) -> Path:
    """The file of a bundled network, or the path itself."""
    name = str(network)
    if name in bundled():
        return NETWORKS / f"{name}.toml"
    missing = isinstance(network, str) and not Path(name).suffix and not os.path.exists(name)
    if missing or len(name) > LONGEST_PATH:
        raise UserError(f"no network {shown(name)}; bundled: {', '.join(bundled())}, or the path of a file.")
    return Path(network)


def examine_file(path: Path) -> Examination:
    """Reads a network file and collects all its mistakes.

    Raises:
        NetworkError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise NetworkError(f"{named(path)}: cannot read the network file ({reason}).") from None
    if len(content) > LARGEST_FILE:
        raise NetworkError(f"{named(path)}: too large for a network file; allowed: up to {LARGEST_FILE:,} bytes.")
    return _examine(named(path), content)


@cache
def _examine(path: str, content: bytes) -> Examination:
    examined = examine(path, content)
    if examined.network is not None:
        vars(examined.network)[CONTENT] = content  # of this object alone: dataclasses.replace() makes one without it
    return examined
