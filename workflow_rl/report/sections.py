"""The sections of a run's page: the answer, ranking, priorities, the search, the replay, training, figures of all."""

from __future__ import annotations

from typing import Any

from workflow_rl.config import config_to_json, opponent_words
from workflow_rl.engine.network import Network
from workflow_rl.engine.network_file import load_network
from workflow_rl.report.answer import (
    FINALIST_COLUMNS,
    OBEDIENCE_COLUMNS,
    against_best,
    decimals,
    finalist_rows,
    obedience_cells,
)
from workflow_rl.report.arrows import arrows
from workflow_rl.report.figures import figures, has_curve
from workflow_rl.report.page import compose, escape, plot, table
from workflow_rl.report.run_types import CURVES, RunData
from workflow_rl.report.story import VERDICTS
from workflow_rl.search.findings import EvaluationRow, RankingRow
from workflow_rl.training.events import WorkflowResult


def page(data: RunData, answer: list[str]) -> str:
    """The page of one run, as text; ``answer`` is what it found, in words."""
    drawn = figures(data)
    what = "Search for the best workflow" if data.kind == "search" else "Training"
    opponent = opponent_words(data.train.red_agent, data.train.takeover)
    title = f"{what} against {opponent}, {data.train.edition} edition"
    sections = [
        ("answer", "The answer", _answer(data, answer)),
        ("finalists", "Finalists", _finalists(data)),
        ("ranking", "Ranking", _ranking(data)),
        ("priorities", "Which priorities matter", _pairs(data)),
        ("progress", "How the search went", _progress(data)),
        ("replay", "The defender under attack", _replay(data)),
        ("training", "Training", _training(data)),
        ("violations", "Violations", _violations(data)),
        ("evaluation", "Evaluation", _evaluation(data)),
        ("time", "Time", _time(data)),
        ("settings", "Settings", _settings(data)),
    ]
    shown = [(name, heading, body) for name, heading, body in sections if body]
    return compose(title, shown, {"figures": drawn, "stories": data.stories})


def _answer(data: RunData, answer: list[str]) -> str:
    first, *rest = [line for line in answer if line.strip()] or ["Nothing has been evaluated yet."]
    parts = [
        f'<p class="answer">{escape(first)}</p>',
        arrows(data.pair_weights, data.best, len(data.evaluations)),
    ]
    parts += [f"<p>{escape(line)}</p>" for line in rest]
    if data.state in ("running", "interrupted"):
        done = f"{len(data.evaluations)} of {data.asked_for} evaluations" if data.asked_for else "It"
        parts.insert(0, f'<p class="warning">This run is not finished ({data.state}): {done} done so far.</p>')
    if data.problem:
        parts.append(f'<p class="warning">{escape(data.problem)}</p>')
    if data.damaged_lines:
        parts.append(f'<p class="warning">{data.damaged_lines} damaged lines of its files were left out.</p>')
    return "\n".join(parts)


def _ranking(data: RunData) -> str:
    if not data.ranking:
        return ""
    rows = []
    for place, row in enumerate(data.ranking, 1):
        figure = f"{row.mean_return:.2f} ± {row.standard_error:.2f}"
        rows.append([row.workflow, place, figure, against_best(row, 2), *_kept(row), row.visits])
    expected = sorted(data.predictions, key=lambda row: -row.mean)
    every = [[row.workflow, f"{row.mean:.2f}", f"{row.sigma:.2f}"] for row in expected]
    columns = ["workflow", "place", "return", "against the best", "compliance", "kept", "visits"]
    short = ", short trainings" if data.finalists else ""
    predicted = table("What the process expects of all 120 workflows", ["workflow", "expected", "deviation"], every)
    return (
        f"{plot('ranking')}<noscript>{static_ranking(data)}</noscript>"
        f"{table(f'Evaluated workflows{short}; ± one standard error', columns, rows)}"
        f"<details><summary>All 120 workflows</summary>{predicted}</details>"
    )


def _kept(row: RankingRow | EvaluationRow | WorkflowResult) -> list[str]:
    """Compliance and kept as cells; nothing where they are undefined."""
    return [decimals(row.compliance, 3), decimals(row.kept, 3)]


def _finalists(data: RunData) -> str:
    if not data.finalists:
        return ""
    words = (
        "The best workflow of the short trainings, and the best ones with a priority reversed, trained to "
        "the end. A priority matters if its effect is clear after both lengths and at least half of it stays."
    )
    caption = "Finalists after the longer training; ± one standard error of their mean"
    listed = table(caption, ["workflow", *FINALIST_COLUMNS], finalist_rows(data.finalists))
    return f'<p class="note">{words}</p>{listed}{plot("finals")}'


