"""Running the program as a user does, and comparing what environments return."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import deque
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from tests.conftest import ROOT
from workflow_rl.cli import __main__ as cli
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.engine.networks.check import contradictions
from workflow_rl.envs.game import Games
from workflow_rl.errors import UserError
from workflow_rl.search.executor import Executor, Job, Trained
from workflow_rl.search.worker_pool import train_in

SECONDS = 600  # after which a command counts as hanging


@cache
def _load_everything() -> None:
    """Every command once with bad input: what it imports is then there for all forks of this process."""
    for words in ("train --lr nan", "search --lr nan", "evaluate ?", "report ?", "watch ?", "export ? ?", "replay ?",
                  "runs --folder ?"):  # fmt: skip
        with contextlib.suppress(UserError):
            cli.app(words.split(), standalone_mode=False)


def run(*arguments: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs ``workflow-rl`` with ``arguments`` in a process of its own.

    It is forked from that of the tests, which has imported and compiled everything: seconds less for each of some
    hundred runs. With an ``environment`` it is a new process; so are those of the README's commands
    (tests/test_docs.py) and of every test that is about starts, signals or caches.
    """
    words = [str(argument) for argument in arguments]
    if environment:
        command = [sys.executable, "-m", "workflow_rl.cli", *words]
        environment = os.environ | environment
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, timeout=SECONDS)
    _load_everything()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            _become_the_program(words, cwd, output.fileno(), errors.fileno())
        end = time.monotonic() + SECONDS
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                end = math.inf
            time.sleep(0.005)
        code = os.waitstatus_to_exitcode(ended[1])
        for file in (output, errors):
            file.seek(0)
        return subprocess.CompletedProcess(words, code, output.read(), errors.read())


def _become_the_program(words: list[str], cwd: Path, output: int, errors: int) -> NoReturn:
    code: Any = 1
    try:
        os.chdir(cwd)
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
            os.dup2(file, number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", 1)
        sys.argv = ["workflow-rl", *words]
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)  # as Python starts
        cli.main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def run_json(*arguments: str | Path) -> dict[str, Any]:
    """Runs ``workflow-rl ... --json`` and returns the object on the last line of standard output."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def assert_refused(done: subprocess.CompletedProcess[str], complaint: str) -> None:
    """Exit code 2, one sentence on standard error, nothing on standard output, no traceback."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def games(red_agent: str, max_steps: int = 100, takeover: str = "0", edition: str = "current") -> Games:
    """Games of CAGE Challenge 2."""
    return Games(load_network(), red_agent, edition, max_steps, takeover)


SPLIT = {"User1": "desk", "Enterprise2": "gate", "User3": "shop", "Enterprise0": "store", "Op_Host0": "lab",
         "User2": "hall", "Op_Host2": "yard"}  # fmt: skip
COPIED = ("User1", "User2", "User3", "User4", "Enterprise0", "Enterprise1", "Op_Host0")


def grown(n_hosts: int = 13, n_types: int = 5) -> Network:
    """CAGE Challenge 2 with more hosts, each like one that is there, and with unit types split."""
    network = load_network()
    finer = dict(list(SPLIT.items())[: n_types - len(network.unit_types)])
    hosts = [replace(host, unit_type=finer.get(host.name, host.unit_type)) for host in network.hosts]
    own = {host.name: host for host in hosts}
    subnets = {subnet.name: list(subnet.hosts) for subnet in network.subnets}
    for number in range(n_hosts - len(hosts)):
        like = own[COPIED[number % len(COPIED)]]
        copy = replace(like, name=f"{like.name.rstrip('0123456789')}{10 + number}")
        hosts.append(copy)
        subnets[network.subnet_of(like.name)].append(copy.name)
    users = tuple(host.name for host in hosts if host.name in subnets["User"] and host.reveals)
    red = replace(network.red, programs={"bline": replace(network.red.programs["bline"], users=users)})
    grown_network = replace(
        network, name="grown", unit_types=(*network.unit_types, *finer.values()), hosts=tuple(hosts), red=red,
        subnets=tuple(replace(subnet, hosts=tuple(subnets[subnet.name])) for subnet in network.subnets),
    )  # fmt: skip
    assert not list(contradictions(grown_network))
    return grown_network


def same(left: Any, right: Any) -> bool:
    """Are two infos, arrays or tuples of them the same, Nones included?"""
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray) and left.dtype == object:
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return np.array_equal(left, right)


class Here(Executor):
    """Trains in this process, one after the other."""

    room = 1

    def __init__(self) -> None:
        self.jobs = deque[Job]()

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def news(self, timeout: float) -> Trained:
        assert timeout > 0
        job = self.jobs.popleft()
        return Trained(job.name, train_in(job.path, job.config, job.network))

    def close(self) -> None:
        self.jobs.clear()


def agent_in(folder: Path) -> ModuleType:
    """The exported module, as it lies there."""
    spec = importlib.util.spec_from_file_location("exported_agent_in_a_folder", folder / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
