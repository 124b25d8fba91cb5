"""Errors that a user can cause and fix."""

from __future__ import annotations

from collections.abc import Iterable


class UserError(ValueError):
    """Invalid input; the message is one sentence that names the invalid value and what is allowed.

    The command line prints it without a traceback and exits with code 2.
    """


class NetworkError(UserError):
    """A network file that is missing, damaged or contradicts itself."""


class TraceError(UserError):
    """A file that is not a recorded trace of CAGE Challenge 2, or a damaged one."""


class MissingExtraError(UserError):
    """An optional package is not installed; the message names the extra to install."""


def install_hint(extra: str) -> str:
    """How to install an extra, from a wheel and in a checkout."""
    return f"install it with: pip install 'workflow-rl[{extra}]', in a checkout pip install -e '.[{extra}]'"


class RunInUseError(UserError):
    """A run directory that is locked by another process."""


class SimulatorError(UserError):
    """Genuine CybORG failed, or its process could not be started or died; the run can be resumed."""


def check_choice(what: str, value: object, allowed: Iterable[str]) -> str:
    """Returns ``value`` if it is one of ``allowed``, else raises an error that names both."""
    names = list(allowed)
    if not isinstance(value, str) or value not in names:
        raise UserError(f"unknown {what} {value!r}; allowed: {', '.join(names)}.")
    return value
