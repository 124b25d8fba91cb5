"""The one training loop of all presets: collect a batch, learn from it, check the stop rules."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from workflow_rl.config import TrainConfig, check_jobs
from workflow_rl.engine.network import Network
from workflow_rl.engine.networks.copies import AnyNetwork, chosen_network
from workflow_rl.envs.cyborg_sim import Backend
from workflow_rl.envs.env import make_envs
from workflow_rl.envs.game import Games
from workflow_rl.errors import SimulatorError, UserError
from workflow_rl.runs import Json, Run
from workflow_rl.training.actor_critic import OrderConditionedActorCritic
from workflow_rl.training.collectors import (
    Collector,
    Conduct,
    PlainCollector,
    Stream,
    Teacher,
    workflow_codes,
    workflows_of,
)
from workflow_rl.training.compliance import held, violations_to_text
from workflow_rl.training.evaluation import Evaluation, FreshGames, evaluate_policy
from workflow_rl.training.events import StopReason, UpdateEvent, WorkflowResult
from workflow_rl.training.limits import limit_of
from workflow_rl.training.policy_file import PolicyFile, load_policy
from workflow_rl.training.ppo import ParallelOrderConditionedPPO, choose_device
from workflow_rl.training.rule import RuleTeacher
from workflow_rl.training.train_task import base_config

BASE, MAIN = "base", "main"  # phases of a training: the general policy of a warm start, and the policy itself
PHASES = [BASE, MAIN]
CONFIRMATION, FINAL = 11, 12  # purposes of fresh episodes, part of their seeds
FIRST_STRENGTH = 0.25  # initial share of the alignment reward if it is annealed: first defend, then obey
UNIVERSAL_CHECK = 20  # updates between two evaluations of a universal policy
UNIVERSAL_EPISODES = 100  # fresh episodes of each workflow in such an evaluation

Say = Callable[[UpdateEvent], None]
MakeTeacher = Callable[[TrainConfig, Path | None, Callable[[str], None]], Teacher]
"""Makes a teacher from the settings, the run directory and a function that shows progress messages."""


class Training:
    """One phase of a training: a collector, a learner, and the counters of the stop rules."""

    def __init__(
        self, config: TrainConfig, network: Network, phase: str = MAIN, net: OrderConditionedActorCritic | None = None,
        teacher: Teacher | None = None,
    ) -> None:  # fmt: skip
        self.config, self.phase, self.teacher, self.network = config, phase, teacher, network
        self.workflows = workflows_of(config, self.network)
        self.ppo = ParallelOrderConditionedPPO(config, workflow_codes(self.workflows), net, self.network)
        self.collector = self._collector()
        self.latest = np.full(config.n_envs, np.nan)  # compliance of each environment's latest episode with a repair
        self.update, self.best, self.since_best = 0, -np.inf, 0
        self.multiplier = config.alignment_lambda  # current strength of an adaptive penalty

    def _collector(self) -> Collector | PlainCollector:
        config, stream = self.config, Stream(self.config.seed, (PHASES.index(self.phase),))
        conduct = Conduct.of(config, self.network)
        if config.backend != "native" or config.path == "plain" or choose_device(config.device) != "cpu":
            envs = make_envs(
                Backend(config.backend, config.cyborg_path), config.n_envs, network=self.network,
                red_agent=config.red_agent, edition=config.edition, max_steps=config.max_steps,
                takeover=config.takeover, green_agent=config.green_agent,
            )  # fmt: skip
            return PlainCollector(envs, config.update_steps, config.max_steps, conduct).started(stream)
        return Collector(Games.of(config, self.network), config.n_envs, config.update_steps, conduct, stream)

    @property
    def progress(self) -> float:
        """Completed share of the updates: first of the imitation, then of reinforcement learning."""
        first = self.config.imitate_updates
        if self.update < first:
            return self.update / first
        return (self.update - first) / max(1, self.config.max_updates - first)

    def step(self) -> UpdateEvent:
        """Collects one batch and learns from it."""
        start, cpu = time.perf_counter(), time.process_time()
        imitate = self.update < self.config.imitate_updates
        self.collector.set_strength(self._strength())
        self.ppo.set_guard(not (imitate and self.config.view == "memory"))  # the expert keeps orders in its own way
        buffer = self.collector.collect(self.ppo, self.teacher if imitate else None)
        collected = time.perf_counter()
        stats = self.ppo.update(buffer, self.collector.last_keys(), self.progress, imitate)
        end = time.perf_counter()
        self.ppo.set_guard(True)
        self.update += 1
        episodes = buffer.finished_episodes()
        shown = episodes[episodes["repairs"] > 0]
        self.latest[shown["env"]] = 1.0 - shown["violations"] / shown["repairs"]
        kept = _mean(shown["violations"] == 0) if self.config.conditioned else None
        if self.config.kept_target and kept is not None:
            self.multiplier = held(self.multiplier, kept, self.config.kept_target, self.config.alignment_lambda)
        return UpdateEvent(
            phase=self.phase, update=self.update,
            episodes=int(self.update * self.config.batch // self.config.max_steps),
            mean_return=_mean(episodes["total"]), alignment=_mean(episodes["alignment"]),
            total=_mean(episodes["total"] + episodes["alignment"]),
            compliance=self.compliance() if self.config.conditioned else None, kept=kept,
            repairs=_mean(episodes["repairs"]), idle_fixes=_mean(episodes["idle"]),
            violations=int(self.collector.violations.sum()),
            violations_by_pair=violations_to_text(self.collector.violations, self.network.unit_types),
            stats=stats, seconds_collect=collected - start, seconds_update=end - collected,
            transitions_per_s=self.config.batch / (end - start),
            cpu_share=(time.process_time() - cpu) / (end - start),
            memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            gpu_memory_mb=torch.cuda.max_memory_allocated() / 2**20 if self.ppo.device.type == "cuda" else None,
        )  # fmt: skip

    def _strength(self) -> float:
        """Strength of the alignment reward in the next batch."""
        if self.config.kept_target:
            return self.multiplier
        if not self.config.anneal:
            return self.config.alignment_lambda
        return self.config.alignment_lambda * (FIRST_STRENGTH + (1 - FIRST_STRENGTH) * min(1.0, 2 * self.progress))

    def compliance(self) -> float | None:
        """Mean compliance over each environment's latest episode with a repair; None before the first one."""
        return _mean(self.latest[~np.isnan(self.latest)])

    def should_stop(self, event: UpdateEvent) -> StopReason | None:
        """Checks the stop rules after an update."""
        config = self.config
        if self.update <= config.imitate_updates < config.max_updates:  # the games were the teacher's
            return None
        risen = self._stopped_rising(event.mean_return)
        if self.phase == MAIN and config.conditioned and (risen or not config.patience):
            if self._follows(event.compliance):
                return StopReason.FOLLOWED
        elif risen:
            return StopReason.PATIENCE
        return StopReason.MAX_EPISODES if self.update >= config.max_updates else None

    def _stopped_rising(self, mean_return: float | None) -> bool:
        """Has the return risen by less than 1 % for ``patience`` updates?"""
        if mean_return is None:  # no episode has ended yet
            return False
        if mean_return > self.best + 0.01 * abs(self.best) or not np.isfinite(self.best):
            self.best, self.since_best = mean_return, 0
        else:
            self.since_best += 1
        return 0 < self.config.patience <= self.since_best

    def _follows(self, compliance: float | None) -> bool:
        """Is the workflow followed in the training batches and confirmed on fresh episodes?"""
        config = self.config
        if self.update * config.update_steps < config.min_episodes * config.max_steps:
            return False
        if config.universal and self.update % UNIVERSAL_CHECK and self.update < config.max_updates:
            return False
        if compliance is None or compliance < config.compliance_threshold:
            return False
        n_episodes = UNIVERSAL_EPISODES if config.universal else config.n_eval_episodes
        return self.evaluate(n_episodes, (CONFIRMATION, self.update)).follows(config.compliance_threshold)

    def evaluate(self, n_episodes: int, purpose: tuple[int, ...], greedy: bool = False) -> Evaluation:
        """Evaluates the policy on fresh episodes, whose seeds depend on the seed and the purpose."""
        config = self.config
        fresh = FreshGames(Games.of(config, self.network), n_episodes, Stream(config.seed, purpose), greedy)
        backend = Backend(config.backend, config.cyborg_path, check_jobs(None))
        return evaluate_policy(self.ppo, self.workflows, fresh, backend=backend)

    def close(self) -> None:
        """Closes the environments."""
        self.collector.close()

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as plain arrays; see :meth:`counters` for the rest."""
        return self.ppo.arrays() | self.collector.arrays() | {"latest": self.latest}

    def restore(self, arrays: dict[str, np.ndarray], meta: Json) -> None:
        """Restores the state from :meth:`arrays` and :meth:`counters`."""
        self.collector.restore(arrays)
        self.ppo.restore(arrays, meta["update"])
        self.latest[:] = arrays["latest"]
        self.update, self.best, self.since_best = meta["update"], float(meta["best"]), meta["since_best"]
        self.multiplier = meta.get("multiplier", self.multiplier)

    def counters(self) -> Json:
        """The counters of the stop rules for a checkpoint."""
        best = {"best": str(self.best), "since_best": self.since_best}
        return {"phase": self.phase, "update": self.update} | best | {"multiplier": self.multiplier}


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def train_workflow(
    config: TrainConfig, run: Run[TrainConfig] | None = None, say: Say = lambda _: None,
    note: Callable[[str], None] = lambda _: None, teacher: MakeTeacher | None = None,
    network: AnyNetwork | None = None,
) -> WorkflowResult:  # fmt: skip
    """Trains one policy until a stop rule fires, and evaluates it on fresh episodes.

    Args:
        config: the settings.
        run: the directory for events, checkpoints and the result; training resumes from its checkpoint.
        say: called with the event of each update.
        note: called with a message before other long work.
        teacher: makes the teacher for settings that imitate the expert; see :mod:`workflow_rl.defenders.imitation`.
        network: the network to defend; default: that of the run, else CAGE Challenge 2.
    """
    defended = chosen_network(run.path if run else None, network)
    if config.imitate_updates and config.view == "memory" and teacher is None:
        raise UserError("imitate_updates needs a teacher: train with `workflow-rl train`, or pass one.")
    torch.set_num_threads(1)
    with ExitStack() as stack:
        began = time.perf_counter()
        taught: Teacher | None = None
        if config.imitate_updates and config.view != "memory":
            taught = RuleTeacher(defended)
        elif config.imitate_updates and teacher:
            taught = teacher(config, run.path if run else None, note)
        start = _Start(config, run, taught, defended)
        training, reason, earlier = _train(start, say, stack)
        seconds = earlier + time.perf_counter() - began
        if config.backend != "native":
            note(f"evaluating on {config.n_eval_episodes} fresh games of genuine CybORG, sampled and greedy")
        return _finish(training, reason, seconds, run)


@dataclass(frozen=True)
class _Start:
    """The arguments with which a training starts or resumes."""

    config: TrainConfig
    run: Run[TrainConfig] | None
    teacher: Teacher | None
    network: Network

    def training(self, phase: str = MAIN, net: OrderConditionedActorCritic | None = None) -> Training:
        """Starts a phase; the neural net of an earlier one is widened for the workflow code."""
        config = self.config if phase == MAIN else base_config(self.config)
        if net is not None:
            net = net.widened(workflow_codes(workflows_of(self.config, self.network)).shape[1])
        return Training(config, self.network, phase, net, self.teacher)

    def resumed(self) -> Training:
        """The training at the run's checkpoint, or at its beginning."""
        config, run = self.config, self.run
        saved = run.load_checkpoint() if run else None
        if run is not None and saved is not None:
            return self._at_checkpoint(run, *saved)
        if run:
            run.drop_events_after(BASE, -1, PHASES)
        if not config.conditioned or config.warm_start == "none":
            return self.training()
        if config.warm_start == "general":
            return self.training(BASE)
        return self.training(MAIN, load_policy(Path(config.warm_start), self.network).net)

    def _at_checkpoint(self, run: Run[TrainConfig], arrays: dict[str, np.ndarray], meta: Json) -> Training:
        phase = meta.get("phase") if isinstance(meta, dict) else None
        if phase not in PHASES:
            raise UserError(f"{run.path}/checkpoint.safetensors is not a checkpoint.")
        training = self.training(phase)
        try:
            training.restore(arrays, meta)
        except SimulatorError:
            raise
        except (KeyError, ValueError, TypeError, RuntimeError):
            training.close()
            raise UserError(f"{run.path}/checkpoint.safetensors does not fit the run's settings.") from None
        run.drop_events_after(phase, meta["update"], PHASES)
        return training


