"""Settings of trainings and searches: frozen dataclasses, their checks, and conversion to and from JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any

from workflow_rl.errors import UserError, check_choice

VERSION = "1.0.0"
CHALLENGE_LENGTHS = (30, 50, 100)  # episode lengths of the challenge's evaluation
VIEWS, ACTION_VIEWS = ("plain", "short-memory", "small-memory", "memory"), ("full", "host-decoy")  # see views.py
PATHS = ("auto", "fast", "plain")
BACKENDS = ("native", "cyborg")
ALIGNMENTS = ("penalty", "potential")
TIME_LIMITS = ("bootstrap", "cut")
DEVICES = ("auto", "cpu", "cuda")
STRATEGIES = ("gp-ucb", "random", "round-robin", "exhaustive")
MOST_PROCESSES = 10_000
MOST_TAKEOVER = 10_000
OWN_STRATEGY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
TAKEOVER_FORM = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


# Groups of settings in --help, in this order; the first is titled "What to search", "What to train" and so on.
GROUPS = WHAT, BUDGET, TRAINING, MACHINE, EXPERT = ("", "Budget", "Training", "Machine and files", "Expert settings")


def _setting(default: Any, help_text: str, group: str = EXPERT, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": help_text, "group": group, "choices": choices})


@dataclass(frozen=True)
class TrainConfig:
    """All settings of a training, with the help texts of ``workflow-rl train --help``."""

    workflow: str = _setting("", "Unit types in order, such as user,op_server,...; none: a general policy.", WHAT)
    universal: bool = _setting(False, "Train one policy for all workflows.", WHAT)
    red_agent: str = _setting("bline", "Attackers: bline, meander, sleep; bline,meander mixes.", WHAT)
    edition: str = _setting("current", "CybORG's rules: current or leaderboard.", WHAT)
    takeover: str = _setting("0", "Steps before blue may act, such as 30 or 10-60.", WHAT)
    green_agent: str = _setting("sleep", "sleep, active (scans hosts from time to time), or a list: in turn.", WHAT)
    seed: int = _setting(0, "Random seed; the same seed gives the same result.", MACHINE)
    n_envs: int = _setting(200, "Parallel environments of a training.", BUDGET)
    update_steps: int = _setting(100, "Steps of each environment between two updates.", TRAINING)
    max_steps: int = _setting(100, "Steps of an episode.", WHAT)
    max_episodes: int = _setting(50, "Most episodes per environment.", BUDGET)
    min_episodes: int = _setting(5, "Fewest episodes per environment.", BUDGET)
    compliance_threshold: float = _setting(
        0.95, "Compliance and kept at which a workflow counts as followed.", TRAINING
    )
    patience: int = _setting(
        0,
        "Stop only after this many updates with less than 1 % gain in return; 0: stop once the workflow is followed.",
        TRAINING,
    )
    alignment_lambda: float = _setting(20.0, "Strength of the alignment reward.", TRAINING)
    alignment: str = _setting(
        "penalty", "penalty: for each violation; potential: reward for a rise of compliance.", choices=ALIGNMENTS
    )
    kept_target: float = _setting(
        0.0, "Adapt the penalty, starting at alignment-lambda, until this share of episodes has no violation; 0: fixed."
    )
    guard: bool = _setting(False, "Mask fixes of a type while one of higher priority looks compromised.", TRAINING)
    warm_start: str = _setting(
        "none", "Start from none, general (first a short general training), a policy or a run.", TRAINING
    )
    warm_updates: int = _setting(30, "Updates of the general training of a warm start.")
    epochs: int = _setting(4, "Passes over each batch.")
    minibatch: int = _setting(0, "Transitions per gradient step; 0: the full batch.")
    lr: float = _setting(0.002, "Learning rate of Adam (betas 0.9 and 0.99).")
    anneal: bool = _setting(False, "Anneal learning rate and entropy to 0, and raise the penalty to its full strength.")
    gamma: float = _setting(0.99, "Discount.")
    gae_lambda: float = _setting(1.0, "1: Monte-Carlo returns; below: generalised advantage estimation.")
    time_limit: str = _setting(
        "bootstrap", "Value after max_steps: bootstrap (estimated by the critic) or cut (0).", choices=TIME_LIMITS
    )
    clip: float = _setting(0.2, "Clip range of the probability ratio.")
    entropy: float = _setting(0.0, "Weight of the entropy bonus.")
    value_weight: float = _setting(0.5, "Weight of the value loss.")
    max_grad_norm: float = _setting(0.0, "Maximum gradient norm; 0: no clipping.")
    normalise_returns: bool = _setting(True, "Normalise the returns of each batch.")
    normalise_advantages: bool = _setting(False, "Normalise the advantages of each batch.")
    replay_batches: int = _setting(0, "Recent batches replayed in each update, with importance correction.")
    hidden: int = _setting(64, "Width of the two hidden layers.")
    view: str = _setting(
        "plain",
        "plain: 4 bits per host; short-memory: also the restored hosts; CAGE-2 only: small-memory, memory.",
        choices=VIEWS,
    )
    actions: str = _setting(
        "full", "full: all; host-decoy: one action per host for its next useful decoy.", choices=ACTION_VIEWS
    )
    improve_rounds: int = _setting(0, "Rounds of paired games that improve the expert before it is imitated.")
    plan_games: int = _setting(0, "Games that plan the play against B_line before it is imitated; 0: the expert's.")
    imitate_updates: int = _setting(0, "Updates that imitate at first: the expert (view memory) or a simple rule.")
    greedy: bool = _setting(False, "The policy will be played with its most probable actions.")
    n_eval_episodes: int = _setting(1000, "Fresh episodes that measure it.", BUDGET)
    path: str = _setting(
        "auto", "fast: loss by distinct input; plain: by transition; auto: whichever is less work.", choices=PATHS
    )
    device: str = _setting("auto", "auto, cpu or cuda.", MACHINE, choices=DEVICES)
    backend: str = _setting(
        "native", "native, or cyborg: genuine CybORG with a process per environment.", MACHINE, choices=BACKENDS
    )
    cyborg_path: str = _setting("", "With backend cyborg: a checkout of CybORG to use instead of csle-cyborg.", MACHINE)
    checkpoint_updates: int = _setting(25, "Updates between two checkpoints; on CybORG 1.", MACHINE)

    @property
    def conditioned(self) -> bool:
        """Is the policy conditioned on a workflow?"""
        return bool(self.workflow) or self.universal

    @property
    def batch(self) -> int:
        """Transitions per update."""
        return self.n_envs * self.update_steps

    @property
    def max_updates(self) -> int:
        """Updates until every environment has played ``max_episodes``."""
        return -(-self.max_episodes * self.max_steps // self.update_steps)


@dataclass(frozen=True)
class SearchConfig:
    """All settings of a search; ``train`` holds those of its trainings, without a workflow."""

    train: TrainConfig = TrainConfig()
    n_workflows: int = _setting(20, "Evaluations of workflows; below 6 no answer.", BUDGET)
    replicates: int = _setting(2, "Trainings per evaluation.", BUDGET)
    strategy: str = _setting(
        "gp-ucb", "gp-ucb, random, round-robin, exhaustive, or your own: package.module:Class.", choices=STRATEGIES
    )
    gp_beta: float = _setting(2.0, "Weight of the standard deviation in the bound: mean + beta * deviation.")
    n_initial: int = _setting(6, "Initial evaluations, designed to separate the effects of pairs.")
    finish: bool = _setting(True, "Train the best ones to the end.", BUDGET)
    finalists: int = _setting(3, "The best workflow and its rivals; in incidents 5.")
    finish_episodes: int = _setting(
        0,
        "Episodes per environment of a finalist's first training; 0: half of `train`, in incidents at most 250.",
    )
    in_flight: int = _setting(
        2, "Evaluations pending when the next one is chosen, which affects the result; 0: as many as fit the workers."
    )


SEARCH_FIELDS = tuple(item for item in fields(SearchConfig) if item.name != "train")


def check_jobs(jobs: int | None) -> int:
    """The number of concurrent trainings: as given, or one per core."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= jobs <= 1000:
        raise UserError(f"jobs must be from 1 to 1000, not {jobs}.")
    return jobs


