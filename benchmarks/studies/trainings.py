"""Trainings for the studies: as `workflow-rl train` runs them, and evaluated along the way."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.config import TrainConfig
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.copies import copy_of
from workflow_rl.envs.game import Games
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.training.collectors import Collector, Conduct, Stream
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.evaluation import Evaluation
from workflow_rl.training.trainer import Training, train_workflow

LOOK, GRADIENT = 62, 63  # purposes of fresh games, for their seeds


def train(place: Path, preset: str, values: dict[str, Any]) -> dict[str, Any]:
    """A training; its policy is kept with the cell."""
    config = make_config(preset, **values)
    with tempfile.TemporaryDirectory() as folder:
        with closing(Run.create(Path(folder) / "run", config, copy_of(load_network()))) as run:
            result = asdict(train_workflow(config, run))
        shutil.move(Path(folder) / "run" / "policy.safetensors", place)
    return result | {"run": "", "transitions": result["updates"] * config.batch, "policy": f"cell:{place.stem}"}


def train_untold(values: dict[str, Any], told: bool) -> dict[str, Any]:
    """A universal training whose policy is conditioned on its order (``told``) or not: then all codes are zero."""
    config = make_config("universal", **values)
    with closing(Training(config, load_network())) as training:
        if not told:
            training.ppo.codes = np.zeros_like(training.ppo.codes)
        began = time.perf_counter()
        for _ in range(config.max_updates):
            training.step()
        seconds = time.perf_counter() - began
        found = training.evaluate(config.n_eval_episodes, (LOOK,))
    followed = sum(cell.obedience.follows(config.compliance_threshold) for cell in found.by_workflow.values())
    figures = {"followed": followed, "worst_compliance": found.worst.compliance, "seconds": seconds}
    return _figures(found) | figures


@dataclass
class Looks:
    """When a training is evaluated: at doubled numbers of transitions, and at 1, 2, 5, 10, ... seconds."""

    transitions: int
    seconds: list[float] = field(default_factory=lambda: [m * 10**k for k in range(5) for m in (1.0, 2.0, 5.0)])

    def due(self, transitions: int, seconds: float) -> bool:
        """Whether the next look is due."""
        return transitions >= self.transitions or seconds >= self.seconds[0]

    def move_on(self, transitions: int, seconds: float) -> None:
        """The next look is the first one after this moment."""
        while self.transitions <= transitions:
            self.transitions *= 2
        while self.seconds[0] <= seconds:
            self.seconds.pop(0)


def watch_training(
    preset: str,
    values: dict[str, Any],
    transitions: int,
    seconds: float,
    first_look: int,
    games: int,
    steady: float = 0.0,
    most_seconds: float = 1e9,
) -> dict[str, Any]:
    """A training that is evaluated along the way, with fresh games at each look (see :class:`Looks`).

    The time of the looks does not count.

    Args:
        preset: the preset of the training.
        values: settings that differ from the preset; the training's own stop rules do not apply.
        transitions: the least number of transitions.
        seconds: the least number of seconds of collecting and learning.
        first_look: transitions until the first look.
        games: games of each look; 0 means no looks, because games take memory.
        steady: if not 0, stop when compliance reached this threshold at two looks in a row.
        most_seconds: the largest number of seconds.
    """
    config, schedule = make_config(preset, **values), Looks(first_look)
    looks: list[dict[str, Any]] = []
    spent = collecting = 0.0
    with closing(Training(config, load_network())) as training:
        while True:
            event = training.step()
            spent += event.seconds_collect + event.seconds_update
            collecting += event.seconds_collect
            made = training.update * config.batch
            over = (made >= transitions and spent >= seconds) or spent >= most_seconds
            if games and (over or schedule.due(made, spent)):
                looks.append({"transitions": made, "seconds": spent} | _figures(training.evaluate(games, (LOOK, made))))
                schedule.move_on(made, spent)
            followed = len(looks) > 1 and all(Obedience.read(look).follows(steady) for look in looks[-2:])
            if over or (steady and followed):
                break
    return {
        "looks": looks, "updates": training.update, "transitions": made, "seconds": spent,
        "seconds_collect": collecting, "peak_memory_mb": peak_memory_mb(),
        "distinct_inputs": event.stats.distinct_inputs, "fast": event.stats.fast,
    }  # fmt: skip


def peak_memory_mb() -> float:
    """Peak memory of this process; ``getrusage`` in a child would start from its parent's peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def _figures(found: Evaluation) -> dict[str, Any]:
    return {
        "mean_return": found.mean_return,
        "standard_error": found.standard_error,
        **asdict(found.obedience),
    }


def gradient_noise(
    values: dict[str, Any], after: list[int], batches: dict[str, list[int]], repeats: int
) -> dict[str, Any]:
    """How much the gradient of one batch varies, for several kinds of batches, at several points of one training.

    Every kind is measured with the *same* policy; each batch has fresh environments. ``noise`` is the root mean squared
    distance to the true gradient, divided by the norm of the true gradient, which is the mean of the largest batches;
    ``cosine`` is the mean cosine of the angle between the two.

    Args:
        values: settings of a training with the preset parallel-200.
        after: the numbers of updates after which gradients are measured.
        batches: environments and steps of a batch, by the name of its kind.
        repeats: batches of each kind.
    """
    config = make_config("parallel-200", **values)
    found: dict[str, Any] = {}
    with closing(Training(config, load_network())) as training:
        for update in range(1, max(after) + 1):
            training.step()
            if update in after:
                sets = {
                    name: _gradients(training, n_envs, steps, repeats, update)
                    for name, (n_envs, steps) in batches.items()
                }
                largest = max(batches, key=lambda name: batches[name][0] * batches[name][1])
                found[str(update)] = {name: _noise(rows, sets[largest]) for name, rows in sets.items()}
    return found


def _gradients(training: Training, n_envs: int, steps: int, repeats: int, update: int) -> np.ndarray:
    """Gradients of ``repeats`` batches, (repeats, n_weights)."""
    config: TrainConfig = training.config
    scale, rows = training.ppo.scale.copy(), []
    for repeat in range(repeats):
        purpose = (GRADIENT, update, n_envs, steps, repeat)
        conduct = Conduct(training.workflows, config.alignment_lambda)
        collector = Collector(Games.of(config, training.network), n_envs, steps, conduct, Stream(config.seed, purpose))
        rows.append(training.ppo.gradient(collector.collect(training.ppo), collector.last_keys()))
        training.ppo.scale[:] = scale  # each batch meets the same learner
    return np.stack(rows)


def _noise(rows: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Distance of gradients to the mean of the reference ones; a batch is never compared with a mean it is part of."""
    total, n = reference.sum(axis=0), len(reference)
    same = rows is reference
    squares, cosines = [], []
    for row in rows:
        true = (total - row) / (n - 1) if same else total / n
        squares.append(float(((row - true) ** 2).sum() / (true**2).sum()))
        cosines.append(float(row @ true / np.sqrt((row**2).sum() * (true**2).sum())))
    return {"noise": float(np.sqrt(np.mean(squares))), "cosine": float(np.mean(cosines))}
