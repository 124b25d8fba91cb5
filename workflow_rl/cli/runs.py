"""The commands ``workflow-rl runs`` and ``workflow-rl report``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from workflow_rl.cli.common import Figures, Json, NetworkName, known_runs, show_result
from workflow_rl.cli.screen import Rows, Screen, Wide


def runs(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Runs to compare; default: list those in runs/.", autocompletion=known_runs),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the runs are.")] = Path("runs"),
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Lists runs, or compares some. Shows results side by side and the settings in which they differ."""
    from workflow_rl.report.listing import compare_runs, list_runs

    found = asdict(compare_runs(paths)) if paths else {"runs": [asdict(row) for row in list_runs(folder)]}
    show_result(found, as_json, lambda: print_runs(found, Screen(wide)))


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="A search, a training or a policy file; several runs are compared.", autocompletion=known_runs
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; default: report.html in the run.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also write figures for papers (SVG, PDF) and their data (CSV) there.")
    ] = None,
    network: NetworkName = None,
    as_json: Json = False,
) -> None:
    """Writes one HTML file about a run or policy. It has the answer, figures and replays, and works offline."""
    from workflow_rl.engine.network_file import as_network
    from workflow_rl.report.build import write_report

    result = write_report(runs, None if network is None else as_network(network), output, figures)
    size = Path(result["report"]).stat().st_size / 1e6
    words = f"{result['report']}: {size:.1f} MB, to be opened in any browser."
    words += f"\n{result['figures']}: {len(result['files'])} files." if "figures" in result else ""
    show_result(result, as_json, lambda: print(words))


def print_runs(found: Figures, screen: Screen) -> None:
    """A table of runs, what is wrong with damaged ones, and the settings in which they differ."""
    rows = []
    for run in found["runs"]:
        figure = "" if run["mean_return"] is None else f"{run['mean_return']:.2f} ± {run['standard_error']:.2f}"
        compliance = "" if run["compliance"] is None else f"{run['compliance']:.3f}"
        seconds = "" if run["seconds"] is None else f"{run['seconds']:.1f}"
        done = "" if run["evaluations"] is None else str(run["evaluations"])
        where = run["network"] or ""
        opponent = " on ".join(filter(None, [run["red_agent"], where if where != "cage2" else ""]))
        about = [run["run"], run["kind"], run["state"], done, opponent, run["workflow"] or ""]
        rows.append([*about, figure, compliance, seconds])
    columns = ["run", "kind", "state", "evaluations", "red agent", "workflow", "return", "compliance", "s"]
    spare, texts = ("s", "evaluations", "compliance", "kind", "red agent"), ("kind", "state", "red agent", "workflow")
    screen.table(
        f"{len(rows)} run{'s' if len(rows) != 1 else ''}; the workflow of a search is the best one",
        Rows(columns, rows, spare, texts),
    )
    for run in found["runs"]:
        if run["problem"]:
            screen.text(f"{run['run']}: {run['problem']}")
    differ = found.get("settings_that_differ", {})
    if differ:
        names = [run["run"] for run in found["runs"]]
        values = [[name, *map(str, own)] for name, own in differ.items()]
        screen.table("Settings that differ", Rows(["", *names], values))
