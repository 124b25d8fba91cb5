"""Every experiment by name, with what it asks, and the one way to run it and to store its result.

A study compares at equal budget and keeps its finished cells (benchmarks/studies). Every other experiment is a module
of this folder. Its function ``measure``, called with the words of the part or argument, or the function named as the
part, returns the figures; they are stored in results/NAME.json, those of a part in results/NAME_PART.json. Experiments
that do not store write files of their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from benchmarks.results import read_result, write_result
from workflow_rl.errors import UserError, check_choice

RECORDINGS = "../shared/cage2-oracle"  # games of genuine CybORG


@dataclass(frozen=True)
class Experiment:
    """What an experiment asks, the names of its parts or the default of its argument, and whether it stores figures."""

    asks: str
    parts: tuple[str, ...] = ()
    argument: str = ""
    stores: bool = True


EXPERIMENTS = {
    "champion": Experiment(
        "how the shipped defenders score by the challenge's protocol, and what changes a score",
        ("original", "table", "cyborg", "editions", "wrapper", "clock"),
    ),
    "cluster": Experiment(
        "what Ray costs, what survives a failure, how far the search scales",
        ("overhead", "faults", "suggestions", "evaluations", "scaling", "model"),
    ),
    "cyborg": Experiment(
        "whether genuine CybORG and the engine agree, and how fast each is",
        ("lockstep", "transfer", "speed", "oracle"),
    ),
    "design": Experiment("why the search begins with designed points"),
    "env": Experiment("how fast the environments are"),
    "failures": Experiment("whether trainings that fail mislead the search"),
    "free_play": Experiment("whether mean returns agree with the reference tables", argument="50000"),
    "general": Experiment("what policies without an order reach, from scratch"),
    "hosts": Experiment("how fast the engine is in larger networks"),
    "incidents": Experiment(
        "what orders and the search are worth when blue takes over late",
        ("search", "regret", "strategies", "general", "cyborg", "lockstep"),
    ),
    "limits": Experiment("(writes the limits that ship with the package, from the result of `limit`)", stores=False),
    "memory": Experiment("what the small memory is worth from scratch, in return and in seconds"),
    "mutations": Experiment("which wrong entries of the engine's tables a replay notices", argument=RECORDINGS),
    "networks": Experiment(
        "whether genuine CybORG and the engine agree on generated networks of other sizes", argument="200"
    ),
    "obedient": Experiment(
        "what every order costs the champion, beside what could be reached",
        ("orders", "leaderboard", "known", "green", "cyborg"),
    ),
    "pictures": Experiment("(writes the pictures of the documents, from the stored run)", stores=False),
    "planner": Experiment("what looking ahead is worth when blue decides, by milliseconds per step"),
    "playbooks": Experiment(
        "whether GP-UCB finds better orders than random search where there are thousands",
        ("cage2-fine bline 0", "cage2-fine bline 30", "plant bline 0", "five bline 0", "five bline 30"),
    ),
    "problems": Experiment("whether the search finds good orders outside cyber defence, with known optima"),
    "repeat": Experiment(
        "whether the bundled champions come again from their seed, also if the training is killed",
        ("obedient current", "champion leaderboard", "champion current", "obedient leaderboard"),
    ),
    "replay": Experiment("whether the engine reproduces every recorded game of CybORG", argument=RECORDINGS),
    "report": Experiment("how long a report takes to write and to open"),
    "search": Experiment("what the default search finds, in which time, with which regret"),
    "taught": Experiment("what imitating a simple rule first is worth on a network of many hosts"),
    "test_ways": Experiment(
        "whether the tests pass from an empty clone in other environments",
        ("plain", "processor", "core", "locale", "home", "network", "user", "all"),
        stores=False,
    ),
    "train": Experiment("how fast training is"),
    "workflow_table": Experiment(
        "what every order is worth, trained to the end", ("bline", "meander", "bline 30", "meander 40")
    ),
}


def run_experiment(name: str, part: str = "") -> Iterator[Path]:
    """Runs a part of an experiment, or all of them in turn; yields each result file as soon as it is written."""
    experiment = EXPERIMENTS[name]
    if part and experiment.parts:
        check_choice(f"part of {name}", part, experiment.parts)
    elif part and not experiment.argument:
        raise UserError(f"{name} has no parts; leave {part!r} out.")
    for words in (part or experiment.argument,) if part or not experiment.parts else experiment.parts:
        module = import_module(f"benchmarks.{name}")
        began = time.perf_counter()
        figures = module.measure(*words.split()) if hasattr(module, "measure") else getattr(module, words)()
        if experiment.stores:
            stored = stored_name(name, words if experiment.parts else "")
            if figures is None:  # those of an experiment that stores them before it judges them
                figures = read_result(stored)["figures"]
            seconds = round(time.perf_counter() - began, 1)
            yield write_result(stored, f"python -m benchmarks {name} {words}".strip(), figures, seconds=seconds)


def stored_name(name: str, part: str) -> str:
    """The name of the result file of an experiment's part."""
    return "_".join([name, *part.replace("-", "_").split()])
