"""The command line ``workflow-rl``, the only file that prints: results to stdout, progress to stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workflow_rl.errors import UserError
from workflow_rl.train_command import PRESET_HELP, with_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from workflow_rl.replay import ReplayResult

app = typer.Typer(
    name="workflow-rl",
    help="Workflow search for autonomous cyber defence (CAGE Challenge 2).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
bench_app = typer.Typer(help="Measured figures, each beside its reference in the same run.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")

SECONDS_BETWEEN_LINES = 5.0
INTERRUPTED = 130

Json = Annotated[bool, typer.Option("--json", help="One JSON object as the last line of standard output.")]
Edition = Annotated[str, typer.Option(help="Edition of CybORG 2.1: current or leaderboard.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]


def main() -> None:
    """Runs the program; what a user can mend becomes one sentence and exit code 2."""
    try:
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # Typer's answer to Ctrl-C
            _say("Interrupted.")
        sys.stdout.flush()
        sys.exit(code)
    except UserError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _say("Interrupted.")
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
        _fail(str(error.format_message()))


def _fail(sentence: str) -> None:
    _say(f"Error: {sentence}")
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from workflow_rl import __version__

        print(__version__)
        raise typer.Exit


@app.command()
def replay(
    files: Annotated[list[Path], typer.Argument(help="Recorded traces (.npz).", show_default=False)],
    edition: Edition = "current",
    as_json: Json = False,
) -> None:
    """Replays recorded games of genuine CybORG through the engine and counts the steps that differ.

    Exit code 0: every step agrees. 1: some differ. 2: a file cannot be replayed.
    """
    from workflow_rl.replay import ReplayResult
    from workflow_rl.replay import replay as replay_trace
    from workflow_rl.scenario import check_choice
    from workflow_rl.scenario_file import load_scenario
    from workflow_rl.traces import load_trace

    scenario = load_scenario()
    check_choice("edition", edition, scenario.editions)
    traces = [load_trace(path) for path in files]
    total = ReplayResult()
    with _progress("replay", len(traces)) as advance:
        for trace in traces:
            total.add(replay_trace(trace, scenario, edition))
            advance(1)
    if total.mismatched_steps:
        for other in (name for name in scenario.editions if name != edition):
            if all(replay_trace(trace, scenario, other).mismatched_steps == 0 for trace in traces):
                _say(f"All steps agree with the {other} edition: add --edition {other}.")
    _result(_replay_json(total, edition), as_json, lambda: _print_replay(total, edition))
    raise typer.Exit(1 if total.mismatched_steps else 0)


@app.command()
@with_settings
def train(
    preset: Annotated[str, typer.Option(help=PRESET_HELP, show_default=False)] = "",
    run_dir: Annotated[Path | None, typer.Option(help="Where to keep the run; default: a new one under runs/.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with this run, which was interrupted.")] = None,
    tensorboard: Annotated[bool, typer.Option(help="Write figures for TensorBoard.")] = True,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Trains one policy: for one workflow (--workflow), for all of them (--universal), or a general one."""
    from dataclasses import asdict

    from workflow_rl.config import make_config
    from workflow_rl.run_store import Run, read_result
    from workflow_rl.tensorboard_log import TensorBoardLog
    from workflow_rl.train_command import json_result, line, new_run_directory, summary
    from workflow_rl.trainer import check_task, train_workflow

    given = {name: value for name, value in values.items() if value is not None}
    if resume is not None:
        if given or preset or run_dir:
            raise UserError("--resume goes on with the run's own settings; give no others.")
        done = read_result(resume)
        if done is not None:
            raise UserError(f"{resume} is finished; there is nothing to resume.")
        run = Run.open(resume)
    else:
        config = make_config(preset, **given)
        check_task(config)
        run = Run.create(run_dir or new_run_directory(preset or "train"), config)
    _say(f"run: {run.path}")
    log = TensorBoardLog(run.path) if tensorboard else None
    with _training_progress() as show:

        def say(event: dict[str, Any]) -> None:
            if log:
                log(event)
            show(line(event), event["update"], run.config.max_updates)

        result = train_workflow(run.config, run, say)
    if log:
        log.close()
    run.close()
    if as_json:
        print(json_result(asdict(result)), flush=True)
    else:
        print(summary(asdict(result)))


