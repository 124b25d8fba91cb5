"""The copy of its network's file that runs and exported agents keep: nobody has to name the network again."""

from __future__ import annotations

import shlex
from pathlib import Path

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, CONTENT, as_network, bundled, parse_network
from workflow_rl.engine.networks.text import network_text
from workflow_rl.errors import UserError
from workflow_rl.runs import NETWORK_FILE, NetworkCopy, read_about

AnyNetwork = Network | Path | str
"""A network, the path of its file, or the name of a bundled one."""


def copy_of(network: Network) -> NetworkCopy:
    """The network as a run keeps it: the bytes of its file, or its text if it was made in Python."""
    content: bytes = vars(network).get(CONTENT) or network_text(network).encode()
    if parse_network(content, f"network {network.name!r}").digest != network.digest:
        raise UserError(f"the network {network.name!r} cannot be written to a file: reading it gives another network.")
    return NetworkCopy(network.name, network.digest, content)


def network_of(run: Path) -> Network:
    """The network of a run directory, from its own copy; older runs without one are of CAGE Challenge 2.

    Raises:
        UserError: the copy is missing, damaged, or not that of the run.
    """
    about, path = read_about(run).get("network"), run / NETWORK_FILE
    if about is None:
        return as_network(CAGE2)
    if not isinstance(about, dict) or not all(isinstance(about.get(name), str) for name in ("name", "digest")):
        raise UserError(f"{run}/config.json is damaged: its network is {about!r}.")
    network = as_network(path)
    if network.digest != about["digest"]:
        raise UserError(
            f"{path} was changed: it has the digest {network.digest}, but the run was made with {about['digest']}; put "
            "the original file back."
        )
    return network


def network_beside(policy: Path) -> Network | None:
    """The network of a run, or the copy beside a policy file (of a run or an exported agent); None if there is none."""
    folder = policy if policy.is_dir() else policy.parent
    kept = (folder / NETWORK_FILE).exists()
    if (folder / "config.json").exists() and (kept or policy.is_dir()):
        return network_of(folder)
    return as_network(folder / NETWORK_FILE) if kept else None


def chosen_network(source: Path | None, given: AnyNetwork | None) -> Network:
    """The network to use: that of the source if it brings one, else the given one, else CAGE Challenge 2.

    Args:
        source: a run or a policy file, if there is one.
        given: the network that the user named, if any; another one than that of the source is refused.
    """
    own = network_beside(source) if source is not None and source.exists() else None
    asked = None if given is None else as_network(given)
    if own is not None and asked is not None and own.digest != asked.digest:
        raise UserError(f"{source} is of {in_words(own)}, not of {in_words(asked)}; leave --network out.")
    return own or asked or as_network(CAGE2)


def in_words(network: Network) -> str:
    """A network in a message; its digest distinguishes it from others of the same name.

    >>> in_words(as_network(CAGE2))[:17]
    "network 'cage2' ("
    """
    return f"network {network.name!r} ({network.digest})"


def network_option(network: Network, run: str) -> str:
    """The option that names a run's network in a command: nothing for the default, a name, or the run's own copy."""
    if network.digest == as_network(CAGE2).digest:
        return ""
    known = network.name in bundled() and as_network(network.name).digest == network.digest
    return f" --network {shlex.quote(network.name if known else str(Path(run) / NETWORK_FILE))}"
