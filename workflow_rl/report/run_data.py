"""Everything that a report shows, recomputed from a run's raw files; also from those of an interrupted run."""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from workflow_rl.config import SearchConfig, TrainConfig
from workflow_rl.engine.network import Network
from workflow_rl.errors import UserError
from workflow_rl.report.listing import checked_result, missing_events, state_of
from workflow_rl.report.run_types import CURVES, Prediction, RunData, TrainingData
from workflow_rl.runs import SEARCH, TRAINING, is_number, read_about, read_config, read_search_config, scan_events
from workflow_rl.search.finalists import LENGTHS, Finalist, Finished, finalists_in, findings
from workflow_rl.search.findings import Findings, SearchResult, row_from_json
from workflow_rl.search.outcome import DAMAGED, SUGGESTION, WorkflowEvaluation
from workflow_rl.search.ranking import Posterior
from workflow_rl.search.strategies import Suggestion
from workflow_rl.training.compliance import violations_from_text
from workflow_rl.training.events import WorkflowResult
from workflow_rl.training.workflow import Workflow

TIMES = ("seconds_collect", "seconds_update", "transitions_per_s")
MOST_PREDICTED = 720  # workflows, those of six unit types: a page and its map have room for no more
NO_FINDINGS = Findings(None, [], [], [], [], 0.0, None)


def report_data(path: Path, network: Network) -> RunData:
    """The data of a run on a network: a search with its trainings, or one training.

    Numbers come from the events and the results of the trainings, not from the run's own summary. Damaged parts are
    left out and counted.
    """
    about = read_about(path)
    config: SearchConfig | TrainConfig = read_search_config(path) if about["kind"] == SEARCH else read_config(path)
    result, damage = _result(path, about["kind"])
    events, lines, _ = scan_events(path)
    missing = "" if lines else missing_events(about["kind"], result, events)  # damaged lines are counted instead
    data = RunData(
        **vars(NO_FINDINGS), run=str(path), kind=about["kind"], config=config,
        state="damaged" if damage else state_of(path, result is not None),
        versions=about["versions"] if isinstance(about.get("versions"), dict) else {},
        commit=about.get("commit", "unknown"), problem=damage or missing, trainings=[],
        network=network,
    )  # fmt: skip
    if isinstance(config, TrainConfig):
        training = _training(path, "this training", network.unit_types)
        return replace(data, trainings=[training], damaged_lines=training.damaged_lines)
    data = _with_search(data, config, path, _suggestions(events, network), finalists_in(events, network))
    every = [*data.trainings, *data.bases, *data.finals]
    damaged = len(lines) + sum(one.damaged_lines + bool(one.damage) for one in every)
    wrong = _contradiction(data, SearchResult.from_json(result)) if result else ""
    return replace(data, problem=f"{data.problem} {wrong}".strip(), damaged_lines=damaged)


def _contradiction(data: RunData, result: SearchResult) -> str:
    """Where the summary of a finished search says something else than the files of its trainings."""
    wanted, found = result.evaluations, len(data.evaluations)
    if is_number(wanted) and found < wanted:
        return f"Only {found} of {wanted} evaluations can be used: files of the other trainings are missing or damaged."
    if result.finalists and not data.finalists:
        return "The finalists cannot be used: files of their trainings are missing or damaged."
    if result.best != data.best:
        return f"result.json names {result.best} as best; the files of the trainings say {data.best}."
    return ""


def _result(path: Path, kind: str) -> tuple[dict[str, Any] | None, str]:
    """The result of a run, None if there is none or it cannot be used; and the reason in the latter case."""
    try:
        return checked_result(path, kind), ""
    except UserError as error:
        return None, str(error)


def _with_search(
    data: RunData, config: SearchConfig, path: Path, suggestions: dict[int, Suggestion], chosen: list[Finalist]
) -> RunData:
    """The data with everything that only a search has."""
    types = data.unit_types
    data = replace(
        data,
        trainings=[
            _training(one, one.name, types) for one in sorted((path / "trainings").glob("[0-9][0-9][0-9]*-[0-9]*"))
        ],
        bases=[_training(one, f"base {one.name}", types) for one in sorted((path / "bases").glob("[0-9]*"))],
        finals=[
            _training(one, f"final {one.name}", types) for one in sorted((path / "finals").glob("[0-9]*-[0-9]*-*"))
        ],
    )
    evaluations = _evaluations(data.trainings, config.replicates, suggestions, data.network)
    if not evaluations:
        return data
    posterior = Posterior(types, [one.evaluated() for one in evaluations])
    finished = _finished(data.finals, config.replicates, chosen)
    found, _ = findings(posterior, evaluations, finished, config.train.compliance_threshold)
    return replace(
        data, **vars(found), evaluations=[one.row() for one in evaluations], predictions=_predictions(posterior),
        quantile=posterior.quantile(),
    )  # fmt: skip


def _suggestions(events: list[dict[str, Any]], network: Network) -> dict[int, Suggestion]:
    """The suggestions in the log that can be read, by number."""
    suggestions = {}
    for event in events:
        if event.get("kind") == SUGGESTION:
            with contextlib.suppress(*DAMAGED):
                known = WorkflowEvaluation.from_json(event, network)
                suggestions[known.index] = known.suggestion
    return suggestions


