"""The errors that a user can cause and mend."""

from __future__ import annotations

from collections.abc import Iterable


class UserError(ValueError):
    """Bad input: its message is one sentence that names the value at fault and what is allowed.

    The command line prints it without a traceback and exits with code 2.
    """


class NetworkError(UserError):
    """A network file that is missing, damaged or contradicts itself."""


class TraceError(UserError):
    """A file that is not a recorded trace of CAGE Challenge 2, or a damaged one."""


class MissingExtraError(UserError):
    """An optional package is needed and not installed; the message says which extra to install."""


class RunInUseError(UserError):
    """A run directory that another process holds."""


class SimulatorError(UserError):
    """Genuine CybORG failed, or a process that plays it could not be started or died; a run can be resumed."""


def check_choice(what: str, value: object, allowed: Iterable[str]) -> str:
    """Returns ``value`` if it is one of ``allowed``, else raises a sentence that names both."""
    names = list(allowed)
    if not isinstance(value, str) or value not in names:
        raise UserError(f"unknown {what} {value!r}; allowed: {', '.join(names)}.")
    return value
