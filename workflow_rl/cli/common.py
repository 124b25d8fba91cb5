"""What the commands share: options, and how results, progress and tables are shown."""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, asdict, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from workflow_rl.config import BACKENDS, BUDGET, GROUPS, MACHINE, SEARCH_FIELDS, TRAINING, WHAT, TrainConfig
from workflow_rl.presets import AGAINST, NO_SEARCH, PRESET_WORDS, PRESETS, TASK_FIELDS


def suggesting(*values: str) -> Callable[[], list[str]]:
    """What the shell offers as the value of an option."""
    return lambda: list(values)


def bundled_networks() -> list[str]:
    """The names that the shell offers for a network."""
    from workflow_rl.engine.network_file import bundled

    return list(bundled())


def known_runs() -> list[str]:
    """The run directories that the shell offers."""
    return sorted(str(path.parent) for path in Path("runs").glob("*/config.json"))


def known_defenders() -> list[str]:
    """The defenders that the shell offers: those with a name, and runs."""
    return ["champion", "expert", "sleep", "random", "reactive-restore", "reactive-remove", *known_runs()]


red_agents = suggesting("bline", "meander", "sleep")
editions = suggesting("current", "leaderboard")
SUGGESTED = {"red_agent": red_agents, "edition": editions, "warm_start": suggesting("none", "general")}

Json = Annotated[
    bool,
    typer.Option("--json", help="One JSON object as the last line of standard output.", rich_help_panel=MACHINE),
]
Edition = Annotated[str, typer.Option(help="CybORG's rules: current or leaderboard.", autocompletion=editions)]
OwnEdition = Annotated[
    str | None,
    typer.Option(
        help="CybORG's rules: current or leaderboard.", show_default="the policy's own, else current",
        autocompletion=editions,
    ),
]  # fmt: skip
RedAgents = Annotated[
    str | None,
    typer.Option(help="bline, meander, sleep, or a comma list.", show_default="all", autocompletion=red_agents),
]
Defender = Annotated[
    str,
    typer.Argument(
        help="A run, a policy file, champion, expert, sleep, random, reactive-restore, reactive-remove.",
        autocompletion=known_defenders,
    ),
]
BackendName = Annotated[
    str,
    typer.Option(
        help="native, or cyborg: genuine CybORG.", autocompletion=suggesting(*BACKENDS), rich_help_panel=MACHINE
    ),
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", rich_help_panel=MACHINE)]
Jobs = Annotated[int | None, typer.Option(help="Processes.", show_default="one per core", rich_help_panel=MACHINE)]
CyborgPath = Annotated[
    str, typer.Option(help="A checkout of CybORG to use instead of csle-cyborg.", rich_help_panel=MACHINE)
]
Takeover = Annotated[
    str | None,
    typer.Option(help="Steps that red plays before blue may act, or a range of them.", show_default="the policy's own"),
]
NetworkName = Annotated[
    str | None,
    typer.Option(
        "--network", metavar="FILE|NAME", help="A network file, or a bundled one's name.",
        show_default="the run's own, else cage2", autocompletion=bundled_networks,
    ),
]  # fmt: skip
RunDir = Annotated[
    Path | None,
    typer.Option(help="Where to keep the run; default: a new one under runs/.", rich_help_panel=MACHINE),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        help="Go on with this run, which was interrupted.", rich_help_panel=MACHINE, autocompletion=known_runs
    ),
]

SECONDS_BETWEEN_LINES = 5.0

Command = Callable[..., None]
Figures = dict[str, Any]
"""A result as it is printed with --json."""


def acting(red_agents: Sequence[str]) -> list[str]:
    """The red agents of a network without the one that only sleeps."""
    return [name for name in red_agents if name != "sleep"]


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by group.

    Typer's own panels truncate the names of options in a terminal of 80 columns.
    """

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Writes a section for each group."""
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for parameter in self.get_params(ctx):
            group = MACHINE if parameter.name == "help" else getattr(parameter, "rich_help_panel", None) or WHAT
            groups[group] += filter(None, [parameter.get_help_record(ctx)])
        for group, records in groups.items():
            if records:
                with formatter.section(group or (f"What to {self.name}" if groups[BUDGET] else "Options")):
                    formatter.write_dl(records)
        presets = [words for words in PRESET_WORDS.items() if self.name == "train" or words[0] not in NO_SEARCH]
        if self.name in ("train", "search"):
            with formatter.section("Presets"):
                formatter.write_dl(presets)


