"""How the command line shows things: results to stdout, progress to stderr, tables, bars."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from workflow_rl.training.compliance import Obedience

SECONDS_BETWEEN_LINES = 5.0
REDS = ("bline", "meander")  # opponents of the measurements


def show_result(value: dict[str, Any], as_json: bool, show: Callable[[], None]) -> None:
    """A result as one line of JSON, or as ``show`` puts it."""
    if as_json:
        print(json.dumps(value), flush=True)
    else:
        show()


def say(line: str) -> None:
    """One line of progress."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[float], None]]:
    """A progress bar on a terminal, otherwise a plain line now and then."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    done, last = 0.0, time.monotonic()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)

        def advance(units: float) -> None:
            nonlocal done, last
            done += units
            progress.advance(task, units)
            if not console.is_terminal and time.monotonic() - last > SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                say(f"{what}: {done:.0f} of {total}")

        yield advance


@contextmanager
def training_progress() -> Iterator[Callable[[str, int, int], None]]:
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
                    say(text)
            progress.update(task, description=text, completed=update, total=updates)

        yield show


def print_playbook(found: list[dict[str, Any]]) -> None:
    """What a defender repairs before what, for each red agent."""
    for book in found:
        after = f", blue takes over after {book['takeover']} steps" if book["takeover"] != "0" else ""
        print(f"Against {book['red_agent']}{after}: return {book['mean_return']:.2f} ± {book['standard_error']:.2f}, ")
        print(f"{book['repairs']:.1f} repairs per game, {book['episodes']} games.")
        seen = [pair for pair in book["pairs"] if pair["times"]]
        rows = [[f"{p['first']} before {p['then']}", f"{p['times']:,}", f"{p['reversed']:,}"] for p in seen]
        table("What it repaired while the other type was held", ["priority", "so", "reversed"], rows)
        never = [f"{pair['first']} and {pair['then']}" for pair in book["pairs"] if not pair["times"]]
        if never:
            print(f"Never both held when one was repaired: {', '.join(never)}.")
        of_kept = [book["orders"][order]["compliance"] for order in book["kept"]]
        least = f" (compliance {min(of_kept):.3f} or more)" if of_kept else ""
        print(f"It keeps {len(book['kept'])} of the {len(book['orders'])} orders{least}.\n")


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table as wide as it needs to be."""
    from rich.console import Console
    from rich.markup import escape
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))  # names of runs and damaged values are not markup
    boundless = Console(width=1000)
    needed = Measurement.get(boundless, boundless.options, table).maximum
    Console(width=max(Console().width, needed)).print(table)  # rather a long line than a number cut off


def print_replay(found: dict[str, Any]) -> None:
    """A replay in words."""
    print(f"{found['episodes']} episodes, {found['steps']} steps, {found['edition']} edition: ", end="")
    print(f"{found['mismatched_steps']} mismatched steps in {found['mismatched_episodes']} episodes.")
    first = found["first_mismatch"]
    if first is None:
        return
    other = found.get("edition_that_fits")
    if other:
        print(f"All steps agree with the {other} edition: use --edition {other}.")
    print(f"First mismatch: {first['file']}, episode {first['episode']}, step {first['step']} (both count from 0).")
    for name, pair in first["fields"].items():
        print(f"  {name}: recorded {pair['recorded']}, engine {pair['engine']}")
    if found["mismatched_after_collision"]:
        print(
            f"{found['mismatched_after_collision']} of them come after a process-id collision, which the engine does "
            "not model (docs/fidelity.md)."
        )


def print_live(found: dict[str, Any]) -> None:
    """A live lockstep: games of each kind, then all of them in words."""
    rows = [
        [game["red_agent"], game["green_agent"], Path(game["blue"]).stem]
        + [f"{game[name]:,}" for name in ("episodes", "steps", "mismatched_steps")]
        for game in found["games"]
    ]
    table(
        f"{found['cyborg']} and the engine in lockstep", ["red", "green", "blue", "games", "steps", "mismatched"], rows
    )
    print_replay(found)


