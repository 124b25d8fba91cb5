"""Trainings for the studies: as `workflow-rl train` makes them, by stable-baselines3, and looked at on their way."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.studies.games import play_games
from workflow_rl.config import TrainConfig
from workflow_rl.engine.network import RED_AGENTS
from workflow_rl.envs.env import CageVectorEnv
from workflow_rl.envs.game import Games
from workflow_rl.envs.views import PLAIN, unpack_words
from workflow_rl.presets import make_config
from workflow_rl.runs import Run
from workflow_rl.training.collectors import Collector, Conduct, Stream
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.evaluation import Evaluation
from workflow_rl.training.trainer import MAIN, Training, train_workflow

LOOK, GRADIENT = 62, 63  # purposes of fresh games, for their seeds


def train(place: Path, preset: str, values: dict[str, Any]) -> dict[str, Any]:
    """A training; its policy is kept beside the cell."""
    config = make_config(preset, **values)
    with tempfile.TemporaryDirectory() as folder:
        with closing(Run.create(Path(folder) / "run", config)) as run:
            result = asdict(train_workflow(config, run))
        shutil.move(Path(folder) / "run" / "policy.safetensors", place)
    return result | {"run": "", "transitions": result["updates"] * config.batch, "policy": f"cell:{place.stem}"}


def train_sb3(
    place: Path,  # noqa: ARG001
    red: str,
    seed: int,
    transitions: int,
    settings: dict[str, Any],
    games: int,
    games_seed: int,
) -> dict[str, Any]:
    """General PPO by stable-baselines3 on the same environments, and its games."""
    from stable_baselines3 import PPO

    from workflow_rl.envs.sb3_env import CageSB3VecEnv

    values = dict(settings)
    envs = CageSB3VecEnv(CageVectorEnv(values.pop("n_envs"), red_agent=red))
    net = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "activation_fn": torch.nn.Tanh}
    model = PPO("MlpPolicy", envs, device="cpu", policy_kwargs=net, seed=seed, **values)
    began = time.perf_counter()
    model.learn(total_timesteps=transitions)
    seconds = time.perf_counter() - began

    def act(packed: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        with torch.no_grad():
            seen = torch.from_numpy(unpack_words(packed[:, None], PLAIN))
            chosen: Any = model.policy.get_distribution(seen).distribution
            chances = chosen.probs.numpy().cumsum(axis=1)
        drawn: np.ndarray = (chances <= generator.random(len(packed))[:, None] * chances[:, -1:]).sum(axis=1)
        return drawn

    reds = {other: play_games(act, other, "current", (30, 50, 100), games, games_seed) for other in RED_AGENTS}
    return {"games": reds, "seconds": seconds, "transitions": int(model.num_timesteps)}


def train_untold(place: Path, values: dict[str, Any], told: bool) -> dict[str, Any]:  # noqa: ARG001
    """A universal training whose policy is told its order, or is not: then all codes are zero."""
    config = make_config("universal", **values)
    with closing(Training(config, MAIN, None)) as training:
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


def watch_training(
    place: Path,  # noqa: ARG001
    preset: str,
    values: dict[str, Any],
    transitions: int,
    seconds: float,
    first_look: int,
    games: int,
    steady: float = 0.0,
    most_seconds: float = 1e9,
) -> dict[str, Any]:
    """A training that is looked at on its way, by fresh games, until so many transitions *and* seconds are over.

    Looks come at ``first_look`` transitions, twice as many, and so on, and at 1, 2, 5, 10, ... seconds; their own time
    does not count.

    Args:
        place: of the cell.
        preset: and
        values: of the training, whose own stop rules are not asked.
        transitions: at least so many.
        seconds: of collecting and learning, at least so many.
        first_look: in transitions.
        games: of each look; 0: none, for games take memory.
        steady: stop when the order was followed by this threshold at two looks in a row, if not 0.
        most_seconds: stop then in any case.
    """
    config = make_config(preset, **values)
    looks: list[dict[str, Any]] = []
    spent = collecting = 0.0
    next_look, marks = first_look, [m * 10**k for k in range(5) for m in (1.0, 2.0, 5.0)]
    with closing(Training(config, MAIN, None)) as training:
        while True:
            event = training.step()
            spent += event.seconds_collect + event.seconds_update
            collecting += event.seconds_collect
            made = training.update * config.batch
            over = (made >= transitions and spent >= seconds) or spent >= most_seconds
            if over and not games:
                break
            if games and (made >= next_look or spent >= marks[0] or over):
                look = {"transitions": made, "seconds": spent} | _figures(training.evaluate(games, (LOOK, made)))
                looks.append(look)
                while next_look <= made:
                    next_look *= 2
                while marks[0] <= spent:
                    marks.pop(0)
                followed = len(looks) > 1 and all(Obedience.read(one).follows(steady) for one in looks[-2:])
                if over or (steady and followed):
                    break
    return {
        "looks": looks, "updates": training.update, "transitions": made, "seconds": spent,
        "seconds_collect": collecting, "peak_memory_mb": peak_memory_mb(),
        "distinct_inputs": event.stats.distinct_inputs, "fast": event.stats.fast,
    }  # fmt: skip


def peak_memory_mb() -> float:
    """The most that this process has held; what ``getrusage`` says of a child starts with its parent's figure."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def _figures(found: Evaluation) -> dict[str, Any]:
    return {
        "mean_return": found.mean_return,
        "standard_error": found.standard_error,
        **asdict(found.obedience),
    }


def gradient_noise(
    place: Path,  # noqa: ARG001
    values: dict[str, Any],
    after: list[int],
    batches: dict[str, list[int]],
    repeats: int,
) -> dict[str, Any]:
    """How much the gradient of one batch varies, for batches of several kinds, at points of one training.

    Every kind is measured with the *same* policy; each batch has fresh environments. ``noise`` is the root of the mean
    squared distance to the true gradient, over the length of the true one, which is taken from the largest batches;
    ``cosine`` the mean cosine of the angle between the two.

    Args:
        place: of the cell.
        values: of a training with the preset parallel-200.
        after: updates after which the policy is held.
        batches: by name, environments and steps of a batch.
        repeats: batches of each kind.
    """
    config = make_config("parallel-200", **values)
    found: dict[str, Any] = {}
    with closing(Training(config, MAIN, None)) as training:
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
