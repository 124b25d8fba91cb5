"""``workflow-rl search``: from the options to a search on this machine or on a cluster, its view and its report."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from workflow_rl.cli.common import say
from workflow_rl.cli.search_view import SearchView
from workflow_rl.config import check_jobs
from workflow_rl.errors import UserError
from workflow_rl.presets import make_search_config
from workflow_rl.search.executor import Executor
from workflow_rl.search.findings import SearchResult

Where = tuple[str, float | None, float | None]  # address of a Ray cluster, CPUs and GPUs of each training


class _RunLog(io.TextIOBase):
    """Writes Ray's messages, which may be pages, to workers.log of the run; those before it exists are dropped."""

    def __init__(self, view: SearchView) -> None:
        self.view = view

    def write(self, text: str) -> int:
        """Adds a text."""
        if self.view.run:
            with open(Path(self.view.run) / "workers.log", "a", encoding="utf-8") as file:
                file.write(text)
        return len(text)


def search_and_report(
    preset: str, given: dict[str, Any], path: Path | None, resume: bool, jobs: int | None, where: Where, report: bool
) -> SearchResult:
    """Runs a search and returns its result.

    Args:
        preset: name of a preset.
        given: settings that were given.
        path: the run's directory; default: a new one.
        resume: whether to continue the run in ``path``.
        jobs: most trainings at once.
        where: the cluster that trains, if any.
        report: whether to write a report at the end.
    """
    at_once = check_jobs(jobs)
    ray, cpus, gpus = where
    if not ray and (cpus, gpus) != (None, None):
        raise UserError("--cpus-per-evaluation and --gpus-per-evaluation are for --ray.")
    config = make_search_config(preset, **({"in_flight": 0} if ray else {}) | given)
    view = SearchView(Console(stderr=True), say)
    with contextlib.ExitStack() as stack:
        trainers: Executor | int = at_once
        if ray:
            from workflow_rl.search.ray_executor import RayCluster

            trainers = stack.enter_context(RayCluster(ray, 1.0 if cpus is None else cpus, gpus or 0.0, jobs))
            stack.enter_context(contextlib.redirect_stdout(_RunLog(view)))  # Ray's own messages are no results
        from workflow_rl.engine.network_file import load_network
        from workflow_rl.search.run_search import new_search, resume_search  # only now: it takes seconds to import

        network = load_network()
        try:
            with view:
                if resume:
                    assert path is not None
                    result = resume_search(path, trainers, view, network)
                else:
                    result = new_search(config, path, trainers, view, network)
        except KeyboardInterrupt:
            if view.run:
                say(f"To go on: workflow-rl search --resume {view.run}")
            raise
    return _with_report(result) if report else result


def _with_report(result: SearchResult) -> SearchResult:
    """Writes the report; a failure to do so must not hide the result."""
    from workflow_rl.engine.network_file import load_network
    from workflow_rl.report.build import write_report

    say("writing the report")
    try:
        return replace(result, report=write_report([Path(result.run)], load_network())["report"])
    except Exception as error:
        say(f"There is no report: {error or type(error).__name__}")
        return result
