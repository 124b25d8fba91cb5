"""The command line ``workflow-rl``: its commands, their options, and what becomes of errors."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from workflow_rl.cli.bench import bench_app
from workflow_rl.cli.options import CyborgPath, Edition, Jobs, Json, Resume, RunDir, Seed, Takeover
from workflow_rl.cli.playbook import playbook
from workflow_rl.cli.printing import (
    print_cells,
    print_challenge,
    print_live,
    print_replay,
    print_runs,
    progress,
    say,
    show_result,
    training_progress,
)
from workflow_rl.cli.train import PRESET_HELP, SEARCH_PRESET_HELP, with_search_settings, with_settings
from workflow_rl.errors import SimulatorError, UserError

app = typer.Typer(
    name="workflow-rl",
    help="Workflow search for autonomous cyber defence (CAGE Challenge 2).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(bench_app, name="bench")
app.command()(playbook)

INTERRUPTED = 130


def main() -> None:
    """Runs the program; what a user can mend becomes one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # a result is not lost to a terminal that cannot show ±
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
    except Exception as error:  # Typer's own complaints about the command line know how to put themselves
        if not hasattr(error, "format_message"):
            raise
        _fail(_complaint(error))


def _complaint(error: Any) -> str:
    """Typer's sentence about the command line, with the value that it complains about."""
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


@app.command()
def replay(
    files: Annotated[list[Path] | None, typer.Argument(help="Recorded traces (.npz).", show_default=False)] = None,
    edition: Edition = "current",
    live: Annotated[
        int | None, typer.Option(help="Play so many games of genuine CybORG now, instead of files.", show_default=False)
    ] = None,
    blue: Annotated[
        list[str] | None, typer.Option(help="Live: policy file, run, champion or reference defender; can be repeated.")
    ] = None,
    red_agent: Annotated[
        str | None, typer.Option(help="Live: bline, meander, sleep, or a comma list.", show_default="all three")
    ] = None,
    green_agent: Annotated[
        str | None, typer.Option(help="Live: sleep, active, or a comma list.", show_default="both")
    ] = None,
    takeover: Annotated[
        str | None, typer.Option(help="Live: steps that red plays before blue acts, or a range.", show_default="0")
    ] = None,
    jobs: Jobs = None,
    seed: Annotated[int | None, typer.Option(help="Live: same seed, same games.", show_default="0")] = None,
    cyborg_path: CyborgPath = "",
    as_json: Json = False,
) -> None:
    """Replays games of genuine CybORG through the engine and counts the steps that differ.

    The games are recorded ones, or with --live played at the same time, each chance outcome taken over as it falls.

    Exit code 0: every step agrees. 1: some differ. 2: a file cannot be replayed.
    """
    if live is not None and files:
        raise UserError("give either files or --live, not both.")
    if live is None and not files:
        raise UserError("give the files of recorded games, or --live with a number of games.")
    if live is not None:
        from workflow_rl.cli.replay import replay_live

        if edition != "current":
            raise UserError("with --live the edition is that of the CybORG at hand; leave --edition out.")
        result = replay_live(
            live, tuple(blue or ()), red_agent, green_agent, jobs, seed or 0, cyborg_path, takeover or "0"
        )
        show_result(result, as_json, lambda: print_live(result))
    else:
        from workflow_rl.cli.replay import replay_files

        if (blue, red_agent, green_agent, jobs, seed, takeover) != (None,) * 6 or cyborg_path:
            raise UserError("files are replayed as they are: other options than --edition and --json need --live.")
        result = replay_files(files or [], edition)
        show_result(result, as_json, lambda: print_replay(result))
    raise typer.Exit(1 if result["mismatched_steps"] else 0)


