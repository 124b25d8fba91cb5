"""Study `lengths`: does the effect of the order remain when trainings are shorter or longer?"""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.studies.baselines import ENTERPRISE_FIRST, OBEDIENCE, USER_FIRST, Ask, small
from benchmarks.studies.cells import Cell
from benchmarks.studies.statistics import difference, summary
from workflow_rl.engine.network_file import load_network
from workflow_rl.presets import make_config
from workflow_rl.training.limits import limit_of

FACTORS = (0.5, 1.0, 2.0)  # of the episodes that `workflow-rl train --workflow` has by default
STEPS = 100
FIGURES = ("mean_return", *OBEDIENCE, "seconds")


class Game(NamedTuple):
    """Two orders to compare: in the challenge those of the other studies, in incidents the table's best and worst."""

    red: str
    takeover: str
    first: str
    second: str


GAMES = (
    Game("bline", "0", ENTERPRISE_FIRST, USER_FIRST),
    Game("meander", "0", ENTERPRISE_FIRST, USER_FIRST),
    Game("bline", "30", "op_server,enterprise,user,defender,op_host", "user,enterprise,op_server,defender,op_host"),
    Game("meander", "40", "op_server,enterprise,user,op_host,defender", "user,op_host,enterprise,op_server,defender"),
)


def lengths(ask: Ask, quick: bool) -> dict[str, Any]:
    """All games; their trainings are asked for at once, so that they run in parallel."""
    seeds = range(2 if quick else 3)
    ask([cell for game in GAMES for row in _plan(game, seeds, quick).values() for one in row.values() for cell in one])
    return {"games": {f"{game.red} {game.takeover}": _compared(ask, game, seeds, quick) for game in GAMES}}


def _plan(game: Game, seeds: range, quick: bool) -> dict[int, dict[str, list[Cell]]]:
    """The trainings of each order by their number of episodes; none stops early."""
    found: dict[int, dict[str, list[Cell]]] = {}
    for factor in FACTORS[:1] if quick else FACTORS:
        played: dict[str, Any] = {"red_agent": game.red, "takeover": game.takeover}
        episodes = 5 if quick else round(factor * make_config("workflow", **played).max_episodes)
        values = played | {"max_episodes": episodes, "patience": episodes} | small(quick)
        found[episodes] = {
            order: [
                Cell("train", {"preset": "workflow", "values": values | {"workflow": order, "seed": seed}})
                for seed in seeds
            ]
            for order in (game.first, game.second)
        }
    return found


def _compared(ask: Ask, game: Game, seeds: range, quick: bool) -> dict[str, Any]:
    """Both orders at each length, the difference of their returns, and that of their exact limits if they are known."""
    network, rows = load_network(), {}
    for episodes, plan in _plan(game, seeds, quick).items():
        trained = {order: ask(cells) for order, cells in plan.items()}
        row: dict[str, Any] = {
            name: {figure: summary([one[figure] for one in trained[order]]) for figure in FIGURES}
            for name, order in (("first", game.first), ("second", game.second))
        }
        row["effect"] = difference(*(row[name]["mean_return"]["values"] for name in ("first", "second")))
        rows[str(episodes)] = row
    first, second = (
        limit_of(order, game.red, "current", game.takeover, STEPS, network) for order in (game.first, game.second)
    )
    exact = None if first is None or second is None else first - second
    return {"orders": [game.first, game.second], "lengths": rows, "exact_effect": exact}
