"""Study `rollout`: how many episodes an update should use, at equal transitions and at equal time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.studies.baselines import ENTERPRISE_FIRST, Ask, seeds
from benchmarks.studies.cells import Cell
from benchmarks.studies.statistics import summary
from workflow_rl.presets import make_config
from workflow_rl.training.compliance import Obedience

KINDS = {  # the documents' ways to fill a batch: environments, steps of each between two updates
    "1 episode": (1, 100),
    "5 episodes": (1, 500),
    "10 episodes": (1, 1000),
    "25 environments": (25, 100),
    "200 environments": (200, 100),
    "500 environments": (500, 100),
}
OTHERS = {  # their other presets, as they are
    "standard: 8 environments, minibatches of 64": "standard",
    "original: no order, a memory": "original",
}
RED, FOLLOWED, REFERENCE = "bline", 0.95, "200 environments"
TRANSITIONS, SECONDS, FIRST_LOOK = 1_280_000, 10.0, 20_000
HELD_AFTER = (5, 25, 50)  # updates of the training whose gradients are measured


def watched(kind: str, seed: int, quick: bool) -> Cell:
    """One training of the documents' kind, from scratch, evaluated along the way."""
    values: dict[str, Any] = {"workflow": ENTERPRISE_FIRST, "red_agent": RED, "seed": seed}
    if kind in KINDS:
        values |= {"n_envs": KINDS[kind][0], "update_steps": KINDS[kind][1]}
    values |= {"max_episodes": 10**6, "min_episodes": 5}
    if OTHERS.get(kind) == "original":
        del values["workflow"]
    preset = OTHERS.get(kind, "parallel-200")
    arguments = {"preset": preset, "values": values, "first_look": 5000 if quick else FIRST_LOOK}
    arguments |= {"transitions": 50_000 if quick else TRANSITIONS, "seconds": 0.1 if quick else SECONDS}
    return Cell("watch_training", arguments | {"games": 20 if quick else 200})


def measured_alone(kind: str, quick: bool) -> Cell:
    """A few updates in a new process, for memory and speed."""
    cell = watched(kind, 0, quick)
    batch = make_config(cell.arguments["preset"], **cell.arguments["values"]).batch
    arguments = cell.arguments | {"transitions": batch, "seconds": 0.1 if quick else 3.0, "games": 0}
    return Cell(cell.task, arguments, alone=not quick)


def rollout(ask: Ask, quick: bool) -> dict[str, Any]:
    """Curves of all kinds, and the noise of their gradients."""
    kinds = ("1 episode", "25 environments", "200 environments") if quick else (*KINDS, *OTHERS)
    curves = ask([watched(kind, seed, quick) for kind in kinds for seed in seeds(quick)])
    found = dict(zip(kinds, _in_groups(curves, len(seeds(quick))), strict=True))
    target = 50_000 if quick else TRANSITIONS
    limit = 0.1 if quick else SECONDS
    rows = {kind: _row(own, target, limit, OTHERS.get(kind) != "original") for kind, own in found.items()}
    for kind, alone in zip(kinds, ask([measured_alone(kind, quick) for kind in kinds]), strict=True):
        rows[kind]["peak_memory_mb"] = alone["peak_memory_mb"]
        rows[kind]["transitions_per_s"] = alone["transitions"] / alone["seconds"]
    return {
        "red_agent": RED,
        "workflow": ENTERPRISE_FIRST,
        "transitions": target,
        "seconds": 0.1 if quick else SECONDS,
        "kinds": {kind: {"n_envs": n, "update_steps": steps} for kind, (n, steps) in KINDS.items()},
        "rows": rows,
        "gradients": _gradients(ask, quick),
        "equal_quality": (quality := _equal_quality(found)),
        "times_faster": {kind.replace(" ", "_"): one.get("ratio_of_200") for kind, one in quality.items()},
    }


def _in_groups(items: list[Any], size: int) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def at_transitions(curve: dict[str, Any], transitions: int) -> dict[str, Any]:
    """The first look after this many transitions."""
    found: dict[str, Any] = next(look for look in curve["looks"] if look["transitions"] >= transitions)
    return found


