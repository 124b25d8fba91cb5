"""Section of the page: incidents. What orders are worth when blue takes over late, exact, trained and searched."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from benchmarks.page.parts import EDITIONS, FOES, LENGTHS, Files, number, table

EQUAL = 0.005  # orders closer than this are shown as equally good
TABLES = {"bline": "workflow_table_bline_30", "meander": "workflow_table_meander_40"}


def incidents(files: Files) -> str:
    """What orders are worth when blue takes over late."""
    found = files.figures("study_limit")["bline"]
    every = [
        cell
        for one in found.values()
        for incident in one["incidents"].values()
        for cells in (incident["free"], *incident["orders"].values())
        for cell in cells.values()
    ]
    worst = max(abs(cell["difference_in_standard_errors"]) for cell in every)
    parts = [_incident_table(edition, found[edition]["incidents"]) for edition in EDITIONS]
    return (
        "## Incidents\n\nRed plays some steps before blue takes over ([what that is](incidents.md)). The exact worth of each order of the "
        f"types that B_line takes, to a defender that sees everything, over {LENGTHS[-1]} steps of blue's; each value was confirmed by "
        f"{every[0]['games']:,} games (of {len(every)} the largest difference is {worst:.1f} standard errors). The first column is the "
        "number of red's steps, `free` a defender that need not keep an order.\n\n"
        + "\n".join(parts)
        + "\n"
        + _change(found["current"]["incidents"])
        + _trained(files)
        + _searched(files)
        + _free(files)
        + "*Commands:* `python -m benchmarks.study limit`; `python -m benchmarks.workflow_table bline 30`, `meander 40`; `python -m "
        "benchmarks.incidents`.\n*Not shown:* limits against Meander, and how much of the distance a defender could close that has only "
        "blue's observations: whether an attack brought red privileges is not among them.\n"
    )


def _incident_table(edition: str, found: dict[str, Any]) -> str:
    names = list(next(iter(found.values()))["orders"])
    rows = []
    for steps, one in found.items():
        values = [one["orders"][name][LENGTHS[-1]]["exact"] for name in names]
        best = max(values)
        cells = [f"**{number(value)}**" if value > best - EQUAL else number(value) for value in values]
        rows.append([steps, number(one["free"][LENGTHS[-1]]["exact"]), *cells])
    return f"{edition.capitalize()} edition, the best orders in bold:\n\n" + table(
        ["takeover after", "free", *names], rows
    )


def _change(found: dict[str, Any]) -> str:
    """From when on which order is best."""
    best: dict[str, list[str]] = {}
    for steps, one in found.items():
        values = {name: cells[LENGTHS[-1]]["exact"] for name, cells in one["orders"].items()}
        top = [name for name, value in values.items() if value > max(values.values()) - EQUAL]
        best.setdefault("; ".join(top), []).append(steps)
    parts = [f"after {', '.join(steps)} steps {names}" for names, steps in best.items()]
    spread = {
        steps: max(c[LENGTHS[-1]]["exact"] for c in one["orders"].values())
        - min(c[LENGTHS[-1]]["exact"] for c in one["orders"].values())
        for steps, one in found.items()
    }
    apart = ", ".join(f"{number(value, 1)} after {steps}" for steps, value in spread.items())
    return f"In the current edition the best is: {'; '.join(parts)}. Best and worst are apart by {apart}.\n\n"


def _trained(files: Files) -> str:
    """Trained defenders beside the limits, and what priorities are worth to them."""
    limits = files.figures("study_limit")["bline"]["current"]["incidents"]["30"]["orders"]
    parts = []
    for red, name in FOES.items():
        found = files.figures(TABLES[red])
        own = found["table"]
        columns = [own[column] for column in ("workflows", "mean_return", "kept", "compliance")]
        rows = []
        for order, returns, kept, compliance in sorted(zip(*columns, strict=True), key=lambda row: -fmean(row[1])):
            cells = [order, number(fmean(returns)), f"{min(kept):.3f}", f"{min(compliance):.3f}"]
            if red == "bline":
                bound = limits[order][LENGTHS[-1]]["exact"]
                cells[1:1] = [number(bound), number(bound - fmean(returns))]
            rows.append(cells)
        worth = ", ".join(
            f"{pair['first']} before {pair['second']} {number(pair['cost'], 1)}" for pair in found["reversed"]
        )
        columns = [
            "order",
            *(["limit", "distance"] if red == "bline" else []),
            "mean return",
            "lowest kept",
            "lowest compliance",
        ]
        parts.append(
            f"**{name}, takeover after {own['takeover']} steps.** Defenders trained from scratch, {found['replicates']} of each order of the "
            f"types that it takes, at most {max(map(max, own['updates'])):,} updates each; {found['followed']} of {found['trainings']} followed their order; noise of one training "
            f"{found['noise_of_one_training']:.2f}. What it costs at best to reverse a priority of the best order: {worth}.\n\n"
            + table(columns, rows)
        )
    return "\n".join(parts) + "\n"


def _searched(files: Files) -> str:
    """What the default search answers, beside the tables, and its regret."""
    found, regret = files.figures("incidents_search"), files.figures("incidents_regret")
    real = files.figures("incidents_strategies")
    lines = []
    for red, name in FOES.items():
        one = found[red]
        effects = "; ".join(
            f"{effect['pair']} {effect['found']:+.1f} ± {effect['standard_error']:.1f} (table {effect['table']:+.1f})"
            for effect in one["effects"]
        )
        lines.append(
            f"* **{name}**: {one['wall_seconds']:.0f} s. Best order {one['task'] or 'none'}, {number(one['regret'], 1)} behind the best of "
            f"the table. What matters: {effects or 'nothing clear'}."
        )
    rows = []
    for red, name in FOES.items():
        by_strategy = regret[TABLES[red]]
        for strategy in ("gp-ucb", "random", "round-robin"):
            cells = [
                f"{number(by_strategy[strategy]['mean_regret'][look])} ± {by_strategy[strategy]['interval'][look]:.2f}"
                for look in ("5", "10", "20")
            ]
            rows.append([name, strategy, *cells])
    trained = ", ".join(
        f"{strategy} {number(real[strategy.replace('-', '_')]['mean_regret'], 1)}"
        for strategy in ("gp-ucb", "random", "round-robin")
    )
    return (
        "**The search**, with its defaults, the whole process:\n\n"
        + "\n".join(lines)
        + "\n\nMean regret on these tables, "
        f"{regret[TABLES['bline']]['seeds']} simulated searches, ± half of a 95 % interval, noise as in these finished trainings, after 5, 10 and 20 evaluations:\n\n"
        + table(["", "strategy", "5", "10", "20"], rows)
        + f"\nWith real short trainings against B_line, {real['evaluations']} evaluations, {real['seeds']} seeds, judged by the table: {trained}.\n\n"
    )


def _free(files: Files) -> str:
    """Defenders without an order at several takeovers, and two orders on CybORG."""
    found, cyborg, steps = (files.figures(f"incidents_{name}") for name in ("general", "cyborg", "lockstep"))
    words = {
        "incidents": "trained with takeovers after 0 to 60 steps, half of the games after 0",
        "challenge": "trained for the challenge",
        "champion": "champion",
    }
    rows = [
        [FOES[red], text, *(number(value, 1) for value in found[red][name])]
        for red in FOES
        for name, text in words.items()
    ]
    checked = "; ".join(
        f"{name} order {number(cyborg[name]['cyborg']['mean'])} ± {cyborg[name]['cyborg']['standard_error']:.2f} on CybORG, "
        f"{number(cyborg[name]['native']['mean'])} on the engine ({cyborg[name]['difference_in_standard_errors']:.1f} standard errors)"
        for name in ("best", "worst")
    )
    return (
        f"**Without an order**, mean return over {LENGTHS[-1]} steps by takeover:\n\n"
        + table(["", "defender", *(str(k) for k in found["takeovers"])], rows)
        + f"\n**On genuine CybORG**, takeover after 30 steps, {cyborg['cyborg_episodes']} games each: {checked}. "
        f"In {steps['episodes']} live games with takeovers after 0 to 60 steps, {steps['mismatched_steps']} of {steps['steps']:,} steps "
        "differ between CybORG and the engine.\n\n"
    )
