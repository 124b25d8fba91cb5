"""Everything that a report shows, worked out anew from a run's raw files; also from one that was cut short."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.config import SEARCH_FIELDS, TrainConfig, config_to_json
from workflow_rl.errors import UserError
from workflow_rl.presets import TASK_FIELDS, make_config, make_search_config
from workflow_rl.report.listing import state_of
from workflow_rl.runs import (
    SEARCH,
    TRAINING,
    checked_result,
    is_number,
    missing_events,
    parse_json,
    read_about,
    read_config,
    read_search_config,
)
from workflow_rl.search.finalists import LENGTHS, Finalist, Finished, finalists_in, settle
from workflow_rl.search.ranking import Evaluated, Posterior
from workflow_rl.training.compliance import Obedience
from workflow_rl.training.workflow import Workflow, all_workflows, unit_types

RunData = dict[str, Any]
CURVES = ("return", "compliance", "entropy")
TIMES = ("seconds_collect", "seconds_update", "transitions_per_s")
_VIOLATION = re.compile(r"(\w+) instead of (\w+): (\d+)")


def report_data(path: Path) -> dict[str, Any]:
    """What there is to know about a run: a search with its trainings, or one training.

    Numbers come from the events and the results of the trainings, not from the run's own summary. What is damaged is
    left out and counted.
    """
    about = read_about(path)
    search = about["kind"] == SEARCH
    config = config_to_json(read_search_config(path) if search else read_config(path))
    result, damage = _result(path, about["kind"])
    events, lines = read_lines(path / "events.jsonl")
    missing = "" if lines else missing_events(about["kind"], result, events)  # damaged lines are counted instead
    data: dict[str, Any] = {
        "run": str(path),
        "kind": about["kind"],
        "state": "damaged" if damage else state_of(path, result),
        "config": config,
        "train": config["train"] if search else config,
        "versions": about["versions"] if isinstance(about.get("versions"), dict) else {},
        "commit": about.get("commit", "unknown"),
        "command": command_of(about["kind"], config),
        "problem": damage or missing,
    }
    if search:
        data |= _search(path, config, events)
        data["problem"] = f"{data['problem']} {_contradiction(data, result)}".strip()
    else:
        data |= {"trainings": [_training(path, "this training")], "bases": []}
        lines = 0  # counted with the training
    trainings = [*data["trainings"], *data["bases"], *data.get("finals", [])]
    data["damaged_lines"] = lines + sum(one["damaged_lines"] + (search and bool(one["damage"])) for one in trainings)
    data["violations"] = _violations(data["trainings"])
    data["time"] = _time(trainings)
    return data


def _contradiction(data: dict[str, Any], result: dict[str, Any] | None) -> str:
    """Where the summary of a finished search says something else than the files of its trainings."""
    if result is None:
        return ""
    wanted, found = result.get("evaluations"), len(data["evaluations"])
    if is_number(wanted) and found < wanted:
        return f"Only {found} of {wanted} evaluations can be used: files of the other trainings are missing or damaged."
    if result.get("finalists") and not data["finalists"]:
        return "The finalists cannot be used: files of their trainings are missing or damaged."
    if result.get("best") != data["best"]:
        return f"result.json names {result.get('best')} as best; the files of the trainings say {data['best']}."
    return ""


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The events that can be read, and how many lines cannot."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return [], 0
    events, damaged = [], 0
    for line in lines:
        try:
            event = parse_json(line)
        except ValueError:
            event = None
        if isinstance(event, dict):
            events.append(event)
        else:
            damaged += 1
    return events, damaged


def _result(path: Path, kind: str) -> tuple[dict[str, Any] | None, str]:
    """The result of a run, None if there is none or it cannot be used; and why not, in the latter case."""
    try:
        return checked_result(path, kind), ""
    except UserError as error:
        return None, str(error)


def _number(event: dict[str, Any], name: str) -> float | None:
    value = event.get(name)
    return value if is_number(value) else None


def _search(path: Path, config: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    replicates, threshold = config["replicates"], config["train"]["compliance_threshold"]
    trainings = [
        _training(folder, folder.name) for folder in sorted((path / "trainings").glob("[0-9][0-9][0-9]*-[0-9]*"))
    ]
    by_name = {one["name"]: one for one in trainings}
    suggestions = {event["index"]: event for event in events if _is_suggestion(event)}
    evaluations = []
    for index in sorted({int(name.split("-")[0]) for name in by_name if re.fullmatch(r"\d{3,}-\d+", name)}):
        own = [by_name.get(f"{index:03d}-{replicate}") for replicate in range(replicates)]
        results = [one["result"] for one in own if one and one["result"]]
        if len(results) == replicates and len({result["workflow"] for result in results}) == 1:
            workflow = results[0]["workflow"]
            known = suggestions.get(index, {})
            evaluations.append(
                _evaluation(index, workflow, known if known.get("workflow") == workflow else {}, results)
            )
    finals = [_training(folder, f"final {folder.name}") for folder in sorted((path / "finals").glob("[0-9]*-[0-9]*-*"))]
    nothing: dict[str, Any] = {"ranking": [], "predictions": [], "pairs": [], "finalists": [], "best": None}
    chosen = finalists_in(events)
    found = _found(evaluations, _finished(chosen, finals, replicates), threshold) if evaluations else nothing
    return found | {
        "finals": finals,
        "threshold": threshold,
        "asked_for": config["n_workflows"],
        "evaluations": evaluations,
        "trainings": trainings,
        "bases": [_training(folder, f"base {folder.name}") for folder in sorted((path / "bases").glob("[0-9]*"))],
    }


def _is_suggestion(event: dict[str, Any]) -> bool:
    """Is it a whole suggestion: expectation, deviation and bound all there, or none of them?"""
    figures = [event.get(name) for name in ("mean", "sigma", "bound")]
    whole = all(map(is_number, figures)) or figures == [None] * 3
    return event.get("kind") == "suggestion" and isinstance(event.get("index"), int) and whole


def _evaluation(index: int, workflow: str, suggestion: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    returns, errors = [r["mean_return"] for r in results], [r["standard_error"] for r in results]
    obedience = Obedience.pool([Obedience.read(r) for r in results])
    found = Evaluated(Workflow.parse(workflow).order, tuple(returns), tuple(errors), obedience)
    return {
        "index": index,
        "workflow": workflow,
        **{name: suggestion.get(name) for name in ("mean", "sigma", "bound")},
        "reason": suggestion.get("reason", "unknown: its line is damaged"),
        "returns": returns,
        "errors": errors,
        "mean_return": found.value,
        "standard_error": found.standard_error,
        **asdict(obedience),
        "episodes": sum(r["episodes"] for r in results),
        "stop_reason": ", ".join(sorted({r["stop_reason"] for r in results})),
    }


def _found(evaluations: list[dict[str, Any]], finished: list[Finished], threshold: float) -> dict[str, Any]:
    """Ranking, predictions for all workflows, finalists and pairs, from the trainings alone."""
    evaluated = [
        Evaluated(tuple(e["workflow"].split(",")), tuple(e["returns"]), tuple(e["errors"]), Obedience.read(e))
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
            **asdict(place.obedience),
            "visits": place.visits,
            "follows": place.follows,
            "behind_best": place.behind,
            "behind_error": place.behind_error,
            "equal_to_best": place.equal,
            "observed_return": float(np.mean([e.value for e in evaluated if e.order == place.order])),
        }
        for place in ranking
    ]
    settled, _ = settle(posterior, rows, finished, threshold)
    return {
        "best": settled["best"],
        "equal_to_best": settled["equal_to_best"],
        "finalists": settled["finalists"],
        "ranking": rows,
        "predictions": [
            {"workflow": ",".join(order), "mean": float(mean), "sigma": float(sigma), "x": float(x), "y": float(y)}
            for order, mean, sigma, (x, y) in zip(orders, means, sigmas, plane, strict=True)
        ],
        "pairs": settled["pair_weights"],
        "training_noise": posterior.gp.training_noise,
        "level_error": posterior.level_error,
        "quantile": posterior.quantile(),  # errors that make a 95 % interval: Student's, for few replicates
    }


def _finished(chosen: list[Finalist], finals: list[dict[str, Any]], replicates: int) -> list[Finished]:
    """The finalists with their trainings; none unless all are there."""
    by_name = {one["name"]: one["result"] for one in finals if one["result"]}
    names = {(k, n): [f"final {k}-{r}-{n}" for r in range(replicates)] for k in range(len(chosen)) for n in LENGTHS}
    if not all(name in by_name for own in names.values() for name in own):
        return []
    if any(by_name[name]["workflow"] != ",".join(chosen[k].order) for (k, _), own in names.items() for name in own):
        return []
    results = {place: [by_name[name] for name in own] for place, own in names.items()}
    return [Finished(one, {n: results[k, n] for n in LENGTHS}, {}) for k, one in enumerate(chosen)]


def _training(path: Path, name: str) -> dict[str, Any]:
    """Curves and result of one training."""
    events, lines = read_lines(path / "events.jsonl")
    result, damage = _result(path, TRAINING)
    timed = [event for event in events if all(_number(event, name) is not None for name in TIMES)]
    updates = [event for event in events if event.get("phase") == "main" and _number(event, "update") is not None]
    config = _config_of(path)
    judged = bool(config.get("workflow") or config.get("universal"))
    texts = [event.get("violations_by_pair") for event in updates]
    return {
        "name": name,
        "workflow": config.get("workflow", ""),
        "updates": [event["update"] for event in updates],
        "curves": {curve: [_number(event, curve) for event in updates] for curve in CURVES},
        "violations": [text for text in texts if isinstance(text, str)] if judged else [],
        "judged": judged,
        "seconds_collect": sum(event["seconds_collect"] for event in timed),
        "seconds_update": sum(event["seconds_update"] for event in timed),
        "transitions": sum(
            round(event["transitions_per_s"] * (event["seconds_collect"] + event["seconds_update"])) for event in timed
        ),
        "result": result,
        "damaged_lines": lines,
        "damage": damage,
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
    for text in (text for training in trainings for text in training["violations"]):
        for repaired, due, number in _VIOLATION.findall(text):
            if repaired in types and due in types:
                counts[types.index(repaired), types.index(due)] += int(number)
    return {"unit_types": list(types), "counts": counts.tolist(), "judged": any(one["judged"] for one in trainings)}


def _time(trainings: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Seconds of the trainings by phase, and their transitions; general policies to start from included."""
    collect, update, transitions = (
        sum(one[name] for one in trainings) for name in ("seconds_collect", "seconds_update", "transitions")
    )
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
    """The command that makes such a run: the settings that differ from those it would have without them."""
    train = config["train"] if kind == SEARCH else config
    task = {name: train[name] for name in ("red_agent", "takeover", "backend")}
    if kind != SEARCH:
        task |= {name: train[name] for name in TASK_FIELDS}
    usual = asdict(make_config("search" if kind == SEARCH else "", **task)) | {"red_agent": TrainConfig.red_agent}
    usual |= {"backend": TrainConfig.backend, "takeover": TrainConfig.takeover, "workflow": "", "universal": False}
    plain = make_search_config(**task) if kind == SEARCH else None
    own = {item.name: getattr(plain, item.name) for item in SEARCH_FIELDS} if plain else {}
    given = {name: config[name] for name in own} | {name: train[name] for name in usual}
    words = [f"workflow-rl {'search' if kind == SEARCH else 'train'}"]
    for name, value in given.items():
        if value != (own | usual)[name] and not (kind == SEARCH and name in TASK_FIELDS):
            option = name.replace("_", "-")
            flag = f"--{'' if value else 'no-'}{option}"
            words.append(flag if isinstance(value, bool) else f"--{option} {shlex.quote(str(value))}")
    return " ".join(words)
