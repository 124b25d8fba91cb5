"""Run: one training or search in its own directory, from which it can be resumed, repeated and reported on.

    config.json             kind, definition of compliance, all settings, seed, network, versions, commit; written once
    network.toml            the file of the network, from which the run is resumed and reported on; written once
    events.jsonl            one line per update (in a search: per suggestion and evaluation), append-only
    progress.csv            the same as a table (in a search: suggestions.csv and ranking.csv)
    teacher.safetensors     exceptions found by paired games so far; replaced atomically
    checkpoint.safetensors  weights, optimiser, generators, engine states, counters; replaced atomically
    bases/, trainings/, finals/   the runs of a search's trainings
    policy.safetensors      the trained policy (in a search: the best one)
    result.json             written last: the run is finished

Loading a run executes no code: weights are safetensors, the rest is JSON. An incomplete last event is ignored. Resuming
drops the events after the last checkpoint, because it repeats those updates with the same outcome.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeGuard, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from workflow_rl import config as settings
from workflow_rl.config import SearchConfig, TrainConfig
from workflow_rl.errors import RunInUseError, UserError

TRAINING, SEARCH = "training", "search"  # kinds of runs
DEFINITION = 2  # version of the definition of compliance, see compliance.py
Config = TypeVar("Config", TrainConfig, SearchConfig)
Json = dict[str, Any]  # a JSON object
NETWORK_FILE = "network.toml"


@dataclass(frozen=True)
class NetworkCopy:
    """The network of a run: its name, its digest, and the content of its file."""

    name: str
    digest: str
    content: bytes


class Run(Generic[Config]):
    """A run directory that this process has locked; see the module for its files."""

    def __init__(self, path: Path, config: Config) -> None:
        self.path = path
        self.config: Config = config
        self._lock = hold(path)

    @classmethod
    def create(cls, path: Path, config: Config, network: NetworkCopy) -> Run[Config]:
        """Creates a run; rejects a directory that already holds one."""
        if path == Path():
            raise UserError("a run needs its own directory, not the current one.")
        for name in ("config.json", "events.jsonl", "result.json", "trainings", "teacher.safetensors"):
            if (path / name).exists():
                raise UserError(f"{path} already holds a run ({name}); resume it or choose another directory.")
        try:
            path.mkdir(parents=True, exist_ok=True)
            run = cls(path, config)
            kind = SEARCH if isinstance(config, SearchConfig) else TRAINING
            about = {"kind": kind, "definition": DEFINITION, "config": settings.config_to_json(config)}
            about |= {"network": {"name": network.name, "digest": network.digest}}
            about |= {"versions": versions(), "commit": commit()}
            _write_copy(path / NETWORK_FILE, network.content)
            write_atomically(path / "config.json", json.dumps(about, indent=1).encode())
        except OSError as error:
            raise UserError(f"{path}: cannot write there ({error.strerror}).") from None
        return run

    @staticmethod
    def open(path: Path) -> Run[TrainConfig]:
        """Opens an existing training."""
        return Run(path, read_config(path))

    @staticmethod
    def open_search(path: Path) -> Run[SearchConfig]:
        """Opens an existing search."""
        return Run(path, read_search_config(path))

    def log(self, *events: Json) -> None:
        """Appends events: all of them, or none if the process is killed."""
        with open(self.path / "events.jsonl", "ab", buffering=0) as file:  # unbuffered: a single system call
            file.write("".join(json.dumps(event) + "\n" for event in events).encode())

    def events(self) -> list[Json]:
        """All events logged so far."""
        return read_events(self.path)

    def drop_events_after(self, phase: str, update: int, phases: list[str]) -> None:
        """Drops the events of updates that a resumed training repeats."""
        place = (phases.index(phase), update)
        try:
            kept = [event for event in self.events() if (phases.index(event["phase"]), event["update"]) <= place]
        except (KeyError, ValueError, TypeError):
            raise UserError(f"{self.path}/events.jsonl is damaged.") from None
        self.rewrite_events(kept)

    def rewrite_events(self, events: list[Json]) -> None:
        """Replaces all events, which also removes an incomplete last one."""
        write_atomically(self.path / "events.jsonl", "".join(json.dumps(event) + "\n" for event in events).encode())

    def save_checkpoint(self, arrays: dict[str, np.ndarray], meta: Json) -> None:
        """Replaces the checkpoint."""
        write_tensors(self.path / "checkpoint.safetensors", arrays, meta)

    def load_checkpoint(self) -> tuple[dict[str, np.ndarray], Json] | None:
        """Arrays and counters of the last checkpoint; None if there is none."""
        path = self.path / "checkpoint.safetensors"
        return read_tensors(path) if path.exists() else None

    def finish(self, result: Json) -> None:
        """Writes progress.csv and the result."""
        self.write_table("progress.csv", self.events())
        self.write_result(result)

    def write_table(self, name: str, rows: list[Json]) -> None:
        """Writes rows with equal columns as CSV, if there are any."""
        if rows:
            text = io.StringIO()
            table = csv.DictWriter(text, fieldnames=list(rows[0]))
            table.writeheader()
            table.writerows(rows)
            write_atomically(self.path / name, text.getvalue().encode())

    def write_result(self, result: Json) -> None:
        """Writes the result, which marks the run as finished."""
        write_atomically(self.path / "result.json", json.dumps(result, indent=1).encode())

    def close(self) -> None:
        """Unlocks the directory."""
        os.close(self._lock)


def _write_copy(path: Path, content: bytes) -> None:
    """Writes the network before config.json makes the directory a run; rejects a file that says something else."""
    if not path.exists():
        write_atomically(path, content)
    elif path.read_bytes() != content:
        raise UserError(f"{path} already exists and holds another network; choose another directory.")


def parse_json(text: str) -> Any:
    """Parses JSON; any invalid text raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_about(path: Path) -> Json:
    """Content of config.json of the run in ``path``."""
    try:
        about = parse_json((path / "config.json").read_text(encoding="utf-8"))
    except OSError:
        raise UserError(f"{path} holds no run (config.json cannot be read).") from None
    except ValueError:
        about = None
    if not isinstance(about, dict) or not isinstance(about.get("config"), dict):
        raise UserError(f"{path}/config.json is damaged.")
    if about.get("definition") != DEFINITION:
        raise UserError(
            f"{path} was made by an earlier version, where fixes that repaired nothing counted as compliance: its "
            "figures are misleading; make it again."
        )
    if about.get("kind") not in (TRAINING, SEARCH):
        raise UserError(f"{path}/config.json is damaged: unknown kind of run {about.get('kind')!r}.")
    return about


