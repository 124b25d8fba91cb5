"""Everything that a report shows, worked out anew from a run's raw files; also from one that was cut short."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.config import SEARCH_FIELDS, TASK_FIELDS, TrainConfig, make_config
from workflow_rl.errors import UserError
from workflow_rl.ranking import Evaluated, Posterior
from workflow_rl.run_store import SEARCH, read_about, read_result
from workflow_rl.runs_command import describe
from workflow_rl.workflow import all_workflows, unit_types

CURVES = ("return", "compliance", "entropy")
_VIOLATION = re.compile(r"(\w+) instead of (\w+): (\d+)")


def report_data(path: Path) -> dict[str, Any]:
    """What there is to know about a run: a search with its trainings, or one training.

    Numbers come from the events and the results of the trainings, not from the run's own summary.
    """
    about = read_about(path)
    events, damaged = read_lines(path / "events.jsonl")
    data: dict[str, Any] = {
        "run": str(path),
        "kind": about["kind"],
        "state": describe(path)["state"],
        "config": about["config"],
        "versions": about.get("versions", {}),
        "commit": about.get("commit", "unknown"),
        "damaged_lines": damaged,
        "command": command_of(about["kind"], about["config"]),
    }
    if about["kind"] == SEARCH:
        data |= _search(path, about["config"], events)
    else:
        data |= {"trainings": [_training(path, "this training")], "train": about["config"]}
    data["damaged_lines"] += sum(one["damaged_lines"] for one in data["trainings"] if about["kind"] == SEARCH)
    trainings = data["trainings"]
    data["violations"] = _violations(trainings)
    data["time"] = _time(trainings, data["train"])
    return data


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The events that can be read, and how many lines cannot."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return [], 0
    events, damaged = [], 0
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            event = None
        if isinstance(event, dict):
            events.append(event)
        else:
            damaged += 1
    return events, damaged


def _search(path: Path, config: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    replicates, threshold = config["replicates"], config["train"]["compliance_threshold"]
    suggestions = {e["index"]: e for e in events if e.get("kind") == "suggestion" and "index" in e}
    names = {folder.name for folder in (path / "trainings").glob("[0-9]*-[0-9]*")}
    trainings = [_training(path / "trainings" / name, name) for name in sorted(names)]
    results = {one["name"]: one["result"] for one in trainings}
    evaluations = []
    for index in sorted(suggestions):
        own = [results.get(f"{index:03d}-{replicate}") for replicate in range(replicates)]
        if all(own):
            evaluations.append(_evaluation(suggestions[index], [one for one in own if one]))
    found = _found(evaluations, threshold) if evaluations else {"ranking": [], "predictions": [], "pairs": []}
    return found | {
        "train": config["train"],
        "threshold": threshold,
        "asked_for": config["n_workflows"],
        "evaluations": evaluations,
        "under_way": [suggestions[index]["workflow"] for index in sorted(suggestions)][len(evaluations) :],
        "trainings": trainings,
    }


def _evaluation(suggestion: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    returns, errors = [r["mean_return"] for r in results], [r["standard_error"] for r in results]
    found = Evaluated(tuple(suggestion["workflow"].split(",")), tuple(returns), tuple(errors), 0.0)
    return {
        **{name: suggestion.get(name) for name in ("index", "workflow", "visit", "mean", "sigma", "bound", "reason")},
        "returns": returns,
        "errors": errors,
        "mean_return": found.value,
        "standard_error": found.standard_error,
        "compliance": float(np.mean([r["compliance"] for r in results])),
        "counted_fixes": float(np.mean([r["counted_fixes"] for r in results])),
        "episodes": sum(r["episodes"] for r in results),
        "stop_reason": ", ".join(sorted({r["stop_reason"] for r in results})),
    }


def _found(evaluations: list[dict[str, Any]], threshold: float) -> dict[str, Any]:
    """Ranking, predictions for all workflows, and pairs, from the evaluations alone."""
    evaluated = [
        Evaluated(tuple(e["workflow"].split(",")), tuple(e["returns"]), tuple(e["errors"]), e["compliance"])
        for e in evaluations
    ]
    posterior = Posterior(unit_types(), evaluated)
    ranking = posterior.ranking(threshold)
    orders = [workflow.order for workflow in all_workflows()]
    means, sigmas = posterior.gp.predict(orders)
    plane = order_plane(means)
    rows = [
        {
            "workflow": ",".join(place.order),
            "mean_return": place.mean,
            "standard_error": place.error,
            "compliance": place.compliance,
            "visits": place.visits,
            "follows": place.follows,
            "behind_best": place.behind,
            "behind_error": place.behind_error,
            "equal_to_best": place.equal,
            "observed_return": float(np.mean([e.value for e in evaluated if e.order == place.order])),
        }
        for place in ranking
    ]
    return {
        "ranking": rows,
        "predictions": [
            {"workflow": ",".join(order), "mean": float(mean), "sigma": float(sigma), "x": float(x), "y": float(y)}
            for order, mean, sigma, (x, y) in zip(orders, means, sigmas, plane, strict=True)
        ],
        "pairs": [asdict(pair) for pair in posterior.pair_effects()],
        "training_noise": posterior.gp.training_noise,
        "level_error": posterior.level_error,
        "quantile": posterior.quantile(),  # errors that make a 95 % interval: Student's, for few replicates
    }


def _training(path: Path, name: str) -> dict[str, Any]:
    """Curves and result of one training."""
    events, damaged = read_lines(path / "events.jsonl")
    try:
        result = read_result(path)
    except UserError:
        result, damaged = None, damaged + 1
    updates = [event for event in events if event.get("phase") == "main" and "update" in event]
    config = _config_of(path)
    return {
        "name": name,
        "workflow": config.get("workflow", ""),
        "updates": [event["update"] for event in updates],
        "curves": {curve: [event.get(curve) for event in updates] for curve in CURVES},
        "violations": [event.get("violations_by_pair", "") for event in updates],
        "seconds_collect": sum(event.get("seconds_collect", 0.0) for event in events),
        "seconds_update": sum(event.get("seconds_update", 0.0) for event in events),
        "n_updates": len(updates),
        "result": result,
        "damaged_lines": damaged,
    }


def _config_of(path: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = read_about(path)["config"]
    except UserError:
        return {}
    return config


def _violations(trainings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What was repaired instead of what, summed over all batches; rows: repaired, columns: due."""
    types = unit_types()
    counts = np.zeros((len(types), len(types)), int)
    for training in trainings:
        for text in training["violations"]:
            for repaired, due, number in _VIOLATION.findall(text or ""):
                if repaired in types and due in types:
                    counts[types.index(repaired), types.index(due)] += int(number)
    return {"unit_types": list(types), "counts": counts.tolist()}


