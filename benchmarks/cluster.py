"""The search on a Ray cluster: what Ray costs, what survives, how far it goes.

python -m benchmarks cluster overhead     # the default search's first stage with --ray local and local processes
python -m benchmarks cluster faults       # three nodes, one killed and one added in the middle
python -m benchmarks cluster suggestions  # seconds of suggestions among 40,320 orders
python -m benchmarks cluster evaluations  # seconds, megabytes and the driver's work per training
python -m benchmarks cluster scaling      # one and two parallel trainings
python -m benchmarks cluster model        # up to 10,000 workers, simulated from the figures of the two before
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.cluster_model import Cluster, Costs, Work
from benchmarks.command import main
from benchmarks.results import RESULTS
from workflow_rl.engine.network_file import load_network
from workflow_rl.presets import make_search_config
from workflow_rl.runs import read_config, read_events, read_result
from workflow_rl.search import ray_executor as cluster
from workflow_rl.search import remote_training
from workflow_rl.search.ray_executor import RayCluster
from workflow_rl.search.run_search import new_search
from workflow_rl.search.strategies import GPUCBSearch
from workflow_rl.search.worker_pool import train_in

REPEATS = 3
FIRST_STAGE = ("--no-finish", "--no-report")
LONGER = {"min_episodes": 200, "max_episodes": 200, "n_workflows": 6}  # trainings four times as long as the default
ITEMS = tuple("abcdefgh")
WORKERS, TRAININGS = (10, 100, 1000, 10_000), (1, 10, 60, 600, 3600)  # of the model; seconds of a training


def program(*words: str) -> float:
    """Seconds of ``workflow-rl`` with these words, from start to end of the process."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "workflow_rl.cli", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def overhead() -> dict[str, Any]:
    """The same search by local processes and by Ray, turn by turn."""
    seconds: dict[str, list[float]] = {"processes": [], "ray": []}
    with tempfile.TemporaryDirectory() as folder:
        program("search", "--n-workflows", "2", *FIRST_STAGE, "--run-dir", f"{folder}/warm-up")
        for number in range(REPEATS):
            for way, where in (("processes", ()), ("ray", ("--ray", "local"))):
                path = f"{folder}/{number}-{way}"
                seconds[way].append(program("search", *where, *FIRST_STAGE, "--run-dir", path))
        same = same_policies(Path(f"{folder}/0-processes"), Path(f"{folder}/0-ray"))
    middle = {way: median(times) for way, times in seconds.items()}
    return middle | {"seconds": seconds, "ratio": middle["ray"] / middle["processes"], "same_weights": same}


def same_policies(one: Path, other: Path) -> int:
    """Trainings of two searches with the same weights, bit by bit."""
    return sum(
        (training / "policy.safetensors").read_bytes()
        == (other / "trainings" / training.name / "policy.safetensors").read_bytes()
        for training in (one / "trainings").iterdir()
    )


def faults() -> dict[str, Any]:
    """A search of twenty workflows on three nodes: one is killed without grace, later another one joins."""
    from tests.ray_cluster import add_node, kill_busy_node, three_nodes

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        command = [sys.executable, "-m", "workflow_rl.cli", "search", "--ray", three_nodes(), *FIRST_STAGE]
        process = subprocess.Popen([*command, "--run-dir", str(path)], stdout=subprocess.DEVNULL)
        _wait_for(lambda: _count(path, "evaluation") >= 4)
        kill_busy_node()
        _wait_for(lambda: _count(path, "evaluation") >= 10)
        add_node()
        assert process.wait() == 0
        events, trainings = read_events(path), sorted((path / "trainings").iterdir())
        same = 0
        for training in trainings:
            here = Path(folder) / "here" / training.name
            train_in(here, read_config(training), load_network())
            same += (here / "policy.safetensors").read_bytes() == (training / "policy.safetensors").read_bytes()
        evaluated = [event["index"] for event in events if event["kind"] == "evaluation"]
        return {
            "evaluations": len(evaluated),
            "lost": len({*range(20)} - {*evaluated}),
            "twice": len(evaluated) - len({*evaluated}),
            "trainings": len(trainings),
            "same_weights_as_one_process": same,
            "restarted": sum(event["kind"] == "restarted" for event in events),
            "machines": [event["text"] for event in events if event["kind"] == "machines"],
        }


def _count(path: Path, kind: str) -> int:
    return sum(event["kind"] == kind for event in read_events(path))