@app.command()
def evaluate(
    policy: Annotated[
        str, typer.Argument(help="A run, a policy file, or sleep, random, reactive-restore, reactive-remove.")
    ],
    red_agent: Annotated[str, typer.Option(help="bline, meander, sleep, or a comma list.")] = "bline,meander,sleep",
    edition: Edition = "current",
    episodes: Annotated[int, typer.Option(help="Games per red agent.")] = 1000,
    greedy: Annotated[bool, typer.Option(help="Play the most probable action of a trained policy.")] = False,
    workflow: Annotated[str, typer.Option(help="Workflow of a universal policy; default: the mean of all.")] = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Mean return of a blue policy over 30, 50 and 100 steps against each red agent, with standard errors."""
    from workflow_rl.evaluation import REFERENCE_POLICIES, evaluate_table, reference_policy
    from workflow_rl.scenario import check_choice, parse_red_agents
    from workflow_rl.scenario_file import load_scenario

    reds = parse_red_agents(red_agent)
    with _progress("evaluate", episodes * len(set(reds))) as advance:
        if policy in REFERENCE_POLICIES:
            table = evaluate_table(reference_policy(policy), red_agent, edition, episodes, seed, advance)
        elif Path(policy).exists():
            from workflow_rl.policy_evaluation import evaluate_policy_file

            check_choice("edition", edition, load_scenario().editions)
            table = evaluate_policy_file(Path(policy), reds, edition, episodes, seed, greedy, workflow, advance)
        else:
            names = ", ".join(REFERENCE_POLICIES)
            raise UserError(f"unknown policy {policy!r}; allowed: {names}, or the path of a run or policy file.")
    table = {"policy": policy, "edition": edition, "episodes": episodes, "seed": seed, **table}
    _result(table, as_json, lambda: _print_cells(table))


@bench_app.command("env")
def bench_env_command(
    seconds: Annotated[float, typer.Option(help="Seconds to measure each figure.")] = 1.0,
    red_agent: Annotated[str, typer.Option(help="Opponents; the last gives the headline figures.")] = "bline,meander",
    cyborg: Annotated[bool, typer.Option(help="Measure genuine CybORG too, if it is installed.")] = True,
    as_json: Json = False,
) -> None:
    """Steps per second of the environments at 1 to 4096 environments, of the engine alone, and of genuine CybORG."""
    from workflow_rl.bench import bench_env
    from workflow_rl.scenario import parse_red_agents

    figures = bench_env(seconds, parse_red_agents(red_agent), cyborg, _say)
    _result(figures, as_json, lambda: _print_bench_env(figures))


@bench_app.command("train")
def bench_train_command(
    updates: Annotated[int, typer.Option(help="Updates of the fast path, per red agent.")] = 300,
    plain_updates: Annotated[int, typer.Option(help="Updates of the plain path and of the network alone.")] = 12,
    as_json: Json = False,
) -> None:
    """Transitions per second of training, beside the network's own arithmetic and stable-baselines3."""
    from workflow_rl.bench_train import bench_train

    figures = bench_train(updates, plain_updates, _say)
    _result(figures, as_json, lambda: _print_bench_train(figures))


def _result(value: dict[str, Any], as_json: bool, show: Callable[[], None]) -> None:
    if as_json:
        print(json.dumps(value), flush=True)
    else:
        show()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, otherwise a plain line now and then."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    done, last = 0, time.monotonic()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)

        def advance(units: int) -> None:
            nonlocal done, last
            done += units
            progress.advance(task, units)
            if not console.is_terminal and time.monotonic() - last > SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                _say(f"{what}: {done} of {total}")

        yield advance


@contextmanager
def _training_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the time that is left on a terminal, otherwise a plain line per second."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn())
    last = 0.0
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def show(text: str, update: int, updates: int) -> None:
            nonlocal last
            if time.monotonic() - last > 1.0:
                last = time.monotonic()
                if not console.is_terminal:
                    _say(text)
            progress.update(task, description=text, completed=update, total=updates)

        yield show


def _table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    boundless = Console(width=1000)
    needed = Measurement.get(boundless, boundless.options, table).maximum
    Console(width=max(Console().width, needed)).print(table)  # rather a long line than a number cut off


def _replay_json(total: ReplayResult, edition: str) -> dict[str, Any]:
    return {
        "episodes": total.episodes,
        "steps": total.steps,
        "mismatched_steps": total.mismatched_steps,
        "first_mismatch": total.first_mismatch,
        "mismatched_episodes": total.mismatched_episodes,
        "mismatched_after_collision": total.mismatched_after_collision,
        "mismatches_by_field": total.mismatches_by_field,
        "edition": edition,
    }


def _print_replay(total: ReplayResult, edition: str) -> None:
    print(f"{total.episodes} episodes, {total.steps} steps, {edition} edition: ", end="")
    print(f"{total.mismatched_steps} mismatched steps in {total.mismatched_episodes} episodes.")
    if total.first_mismatch is None:
        return
    first = total.first_mismatch
    print(f"First mismatch: {first['file']}, episode {first['episode']}, step {first['step']} (both count from 0).")
    for name, pair in first["fields"].items():
        print(f"  {name}: recorded {pair['recorded']}, engine {pair['engine']}")
    if total.mismatched_after_collision:
        print(
            f"{total.mismatched_after_collision} of them come after a process-id collision, which the engine does not "
            "model (docs/fidelity.md)."
        )


def _print_cells(table: dict[str, Any]) -> None:
    lengths = list(next(iter(table["cells"].values())))
    rows = [
        [red, *(f"{cells[length]['mean']:.2f} ± {cells[length]['standard_error']:.2f}" for length in lengths)]
        for red, cells in table["cells"].items()
    ]
    title = f"{table['policy']}: mean return ± standard error, {table['episodes']} episodes, {table['edition']} edition"
    columns = ["red agent", *(f"{length} steps" for length in lengths)]
    if "compliance" in table:
        columns += ["compliance", "counted fixes"]
        for row, figures in zip(rows, table["compliance"].values(), strict=True):
            row += [f"{figures['compliance']:.3f}", f"{figures['counted_fixes']:.1f}"]
    _table(title, columns, rows)
    print(f"Total of all means: {table['total']:.2f}")


def _print_bench_env(figures: dict[str, Any]) -> None:
    rows = []
    for red, speeds in figures["by_red_agent"].items():
        for what, key in (("vector env", "vector_steps_per_s"), ("engine", "engine_steps_per_s")):
            rows.append([f"{what}, {red}", *(f"{rate / 1e6:.2f}" for rate in speeds[key].values())])
    sizes = list(figures["vector_steps_per_s"])
    _table("Million steps per second, one thread, by number of environments", ["", *sizes], rows)
    print(f"Single environment: {figures['single_env_steps_per_s']:,.0f} steps/s")
    if figures["cyborg_steps_per_s"] is not None:
        print(
            f"Genuine CybORG: {figures['cyborg_steps_per_s']:,.0f} steps/s; the vector env with 200 environments makes "
            f"{figures['ratio_to_cyborg_at_200']:,.0f} times as many."
        )
    print(f"Start to first step: {figures['cold_start_s']:.1f} s cold, {figures['cached_start_s']:.1f} s cached")
    print(f"Memory: {figures['bytes_per_env']} bytes per environment, peak {figures['peak_memory_mb']:.0f} MB")


def _print_bench_train(figures: dict[str, Any]) -> None:
    rows = [
        [f"fast path, {red}, {figures['updates']} updates from scratch", f"{figures[red]['transitions_per_s']:,.0f}"]
        for red in ("bline", "meander")
    ]
    for red in ("bline", "meander"):
        rate = figures[red]["sb3_transitions_per_s"]
        rows.append([f"stable-baselines3, {red}", "not installed" if rate is None else f"{rate:,.0f}"])
    for name in ("plain", "network_only", "plain_two_threads", "one_process", "two_process"):
        rows.append([name.replace("_", " "), f"{figures[f'{name}_transitions_per_s']:,.0f}"])
    _table("Training, 200 environments x 100 steps, 4 epochs, one thread", ["", "transitions/s"], rows)
    print(f"Plain path over network only: {figures['ratio_to_network_only']:.2f}")


if __name__ == "__main__":
    main()