def _time(trainings: Sequence[dict[str, Any]], train: dict[str, Any]) -> dict[str, float]:
    """Seconds of the trainings by phase, and their transitions."""
    collect, update = (sum(one[name] for one in trainings) for name in ("seconds_collect", "seconds_update"))
    transitions = sum(one["n_updates"] for one in trainings) * train["n_envs"] * train["update_steps"]
    busy = collect + update
    return {
        "collect": collect,
        "update": update,
        "transitions": float(transitions),
        "transitions_per_s": transitions / busy if busy else 0.0,
    }


def order_plane(expected: np.ndarray) -> np.ndarray:
    """All workflows in the plane, (120, 2), by classical scaling of their Kendall distances.

    Scaling finds n_types - 1 axes of equal weight, so any plane in them is as good. This one has the direction in which
    the expected return (120,) grows to the right, and that of an early ``defender`` upwards: no luck is in it.
    """
    types = unit_types()
    orders = [workflow.order for workflow in all_workflows()]
    pairs = list(combinations(types, 2))
    signs = np.array([[1 if order.index(a) < order.index(b) else -1 for a, b in pairs] for order in orders], float)
    distance = (len(pairs) - signs @ signs.T) / 2
    n = len(orders)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ distance @ centre)
    space = vectors[:, 1 - len(types) :] * np.sqrt(values[1 - len(types) :])
    early = np.array([-order.index(types[0]) for order in orders], float)
    late = np.array([order.index(types[-1]) for order in orders], float)
    right = _direction(space, expected) if np.ptp(expected) > 1e-9 else _direction(space, late)
    up = _direction(space, early)
    up = up - (up @ right) * right
    if np.linalg.norm(up) < 1e-6:
        up = _direction(space, late) - (_direction(space, late) @ right) * right
    plane: np.ndarray = space @ np.stack([right, up / np.linalg.norm(up)], axis=1)
    return plane


def _direction(space: np.ndarray, quantity: np.ndarray) -> np.ndarray:
    """The unit vector along which a quantity grows most."""
    slope = np.linalg.lstsq(space, quantity - quantity.mean(), rcond=None)[0]
    unit: np.ndarray = slope / np.linalg.norm(slope)
    return unit


def command_of(kind: str, config: dict[str, Any]) -> str:
    """The command that makes such a run: the settings that differ from the defaults."""
    train = dict(config.get("train", config))
    task = {name: train[name] for name in ("workflow", "universal", "red_agent") if train.get(name)}
    usual = asdict(make_config("workflow" if kind == SEARCH else "", **({} if kind == SEARCH else task)))
    if kind == SEARCH:
        usual = asdict(make_config("workflow", red_agent=train["red_agent"]))
    words = [f"workflow-rl {'search' if kind == SEARCH else 'train'}"]
    own = {item.name: item.default for item in SEARCH_FIELDS} if kind == SEARCH else {}
    for name, value in {**{name: config[name] for name in own}, **train}.items():
        default = own.get(name, usual.get(name))
        if name == "red_agent":
            default = TrainConfig.red_agent
        if name in TASK_FIELDS and kind != SEARCH:
            default = {"workflow": "", "universal": False}[name]
        if value != default and name in {*own, *(item.name for item in fields(TrainConfig))}:
            option = name.replace("_", "-")
            words.append(
                f"--{option} {value}" if not isinstance(value, bool) else f"--{'' if value else 'no-'}{option}"
            )
    return " ".join(words)
