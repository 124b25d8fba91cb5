"""Reads a network file (cage2.toml) into a :class:`Network`, or explains what is wrong with it."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from workflow_rl.engine.network import Network, Red
from workflow_rl.engine.networks.check import contradictions
from workflow_rl.errors import NetworkError, UserError

NETWORKS = Path(__file__).parent / "networks"
CAGE2 = NETWORKS / "cage2.toml"
CONTENT = "_content"  # attribute of a network that was read from a file: the file's bytes

T = TypeVar("T")


def load_network(path: Path = CAGE2) -> Network:
    """Reads and validates a network file.

    Raises:
        NetworkError: the file is missing, is not TOML (with the line), or a field is wrong (with its name).
    """
    try:
        return parse_network(Path(path).read_bytes(), str(path))
    except OSError as error:
        raise NetworkError(f"{path}: cannot read the network file ({error.strerror}).") from None


def parse_network(content: bytes, where: str) -> Network:
    """The network in the content of a file; ``where`` names it in messages."""
    return _load(where, content)


def bundled() -> tuple[str, ...]:
    """Names of the networks that come with the program."""
    return tuple(sorted(path.stem for path in NETWORKS.glob("*.toml")))


def as_network(network: Network | Path | str) -> Network:
    """The network itself, the bundled one of that name, or the one in the file of that path."""
    if not isinstance(network, (Network, Path, str)):
        raise UserError(f"a network must be a Network, the path of its file or a name, not {network!r}.")
    if isinstance(network, Network):
        return network
    if str(network) in bundled():
        return load_network(NETWORKS / f"{network}.toml")
    if isinstance(network, str) and not Path(network).suffix and not Path(network).exists():
        raise UserError(f"no network {network[:80]!r}; bundled: {', '.join(bundled())}, or the path of a file.")
    return load_network(Path(network))


@cache
def _load(path: str, content: bytes) -> Network:
    try:
        document = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise NetworkError(f"{path}: not a text file in UTF-8 (byte {error.start}).") from None
    except tomllib.TOMLDecodeError as error:
        raise NetworkError(f"{path}: not valid TOML: {error}.") from None
    try:
        network: Network = _build(Network, document, "")
        for where, complaint in contradictions(network):
            raise _FieldError(where, complaint)
    except _FieldError as error:
        raise NetworkError(f"{path}: field {error}.") from None
    vars(network)[CONTENT] = content  # of this object alone: dataclasses.replace() makes one without it
    return network


class _FieldError(Exception):
    def __init__(self, where: str, complaint: str) -> None:
        super().__init__(f"{where or 'root'} {complaint}")


def _build(kind: Any, value: Any, where: str) -> Any:
    """Turns a TOML value into ``kind``: a scalar, a tuple, a dictionary or a dataclass of such."""
    if kind is Red:
        value = _gather_programs(_expect(value, dict, where))
    if is_dataclass(kind):
        return _build_dataclass(kind, _expect(value, dict, where), where)
    if get_origin(kind) is UnionType:  # a name or a list of names
        kind = get_args(kind)[1] if isinstance(value, list) else get_args(kind)[0]
    if get_origin(kind) is tuple:
        items = _expect(value, list, where)
        return tuple(_build(get_args(kind)[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if get_origin(kind) is dict:
        table = _expect(value, dict, where)
        return {key: _build(get_args(kind)[1], item, f"{where}.{key}") for key, item in table.items()}
    if kind is float and type(value) is int:
        return float(value)
    return _expect(value, kind, where)


def _gather_programs(table: dict[str, Any]) -> dict[str, Any]:
    """Every ``[red.NAME]`` but Meander's is a program."""
    own = {key: value for key, value in table.items() if key in ("foothold", "meander")}
    return own | {"programs": {key: value for key, value in table.items() if key not in own}}


def _build_dataclass(kind: Any, table: dict[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    prefix = f"{where}." if where else ""
    for key in table:
        if key not in hints:
            raise _FieldError(prefix + key, f"is not known; known here: {', '.join(hints)}")
    values = {}
    for item in fields(kind):
        if item.name in table:
            values[item.name] = _build(hints[item.name], table[item.name], prefix + item.name)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise _FieldError(prefix + item.name, "is missing")
    return kind(**values)


def _expect(value: Any, kind: type[T], where: str) -> T:
    if type(value) is not kind:
        raise _FieldError(where, f"must be of type {kind.__name__}, not {value!r}")
    return value