def _train(start: _Start, say: Say, stack: ExitStack) -> tuple[Training, StopReason, float]:
    """Updates until a stop rule fires; returns the training, the stop reason, and the seconds before a resume."""
    run, training = start.run, stack.enter_context(closing(start.resumed()))
    seconds = sum(event["seconds_collect"] + event["seconds_update"] for event in run.events()) if run else 0.0
    reason = None
    while reason is None:
        event = training.step()
        reason = training.should_stop(event)
        if run:
            run.log(event.to_json())
        say(event)
        if reason is not None and training.phase == BASE:
            training = stack.enter_context(closing(start.training(MAIN, training.ppo.net)))
            reason = None
            due = True
        else:  # no checkpoint at the end: a run killed during the evaluation repeats its last updates
            due = reason is None and training.update % start.config.checkpoint_updates == 0
        if run and due:
            run.save_checkpoint(training.arrays(), training.counters())
    return training, reason, seconds


def _finish(training: Training, reason: StopReason, seconds: float, run: Run[TrainConfig] | None) -> WorkflowResult:
    config = training.config
    sampled = training.evaluate(config.n_eval_episodes, (FINAL,))  # the same games for all workflows of a seed
    greedy = training.evaluate(config.n_eval_episodes, (FINAL,), greedy=True)
    judged = greedy if config.greedy else sampled  # as the policy will be played
    conditioned, obedience, worst = config.conditioned, judged.obedience, judged.worst
    result = WorkflowResult(
        workflow=config.workflow if not config.universal else "universal",
        followed=judged.follows(config.compliance_threshold) if conditioned else None,
        compliance=obedience.compliance if conditioned else None,
        compliance_error=obedience.compliance_error if conditioned else None,
        kept=obedience.kept if conditioned else None, repairs=obedience.repairs, idle_fixes=obedience.idle_fixes,
        mean_return=sampled.mean_return, standard_error=sampled.standard_error,
        updates=training.update, episodes=training.update * config.batch // config.max_steps,
        stop_reason=reason.value, seconds=seconds, run=str(run.path) if run else "",
        greedy_compliance=greedy.obedience.compliance if conditioned else None, greedy_mean_return=greedy.mean_return,
        worst_compliance=worst.compliance if conditioned else None, worst_kept=worst.kept if conditioned else None,
        red_agent=config.red_agent, edition=config.edition, seed=config.seed, backend=config.backend,
        takeover=config.takeover,
        limit=limit_of(
            config.workflow, config.red_agent, config.edition, config.takeover, config.max_steps, training.network
        ),
    )  # fmt: skip
    if run:
        about = PolicyFile(
            training.ppo.net, config.workflow, config.universal, config.red_agent, config.edition, training.ppo.view,
            config.greedy, config.takeover,
        )  # fmt: skip
        about.save(run.path / "policy.safetensors")
        table = {str(w): asdict(cell) for w, cell in judged.by_workflow.items()} if config.universal else None
        run.finish(asdict(result) | {"by_workflow": table})
    return result
