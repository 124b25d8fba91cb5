"""Writes a network as the text of a network file, in the form and order of cage2.toml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from typing import Any

from workflow_rl.engine.network import Network

WIDTH = 120
LAST = ("services", "process_ids", "program")  # long fields come after the others of their table
BARE = re.compile(r"[A-Za-z0-9_-]+")


def network_text(network: Network, comment: str = "") -> str:
    """The text of a file from which the same network is read; ``comment`` comes first."""
    first = [f"# {line}".rstrip() for line in comment.splitlines()]
    parts = [*([*first, ""] if first else []), *_pairs(network, ("name", "version", "unit_types"))]
    for section in ("chance", "reward", "records"):
        parts += _table(section, getattr(network, section))
    parts += _headline("network")
    for subnet in network.subnets:
        parts += _table("subnets", subnet, repeated=True)
    parts += _table("accounts", network.accounts)
    for host in network.hosts:
        parts += _table("hosts", host, repeated=True)
    parts += _table("operational_service", network.operational_service)
    parts += [*_headline("blue"), *_table("blue", network.blue)]
    for decoy in network.decoys:
        parts += _table("decoys", decoy, repeated=True)
    parts += _headline("red")
    for exploit in network.exploits:
        parts += _table("exploits", exploit, repeated=True)
    parts += ["", "[red]", *_pairs(network.red, ("foothold",))]
    for name, program in network.red.programs.items():
        parts += _table(f"red.{_key(name)}", program)
    parts += [*_table("red.meander", network.red.meander), *_table("green", network.green)]
    parts += _headline("editions")
    for name, edition in network.editions.items():
        parts += _table(f"editions.{_key(name)}", edition)
    return "\n".join(parts) + "\n"


def _headline(title: str) -> list[str]:
    return ["", f"# {'-' * (WIDTH - len(title) - 3)} {title}"]


def _table(name: str, value: Any, repeated: bool = False) -> list[str]:
    names = [item.name for item in fields(value) if not _is_default(item, value)]
    names.sort(key=lambda name: LAST.index(name) if name in LAST else -1)
    return ["", f"[[{name}]]" if repeated else f"[{name}]", *_pairs(value, names)]


def _is_default(item: Any, value: Any) -> bool:
    return item.default is not MISSING and getattr(value, item.name) == item.default


def _pairs(value: Any, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from _wrapped(f"{name} = ", getattr(value, name))


def _wrapped(start: str, value: Any) -> list[str]:
    """A pair in one line; a list that does not fit, or one of several tables, in several."""
    line = start + _value(value)
    tables = isinstance(value, tuple) and len(value) > 1 and hasattr(value[0], "__dataclass_fields__")
    if not isinstance(value, tuple) or (len(line) <= WIDTH and not tables):
        return [line]
    lines = [f"{start}["]
    for item in map(_value, value):
        if tables or len(lines) == 1 or len(lines[-1]) + len(item) + 2 > WIDTH:
            lines.append(f"  {item},")
        else:
            lines[-1] += f" {item},"
    return [*lines, "]"]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if hasattr(value, "__dataclass_fields__"):
        names = [item.name for item in fields(value) if not _is_default(item, value)]
        return f"{{ {', '.join(f'{name} = {_value(getattr(value, name))}' for name in names)} }}"
    return repr(value)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