def check_search_config(config: SearchConfig) -> None:
    """Rejects invalid values with a message that names them."""
    check_config(config.train)
    _check_types(config, SEARCH_FIELDS)
    for name, most in (
        ("n_workflows", 100_000), ("replicates", 100), ("in_flight", 1000), ("finalists", 100),
        ("finish_episodes", 1_000_000),
    ):  # fmt: skip
        _at_least(config, name, 0 if name in ("in_flight", "finish_episodes") else 1)
        if getattr(config, name) > most:
            raise UserError(f"{name} must be at most {most}, not {getattr(config, name)}.")
    _at_least(config, "n_initial", 0)
    if config.train.imitate_updates and config.train.view == "memory":
        raise UserError("a search cannot imitate the expert: leave out --imitate-updates or --view memory.")
    if not 0 <= config.gp_beta <= 1e6:
        raise UserError(f"gp_beta must be from 0 to 1e+06, not {config.gp_beta}.")
    check_strategy(config.strategy)


def check_strategy(strategy: str) -> None:
    """Rejects what is neither the name of a strategy nor that of a user's own class, which is not imported here."""
    if not OWN_STRATEGY.fullmatch(strategy):
        check_choice("strategy", strategy, (*STRATEGIES, "your own as package.module:Class"))


def check_config(config: TrainConfig) -> None:
    """Rejects values of the wrong type or range with a message that names them."""
    _check_types(config, fields(config))
    for name in ("n_envs", "update_steps", "max_steps", "max_episodes", "epochs", "hidden", "checkpoint_updates"):
        _at_least(config, name, 1)
    for name in (
        "min_episodes", "minibatch", "patience", "warm_updates", "replay_batches", "seed",
        "imitate_updates", "improve_rounds", "plan_games",
    ):  # fmt: skip
        _at_least(config, name, 0)
    _at_least(config, "n_eval_episodes", 2)
    for name, low, high in (
        ("compliance_threshold", 0.0, 1.0), ("kept_target", 0.0, 1.0), ("gamma", 0.0, 1.0), ("gae_lambda", 0.0, 1.0),
        ("clip", 0.0, 10.0), ("lr", 0.0, 10.0), ("entropy", 0.0, 1e3), ("value_weight", 0.0, 1e3),
        ("max_grad_norm", 0.0, 1e9), ("alignment_lambda", 0.0, 1e6),
    ):  # fmt: skip
        if not low <= getattr(config, name) <= high:
            raise UserError(f"{name} must be from {low:g} to {high:g}, not {getattr(config, name)}.")
    if config.minibatch > config.batch:
        raise UserError(
            f"minibatch {config.minibatch} is larger than the batch of {config.batch} transitions "
            f"({config.n_envs} environments x {config.update_steps} steps)."
        )
    if config.minibatch and config.path == "fast":
        raise UserError("path 'fast' needs the full batch; use 'auto' or 'plain' with minibatches.")
    for name, value, most in (
        ("n_envs", config.n_envs, 1_000_000), ("the batch", config.batch, 20_000_000), ("hidden", config.hidden, 4096),
        ("seed", config.seed, 2**63 - 1), ("max_steps", config.max_steps, 2**31 - 1),
        ("n_eval_episodes", config.n_eval_episodes, 1_000_000),
    ):  # fmt: skip
        if value > most:
            raise UserError(f"{name} must be at most {most}, not {value}.")
    if config.backend == "cyborg" and config.n_envs > MOST_PROCESSES:
        raise UserError(f"n_envs must be at most {MOST_PROCESSES} on CybORG, not {config.n_envs}: each is a process.")
    if config.backend == "cyborg" and config.path == "fast":
        raise UserError("path 'fast' needs the native engine; use 'auto' or 'plain' with backend cyborg.")
    if config.min_episodes > config.max_episodes:
        raise UserError(f"min_episodes {config.min_episodes} is larger than max_episodes {config.max_episodes}.")
    if config.kept_target and config.alignment != "penalty":
        raise UserError(f"kept_target adapts a penalty; with alignment {config.alignment!r} there is none.")
    parse_takeover(config.takeover)
    for item in fields(config):
        if item.metadata["choices"]:
            check_choice(item.name, getattr(config, item.name), item.metadata["choices"])


