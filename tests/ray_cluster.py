"""The one Ray cluster of the tests: three nodes of one CPU on this machine, started when a test first asks for it."""

from __future__ import annotations

import atexit
import time
from pathlib import Path
from typing import Any

from workflow_rl.search import ray_executor as cluster

NODES = 3
_cluster: Any = None


def three_nodes() -> str:
    """Sees to it that the cluster has its three nodes, whatever a test did to them; returns its address."""
    global _cluster
    if _cluster is None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False}
        system = {"worker_niceness": 0}  # Ray's 15 would wait for all other tests
        _cluster = Cluster(initialize_head=True, head_node_args=head | {"_system_config": system})
        atexit.register(_cluster.shutdown)
    while len(_cluster.list_all_nodes()) < NODES:
        add_node()
    return str(_cluster.address)


def wait_for_the_end_of_the_connection() -> None:
    """An executor leaves Ray in the background; if its trainings are forgotten meanwhile, Ray ends this process."""
    assert cluster._connection.acquire(timeout=60), "still connected"
    cluster._connection.release()


def add_node() -> None:
    """A further node of one CPU."""
    _cluster.add_node(num_cpus=1)


def kill_busy_node() -> None:
    """Ends a node that trains, not the head, without grace."""
    end = time.monotonic() + 60
    while True:
        assert time.monotonic() < end, "no node trains"
        busy = {_parent(pid) for pid in processes("ray::training")}
        for node in _cluster.list_all_nodes():
            if node is not _cluster.head_node and _raylet(node) in busy:
                _cluster.remove_node(node, allow_graceful=False)
                return


def trainers(name: str = "") -> list[int]:
    """Processes of the cluster that train, or those that train ``name``."""
    own = {_raylet(node) for node in _cluster.list_all_nodes()}
    return [pid for pid in processes(f"ray::training {name}".strip()) if _parent(pid) in own]


def _raylet(node: Any) -> int:
    return int(node.all_processes["raylet"][0].process.pid)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def processes(title: str) -> list[int]:
    """Processes of this machine whose command line begins with ``title``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text("utf-8")
        except OSError:
            continue
        if words.startswith(title):
            found.append(int(path.parent.name))
    return found
