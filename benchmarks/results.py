"""Result files: a measured result with everything needed to repeat it: the command, the commit, the machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from workflow_rl.config import VERSION
from workflow_rl.errors import UserError
from workflow_rl.runs import parse_json, write_atomically
from workflow_rl.studies.bench import machine

RESULTS = Path(__file__).resolve().parent / "results"  # of the benchmarks of this checkout
ROOT = RESULTS.parent.parent
SOURCE = ("workflow_rl", "benchmarks")  # what a figure depends on,
NOT_SOURCE = (  # but for what is made from figures, and for what starts experiments and keeps their results
    "benchmarks/results",
    "benchmarks/page",
    *(f"benchmarks/{name}.py" for name in ("__main__", "command", "campaign", "experiments", "results")),
)


@cache
def source_digest() -> str:
    """Digest of all files that a figure may depend on, as they are when first asked for."""
    found = hashlib.sha256()
    for path in sorted(path for name in SOURCE for path in (ROOT / name).rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and "__pycache__" not in path.parts and not name.startswith(NOT_SOURCE):
            found.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def source_commit() -> str:
    """The last commit that changed the source, with ``-dirty`` if the source has changed since.

    Commits of results, pages and documents do not count: results of one source have one commit.
    """
    paths = [*SOURCE, *(f":(exclude){name}" for name in NOT_SOURCE)]
    last = _git("log", "-1", "--format=%H", "--", *paths)[:12] or "unknown"
    return f"{last}-dirty" if _git("status", "--porcelain", "--", *paths) else last


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def write_result(name: str, command: str, figures: dict[str, Any], **about: Any) -> Path:
    """Writes benchmarks/results/NAME.json atomically and returns its path."""
    return write_result_to(RESULTS, name, command, figures, **about)


def write_result_to(folder: Path, name: str, command: str, figures: dict[str, Any], **about: Any) -> Path:
    """Writes FOLDER/NAME.json atomically and returns its path; ``about`` is kept beside the figures."""
    result = {
        "command": command,
        "commit": source_commit(),
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


def read_result(name: str) -> dict[str, Any]:
    """The stored result of this name."""
    return read_result_file(RESULTS / f"{name}.json")


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