@app.command()
@with_settings
def train(
    preset: Annotated[str, typer.Option(help=PRESET_HELP, show_default=False)] = "",
    run_dir: RunDir = None,
    resume: Resume = None,
    tensorboard: Annotated[bool, typer.Option(help="Write figures for TensorBoard.")] = True,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Trains one policy: for one workflow (--workflow), for all of them (--universal), or a general one."""
    from dataclasses import asdict

    from workflow_rl.cli.tensorboard_log import TensorBoardLog
    from workflow_rl.cli.train import json_result, line, summary
    from workflow_rl.defenders.imitation import expert_teacher
    from workflow_rl.presets import make_config
    from workflow_rl.runs import Run, new_run_directory, read_config, read_result
    from workflow_rl.training.train_task import check_task
    from workflow_rl.training.trainer import train_workflow

    given = {name: value for name, value in values.items() if value is not None}
    if resume is not None:
        if given or preset or run_dir:
            raise UserError("--resume goes on with the run's own settings; give no others.")
        read_config(resume)  # a training at all?
        done = read_result(resume)
        if done is not None:
            raise UserError(f"{resume} is finished; there is nothing to resume.")
        run = Run.open(resume)
    else:
        config = make_config(preset, **given)
        check_task(config)
        run = Run.create(run_dir or new_run_directory(preset or "train"), config)
    say(f"run: {run.path}")
    log = TensorBoardLog(run.path) if tensorboard else None
    with training_progress() as show:

        def hear(event: dict[str, Any]) -> None:
            if log:
                log(event)
            show(line(event), event["update"], run.config.max_updates)

        try:
            result = train_workflow(run.config, run, hear, say, expert_teacher)
        except SimulatorError as error:
            raise SimulatorError(f"{str(error)[:-1]}; to go on: workflow-rl train --resume {run.path}") from error
        except KeyboardInterrupt:
            say(f"To go on: workflow-rl train --resume {run.path}")
            raise
    if log:
        log.close()
    run.close()
    if as_json:
        print(json_result(asdict(result)), flush=True)
    else:
        print(summary(asdict(result)))


@app.command()
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
    show_result(result, as_json, lambda: print_search(result))


@app.command()
def runs(
    paths: Annotated[list[Path] | None, typer.Argument(help="Runs to compare; default: list those in runs/.")] = None,
    folder: Annotated[Path, typer.Option(help="Where the runs are.")] = Path("runs"),
    as_json: Json = False,
) -> None:
    """Lists runs, or compares some: results side by side and the settings in which they differ."""
    from workflow_rl.report.listing import compare_runs, list_runs

    found = compare_runs(paths) if paths else {"runs": list_runs(folder)}
    show_result(found, as_json, lambda: print_runs(found))


@app.command()
def evaluate(
    policy: Annotated[
        str,
        typer.Argument(
            help="A run, a policy file, champion, expert, sleep, random, reactive-restore, reactive-remove."
        ),
    ],
    red_agent: Annotated[
        str | None, typer.Option(help="bline, meander, sleep, or a comma list.", show_default="all three")
    ] = None,
    edition: Annotated[
        str | None, typer.Option(help="current or leaderboard.", show_default="the policy's own, else current")
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help="Games per red agent.", show_default="1000; on genuine CybORG 100")
    ] = None,
    takeover: Takeover = None,
    greedy: Annotated[bool, typer.Option(help="Play the most probable action of a trained policy.")] = False,
    workflow: Annotated[str, typer.Option(help="Workflow of a universal policy; default: the mean of all.")] = "",
    backend: Annotated[str, typer.Option(help="native, or cyborg: genuine CybORG.")] = "native",
    protocol: Annotated[
        str, typer.Option(help="challenge: the official table, on CybORG beside the native engine's.")
    ] = "",
    jobs: Jobs = None,
    cyborg_path: CyborgPath = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Mean return of a blue policy over 30, 50 and 100 steps against each red agent, with standard errors."""
    from workflow_rl.config import check_jobs
    from workflow_rl.defenders.names import DEFAULT_EPISODES, challenge, evaluate_named
    from workflow_rl.engine.network import RED_AGENTS, check_choice, parse_red_agents
    from workflow_rl.envs.backends import Backend, check_backend

    if protocol:
        check_choice("protocol", protocol, ("challenge",))
        if red_agent is not None:
            raise UserError("--protocol challenge plays all red agents; leave --red-agent out.")
        if takeover is not None:
            raise UserError("--protocol challenge has no takeover: blue watches from the first step.")
    reds = parse_red_agents(red_agent or ",".join(RED_AGENTS))
    where = Backend(backend, cyborg_path, check_jobs(jobs))
    check_backend(where)
    if backend == "native" and jobs is not None:
        raise UserError("--jobs is for --backend cyborg; the native engine plays all games side by side.")
    games = DEFAULT_EPISODES[backend] if episodes is None else episodes
    with progress("evaluate", games * len(set(reds))) as advance:
        if protocol:
            table = challenge(policy, edition, games, seed, greedy, workflow, where, advance)
        else:
            table = evaluate_named(
                policy, ",".join(reds), edition, games, seed, greedy, workflow, where, advance, takeover
            )
    show_result(table, as_json, lambda: (print_challenge if protocol else print_cells)(table))


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="A search or a training, finished or not; several are compared.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; default: report.html in the run.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also write figures for papers (SVG, PDF) and their data (CSV) there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Writes one HTML file about a run: the answer, figures, and episodes to replay. It works without a network."""
    from workflow_rl.engine.network_file import load_network
    from workflow_rl.report.build import write_report

    result = write_report(runs, load_network(), output, figures)
    size = Path(result["report"]).stat().st_size / 1e6
    words = f"{result['report']}: {size:.1f} MB, to be opened in any browser."
    words += f"\n{result['figures']}: {len(result['files'])} files." if "figures" in result else ""
    show_result(result, as_json, lambda: print(words))


@app.command()
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


@app.command()
def export(
    policy: Annotated[str, typer.Argument(help="A run, a policy file, champion or expert.")],
    folder: Annotated[Path, typer.Argument(help="A new folder for the agent.")],
    edition: Annotated[
        str | None, typer.Option(help="Of champion and expert: current or leaderboard.", show_default="current")
    ] = None,
    workflow: Annotated[str, typer.Option(help="Workflow of a universal policy.")] = "",
    greedy: Annotated[bool, typer.Option(help="The agent plays the most probable action.")] = False,
    as_json: Json = False,
) -> None:
    """Writes a defender that needs nothing but numpy: agent.py for CybORG's own evaluation, and its policy."""
    from workflow_rl.defenders.export import export_agent

    result = export_agent(policy, folder, workflow, greedy, edition)
    words = f"{result['folder']} holds agent.py and all that it needs; its README.md says how to use it."
    show_result(result, as_json, lambda: print(words))
