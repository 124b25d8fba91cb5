"""Processes of genuine CybORG: started by Gymnasium, ended whatever happens, and their deaths explained."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_all_start_methods
from typing import Any

from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from workflow_rl.envs.parent_watch import end_with
from workflow_rl.errors import SimulatorError


class CyborgProcesses(AsyncVectorEnv):
    """Gymnasium's environments in processes, which raises the error of a process without showing its traceback."""

    def _raise_if_errors(self, successes: Iterable[bool]) -> None:
        if not all(successes):
            _, kind, error, _ = self.error_queue.get()
            raise error if isinstance(error, Exception) else kind(error)


def in_own_process(owner: int, make: Callable[[], Any]) -> Any:
    """Makes an environment; outside of its owner's process one that Ctrl-C does not reach and that ends with it."""
    if os.getpid() != owner:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the life of the process)
        end_with(owner)
    return make()


def start_processes(makers: Sequence[Callable[[], Any]]) -> CyborgProcesses:
    """One process for each maker of an environment, all or none."""
    envs = CyborgProcesses.__new__(CyborgProcesses)
    how = "fork" if "fork" in get_all_start_methods() else "spawn"
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            CyborgProcesses.__init__(envs, makers, context=how, autoreset_mode=AutoresetMode.SAME_STEP)
    except (EOFError, ConnectionError) as error:
        cause = cause_of_death(envs)
        end_processes(envs)
        raise SimulatorError(f"{cause} at its start.") from error
    except OSError as error:
        end_processes(envs)
        raise SimulatorError(f"cannot start {len(makers)} processes of CybORG: {_why(error)}.") from error
    except BaseException:
        end_processes(envs)
        raise
    return envs


def _why(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "shared memory (/dev/shm) is full"
    if error.errno == errno.EAGAIN:
        return "the system allows no more processes"
    return str(error.strerror or error)


def end_processes(envs: Any) -> None:
    """Ends whatever was started and gives back its files; CybORG has nothing to save, so nobody is asked."""
    envs.closed = True
    processes = [process for process in getattr(envs, "processes", []) if process.pid is not None]
    if processes and processes[0]._parent_pid != os.getpid():  # a process that was forked later has a copy of this
        return
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(2)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
    for pipe in getattr(envs, "parent_pipes", []):
        if pipe is not None:
            pipe.close()
    if hasattr(envs, "error_queue"):
        envs.error_queue.close()
        envs.error_queue = None  # and with it its pipe
    envs.processes = []


def cause_of_death(envs: Any) -> str:
    """Which environment's process is gone, and how."""
    for number, process in enumerate(getattr(envs, "processes", [])):
        process.join(0.5 if number == 0 else 0.05)
        code = process.exitcode
        if code is not None:
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            return f"the process of CybORG environment {number} (id {process.pid}) {how}"
    return "a process of CybORG no longer answers"
