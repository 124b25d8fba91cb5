"""Processes that do not outlive the one that started them."""

from __future__ import annotations

import os
import threading
import time

SECONDS = 0.2  # between two looks


def end_with(parent: int) -> None:
    """Starts a thread that ends this process as soon as ``parent`` is no longer its parent.

    The kernel's PR_SET_PDEATHSIG would not do: it is sent when the *thread* that started the process ends.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS)
    os._exit(1)
