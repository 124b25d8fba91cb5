"""The one front door to all experiments.

python -m benchmarks                    # lists them
python -m benchmarks champion table     # runs one part; without a part, all of them
python -m benchmarks ablation --quick   # runs a study; a killed one resumes where it was
python -m benchmarks all                # runs whatever the present source has not measured; hours
python -m benchmarks page               # writes docs/results.md from the stored results
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.experiments import EXPERIMENTS, run_experiment
from benchmarks.studies.registry import STUDIES
from workflow_rl.cli.common import Jobs, Json, say, show_result
from workflow_rl.errors import UserError, check_choice

RESULTS, PAGE = Path("benchmarks/results"), Path("docs/results.md")
FULL, QUICK = Path("runs/studies"), Path("runs/studies-quick")
ALL_STUDIES, ALL, WRITE_PAGE = "studies", "all", "page"


def command(
    name: Annotated[
        str, typer.Argument(help="An experiment, `studies` or `all` of them, or `page`; none lists them.")
    ] = "",
    part: Annotated[list[str] | None, typer.Argument(help="Its part or argument.", show_default=False)] = None,
    quick: Annotated[bool, typer.Option(help="A small form of a study that only shows that it works.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where studies keep cells.", show_default=f"{FULL}, quick: {QUICK}")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Result files of studies.", show_default=f"{RESULTS}, quick: {QUICK}")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = PAGE,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Runs an experiment and stores its result, or writes the page of results."""
    words, kept = " ".join(part or []), results or (QUICK if quick else RESULTS)
    if not name:
        listed = {"studies": STUDIES}
        listed["experiments"] = {key: one.asks for key, one in EXPERIMENTS.items()}
        show_result(listed, as_json, _list)
        return
    check_choice("experiment", name, (*STUDIES, ALL_STUDIES, ALL, WRITE_PAGE, *EXPERIMENTS))
    if name in (ALL, *EXPERIMENTS):
        options = {"--quick": quick, "--folder": folder, "--results": results, "--jobs": jobs}
        if given := [option for option, value in options.items() if value]:
            raise UserError(f"{name} is not a study; leave {given[0]} out.")
        paths = _run_all(words) if name == ALL else [_done(name, path) for path in run_experiment(name, words)]
    elif words:
        raise UserError(f"{name} has no parts; leave {words!r} out.")
    elif name == WRITE_PAGE:
        paths = [_write_page(kept, output, quick)]
    else:
        names = list(STUDIES) if name == ALL_STUDIES else [name]
        paths = _run_studies(names, quick, folder or (QUICK if quick else FULL), kept, jobs)
    show_result({"results": [str(path) for path in paths]}, as_json, lambda: _show(paths))


def _done(name: str, path: Path) -> Path:
    say(f"{name}: done, {path}")
    return path


def _show(paths: list[Path]) -> None:
    for path in paths:
        print(path)


def _run_all(words: str) -> list[Path]:
    from benchmarks.campaign import run_all

    if words:
        raise UserError(f"{ALL} has no parts; leave {words!r} out.")
    return run_all(say)


def _run_studies(names: list[str], quick: bool, folder: Path, results: Path, jobs: int | None) -> list[Path]:
    from benchmarks.studies.cells import Laboratory
    from benchmarks.studies.registry import run_study
    from workflow_rl.config import check_jobs

    laboratory = Laboratory(folder, check_jobs(jobs), say)
    with laboratory.held():
        return [_done(name, run_study(name, quick, laboratory, results)) for name in names]


def _write_page(results: Path, output: Path, quick: bool) -> Path:
    from benchmarks.page.render import write_page

    if quick:
        raise UserError("the page is made from complete results; leave --quick out.")
    return write_page(results, output)


def _list() -> None:
    print(f"`{ALL}` runs all that the present source has not measured; `{WRITE_PAGE}` writes {PAGE}.")
    print(f"Studies (`{ALL_STUDIES}` runs all of them):")
    for name, asks in STUDIES.items():
        print(f"  {name:15} {asks}")
    print("Other experiments, with their parts or the default of their argument:")
    for name, one in EXPERIMENTS.items():
        options = ", ".join(one.parts) or one.argument
        print(f"  {name:15} {one.asks}" + (f"\n{'':18}{options}" if options else ""))


def main(name: str = "") -> None:
    """Runs the command line; an experiment's own module gives its name (``python -m benchmarks.champion table``)."""
    app = typer.Typer(add_completion=False)
    app.command()(command)
    try:
        app([*([name] if name else []), *sys.argv[1:]], prog_name="python -m benchmarks")
    except UserError as error:
        say(f"Error: {error}")
        sys.exit(2)
