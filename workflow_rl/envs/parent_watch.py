"""Processes that do not outlive the one that started them."""

from __future__ import annotations

import os
import threading
import time

SECONDS = 0.2  # how soon a process notices that nobody needs it any more


def end_with(parent: int) -> None:
    """Ends this process as soon as ``parent`` is no longer its parent, whatever it is doing; returns at once.

    Looking now and then works where a signal of the kernel would not: PR_SET_PDEATHSIG comes when the *thread* that
    started the process ends.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS)
    os._exit(1)
