"""Reads a network file (cage2.toml) into a :class:`Network`, or lists every mistake with its line.

A value of the wrong type is replaced by an empty one, so that the other fields are checked too; complaints that follow
from the replacement are dropped.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from workflow_rl.engine.network import Network, Red
from workflow_rl.engine.networks.check import complaints
from workflow_rl.engine.networks.complaint import Complaint, named, shown, wrong_value
from workflow_rl.engine.networks.lines import line_of, lines_of
from workflow_rl.engine.networks.ways import cut_off, warnings
from workflow_rl.errors import NetworkError, UserError

NETWORKS = Path(__file__).parent / "networks"
CAGE2 = NETWORKS / "cage2.toml"
CONTENT = "_content"  # attribute of a network that was read from a file: the file's bytes
LARGEST_FILE = 1_000_000  # bytes
LONGEST_PATH = 4000  # of Linux, about
TOML_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
NEEDED = re.compile(
    r"hosts|subnets|unit_types|(hosts|subnets|unit_types)\[\d+\]|.*\.(name|weight)|red"
)  # by other checks
PROGRAM = re.compile(r"red\..*?\.program")
OPTIONAL = ("chance", "reward", "records", "accounts", "blue", "decoys", "exploits", "editions")  # sections
LONGEST_FIELD = 160
EMPTY = {str: "", int: 0, float: 0.0, bool: False}


@dataclass(frozen=True)
class Mistake:
    """What is wrong in one line of a file; ``line`` 0 if it is about the file as a whole."""

    file: str
    line: int
    field: str
    value: str
    allowed: str
    problem: str

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{place}: field {self.field} {self.problem}." if self.field else f"{place}: {self.problem}."


@dataclass(frozen=True)
class Examination:
    """A network file as read: its network, if it has no mistakes, and what deserves a second look."""

    network: Network | None
    mistakes: tuple[Mistake, ...]
    warnings: tuple[Mistake, ...] = ()


def load_network(path: Path = CAGE2) -> Network:
    """Reads and validates a network file.

    Raises:
        NetworkError: the file is missing, is not TOML (with the line), or a field is wrong (with its name).
    """
    return _whole(examine_file(Path(path)))


def parse_network(content: bytes, where: str) -> Network:
    """The network in the content of a file; ``where`` names it in messages."""
    return _whole(_examine(where, content))


def _whole(examined: Examination) -> Network:
    """The network of a file without mistakes."""
    if examined.network is None:
        more = f"; {len(examined.mistakes) - 1} more: see workflow-rl network check" if examined.mistakes[1:] else ""
        raise NetworkError(f"{str(examined.mistakes[0])[:-1]}{more}.")
    return examined.network


def bundled() -> tuple[str, ...]:
    """Names of the networks that come with the program."""
    return tuple(sorted(path.stem for path in NETWORKS.glob("*.toml")))


def as_network(network: Network | Path | str) -> Network:
    """The network itself, the bundled one of that name, or the one in the file of that path."""
    if not isinstance(network, (Network, Path, str)):
        raise UserError(f"a network must be a Network, the path of its file or a name, not {network!r}.")
    if isinstance(network, Network):
        return network
    return load_network(network_path(network))


def network_path(network: Path | str) -> Path:
    """The file of a bundled network, or the path itself."""
    name = str(network)
    if name in bundled():
        return NETWORKS / f"{name}.toml"
    missing = isinstance(network, str) and not Path(name).suffix and not os.path.exists(name)
    if missing or len(name) > LONGEST_PATH:
        raise UserError(f"no network {shown(name)}; bundled: {', '.join(bundled())}, or the path of a file.")
    return Path(network)


def examine_file(path: Path) -> Examination:
    """Reads a network file and collects all its mistakes.

    Raises:
        NetworkError: the file cannot be read.
    """
    try:
        if path.is_fifo():
            raise ValueError("a pipe, not a file")
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise NetworkError(f"{named(path)}: cannot read the network file ({reason}).") from None
    if len(content) > LARGEST_FILE:
        raise NetworkError(f"{named(path)}: too large for a network file; allowed: up to {LARGEST_FILE:,} bytes.")
    return _examine(named(path), content)


@cache
def _examine(path: str, content: bytes) -> Examination:
    examined = examine(path, content)
    if examined.network is not None:
        vars(examined.network)[CONTENT] = content  # of this object alone: dataclasses.replace() makes one without it
    return examined


def examine(file: str, content: bytes) -> Examination:
    """Reads the content of a network file and collects all its mistakes."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unreadable(file, 0, f"not a text file in UTF-8 (byte {error.start})")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        return _unreadable(file, 0, "not valid TOML: nested too deeply")
    except ValueError as error:  # TOMLDecodeError, and numbers of thousands of digits
        found = TOML_LINE.search(str(error))
        line = int(found[1] or text.count("\n") + 1) if found else 0
        return _unreadable(file, line, f"not valid TOML: {TOML_LINE.sub('', str(error))}")
    builder = _Builder()
    network: Network = builder.build(Network, _completed(document), "")
    wrong, broken = builder.complaints, builder.broken
    if not any(NEEDED.fullmatch(field) for field in broken):
        wrong += [complaint for complaint in complaints(network) if not _follows(complaint, broken)]
    if not wrong:
        wrong += cut_off(network)
    lines = lines_of(text)
    if wrong:
        return Examination(None, tuple(_located(file, lines, complaint) for complaint in wrong))
    return Examination(network, (), tuple(_located(file, lines, complaint) for complaint in warnings(network)))


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the sections that it leaves out: CybORG's own numbers, and a green agent that scans all."""
    completed = {name: _cyborgs_own()[name] for name in OPTIONAL} | document
    hosts = document.get("hosts")
    tables = [host for host in hosts if isinstance(host, dict)] if isinstance(hosts, list) else []
    if "accounts" not in document:
        listed = [host["services"] for host in tables if isinstance(host.get("services"), list)]
        used = {str(service.get("account")) for own in listed for service in own if isinstance(service, dict)}
        privileged = [name for name in completed["accounts"]["privileged"] if name in used]
        completed["accounts"] = {"privileged": privileged}
    if "green" not in document:
        completed["green"] = {"scans": [host["name"] for host in tables if isinstance(host.get("name"), str)]}
    return completed


