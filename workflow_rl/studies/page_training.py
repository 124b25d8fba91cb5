"""Sections of the page: rollouts, ablation, scaling."""

from __future__ import annotations

from typing import Any

from workflow_rl.studies.page_parts import Files, about, number, scored, signed, span, table


def rollout(files: Files) -> str:
    """How an update is filled."""
    found, limit = files.figures("study_rollout"), files.limit("current", "bline", "100")
    rows, noise = [], []
    for kind, row in found["rows"].items():
        equal, timed, followed = row["equal_transitions"], row["equal_seconds"], row["followed"]
        rows.append(
            [
                kind,
                scored(equal["mean_return"], limit),
                number(equal["compliance"]["iqm"], 3),
                scored(timed["mean_return"], limit),
                number(timed["compliance"]["iqm"], 3),
                f"{timed['transitions']['iqm'] / 1e6:.1f} M",
                _reached(followed),
                f"{row['transitions_per_s'] / 1e3:,.0f} k",
                number(row["peak_memory_mb"], 0),
            ]
        )
        noise.append([kind, *(_noise(found["gradients"][update][kind]) for update in found["gradients"])])
    columns = [
        "an update after", f"return after {found['transitions'] / 1e6:.2f} M transitions", "compliance",
        f"return after {found['seconds']:.0f} s", "compliance", "transitions by then", "seconds to 95 % compliance",
        "transitions/s, alone", "memory, MB",
    ]  # fmt: skip
    updates = [f"after {n} updates: noise, cosine" for n in found["gradients"]]
    return (
        "## Rollouts\n\nThe documents' ways to fill a batch, with their own settings, from scratch, one order, B_line. Equal "
        "transitions, equal seconds of collecting and learning (two trainings side by side), and the first of two looks in a row "
        "at which 200 fresh games have a compliance of 95 %; looks come at doubled transitions and at 1, 2, 5, 10, 20 s, so that "
        "such times are good to a factor of two.\n\n"
        + table(columns, rows)
        + "\n**Gradients.** How much the gradient of one batch varies, for the same policy: root of the mean squared "
        "distance to the true gradient over the length of that one (the mean of the largest batches), and the cosine "
        "between the two. A cosine of 1 is the right direction.\n\n"
        + table(["batch of", *updates], noise)
        + "\n"
        + about(
            files,
            "rollout",
            "settings tuned for each way, which would help the small batches most: learning rate and epochs are the "
            "documents' for all. Only B_line and one order; seconds depend on the machine and on what runs beside.",
        )
    )


def _reached(found: dict[str, Any]) -> str:
    if not found["seconds"]:
        return f"never (0 of {found['of']})"
    return f"{number(found['seconds']['iqm'], 1)} ({found['seeds']} of {found['of']})"


def _noise(found: dict[str, Any]) -> str:
    return f"{number(found['noise']['iqm'])}, {number(found['cosine']['iqm'])}"


def ablation(files: Files) -> str:
    """What the parts are worth."""
    found, limit = files.figures("study_ablation"), files.limit("current", "bline", "100")
    names = list(found["orders"])
    columns = ["", *(f"{name}: {what}" for name in names for what in ("return", "compliance", "fixes"))]
    strength = [
        [words.format(value), *_figures(row, names, limit)]
        for form, words in (("potential", "by the rate, {}"), ("per-fix", "per fix, {}"))
        for value, row in found["strength"][form].items()
    ]
    stop = [
        [f"early stopping {which}", *_figures(found["early_stopping"][which], names, limit)] for which in ("on", "off")
    ]
    start = [[f"from {which}", *_figures(row, names, limit)] for which, row in found["warm_start"].items()]
    return (
        "## Ablation\n\nOne change at a time, B_line, two orders: enterprise first, and user first, which goes against what "
        f"the reward asks for.\n\n**Alignment reward**, from scratch, {found['episodes']} episodes in each of 200 "
        "environments, no early stop. 0 is none.\n\n"
        + table(columns, strength)
        + "\n**Early stopping**, from a universal policy, at most 50 episodes per environment.\n\n"
        + table(columns, stop)
        + "\n"
        + _gain(found, names)
        + "\n**Warm start**, 50 episodes per environment, no early stop; the start's own training is not counted.\n\n"
        + table(columns, start)
        + "\n"
        + _conditioning(found["conditioning"], limit)
        + _searches(found["searches"])
        + about(
            files,
            "ablation",
            "Meander, where orders hardly differ; combinations of changes; strengths tuned for each way to start. The episodes of the conditioning were raised after a "
            "first try with a quarter of them, which is not stored, had shown no difference.",
        )
    )


