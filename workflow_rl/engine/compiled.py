"""The decorator for compiled functions, with a cache on disk that can never be stale.

Numba decides whether a cached function is up to date by the file of that function alone: after an edit of a function
that it *calls* in another file, the old machine code would still be used. Here the cache lives in a directory named
after the text of every compiled file of the package, so any edit starts a new one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

PACKAGE = Path(__file__).resolve().parent.parent
CACHE_VARIABLE = "WORKFLOW_RL_CACHE_DIR"
MARK = "@compiled"
SETTINGS: Any = numba.core.config
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True}

F = TypeVar("F", bound=Any)


def compiled(function: F) -> F:
    """Compiles ``function`` with Numba at its first call: no Python objects, the interpreter lock released.

    Only functions of this package are cached, for the digest knows no other files.
    """
    directory = cache_directory()
    if directory is None or not Path(function.__code__.co_filename).resolve().is_relative_to(PACKAGE):
        return _compile(function)
    # Numba reads its cache directory only while it decorates, so this setting does not reach anybody else's functions.
    before, SETTINGS.CACHE_DIR = SETTINGS.CACHE_DIR, str(directory)
    try:
        return _compile(function, cache=True)
    finally:
        SETTINGS.CACHE_DIR = before


def _compile(function: F, **options: Any) -> F:
    decorate: Any = numba.njit(**OPTIONS, **options)
    compiled_function: F = decorate(function)
    return compiled_function


@cache
def cache_directory() -> Path | None:
    """Where machine code is kept between processes; None if no place can be written to (then each process compiles)."""
    chosen = os.environ.get(CACHE_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    roots = [Path(chosen)] if chosen else [PACKAGE / "__pycache__", Path(home) / "workflow_rl"]
    for root in roots:
        directory = root / f"compiled-{source_digest()}"
        if _writable(directory):
            _remove_older(directory)
            return directory
    return None


@cache
def source_digest() -> str:
    """Digest of the text of all compiled files of the package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if MARK.encode() in text:
            digest.update(path.name.encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def _writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def _remove_older(directory: Path) -> None:
    """Removes the caches of older source texts; whoever still uses one compiles again, nothing worse."""
    for other in directory.parent.glob("compiled-*"):
        if other != directory:
            shutil.rmtree(other, ignore_errors=True)
