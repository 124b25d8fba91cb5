"""Actor-critics of other libraries as policies of ours: stable-baselines3 and networks in the manner of CleanRL.

The user loads the model; only its weights are read here, and nothing is unpickled. Both libraries' usual net is ours:
separate actor and critic with two hidden tanh layers. Layers that are narrower than the widest one are filled with
units of weight zero, which change nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import AnyNetwork, in_words
from workflow_rl.envs.checks import parse_red_agents
from workflow_rl.envs.views import View
from workflow_rl.errors import UserError, check_choice
from workflow_rl.training.actor_critic import OrderConditionedActorCritic
from workflow_rl.training.policy_file import PolicyFile

WANTED = "only separate actors and critics with two hidden tanh layers can be converted"
OTHERWISE = "workflow_rl.challenge, watch and report also take any function from observations to actions"
Layers = list[nn.Module]


def from_sb3(
    model: Any, red_agent: str = "bline", edition: str = "current", greedy: bool = False, network: AnyNetwork = CAGE2
) -> PolicyFile:
    """The policy of a stable-baselines3 model (PPO or A2C with MlpPolicy) in our format; ``save(path)`` writes it.

    Args:
        model: the model, as loaded by its own library.
        red_agent: the opponent that it was trained against; a comma-separated list for a mixture.
        edition: the edition that it was trained on.
        greedy: whether to play its most probable actions (``deterministic=True``) instead of sampling.
        network: the network that it defends.
    """
    policy: Any = getattr(model, "policy", None)
    extractor, wrapped = getattr(policy, "mlp_extractor", None), getattr(model, "get_vec_normalize_env", lambda: None)()
    if extractor is None or not hasattr(policy, "action_net") or not hasattr(policy, "value_net"):
        raise UserError(f"{type(model).__name__} has no MlpPolicy with an actor and a critic; {OTHERWISE}.")
    if wrapped is not None and wrapped.norm_obs:
        raise UserError("the model saw normalised observations (VecNormalize); train it with norm_obs=False.")
    if any(True for _ in policy.features_extractor.parameters()):
        raise UserError(f"the model has a features extractor with weights; {WANTED}.")
    actor = [*_layers(extractor.policy_net, "policy_net"), policy.action_net]
    critic = [*_layers(extractor.value_net, "value_net"), policy.value_net]
    return _converted(actor, critic, red_agent, edition, greedy, network)


def from_cleanrl(
    agent: Any, red_agent: str = "bline", edition: str = "current", greedy: bool = False, network: AnyNetwork = CAGE2
) -> PolicyFile:
    """The policy of an agent whose ``actor`` and ``critic`` are ``nn.Sequential``; see :func:`from_sb3`."""
    actor, critic = (_layers(getattr(agent, name, None), name) for name in ("actor", "critic"))
    return _converted(actor, critic, red_agent, edition, greedy, network)


def _layers(net: Any, name: str) -> Layers:
    if not isinstance(net, nn.Sequential):
        raise UserError(f"{name} must be an nn.Sequential, not {type(net).__name__}; {OTHERWISE}.")
    return [layer for layer in net if not isinstance(layer, nn.Flatten)]


def _converted(
    actor: Layers, critic: Layers, red_agent: str, edition: str, greedy: bool, network: AnyNetwork
) -> PolicyFile:
    defended = as_network(network)
    parse_red_agents(red_agent, defended)
    check_choice("edition", edition, defended.editions)
    towers = {"actor": _linear(actor, "actor"), "critic": _linear(critic, "critic")}
    view = View("plain", "full", defended)
    for name, layers in towers.items():
        n_out = view.n_actions if name == "actor" else 1
        if (layers[0].in_features, layers[-1].out_features) != (view.n_bits, n_out):
            found = f"{layers[0].in_features} inputs and {layers[-1].out_features} outputs"
            wanted = f"{view.n_bits} inputs and {n_out} outputs"
            raise UserError(f"the {name} has {found}; {in_words(defended)} needs {wanted}.")
    hidden = max(layer.out_features for layers in towers.values() for layer in layers[:-1])
    net = OrderConditionedActorCritic(view.n_bits, 0, view.n_actions, hidden)
    with torch.no_grad():
        for name, layers in towers.items():
            for target, layer in zip(_linear([*getattr(net, name)], name), layers, strict=True):
                _fill(target, layer, name)
    return PolicyFile(net, "", False, red_agent, edition, view, greedy)


def _linear(layers: Layers, name: str) -> list[nn.Linear]:
    """The three linear layers of a net of the wanted form."""
    found = [layer for layer in layers if isinstance(layer, nn.Linear)]
    kinds = [nn.Linear, nn.Tanh, nn.Linear, nn.Tanh, nn.Linear]
    if [type(layer) for layer in layers] != kinds:
        words = ", ".join(type(layer).__name__ for layer in layers)
        raise UserError(f"the {name} consists of {words or 'nothing'}; {WANTED}; {OTHERWISE}.")
    return found


def _fill(target: nn.Linear, layer: nn.Linear, name: str) -> None:
    """Copies the weights of a layer into one that is at least as wide, and sets the rest to zero."""
    if not all(torch.isfinite(weight).all() for weight in layer.parameters()):
        raise UserError(f"the {name} has weights that are not numbers.")
    target.weight.zero_()
    target.bias.zero_()
    rows, columns = layer.weight.shape
    target.weight[:rows, :columns] = layer.weight
    if layer.bias is not None:
        target.bias[:rows] = layer.bias
