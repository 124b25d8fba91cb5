"""Result files: a measured result with everything needed to repeat it: the command, the commit, the machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workflow_rl.config import VERSION
from workflow_rl.errors import UserError
from workflow_rl.runs import commit, parse_json, write_atomically
from workflow_rl.studies.bench import machine

RESULTS = Path(__file__).resolve().parent / "results"  # of the benchmarks of this checkout


def write_result(name: str, command: str, figures: dict[str, Any]) -> Path:
    """Writes benchmarks/results/NAME.json atomically and returns its path."""
    return write_result_to(RESULTS, name, command, figures)


def write_result_to(folder: Path, name: str, command: str, figures: dict[str, Any], **about: Any) -> Path:
    """Writes FOLDER/NAME.json atomically and returns its path; ``about`` is kept beside the figures."""
    result = {
        "command": command,
        "commit": commit(),
        "version": VERSION,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": asdict(machine()),
        **about,
        "figures": figures,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    write_atomically(path, (json.dumps(result, indent=1) + "\n").encode())
    return path


def read_result_file(path: Path) -> dict[str, Any]:
    """A result file as it was written."""
    try:
        result = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is missing; the study that writes it has not been run to its end.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}).") from None
    if not isinstance(result, dict) or not isinstance(result.get("figures"), dict):
        raise UserError(f"{path} is damaged: it has no figures.")
    return result