def print_challenge(figures: dict[str, Any]) -> None:
    """The challenge's table: a line for each length and simulator, the totals, and how far the simulators are apart."""
    simulators = [(figures.get("cyborg", "native engine"), figures)]
    if "native" in figures:
        simulators.append(("native engine", figures["native"]))
    reds, rows = list(figures["cells"]), []
    for length in next(iter(figures["cells"].values())):
        for name, found in simulators:
            cells = [found["cells"][red][length] for red in reds]
            rows.append([name, length, *(f"{cell['mean']:.2f} ± {cell['standard_error']:.2f}" for cell in cells)])
        if "difference" in figures:
            apart = [figures["difference"][red][length] for red in reds]
            words = ("certain" if value is None else f"{value:+.1f} errors" for value in apart)
            rows.append(["difference", "", *words])
    table(f"{_policy(figures)}: mean return, {figures['edition']} edition", ["", "steps", *reds], rows)
    if "difference" in figures:
        print("Differences are in standard errors, by the deviation of both samples together.")
    for name, found in simulators:
        total = f"{found['total']:.2f} ± {found['total_standard_error']:.2f}"
        print(f"Total on {name}: {total} ({found['episodes']} games per red agent)")
    for red, found in figures.get("obedience", {}).items():
        print(f"Against {red}: {_obedience(found).words()}")


def _policy(figures: dict[str, Any]) -> str:
    """The policy with what it was asked to do."""
    order = figures.get("workflow", "")
    words = ", mean over all workflows" if order == "universal" else f", {order}" if order else ""
    return f"{figures['policy']}{words}{', greedy' if figures.get('greedy') else ''}"


def print_cells(figures: dict[str, Any]) -> None:
    """Mean returns of a policy, and how it follows its workflow."""
    lengths = list(next(iter(figures["cells"].values())))
    rows = [
        [red, *(f"{cells[length]['mean']:.2f} ± {cells[length]['standard_error']:.2f}" for length in lengths)]
        for red, cells in figures["cells"].items()
    ]
    conditions = f"{figures['episodes']} episodes, {figures['edition']} edition"
    conditions += f", {figures['cyborg']}" if "cyborg" in figures else ""
    conditions += f", blue takes over after {figures['takeover']} steps" if figures.get("takeover", "0") != "0" else ""
    title = f"{_policy(figures)}: mean return ± standard error, {conditions}"
    columns = ["red agent", *(f"{length} steps" for length in lengths)]
    if "obedience" in figures:
        from workflow_rl.report.answer import OBEDIENCE_COLUMNS, obedience_cells  # only now: it compiles

        columns += OBEDIENCE_COLUMNS
        for row, found in zip(rows, figures["obedience"].values(), strict=True):
            row += obedience_cells(found)
    table(title, columns, rows)
    print(f"Total of all means: {figures['total']:.2f} ± {figures['total_standard_error']:.2f}")
    for red, limits in figures.get("limits", {}).items():
        for length, limit in limits.items():
            cell = figures["cells"][red][length]
            words = too_good(cell["mean"], cell["standard_error"], limit)
            if words:
                print(f"{red}, {length} steps: {words}")


def too_good(mean_return: float, standard_error: float, limit: float | None) -> str:
    """What to say about a return that nobody reaches who keeps the order; empty: nothing."""
    from workflow_rl.training.limits import is_too_good

    if limit is None or not is_too_good(mean_return, standard_error, limit):
        return ""
    return f"{mean_return:.2f} is better than the exact limit of the order, {limit:.2f}: it was broken in some games."


def _obedience(found: dict[str, Any]) -> Obedience:
    from workflow_rl.training.compliance import Obedience  # only now: it compiles, and --help must answer at once

    return Obedience.read(found)


def print_bench_env(figures: dict[str, Any]) -> None:
    """Speeds of the environments."""
    rows = []
    for red, speeds in figures["by_red_agent"].items():
        for what, key in (("vector env", "vector_steps_per_s"), ("engine", "engine_steps_per_s")):
            rows.append([f"{what}, {red}", *(f"{rate / 1e6:.2f}" for rate in speeds[key].values())])
    sizes = list(figures["vector_steps_per_s"])
    table("Million steps per second, one thread, by number of environments", ["", *sizes], rows)
    print(f"Single environment: {figures['single_env_steps_per_s']:,.0f} steps/s")
    if figures["cyborg_steps_per_s"] is not None:
        print(
            f"Genuine CybORG: {figures['cyborg_steps_per_s']:,.0f} steps/s; the vector env with 200 environments makes "
            f"{figures['ratio_to_cyborg_at_200']:,.0f} times as many."
        )
    print(f"Start to first step: {figures['cold_start_s']:.1f} s cold, {figures['cached_start_s']:.1f} s cached")
    print(f"Memory: {figures['bytes_per_env']} bytes per environment, peak {figures['peak_memory_mb']:.0f} MB")


