"""The decorator for compiled functions, with a cache on disk that can never be stale.

Numba decides whether a cached function is up to date by the file of that function alone: after an edit of a function
that it *calls*, or of a constant, in another file, the old machine code would still be used. Here the cache lives in a
directory named after the text of every file of the package, so any edit starts a new one. A cache that cannot be read
or written counts as empty.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

PACKAGE = Path(__file__).resolve().parent.parent
BENCHMARKS = PACKAGE.parent / "benchmarks"  # in a checkout
CACHE_VARIABLE = "WORKFLOW_RL_CACHE_DIR"
KEEP_SECONDS = 14 * 24 * 3600
SETTINGS: Any = numba.core.config
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True}

F = TypeVar("F", bound=Any)


def compiled(function: F) -> F:
    """Compiles ``function`` with Numba at its first call: no Python objects, the interpreter lock released.

    Its machine code is copied into every compiled function that calls it. Only functions of this package and of the
    benchmarks beside it are cached, since the digest covers no other files.
    """
    return _compiled(function, OPTIONS)


def compiled_once(function: F) -> F:
    """The same for a large function with several callers, which call it instead of copying it."""
    return _compiled(function, OPTIONS | {"forceinline": False})


def _compiled(function: F, options: dict[str, Any]) -> F:
    path = Path(function.__code__.co_filename).resolve()
    root = next((root for root in (PACKAGE, BENCHMARKS) if path.is_relative_to(root)), None)
    directory = cache_directory(root) if root else None
    if directory is None:
        return _compile(function, **options)
    # Numba reads its cache directory only while it decorates, so this setting does not reach anybody else's functions.
    before, SETTINGS.CACHE_DIR = SETTINGS.CACHE_DIR, str(directory)
    try:
        return _compile(function, cache=True, **options)
    finally:
        SETTINGS.CACHE_DIR = before


def _compile(function: F, **options: Any) -> F:
    decorate: Any = numba.njit(**options)
    dispatcher: Any = decorate(function)
    if options.get("cache"):
        dispatcher._cache = _Cache(dispatcher._cache)
    compiled_function: F = dispatcher
    return compiled_function


@cache
def cache_directory(root: Path) -> Path | None:
    """Where machine code is kept between processes; None if no place is writable (then each process compiles)."""
    chosen = os.environ.get(CACHE_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    roots = [Path(chosen)] if chosen else [root / "__pycache__", Path(home) / "workflow_rl"]
    for place in roots:
        directory = place / f"compiled-{source_digest(root)}"
        if _writable(directory):
            _remove_older(directory)
            return directory
    return None


@cache
def source_digest(root: Path = PACKAGE) -> str:
    """Digest of all source files of the package: machine code may contain constants of any of them."""
    digest = hashlib.sha256()
    for path in sorted({*PACKAGE.rglob("*.py"), *root.rglob("*.py")}):
        digest.update(str(path.relative_to(PACKAGE.parent)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _remove_older(directory: Path) -> None:
    """Removes caches of other source texts that nobody has used for two weeks."""
    os.utime(directory)
    for other in directory.parent.glob("compiled-*"):
        if other != directory and time.time() - other.stat().st_mtime > KEEP_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


class _Cache:
    """Numba's cache of one function; a damaged entry or a full disk is a cache miss, not an error."""

    ERRORS = (OSError, EOFError, pickle.PickleError, ValueError, TypeError, KeyError, IndexError, AttributeError)

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *arguments: Any) -> Any:
        """The compiled function, or None."""
        try:
            return self._cache.load_overload(*arguments)
        except self.ERRORS:
            return None

    def save_overload(self, *arguments: Any) -> None:
        """Stores the compiled function, if possible."""
        with contextlib.suppress(*self.ERRORS):
            self._cache.save_overload(*arguments)
