"""Runs studies, and writes the page of results from what they stored.

python -m benchmarks.study            # lists them
python -m benchmarks.study ablation   # runs one; where it was killed it goes on
python -m benchmarks.study --render   # docs/results.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from workflow_rl.cli.common import Jobs, Json, say, show_result, table
from workflow_rl.errors import UserError

RESULTS, PAGE = Path("benchmarks/results"), Path("docs/results.md")
FULL, QUICK = Path("runs/studies"), Path("runs/studies-quick")


def study(
    names: Annotated[
        list[str] | None, typer.Argument(help="Studies to run, or all; none: lists them.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option(help="A small form that only shows that everything works.")] = False,
    render: Annotated[bool, typer.Option(help="Write the page of results from the result files.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where finished cells are kept.", show_default=f"{FULL}, quick: {QUICK}")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Where result files are.", show_default=f"{RESULTS}, quick: {QUICK}")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = PAGE,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Runs studies: comparisons at equal budget with intervals. One that was killed goes on where it was."""
    from benchmarks.studies.cells import Laboratory
    from benchmarks.studies.registry import STUDIES, run_study
    from workflow_rl.config import check_jobs
    from workflow_rl.errors import check_choice

    names = list(STUDIES) if names == ["all"] else names or []
    for name in names:
        check_choice("study", name, tuple(STUDIES))
    if render and quick:
        raise UserError("the page is made from complete results; leave --quick out.")
    where, kept = folder or (QUICK if quick else FULL), results or (QUICK if quick else RESULTS)
    found: dict[str, Any] = {"results": []}
    if names:
        laboratory = Laboratory(where, check_jobs(jobs), say)
        with laboratory.held():
            for name in dict.fromkeys(names):
                path = run_study(name, quick, laboratory, kept)
                found["results"].append(str(path))
                say(f"{name}: done, {path}")
    if render:
        from benchmarks.page.render import write_page

        found["page"] = str(write_page(kept, output))
    if not names and not render:
        found["studies"] = {name: one.words for name, one in STUDIES.items()}
    show_result(found, as_json, lambda: _show(found))


def _show(found: dict[str, Any]) -> None:
    if "studies" in found:
        table("Studies", ["name", "what it asks"], [[name, words] for name, words in found["studies"].items()])
    for line in (*found["results"], *([found["page"]] if "page" in found else [])):
        typer.echo(line)


if __name__ == "__main__":
    try:
        typer.run(study)
    except UserError as error:
        say(f"Error: {error}")
        sys.exit(2)
