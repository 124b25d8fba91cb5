"""``workflow-rl runs``: which runs there are, and how some of them differ."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

from workflow_rl.config import opponent_words
from workflow_rl.errors import UserError
from workflow_rl.runs import (
    SEARCH,
    checked_result,
    is_number,
    missing_events,
    read_about,
    read_config,
    read_events,
    read_search_config,
)


def list_runs(folder: Path) -> list[dict[str, Any]]:
    """A row for each run in a folder, oldest first; damaged ones say so."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such directory.")
    paths = [path for path in folder.iterdir() if (path / "config.json").exists()]
    return [describe(path) for path in sorted(paths, key=lambda path: ((path / "config.json").stat().st_mtime, path))]


def describe(path: Path) -> dict[str, Any]:
    """One run in a row; of a damaged one ``problem`` says what is wrong."""
    row: dict[str, Any] = {
        "run": str(path), "kind": "?", "state": "damaged", "red_agent": None, "workflow": None, "mean_return": None,
        "standard_error": None, "compliance": None, "evaluations": None, "seconds": None, "problem": "",
    }  # fmt: skip
    try:
        kind = read_about(path)["kind"]
        train = read_search_config(path).train if kind == SEARCH else read_config(path)
        opponent = opponent_words(train.red_agent, train.takeover)
        row |= {"kind": kind, "red_agent": opponent, "workflow": train.workflow or None}
        return row | _outcome(path, kind)
    except UserError as error:
        return row | {"problem": str(error).removeprefix(f"{path}/").removeprefix(f"{path} ")}


def _outcome(path: Path, kind: str) -> dict[str, Any]:
    """How far the run has come, and its figures; refuses damaged files."""
    result, events = checked_result(path, kind), read_events(path)
    missing = missing_events(kind, result, events)
    if missing:
        raise UserError(missing)
    outcome: dict[str, Any] = {"state": state_of(path, result)}
    best = result
    if kind == SEARCH:
        outcome["evaluations"] = sum(event.get("kind") == "evaluation" for event in events)
        best = best_row(result) if result else None
        outcome["workflow"] = best["workflow"] if best else None
    if best:
        outcome |= {name: best.get(name) for name in ("mean_return", "standard_error", "compliance")}
    seconds = (result or {}).get("seconds")
    return outcome | {"seconds": seconds if is_number(seconds) else None}


def best_row(found: dict[str, Any]) -> dict[str, Any] | None:
    """What a search found about its best workflow: as a finalist if there are any, else in the ranking."""
    rows = found.get("finalists") or found["ranking"]
    return next((row for row in rows if row["workflow"] == found.get("best")), None)


def compare_runs(paths: list[Path]) -> dict[str, Any]:
    """Rows of runs, and the settings in which they differ."""
    settings = [_flat(read_about(path)["config"]) for path in paths]
    names = list(dict.fromkeys(name for values in settings for name in values))
    differ = {
        name: [values.get(name) for values in settings]
        for name in names
        if len({str(values.get(name)) for values in settings}) > 1
    }
    return {"runs": [describe(path) for path in paths], "settings_that_differ": differ}


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Settings of a run with those of its trainings among them."""
    trained = config.get("train")
    trained = trained if isinstance(trained, dict) else {}
    return {name: value for name, value in config.items() if name != "train"} | trained


def state_of(path: Path, result: dict[str, Any] | None) -> str:
    """How far a run with this result, or with none yet, has come."""
    return "finished" if result is not None else "running" if is_held(path) else "interrupted"


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
