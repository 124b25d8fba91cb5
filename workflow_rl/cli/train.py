"""The command ``workflow-rl train``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workflow_rl.cli.common import (
    Figures,
    Json,
    NetworkName,
    Resume,
    RunDir,
    preset_option,
    say,
    show_result,
    too_good,
    training_progress,
    with_settings,
)
from workflow_rl.cli.screen import Screen
from workflow_rl.config import MACHINE, chain
from workflow_rl.errors import SimulatorError, UserError
from workflow_rl.presets import PRESETS

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from workflow_rl.config import TrainConfig
    from workflow_rl.runs import Run
    from workflow_rl.training.events import UpdateEvent


@with_settings
def train(
    preset: Annotated[str, preset_option(PRESETS)] = "",
    network: NetworkName = None,
    run_dir: RunDir = None,
    resume: Resume = None,
    tensorboard: Annotated[bool, typer.Option(help="Write figures for TensorBoard.", rich_help_panel=MACHINE)] = True,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Trains one defender. It is for one workflow (--workflow), for all (--universal), or a general one."""
    from workflow_rl.defenders.imitation import expert_teacher
    from workflow_rl.training.trainer import train_workflow

    given = {name: value for name, value in values.items() if value is not None}
    if resume is not None and (given or preset or run_dir):
        raise UserError("--resume goes on with the run's own settings; give no others.")
    run = _unfinished_run(resume, network) if resume else _new_run(preset, given, run_dir, network)
    say(f"run: {run.path}")
    log = TensorBoardLog(run.path) if tensorboard else None
    with training_progress() as show:

        def hear(event: UpdateEvent) -> None:
            if log:
                log(event)
            show(line(event), event.update, run.config.max_updates)

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
    figures = {name: value for name, value in asdict(result).items() if name != "by_workflow"}
    show_result(figures, as_json, lambda: print_training(figures, Screen()))


def _unfinished_run(path: Path, network: str | None) -> Run[TrainConfig]:
    from workflow_rl.engine.networks.copies import chosen_network
    from workflow_rl.runs import Run, read_config, read_result

    read_config(path)  # refuses what is not a training
    if read_result(path) is not None:
        raise UserError(f"{path} is finished; there is nothing to resume.")
    chosen_network(path, network)  # refuses another network than the run's own
    return Run.open(path)


def _new_run(preset: str, given: Figures, path: Path | None, network: str | None) -> Run[TrainConfig]:
    from workflow_rl.engine.networks.copies import chosen_network, copy_of
    from workflow_rl.presets import make_config, task_of
    from workflow_rl.runs import Run, new_run_directory
    from workflow_rl.training.train_task import check_task

    defended = chosen_network(None, network)
    task = task_of(preset, given, defended.red_agents, defended.editions)
    config = make_config(preset, hosts=len(defended.hosts), **task)
    check_task(config, defended)
    return Run.create(path or new_run_directory(preset or "train"), config, copy_of(defended))


class TensorBoardLog:
    """Writes the figures of each update into the run's directory; one graph per figure, and one more per phase."""

    def __init__(self, run: Path) -> None:
        self.directory = run / "tensorboard"
        self.writers: dict[str, SummaryWriter] = {}

    def __call__(self, event: UpdateEvent) -> None:
        """Adds the figures of one update."""
        from torch.utils.tensorboard import SummaryWriter

        phase, update = event.phase, event.update
        if phase not in self.writers:
            self.writers[phase] = SummaryWriter(str(self.directory / phase), purge_step=update)
        for name, value in event.to_json().items():
            if isinstance(value, (int, float)) and name not in ("update", "fast"):
                self.writers[phase].add_scalar(name, value, update)

    def close(self) -> None:
        """Flushes and closes the files."""
        for writer in self.writers.values():
            writer.close()


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


def print_training(result: Figures, screen: Screen) -> None:
    """The result in words."""
    from workflow_rl.training.compliance import Obedience  # only now: it compiles, and --help must answer at once

    order = result["workflow"]
    what = f"Workflow {chain(order) if ',' in order else order}" if result["workflow"] else "General policy"
    what += " on genuine CybORG" if result.get("backend") == "cyborg" else ""
    lines = [
        f"{what}: stopped by {result['stop_reason']} after {result['updates']} updates, {result['episodes']} episodes, "
        f"{result['seconds']:.1f} s.",
        f"Mean return {result['mean_return']:.2f} ± {result['standard_error']:.2f} on fresh episodes "
        f"(most probable actions: {result['greedy_mean_return']:.2f}).",
    ]
    if result.get("limit") is not None:
        words = too_good(result["mean_return"], result["standard_error"], result["limit"])
        lines.append(words or f"Exact limit of the order, for a defender that sees everything: {result['limit']:.2f}.")
    if result["workflow"]:
        lines.append(f"{'Followed' if result['followed'] else 'NOT followed'}: {Obedience.read(result).words()}.")
    lines.append(f"Everything is in {result['run']}.")
    for line in lines:
        screen.text(line)
