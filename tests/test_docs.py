"""Runs every command and every Python example that the documents show."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, require
from tests.helpers import run
from workflow_rl.search.findings import SearchResult
from workflow_rl.search.verdict import verdict

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)

# Commands that a test cannot run as they stand, and who runs them instead.
ELSEWHERE = {
    "python -m benchmarks learners": "an hour; tests/test_studies.py runs its quick form",
    "python -m benchmarks planner": "minutes of measuring; tests/test_planner.py looks ahead less",
    "python -m benchmarks obedient leaderboard": "minutes; tests/test_obedient.py looks at the stored table",
    "python -m benchmarks obedient cyborg": "minutes on CybORG; tests/test_obedient.py looks at the stored table",
    "python -m benchmarks obedient orders": "minutes of measuring; tests/test_obedient.py plays some of the orders",
    "python -m benchmarks all": "hours; tests/test_studies.py checks what it would run",
    "python -m benchmarks page": "writes docs/results.md; tests/test_studies.py compares the page",
    "python -m benchmarks cluster overhead": "minutes of measuring; tests/test_cluster.py runs such searches smaller",
    "python -m benchmarks cluster faults": "minutes; tests/test_cluster.py does the same with a smaller search",
    "python -m benchmarks cluster suggestions": "writes the stored result; tests/test_search.py makes suggestions",
    "python -m benchmarks cluster evaluations": "minutes of measuring; tests/test_executor.py trains as it does",
    "python -m benchmarks cluster scaling": "minutes of measuring",
    "python -m benchmarks cluster model": "writes the stored result; tests/test_in_flight.py runs the model smaller",
    "make check": "`make test` runs it beside the tests",
    "make test": "this is what runs the tests",
    "make test-all": "this is what runs the tests; .ci/run calls it",
    "python -m benchmarks test_ways": "all tests again, eight times",
    "workflow-rl bench env": "half a minute of measuring; tests/test_cli.py runs it shortened",
    "python -m benchmarks env": "writes the stored result; tests/test_cli.py runs the same measurement shortened",
    "workflow-rl bench train": "minutes of measuring; tests/test_cli.py runs it shortened",
    "python -m benchmarks train": "writes the stored result; tests/test_cli.py runs the same measurement shortened",
    "python -m benchmarks memory": "minutes of training; tests/test_small_memory.py trains shorter",
    "python -m benchmarks general": "a minute of training; tests/test_training.py trains shorter",
    "workflow-rl bench search": "minutes of measuring; tests/test_ranking.py runs it shortened",
    "python -m benchmarks search": "minutes; tests/test_workflow_search.py and test_ranking.py run its parts",
    "python -m benchmarks workflow_table bline": "360 trainings; tests/test_ranking.py looks at the stored table",
    "python -m benchmarks workflow_table meander": "360 trainings; tests/test_ranking.py looks at the stored table",
    "python -m benchmarks workflow_table bline 30": "30 trainings; tests/test_ranking.py looks at the stored table",
    "python -m benchmarks workflow_table meander 40": "72 trainings; tests/test_ranking.py looks at the stored table",
    "python -m benchmarks incidents": "half an hour; tests/test_ranking.py looks at the stored tables",
    "workflow-rl search --takeover 30": "minutes; the README has a shorter one",
    "python -m benchmarks playbooks": "an hour of searches",
    "python -m benchmarks taught": "two minutes of training; tests/test_rule.py trains shorter",
    "python -m benchmarks failures": "minutes of simulated searches; tests/test_failures.py checks the rule",
    "python -m benchmarks design": "minutes of simulated searches",
    "python -m benchmarks problems": "half an hour of searches; tests/test_problems.py searches shorter",
    "workflow-rl train --preset universal --red-agent meander --run-dir runs/universal-meander": "minutes of training",
    "python -m benchmarks free_play 50000": "tests/test_free_play.py runs the same comparison",
    "workflow-rl bench cyborg": "minutes of measuring; tests/test_cyborg_runs.py runs it shortened",
    "python -m benchmarks cyborg lockstep": "minutes; tests/test_lockstep.py plays fewer games",
    "python -m benchmarks cyborg oracle": "minutes; tests/test_lockstep.py plays some of the games",
    "python -m benchmarks cyborg transfer": "minutes; tests/test_cyborg_runs.py compares fewer games",
    "python -m benchmarks cyborg speed": "minutes of measuring; tests/test_cyborg_runs.py runs it shortened",
    "python -m benchmarks repeat obedient current": "trains it anew; tests/test_obedient.py kills a shorter training",
    "python -m benchmarks pictures": "writes the pictures; tests/test_report.py makes the figures anew and compares",
    "python -m benchmarks report": "a search of 40 evaluations; tests/test_report_browser.py opens reports",
    "python -m benchmarks mutations ../shared/cage2-oracle": "minutes; tests/test_replay.py runs chosen mutants",
    "python -m benchmarks networks 200": "many minutes; tests/test_any_network.py plays ten of them",
}
NEEDS_SHARED = "../shared"


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(ROOT)}:{match.string[: match.start()].count(chr(10)) + 1}", match[2])
        for path in DOCUMENTS
        for match in FENCE.finditer(path.read_text("utf-8"))
        if match[1] == language
    ]


def commands(text: str) -> list[str]:
    lines = [line.split("  #")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def place_of(command: str, place: str) -> str:
    """Where a command is run: here if it needs or makes a run, otherwise where it is shown first."""
    return place if "runs" in command else next(first for first, text in blocks("bash") if command in commands(text))


def run_command(command: str, place: str) -> subprocess.CompletedProcess[str]:
    """As users do, in a new process; of what other documents show of the README's commands, a fork: seconds less."""
    words = shlex.split(command)
    if words[0] == "workflow-rl" and not place.startswith("README") and "*" not in command and "--ray" not in command:
        return run(*words[1:])
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    shell = ["/bin/bash", "-e", "-c", command]
    return subprocess.run(shell, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


def commands_here(place: str, text: str) -> list[str]:
    """Commands of a block that are run where the block stands."""
    return [command for command in commands(text) if command not in ELSEWHERE and place_of(command, place) == place]


def removed(path: Path) -> None:
    """Removes a file or folder that a command made."""
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)


