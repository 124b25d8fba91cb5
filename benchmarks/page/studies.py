"""Sections of the page: the baselines, robustness."""

from __future__ import annotations

from typing import Any

from benchmarks.page.parts import (
    FOES,
    LENGTHS,
    Files,
    about,
    below,
    number,
    scored,
    signed,
    span,
    table,
)

KEPT = ("compliance", "kept")
ROWS = {
    "sleep": "never does anything",
    "random": "random actions",
    "reactive-restore": "restores the first host that looks compromised",
    "greedy-restore": "greedy rule, best order: restores the host of highest priority that looks compromised",
    "greedy-remove": "the same, but Remove where it looks like user access",
    "sb3": "general PPO by stable-baselines3",
    "general-short": "general PPO, as many transitions",
    "general": "general PPO",
    "order-as-searched": "follows enterprise first, as the search's first stage trains",
    "searched-user-first": "follows user first, as the search's first stage trains",
    "order": "follows enterprise first, trained to the end",
    "order-user-first": "follows user first, trained to the end",
    "expert": "expert: rules with a memory",
    "champion": "champion: learned, with a memory",
}


def _gradients(found: dict[str, Any], name: str) -> str:
    """Gradient steps of a training."""
    transitions, settings = found["rows"][name]["transitions"]["bline"], found["settings"][name]
    return f"{transitions // settings['batch'] * settings['epochs'] * (settings['batch'] // settings['minibatch']):,}"


def _greedy_words(rows: dict[str, Any]) -> str:
    """How much the order matters to the greedy rule."""
    parts = []
    for name, words in (("greedy-restore", "Restore alone"), ("greedy-remove", "Remove as well")):
        apart = [rows[name]["best_return"][red] - rows[name]["worst_return"][red] for red in FOES]
        parts.append(f"with {words} by {number(apart[0])} against B_line and {number(apart[1])} against Meander")
    return (
        f"For the greedy rule the best and the worst of all 120 orders differ {', '.join(parts)}; a Restore at once "
        "clears the look of a host before another one is attacked, a Remove leaves a doubt."
    )


def baselines(files: Files) -> str:
    """The main table."""
    found = files.figures("study_baselines")
    rows = [_baseline(files, name, found["rows"][name]) for name in ROWS]
    columns = [
        "defender",
        "B_line 30",
        "50",
        "100",
        "Meander 30",
        "50",
        "100",
        "Sleep",
        "compliance",
        "kept",
        "training, s",
    ]
    transitions = found["rows"]["general"]["transitions"]
    short = found["rows"]["sb3"]["transitions"]["bline"]
    sb3 = found["answers"]
    return (
        "## Baselines\n\nReturns after so many steps, with the distance to the limit. Learned rows: trained against the "
        f"opponent of the column, {found['rows']['general']['cells']['bline']['100']['seeds']} seeds each, "
        f"{_millions(transitions)} million transitions where nothing else is said; Sleep: all of them. Compliance and kept: "
        f"against B_line, against Meander. {found['games']:,} games each, of the greedy rule "
        f"{found['rows']['greedy-restore']['games']:,}. Training: two at a time on two cores.\n\n"
        + table(columns, rows)
        + f"\n{_greedy_words(found['rows'])} At equal transitions "
        f"({short / 1e6:.0f} million) our PPO less stable-baselines3's is {signed(sb3['bline']['sb3'], 1)} against B_line and "
        f"{signed(sb3['meander']['sb3'], 1)} against Meander with our settings for so few (20 environments, {_gradients(found, 'general-short')} "
        f"gradient steps; stable-baselines3 takes {_gradients(found, 'sb3')}). Enterprise first is `{found['orders'][0]}`, user first `{found['orders'][1]}`.\n\n"
        + about(
            files,
            "baselines",
            "stable-baselines3 with settings that were searched for, or with as many transitions as the longer rows; its "
            "settings are its defaults but for the batch. Champion and expert were not trained anew here. Five seeds give "
            "rough intervals. Seconds of training are rough: other work ran beside.",
        )
    )


