"""Sections of the page: rollouts, ablation, scaling."""

from __future__ import annotations

from typing import Any

from benchmarks.page.parts import Files, about, number, scored, signed, span, table


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
                _kept(equal),
                scored(timed["mean_return"], limit),
                _kept(timed),
                f"{timed['transitions']['iqm'] / 1e6:.1f} M",
                _reached(followed),
                f"{row['transitions_per_s'] / 1e3:,.0f} k",
                number(row["peak_memory_mb"], 0),
            ]
        )
        if kind in found["kinds"]:
            noise.append([kind, *(_noise(found["gradients"][update][kind]) for update in found["gradients"])])
    columns = [
        "an update after", f"return after {found['transitions'] / 1e6:.2f} M transitions", "compliance, kept",
        f"return after {found['seconds']:.0f} s", "compliance, kept", "transitions by then", "seconds until followed",
        "transitions/s, alone", "memory, MB",
    ]  # fmt: skip
    updates = [f"after {n} updates: noise, cosine" for n in found["gradients"]]
    return (
        "## Rollouts\n\nThe documents' ways to fill a batch, with their own settings, from scratch, one order (`original`: none), B_line. Equal "
        "transitions, equal seconds of collecting and learning (two trainings side by side), and the first of two looks in a row "
        "at which the order is followed in 200 fresh games; looks come at doubled transitions and at 1, 2, 5, 10 s, so that "
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


def _kept(found: dict[str, Any]) -> str:
    if found["compliance"] is None:
        return "no order"
    told, of = found["compliance"]["seeds"], found["mean_return"]["seeds"]
    some = f" ({told} of {of} repair anything)" if told < of else ""
    return f"{number(found['compliance']['iqm'], 3)}, {number(found['kept']['iqm'], 3)}{some}"


def _reached(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    if not found["seconds"]:
        return f"never (0 of {found['of']})"
    return f"{number(found['seconds']['iqm'], 1)} ({found['seeds']} of {found['of']})"


def _noise(found: dict[str, Any]) -> str:
    return f"{number(found['noise']['iqm'])}, {number(found['cosine']['iqm'])}"


def ablation(files: Files) -> str:
    """What the parts are worth."""
    found, limit = files.figures("study_ablation"), files.limit("current", "bline", "100")
    names = list(found["orders"])
    columns = ["", *(f"{name}: {what}" for name in names for what in ("return", "compliance", "kept", "repairs, idle"))]
    strength = [
        [f"{kind}, {value}", *_figures(row, names, limit)]
        for kind, strengths in found["strength"].items()
        for value, row in strengths.items()
    ]
    length = [
        [f"{n} episodes", *_figures(row, names, limit), signed(row["effect"])] for n, row in found["length"].items()
    ]
    stop = [
        [f"early stopping {which}", *_figures(found["early_stopping"][which], names, limit)] for which in ("on", "off")
    ]
    start = [[f"from {which}", *_figures(row, names, limit)] for which, row in found["warm_start"].items()]
    return (
        "## Ablation\n\nOne change at a time, B_line, two orders: enterprise first, and user first, which goes against what "
        f"the reward asks for. Only fixes that ended red's presence count as repairs.\n\n**Alignment reward**, the default training but with {found['episodes']} episodes in each of 200 "
        "environments. 0 is none.\n\n"
        + table(columns, strength)
        + "\n**Length.** The default training, half and twice as long: an effect of the order that shrinks was a lack of training.\n\n"
        + table([*columns, "effect of the order"], length)
        + "\n**Early stopping**, the documents' training (200 environments, at most 50 episodes of each), from scratch.\n\n"
        + table(columns, stop)
        + "\n"
        + _gain(found, names)
        + f"\n**Start**, {found['episodes']} episodes per environment: from scratch, or from a general policy after so many updates, which are "
        "not counted.\n\n"
        + table(columns, start)
        + "\n"
        + _conditioning(found["conditioning"], limit)
        + _searches(found["searches"])
        + about(
            files,
            "ablation",
            "Meander; combinations of changes; strengths tuned for each length.",
        )
    )


def _figures(row: dict[str, Any], names: list[str], limit: float) -> list[str]:
    cells = []
    for name in names:
        one = row[name]
        cells += [scored(one["mean_return"], limit), *(number(one[kind]["iqm"], 3) for kind in ("compliance", "kept"))]
        cells.append(f"{number(one['repairs']['iqm'], 1)}, {number(one['idle_fixes']['iqm'], 1)}")
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
        "being told: where only one type is compromised, every repair is in order.\n\n" + table(columns, rows)
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
        "\n**The search**, its first stage with real trainings, no finalists. An order is of the best half if enterprise comes "
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
        "seconds until followed", "transitions until followed",
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
        "## Scaling\n\nOne order from scratch against B_line with the documents' settings, an update per episode of each environment; "
        "the wait until it is followed (95 %), seen at two looks in a row, "
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