@cache
def _cyborgs_own() -> dict[str, Any]:
    return tomllib.loads(CAGE2.read_text("utf-8"))


def _located(file: str, lines: dict[str, int], complaint: Complaint) -> Mistake:
    field, problem, value, allowed, place = complaint
    plain = "".join(letter if letter.isprintable() else "?" for letter in field[:LONGEST_FIELD])
    return Mistake(file, line_of(lines, place or field), plain, value, allowed, problem)


def _unreadable(file: str, line: int, problem: str) -> Examination:
    return Examination(None, (Mistake(file, line, "", "", "a network file", problem),))


def _follows(complaint: Complaint, broken: list[str]) -> bool:
    """Is the complaint about a field that was replaced?"""
    programs = [found[0] for field in broken if (found := PROGRAM.match(field))]  # lines lead to each other
    for place in filter(None, (complaint.field, complaint.place)):
        for field in [*broken, *programs]:
            inside, around = place.startswith((f"{field}.", f"{field}[")), field.startswith((f"{place}.", f"{place}["))
            if place == field or inside or around:
                return True
    return False


class _Builder:
    """Turns TOML values into dataclasses and notes all that does not fit."""

    def __init__(self) -> None:
        self.complaints: list[Complaint] = []
        self.broken: list[str] = []  # fields that were replaced

    def build(self, kind: Any, value: Any, where: str) -> Any:
        """Turns a TOML value into ``kind``: a scalar, a tuple, a dictionary or a dataclass of such."""
        if kind is Red and isinstance(value, dict):
            value = _gather_programs(value)
        if is_dataclass(kind):
            return self._dataclass(kind, self._expect(value, dict, where), where)
        if get_origin(kind) is UnionType:  # a name or a list of names
            kind = get_args(kind)[1] if isinstance(value, list) else get_args(kind)[0]
        if get_origin(kind) is tuple:
            items = self._expect(value, list, where)
            return tuple(self.build(get_args(kind)[0], item, f"{where}[{i}]") for i, item in enumerate(items))
        if get_origin(kind) is dict:
            prefix = "red" if where == "red.programs" else where
            table = self._expect(value, dict, where) or {}
            return {key: self.build(get_args(kind)[1], item, f"{prefix}.{key}") for key, item in table.items()}
        if kind is float and type(value) is int and abs(value) < 2**53:
            return float(value)
        return self._expect(value, kind, where)

    def _dataclass(self, kind: Any, table: dict[str, Any] | None, where: str) -> Any:
        hints = get_type_hints(kind)
        prefix = f"{where}." if where else ""
        values = {}
        for key in table or ():
            if key not in hints:
                problem = f"is not known; known here: {', '.join(hints)}"
                self.complaints.append(Complaint(prefix + key, problem, shown(key), ", ".join(hints)))
        for item in fields(kind):
            if table is not None and item.name in table:
                values[item.name] = self.build(hints[item.name], table[item.name], prefix + item.name)
            elif item.default is MISSING and item.default_factory is MISSING:
                if table is not None:
                    kind_name = _name_of(hints[item.name])
                    self.complaints.append(Complaint(prefix + item.name, "is missing", "", kind_name))
                    self.broken.append(prefix + item.name)
                values[item.name] = _empty(hints[item.name])
        return kind(**values)

    def _expect(self, value: Any, kind: Any, where: str) -> Any:
        if type(value) is kind:
            return value
        self.complaints.append(wrong_value(where, f"of type {_name_of(kind)}", value))
        self.broken.append(where)
        return None if kind is dict else _empty(kind)


def _gather_programs(table: dict[str, Any]) -> dict[str, Any]:
    """Every ``[red.NAME]`` but Meander's is a program."""
    own = {key: value for key, value in table.items() if key in ("foothold", "meander")}
    return own | {"programs": {key: value for key, value in table.items() if key not in own}}


def _name_of(kind: Any) -> str:
    """A type in the words of messages."""
    if is_dataclass(kind):
        return "table"
    kind = get_origin(kind) or kind
    return {tuple: "list", dict: "table", UnionType: "str or list"}.get(kind, kind.__name__)


def _empty(kind: Any) -> Any:
    """A value of a type that stands for one that is missing."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{item.name: _empty(hints[item.name]) for item in fields(kind)})
    if get_origin(kind) is UnionType:
        return _empty(get_args(kind)[0])
    if kind is list or get_origin(kind) is tuple:
        return ()
    return {} if get_origin(kind) is dict else EMPTY[kind]