def _millions(transitions: dict[str, int]) -> str:
    """Of both trainings."""
    return " and ".join(f"{transitions[red] / 1e6:.0f}" for red in FOES)


def _baseline(files: Files, name: str, row: dict[str, Any]) -> list[str]:
    cells = []
    for red in FOES:
        for length in LENGTHS:
            one = row["cells"][red][length]
            figure = span(one) if length == "100" else number(one["iqm"])
            cells.append(f"{figure} {below(one['iqm'], files.limit('current', red, length))}")
    kept = [", ".join(number(row[name][red]["iqm"], 3) for red in FOES) if name in row else "" for name in KEPT]
    seconds = row.get("seconds")
    spent = (
        ", ".join(number(one, 0 if one >= 10 else 1) for one in (seconds[red]["iqm"] for red in FOES))
        if seconds
        else ""
    )
    return [ROWS[name], *cells, number(row["cells"]["sleep"]["100"]["iqm"]), *kept, spent]


def robustness(files: Files) -> str:
    """Policies where they were not trained."""
    found = files.figures("study_robustness")
    parts = []
    for condition in next(iter(found["rows"].values())):
        rows = []
        for name, row in found["rows"].items():
            cells = row[condition]
            figures = [_score(files, condition, red, cells[red]["100"]) for red in ("bline", "meander", "mix")]
            kept = [", ".join(number(cells[k][red]["iqm"], 2) for red in FOES) if k in cells else "" for k in KEPT]
            figures += kept
            rows.append([name.replace("bline", "B_line").replace("meander", "Meander"), *figures])
        columns = ["defender", "B_line", "Meander", "half of each", *KEPT]
        parts.append(f"**{condition[0].upper()}{condition[1:]}**, 100 steps:\n\n{table(columns, rows)}")
    lengths = found["lengths"]
    rows = [
        [name.replace("bline", "B_line").replace("meander", "Meander")]
        + [number(row["as trained"]["mix"][str(n)]["iqm"], 1) for n in lengths]
        + [number(row["as trained"]["mix"][str(n)]["iqm"] / n, 3) for n in lengths[-2:]]
        for name, row in found["rows"].items()
    ]
    columns = ["defender", *(f"{n} steps" for n in lengths), *(f"per step, {n}" for n in lengths[-2:])]
    return (
        "## Robustness\n\nPolicies against opponents, green agents, editions and lengths that they were not trained for. "
        "(The limit is known for a sleeping green agent.)\n\n"
        + "\n".join(parts)
        + "\n**Length**, half of each opponent, as trained otherwise:\n\n"
        + table(columns, rows)
        + "\n"
        + _robust_words(found)
        + about(
            files,
            "robustness",
            "opponents other than the three of the challenge, networks of another shape, or training that aims at "
            "robustness other than the mix of two opponents. The champion and the expert are those of the current "
            "edition throughout.",
        )
    )


def _score(files: Files, condition: str, red: str, found: dict[str, Any]) -> str:
    """A score with its distance to the limit, which is known where green sleeps."""
    if "green" in condition:
        return span(found, 1)
    edition = "leaderboard" if "leaderboard" in condition else "current"
    foes = list(FOES) if red == "mix" else [red]
    return scored(found, sum(files.limit(edition, foe, "100") for foe in foes) / len(foes))


def _robust_words(found: dict[str, Any]) -> str:
    """The one sentence that the tables add up to."""
    rows = found["rows"]
    special = {red: rows[f"general, trained against {red}"]["as trained"] for red in FOES}
    mixed = rows["general, trained against bline,meander"]["as trained"]["mix"]["100"]
    lost = {
        "bline": special["meander"]["bline"]["100"]["iqm"] - special["bline"]["bline"]["100"]["iqm"],
        "meander": special["bline"]["meander"]["100"]["iqm"] - special["meander"]["meander"]["100"]["iqm"],
    }
    return (
        f"A general policy that meets the other opponent loses {number(-lost['bline'], 1)} against B_line and "
        f"{number(-lost['meander'], 1)} against Meander compared with the one that was trained for it; one that was trained "
        f"against both in turn has {span(mixed, 1)} against half of each.\n\n"
    )