def _check_types(config: object, wanted: Iterable[Field[Any]]) -> None:
    for item in wanted:
        value, kind = getattr(config, item.name), type(item.default)
        right = isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
        if not right or (isinstance(value, bool) and kind is not bool):
            raise UserError(f"{item.name} must be of type {kind.__name__}, not {value!r}.")


def _at_least(config: object, name: str, least: int) -> None:
    if getattr(config, name) < least:
        raise UserError(f"{name} must be a whole number of at least {least}, not {getattr(config, name)}.")


def config_to_json(config: TrainConfig | SearchConfig) -> dict[str, Any]:
    """All values by name."""
    return asdict(config)


RETIRED: dict[str, Any] = {"anchor": 0.0, "challenge_weights": False}  # settings of earlier versions, without effect


def config_from_json(values: Mapping[str, Any]) -> TrainConfig:
    """The settings of a training from :func:`config_to_json`."""
    config = TrainConfig(**{name: value for name, value in values.items() if RETIRED.get(name) != value})
    check_config(config)
    return config


def search_config_from_json(values: Mapping[str, Any]) -> SearchConfig:
    """The settings of a search from :func:`config_to_json`."""
    config = SearchConfig(**{**values, "train": config_from_json(values["train"])})
    check_search_config(config)
    return config