def static_ranking(data: RunData) -> str:
    """The ranking as a plain picture, for readers without JavaScript."""
    rows = data.ranking
    wide = data.quantile
    low = min(row.mean_return - wide * row.standard_error for row in rows)
    high = max(row.mean_return + wide * row.standard_error for row in rows)
    scale = 330 / ((high - low) or 1.0)
    marks = []
    for i, row in enumerate(rows):
        y, x = 20 + 20 * i, 350 + scale * (row.mean_return - low)
        half = scale * wide * row.standard_error
        marks.append(
            f'<text x="0" y="{y + 4}" font-size="12">{escape(row.workflow)}</text>'
            f'<line class="bar" x1="{x - half:.1f}" x2="{x + half:.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="dot" cx="{x:.1f}" cy="{y}" r="4"/>'
        )
    box = f'viewBox="0 0 700 {30 + 20 * len(rows)}"'
    return f'<svg {box} role="img" aria-label="Ranking with 95 % intervals">{"".join(marks)}</svg>'


def _pairs(data: RunData) -> str:
    if not data.pair_weights:
        return ""
    rows = [
        [
            f"{row.first} before {row.second}",
            f"{row.effect:+.2f} ± {row.standard_error:.2f}",
            "matters" if row.matters else "not clear",
            "" if row.half_as_long is None else f"{row.half_as_long:+.2f}",
            f"{row.weight:.3f}",
        ]
        for row in data.pair_weights
    ]
    columns = ["pair", "effect on the return", "", "trained half as long", "kernel weight"]
    return plot("pairs") + table("Effects of pairs; of finished trainings where there are two lengths", columns, rows)


def _progress(data: RunData) -> str:
    if not data.ranking:
        return ""
    rows = []
    for row in data.evaluations:
        expected = "" if row.mean is None else f"{row.mean:.2f} ± {row.sigma:.2f}"
        bound = "" if row.bound is None else f"{row.bound:.2f}"
        found = f"{row.mean_return:.2f} ± {row.standard_error:.2f}"
        rows.append([row.workflow, row.index + 1, expected, bound, found, *_kept(row), row.reason])
    columns = ["workflow", "number", "expected", "bound", "found", "compliance", "kept", "reason"]
    return plot("progress") + plot("map") + table("Evaluations in their sequence", columns, rows)


def _replay(data: RunData) -> str:
    if data.train.universal:
        return "<p>A universal policy has no order of its own: <code>workflow-rl watch RUN --workflow ORDER</code>.</p>"
    if not data.stories:
        return ""
    told = "".join(
        f'<dt>{words}</dt><dd id="told-{name}"></dd>'
        for name, words in (
            ("step", "Step"), ("blue", "Blue"), ("fix", "Judged by the workflow"), ("red", "Red"),
            ("reward", "Reward"), ("service", "Operational service"),
        )
    )  # fmt: skip
    controls = (
        '<div class="controls"><label for="story">Episode</label><select id="story"></select>'
        '<button id="back" type="button" aria-label="one step back">◀</button>'
        '<button id="play" type="button" aria-pressed="false">Play</button>'
        '<button id="forth" type="button" aria-label="one step on">▶</button>'
        '<input id="slider" type="range" min="0" value="0" aria-label="step"></div>'
    )
    rows = [
        [story["red_agent"], story["why"], f"{story['frames'][-1]['total']:.1f}", *_counts(story)]
        for story in data.stories
    ]
    columns = ["red agent", "episode", "return", "repairs in order", "violations", "idle fixes"]
    help_text = "Keys: space plays and pauses, the arrows take a step, Home and End go to the start and the end."
    return (
        f'<p class="note">A thick frame and a letter show what is true (u user, P privileged access of red), a dashed '
        f"frame and the words what blue believes. {help_text}</p>"
        f'<div id="replay-region" tabindex="0" role="group" aria-label="Replay of an episode">{controls}'
        f'<div class="scene">{draw_network(load_network())}<dl class="told" aria-live="polite">{told}</dl></div></div>'
        f"{table('The episodes that can be replayed', columns, rows)}"
    )


def _counts(story: dict[str, Any]) -> list[int]:
    verdicts = [frame["fix"]["verdict"] for frame in story["frames"] if frame["fix"]]
    return [verdicts.count(name) for name in VERDICTS.values()]


