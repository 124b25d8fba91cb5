"""Stores what ``workflow-rl bench env --hosts 13,30,60`` measures.

python -m benchmarks hosts
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.command import main
from workflow_rl.cli.common import say
from workflow_rl.studies.bench import bench_hosts

REDS, HOSTS, SECONDS = ("bline", "meander"), (13, 30, 60), 5.0


def measure() -> dict[str, Any]:
    """The speed of the engine by the size of the network."""
    figures = asdict(bench_hosts(HOSTS, SECONDS, REDS, say))
    del figures["machine"]  # write_result adds it
    return figures


if __name__ == "__main__":
    main("hosts")
