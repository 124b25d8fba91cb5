"""What looking ahead is worth when blue decides: return against milliseconds per step, against both attackers.

The planner of limit/lookahead.py plays the games of the expert, with the same luck. Its gain is measured twice: as the
difference of these games, and by the advantages of its actions, which have the smaller error. Times are of the
processor; two cells are played at a time.

python -m benchmarks planner
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.command import main
from benchmarks.limit.lookahead import LENGTH, Look, Planner, gains_of, make_planner, play_games
from workflow_rl.defenders.expert import RULES
from workflow_rl.engine.network import FIRST_PROGRAM, MEANDER
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.blue import cell_of

EDITIONS = ("current", "leaderboard")
REDS = {"bline": FIRST_PROGRAM, "meander": MEANDER}
LOOKS = {
    "fast": Look(150, 300),
    "usual": Look(1_500, 1_000),
    "slow": Look(15_000, 2_000),
    "slowest": Look(150_000, 4_000),
    "longest": Look(1_500_000, 8_000),
}  # about 0.1, 1, 10, 100 and 1,000 milliseconds for a decision
GAMES = {"fast": 2_000, "usual": 400, "slow": 60, "slowest": 8, "longest": 2}
SEED, EXPERTS, PAIRS = 20_261_118, 20_000, 500  # no choice is based on this seed
TOP = 12


def measure() -> dict[str, Any]:
    """All cells, and which actions bring the gain."""
    planner = make_planner("current", Look(50, 50))
    gains_of(planner, play_games(planner, MEANDER, 1, 0).notes, 1, 0)  # compiles
    tasks = [(edition, red) for edition in EDITIONS for red in REDS]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        rows = dict(zip(tasks, pool.map(cells, *zip(*tasks, strict=True)), strict=True))
    found = {edition: {red: rows[edition, red] for red in REDS} for edition in EDITIONS}
    looks = {name: look._asdict() for name, look in LOOKS.items()}
    return {"editions": found, "looks": looks, "seed": SEED, "expert_games": EXPERTS, "pairs": PAIRS}


def cells(edition: str, red: str) -> dict[str, Any]:
    """The expert and every amount of looking ahead in one edition against one attacker."""
    expert = play_games(make_planner(edition, Look(0, 1)), REDS[red], EXPERTS, SEED).returns
    usual = cell_of(expert)
    figures: dict[str, Any] = {"expert": {"mean_return": usual.mean, "standard_error": usual.standard_error}}
    pooled: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for name, look in LOOKS.items():
        figures[name] = cell(make_planner(edition, look), REDS[red], GAMES[name], expert, pooled)
        print(edition, red, name, figures[name], flush=True)
    figures["changes"] = changes(pooled, sum(GAMES.values()))
    return figures


def cell(
    planner: Planner, red: int, games: int, expert: np.ndarray, pooled: dict[tuple[str, str, str], list[float]]
) -> dict[str, Any]:
    """The figures of some games; gains of single actions are added to ``pooled``.

    ``mean_return`` is that of the expert in all its games and the gain, since few games have a mean of their own.
    """
    played = play_games(planner, red, games, SEED)
    gains = gains_of(planner, played.notes, PAIRS, SEED)
    judged = ~np.isnan(gains).any(axis=1)
    gain, apart = cell_of(gains[judged].sum(axis=1)), cell_of(played.returns - expert[:games])
    changed = played.notes["action"] != played.notes["usual"]
    for game, step in zip(*np.nonzero(changed & judged[:, None]), strict=True):
        note = played.notes[game, step]
        names = [load_network().action_name(int(note[which])) for which in ("usual", "action")]
        pooled[RULES[note["rule"]].name, names[0], names[1]].append(gains[game, step])
    return {
        "mean_return": float(expert.mean()) + gain.mean,
        "gain": gain.mean,
        "gain_error": gain.standard_error,
        "apart": apart.mean,
        "apart_error": apart.standard_error,
        "milliseconds": 1000 * played.seconds / (games * LENGTH),
        "changed": float(changed.sum()) / games,
        "games": games,
        "lost": int((played.notes["fitting"] == 0).any(axis=1).sum()),
        "not_judged": int((~judged).sum()),
        "least_fitting": int(played.notes["fitting"].min()),
    }


def changes(pooled: dict[tuple[str, str, str], list[float]], games: int) -> list[dict[str, Any]]:
    """The changes that bring most of the gain, over all amounts of looking ahead."""
    best = sorted(pooled.items(), key=lambda item: -sum(item[1]))[:TOP]
    return [
        {"rule": rule, "instead_of": usual, "action": action, "per_game": len(each) / games, "gain": sum(each) / games}
        for (rule, usual, action), each in best
    ]


if __name__ == "__main__":
    main("planner")