def draw_network(network: Network) -> str:
    """The hosts in their subnets as SVG; the script fills in what changes."""
    foothold = network.subnet_of(network.red.foothold)
    parts = []
    for column, subnet in enumerate(sorted(network.subnets, key=lambda one: one.name != foothold)):
        x = 10 + 230 * column
        parts.append(f'<rect class="box" x="{x}" y="24" width="220" height="{20 + 70 * 5}" rx="8"/>')
        parts.append(f'<text x="{x + 10}" y="18" font-size="14">{escape(subnet.name)}</text>')
        for row, name in enumerate(subnet.hosts):
            h, y = network.host_names.index(name), 36 + 70 * row
            parts.append(
                f'<g class="host" id="host-{h}"><title id="title-{h}">{escape(name)}</title>'
                f'<rect x="{x + 10}" y="{y}" width="200" height="58" rx="5"/>'
                f'<text x="{x + 20}" y="{y + 18}" font-size="14">{escape(name)}</text>'
                f'<text class="mark" id="true-{h}" x="{x + 185}" y="{y + 20}" font-size="18"></text>'
                f'<text class="faint" id="belief-{h}" x="{x + 20}" y="{y + 35}" font-size="12"></text>'
                f'<text class="faint" id="seen-{h}" x="{x + 20}" y="{y + 51}" font-size="12"></text></g>'
            )
    return f'<svg viewBox="0 0 700 410" role="img" aria-label="The network">{"".join(parts)}</svg>'


def _training(data: RunData) -> str:
    known = [name for name in CURVES if has_curve(data, name)]
    rows = []
    for one in data.trainings:
        about, result = [one.workflow or "none", one.name, len(one.updates)], one.result
        if result is None:
            rows.append([*about, "not finished", "", "", ""])
        else:
            figure = f"{result.mean_return:.2f} ± {result.standard_error:.2f}"
            rows.append([*about, figure, *_kept(result), result.stop_reason])
    columns = ["workflow", "training", "updates", "return", "compliance", "kept", "stopped by"]
    listed = table("Trainings, evaluated on fresh episodes", columns, rows)
    return (
        "".join(plot(f"curve-{name}") for name in known)
        + f"<details><summary>All trainings</summary>{listed}</details>"
    )


def _violations(data: RunData) -> str:
    counts, types = data.violations.counts, data.violations.unit_types
    if not data.violations.judged or not any(one.updates for one in data.trainings):
        return ""
    if not any(map(any, counts)):
        return "<p>No repair in any training batch was out of turn.</p>"
    rows = [[name, *row] for name, row in zip(types, counts, strict=True)]
    return plot("violations") + table("Rows were repaired, columns were due", ["", *types], rows)


def _evaluation(data: RunData) -> str:
    found = data.evaluation
    if not found and data.problem:
        return ""
    if not found:
        return "<p>There is no trained policy to evaluate yet.</p>"
    lengths = list(next(iter(found["cells"].values())))
    rows = [
        [red, *(f"{row[length]['mean']:.2f} ± {row[length]['standard_error']:.2f}" for length in lengths)]
        for red, row in found["cells"].items()
    ]
    for row, kept in zip(rows, found.get("obedience", {}).values(), strict=False):
        row += obedience_cells(kept)
    columns = ["red agent", *(f"{length} steps" for length in lengths)]
    columns += OBEDIENCE_COLUMNS if found.get("obedience") else []
    total = f"Total of all means: {found['total']:.2f} ± {found['total_standard_error']:.2f}."
    caption = f"The defender of this run on {found['episodes']} fresh games per red agent; mean return ± standard error"
    return table(caption, columns, rows) + f"<p>{total}</p>"


def _time(data: RunData) -> str:
    spent = data.time
    rows = [["playing games", f"{spent.collect:.1f}"], ["learning", f"{spent.update:.1f}"]]
    rate = f"{spent.transitions_per_s:,.0f} per second of training"
    words = f"{spent.transitions / 1e6:.2f} million transitions, {rate}."
    return table("Seconds of all trainings together", ["", "seconds"], rows) + f"<p>{words}</p>"


def _settings(data: RunData) -> str:
    config = config_to_json(data.config)
    config |= config.pop("train", {})
    rows = [[name, value if value != "" else "none"] for name, value in config.items()]
    versions = ", ".join(f"{name} {version}" for name, version in data.versions.items())
    return (
        f"<p>The command that repeats this run:</p><pre>{escape(data.command)}</pre>"
        f'<p class="note">Run {escape(data.run)}, commit {escape(data.commit)}; {escape(versions)}.</p>'
        f"<details><summary>All settings</summary>{table('Settings', ['setting', 'value'], rows)}</details>"
    )
