"""The one training loop: collect a batch, learn from it, look at the stop rules. Every preset goes through here."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workflow_rl.config import TrainConfig, check_jobs
from workflow_rl.envs.backends import Backend
from workflow_rl.envs.views import View
from workflow_rl.errors import SimulatorError, UserError
from workflow_rl.runs import Run
from workflow_rl.training.actor_critic import OrderConditionedActorCritic
from workflow_rl.training.collectors import Collector, PlainCollector, Teacher, workflow_codes, workflows_of
from workflow_rl.training.compliance import held, violations_to_text
from workflow_rl.training.evaluation import Evaluation, evaluate_policy
from workflow_rl.training.limits import limit_of
from workflow_rl.training.policy_file import PolicyFile, load_policy, save_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO, choose_device
from workflow_rl.training.workflow import unit_types

BASE, MAIN = "base", "main"  # phases of a training: the general policy of a warm start, and what was asked for
PHASES = [BASE, MAIN]
CONFIRMATION, FINAL = 11, 12  # purposes of fresh episodes, for their seeds
FIRST_STRENGTH = 0.25  # share of the alignment reward at first, if it is annealed: first defend, then obey
UNIVERSAL_CHECK = 20  # updates between two looks at all workflows
UNIVERSAL_EPISODES = 100  # fresh episodes of each workflow at such a look

Say = Callable[[dict[str, Any]], None]
MakeTeacher = Callable[[TrainConfig, Path | None, Callable[[str], None]], Teacher]
"""From the settings, the run's folder and whom to tell what takes long."""


class StopReason(Enum):
    """Which rule ended a training."""

    FOLLOWED = "followed"
    MAX_EPISODES = "max_episodes"
    PATIENCE = "patience"


@dataclass(frozen=True)
class WorkflowResult:
    """What came out of a training: figures of fresh episodes, ``greedy`` ones with the most probable actions."""

    workflow: str
    followed: bool | None  # None for a general policy, which has no order, as the next three
    compliance: float | None
    compliance_error: float | None
    kept: float | None
    repairs: float
    idle_fixes: float
    mean_return: float
    standard_error: float
    updates: int
    episodes: int
    stop_reason: str
    seconds: float
    run: str
    greedy_compliance: float | None
    greedy_mean_return: float
    worst_compliance: float | None
    worst_kept: float | None
    red_agent: str
    edition: str
    seed: int
    backend: str = "native"
    takeover: str = "0"
    limit: float | None = None  # of the order, see limits.py