def print_bench_cyborg(figures: dict[str, Any]) -> None:
    """Training on genuine CybORG and on the native engine."""
    n = figures["processes"]
    names = (
        ("cyborg", f"CybORG, {n} processes"),
        ("native", f"native, {n} environments"),
        ("native_200", "native, 200"),
    )
    rows = [[what, *(f"{figures[red][f'{name}_transitions_per_s']:,.0f}" for red in REDS)] for name, what in names]
    rows.append(["ratio", *(f"{figures[red]['ratio']:,.0f} x" for red in REDS)])
    rows.append(["ratio with 200", *(f"{figures[red]['ratio_200']:,.0f} x" for red in REDS)])
    table("Training, transitions per second", ["", *REDS], rows)
    print(f"Start of {n} processes and first reset: {figures['start_s']:.1f} s")


def print_bench_train(figures: dict[str, Any]) -> None:
    """Speeds of training."""
    rows = [
        [f"fast path, {red}, {figures['updates']} updates from scratch", f"{figures[red]['transitions_per_s']:,.0f}"]
        for red in REDS
    ]
    for red in REDS:
        rate = figures[red]["sb3_transitions_per_s"]
        rows.append([f"stable-baselines3, {red}", "not installed" if rate is None else f"{rate:,.0f}"])
    for name in ("plain", "network_only", "plain_two_threads", "one_process", "two_process"):
        rows.append([name.replace("_", " "), f"{figures[f'{name}_transitions_per_s']:,.0f}"])
    table("Training, 200 environments x 100 steps, 4 epochs, one thread", ["", "transitions/s"], rows)
    print(f"Plain path over network only: {figures['ratio_to_network_only']:.2f}")


def print_runs(found: dict[str, Any]) -> None:
    """Runs as a table, and the settings in which they differ."""
    rows = []
    for run in found["runs"]:
        figure = "" if run["mean_return"] is None else f"{run['mean_return']:.2f} ± {run['standard_error']:.2f}"
        compliance = "" if run["compliance"] is None else f"{run['compliance']:.3f}"
        seconds = "" if run["seconds"] is None else f"{run['seconds']:.1f}"
        state = run["state"] + (f", {run['evaluations']} evaluations" if run["evaluations"] is not None else "")
        state += f": {run['problem']}" if run["problem"] else ""
        about = [run["run"], run["kind"], state, run["red_agent"] or "", run["workflow"] or ""]
        rows.append([*about, figure, compliance, seconds])
    columns = ["run", "kind", "state", "red agent", "workflow (of a search: the best)", "return", "compliance", "s"]
    table(f"{len(rows)} runs", columns, rows)
    differ = found.get("settings_that_differ", {})
    if differ:
        names = [run["run"] for run in found["runs"]]
        table("Settings that differ", ["", *names], [[name, *map(str, values)] for name, values in differ.items()])


def print_bench_search(figures: dict[str, Any]) -> None:
    """Regret on each table, and on the synthetic ones."""
    for name, found in figures.items():
        if "gp-ucb" not in found:
            continue
        looks = list(found["gp-ucb"]["median_regret"])
        rows = [
            [
                strategy,
                *(f"{found[strategy]['median_regret'][look]:.3f}" for look in looks),
                *(f"{found[strategy]['mean_regret'][look]:.3f}" for look in looks),
                *(f"{found[strategy]['within_one_standard_error'][look]:.0%}" for look in looks),
            ]
            for strategy in found
            if isinstance(found[strategy], dict)
        ]
        columns = ["", *(f"{kind} {look}" for kind in ("median", "mean", "within 1 SE") for look in looks)]
        about = f"range {found['range']:.2f}, standard error {found['standard_error']:.2f}, {found['seeds']} seeds"
        table(f"{name}: regret after so many evaluations; {about}", columns, rows)
    for large in (found for found in figures.values() if "within_5_percent" in found):
        share, randoms = large["within_5_percent"], large["random_within_5_percent"]
        print(
            f"8 unit types, {large['orders']:,} orders, {large['tables']} tables, noise "
            f"{large['noise_over_range']:.0%} of the range: after {large['evaluations']} evaluations GP-UCB is within "
            f"5 % of the best in {share:.0%}, random search in {randoms:.0%}; random orders needed until one is as "
            f"close, without noise: {large['random_median_draws_to_5_percent_without_noise']:,.0f}."
        )
