"""A trained policy as one small file: safetensors weights and a JSON description. Loading executes no code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import AnyNetwork, in_words, network_beside
from workflow_rl.envs.views import PLAIN, View
from workflow_rl.errors import UserError
from workflow_rl.runs import Json, read_tensors, write_tensors
from workflow_rl.training.actor import guard_content, make_guard
from workflow_rl.training.actor_critic import SIZES, OrderConditionedActorCritic

FORMAT = "workflow_rl policy 2"
FORMER = "workflow_rl policy 1"  # an older definition of compliance: only policies without a workflow are read
_ABOUT = ("workflow", "universal", "red_agent", "edition")


@dataclass(frozen=True)
class PolicyFile:
    """An actor-critic and the task that it was trained for."""

    net: OrderConditionedActorCritic
    workflow: str
    universal: bool
    red_agent: str
    edition: str
    view: View = PLAIN
    greedy: bool = False  # to be played with its most probable actions
    takeover: str = "0"

    def save(self, path: Path | str) -> None:
        """Writes the policy atomically; every command that takes a policy takes the file."""
        write_tensors(Path(path), *policy_content(self))


def policy_content(policy: PolicyFile) -> tuple[dict[str, np.ndarray], Json]:
    """Weights and description as stored in the file."""
    sizes = policy.net.sizes
    about = {name: getattr(policy, name) for name in (*_ABOUT, "greedy", "takeover")}
    seen = {"view": policy.view.observation, "actions": policy.view.actions}
    arrays = {name: value.detach().cpu().numpy() for name, value in policy.net.state_dict().items()}
    guard = policy.net.guard
    guarded = {"guard": guard_content(guard) if guard else None}
    network = as_network(policy.view.network)
    defended = {"name": network.name, "digest": network.digest, "n_observed": network.n_bits}
    defended["unit_types"] = list(network.unit_types)
    return arrays, {"format": FORMAT} | sizes | about | seen | guarded | {"network": defended}


def file_of(path: Path) -> Path:
    """The policy file at ``path`` or of the run directory ``path``."""
    if not path.is_dir():
        return path
    if not (path / "policy.safetensors").exists():
        raise UserError(f"{path} holds no trained policy (policy.safetensors is missing).")
    return path / "policy.safetensors"


def load_policy(path: Path, network: AnyNetwork | None = None) -> PolicyFile:
    """Reads the policy of a file or run directory and checks that it was trained on the network.

    Args:
        path: the file, or a run.
        network: the network to defend; default: that of the run or of the copy beside the file, else CAGE Challenge 2.
    """
    path = file_of(path)
    network = as_network(network) if network is not None else network_beside(path) or as_network(CAGE2)
    arrays, meta = read_tensors(path)
    known = isinstance(meta, dict) and meta.get("format") in (FORMAT, FORMER)
    if not known or not all(name in meta for name in (*SIZES, *_ABOUT)):
        raise UserError(f"{path}: not a policy file.")
    if meta["format"] == FORMER and (meta["workflow"] or meta["universal"]):
        raise UserError(
            f"{path}: trained for a workflow by an earlier version, where fixes that repaired nothing counted as "
            "compliance; train it again."
        )
    _check_network(path, meta, network)
    sizes = {name: meta[name] for name in SIZES}
    if not all(isinstance(size, int) and 0 <= size <= 4096 for size in sizes.values()):
        raise UserError(f"{path}: damaged, impossible sizes {sizes}.")
    net = OrderConditionedActorCritic(**sizes)
    wanted = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    found = {name: array.shape for name, array in arrays.items()}
    if wanted != found:
        name = next(name for name in sorted(wanted | found) if wanted.get(name) != found.get(name))
        raise UserError(f"{path}: weights {name!r} have the shape {found.get(name)}, not {wanted.get(name)}.")
    try:
        view = View(meta.get("view", "plain"), meta.get("actions", "full"), network)  # absent from older files
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    n_code = len(network.unit_types) ** 2
    if (net.n_bits, net.n_actions) != (view.n_bits, view.n_actions) or net.n_code not in (0, n_code):
        shape = f"{net.n_bits} + {net.n_code} inputs and {net.n_actions} actions"
        raise UserError(f"{path}: a policy of {shape} does not fit the {view}.")
    if meta.get("guard"):
        if not net.n_code:
            raise UserError(f"{path}: damaged, a policy without a workflow has nothing to guard.")
        net.guard = make_guard(view)
    net.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    about = {name: meta[name] for name in _ABOUT}
    about |= {"greedy": meta.get("greedy", False), "takeover": meta.get("takeover", "0")}  # absent from older files
    _check_about(path, about, network)
    if (net.n_code > 0) != (about["universal"] or about["workflow"] != ""):
        raise UserError(f"{path}: damaged, its inputs and its workflow do not fit.")
    return PolicyFile(net, **about, view=view)


def _check_network(path: Path, meta: Json, network: Network) -> None:
    """Rejects a policy of another network; older files, which name none, are of CAGE Challenge 2."""
    cage2 = as_network(CAGE2)
    own = meta.get("network", {"name": cage2.name, "digest": cage2.digest})
    if not isinstance(own, dict) or not all(isinstance(own.get(name), str) for name in ("name", "digest")):
        raise UserError(f"{path}: damaged, its network is {own!r}.")
    if own["digest"] != network.digest:
        trained = f"network {own['name']!r} ({own['digest']})"
        raise UserError(f"{path}: the policy was trained on {trained}, not on {in_words(network)}.")


def _check_about(path: Path, about: Json, network: Network) -> None:
    """Rejects a damaged description."""
    kinds = {"workflow": str, "universal": bool, "red_agent": str, "edition": str, "greedy": bool, "takeover": str}
    for name, kind in kinds.items():
        if not isinstance(about[name], kind):
            raise UserError(f"{path}: damaged, {name} is {about[name]!r}.")
    if about["edition"] not in network.editions:
        raise UserError(f"{path}: made for an unknown edition, {about['edition']!r}.")


def check_edition(policy: PolicyFile, edition: str) -> None:
    """Rejects a policy that was trained for another edition."""
    if policy.edition != edition:
        raise UserError(f"the policy was trained for the {policy.edition} edition, not for the {edition} one.")