class Training:
    """One phase: a collector, a learner, and the counters of the stop rules."""

    def __init__(
        self,
        config: TrainConfig,
        phase: str,
        net: OrderConditionedActorCritic | None,
        teacher: Teacher | None = None,
    ) -> None:
        self.config, self.phase, self.teacher = config, phase, teacher
        self.workflows = workflows_of(config)
        codes = workflow_codes(self.workflows)
        self.ppo = ParallelOrderConditionedPPO(config, codes, net)
        self.collector = self._collector()
        self.latest = np.full(config.n_envs, np.nan)  # compliance of each environment's latest episode with a repair
        self.update, self.best, self.since_best = 0, -np.inf, 0
        self.multiplier = config.alignment_lambda  # where the penalty is held by `kept`

    def _collector(self) -> Collector | PlainCollector:
        config = self.config
        if config.backend != "native" or config.path == "plain" or choose_device(config.device) != "cpu":
            return PlainCollector.of(config, self.workflows, (PHASES.index(self.phase),))
        return Collector(
            config.n_envs, config.update_steps, config.max_steps, config.red_agent, config.edition, self.workflows,
            config.alignment_lambda, config.seed, (PHASES.index(self.phase),), False, View(config.view, config.actions),
            config.alignment == "potential", config.takeover,
        )  # fmt: skip

    @property
    def progress(self) -> float:
        """Share of the updates that are over: of the imitation, then of the own play."""
        first = self.config.imitate_updates
        if self.update < first:
            return self.update / first
        return (self.update - first) / max(1, self.config.max_updates - first)

    def step(self) -> dict[str, Any]:
        """One update; returns what there is to know about it."""
        start, cpu = time.perf_counter(), time.process_time()
        imitate = self.update < self.config.imitate_updates
        self.collector.set_strength(self._strength())
        buffer = self.collector.collect(self.ppo, self.teacher if imitate else None)
        collected = time.perf_counter()
        stats = self.ppo.update(buffer, self.collector.last_keys(), self.progress, imitate)
        end = time.perf_counter()
        self.update += 1
        episodes = buffer.finished_episodes()
        shown = episodes[episodes["repairs"] > 0]
        self.latest[shown["env"]] = 1.0 - shown["violations"] / shown["repairs"]
        kept = _mean(shown["violations"] == 0) if self.config.conditioned else None
        if self.config.kept_target and kept is not None:
            self.multiplier = held(self.multiplier, kept, self.config.kept_target, self.config.alignment_lambda)
        event: dict[str, Any] = {
            "phase": self.phase,
            "update": self.update,
            "episodes": int(self.update * self.config.batch // self.config.max_steps),
            "return": _mean(episodes["total"]),
            "alignment": _mean(episodes["alignment"]),
            "total": _mean(episodes["total"] + episodes["alignment"]),
            "compliance": self.compliance() if self.config.conditioned else None,
            "kept": kept,
            "repairs": _mean(episodes["repairs"]),
            "idle_fixes": _mean(episodes["idle"]),
            "violations": int(self.collector.violations.sum()),
            "violations_by_pair": violations_to_text(self.collector.violations, unit_types()),
            **asdict(stats),
            "seconds_collect": collected - start,
            "seconds_update": end - collected,
            "transitions_per_s": self.config.batch / (end - start),
            "cpu_share": (time.process_time() - cpu) / (end - start),
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        if torch.cuda.is_available() and self.ppo.device.type == "cuda":
            event["gpu_memory_mb"] = torch.cuda.max_memory_allocated() / 2**20
        return event

    def _strength(self) -> float:
        """Strength of the alignment reward in the batch to come."""
        if self.config.kept_target:
            return self.multiplier
        if not self.config.anneal:
            return self.config.alignment_lambda
        return self.config.alignment_lambda * (FIRST_STRENGTH + (1 - FIRST_STRENGTH) * min(1.0, 2 * self.progress))

    def compliance(self) -> float | None:
        """Mean compliance of each environment's latest episode with a repair; None before the first one."""
        return _mean(self.latest[~np.isnan(self.latest)])

    def should_stop(self, event: dict[str, Any]) -> StopReason | None:
        """Looks at the stop rules after an update."""
        config = self.config
        risen = self._stopped_rising(event["return"])
        if self.phase == MAIN and config.conditioned and (risen or not config.patience):
            if self._follows(event["compliance"]):
                return StopReason.FOLLOWED
        elif risen:
            return StopReason.PATIENCE
        return StopReason.MAX_EPISODES if self.update >= config.max_updates else None

    def _stopped_rising(self, mean_return: float | None) -> bool:
        """Has the return of the batches gained less than 1 % for as many updates as there is patience for?"""
        if mean_return is None:  # no episode has ended yet
            return False
        if mean_return > self.best + 0.01 * abs(self.best) or not np.isfinite(self.best):
            self.best, self.since_best = mean_return, 0
        else:
            self.since_best += 1
        return 0 < self.config.patience <= self.since_best

    def _follows(self, compliance: float | None) -> bool:
        """Is the workflow followed, by the batches and on fresh episodes?"""
        config = self.config
        if self.update * config.update_steps < config.min_episodes * config.max_steps:
            return False
        if config.universal and self.update % UNIVERSAL_CHECK and self.update < config.max_updates:
            return False
        if compliance is None or compliance < config.compliance_threshold:
            return False
        n_episodes = UNIVERSAL_EPISODES if config.universal else config.n_eval_episodes
        return self._confirm(n_episodes).follows(config.compliance_threshold)

    def evaluate(self, n_episodes: int, purpose: tuple[int, ...], greedy: bool = False) -> Evaluation:
        """Fresh episodes, whose chance depends on the seed and the purpose."""
        config = self.config
        return evaluate_policy(
            self.ppo, self.workflows, config.red_agent, config.edition, n_episodes, config.max_steps, config.seed,
            purpose, greedy, backend=Backend(config.backend, config.cyborg_path, check_jobs(None)),
            takeover=config.takeover,
        )  # fmt: skip

    def close(self) -> None:
        """Ends the environments' processes, if they have any."""
        self.collector.close()

    def _confirm(self, n_episodes: int) -> Evaluation:
        """Episodes that are other ones after each update."""
        return self.evaluate(n_episodes, (CONFIRMATION, self.update))

    def arrays(self) -> dict[str, np.ndarray]:
        """The complete state as plain arrays."""
        return self.ppo.arrays() | self.collector.arrays() | {"latest": self.latest}

    def restore(self, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Takes back what :meth:`arrays` and :meth:`counters` gave."""
        self.collector.restore(arrays)
        self.ppo.restore(arrays, meta["update"])
        self.latest[:] = arrays["latest"]
        self.update, self.best, self.since_best = meta["update"], float(meta["best"]), meta["since_best"]
        self.multiplier = meta.get("multiplier", self.multiplier)

    def counters(self) -> dict[str, Any]:
        """Counters for the checkpoint."""
        return {
            "phase": self.phase,
            "update": self.update,
            "best": str(self.best),
            "since_best": self.since_best,
            "multiplier": self.multiplier,
        }


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def train_workflow(
    config: TrainConfig,
    run: Run[TrainConfig] | None = None,
    say: Say = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
    teacher: MakeTeacher | None = None,
) -> WorkflowResult:
    """Trains one policy until a stop rule fires, and evaluates it on fresh episodes.

    Args:
        config: the settings.
        run: where to keep events, checkpoints and the result; goes on from its checkpoint if there is one.
        say: told about each update.
        note: told what else takes long.
        teacher: makes the teacher, for settings that imitate one; see :mod:`workflow_rl.defenders.imitation`.
    """
    if config.imitate_updates and teacher is None:
        raise UserError("imitate_updates needs a teacher: train with `workflow-rl train`, or give one.")
    torch.set_num_threads(1)
    with ExitStack() as stack:
        began = time.perf_counter()
        taught = teacher(config, run.path if run else None, note) if teacher and config.imitate_updates else None
        training, reason, earlier = _train(config, run, say, taught, stack)
        seconds = earlier + time.perf_counter() - began
        if config.backend != "native":
            note(f"evaluating on {config.n_eval_episodes} fresh games of genuine CybORG, and as many greedy ones")
        return _finish(training, reason, seconds, run)


def _train(
    config: TrainConfig, run: Run[TrainConfig] | None, say: Say, teacher: Teacher | None, stack: ExitStack
) -> tuple[Training, StopReason, float]:
    """Updates until a stop rule fires; returns where it ended, why, and the seconds of earlier starts."""
    training = stack.enter_context(closing(_start(config, run, teacher)))
    seconds = sum(event["seconds_collect"] + event["seconds_update"] for event in run.events()) if run else 0.0
    reason = None
    while reason is None:
        event = training.step()
        reason = training.should_stop(event)
        if run:
            run.log(event)
        say(event)
        if reason is not None and training.phase == BASE:
            training = stack.enter_context(closing(Training(config, MAIN, _widen(training.ppo.net, config), teacher)))
            reason = None
            _checkpoint(run, training)
        elif reason is None and training.update % config.checkpoint_updates == 0:
            _checkpoint(run, training)  # not at the end: one killed in the evaluation makes its last updates again
    return training, reason, seconds


def _start(config: TrainConfig, run: Run[TrainConfig] | None, teacher: Teacher | None) -> Training:
    """The training where it stands: at the run's checkpoint or at its beginning."""
    saved = run.load_checkpoint() if run else None
    if saved is not None:
        arrays, meta = saved
        phase = meta.get("phase") if isinstance(meta, dict) else None
        if phase not in PHASES:
            raise UserError(f"{run.path if run else ''}/checkpoint.safetensors is not a checkpoint.")
        training = Training(_phase_config(config, phase), phase, None, teacher)
        assert run is not None
        try:
            training.restore(arrays, meta)
        except SimulatorError:
            raise
        except (KeyError, ValueError, TypeError, RuntimeError):
            training.close()
            raise UserError(f"{run.path}/checkpoint.safetensors does not fit the run's settings.") from None
        run.drop_events_after(phase, meta["update"], PHASES)
        return training
    if run:
        run.drop_events_after(BASE, -1, PHASES)
    if not config.conditioned or config.warm_start == "none":
        return Training(config, MAIN, None, teacher)
    if config.warm_start == "general":
        return Training(_phase_config(config, BASE), BASE, None, teacher)
    return Training(config, MAIN, _widen(load_policy(Path(config.warm_start)).net, config), teacher)


def _phase_config(config: TrainConfig, phase: str) -> TrainConfig:
    return config if phase == MAIN else base_config(config)


def base_config(config: TrainConfig) -> TrainConfig:
    """Settings of the base of a warm start: a general policy of the native engine, with much chance left in it."""
    return replace(
        config, workflow="", universal=False, warm_start="none", n_envs=200, update_steps=100, lr=0.002, epochs=4,
        minibatch=0, entropy=0.01, anneal=False, patience=0, min_episodes=0, backend="native", cyborg_path="",
        max_episodes=max(1, config.warm_updates * 100 // config.max_steps),
    )  # fmt: skip


def _widen(net: OrderConditionedActorCritic, config: TrainConfig) -> OrderConditionedActorCritic:
    """A network for the workflow, from one with or without it."""
    n_code = workflow_codes(workflows_of(config)).shape[1]
    return net.with_order(n_code) if n_code > net.n_code else net


def _checkpoint(run: Run[TrainConfig] | None, training: Training) -> None:
    if run:
        run.save_checkpoint(training.arrays(), training.counters())


def _finish(training: Training, reason: StopReason, seconds: float, run: Run[TrainConfig] | None) -> WorkflowResult:
    config = training.config
    sampled = training.evaluate(config.n_eval_episodes, (FINAL,))  # the same games for all workflows of a seed
    greedy = training.evaluate(config.n_eval_episodes, (FINAL,), greedy=True)
    result = WorkflowResult(
        workflow=config.workflow if not config.universal else "universal",
        followed=sampled.follows(config.compliance_threshold) if config.conditioned else None,
        compliance=sampled.obedience.compliance if config.conditioned else None,
        compliance_error=sampled.obedience.compliance_error if config.conditioned else None,
        kept=sampled.obedience.kept if config.conditioned else None,
        repairs=sampled.obedience.repairs,
        idle_fixes=sampled.obedience.idle_fixes,
        mean_return=sampled.mean_return,
        standard_error=sampled.standard_error,
        updates=training.update,
        episodes=training.update * config.batch // config.max_steps,
        stop_reason=reason.value,
        seconds=seconds,
        run=str(run.path) if run else "",
        greedy_compliance=greedy.obedience.compliance if config.conditioned else None,
        greedy_mean_return=greedy.mean_return,
        worst_compliance=sampled.worst.compliance if config.conditioned else None,
        worst_kept=sampled.worst.kept if config.conditioned else None,
        red_agent=config.red_agent,
        edition=config.edition,
        seed=config.seed,
        backend=config.backend,
        takeover=config.takeover,
        limit=limit_of(config.workflow, config.red_agent, config.edition, config.takeover, config.max_steps),
    )
    if run:
        about = PolicyFile(
            training.ppo.net, config.workflow, config.universal, config.red_agent, config.edition, training.ppo.view,
            config.greedy, config.takeover,
        )  # fmt: skip
        save_policy(run.path / "policy.safetensors", about)
        table = {str(w): asdict(cell) for w, cell in sampled.by_workflow.items()} if config.universal else None
        run.finish(asdict(result) | {"by_workflow": table})
    return result