def at_seconds(curve: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The first look after this many seconds."""
    found: dict[str, Any] = next(look for look in curve["looks"] if look["seconds"] >= seconds)
    return found


def steadily_followed(curve: dict[str, Any]) -> list[dict[str, Any]]:
    """The looks at which the order was followed, and still was at the next one."""
    pairs = pairwise(curve["looks"])
    return [one for one, after in pairs if all(Obedience.read(look).follows(FOLLOWED) for look in (one, after))]


def first_followed(curve: dict[str, Any], at_least: float = -np.inf) -> dict[str, Any] | None:
    """The first look at which the order was steadily followed with at least this return."""
    return next((look for look in steadily_followed(curve) if look["mean_return"] >= at_least), None)


def _row(curves: list[dict[str, Any]], transitions: int, seconds: float, ordered: bool) -> dict[str, Any]:
    row: dict[str, Any] = {}
    budgets = {
        "equal_transitions": [at_transitions(curve, transitions) for curve in curves],
        "equal_seconds": [at_seconds(curve, seconds) for curve in curves],
    }
    for name, looks in budgets.items():
        row[name] = {
            figure: summary([one[figure] for one in looks])
            for figure in ("mean_return", "repairs", "idle_fixes", "transitions", "seconds")
        }
        for figure in ("compliance", "kept"):  # undefined where nothing was repaired
            shown = [one[figure] for one in looks if ordered and one[figure] is not None]
            row[name][figure] = summary(shown) if shown else None
    if not ordered:
        return row | {"followed": None}
    firsts = [first_followed(curve) for curve in curves]
    reached = [one for one in firsts if one]
    row["followed"] = {
        "seeds": len(reached),
        "of": len(curves),
        "seconds": summary([one["seconds"] for one in reached]) if reached else None,
        "transitions": summary([one["transitions"] for one in reached]) if reached else None,
    }
    return row


def _equal_quality(found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Seconds until 200 environments are as good as one environment ever was, for each way to use one.

    The target of a way is the median over seeds of its best return with the order steadily followed; a way has a target
    only if it follows the order in at least half of its trainings. A training that misses the target counts as endless.
    """
    quality: dict[str, Any] = {}
    for kind, curves in found.items():
        if kind in OTHERS or KINDS[kind][0] > 1:
            continue
        best = [max((look["mean_return"] for look in steadily_followed(curve)), default=None) for curve in curves]
        reached = sorted(value for value in best if value is not None)
        quality[kind] = {"followed": len(reached), "of": len(curves), "longest": max(c["seconds"] for c in curves)}
        if 2 * len(reached) >= len(curves):
            mark = float(np.median(reached))
            own, many = (_median_seconds(found[name], mark) for name in (kind, REFERENCE))
            ratio = own / many if own is not None and many is not None else None
            quality[kind] |= {"return": mark, "seconds": own, "seconds_of_200": many, "ratio_of_200": ratio}
    return quality


def _median_seconds(curves: list[dict[str, Any]], mark: float) -> float | None:
    """Median over trainings of the seconds until the target is reached; None if half of them do not reach it."""
    firsts = [first_followed(curve, mark) for curve in curves]
    median = float(np.median([one["seconds"] if one else np.inf for one in firsts]))
    return median if np.isfinite(median) else None


def _gradients(ask: Ask, quick: bool) -> dict[str, Any]:
    """Noise of one batch's gradient by kind of batch, at three points of a training with 200 environments."""
    held = (1, 2) if quick else HELD_AFTER
    cells = [
        Cell(
            "gradient_noise",
            {
                "values": {"workflow": ENTERPRISE_FIRST, "red_agent": RED, "seed": seed},
                "after": list(held),
                "batches": {kind: list(size) for kind, size in KINDS.items()},
                "repeats": 4 if quick else 24,
            },
        )
        for seed in seeds(quick)
    ]
    found = ask(cells)
    return {
        str(update): {
            kind: {name: summary([one[str(update)][kind][name] for one in found]) for name in ("noise", "cosine")}
            for kind in KINDS
        }
        for update in held
    }