def preset_option(presets: Iterable[str]) -> Any:
    """The option ``--preset``."""
    names = list(presets)
    return typer.Option(
        help=f"Settings to start from: {', '.join(names)}.", show_default=False, rich_help_panel=TRAINING,
        autocompletion=lambda: [(name, PRESET_WORDS[name]) for name in names],
    )  # fmt: skip


def with_settings(command: Command) -> Command:
    """Adds one option per field of TrainConfig to ``command``; options not given on the command line are None."""
    return _with_options(command, [(item, _default(item.name, item.default)) for item in fields(TrainConfig)])


def with_search_settings(command: Command) -> Command:
    """Adds one option per setting of a search and of its trainings to ``command``."""
    own = [(item, str(item.default)) for item in SEARCH_FIELDS]
    trained = [item for item in fields(TrainConfig) if item.name not in TASK_FIELDS]
    return _with_options(command, own + [(item, _of_preset("search", item.name, item.default)) for item in trained])


def _with_options(command: Command, settings: list[tuple[Field[Any], str]]) -> Command:
    parameters = []
    for item, default in settings:
        kind: Any = type(item.default)
        name = f"--{item.name.replace('_', '-')}"
        names = [f"{name}/--no-{name[2:]}"] if kind is bool else [name]
        known = item.metadata["choices"]
        option = typer.Option(
            *names, help=item.metadata["help"] + (f" [default: {default}]" if default else ""), show_default=False,
            rich_help_panel=item.metadata["group"],
            autocompletion=suggesting(*known) if known else SUGGESTED.get(item.name),
        )  # fmt: skip
        annotation = Annotated[kind | None, option]
        parameters.append(
            inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        )
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]

    def wrapped(**values: Any) -> None:
        command(**values)

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    wrapped.__signature__ = inspect.Signature([*own, *parameters])  # type: ignore[attr-defined]
    return wrapped


def _default(name: str, plain: Any) -> str:
    """The default of a setting in words, with and without a workflow."""
    with_workflow, without = (_of_preset(preset, name, plain) for preset in ("workflow", "general"))
    if with_workflow == without:
        return with_workflow if with_workflow != "" else "none"
    return f"{with_workflow}; without --workflow {without}"


def _of_preset(preset: str, name: str, plain: Any) -> str:
    """The value of a setting in a preset, in words."""
    suited = AGAINST[preset]
    if name in suited[""] and suited[""][name] != suited["bline"][name]:
        return f"{suited['bline'][name]} against bline, else {suited[''][name]}"
    return str(suited[""].get(name, PRESETS[preset].get(name, plain)))


def show_result(value: Any, as_json: bool, show: Callable[[], None]) -> None:
    """A result (a dictionary or a dataclass) as one line of JSON, or as ``show`` prints it."""
    if not as_json:
        show()
        return
    if is_dataclass(value) and not isinstance(value, type):
        value = value.to_json() if hasattr(value, "to_json") else asdict(value)
    print(json.dumps(value), flush=True)


def say(line: str) -> None:
    """Prints one line of progress."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[float], None]]:
    """A progress bar on a terminal, otherwise a plain line every few seconds."""
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
    """A bar with the remaining time on a terminal, otherwise a plain line per second."""
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


def too_good(mean_return: float, standard_error: float, limit: float | None) -> str:
    """A remark on a return that is better than the limit of any defender that keeps the order; else empty."""
    from workflow_rl.training.limits import is_too_good

    if limit is None or not is_too_good(mean_return, standard_error, limit):
        return ""
    return f"{mean_return:.2f} is better than the exact limit of the order, {limit:.2f}: it was broken in some games."
