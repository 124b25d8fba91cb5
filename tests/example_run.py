"""The stored run of the documents, read without the program, and pages as tests read them."""

from __future__ import annotations

import html
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import ROOT
from workflow_rl.engine.network_file import load_network
from workflow_rl.report.drawing import to_plotly
from workflow_rl.report.figures import figures
from workflow_rl.report.run_types import RunData

EXAMPLE = ROOT / "docs" / "example-run.zip"


NETWORK = load_network()


def unpack(folder: Path) -> Path:
    with zipfile.ZipFile(EXAMPLE) as archive:
        archive.extractall(folder)
    return folder


def drawn(data: RunData) -> dict[str, dict[str, Any]]:
    """The figures as the page has them."""
    return {name: to_plotly(figure) for name, figure in figures(data).items() if not figure.categories}


KINDS = ("bases", "trainings", "finals")  # of trainings that a search has


OBEDIENCE = ("compliance", "compliance_error", "kept", "repairs", "idle_fixes")


def raw_trainings(run: Path, kind: str = "trainings") -> dict[str, list[dict[str, Any]]]:
    """Events of all trainings of a kind, by name, read without the program."""
    return {
        folder.name: [json.loads(line) for line in (folder / "events.jsonl").read_text("utf-8").splitlines()]
        for folder in sorted((run / kind).iterdir())
    }


def raw_results(run: Path, kind: str = "trainings") -> dict[str, dict[str, Any]]:
    folders = sorted((run / kind).iterdir())
    return {folder.name: json.loads((folder / "result.json").read_text("utf-8")) for folder in folders}


def pooled(results: list[dict[str, Any]]) -> dict[str, float]:
    """How trainings with equally many episodes kept their order: each repair counts alike, and each training's kept."""
    repairs = np.array([one["repairs"] for one in results])
    violations = repairs * [1 - one["compliance"] for one in results]  # per episode
    errors = repairs * [one["compliance_error"] for one in results]
    return {
        "compliance": 1 - violations.sum() / repairs.sum(),
        "compliance_error": np.sqrt((errors**2).sum()) / repairs.sum(),
        "kept": np.mean([one["kept"] for one in results]),
        "repairs": repairs.mean(),
        "idle_fixes": np.mean([one["idle_fixes"] for one in results]),
    }


def figures_of(row: dict[str, Any]) -> str:
    return f"{row['mean_return']:.2f} ± {row['standard_error']:.2f}"


def section(text: str, name: str) -> str:
    """One section of a page."""
    return text.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def plain(text: str) -> str:
    """The words of a piece of a page."""
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def cells(text: str) -> list[list[str]]:
    """The rows of all tables in a piece of a page, headings first."""
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.S)
    ]
    return [[plain(cell) for cell in row] for row in rows]


def spoil_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")
