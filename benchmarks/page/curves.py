"""The learning curves of the study `learners` as a picture: return by transitions and by seconds."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from benchmarks.page.files import FOES, Files
from workflow_rl.report.drawing import BLUE, GREEN, ORANGE, SKY
from workflow_rl.runs import write_atomically

NAME = "learners.svg"
NAMES = {
    "ours": "ours, preset `general`",
    "ours-tuned": "ours, tuned",
    "sb3": "stable-baselines3, defaults",
    "sb3-tuned": "stable-baselines3, tuned",
}
STYLES = {"ours": (BLUE, "-"), "ours-tuned": (SKY, "--"), "sb3": (ORANGE, ":"), "sb3-tuned": (GREEN, "-.")}
LOWEST = -200.0  # of the axis: the first checkpoints are far below


def write_curves(files: Files, folder: Path) -> Path:
    """Writes the picture; the same figures give the same bytes."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.hashsalt": "workflow_rl", "svg.fonttype": "none", "font.size": 9})
    sheet = Figure((8.5, 6.0), layout="constrained", facecolor="white")
    panels = sheet.subplots(len(FOES), 2, sharey=True)
    for row, (red, foe) in zip(panels, FOES.items(), strict=True):
        curves = files.figures("study_learners")["curves"][red]
        for axes, along in zip(row, ("transitions", "seconds"), strict=True):
            for name, label in NAMES.items():
                _draw(axes, curves[name], along, label.replace("`", ""), *STYLES[name])
            axes.set(xscale="log", ylim=(LOWEST, 0))
            axes.grid(alpha=0.3)
        row[0].set_ylabel(f"return against {foe}")
    panels[-1][0].set_xlabel("transitions")
    panels[-1][1].set_xlabel("seconds of training, one core")
    sheet.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=len(NAMES))
    buffer = io.BytesIO()
    sheet.savefig(buffer, format="svg", metadata={"Date": None})
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / NAME, buffer.getvalue())
    return folder / NAME


def _draw(axes: Any, curve: dict[str, Any], along: str, label: str, colour: str, line: str) -> None:
    """One contestant: interquartile mean over seeds with its interval."""
    looks = curve.values()
    x = [look["transitions"] if along == "transitions" else look["seconds"]["iqm"] for look in looks]
    low, middle, high = ([look["mean_return"][key] for look in looks] for key in ("low", "iqm", "high"))
    axes.plot(x, middle, color=colour, linestyle=line, label=label)
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
