"""``workflow-rl search``: from the options to a search on this machine or on a cluster, its view and its report."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from rich.console import Console

from workflow_rl.cli.printing import say
from workflow_rl.cli.search_view import SearchView
from workflow_rl.config import check_jobs
from workflow_rl.errors import UserError
from workflow_rl.presets import make_search_config

Where = tuple[str, float | None, float | None]  # address of a Ray cluster, CPUs and GPUs of each training


class _RunLog(io.TextIOBase):
    """Takes what Ray prints, which may be pages, into workers.log of the run; what comes before it is left out."""

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
) -> dict[str, Any]:
    """Runs a search and returns its result.

    Args:
        preset: name of a preset.
        given: settings that were given.
        path: the run's directory; default: a new one.
        resume: whether the run goes on.
        jobs: most trainings at once.
        where: the cluster that trains, if any.
        report: whether to write a report at the end.
    """
    at_once = check_jobs(jobs)
    ray, *resources = where
    if not ray and resources != [None, None]:
        raise UserError("--cpus-per-evaluation and --gpus-per-evaluation are for --ray.")
    config = make_search_config(preset, **({"in_flight": 0} if ray else {}) | given)
    view = SearchView(Console(stderr=True), say)
    with contextlib.ExitStack() as stack:
        trainers: Any = at_once
        if ray:
            from workflow_rl.search.ray_executor import RayCluster

            cpus, gpus = resources
            trainers = RayCluster(ray, 1.0 if cpus is None else cpus, gpus or 0.0, jobs)
            stack.enter_context(contextlib.closing(trainers))
            stack.enter_context(contextlib.redirect_stdout(_RunLog(view)))  # Ray's own messages are no results
        from workflow_rl.search.run_search import new_search, resume_search  # only now: it takes seconds to import

        try:
            with view:
                if resume:
                    assert path is not None
                    result = resume_search(path, trainers, view)
                else:
                    result = new_search(config, path, trainers, view)
        except KeyboardInterrupt:
            if view.run:
                say(f"To go on: workflow-rl search --resume {view.run}")
            raise
    return result | _report(Path(result["run"])) if report else result


def _report(run: Path) -> dict[str, str]:
    """Writes the run's page; if that fails, the result is shown without it."""
    from workflow_rl.engine.network_file import load_network
    from workflow_rl.report.build import write_report

    say("writing the report")
    try:
        return {"report": write_report([run], load_network())["report"]}
    except Exception as error:
        say(f"There is no report: {error or type(error).__name__}")
        return {}
