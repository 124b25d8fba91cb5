"""Study `learners`: our PPO beside stable-baselines3's, by transitions and by seconds, with equal efforts of tuning.

General policies from scratch. The tuned contestants of both libraries try the same settings, drawn at random once, with
the same number of transitions, against each opponent by itself; the best trial's settings are then trained with the
reported seeds. What a setting does not name is left as each library has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.studies.baselines import FOES, GAMES_SEED, Ask, seeds
from benchmarks.studies.cells import Cell
from benchmarks.studies.statistics import difference, summary

SPACE: dict[str, list[Any]] = {  # drawn independently and uniformly, the learning rate log-uniformly between its ends
    "lr": [0.0003, 0.01],
    "n_envs": [10, 20, 50],
    "steps": [100, 200],  # of each environment between two updates
    "minibatch": [250, 500, 1000, 0],  # 0: the whole batch
    "epochs": [4, 8, 16],
    "gamma": [0.95, 0.97, 0.99],
    "gae_lambda": [0.9, 0.95, 1.0],
    "entropy": [0.0, 0.003, 0.01, 0.03],
    "clip": [0.1, 0.2, 0.3],
    "anneal": [False, True],  # ours anneals the entropy bonus as well
}
TRIALS, TRIAL_TRANSITIONS, TRIAL_SEED = 12, 300_000, 100  # trial i has seed 100 + i; its games have another seed too
CHECKPOINTS = [20_000, 30_000, 50_000, 100_000, 200_000, 300_000, 500_000, 1_000_000]
BEYOND = [3_000_000, 10_000_000]  # of our preset, which goes on to its own end
SLOW = 300_000  # the last checkpoint of stable-baselines3 with its defaults, whose million takes five minutes a seed
SB3 = {"n_envs": 8, "n_steps": 2048, "batch_size": 64, "n_epochs": 10, "learning_rate": 0.0003, "anneal": False}
CONTESTANTS = ("ours", "ours-tuned", "sb3", "sb3-tuned")
PAIRS = (("ours", "sb3-tuned"), ("ours-tuned", "sb3-tuned"), ("ours", "sb3"))
TARGETS = (-30, -20)
EPISODE = 100  # steps


def learners(ask: Ask, quick: bool) -> dict[str, Any]:
    """Tunes both learners, then trains all contestants, one process at a time and in turn."""
    tried = drawn(2 if quick else TRIALS)
    tuned = {red: {name: _tuned(ask, name, red, tried, quick) for name in ("ours", "sb3")} for red in FOES}
    curves = _curves(ask, tuned, quick)
    million = _checkpoints(quick)[-1]
    return {
        "games": _games(quick), "games_seed": GAMES_SEED, "space": SPACE, "trials": len(tried),
        "trial_transitions": _trial(quick), "tried": tried, "tuned": tuned, "defaults": SB3,
        "curves": {red: {name: _curve(own) for name, own in found.items()} for red, found in curves.items()},
        "equal_transitions": {
            str(n): {red: _compared({name: _within(own, n) for name, own in found.items()})
                     for red, found in curves.items()}
            for n in ((million,) if quick else (SLOW, million))
        },
        "equal_seconds": {  # those that this contestant needs for the last checkpoint of all
            name: {red: _at_seconds(found, name, million) for red, found in curves.items()}
            for name in ("ours", "sb3-tuned")
        },
        "until": {
            red: {name: {str(mark): _until(own, mark) for mark in TARGETS} for name, own in found.items()}
            for red, found in curves.items()
        },
    }  # fmt: skip


def drawn(trials: int) -> list[dict[str, Any]]:
    """The settings that both learners try; the first ones are the same however many are drawn."""
    found = []
    for trial in range(trials):
        generator = np.random.default_rng([TRIAL_SEED, trial])
        low, high = np.log(SPACE["lr"])
        values: dict[str, Any] = {"lr": float(f"{np.exp(generator.uniform(low, high)):.2g}")}
        for name, choices in SPACE.items():
            if name != "lr":
                values[name] = choices[int(generator.integers(len(choices)))]
        found.append(values)
    return found


def settings_for(learner: str, values: dict[str, Any], transitions: int) -> dict[str, Any]:
    """The settings of a trial in the words of a learner; both normalise advantages, as stable-baselines3 does."""
    own = dict(values)
    rate, steps, minibatch = (own.pop(name) for name in ("lr", "steps", "minibatch"))
    if learner == "ours":
        length = {"max_episodes": transitions // (own["n_envs"] * EPISODE), "min_episodes": 0}
        own |= length | {"lr": rate, "update_steps": steps, "minibatch": minibatch}
        return own | {"normalise_advantages": True}
    words = {"epochs": "n_epochs", "entropy": "ent_coef", "clip": "clip_range"}
    own = {words.get(name, name): value for name, value in own.items()}
    return own | {"learning_rate": rate, "n_steps": steps, "batch_size": minibatch or own["n_envs"] * steps}


def _games(quick: bool) -> int:
    return 20 if quick else 500


def _checkpoints(quick: bool) -> list[int]:
    return [10_000, 20_000] if quick else CHECKPOINTS


def _trial(quick: bool) -> int:
    return 10_000 if quick else TRIAL_TRANSITIONS


def _tuned(ask: Ask, learner: str, red: str, tried: list[dict[str, Any]], quick: bool) -> dict[str, Any]:
    """The trial with the highest return, by games that are not those of the report."""

    def settings(values: dict[str, Any]) -> dict[str, Any]:
        return settings_for(learner, values, _trial(quick))

    common = {"red": red, "checkpoints": [_trial(quick)], "games": _games(quick), "games_seed": GAMES_SEED + 3}
    cells = [
        Cell(f"curve_{learner}", common | {"seed": TRIAL_SEED + trial, "settings": settings(values)})
        for trial, values in enumerate(tried)
    ]
    returns = [one["looks"][-1]["mean_return"] for one in ask(cells)]
    best = int(np.argmax(returns))
    return {"values": tried[best], "trial": best, "returns": returns}


def _curves(ask: Ask, tuned: dict[str, Any], quick: bool) -> dict[str, dict[str, list[Any]]]:
    """The looks of every contestant, by opponent and seed."""
    checkpoints = _checkpoints(quick)
    few: dict[str, Any] = {"n_envs": 20, "max_episodes": 12} if quick else {}  # of the preset
    default = SB3 | ({"n_steps": 128, "n_epochs": 1} if quick else {})
    cells = {}
    for seed in seeds(quick):
        for red in FOES:
            own = {name: settings_for(name, tuned[red][name]["values"], checkpoints[-1]) for name in ("ours", "sb3")}
            plans: dict[str, tuple[str, dict[str, Any], list[int]]] = {
                "ours": ("curve_ours", few, checkpoints + BEYOND),
                "ours-tuned": ("curve_ours", own["ours"], checkpoints),
                "sb3": ("curve_sb3", default, [n for n in checkpoints if n <= SLOW]),
                "sb3-tuned": ("curve_sb3", own["sb3"], checkpoints),
            }
            common = {"red": red, "seed": seed, "games": _games(quick), "games_seed": GAMES_SEED}
            for name, (task, settings, within) in plans.items():
                arguments = common | {"settings": settings, "checkpoints": within}
                cells[seed, red, name] = Cell(task, arguments, alone=not quick)
    found = dict(zip(cells, ask(list(cells.values())), strict=True))
    return {red: {name: [found[seed, red, name]["looks"] for seed in seeds(quick)] for name in CONTESTANTS}
            for red in FOES}  # fmt: skip


def _curve(runs: list[Any]) -> dict[str, Any]:
    """Return and seconds at each checkpoint, with the transitions of the last update within it."""
    return {
        str(looks[0]["within"]): {
            "transitions": looks[0]["transitions"],
            **{name: summary([look[name] for look in looks]) for name in ("mean_return", "seconds")},
        }
        for looks in zip(*runs, strict=True)
    }


def _within(runs: list[Any], transitions: int) -> list[float] | None:
    """Returns of all seeds at a checkpoint."""
    found = [look["mean_return"] for run in runs for look in run if look["within"] == transitions]
    return found or None


def _at_seconds(found: dict[str, list[Any]], reference: str, transitions: int) -> dict[str, Any]:
    """Returns at the last checkpoint within the seconds that the slowest seed of the reference needs."""
    seconds = max(look["seconds"] for run in found[reference] for look in run if look["within"] == transitions)
    returns: dict[str, list[float] | None] = {}
    for name, runs in found.items():
        lasts = [[look for look in run if look["seconds"] <= seconds][-1:] for run in runs]
        returns[name] = [last[0]["mean_return"] for last in lasts] if all(lasts) else None
    return {"seconds": seconds} | _compared(returns)


def _compared(returns: dict[str, list[float] | None]) -> dict[str, Any]:
    """Summaries of the contestants, None for one that has no checkpoint there, and differences between them."""
    apart = {}
    for left, right in PAIRS:
        one, other = returns[left], returns[right]
        apart[f"{left} - {right}"] = difference(one, other) if one and other else None
    return {"returns": {name: summary(own) if own else None for name, own in returns.items()}, "differences": apart}


def _until(runs: list[Any], mark: float) -> dict[str, Any]:
    """Transitions and seconds until the first checkpoint with this return; None unless every seed reaches it."""
    firsts = [next((look for look in run if look["mean_return"] >= mark), None) for run in runs]
    reached = [one for one in firsts if one]
    whole = len(reached) == len(runs)
    return {"seeds": len(reached), "of": len(runs)} | {
        name: summary([one[name] for one in reached]) if whole else None for name in ("transitions", "seconds")
    }