def _evaluations(
    trainings: list[TrainingData], replicates: int, suggestions: dict[int, Suggestion], network: Network
) -> list[WorkflowEvaluation]:
    """The evaluations whose trainings are all there; without its suggestion only the prediction is unknown."""
    results = {one.name: one.result for one in trainings if one.result and re.fullmatch(r"\d{3,}-\d+", one.name)}
    evaluations, visits = [], Counter[str]()
    for index in sorted({int(name.split("-")[0]) for name in results}):
        names = [f"{index:03d}-{replicate}" for replicate in range(replicates)]
        own = {replicate: results[name] for replicate, name in enumerate(names) if name in results}
        workflows = {result.workflow for result in own.values()}
        if len(own) == replicates and len(workflows) == 1:
            (workflow,) = workflows
            order = Workflow.parse(workflow, network).order
            suggestion = Suggestion(order, "unknown: its line is damaged")
            if index in suggestions and suggestions[index].order == suggestion.order:
                suggestion = suggestions[index]
            evaluations.append(WorkflowEvaluation(index, suggestion, visits[workflow], own))
            visits[workflow] += 1
    return evaluations


def _finished(finals: list[TrainingData], replicates: int, chosen: list[Finalist]) -> list[Finished]:
    """The finalists with their trainings; none unless all are there."""
    results = {one.name: one.result for one in finals if one.result}
    finished = []
    for k, finalist in enumerate(chosen):
        names = {n: [f"final {k}-{r}-{n}" for r in range(replicates)] for n in LENGTHS}
        if not results.keys() >= {name for each in names.values() for name in each}:
            return []
        own = Finished(finalist, {n: [results[name] for name in each] for n, each in names.items()})
        if any(result.workflow != own.workflow for each in own.results.values() for result in each):
            return []
        finished.append(own)
    return finished


def _training(path: Path, name: str, types: tuple[str, ...]) -> TrainingData:
    """Curves and result of one training."""
    events, lines, _ = scan_events(path)
    result, damage = _result(path, TRAINING)
    timed = [event for event in events if all(is_number(event.get(time)) for time in TIMES)]
    updates = [event for event in events if event.get("phase") == "main" and is_number(event.get("update"))]
    config = {}
    with contextlib.suppress(UserError):
        config = read_about(path)["config"]
    judged = bool(config.get("workflow") or config.get("universal"))
    return TrainingData(
        name=name,
        workflow=config.get("workflow", ""),
        updates=[event["update"] for event in updates],
        curves={curve: [_number(event.get(curve)) for event in updates] for curve in CURVES},
        violations=violations_from_text([str(e.get("violations_by_pair")) for e in updates if judged], types),
        judged=judged,
        seconds_collect=sum(event["seconds_collect"] for event in timed),
        seconds_update=sum(event["seconds_update"] for event in timed),
        transitions=sum(round(e["transitions_per_s"] * (e["seconds_collect"] + e["seconds_update"])) for e in timed),
        result=row_from_json(WorkflowResult, result) if result else None,
        damaged_lines=len(lines),
        damage=damage,
    )


def _number(value: object) -> float | None:
    return value if is_number(value) else None


def _predictions(posterior: Posterior) -> list[Prediction]:
    """The predictions for all workflows; of more than MOST_PREDICTED only for the evaluated ones."""
    types = posterior.items
    every = math.factorial(len(types)) <= MOST_PREDICTED
    orders = list(permutations(types) if every else dict.fromkeys(one.order for one in posterior.evaluated))
    means, sigmas = posterior.gp.predict(orders)
    plane = order_plane(types, orders, means)
    return [
        Prediction(",".join(order), float(mean), float(sigma), float(x), float(y))
        for order, mean, sigma, (x, y) in zip(orders, means, sigmas, plane, strict=True)
    ]


def order_plane(types: tuple[str, ...], orders: list[tuple[str, ...]], expected: np.ndarray) -> np.ndarray:
    """Orders of unit types in the plane, (n, 2), by classical scaling of their Kendall distances.

    Of all orders scaling finds n_types - 1 axes of equal weight, so any plane in them is as good. In this one the
    expected return (n,) grows to the right, and an early ``types[0]`` is at the top: no chance is involved.
    """
    pairs = list(combinations(types, 2))
    signs = np.array([[1 if order.index(a) < order.index(b) else -1 for a, b in pairs] for order in orders], float)
    distance = (len(pairs) - signs @ signs.T) / 2
    n = len(orders)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ distance @ centre)
    axes = np.flatnonzero(values > 1e-9)[1 - len(types) :] if len(types) > 1 else np.zeros(0, int)
    space = vectors[:, axes] * np.sqrt(values[axes])
    early = np.array([-order.index(types[0]) for order in orders], float)
    late = np.array([order.index(types[-1]) for order in orders], float)
    right = _direction(space, expected, late)
    across = space - np.outer(space @ right, right)  # without what the first axis shows
    plane: np.ndarray = np.stack([space @ right, across @ _direction(across, early, late)], axis=1)
    return plane


def _direction(space: np.ndarray, *quantities: np.ndarray) -> np.ndarray:
    """The unit vector along which the first quantity grows most that changes in the space at all; else zeros."""
    for quantity in quantities:
        slope = np.linalg.lstsq(space, quantity - quantity.mean(), rcond=1e-9)[0] if space.size else np.zeros(0)
        length = np.linalg.norm(slope)
        if length > 1e-6:
            unit: np.ndarray = slope / length
            return unit
    return np.zeros(space.shape[1])