def read_config(path: Path) -> TrainConfig:
    """Settings of the training in ``path``."""
    return _read_settings(path, TRAINING, settings.config_from_json)


def read_search_config(path: Path) -> SearchConfig:
    """Settings of the search in ``path``."""
    return _read_settings(path, SEARCH, settings.search_config_from_json)


def _read_settings(path: Path, kind: str, parse: Callable[[Json], Config]) -> Config:
    """Settings that are newer than the run have their defaults."""
    if (about := read_about(path))["kind"] != kind:
        raise UserError(f"{path} holds a {about['kind']}, not a {kind}.")
    try:
        return parse(about["config"])
    except UserError as error:
        raise UserError(f"{path}/config.json: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}/config.json is damaged.") from None


def read_result(path: Path) -> Json | None:
    """Result of the run in ``path``; None while it is not finished."""
    try:
        result = parse_json((path / "result.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}/result.json is damaged ({error}).") from None
    if not isinstance(result, dict):
        raise UserError(f"{path}/result.json is damaged.")
    return result


def is_number(value: object) -> TypeGuard[float]:
    """Is the value a finite number?"""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf


def read_events(path: Path) -> list[Json]:
    """Events of the run in ``path``; a last line that was cut off is left out, any other damage is refused."""
    events, damaged, cut_off = scan_events(path)
    if len(damaged) > cut_off:
        raise UserError(f"{path}/events.jsonl is damaged in line {damaged[0]}.")
    return events


def scan_events(path: Path) -> tuple[list[Json], list[int], bool]:
    """The readable events of a run, the numbers of its other lines (from 1), and whether the last one was cut off."""
    try:
        lines = (path / "events.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return [], [], False
    except OSError:
        return [], [1], False
    events, damaged = [], []
    for number, line in enumerate(lines, 1):
        try:
            event = parse_json(line)
        except ValueError:
            event = None
        if isinstance(event, dict) and "\ufffd" not in line:  # which stands for bytes that are no text
            events.append(event)
        else:
            damaged.append(number)
    return events, damaged, damaged[-1:] == [len(lines)] and lines[-1].startswith("{")


def write_tensors(path: Path, arrays: dict[str, np.ndarray], meta: Json) -> None:
    """Writes named arrays and a JSON object into one safetensors file, atomically."""
    try:
        write_atomically(path, tensor_bytes(arrays, meta))
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).") from None


def tensor_bytes(arrays: dict[str, np.ndarray], meta: Json) -> bytes:
    """The content of a file written by :func:`write_tensors`."""
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content: bytes = save(plain, {"meta": json.dumps(meta)})
    return content


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], Json]:
    """Arrays and JSON object of a file written by :func:`write_tensors`."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            meta = parse_json((file.metadata() or {})["meta"])
            return {name: file.get_tensor(name) for name in file.keys()}, meta  # noqa: SIM118 (no mapping)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file.") from None
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise UserError(f"{path}: damaged, or not one of our files ({str(error).splitlines()[0]}).") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces a file atomically: readers see the old or the new content, even after a crash."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def new_run_directory(name: str) -> Path:
    """Path of a new directory under runs/."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    paths = (Path("runs") / (f"{stamp}-{name}" + (f"-{number}" if number else "")) for number in count())
    return next(path for path in paths if not path.exists())


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that a result may depend on."""
    from importlib.metadata import version

    names = ("numpy", "numba", "torch", "gymnasium", "safetensors", "botorch", "gpytorch")
    return {"workflow_rl": settings.VERSION, "python": platform.python_version()} | {n: version(n) for n in names}


@cache
def commit() -> str:
    """Commit of the source if it is a git checkout, else ``unknown``."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():  # an installed package may lie within a checkout of something else
        return "unknown"
    git = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def hold(path: Path) -> int:
    """Locks the directory until the process ends; returns the handle of the lock."""
    try:
        handle = os.open(path / ".lock", os.O_CREAT | os.O_RDWR)
    except OSError as error:
        raise UserError(f"{path}: cannot be used as a run directory ({error.strerror}).") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise RunInUseError(f"{path} is in use by another process.") from None
    return handle
