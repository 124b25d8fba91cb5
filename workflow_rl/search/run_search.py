"""How users start and resume searches; ParallelWorkflowRLTrainer has the names of the design documents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from workflow_rl.config import SearchConfig, check_jobs
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import CAGE2, as_network
from workflow_rl.engine.networks.copies import AnyNetwork, chosen_network, copy_of
from workflow_rl.errors import UserError
from workflow_rl.presets import make_search_config, task_of
from workflow_rl.runs import Run, new_run_directory, read_result, read_search_config
from workflow_rl.search.executor import Executor, Say
from workflow_rl.search.finalists import LENGTHS
from workflow_rl.search.findings import SearchResult
from workflow_rl.search.outcome import training_config
from workflow_rl.search.strategies import make_search
from workflow_rl.search.worker_pool import WorkerPool
from workflow_rl.search.workflow_search import WorkflowSearch
from workflow_rl.training.train_task import check_task


class ParallelWorkflowRLTrainer:
    """The search with the names of the design documents.

        trainer = ParallelWorkflowRLTrainer(n_envs=200, n_workflows=20)
        result = trainer.run_workflow_search()
        print(result.best)

    Args:
        n_envs: number of parallel environments of each training.
        n_workflows: number of evaluations.
        train_episodes_per_env: most episodes of each environment; ``max_episodes`` on the command line.
        compliance_threshold: compliance at which a workflow counts as followed.
        update_every_steps: steps of each environment between two updates; ``update_steps`` on the command line.
        jobs: number of trainings at once; default: one per core.
        run_dir: directory of the run; default: a new one under runs/.
        preset: name of a preset.
        settings: any other setting of ``workflow-rl search``, also ``network``: a network, the path of its file or the
            name of a bundled one.
    """

    def __init__(
        self,
        n_envs: int | None = None,
        n_workflows: int | None = None,
        train_episodes_per_env: int | None = None,
        compliance_threshold: float | None = None,
        update_every_steps: int | None = None,
        jobs: int | None = None,
        run_dir: str | Path | None = None,
        preset: str = "",
        **settings: Any,
    ) -> None:
        named = {
            "n_envs": n_envs,
            "n_workflows": n_workflows,
            "max_episodes": train_episodes_per_env,
            "compliance_threshold": compliance_threshold,
            "update_steps": update_every_steps,
        }
        given = {name: value for name, value in named.items() if value is not None}
        for name in given.keys() & settings.keys():
            raise UserError(f"{name} is given twice.")
        self.network = network = as_network(settings.pop("network", CAGE2))
        values = task_of(preset, given | settings, network.red_agents, network.editions)
        self.config = make_search_config(preset, hosts=len(network.hosts), **values)
        self._by_room = "in_flight" not in settings
        self.jobs, self.run_dir = check_jobs(jobs), Path(run_dir) if run_dir else None
        _check(self.config, self.network)

    def run_workflow_search(self, say: Say = lambda _: None, executor: Executor | None = None) -> SearchResult:
        """Runs the search; ``to_json()`` of the result is the output of ``workflow-rl search --json``.

        Args:
            say: called with every event.
            executor: where to train, e.g. a :class:`ray_executor.RayCluster`, whose room then decides how many
                evaluations are in flight unless ``in_flight`` was given; default: ``jobs`` processes of this machine.
        """
        by_room = executor is not None and self._by_room
        config = replace(self.config, in_flight=0) if by_room else self.config
        return new_search(config, self.run_dir, executor or self.jobs, say, self.network)


def new_search(
    config: SearchConfig, path: Path | None, trainers: Executor | int, say: Say, network: Network
) -> SearchResult:
    """Runs a search in a new directory and returns its result.

    Args:
        config: the settings.
        path: the directory; default: a new one under runs/.
        trainers: an executor, or a number of processes of this machine.
        say: called with every event.
        network: the hosts and subnets to defend.
    """
    with _closing(trainers):
        _check(config, network)
        _check_room(trainers)
        run = Run.create(path or new_run_directory("search"), config, copy_of(network))
        return _finish(run, trainers, say, network)


def resume_search(path: Path, trainers: Executor | int, say: Say, network: AnyNetwork | None = None) -> SearchResult:
    """Continues an interrupted search on its own network and returns its result; refuses another ``network``."""
    with _closing(trainers):
        read_search_config(path)  # a search at all?
        if read_result(path) is not None:
            raise UserError(f"{path} is finished; there is nothing to resume.")
        own = chosen_network(path, network)
        _check_room(trainers)
        return _finish(Run.open_search(path), trainers, say, own)


@contextmanager
def _closing(trainers: Executor | int) -> Iterator[None]:
    """Closes the caller's executor, also if the search never starts."""
    try:
        yield
    finally:
        if isinstance(trainers, Executor):
            trainers.close()


def _check(config: SearchConfig, network: Network) -> None:
    """Refuses impossible settings, and a strategy that cannot start."""
    check_task(training_config(config, ",".join(network.unit_types), 0, 0), network)
    make_search(config.strategy, network.unit_types, config.train.seed)


def _check_room(trainers: Executor | int) -> None:
    if isinstance(trainers, Executor) and trainers.room < 1:
        raise UserError("no machine has room for a training; ask for less of each, or add machines.")


def _finish(run: Run[SearchConfig], trainers: Executor | int, say: Say, network: Network) -> SearchResult:
    try:
        return WorkflowSearch(run, _executor(run, trainers), network, say).go()
    finally:
        run.close()


def _executor(run: Run[SearchConfig], trainers: Executor | int) -> Executor:
    if isinstance(trainers, Executor):
        return trainers
    config = run.config
    width = max(config.in_flight, config.finish * config.finalists * len(LENGTHS)) if config.in_flight else 0
    most = width * config.replicates  # trainings that can ever be in flight
    return WorkerPool(min(trainers, most) if most else trainers, run.path / "workers.log")
