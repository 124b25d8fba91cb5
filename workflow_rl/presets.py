"""Presets: settings of every training strategy of the design documents and of our own defaults."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from workflow_rl.config import SEARCH_FIELDS, SearchConfig, TrainConfig, check_config, check_search_config, is_incident
from workflow_rl.errors import UserError

Values = dict[str, Any]  # settings by name
ON_CYBORG = {"n_eval_episodes": 100, "checkpoint_updates": 1}  # where a game takes a fifth of a second
_REMEMBERS: Values = {"view": "memory", "actions": "host-decoy"}
# Lists of opponents, takeovers and green agents have lengths without a common factor, so that all combinations come up.
_SOMETIMES_GREEN = ",".join(["sleep"] * 9 + ["active"] * 2)
_IMITATES: Values = {"minibatch": 1000, "epochs": 1, "lr": 0.002, "anneal": True, "hidden": 128, "greedy": True}
_ANNEALED: Values = {"lr": 0.005, "entropy": 0.01, "anneal": True}
PRESETS: dict[str, Values] = {  # AGAINST completes the first three
    "workflow": _ANNEALED,
    "general": _ANNEALED,
    "search": _ANNEALED | {
        "lr": 0.003, "epochs": 24, "clip": 0.3, "gamma": 0.95, "warm_start": "general", "patience": 50,
    },
    "universal": _ANNEALED | {
        "universal": True, "warm_start": "general", "n_envs": 480, "max_episodes": 1000, "min_episodes": 1000,
        "lr": 0.003, "epochs": 8,
    },
    "sequential": {"n_envs": 1},
    "mini-batch": {"n_envs": 1, "update_steps": 500},
    "standard": {"n_envs": 8, "update_steps": 256, "minibatch": 64},
    "parallel-25": {"n_envs": 25, "min_episodes": 10},
    "parallel-200": {},
    "aggressive": {"n_envs": 500, "max_episodes": 20, "min_episodes": 3},
    "original": _REMEMBERS | {"epochs": 6, "max_episodes": 500},
    "champion": _REMEMBERS | {
        "red_agent": ",".join(["bline", "meander"] * 3 + ["sleep"]), "n_envs": 1001, "max_episodes": 200,
        "takeover": ",".join(["0"] * 10 + ["30", "40", "20-60"]), "green_agent": _SOMETIMES_GREEN,
        "improve_rounds": 1, "plan_games": 300_000, "imitate_updates": 200, **_IMITATES,
    },
    "obedient": _REMEMBERS | {
        "universal": True, "red_agent": ",".join(["bline", "meander"] * 3 + ["sleep"]), "n_envs": 120 * 7 * 13,
        "takeover": ",".join(["0"] * 7 + ["30", "40"] * 2 + ["20-60"] * 2), "green_agent": _SOMETIMES_GREEN,
        "max_episodes": 16, "min_episodes": 0, "improve_rounds": 1, "plan_games": 300_000, "imitate_updates": 16,
        "checkpoint_updates": 1, "guard": True, **_IMITATES,
    },
}  # fmt: skip
# Measured by opponent: generalised advantage estimation is better against B_line and worse against Meander.
_GENERALISED = {"gae_lambda": 0.95, "normalise_advantages": True}
_MONTE_CARLO = {"gae_lambda": 1.0, "normalise_advantages": False}
AGAINST: dict[str, dict[str, Values]] = {  # the opponent "" stands for all others
    "workflow": {
        "bline": _GENERALISED | {"max_episodes": 700, "patience": 400, "warm_start": "general"},
        "": _MONTE_CARLO | {"max_episodes": 2000, "patience": 1000, "warm_start": "none"},
    },
    "general": {"bline": _GENERALISED | {"max_episodes": 700}, "": _MONTE_CARLO | {"max_episodes": 2000}},
    "search": {"bline": _GENERALISED, "": _MONTE_CARLO},
}
# In incidents a workflow must be followed even where it costs return. The guard, the short memory and a penalty adapted
# to `kept` ensure that. With one decoy action per host instead of eight, PPO finds the rare fix that pays off late
# (docs/incidents.md).
_INCIDENT: Values = {
    "view": "short-memory", "actions": "host-decoy", "entropy": 0.03, "gae_lambda": 0.98, "normalise_advantages": False,
}  # fmt: skip
_OBEDIENT: Values = {"guard": True, "alignment_lambda": 15.0, "kept_target": 0.975}
INCIDENT: dict[str, Values] = {
    "workflow": _INCIDENT | _OBEDIENT | {"max_episodes": 1000, "patience": 500, "warm_start": "general"},
    "search": _INCIDENT | _OBEDIENT | {"epochs": 8, "kept_target": 0.985},  # a larger margin, also for finalists
    "general": _INCIDENT | {"gae_lambda": 0.97, "normalise_advantages": True, "max_episodes": 1400},
}
# With many hosts there are hundreds of actions, and against most opponents hardly two inputs of a batch are equal: one
# decoy action per host learns faster, minibatches make many gradient steps of one pass, and a policy that imitates a
# simple rule at first need not find it (docs/presets.md).
MANY_HOSTS = 16
_BY_HOST: Values = {"actions": "host-decoy"}
_MINIBATCHES: Values = _BY_HOST | _GENERALISED | {"minibatch": 500, "epochs": 2}
_TAUGHT: Values = _MINIBATCHES | _OBEDIENT | {
    "view": "short-memory", "imitate_updates": 8, "warm_start": "none", "lr": 0.003, "gamma": 0.95, "clip": 0.3,
}  # fmt: skip
MANY: dict[str, dict[str, Values]] = {
    "workflow": {"bline": _BY_HOST, "": _TAUGHT | {"max_episodes": 200, "patience": 100}},
    "general": {"bline": _BY_HOST, "": _MINIBATCHES},
    "search": {"bline": _BY_HOST | {"epochs": 8}, "": _TAUGHT},
}
# With the small memory an order against B_line gains from more entropy and a shorter horizon (docs/training.md).
SMALL_MEMORY: dict[str, dict[str, Values]] = {
    "workflow": {"bline": _BY_HOST | {"entropy": 0.02, "gamma": 0.97}, "": _BY_HOST},
    "general": {"bline": _BY_HOST, "": _BY_HOST},
    "search": {"bline": _BY_HOST, "": _BY_HOST},
}
INCIDENT_SEARCH: Values = {"finalists": 5}  # more priorities matter in incidents
PRESET_WORDS = {
    "workflow": "one workflow, trained to the end; the default with --workflow",
    "general": "no workflow; the default without --workflow",
    "search": "one workflow within the documents' budget, after a short general training; the default of a search",
    "universal": "one policy conditioned on any workflow; beyond five unit types each episode draws one",
    "sequential": "the documents' sequential trainer: 1 environment, an update per episode",
    "mini-batch": "1 environment, an update per 5 episodes",
    "standard": "8 environments, 2048 transitions, minibatches of 64",
    "parallel-25": "the documents' first parallel version",
    "parallel-200": "the documents' current configuration, from scratch",
    "aggressive": "500 environments, at most 20 episodes each",
    "original": "the original train.py: no workflow, a memory, 20,000 steps per update, 100,000 episodes",
    "champion": "no workflow, all opponents at once: plans and paired games improve the expert, a policy imitates it",
    "obedient": "the champion for any workflow, also in incidents: planned against B_line, by rules against Meander",
}


def make_config(preset: str = "", **values: Any) -> TrainConfig:
    """The settings of a preset with some values changed; by default the preset for the task.

    Args:
        preset: its name.
        values: settings by name; also ``hosts``, the number of hosts of a network other than CAGE Challenge 2.

    >>> make_config("parallel-25").batch
    2500
    >>> make_config(workflow="user,op_server,enterprise,op_host,defender").max_episodes
    700
    """
    if not preset:
        preset = "universal" if values.get("universal") else "workflow" if values.get("workflow") else "general"
    if preset not in PRESETS:
        raise UserError(f"unknown preset {preset!r}; allowed: {', '.join(PRESETS)}.")
    hosts = values.pop("hosts", 0)
    known = {item.name: item for item in fields(TrainConfig)}
    for name in values:
        if name not in known:
            raise UserError(f"unknown setting {name!r}; allowed: {', '.join(known)}.")
    suited: Values = {}
    opponent = "bline" if values.get("red_agent", TrainConfig.red_agent) == "bline" else ""
    if preset in AGAINST:
        suited |= AGAINST[preset][opponent]
    if preset in SMALL_MEMORY and values.get("view") == "small-memory":
        suited |= SMALL_MEMORY[preset][opponent]
    if preset in INCIDENT and is_incident(values.get("takeover", TrainConfig.takeover)):
        suited |= INCIDENT[preset]
    if preset in MANY and hosts > MANY_HOSTS:
        suited |= MANY[preset][opponent]
    if values.get("alignment", TrainConfig.alignment) != "penalty":
        suited["kept_target"] = 0.0  # no penalty to adapt
    if values.get("backend") == "cyborg":
        suited |= ON_CYBORG
    config = replace(TrainConfig(), **(PRESETS[preset] | suited | values))
    if "minibatch" in suited and "minibatch" not in values and config.minibatch > config.batch > 0:
        config = replace(config, minibatch=0)  # a batch smaller than the usual minibatch
    check_config(config)
    return config


def task_of(preset: str, values: Values, red_agents: Sequence[str], editions: Iterable[str]) -> Values:
    """``values`` with the first opponent and edition of a network where neither they nor the preset have one.

    >>> task_of("", {"seed": 1}, ("worm", "meander", "sleep"), ("current",))
    {'red_agent': 'worm', 'edition': 'current', 'seed': 1}
    """
    usual = {"red_agent": red_agents[0], "edition": next(iter(editions))}
    return {name: value for name, value in usual.items() if name not in PRESETS.get(preset, {})} | values


NO_SEARCH = ("general", "universal", "original", "champion", "obedient")  # presets that do not train a single workflow
TASK_FIELDS = ("workflow", "universal")  # chosen by the search


def make_search_config(preset: str = "", **values: Any) -> SearchConfig:
    """The settings of a search: a preset with some values changed.

    >>> make_search_config(n_workflows=3, n_envs=50).train.n_envs
    50
    """
    own = {item.name: values.pop(item.name) for item in SEARCH_FIELDS if item.name in values}
    for name in TASK_FIELDS:
        if name in values:
            raise UserError(f"a search takes no {name!r}; it chooses the workflows itself.")
    if preset and preset not in PRESETS:
        allowed = ", ".join(name for name in PRESETS if name not in NO_SEARCH)
        raise UserError(f"unknown preset {preset!r}; allowed: {allowed}.")
    train = make_config(preset or "search", **values)
    if preset in NO_SEARCH:
        raise UserError(f"preset {preset!r} does not train a single workflow, as a search needs.")
    if is_incident(train.takeover):
        own = INCIDENT_SEARCH | own
    config = SearchConfig(train=train, **own)
    check_search_config(config)
    return config


def command_of(config: SearchConfig | TrainConfig, hosts: int = 0) -> str:
    """The command that makes a run with these settings: the options that differ from the defaults for so many hosts."""
    search = isinstance(config, SearchConfig)
    train = config.train if isinstance(config, SearchConfig) else config
    names = ("red_agent", "takeover", "backend", "view", *(() if search else TASK_FIELDS))
    task = {name: getattr(train, name) for name in names}
    blind = make_config("search" if search else "", hosts=hosts, **{k: v for k, v in task.items() if k != "view"})
    usual = asdict(make_config("search" if search else "", hosts=hosts, **task)) | {"red_agent": TrainConfig.red_agent}
    usual |= {"backend": TrainConfig.backend, "takeover": TrainConfig.takeover, "workflow": "", "universal": False}
    usual["view"] = blind.view
    plain = make_search_config(hosts=hosts, **task) if search else None
    own = {item.name: getattr(plain, item.name) for item in SEARCH_FIELDS} if plain else {}
    words = [f"workflow-rl {'search' if search else 'train'}"]
    for name, default in (own | usual).items():
        value = getattr(config if name in own else train, name)
        if value != default and not (search and name in TASK_FIELDS):
            option = name.replace("_", "-")
            flag = f"--{'' if value else 'no-'}{option}"
            words.append(flag if isinstance(value, bool) else f"--{option} {shlex.quote(str(value))}")
    return " ".join(words)
