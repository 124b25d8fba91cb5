"""The command ``workflow-rl evaluate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from workflow_rl.cli.common import (
    BackendName,
    CyborgPath,
    Defender,
    Figures,
    Jobs,
    Json,
    NetworkName,
    OwnEdition,
    RedAgents,
    Seed,
    Takeover,
    progress,
    show_result,
    suggesting,
    too_good,
)
from workflow_rl.cli.screen import Rows, Screen, Wide
from workflow_rl.config import chain
from workflow_rl.errors import UserError


def evaluate(
    policy: Defender,
    red_agent: RedAgents = None,
    edition: OwnEdition = None,
    episodes: Annotated[
        int | None, typer.Option(help="Games per red agent.", show_default="1000; on genuine CybORG 100")
    ] = None,
    takeover: Takeover = None,
    greedy: Annotated[bool, typer.Option(help="Play the most probable action of a trained policy.")] = False,
    workflow: Annotated[str, typer.Option(help="Workflow of a universal policy; default: the mean of all.")] = "",
    green_agent: Annotated[
        str,
        typer.Option(help="sleep, or active: it scans hosts from time to time.", autocompletion=suggesting("active")),
    ] = "sleep",
    backend: BackendName = "native",
    protocol: Annotated[
        str,
        typer.Option(
            help="challenge: the official table, on CybORG beside the native engine's.",
            autocompletion=suggesting("challenge"),
        ),
    ] = "",
    jobs: Jobs = None,
    cyborg_path: CyborgPath = "",
    network: NetworkName = None,
    seed: Seed = 0,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Measures a defender. Mean return over 30, 50 and 100 steps against each red agent, with standard errors."""
    from workflow_rl.config import check_jobs
    from workflow_rl.defenders.names import DEFAULT_EPISODES, Asked, challenge, evaluate_named, network_named
    from workflow_rl.envs.checks import parse_red_agents
    from workflow_rl.envs.cyborg_sim import Backend, check_backend

    if protocol:
        _check_protocol(protocol, red_agent, takeover, green_agent)
    defended = network_named(policy, network)
    reds = parse_red_agents(red_agent or defended.red_agents, defended)
    where = Backend(backend, cyborg_path, check_jobs(jobs))
    check_backend(where)
    if backend == "native" and jobs is not None:
        raise UserError("--jobs is for --backend cyborg; the native engine plays all games side by side.")
    games = DEFAULT_EPISODES[backend] if episodes is None else episodes
    asked = Asked(policy, ",".join(reds), games, defended, seed, edition, takeover, workflow, greedy, green_agent)
    with progress("evaluate", games * len(set(reds))) as advance:
        found = (challenge if protocol else evaluate_named)(asked, where, advance)
    show_result(found, as_json, lambda: (print_challenge if protocol else print_cells)(found, Screen(wide)))


def _check_protocol(protocol: str, red_agent: str | None, takeover: str | None, green_agent: str) -> None:
    from workflow_rl.errors import check_choice

    check_choice("protocol", protocol, ("challenge",))
    if red_agent is not None:
        raise UserError("--protocol challenge plays all red agents; leave --red-agent out.")
    if takeover is not None:
        raise UserError("--protocol challenge has no takeover: blue watches from the first step.")
    if green_agent != "sleep":
        raise UserError("in --protocol challenge green sleeps; leave --green-agent out.")


def print_challenge(figures: Figures, screen: Screen) -> None:
    """The challenge's table: a row for each length and simulator, the totals, and the simulators' differences."""
    simulators = [(figures.get("cyborg", "native engine"), figures)]
    if "native" in figures:
        simulators.append(("native engine", figures["native"]))
    reds, rows = list(figures["cells"]), []
    for length in next(iter(figures["cells"].values())):
        for name, found in simulators:
            cells = [found["cells"][red][length] for red in reds]
            rows.append([length, name, *(f"{cell['mean']:.2f} ± {cell['standard_error']:.2f}" for cell in cells)])
        if "difference" in figures:
            apart = [figures["difference"][red][length] for red in reds]
            words = ("certain" if value is None else f"{value:+.1f} errors" for value in apart)
            rows.append(["", "difference", *words])
    title = f"{_policy(figures)}: mean return, {figures['edition']} edition"
    shown = Rows(["steps", "on", *reds], rows, (), ("on",))
    screen.table(title, shown if len(simulators) > 1 else shown.without("on"))
    if "difference" in figures:
        screen.text("Differences are in standard errors, by the deviation of both samples together.")
    for name, found in simulators:
        total = f"{found['total']:.2f} ± {found['total_standard_error']:.2f}"
        screen.text(f"Total on {name}: {total} ({found['episodes']} games per red agent)")
    _print_anchors(figures, screen)
    if "obedience" in figures:
        from workflow_rl.training.compliance import Obedience  # only now: it compiles, and --help must answer at once

        for red, found in figures["obedience"].items():
            screen.text(f"Against {red}: {Obedience.read(found).words()}")