def _wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def informed(observations: int, seed: int = 0) -> GPUCBSearch:
    """A search among eight unit types that has observed this many orders; every pair has an effect."""
    search, rng = GPUCBSearch(ITEMS), np.random.default_rng(seed)
    effects = rng.normal(size=28)
    for order in some_orders(observations, seed + 1):
        pairs = [order.index(a) < order.index(b) for i, a in enumerate(ITEMS) for b in ITEMS[i + 1 :]]
        search.observe(order, float(effects @ np.array(pairs)) + 0.3 * rng.normal(), 0.3)
    return search


def some_orders(number: int, seed: int) -> list[tuple[str, ...]]:
    """Orders of the eight types."""
    rng = np.random.default_rng(seed)
    return [tuple(ITEMS[i] for i in rng.permutation(len(ITEMS))) for _ in range(number)]


def timed(work: Callable[[], Any]) -> float:
    """Seconds of some work."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def suggestions() -> dict[str, Any]:
    """Seconds of a suggestion with 500 observations and 100 pending; of its parts, as the search grows."""
    torch.set_num_threads(1)
    timed(lambda: informed(50).suggest(2))
    pending = some_orders(100, 9)
    first = [timed(partial(informed(500, seed).suggest, 1, pending)) for seed in range(REPEATS)]
    figures: dict[str, Any] = {"seconds": median(first), "all": first, "observations": 500, "pending": 100}
    figures["fit_seconds"] = median(timed(informed(500, 100 + seed).model) for seed in range(REPEATS))
    search = informed(500)
    search.model()
    figures["next_seconds"] = median(timed(lambda: search.suggest(1, pending)) for _ in range(REPEATS))
    figures["hundred_at_once_seconds"] = timed(lambda: search.suggest(100, pending))
    figures["growth"] = [_parts(rows) for rows in (300, 600, 1200, 2400, 4800)]
    return figures


def _parts(rows: int) -> dict[str, float]:
    """Seconds of each step of a suggestion, by the number of observations."""
    search = informed(rows)
    with_fit = timed(search.model)
    model = search.model()
    factor = timed(model._factorise)
    one = timed(lambda: search.suggest(1))
    many = timed(lambda: search.suggest(41))
    return {"rows": rows, "fit": with_fit - factor, "factor": factor, "climb": one, "choose": (many - 2 * one) / 40}


@dataclass
class Weighed:
    """Bytes of the messages between driver and workers, and the driver's seconds for them."""

    sizes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Wraps the two functions that pack a training and keep its messages."""
        module: Any = remote_training
        pack, keep = module.pack, module.keep

        def weighed_pack(*arguments: Any) -> Any:
            began = time.perf_counter()
            parcel = pack(*arguments)
            self.seconds["give_out"].append(time.perf_counter() - began)
            self.sizes["parcel"].append(len(pickle.dumps(parcel)))
            return parcel

        def weighed_keep(task: Any, kind: str, value: Any) -> Any:
            self.sizes[kind].append(len(pickle.dumps(value)))
            began = time.perf_counter()
            kept = keep(task, kind, value)
            self.seconds["take_in"].append(time.perf_counter() - began)
            return kept

        module.pack, module.keep = weighed_pack, weighed_keep
        try:
            yield
        finally:
            module.pack, module.keep = pack, keep


def evaluations() -> dict[str, Any]:
    """What a training costs and what is sent: searches with --ray local, their messages measured."""
    with tempfile.TemporaryDirectory() as folder:  # compiles what is not compiled yet
        program("search", "--n-workflows", "1", *FIRST_STAGE, "--run-dir", f"{folder}/run")
    figures: dict[str, Any] = {"default": _weighed_search({}), "longer_trainings": _weighed_search(LONGER)}
    figures["ray_seconds"], figures["look_seconds"] = _empty_tasks()
    figures["start_seconds"] = program_start()
    return figures


def _weighed_search(changes: dict[str, Any]) -> dict[str, Any]:
    config, weighed = make_search_config(in_flight=0, finish=False, **changes), Weighed()
    with tempfile.TemporaryDirectory() as folder, weighed.measuring():
        new_search(
            config, Path(folder) / "run", RayCluster("local", checkpoint_seconds=1.0), lambda _: None, load_network()
        )
        trainings = list((Path(folder) / "run" / "trainings").iterdir())
        times = [(read_result(path) or {})["seconds"] for path in trainings]
        memory = max(event["memory_mb"] for path in trainings for event in read_events(path))
    megabytes = {kind: float(np.mean(found)) / 1e6 for kind, found in weighed.sizes.items()}
    return {
        "trainings": len(times),
        "worker_memory_mb": memory,
        "training_seconds": {"median": median(times), "all": sorted(times)},
        "megabytes": megabytes,
        "driver_seconds": {step: float(np.mean(found)) for step, found in weighed.seconds.items()},
        "megabytes_per_evaluation": config.replicates * (megabytes["parcel"] + megabytes[remote_training.DONE]),
        "seconds_per_evaluation": config.replicates * float(np.mean(times)),
    }


def program_start() -> float:
    """Seconds until a process has imported what trainings need."""
    command = [sys.executable, "-c", "import ray, workflow_rl.search.remote_training"]
    return median(timed(partial(subprocess.run, command, check=True)) for _ in range(REPEATS))


def _empty_tasks(number: int = 1000) -> tuple[float, float]:
    """The driver's own seconds for a Ray task that yields two messages and does nothing; and to look at one."""
    import ray

    while ray.is_initialized():  # the cluster of the searches ends in the background
        time.sleep(0.1)
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)

    def nothing() -> Any:
        yield cluster.STARTED, "node"
        yield remote_training.DONE, {}

    task: Any = ray.remote(nothing).options(num_returns="streaming", num_cpus=1)
    ray.get([next(task.remote()) for _ in range(2)])
    began = time.process_time()
    running = [task.remote() for _ in range(number)]
    waits = timed(lambda: [ray.wait(running, num_returns=number, timeout=0) for _ in range(10)]) / 10
    for messages in running:
        for message in messages:
            ray.get(message)
    spent = (time.process_time() - began) / number
    ray.shutdown()
    return spent, waits / number


