"""The command line ``workflow-rl``: its commands, each in its own file, and how errors are reported."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from workflow_rl.cli.bench import bench_app
from workflow_rl.cli.common import (
    SEARCH_PRESET_HELP,
    Json,
    Resume,
    RunDir,
    Takeover,
    say,
    show_result,
    with_search_settings,
)
from workflow_rl.cli.evaluate import evaluate
from workflow_rl.cli.export import export
from workflow_rl.cli.playbook import playbook
from workflow_rl.cli.replay import replay
from workflow_rl.cli.runs import report, runs
from workflow_rl.cli.train import train
from workflow_rl.errors import UserError

app = typer.Typer(
    name="workflow-rl",
    help="Workflow search for autonomous cyber defence (CAGE Challenge 2).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
INTERRUPTED = 130


def main() -> None:
    """Runs the program; an error that the user can fix is printed as one sentence, with exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show ± must not lose a result
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # Typer's answer to Ctrl-C
            say("Interrupted.")
        sys.stdout.flush()
        sys.exit(code)
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        say("Interrupted.")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        _fail("there is not enough memory for this; make it smaller.")
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(f"cannot go on: {error.strerror or error}.")
    except Exception as error:  # Typer's own errors about the command line format themselves
        if not hasattr(error, "format_message"):
            raise
        _fail(_complaint(error))


def _complaint(error: Any) -> str:
    """Typer's message about the command line, with the value at fault."""
    sentence = str(error.format_message())
    details = getattr(error.__cause__, "errors", None)  # Typer lets pydantic convert values
    if details is None:
        return sentence
    return sentence.replace("Invalid value for", f"Invalid value {details()[0]['input']!r} for", 1)


def _fail(sentence: str) -> None:
    say(f"Error: {sentence}")
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from workflow_rl.config import VERSION

        print(VERSION)
        raise typer.Exit


@with_search_settings
def search(
    preset: Annotated[str, typer.Option(help=SEARCH_PRESET_HELP, show_default=False)] = "",
    jobs: Annotated[
        int | None, typer.Option(help="Most trainings at once.", show_default="one per core; with --ray: all it has")
    ] = None,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Train on a Ray cluster: auto, local or HOST:PORT.", show_default="")
    ] = "",
    cpus_per_evaluation: Annotated[
        float | None, typer.Option(help="Ray: CPUs of each training of an evaluation.", show_default="1")
    ] = None,
    gpus_per_evaluation: Annotated[
        float | None, typer.Option(help="Ray: GPUs of each, also a fraction.", show_default="0")
    ] = None,
    run_dir: RunDir = None,
    resume: Resume = None,
    report: Annotated[bool, typer.Option(help="Write report.html at the end.")] = True,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Searches the best workflow: suggests one, trains it until it is followed, evaluates it, and repeats."""
    from workflow_rl.cli.search import search_and_report
    from workflow_rl.cli.search_view import print_search

    given = {name: value for name, value in values.items() if value is not None}
    if resume is not None and (given or preset or run_dir):
        raise UserError("--resume goes on with the run's own settings; give no others but --jobs and --ray.")
    where = (ray, cpus_per_evaluation, gpus_per_evaluation)
    result = search_and_report(preset, given, run_dir or resume, resume is not None, jobs, where, report)
    show_result(result.to_json(), as_json, lambda: print_search(result))


def watch(
    source: Annotated[
        str,
        typer.Argument(help="A run, a policy file, champion, expert, a reference defender, or a trace (.npz)."),
    ],
    red_agent: Annotated[
        str | None, typer.Option(help="bline, meander or sleep.", show_default="the policy's own, else bline")
    ] = None,
    episode: Annotated[str, typer.Option(help="median, best, worst, violation, or a number.")] = "median",
    edition: Annotated[str | None, typer.Option(help="current or leaderboard.", show_default="the policy's")] = None,
    takeover: Takeover = None,
    workflow: Annotated[str, typer.Option(help="By which fixes are judged; default: the policy's own.")] = "",
    speed: Annotated[float, typer.Option(help="Steps per second.")] = 2.0,
    seed: Annotated[int | None, typer.Option(help="Same seed, same games.", show_default="the report's games")] = None,
    as_json: Json = False,
) -> None:
    """Plays an episode in the terminal: what is true, what blue believes, what both sides do. Elsewhere as lines."""
    from rich.console import Console

    from workflow_rl.cli.watch import story_named
    from workflow_rl.cli.watch_view import lines, summary
    from workflow_rl.cli.watch_view import watch as play

    if not 0.01 <= speed <= 1000:
        raise UserError(f"the speed must be from 0.01 to 1000 steps per second, not {speed}.")
    story = story_named(source, red_agent, episode, edition, workflow, seed, takeover)
    console = Console()
    if not as_json and console.is_terminal and sys.stdin.isatty():
        play(story, console, speed)
        print(summary(story))
    else:
        show_result(story.to_json(), as_json, lambda: print("\n".join(lines(story))))


for command in (playbook, replay, train, search, runs, evaluate, report, watch, export):  # in the order of --help
    app.command()(command)
app.add_typer(bench_app, name="bench")


if __name__ == "__main__":
    main()
