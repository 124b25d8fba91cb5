"""The page's first lines: the answers, what became of the documents' claims; and its last: how to run it all again."""

from __future__ import annotations

from typing import Any

from benchmarks.page.parts import FOES, Files, number, signed, span, table
from benchmarks.studies.registry import STUDIES

SURE = 2.8  # standard errors: 95 % for ten pairs together
SMALL = 1.0  # points of return that early stopping may cost


def answers(files: Files) -> str:
    """One line for each question."""
    lines = [_obedience(files), _order(files)] + ([_environments(files)] if files.has("rollout") else [])
    return "\n".join(("## The answers", "", *lines, ""))


def _obedience(files: Files) -> str:
    found = files.figures("study_baselines")
    rows, parts = found["rows"], []
    for red, name in FOES.items():
        one = found["answers"][red]
        general, ordered = rows["general"]["cells"][red]["100"], rows["order"]["cells"][red]["100"]
        cost = one["obedience"]
        verdict = "cannot be told apart" if not cost["clear"] else "gains" if cost["difference"] > 0 else "costs"
        kept = number(rows["order"]["kept"][red]["iqm"], 3)
        parts.append(
            f"against {name} the policy that follows enterprise first (compliance {number(one['compliance']['iqm'], 3)}, kept {kept}) has "
            f"{span(ordered)} and the general one {span(general)}: obedience "
            f"{'and freedom ' if not cost['clear'] else ''}{verdict} ({signed(cost)})"
        )
    return (
        f"* **What does obedience cost?** {'; '.join(parts)}. What it costs to obey the other order is the next answer."
    )


def _order(files: Files) -> str:
    long, worst = files.figures("study_baselines")["answers"], files.figures("study_limit")["bline"]["current"]
    line, meander = (files.figures(f"workflow_table_{red}") for red in FOES)
    first, *others = line["pairs"]
    parts = [
        f"against {name} {signed(long[red]['order'])}, and {signed(long[red]['order_searched'])} after the search's short trainings"
        for red, name in FOES.items()
    ]
    return (
        f"* **Which order is best?** Against B_line, over all {line['workflows']} orders, each trained {line['replicates']} times to the end: "
        f"{first['first']} before {first['second']} is worth {_effect(first)}; {_others(others, 'other pair')} Against Meander, as many trainings: "
        f"{_others(meander['pairs'], 'pair')} Enterprise first less user first, five trainings of each to the end: {'; '.join(parts)}. To a defender "
        f"that sees everything the worst order costs {number(worst['cost_of_the_worst_order']['100'], 2)} against B_line: the rest of the effect is "
        "what trained defenders do not see or have not learned. When blue takes over late, orders matter far more: see Incidents."
    )


def _effect(pair: dict[str, Any]) -> str:
    return f"{pair['effect']:.2f} ± {pair['standard_error']:.2f}"


def _others(pairs: list[dict[str, Any]], noun: str) -> str:
    """Whether some of these pairs shows an effect, allowing for how many there are."""
    clear = [pair for pair in pairs if abs(pair["effect"]) > SURE * pair["standard_error"]]
    if clear:
        words = "; ".join(f"{pair['first']} before {pair['second']} {_effect(pair)}" for pair in clear)
        return f"these show an effect: {words}."
    most = max(pairs, key=lambda pair: float(abs(pair["effect"] / pair["standard_error"])))
    return f"no {noun} shows an effect; the nearest to one is {most['first']} before {most['second']}, {_effect(most)}."


def _environments(files: Files) -> str:
    found = files.figures("study_rollout")
    rows, parts = found["rows"], []
    for kind, one in found["equal_quality"].items():
        way = f"an update per {kind.removeprefix('1 ')}" if kind.startswith("1 ") else f"an update per {kind}"
        if one.get("ratio_of_200") is None:
            parts.append(
                f"with {way} one environment follows its order steadily in {one['followed']} of {one['of']} trainings, which "
                f"took up to {one['longest']:.0f} s, so that no time can be compared"
            )
        else:
            parts.append(
                f"with {way} {number(one['ratio_of_200'], 1)} times ({number(one['seconds'], 1)} against "
                f"{number(one['seconds_of_200'], 1)} s until the return is {number(one['return'], 1)})"
            )
    many = rows["200 environments"]["followed"]
    return (
        f"* **How much faster are 200 environments than 1, at equal quality?** It depends on how one is used: {'; '.join(parts)}. "
        f"200 environments follow it in {many['seeds']} of {many['of']} and go on from there: after {found['seconds']:.0f} s "
        f"they have {_timed(rows, '200 environments')}, one environment with an update per ten episodes "
        f"{_timed(rows, '10 episodes')}."
    )


def _timed(rows: dict[str, Any], kind: str) -> str:
    return span(rows[kind]["equal_seconds"]["mean_return"], 1)


def claims(files: Files) -> str:
    """The documents' claims, each beside what was measured."""
    rows = [
        _claim_speed(files), _claim_noise(files), _claim_stable(files), _claim_memory(files), _claim_stop(files),
        _claim_search(files),
    ]  # fmt: skip
    return "## What became of the documents' claims\n\n" + table(["claim", "measured here", "holds?"], rows)