def _print_anchors(figures: Figures, screen: Screen) -> None:
    """What known defenders reach in the same edition, each figure a sum over the three lengths."""
    from workflow_rl.defenders.protocol import ANCHORS, PUBLISHED_EDITION, WINNER

    def total(cells: Mapping[str, Sequence[float]], red: str) -> str:
        return f"{sum(cells[red]):.2f}" if red in cells else ""

    own = {red: [cell["mean"] for cell in cells.values()] for red, cells in figures["cells"].items()}
    reds = [red for red in own if any(red in cells for cells in figures["anchors"].values())]
    rows = []
    for name, cells in [(f"{figures['policy']}, these games", own), *figures["anchors"].items()]:
        whole = f"{sum(map(sum, cells.values())):.2f}" if all(red in cells for red in reds) else "unknown"
        rows.append([name, whole, *(total(cells, red) for red in reds)])
    title = f"Beside it, {figures['edition']} edition: sums over the three lengths"
    screen.table(title, Rows(["defender", "total", *reds], rows, (), ("defender",)))
    if figures["edition"] != PUBLISHED_EDITION:
        winner = sum(map(sum, ANCHORS[PUBLISHED_EDITION][WINNER].values()))
        screen.text(
            f"The published scores, of which the best is {winner:.2f}, are of the {PUBLISHED_EDITION} edition, whose "
            f"rules differ. To compare, train with --edition {PUBLISHED_EDITION}."
        )


def _policy(figures: Figures) -> str:
    """The policy with its workflow and mode."""
    order = figures.get("workflow", "")
    words = ", mean over all workflows" if order == "universal" else f", {chain(order)}" if order else ""
    return f"{figures['policy']}{words}{', greedy' if figures.get('greedy') else ''}"


def print_cells(figures: Figures, screen: Screen) -> None:
    """Mean returns of a policy, and how well it follows its workflow."""
    lengths = list(next(iter(figures["cells"].values())))
    rows = [
        [red, *(f"{cells[length]['mean']:.2f} ± {cells[length]['standard_error']:.2f}" for length in lengths)]
        for red, cells in figures["cells"].items()
    ]
    conditions = f"{figures['episodes']} episodes, {figures['edition']} edition"
    conditions += f", network {figures['network']}" if figures.get("network", "cage2") != "cage2" else ""
    conditions += f", {figures['cyborg']}" if "cyborg" in figures else ""
    conditions += f", blue takes over after {figures['takeover']} steps" if figures.get("takeover", "0") != "0" else ""
    title = f"{_policy(figures)}: mean return ± standard error, {conditions}"
    columns = ["red agent", *(f"{length} steps" for length in lengths)]
    if "obedience" in figures:
        from workflow_rl.report.answer import OBEDIENCE_COLUMNS, obedience_cells  # only now: it compiles

        columns += OBEDIENCE_COLUMNS
        for row, found in zip(rows, figures["obedience"].values(), strict=True):
            row += obedience_cells(found)
    screen.table(title, Rows(columns, rows, ("idle fixes", "repairs"), ()))
    screen.text(f"Total of all means: {figures['total']:.2f} ± {figures['total_standard_error']:.2f}")
    for red, limits in figures.get("limits", {}).items():
        for length, limit in limits.items():
            cell = figures["cells"][red][length]
            words = too_good(cell["mean"], cell["standard_error"], limit)
            if words:
                screen.text(f"{red}, {length} steps: {words}")
