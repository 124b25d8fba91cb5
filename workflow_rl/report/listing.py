"""``workflow-rl runs``: which runs there are, and how some of them differ."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass, replace
from pathlib import Path

from workflow_rl.config import opponent_words
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.errors import UserError
from workflow_rl.runs import (
    SEARCH,
    TRAINING,
    Json,
    is_number,
    read_about,
    read_config,
    read_events,
    read_result,
    read_search_config,
)
from workflow_rl.search.findings import SearchResult

FIGURES = {  # required in a result, or in every row of a search's ranking
    TRAINING: ("mean_return", "standard_error", "repairs", "idle_fixes", "updates", "episodes"),
    SEARCH: ("mean_return", "standard_error", "visits"),
}
FIGURES_OF_FINALIST = ("mean_return", "standard_error", "half_as_long", "repairs", "idle_fixes")


@dataclass(frozen=True)
class RunRow:
    """A run in the list; of a damaged one ``problem`` says what is wrong, and figures are None."""

    run: str
    kind: str = "?"
    state: str = "damaged"
    red_agent: str | None = None
    workflow: str | None = None  # of a search the best
    mean_return: float | None = None
    standard_error: float | None = None
    compliance: float | None = None
    evaluations: int | None = None
    seconds: float | None = None
    problem: str = ""
    network: str | None = None


@dataclass(frozen=True)
class RunComparison:
    """Runs side by side, and the values of the settings in which they differ."""

    runs: list[RunRow]
    settings_that_differ: dict[str, list[object]]


def list_runs(folder: Path) -> list[RunRow]:
    """A row for each run in a folder, oldest first."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such directory.")
    paths = [path for path in folder.iterdir() if (path / "config.json").exists()]
    return [describe(path) for path in sorted(paths, key=lambda path: ((path / "config.json").stat().st_mtime, path))]


def describe(path: Path) -> RunRow:
    """The row of one run."""
    row = RunRow(str(path))
    try:
        about = read_about(path)
        kind = about["kind"]
        train = read_search_config(path).train if kind == SEARCH else read_config(path)
        opponent = opponent_words(train.red_agent, train.takeover)
        row = replace(row, kind=kind, red_agent=opponent, workflow=train.workflow or None)
        row = replace(row, network=network_words(about).partition(" ")[0])
        return _with_outcome(row, path)
    except UserError as error:
        return replace(row, problem=str(error).removeprefix(f"{path}/").removeprefix(f"{path} "))


def _with_outcome(row: RunRow, path: Path) -> RunRow:
    """The row with the run's state and figures; refuses damaged files."""
    result, events = checked_result(path, row.kind), read_events(path)
    missing = missing_events(row.kind, result, events)
    if missing:
        raise UserError(missing)
    figures = result or {}
    seconds = figures.get("seconds")
    row = replace(row, state=state_of(path, result is not None), seconds=seconds if is_number(seconds) else None)
    if row.kind == SEARCH:
        best = SearchResult.from_json(figures).best_row
        figures = vars(best) if best else {}
        done = sum(event.get("kind") == "evaluation" for event in events)
        row = replace(row, evaluations=done, workflow=figures.get("workflow"))
    mean, error = figures.get("mean_return"), figures.get("standard_error")
    return replace(row, mean_return=mean, standard_error=error, compliance=figures.get("compliance"))


def compare_runs(paths: list[Path]) -> RunComparison:
    """Runs side by side."""
    settings = [_settings(path) for path in paths]
    names = dict.fromkeys(name for values in settings for name in values)
    each = {name: [values.get(name) for values in settings] for name in names}
    differ = {name: values for name, values in each.items() if len({*map(str, values)}) > 1}
    return RunComparison([describe(path) for path in paths], differ)


def _settings(path: Path) -> dict[str, object]:
    """Settings of a run, with those of its trainings on the same level, and its network."""
    about = read_about(path)
    config = about["config"]
    trained = config.pop("train", None)
    values = {**config, **trained} if isinstance(trained, dict) else dict(config)
    return values | {"network": network_words(about)}


def network_words(about: Json) -> str:
    """Name and digest of a run's network; an older run is of CAGE Challenge 2."""
    cage2 = as_network(CAGE2)
    network = about.get("network", {"name": cage2.name, "digest": cage2.digest})
    return f"{network.get('name')} ({network.get('digest')})" if isinstance(network, dict) else repr(network)


def state_of(path: Path, finished: bool) -> str:
    """Is a run finished, running or interrupted?"""
    return "finished" if finished else "running" if is_held(path) else "interrupted"


def is_held(path: Path) -> bool:
    """Does a process hold the run?"""
    try:
        with open(path / ".lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def checked_result(path: Path, kind: str) -> Json | None:
    """The result of a run, checked for all required figures; None while it is not finished."""
    if (result := read_result(path)) is None:
        return None
    for row in _rows(path, result, "ranking") if kind == SEARCH else [result]:
        _check_row(path, row, FIGURES[kind], ("stop_reason", "workflow"))
    for row in _rows(path, {"finalists": []} | result, "finalists") if kind == SEARCH else []:
        _check_row(path, row, FIGURES_OF_FINALIST, ("workflow", "reverses"))
    return result


def _rows(path: Path, result: Json, name: str) -> list[Json]:
    rows = result.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path}/result.json is damaged: it has no {name}.")
    return rows


def _check_row(path: Path, row: Json, figures: tuple[str, ...], words: tuple[str, ...]) -> None:
    wrong = [name for name in figures if not is_number(row.get(name))]
    defined = ("compliance", "compliance_error", "kept")  # all None without a repair
    if any(row.get(name, "missing") is not None for name in defined):
        wrong += [name for name in defined if not is_number(row.get(name))]
    wrong += [name for name in words if not isinstance(row.get(name), str)]
    if wrong:
        raise UserError(f"{path}/result.json is damaged: {wrong[0]} is {row.get(wrong[0])!r}.")


def missing_events(kind: str, result: Json | None, events: list[Json]) -> str:
    """Message about missing events of a finished run; empty if they are complete."""
    if result is None:
        return ""
    search = kind == SEARCH
    wanted = result.get("evaluations" if search else "updates")
    found = sum(event.get("kind") == "evaluation" if search else event.get("phase") == "main" for event in events)
    if not is_number(wanted) or found >= wanted:
        return ""
    return f"events.jsonl has {found} of {wanted} {'evaluations' if search else 'updates'}."