def parse_takeover(takeover: str | int | Sequence[str]) -> list[tuple[int, int]]:
    """The smallest and largest number of steps of each entry; environments use the entries in turn.

    >>> parse_takeover(30), parse_takeover("0,10-60")
    ([(30, 30)], [(0, 0), (10, 60)])
    """
    text = ",".join(map(str, takeover)) if isinstance(takeover, (list, tuple)) else str(takeover)
    ranges = []
    for part in text.split(","):
        found = TAKEOVER_FORM.fullmatch(part.strip())
        if found is None:
            raise UserError(
                f"takeover must be a number of steps from 0 to {MOST_TAKEOVER}, a range such as 10-60, or a "
                f"comma-separated list of them, not {takeover!r}."
            )
        least, most = int(found[1]), int(found[2] or found[1])
        if least > most:
            raise UserError(f"the range of a takeover must start with the smaller number, not {part.strip()!r}.")
        if most > MOST_TAKEOVER:
            raise UserError(f"a takeover must come after at most {MOST_TAKEOVER} steps, not {most}.")
        ranges.append((least, most))
    return ranges


def opponent_words(red_agent: str, takeover: str) -> str:
    """The opponent as text for titles.

    >>> opponent_words("bline", "0"), opponent_words("bline", "30")
    ('bline', 'bline, takeover after 30 steps')
    """
    return f"{red_agent}, takeover after {takeover} steps" if is_incident(takeover) else red_agent


def chain(workflow: str, width: int = 10_000) -> str:
    """A workflow as people read it, with its lowest priorities left out if it is longer than ``width``.

    >>> chain("enterprise,user,op_server"), chain("enterprise,user,op_server", 25)
    ('enterprise > user > op_server', 'enterprise > user > ...')
    """
    names = workflow.split(",")
    texts = [" > ".join(names), *(" > ".join([*names[:shown], "..."]) for shown in range(len(names) - 1, 0, -1))]
    return next((text for text in texts if len(text) <= width), f"{workflow[: width - 3]}...")


def is_incident(takeover: str | int) -> bool:
    """Does red play before blue takes over in any environment?"""
    return any(most > 0 for _, most in parse_takeover(takeover))