def _figures(row: dict[str, Any], names: list[str], limit: float) -> list[str]:
    cells = []
    for name in names:
        one = row[name]
        cells += [scored(one["mean_return"], limit), number(one["compliance"]["iqm"], 3)]
        cells.append(number(one["counted_fixes"]["iqm"], 0))
    return cells


def _gain(found: dict[str, Any], names: list[str]) -> str:
    gains, parts = found["early_stopping"]["gain_of_going_on"], []
    for name in names:
        on, off = (found["early_stopping"][which][name]["transitions"]["iqm"] for which in ("on", "off"))
        parts.append(f"{name} {signed(gains[name])} for {off / on:.0f} times the transitions")
    return f"What the return gains by going on: {'; '.join(parts)}.\n"


def _conditioning(found: dict[str, Any], limit: float) -> str:
    rows = [
        [
            which,
            scored(found[which]["mean_return"], limit),
            span(found[which]["compliance"], 3),
            number(found[which]["worst_compliance"]["iqm"], 3),
            f"{found[which]['followed']['iqm']:.0f} of 120",
        ]
        for which in ("told", "not told")
    ]
    columns = ["one policy for all orders", "return", "compliance", "worst order", "orders followed"]
    return (
        f"\n**Conditioning.** One policy for all 120 orders at once, {found['episodes']} episodes per environment, told its "
        "order or not. (A policy for one order alone needs no telling: the code never changes.) Much is followed without "
        "being told: where only one type is compromised, every fix of it is compliant. The universal policies that come along "
        "are trained longer and follow all.\n\n" + table(columns, rows)
    )


def _searches(found: dict[str, Any]) -> str:
    names = [name for name in found if name != "evaluations"]
    rows = [
        [
            name,
            str(found[name]["evaluations"]),
            f"{found[name]['transitions']['iqm'] / 1e6:.1f} M",
            f"{found[name]['enterprise_before_user_in_best']} of {found[name]['searches']}",
            span(found[name]["effect"]) if found[name]["evaluations"] > 1 else "too few to say",
            number(found[name]["wall_seconds"]["iqm"], 1),
        ]
        for name in names
    ]
    columns = [
        "search", "evaluations", "transitions", "best order is of the best half", "effect of enterprise before user", "s",
    ]  # fmt: skip
    return (
        "\n**The search**, with real trainings, two of each evaluation. An order is of the best half if enterprise comes "
        "before user.\n\n" + table(columns, rows) + "\n"
    )


def scaling(files: Files) -> str:
    """Where the cost goes."""
    found = files.figures("study_scaling")
    rows = [
        [
            n,
            f"{row['transitions_per_s'] / 1e3:,.0f} k",
            f"{row['share_collecting']:.0%}".replace("%", " %"),
            f"{row['distinct_inputs_per_transition']:.4f}",
            number(row["peak_memory_mb"], 0),
            _reached(row["followed"]),
            "" if not row["followed"]["transitions"] else f"{row['followed']['transitions']['iqm'] / 1e6:.2f} M",
        ]
        for n, row in found["environments"].items()
    ]
    columns = [
        "environments", "transitions/s, alone", "of that collecting", "distinct inputs per transition", "memory, MB",
        "seconds to 95 % compliance", "transitions to 95 %",
    ]  # fmt: skip
    search = [
        [
            jobs,
            number(row["wall_seconds"], 1),
            number(row["training_seconds"], 1),
            str(row["trainings"]),
            f"{row['training_seconds'] / row['wall_seconds']:.2f}",
        ]
        for jobs, row in found["search"].items()
    ]
    jobs = list(found["search"])
    faster = found["search"][jobs[0]]["wall_seconds"] / found["search"][jobs[1]]["wall_seconds"]
    return (
        "## Scaling\n\nOne order from scratch against B_line, with an alignment reward of 100 (the rollouts above have the "
        "documents' 30), an update per episode of each environment; the wait for 95 % compliance, seen at two looks in a row, "
        f"ends after {found['most_seconds']:.0f} s.\n\n"
        + table(columns, rows)
        + "\nThe same input comes again and again, and the network is asked once for each. Memory is the peak of the process "
        "without any evaluation.\n\n**The search** with several processes on two cores, medians of "
        f"{len(next(iter(found['search'].values()))['wall_seconds_of_each'])}; `training` is the sum over its trainings.\n\n"
        + table(["jobs", "whole search, s", "training, s", "trainings", "cores kept busy by training"], search)
        + f"\nTwo processes are {faster:.2f} times as fast as one.\n\n"
        + about(
            files,
            "scaling",
            "machines with more cores ([the cluster](cluster.md) has a model of that), GPUs, and other opponents, whose "
            "games have more distinct inputs.",
        )
    )