def scaling() -> dict[str, Any]:
    """One and two trainings in parallel on a cluster of this machine: how much of the second core is used."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (1, 2):
            path = Path(folder) / f"{jobs}"
            program("search", "--ray", "local", "--jobs", str(jobs), *FIRST_STAGE, "--in-flight", "2",
                    "--run-dir", str(path))  # fmt: skip
            times = [event["seconds"] for event in read_events(path) if event["kind"] == "evaluation"]
            figures[f"seconds_{jobs}"] = times[-1] - times[0]  # without the start
    figures["efficiency"] = figures["seconds_1"] / (2 * figures["seconds_2"])
    return figures


def model() -> dict[str, Any]:
    """Workers from ten to ten thousand, each with about five trainings to do."""
    said, weighed = _stored("suggestions"), _stored("evaluations")
    largest = said["growth"][-1]
    rows = largest["rows"]
    of_ray = weighed["ray_seconds"] / 2
    costs = Costs(
        give_out=weighed["default"]["driver_seconds"]["give_out"] + of_ray,
        take_in=weighed["default"]["driver_seconds"]["take_in"] + of_ray,
        look=2 * weighed["look_seconds"],
        fit=said["fit_seconds"],
        factor=largest["factor"] / rows**3,
        climb=largest["climb"] / rows**2,
        climb_least=said["growth"][0]["climb"],
        choose=largest["choose"] / rows,
    )
    longer = np.array(weighed["longer_trainings"]["training_seconds"]["all"])
    warm = longer[longer < 1.3 * np.median(longer)]  # a process's first training loads the compiled rules
    start = weighed["start_seconds"] + float(longer.max() - warm.mean())
    figures: dict[str, Any] = {
        "costs": asdict(costs), "start_seconds": start, "spread": float(warm.std() / warm.mean()), "searches": {},
    }  # fmt: skip
    for workers in WORKERS:
        for seconds in TRAININGS:
            work = Work(warm / warm.mean() * seconds, start)
            ways = {
                "as_it_is": (work, costs),
                "with_late_ones": (replace(work, late_share=0.01), costs),
                "one_by_one": (work, replace(costs, batches=False)),
            }
            for name, (done, used) in ways.items():
                outcome = asdict(Cluster(workers, max(40, workers), done, used).go())
                figures["searches"].setdefault(f"{workers}", {}).setdefault(f"{seconds}", {})[name] = outcome
    return figures


def _stored(name: str) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((RESULTS / f"cluster_{name}.json").read_text("utf-8"))["figures"]
    return figures


if __name__ == "__main__":
    main("cluster")
