"""Stores what ``workflow-rl bench env`` measures.

python -m benchmarks env
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from benchmarks.command import main
from workflow_rl.engine.network_file import load_network
from workflow_rl.studies.bench import bench_env, bench_hosts

REDS, HOSTS = ("bline", "meander"), (13, 30, 60)


def measure() -> dict[str, Any]:
    """The speeds of both environments, and of genuine CybORG."""
    figures = asdict(bench_env(1.0, REDS, True, load_network(), _say))
    by_hosts = asdict(bench_hosts(HOSTS, 5.0, REDS, _say))
    del figures["machine"], by_hosts["machine"]  # write_result adds it
    return figures | {"by_hosts": by_hosts}


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    main("env")
