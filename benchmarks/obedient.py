"""The obedient champion: what every order costs at its level, beside the free champion and two limits.

python -m benchmarks obedient orders       # all 120 orders, both attackers, the challenge and incidents
python -m benchmarks obedient leaderboard  # the same by the rules of the leaderboard edition
python -m benchmarks obedient known        # against B_line: the best play for what blue can know, a bound for any play
python -m benchmarks obedient green        # both champions with an acting green agent and without
python -m benchmarks obedient cyborg       # three orders on csle-cyborg and on the engine
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command import main
from workflow_rl.defenders.names import CHAMPION, Asked, evaluate_named, in_standard_errors, policy_path
from workflow_rl.engine.network_file import load_network
from workflow_rl.envs.blue import cell_of
from workflow_rl.envs.cyborg_sim import Backend
from workflow_rl.envs.game import Games
from workflow_rl.training.collectors import Stream
from workflow_rl.training.evaluation import FreshGames, evaluate_policy, learner_of, workflows_of_policy
from workflow_rl.training.limits import limit_of
from workflow_rl.training.policy_file import load_policy
from workflow_rl.training.workflow import all_workflows

EDITION, LENGTH = "current", 100
GAMES, INCIDENT_GAMES, CYBORG_GAMES, TRIES = 10_000, 4_000, 300, 600_000
LEADERBOARD_GAMES = (2_000, 1_000)  # in the challenge and in incidents
SEED = 20_261_118  # no choice is based on this seed
TAKEOVERS = {"bline": ("0", "30"), "meander": ("0", "40")}
ON_CYBORG = (
    "enterprise,op_server,user,defender,op_host",
    "user,enterprise,op_server,op_host,defender",
    "op_host,user,op_server,defender,enterprise",
)
FOLLOWED = 0.95  # compliance and kept of an order that is followed
TAKEN = ("enterprise", "op_server", "user")  # what B_line takes


class Cell(NamedTuple):
    """The games of a cell."""

    edition: str
    red: str
    takeover: str
    games: int


def _returns(cell: Cell, order: str) -> tuple[np.ndarray, Any]:
    """Returns (games,) of the champion, obedient if there is an order, and its obedience; the games are the same."""
    network = load_network()
    policy = load_policy(policy_path(CHAMPION, cell.edition, network, workflow=order), network)
    workflows = workflows_of_policy(policy, order)
    games = Games(network, cell.red, cell.edition, LENGTH, cell.takeover)
    fresh = FreshGames(games, cell.games, Stream(SEED, (21,)), greedy=True)
    found = evaluate_policy(learner_of(policy, workflows), workflows, fresh)
    return found.episode_returns, found.obedience


def _rows(cell: Cell, orders: list[str]) -> list[dict[str, Any]]:
    free, _ = _returns(cell, "")
    rows = []
    for order in orders:
        returns, found = _returns(cell, order)
        own, apart = cell_of(returns), cell_of(returns - free)
        rows.append(
            {"order": order, "mean": own.mean, "standard_error": own.standard_error, "kept": found.kept,
             "compliance": found.compliance, "repairs": found.repairs, "idle_fixes": found.idle_fixes,
             "beside_free": apart.mean, "beside_free_error": apart.standard_error,
             "limit": limit_of(order, cell.red, cell.edition, cell.takeover, LENGTH, load_network())}
        )  # fmt: skip
    return rows


def orders() -> dict[str, Any]:
    """Every order against both attackers, in the challenge and in incidents."""
    return _all_orders("current", GAMES, INCIDENT_GAMES)


def leaderboard() -> dict[str, Any]:
    """The same by the rules of the leaderboard edition, in fewer games."""
    return _all_orders("leaderboard", *LEADERBOARD_GAMES)


def _all_orders(edition: str, games: int, incident_games: int) -> dict[str, Any]:
    names = [str(workflow) for workflow in all_workflows(load_network())]
    found: dict[str, Any] = {"games": games, "incident_games": incident_games, "seed": SEED, "edition": edition}
    found["cells"] = {}
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for red, takeovers in TAKEOVERS.items():
            for takeover in takeovers:
                cell = Cell(edition, red, takeover, games if takeover == "0" else incident_games)
                parts = [names[k::24] for k in range(24)]
                rows = [row for part in pool.map(partial(_rows, cell), parts) for row in part]
                free = cell_of(_returns(cell, "")[0])
                found["cells"][f"{red} {takeover}"] = _summary(rows) | {
                    "free": {"mean": free.mean, "standard_error": free.standard_error},
                    "rows": sorted(rows, key=lambda row: str(row["order"])),
                }
    return found


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The extremes over all orders, and means over groups of orders with the same limit."""
    figures: dict[str, Any] = {
        "least_compliance": min(row["compliance"] for row in rows), "least_kept": min(row["kept"] for row in rows),
        "followed": sum(min(row["kept"], row["compliance"]) >= FOLLOWED for row in rows),
        "best": max(row["mean"] for row in rows), "worst": min(row["mean"] for row in rows),
        "mean": float(np.mean([row["mean"] for row in rows])), "tasks": {},
    }  # fmt: skip
    if rows[0]["limit"] is None:
        return figures
    figures["largest_gap"] = max(row["limit"] - row["mean"] for row in rows)
    for row in rows:
        task = ",".join(name for name in row["order"].split(",") if name in TAKEN)
        figures["tasks"].setdefault(task, []).append(row)
    figures["tasks"] = {
        task: {
            "limit": group[0]["limit"], "mean": float(np.mean([row["mean"] for row in group])),
            "worst": min(row["mean"] for row in group), "least_kept": min(row["kept"] for row in group),
        }
        for task, group in figures["tasks"].items()
    }  # fmt: skip
    return figures


