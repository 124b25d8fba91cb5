"""Reads YAML files of strangers: of limited size, without duplicates, each value with its place for messages."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from workflow_rl.errors import NetworkError

LARGEST_FILE = 500_000  # bytes; Scenario2 with all images has 30,000
MOST_VALUES = 100_000  # with repeated ones counted each time
LONGEST_TEXT = 64


@dataclass(frozen=True)
class Part:
    """A value of a file and where it is."""

    value: Any
    file: Path
    place: str = ""

    def refuse(self, complaint: str) -> NoReturn:
        """Raises a NetworkError with file, place and complaint."""
        raise NetworkError(f"{self.file}: {self.place or 'the file'} {complaint}.")

    def table(self, known: Iterable[str] | None = None, needed: Iterable[str] = ()) -> dict[str, Part]:
        """The entries of a mapping; keys that are not ``known`` are refused, and ``needed`` ones that are missing."""
        if not isinstance(self.value, dict):
            self.refuse(f"must be a mapping, not {shown(self.value)}")
        entries = {}
        for key, value in self.value.items():
            if not isinstance(key, str) or not key.isprintable() or not 0 < len(key) <= LONGEST_TEXT:
                self.refuse(f"has the name {shown(key)}; a name is text of 1 to {LONGEST_TEXT} characters")
            if known is not None and key not in known:
                self.refuse(f"has {key!r}, which cannot be represented; known here: {', '.join(known)}")
            entries[key] = Part(value, self.file, f"{self.place}.{key}" if self.place else key)
        for key in needed:
            if key not in entries:
                self.refuse(f"lacks {key!r}")
        return entries

    def entries(self) -> list[Part]:
        """The entries of a list; an empty value is an empty list."""
        if self.value is not None and not isinstance(self.value, list):
            self.refuse(f"must be a list, not {shown(self.value)}")
        return [Part(value, self.file, f"{self.place}[{i}]") for i, value in enumerate(self.value or [])]

    def text(self, allowed: Iterable[str] = ()) -> str:
        """A short text, one of ``allowed`` if there are such."""
        value, choice = self.value, list(allowed)
        if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= LONGEST_TEXT:
            self.refuse(f"must be text of 1 to {LONGEST_TEXT} characters, not {shown(value)}")
        if choice and value not in choice:
            self.refuse(f"is {value!r}; allowed: {', '.join(choice)}")
        return str(value)

    def texts(self, allowed: Iterable[str] = ()) -> list[str]:
        """A list of texts without repetitions."""
        found = [part.text(allowed) for part in self.entries()]
        for text in found:
            if found.count(text) > 1:
                self.refuse(f"has {text!r} more than once")
        return found

    def number(self, least: int, most: int) -> int:
        """A whole number in a range."""
        if type(self.value) is not int or not least <= self.value <= most:
            self.refuse(f"must be a whole number from {least} to {most}, not {shown(self.value)}")
        return int(self.value)


def shown(value: object) -> str:
    """A value for a message; only a few of its parts are looked at, for aliases can make it endless."""
    return reprlib.repr(value)


def read_yaml(path: Path) -> Part:
    """The content of a YAML file.

    Raises:
        NetworkError: the file is missing, not YAML (with the line), too large, or has a key twice.
    """
    if not path.is_file():
        raise NetworkError(f"{path}: no such file.")
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise NetworkError(f"{path}: cannot read the file ({error.strerror}).") from None
    if len(content) > LARGEST_FILE:
        raise NetworkError(f"{path}: larger than {LARGEST_FILE} bytes, which no scenario is.")
    try:
        return Part(_parse(path, content.decode()), path)
    except UnicodeDecodeError as error:
        raise NetworkError(f"{path}: not a text file in UTF-8 (byte {error.start}).") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise NetworkError(f"{path}: not valid YAML{place}: {str(error.problem)[:200]}.") from None
    except yaml.YAMLError as error:
        raise NetworkError(f"{path}: not valid YAML: {str(error).splitlines()[0]}.") from None
    except NetworkError:
        raise
    except RecursionError:
        raise NetworkError(f"{path}: nested too deeply.") from None
    except ValueError as error:
        raise NetworkError(f"{path}: has a value that cannot be read ({shown(str(error))}).") from None


def _parse(path: Path, text: str) -> Any:
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(path, node, {}) > MOST_VALUES:
            raise NetworkError(f"{path}: has more than {MOST_VALUES} values, repeated ones included.")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _size(path: Path, node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values a part of the document has once its aliases are written out."""
    if id(node) in sizes:
        if not sizes[id(node)]:
            raise NetworkError(f"{path}: line {node.start_mark.line + 1} contains itself.")
        return sizes[id(node)]
    sizes[id(node)] = 0  # begun
    size = 1
    if isinstance(node, yaml.MappingNode):
        keys: set[Hashable] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in keys:
                raise NetworkError(f"{path}: line {key.start_mark.line + 1} has {shown(key.value)} a second time.")
            keys.add((key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key))
            size += _size(path, key, sizes) + _size(path, value, sizes)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_size(path, value, sizes) for value in node.value)
    sizes[id(node)] = size
    return size