def _claim_speed(files: Files) -> list[str]:
    rows = files.figures("study_rollout")["rows"]
    one, some, many = (rows[k]["transitions_per_s"] for k in ("1 episode", "25 environments", "200 environments"))
    holds = "yes" if some / one >= 8 else "in part"
    return [
        "25 environments train about 10 times faster than one",
        f"transitions per second, alone on a core: {some / one:.1f} times with 25, {many / one:.0f} times with 200",
        holds,
    ]


def _claim_noise(files: Files) -> list[str]:
    found = files.figures("study_rollout")["gradients"]
    middle = found[list(found)[1]]
    one, some, many = (middle[k]["noise"]["iqm"] for k in ("1 episode", "25 environments", "200 environments"))
    return [
        "more environments give less noisy gradients",
        f"noise of one batch's gradient over its length: {one:.1f}, with 25 {some:.1f}, with 200 {many:.1f} (the square "
        f"root of the batch would give {one / 5:.1f} and {one / 200**0.5:.1f})",
        "yes" if many < some < one else "no",
    ]


def _claim_stable(files: Files) -> list[str]:
    rows = files.figures("study_rollout")["rows"]
    parts, spreads = [], {}
    for kind in ("1 episode", "25 environments", "200 environments"):
        found = rows[kind]["equal_transitions"]["mean_return"]
        spreads[kind] = found["high"] - found["low"]
        parts.append(f"{kind} {span(found, 1)}")
    ahead = rows["200 environments"]["equal_transitions"]["mean_return"]["iqm"]
    best = max(rows, key=lambda kind: rows[kind]["equal_transitions"]["mean_return"]["iqm"])
    spread = spreads["200 environments"] < spreads["1 episode"]
    leads = ahead > rows["1 episode"]["equal_transitions"]["mean_return"]["iqm"]
    holds = "yes" if spread and leads else "in part" if spread or leads else "no"
    transitions = files.figures("study_rollout")["transitions"]
    return [
        "training is more stable and at least as good",
        f"return after {transitions / 1e6:.2f} M transitions: {'; '.join(parts)}; best: {best}",
        holds,
    ]


def _claim_memory(files: Files) -> list[str]:
    rows = files.figures("study_rollout")["rows"]
    one, many = (rows[kind]["peak_memory_mb"] for kind in ("1 episode", "200 environments"))
    return [
        "the same memory footprint",
        f"peak of the process {one:,.0f} MB with one environment, {many:,.0f} MB with 200",
        "yes" if many < 1.1 * one else "nearly" if many < 1.5 * one else "no",
    ]


def _claim_stop(files: Files) -> list[str]:
    found = files.figures("study_ablation")["early_stopping"]
    gains, parts = found["gain_of_going_on"], []
    for name in gains:
        on, off = (found[which][name]["transitions"]["iqm"] for which in ("on", "off"))
        parts.append(f"{name}: {off / on:.0f} times the transitions bring {signed(gains[name])}")
    return [
        "stopping early by compliance saves work at no loss",
        "; ".join(parts),
        "no"
        if any(g["low"] > SMALL for g in gains.values())
        else "yes"
        if all(g["high"] < SMALL for g in gains.values())
        else "not shown",
    ]


def _claim_search(files: Files) -> list[str]:
    found = files.figures("study_ablation")["searches"]
    parts = [
        f"{name} {found[name]['enterprise_before_user_in_best']} of {found[name]['searches']}"
        for name in ("gp-ucb", "random", "round-robin")
    ]
    right = {name: found[name]["enterprise_before_user_in_best"] for name in ("gp-ucb", "random", "round-robin")}
    return [
        "GP-UCB finds better orders than naive choice",
        f"searches of {found['evaluations']} evaluations whose best order is one of the best half: {', '.join(parts)}",
        "yes" if right["gp-ucb"] >= 2 * max(right["random"], right["round-robin"]) else "not on this problem",
    ]


def again(files: Files) -> str:
    """The commands, and how long they took."""
    rows: list[list[str]] = []
    total = 0.0
    for name, study in STUDIES.items():
        if not files.has(name):
            rows.append([f"`{name}`", study.words, "", ""])
            continue
        found: dict[str, Any] = files(f"study_{name}")
        total += found["seconds_of_cells"]
        rows.append([f"`{name}`", study.words, f"{found['cells']}", f"{found['seconds_of_cells'] / 60:.1f}"])
    commands = "\n".join(f"python -m benchmarks.study {name}" for name in STUDIES)
    jobs = files("study_baselines")["jobs"]
    words = (
        "A study that was stopped or killed goes on where it was when it is called again; studies share trainings. The "
        "column counts a shared training in each of them.\n\n"
    )
    head = table(["study", "asks", "cells", "minutes of processes"], rows)
    return (
        f"## Again\n\n{words}{head}\nTogether {total / 60:.0f} minutes of processes, {jobs} side by side.\n\n"
        f"```bash\n{commands}\npython -m benchmarks.study --render\n```\n\nThe tables of the challenge's protocol come from "
        "`python -m benchmarks.champion NAME` ([how the defenders work](champion.md)):\n\n```bash\n"
        + "\n".join(f"python -m benchmarks.champion {name}" for name in CHAMPION)
        + "\nworkflow-rl train --preset champion --edition leaderboard --run-dir runs/champion-leaderboard\n```\n"
    )


CHAMPION = ("original", "table", "cyborg", "editions", "wrapper", "clock", "repeat", "ppo")