def known() -> dict[str, Any]:
    """Plans against B_line without an order and for each that differs, in the challenge and in an incident."""
    from itertools import permutations

    from benchmarks.limit.planned import planned_limit, world_of

    network = load_network()
    world = world_of(network, EDITION)
    names = ["", *(",".join(order) for order in permutations(TAKEN))]
    found: dict[str, Any] = {"games": GAMES, "seed": SEED, "edition": EDITION, "takeovers": {}}
    for takeover in (0, 30):
        found["takeovers"][str(takeover)] = {}
        for name in names:
            row = planned_limit(network, world, name, takeover, TRIES, GAMES, SEED)
            whole = ",".join([*name.split(","), "defender", "op_host"]) if name else ""
            limit = limit_of(whole, "bline", EDITION, str(takeover), LENGTH, network) if name else None
            bound = {"limit": limit, "bound": limit - row["least_regret"]} if limit is not None else {}
            found["takeovers"][str(takeover)][name or "free"] = row | bound
    return found


def green() -> dict[str, Any]:
    """Both champions with an acting green agent and without; the obedient one with two orders."""
    found: dict[str, Any] = {"games": GAMES, "seed": SEED, "edition": EDITION, "rows": {}}
    for order in ("", *ON_CYBORG[:2]):
        for agent in ("sleep", "active"):
            asked = Asked(CHAMPION, "bline,meander", GAMES, load_network(), SEED, EDITION, "0", order, False, agent)
            cells = evaluate_named(asked)["cells"]
            row = found["rows"].setdefault(order or "free", {})
            row[agent] = {red: cells[red][str(LENGTH)] for red in cells}
    return found


def cyborg() -> dict[str, Any]:
    """Three orders on genuine CybORG and on the engine."""
    found: dict[str, Any] = {"games": CYBORG_GAMES, "seed": SEED, "edition": EDITION, "rows": {}}
    for order in ON_CYBORG:
        ask = partial(Asked, CHAMPION, "bline,meander", network=load_network(), seed=SEED, edition=EDITION)
        genuine = evaluate_named(ask(episodes=CYBORG_GAMES, takeover="0", workflow=order), Backend("cyborg", jobs=2))
        native = evaluate_named(ask(episodes=GAMES, takeover="0", workflow=order))
        found["cyborg"], found["rows"][order] = genuine["cyborg"], {}
        for red in ("bline", "meander"):
            left, right = genuine["cells"][red][str(LENGTH)], native["cells"][red][str(LENGTH)]
            found["rows"][order][red] = {
                "cyborg": left, "native": right, "difference": in_standard_errors(left, right),
                "obedience": genuine["obedience"][red],
            }  # fmt: skip
    apart = [abs(row["difference"]) for rows in found["rows"].values() for row in rows.values()]
    return found | {"largest_difference": max(apart)}


if __name__ == "__main__":
    main("obedient")
