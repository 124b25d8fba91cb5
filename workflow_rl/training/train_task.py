"""Checks that the settings of a training fit together, and derives those of its warm start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from workflow_rl.config import TrainConfig, parse_takeover
from workflow_rl.engine.network import GREEN_AGENTS, Network
from workflow_rl.envs.checks import parse_red_agents
from workflow_rl.envs.cyborg_sim import Backend, check_backend
from workflow_rl.envs.views import View, check_seen
from workflow_rl.errors import UserError, check_choice
from workflow_rl.training.collectors import workflows_of
from workflow_rl.training.policy_file import PolicyFile, load_policy


def check_task(config: TrainConfig, network: Network) -> None:
    """Rejects an invalid workflow, opponent, edition, warm start, or combination of settings."""
    kinds = {"red agents": parse_red_agents(config.red_agent, network), "takeovers": parse_takeover(config.takeover)}
    for name in ("n_envs", "n_eval_episodes"):
        for kind, entries in kinds.items():
            if (value := getattr(config, name)) < len(entries):
                raise UserError(f"{name} {value} is too small for {len(entries)} {kind}; each needs one.")
    check_choice("edition", config.edition, network.editions)
    for name in config.green_agent.split(","):
        check_choice("green agent", name.strip(), GREEN_AGENTS)
    check_backend(Backend(config.backend, config.cyborg_path), config.edition)
    if config.workflow and config.universal:
        raise UserError("give either one workflow or --universal, not both.")
    check_seen(network, View(config.view, config.actions, network))
    n_workflows = len(workflows_of(config, network))
    if config.n_envs < n_workflows:
        raise UserError(f"n_envs {config.n_envs} is too small for {n_workflows} workflows; each needs an environment.")
    if config.warm_start != "none" and not config.conditioned:
        raise UserError("a warm start needs a workflow (--workflow or --universal).")
    if config.warm_start not in ("none", "general"):
        base, view = _warm_start(config, network), View(config.view, config.actions, network)
        if base.view != view:
            raise UserError(f"the warm start has {base.view}, but {view} was requested.")
        if base.net.hidden != config.hidden:
            raise UserError(f"hidden is {config.hidden}, but that of the warm start is {base.net.hidden}.")
    imitates = config.view == "memory" and config.imitate_updates >= config.max_updates
    if config.greedy and config.conditioned and not imitates:
        raise UserError(
            "--greedy is for policies without a workflow and for those that only imitate: compliance is confirmed for "
            "sampled actions."
        )
    if config.plan_games and (config.backend != "native" or config.path == "plain" or config.device == "cuda"):
        raise UserError("a plan plays with the native engine on the processor: use --plan-games 0, or path auto.")
    if config.plan_games and not (config.view == "memory" and config.imitate_updates):
        raise UserError("a plan against B_line is for a policy that imitates it: use --view memory, --imitate-updates.")
    if config.improve_rounds and not config.imitate_updates:
        raise UserError("paired games improve a teacher: use --imitate-updates.")
    if config.imitate_updates and config.view != "memory" and config.actions != "host-decoy":
        raise UserError(
            "with --view memory a policy imitates the expert, with other views a rule that has one decoy action per "
            "host: use --actions host-decoy."
        )
    if config.improve_rounds and config.view != "memory":
        raise UserError("paired games improve the expert, who acts on its memory: use --view memory.")
    if config.device == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda' is not available on this machine; allowed: auto, cpu.")


def _warm_start(config: TrainConfig, network: Network) -> PolicyFile:
    if config.warm_start.partition(":")[0] == "universal":
        raise UserError(
            "warm_start 'universal' was removed: the policies once bundled met a definition of compliance that needed "
            "no repair; use none, general, or your own policy."
        )
    if not Path(config.warm_start).exists():
        kinds = "none, general, or the path of a run or policy file"
        raise UserError(f"unknown warm_start {config.warm_start!r}; allowed: {kinds}.")
    return load_policy(Path(config.warm_start), network)


def base_config(config: TrainConfig) -> TrainConfig:
    """Settings of the general policy of a warm start: the native engine and high entropy."""
    return replace(
        config, workflow="", universal=False, warm_start="none", n_envs=200, update_steps=100, lr=0.002, epochs=4,
        minibatch=0, entropy=0.01, anneal=False, patience=0, min_episodes=0, backend="native", cyborg_path="",
        imitate_updates=0, max_episodes=max(1, config.warm_updates * 100 // config.max_steps),
    )  # fmt: skip
