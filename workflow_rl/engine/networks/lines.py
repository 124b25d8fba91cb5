"""Finds the line of a field in a TOML file, which Python's own parser does not tell.

The scanner reads text that the parser has already accepted, so it need not find mistakes.
"""

from __future__ import annotations

import re

LITERAL = re.compile(r"[^\s,\]}#]+(?: [\d:.Z+-]+)?")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}
INDEX = re.compile(r"\[\d+\]$")


def lines_of(text: str) -> dict[str, int]:
    r"""Every table, field and element with the number of its first line, from 1.

    >>> lines_of('name = "mine"\n[[hosts]]\nports = [\n  22,\n  80,\n]\n')["hosts[0].ports[1]"]
    5
    """
    return _Scanner(text).scan()


def line_of(lines: dict[str, int], field: str) -> int:
    """The line of a field; of one that is missing, that of the table in which it should be."""
    while field and field not in lines:
        field = INDEX.sub("", field) if INDEX.search(field) else field.rpartition(".")[0]
    return lines.get(field, 1)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.lines: dict[str, int] = {}
        self.counts: dict[str, int] = {}  # tables so far of each array of tables
        self.counted = (0, 1)  # a place and its line

    def scan(self) -> dict[str, int]:
        table = ""
        while self._skip():
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.lines

    def _header(self) -> str:
        repeated = self.text.startswith("[[", self.at)
        start = self.at
        self.at += 2 if repeated else 1
        keys = self._keys()
        self.at += 2 if repeated else 1
        table = ""
        for i, key in enumerate(keys):
            table = f"{table}.{key}" if table else key
            if repeated and i == len(keys) - 1:
                self._note(table, start)
                self.counts[table] = self.counts.get(table, 0) + 1
            if table in self.counts:
                table += f"[{self.counts[table] - 1}]"
        self._note(table, start)
        return table

    def _pair(self, table: str) -> None:
        start = self.at
        for key in self._keys():
            table = f"{table}.{key}" if table else key
            self._note(table, start)
        self.at += 1  # the sign =
        self._value(table)

    def _keys(self) -> list[str]:
        """Parts of a dotted key; stops at what follows it."""
        keys = []
        while True:
            self._blanks()
            if self.text[self.at] in "\"'":
                keys.append(self._string())
            else:
                found = BARE_KEY.match(self.text, self.at)
                keys.append(found[0] if found else "")
                self.at += len(keys[-1])
            self._blanks()
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _value(self, field: str) -> None:
        self._blanks()
        mark = self.text[self.at]
        if mark in "\"'":
            self._string()
        elif mark in "[{":
            self._collection(field, "]" if mark == "[" else "}")
        else:
            found = LITERAL.match(self.text, self.at)
            self.at = found.end() if found else self.at + 1

    def _collection(self, field: str, end: str) -> None:
        self.at += 1
        number = 0
        while self._skip() and self.text[self.at] != end:
            if self.text[self.at] == ",":
                self.at += 1
            elif end == "]":
                self._note(f"{field}[{number}]", self.at)
                self._value(f"{field}[{number}]")
                number += 1
            else:
                self._pair(field)
        self.at += 1

    def _string(self) -> str:
        mark = self.text[self.at]
        fence = mark * 3 if self.text.startswith(mark * 3, self.at) else mark
        start = self.at = self.at + len(fence)
        while not self.text.startswith(fence, self.at):
            self.at += 2 if mark == '"' and self.text[self.at] == "\\" else 1
        while len(fence) == 3 and self.text.startswith(fence, self.at + 1):  # quotation marks before the last three
            self.at += 1
        content = self.text[start : self.at]
        self.at += len(fence)
        return ESCAPE.sub(_unescape, content) if mark == '"' else content

    def _note(self, field: str, place: int) -> None:
        before, line = self.counted
        self.counted = (place, line + self.text.count("\n", before, place))
        self.lines.setdefault(field, self.counted[1])

    def _blanks(self) -> None:
        while self.text[self.at] in " \t":
            self.at += 1

    def _skip(self) -> bool:
        """Skips white space and comments; is there anything left?"""
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            elif self.text[self.at] in " \t\n":
                self.at += 1
            else:
                return True
        return False


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if code[0] in "uU" and len(code) > 1 else ESCAPED.get(code, code)
