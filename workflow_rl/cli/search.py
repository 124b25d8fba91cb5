"""The command ``workflow-rl search``: from the options to a search on this machine or on a cluster, and its report."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workflow_rl.cli.common import (
    Json,
    NetworkName,
    Resume,
    RunDir,
    preset_option,
    say,
    show_result,
    suggesting,
    with_search_settings,
)
from workflow_rl.cli.screen import Screen, Wide
from workflow_rl.config import EXPERT, MACHINE, check_jobs
from workflow_rl.errors import UserError
from workflow_rl.presets import NO_SEARCH, PRESETS, make_search_config, task_of

if TYPE_CHECKING:
    from workflow_rl.cli.search_view import SearchView
    from workflow_rl.config import SearchConfig
    from workflow_rl.engine.network import Network
    from workflow_rl.search.executor import Executor
    from workflow_rl.search.findings import SearchResult

Where = tuple[str, float | None, float | None]  # address of a Ray cluster, CPUs and GPUs of each training


@with_search_settings
def search(
    preset: Annotated[str, preset_option(name for name in PRESETS if name not in NO_SEARCH)] = "",
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Most trainings at once.", show_default="one per core; with --ray: all it has", rich_help_panel=MACHINE
        ),
    ] = None,
    ray: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Train on a Ray cluster: auto, local or HOST:PORT.",
            rich_help_panel=MACHINE,
            autocompletion=suggesting("auto", "local"),
        ),
    ] = "",
    cpus_per_evaluation: Annotated[
        float | None,
        typer.Option(help="Ray: CPUs of each training of an evaluation.", show_default="1", rich_help_panel=EXPERT),
    ] = None,
    gpus_per_evaluation: Annotated[
        float | None,
        typer.Option(help="Ray: GPUs of each, also a fraction.", show_default="0", rich_help_panel=EXPERT),
    ] = None,
    network: NetworkName = None,
    run_dir: RunDir = None,
    resume: Resume = None,
    report: Annotated[bool, typer.Option(help="Write report.html at the end.", rich_help_panel=MACHINE)] = True,
    wide: Wide = False,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Finds the best workflow. It suggests one, trains it until it is followed, evaluates it, and repeats."""
    from workflow_rl.engine.networks.copies import chosen_network
    from workflow_rl.runs import read_search_config

    given = {name: value for name, value in values.items() if value is not None}
    if resume is not None and (given or preset or run_dir):
        raise UserError("--resume goes on with the run's own settings; give no others but --jobs and --ray.")
    if resume is not None:
        read_search_config(resume)  # a search at all?
    defended = chosen_network(resume, network)
    given = task_of(preset, given, defended.red_agents, defended.editions)
    config = make_search_config(preset, hosts=len(defended.hosts), **({"in_flight": 0} if ray else {}) | given)
    where = (ray, cpus_per_evaluation, gpus_per_evaluation)
    result = search_and_report(config, defended, run_dir or resume, resume is not None, jobs, where, report)
    _show(result, as_json, wide)


def _show(result: SearchResult, as_json: bool, wide: bool) -> None:
    from workflow_rl.cli.search_view import print_search
    from workflow_rl.search.result import verdict_of, with_verdict

    show_result(with_verdict(result), as_json, lambda: print_search(result, verdict_of(result), Screen(wide)))


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
    config: SearchConfig, network: Network, path: Path | None, resume: bool, jobs: int | None, where: Where,
    report: bool,
) -> SearchResult:  # fmt: skip
    """Runs a search and returns its result.

    Args:
        config: the settings of a new search.
        network: the network to defend.
        path: the run's directory; default: a new one.
        resume: whether to continue the run in ``path``.
        jobs: most trainings at once.
        where: the cluster that trains, if any.
        report: whether to write a report at the end.
    """
    from rich.console import Console

    from workflow_rl.cli.search_view import SearchView

    at_once = check_jobs(jobs)
    ray, cpus, gpus = where
    if not ray and (cpus, gpus) != (None, None):
        raise UserError("--cpus-per-evaluation and --gpus-per-evaluation are for --ray.")
    view = SearchView(Console(stderr=True), say)
    with contextlib.ExitStack() as stack:
        trainers: Executor | int = at_once
        if ray:
            from workflow_rl.search.ray_executor import RayCluster

            trainers = stack.enter_context(RayCluster(ray, 1.0 if cpus is None else cpus, gpus or 0.0, jobs))
            stack.enter_context(contextlib.redirect_stdout(_RunLog(view)))  # Ray's own messages are no results
        from workflow_rl.search.run_search import new_search, resume_search  # only now: it takes seconds to import

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
    from workflow_rl.report.build import write_report

    say("writing the report")
    try:
        return replace(result, report=write_report([Path(result.run)])["report"])
    except Exception as error:
        say(f"There is no report: {error or type(error).__name__}")
        return result
