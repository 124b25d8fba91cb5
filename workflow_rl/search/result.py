"""The result of a search: ranking, pair effects and the best defender, as JSON and as tables in the run directory."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.config import SearchConfig, check_jobs
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.env import Backend
from workflow_rl.envs.game import Games
from workflow_rl.runs import Run, write_atomically
from workflow_rl.search.finalists import LENGTHS, Finished, Verdict, settle
from workflow_rl.search.ranking import Evaluated, Posterior, Ranked
from workflow_rl.training.collectors import Stream
from workflow_rl.training.evaluation import FreshGames, evaluate_workflow_policy
from workflow_rl.training.train_task import base_config

SEED_OF_DEFENDER = 43  # purpose: fresh games, for the policy was chosen by its return


@dataclass(frozen=True)
class Done:
    """An evaluation that is over, with the results and directories of its trainings."""

    suggested: dict[str, Any]
    outcome: dict[str, Any]
    evaluated: Evaluated
    results: list[dict[str, Any]]
    paths: list[Path]


def search_result(
    run: Run[SearchConfig],
    posterior: Posterior,
    done: list[Done],
    finished: list[Finished],
    bases: list[dict[str, Any]],
    seconds: float,
) -> dict[str, Any]:
    """Works out the result and writes everything; result.json last.

    Args:
        run: the search's directory.
        posterior: what the process says after them.
        done: all evaluations.
        finished: the finalists, if there was a second stage; then the verdict is theirs.
        bases: results of the general policies that were trained to start from.
        seconds: how long the search took.
    """
    config, threshold = run.config, run.config.train.compliance_threshold
    rows = [_row(place, done) for place in posterior.ranking(threshold)]
    found, verdict = settle(posterior, rows, finished, threshold)
    best = found["best"]
    result = found | {
        "ranking": rows,
        "training_noise": posterior.gp.training_noise,
        "level_error": posterior.level_error,
        "red_agent": config.train.red_agent,
        "edition": config.train.edition,
        "takeover": config.train.takeover,
        "backend": config.train.backend,
        "seed": config.train.seed,
        "evaluations": len(done),
        "replicates": config.replicates,
        "seconds": seconds,
        "transitions": _transitions(config, done, finished, bases),
        "run": str(run.path),
        "defender": _defender(run, best, done, verdict) if best else None,
    }
    run.write_table("ranking.csv", rows)
    run.write_table("suggestions.csv", [_suggestion_row(item) for item in done])
    run.write_table("finalists.csv", result["finalists"])
    run.write_result(result)
    return result


def _row(place: Ranked, done: list[Done]) -> dict[str, Any]:
    own = [item for item in done if item.evaluated.order == place.order]
    reasons = {result["stop_reason"] for item in own for result in item.results}
    return {
        "workflow": ",".join(place.order),
        "mean_return": place.mean,
        "standard_error": place.error,
        **asdict(place.obedience),
        "visits": place.visits,
        "stop_reason": ", ".join(sorted(reasons)),
        "follows": place.follows,
        "behind_best": place.behind,
        "behind_error": place.behind_error,
        "equal_to_best": place.equal,
        "observed_return": float(np.mean([item.evaluated.value for item in own])),
        "episodes": sum(item.outcome["episodes"] for item in own),
    }


def _suggestion_row(item: Done) -> dict[str, Any]:
    names = ("index", "workflow", "visit", "mean", "sigma", "bound", "reason")
    found = {name: item.outcome[name] for name in ("mean_return", "standard_error", "compliance", "kept", "repairs")}
    return {name: item.suggested[name] for name in names} | {f"found_{name}": value for name, value in found.items()}


def _transitions(config: SearchConfig, done: list[Done], finished: list[Finished], bases: list[dict[str, Any]]) -> int:
    """Transitions of all trainings."""
    results = [result for item in done for result in item.results]
    results += [result for one in finished for trained in one.results.values() for result in trained]
    own = sum(int(result["updates"]) for result in results) * config.train.batch
    return own + sum(int(result["updates"]) for result in bases) * base_config(config.train).batch


def _defender(run: Run[SearchConfig], best: str, done: list[Done], verdict: Verdict | None) -> dict[str, Any]:
    """Keeps the best policy of the best workflow that follows it, and evaluates it on games of its own."""
    trainings = [pair for item in done for pair in zip(item.results, item.paths, strict=True)]
    if verdict and verdict.best:
        trainings = list(zip(verdict.best.results[LENGTHS[-1]], verdict.best.paths[LENGTHS[-1]], strict=True))
    own = [(result, path) for result, path in trainings if result["workflow"] == best]
    followed = [pair for pair in own if pair[0]["followed"]]
    path = max(followed or own, key=lambda pair: (pair[0]["mean_return"], str(pair[1])))[1]
    target = run.path / "policy.safetensors"
    train = run.config.train
    games = Games.of(train, load_network())
    fresh = FreshGames(games, train.n_eval_episodes, Stream(train.seed, (SEED_OF_DEFENDER,)))
    cell = evaluate_workflow_policy(path, fresh, Backend(train.backend, train.cyborg_path, check_jobs(None)))
    write_atomically(target, (path / "policy.safetensors").read_bytes())
    return {
        "policy": str(target),
        "training": str(path),
        "mean_return": cell.mean_return,
        "standard_error": cell.standard_error,
        **asdict(cell.obedience),
    }