@pytest.mark.long
@pytest.mark.parametrize(("place", "text"), [block for block in blocks("bash") if commands_here(*block)])
def test_the_commands_of_the_documents_work(place: str, text: str) -> None:
    """Each block in sequence, for its commands may build on each other; runs that it makes are removed."""
    here = commands_here(place, text)
    if any(NEEDS_SHARED in command for command in here):
        require("recordings")
    made = [ROOT / name for name in re.findall(r"runs/docs-[\w.-]+", text)]
    before = set((ROOT / "runs").glob("*-search"))
    for path in made:
        removed(path)
    for command in here:
        done = run_command(command, place)
        if done.returncode != 0:
            break
    unnamed = set((ROOT / "runs").glob("*-search")) - before if "make search" in here else set()
    for path in [*made, *unnamed]:
        removed(path)
    assert done.returncode == 0, f"{place}: {command}\n{done.stdout}{done.stderr}"


@pytest.mark.long
@pytest.mark.parametrize(("place", "code"), blocks("python"))
def test_a_python_example_of_the_documents_works(place: str, code: str, tmp_path: Path) -> None:
    """In an empty directory: an example needs no checkout."""
    command, environment = [sys.executable, "-c", code], os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{place}\n{done.stderr}"


def test_every_link_between_documents_leads_somewhere() -> None:
    for path in [*DOCUMENTS, ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text("utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.relative_to(ROOT)} points to {target}"


def test_no_document_has_a_place_that_was_to_be_filled_in_later() -> None:
    for path in [*DOCUMENTS, ROOT / "CHANGELOG.md"]:
        found = re.findall(r"^[A-Z]+_[A-Z_]+$|\bTODO\b|\bTBD\b", path.read_text("utf-8"), re.MULTILINE)
        assert not found, f"{path.relative_to(ROOT)}: {found}"


MOST_COLUMNS = 120
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
BINDING = re.compile(r"<!--.*?-->", re.DOTALL)
ONE_LINK = re.compile(r"[> ]*(?:[*-] |\d+\. )?!?\[[^\]]*\]\([^)]*\)[.,:;]?")


def long_lines(text: str) -> list[str]:
    """Lines of text that are too long; tables, code, headings, bindings of numbers and single links may be."""
    lines = BINDING.sub("", FENCED.sub("", text)).splitlines()
    return [
        line
        for line in lines
        if len(line) > MOST_COLUMNS and not line.lstrip("> ").startswith(("|", "#")) and not ONE_LINK.fullmatch(line)
    ]


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_paragraph_line_of_a_document_is_longer_than_120_characters(path: Path) -> None:
    assert long_lines(path.read_text("utf-8")) == []


WORDS = "word " * 30


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (WORDS, True), (f"* {WORDS}", True), (f"1. {WORDS}", True), (f"> {WORDS}", True), (f"[a](b) {WORDS}", True),
        (f"| {WORDS} |", False), (f"# {WORDS}", False), (f"```text\n{WORDS}\n```", False), (f"<!-- {WORDS} -->", False),
        (f"* [{WORDS}](there)", False), (f"![{WORDS}](there)", False), ("word " * 24, False),
    ],
)  # fmt: skip
def test_a_long_line_is_found_in_text_alone(text: str, found: bool) -> None:
    assert bool(long_lines(text)) is found


def test_every_known_command_is_still_shown() -> None:
    shown = [command for _, text in blocks("bash") for command in commands(text)]
    for known in ELSEWHERE:
        assert known in shown, f"{known} is not in any document"


def test_the_readme_shows_the_answer_of_the_stored_default_search() -> None:
    """Every sentence of what is known, as the program words it, however the lines are broken."""
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    stored = json.loads((ROOT / "benchmarks" / "results" / "search.json").read_text("utf-8"))["figures"]["bline"]
    whole = stored | {"equal_to_best": ["one"] * stored["equal_to_best"]}
    known = verdict(SearchResult.from_json(whole), stored["evaluations"]).known
    assert [sentence for sentence in known if sentence not in text] == []
