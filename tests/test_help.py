"""What ``--help`` and the shell's completion show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import workflow_rl
from tests.conftest import ROOT
from workflow_rl.cli.__main__ import COMMANDS, app
from workflow_rl.config import GROUPS, SEARCH_FIELDS
from workflow_rl.presets import NO_SEARCH, PRESETS
from workflow_rl.report.words import GLOSSARY

NAMES = [command.__name__ for command in COMMANDS]
SUBCOMMANDS = ["network check", "network show", "network new", "network import", "network export",
               "bench env", "bench train", "bench cyborg", "bench search"]  # fmt: skip


def shown(*arguments: str, columns: int = 80) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "workflow_rl.cli", *arguments, "--help"],
        capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": str(columns)},
    )  # fmt: skip
    return done.stdout.splitlines()


def completed(words: str, shell: str = "bash", folder: Path = ROOT) -> list[str]:
    environment = {
        "_WORKFLOW_RL_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args", "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    code = "import sys; sys.argv = ['workflow-rl']; from workflow_rl.cli.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment, cwd=folder
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1] if shell == "bash" else done.stdout.splitlines()


@pytest.mark.parametrize("command", ["", *NAMES, "network", "bench", *SUBCOMMANDS])
@pytest.mark.parametrize("columns", [60, 80])
def test_no_line_of_the_help_is_longer_than_the_terminal_and_no_name_is_cut(command: str, columns: int) -> None:
    lines = shown(*command.split(), columns=columns)
    assert all(len(line) <= columns or line.startswith("    workflow-rl") for line in lines)  # an example is one line
    assert "…" not in "".join(lines)
    if columns == 80:
        assert max(map(len, lines)) <= 80
        assert not any(line.endswith("...") for line in lines[1:])  # a sentence that breaks off


def test_the_first_screen_of_the_search_has_its_most_used_options_and_the_last_group_the_expert_settings() -> None:
    lines = shown("search")
    first = {found[1] for line in lines[:24] if (found := re.match(r"  (--[a-z-]+)", line))}
    assert {"--network", "--red-agent", "--takeover", "--n-workflows", "--replicates", "--n-envs"} <= first
    assert 9 <= len(first) <= 13
    titles = [line[:-1] for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert titles == ["What to search", *GROUPS[1:], "Presets"]


@pytest.mark.parametrize("command", ["search", "train"])
def test_every_setting_of_a_command_is_in_its_help_once(command: str) -> None:
    text = "\n".join(shown(command))
    for name in ("lr", "n_eval_episodes", "red_agent", "device", *(
        [item.name for item in SEARCH_FIELDS] if command == "search" else ["workflow"]
    )):  # fmt: skip
        assert len(re.findall(rf"^  --{name.replace('_', '-')} ", text, re.M)) == 1


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.__name__))
def test_the_examples_of_a_command_are_command_lines_that_it_accepts(command: object) -> None:
    program = typer.main.get_command(app)
    context = program.make_context("workflow-rl", ["runs"])
    for example in COMMANDS[command].split("|"):  # type: ignore[index]
        name, *arguments = example.split()
        found = program.get_command(context, name)  # type: ignore[attr-defined]
        assert found.make_context(name, arguments, parent=context).params
    assert shown(NAMES[list(COMMANDS).index(command)])[-1].startswith("    workflow-rl ")  # type: ignore[arg-type]


def test_the_shell_completes_commands_options_and_values(tmp_path: Path) -> None:
    assert completed("workflow-rl sea") == ["search"]
    assert "--red-agent" in completed("workflow-rl search --red")
    assert completed("workflow-rl search --red-agent ") == ["bline", "meander", "sleep"]
    assert completed("workflow-rl search --backend c") == ["cyborg"]
    assert completed("workflow-rl search --network cage2-") == ["cage2-fine"]
    assert completed("workflow-rl search --preset ") == [name for name in PRESETS if name not in NO_SEARCH]
    assert completed("workflow-rl network show p") == ["plant"]
    (tmp_path / "runs/mine").mkdir(parents=True)
    (tmp_path / "runs/mine/config.json").touch()
    assert completed("workflow-rl report ", folder=tmp_path) == ["runs/mine"]
    assert completed("workflow-rl evaluate c", folder=tmp_path) == ["champion"]


def test_other_shells_are_told_what_a_value_means() -> None:
    assert "standard\t8 environments, 2048 transitions, minibatches of 64" in completed(
        "workflow-rl train --preset st", "fish"
    )
    assert any('"universal":"one policy' in line for line in completed("workflow-rl train --preset uni", "zsh"))


@pytest.mark.parametrize(("shell", "file"), [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish")])
def test_completion_is_installed_for_each_shell(shell: str, file: str, tmp_path: Path) -> None:
    code = f"from typer._completion_shared import install; install('{shell}', 'workflow-rl', '_WORKFLOW_RL_COMPLETE')"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"HOME": str(tmp_path)})
    assert (tmp_path / file).exists()


def test_dir_lists_the_public_names() -> None:
    assert set(workflow_rl.__all__) <= set(dir(workflow_rl))
    assert all(getattr(workflow_rl, name) is not None for name in dir(workflow_rl))


def test_the_glossary_page_has_the_words_of_the_program() -> None:
    from workflow_rl.report.words import glossary_page

    assert (ROOT / "docs/glossary.md").read_text("utf-8") == glossary_page()
    assert all(text.endswith(".") and len(text) < 260 for text in GLOSSARY.values())


def test_every_link_to_the_glossary_leads_to_a_word() -> None:
    anchors = {term.replace(" ", "-") for term in GLOSSARY}
    linked = [
        anchor
        for path in ROOT.glob("docs/*.md")
        for anchor in re.findall(r"glossary\.md#([\w-]+)", path.read_text("utf-8"))
    ]
    assert len(linked) > 5
    assert set(linked) <= anchors
