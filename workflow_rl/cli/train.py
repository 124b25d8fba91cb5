"""Options of ``train`` and ``search``, made from the settings; what ``train`` says about updates and its result."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workflow_rl.cli.printing import too_good
from workflow_rl.config import SEARCH_FIELDS, TrainConfig
from workflow_rl.presets import AGAINST, NO_SEARCH, PRESET_WORDS, PRESETS, TASK_FIELDS

PRESET_HELP = "; ".join(f"{name}: {words}" for name, words in PRESET_WORDS.items())
SEARCH_PRESET_HELP = "; ".join(
    f"{name}: {words.split('; the default')[0]}" for name, words in PRESET_WORDS.items() if name not in NO_SEARCH
)

if TYPE_CHECKING:
    from workflow_rl.training.events import UpdateEvent


Command = Callable[..., None]


def with_settings(command: Command) -> Command:
    """Gives ``command`` one option per field of TrainConfig; those not given on the command line are None."""
    return _with_options(command, [(item, _default(item.name, item.default)) for item in fields(TrainConfig)])


def with_search_settings(command: Command) -> Command:
    """Gives ``command`` one option per setting of a search, and of its trainings."""
    own = [(item, str(item.default)) for item in SEARCH_FIELDS]
    trained = [item for item in fields(TrainConfig) if item.name not in TASK_FIELDS]
    return _with_options(command, own + [(item, _of_preset("search", item.name, item.default)) for item in trained])


def _with_options(command: Command, settings: list[tuple[Field[Any], str]]) -> Command:
    parameters = []
    for item, default in settings:
        kind: Any = type(item.default)
        name = f"--{item.name.replace('_', '-')}"
        names = [f"{name}/--no-{name[2:]}"] if kind is bool else [name]
        option = typer.Option(*names, help=f"{item.metadata['help']} [default: {default}]", show_default=False)
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
    """What a setting is if it is not given, with and without a workflow."""
    with_workflow, without = (_of_preset(preset, name, plain) for preset in ("workflow", "general"))
    if with_workflow == without:
        return with_workflow if with_workflow != "" else "none"
    return f"{with_workflow}; without --workflow {without}"


def _of_preset(preset: str, name: str, plain: Any) -> str:
    """What a setting is in a preset."""
    suited = AGAINST[preset]
    if name in suited[""] and suited[""][name] != suited["bline"][name]:
        return f"{suited['bline'][name]} against bline, else {suited[''][name]}"
    return str(suited[""].get(name, PRESETS[preset].get(name, plain)))


def line(event: UpdateEvent) -> str:
    """One update in words."""
    words = [f"{event.phase} {event.update:4}"]
    if event.mean_return is not None:
        words.append(f"return {event.mean_return:8.2f}")
        if event.compliance is not None:
            words.append(f"compliance {event.compliance:.3f}")
        words.append(f"repairs {event.repairs:4.1f}  idle fixes {event.idle_fixes:4.1f}")
    words.append(f"entropy {event.stats.entropy:.2f}")
    rate = event.transitions_per_s
    words.append(f"{rate / 1e6:.2f} M transitions/s" if rate >= 1e5 else f"{rate:,.0f} transitions/s")
    return "  ".join(words)


def summary(result: dict[str, Any]) -> str:
    """The result in words."""
    from workflow_rl.training.compliance import Obedience  # only now: it compiles, and --help must answer at once

    kept = {name: value for name, value in result.items() if name != "by_workflow"}
    what = f"Workflow {kept['workflow']}" if kept["workflow"] else "General policy"
    what += " on genuine CybORG" if kept.get("backend") == "cyborg" else ""
    lines = [
        f"{what}: stopped by {kept['stop_reason']} after {kept['updates']} updates, {kept['episodes']} episodes, "
        f"{kept['seconds']:.1f} s.",
        f"Mean return {kept['mean_return']:.2f} ± {kept['standard_error']:.2f} on fresh episodes "
        f"(most probable actions: {kept['greedy_mean_return']:.2f}).",
    ]
    if kept.get("limit") is not None:
        words = too_good(kept["mean_return"], kept["standard_error"], kept["limit"])
        lines.append(words or f"Exact limit of the order, for a defender that sees everything: {kept['limit']:.2f}.")
    if kept["workflow"]:
        lines.append(f"{'Followed' if kept['followed'] else 'NOT followed'}: {Obedience.read(kept).words()}.")
    lines.append(f"Everything is in {kept['run']}.")
    return "\n".join(lines)


def json_result(result: dict[str, Any]) -> str:
    """The result as one line of JSON."""
    return json.dumps({name: value for name, value in result.items() if name != "by_workflow"})
