"""A complaint about a field of a network, and the sentences that several checks share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LONGEST_VALUE, LONGEST_PATH = 80, 250  # of values and of paths in messages


class Complaint(NamedTuple):
    """A field, what is wrong with it in words, its value, what is allowed, and the exact place if it is another."""

    field: str
    problem: str
    value: str = ""
    allowed: str = ""
    place: str = ""


def shown(value: object) -> str:
    """A value as messages show it: on one line, and not too long."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:20]}... ({len(text)} characters)"


def named(path: object) -> str:
    """A path as messages show it: as it is, unless it is very long or would disturb the terminal."""
    text = str(path)
    return text if len(text) <= LONGEST_PATH and text.isprintable() else shown(text)


def unknown(field: str, name: object, known: Iterable[str], place: str = "") -> Complaint:
    """A name that does not exist."""
    names = ", ".join(n for n in known if n) or "none"
    return Complaint(field, f"names {shown(name)}, which is not known; known: {names}", shown(name), names, place)


def out_of_range(field: str, words: str, value: object, allowed: str, place: str = "") -> Complaint:
    """Too many or too few of something."""
    return Complaint(field, f"{words}; allowed: {allowed}", shown(value), allowed, place)


def wrong_value(field: str, allowed: str, value: object, place: str = "") -> Complaint:
    """A value that must be another."""
    return Complaint(field, f"must be {allowed}, not {shown(value)}", shown(value), allowed, place)
