"""The house rules of CONTRIBUTING.md that a machine can check."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import workflow_rl
from tests.conftest import ROOT

PACKAGE = ROOT / "workflow_rl"
FILES = sorted(path for path in PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

# Who may import whom inside the package, downwards only.
ALLOWED = {
    "parallel_train_workflow_rl": {"cli", "run_search"},
    "cli": {
        "playbook_command",
        "", "backends", "bench_command", "command_options", "config", "errors", "evaluate_command", "export",
        "printing", "replay_command", "report_command", "run_store", "runs_command", "scenario", "search_command",
        "study_command",
        "search_view", "tensorboard_log", "train_command", "train_task", "trainer", "watch_command", "watch_view",
    },
    "study_command": {"command_options", "config", "errors", "printing", "scenario", "studies"},
    "results": {"", "bench", "errors", "run_store"},
    "studies": {
        "takeover",
        "collect", "compliance", "config", "engine", "env", "errors", "evaluate_command", "evaluation", "memory",
        "parent_watch", "policy_evaluation", "results", "run_store", "sb3_env", "scenario", "scenario_file", "studies",
        "trainer", "views", "workflow",
    },
    "search_command": {
        "cluster", "config", "errors", "printing", "report_command", "run_search", "search_view",
    },
    "run_search": {
        "config", "errors", "executor", "finalists", "run_store", "search_evaluation", "worker_pool",
        "workflow_search",
    },
    "cluster": {"config", "errors", "executor", "remote_training", "run_store"},
    "remote_training": {
        "config", "engine", "errors", "executor", "policy_file", "run_store", "worker",
    },
    "executor": {"config"},
    "bench_command": {
        "backends", "bench", "bench_cyborg", "bench_search", "bench_train", "command_options", "config", "printing",
        "scenario",
    },
    "command_options": set(),
    "report_command": {
        "compliance", "errors", "policy_evaluation", "policy_file", "report_compare", "report_data", "report_paper",
        "report_sections", "run_store", "scenario", "search_view", "story",
    },
    "report_compare": {"takeover", "report_data", "report_figures", "report_page", "runs_command"},
    "report_arrows": {"report_page"},
    "report_sections": {
        "report_arrows",
        "takeover", "printing", "report_figures", "report_page", "scenario", "scenario_file", "search_view", "story",
    },
    "report_paper": {"errors", "report_figures", "run_store"},
    "report_page": {"scenario_file", "story"},
    "report_figures": {"compliance"},
    "report_data": {
        "compliance", "config", "errors", "finalists", "ranking", "report_figures", "run_store", "runs_command",
        "workflow",
    },
    "watch_command": {
        "takeover",
        "errors", "evaluate_command", "evaluation", "policy_file", "report_command", "report_data", "scenario",
        "scenario_file", "story", "traces",
    },
    "watch_view": {"compliance", "scenario", "scenario_file", "story"},
    "story": {
        "compliance", "engine", "env", "errors", "evaluation", "game", "replay", "scenario", "scenario_file", "traces",
        "views", "workflow",
    },
    "printing": {"limits", "compliance"},
    "replay_command": {
        "takeover",
        "config", "cyborg_sim", "evaluate_command", "lockstep", "printing", "replay", "scenario",
        "scenario_file", "traces",
    },
    "evaluate_command": {
        "takeover",
        "backends", "cyborg_sim", "errors", "evaluation", "policy_evaluation", "policy_file", "scenario",
        "scenario_file",
    },
    "export": {
        "errors", "evaluate_command", "evaluation", "policy_evaluation", "policy_file", "run_store", "takeover",
        "workflow",
    },
    "exported_agent": set(),  # goes out into the world alone
    "bench_cyborg": {"bench", "config", "cyborg_env", "cyborg_sim", "errors", "game", "trainer"},
    "lockstep": {
        "takeover",
        "cyborg_env", "cyborg_sim", "errors", "evaluation", "game", "replay", "scenario", "scenario_file",
        "traces", "views",
    },
    "train_command": {"printing", "compliance", "config"},
    "runs_command": {"takeover", "errors", "run_store"},
    "search_view": {"takeover", "compliance", "printing"},
    "bench_search": {"bench", "config", "errors", "order_gp", "search", "workflow", "workflow_table"},
    "workflow_table": {"compliance", "errors", "order_gp", "ranking", "run_store", "search"},
    "workflow_search": {
        "compliance", "config", "errors", "executor", "finalists", "order_gp", "ranking", "run_store", "search",
        "search_evaluation", "search_result", "trainer", "workflow",
    },
    "search_evaluation": {"collect", "compliance", "config", "ranking", "search", "train_task", "workflow"},
    "search_result": {"backends", "config", "finalists", "policy_evaluation", "ranking", "run_store", "trainer"},
    "finalists": {"collect", "compliance", "config", "errors", "order_gp", "ranking", "takeover", "workflow"},
    "ranking": {"compliance", "order_gp"},
    "search": {"config", "errors", "order_gp"},
    "order_gp": set(),
    "worker_pool": {"config", "errors", "executor"},
    "worker": {"config", "errors", "parent_watch", "run_store", "trainer"},
    "parent_watch": set(),
    "bench_train": {"bench", "collect", "config", "env", "errors", "rollout", "sb3_env", "trainer"},
    "trainer": {
        "compliance", "limits",
        "backends", "collect", "config", "errors", "improve", "policy", "policy_evaluation", "policy_file",
        "ppo", "run_store", "teacher", "views", "workflow",
    },
    "policy_evaluation": {
        "limits",
        "backends", "collect", "compliance", "config", "errors", "evaluation", "fresh_games", "game", "policy_file",
        "ppo", "views", "workflow",
    },
    "fresh_games": {
        "takeover",
        "backends", "collect", "compliance", "evaluation", "ppo", "scenario", "workflow",
    },
    "tensorboard_log": set(),
    "policy_file": {"guard", "errors", "policy", "run_store", "scenario_file", "views"},
    "run_store": {"config", "errors", ""},
    "collect": {
        "guard", "takeover",
        "backends", "buffer", "compliance", "config", "game", "memory", "ppo", "rollout", "scenario",
        "scenario_file", "teacher", "views", "workflow",
    },
    "ppo": {"scenario_file", "guard", "buffer", "config", "policy", "views"},
    "buffer": {"compliance", "engine", "rollout"},
    "policy": {"guard", "rollout", "views"},
    "rollout": {"guard", "compliance", "engine", "memory", "teacher"},
    "views": {"config", "engine", "errors", "game", "memory", "scenario", "scenario_file"},
    "train_task": {
        "takeover", "backends", "collect", "config", "errors", "policy_file", "scenario", "scenario_file", "views",
    },
    "improve": {"config", "engine", "errors", "memory", "run_store", "scenario", "scenario_file", "teacher"},
    "teacher": {"engine", "expert", "memory"},
    "expert": {"engine", "memory"},
    "guard": {"compliance", "engine", "game", "scenario", "views"},
    "limits": set(),
    "playbook_command": {"command_options", "evaluate_command", "playbook", "printing", "scenario"},
    "playbook": {"compliance", "env", "evaluation", "game", "scenario", "views", "workflow"},
    "takeover": {"errors"},
    "memory": {"engine"},
    "compliance": {"engine", "scenario"},
    "workflow": {"errors", "scenario_file"},
    "config": {"takeover", "errors"},
    "sb3_env": set(),
    "bench": {"cyborg_sim", "engine", "env", "errors", "scenario_file"},
    "evaluation": {
        "takeover", "backends", "config", "engine", "errors", "expert", "game", "scenario", "scenario_file", "views",
    },
    "backends": {"config", "cyborg_env", "cyborg_sim", "env", "errors", "scenario"},
    "cyborg_env": {
        "takeover",
        "config", "cyborg_processes", "cyborg_recorder", "cyborg_sim", "engine", "errors", "game", "scenario",
        "scenario_file",
    },
    "cyborg_processes": {"errors", "parent_watch"},
    "cyborg_recorder": {"cyborg_sim", "scenario", "traces"},
    "cyborg_sim": {"cyborg_scenario", "errors", "scenario", "scenario_file"},
    "cyborg_scenario": {"scenario"},
    "replay": {"takeover", "engine", "meander_check", "scenario", "traces"},
    "meander_check": {"scenario", "traces"},
    "traces": {"errors", "scenario"},
    "env": {"game", "scenario", "scenario_file"},
    "game": {"takeover", "engine", "errors", "scenario", "scenario_file"},
    "engine": {"engine", "scenario"},
    "scenario_file": {"errors", "scenario"},
    "scenario": {"errors"},
    "registration": set(),
    "errors": set(),
    "": {
        "backends", "buffer", "config", "cyborg_env", "env", "errors", "policy", "policy_file", "ppo", "registration",
        "scenario_file", "search", "trainer", "workflow", "run_search",
    },
}  # fmt: skip
# Which room may hold which library.
LIBRARIES = {
    "numba": {"engine"},
    "llvmlite": {"engine"},
    "gymnasium": {"cyborg_env", "cyborg_processes", "cyborg_sim", "env", "registration", "views"},
    "torch": {
        "workflow_search",
        "policy",
        "policy_file",
        "ppo",
        "train_task",
        "trainer",
        "bench_cyborg",
        "bench_train",
        "tensorboard_log",
        "order_gp",
        "search",
        "bench_search",
        "studies",
    },
    "botorch": {"order_gp"},
    "gpytorch": {"order_gp"},
    "scipy": {"finalists", "ranking"},
    "safetensors": {"run_store"},
    "stable_baselines3": {"sb3_env", "bench_train", "studies"},
    "typer": {"playbook_command", "bench_command", "cli", "command_options", "study_command", "train_command"},
    "rich": {"cli", "printing", "search_command", "search_view", "watch_view"},
    "ray": {"cluster"},
    "plotly": {"report_page"},
    "matplotlib": {"report_paper"},
    "multiprocessing": {"bench_search", "cyborg_processes", "studies"},
}


def room(path: Path) -> str:
    """The part of the package that a file belongs to: its module, or ``engine``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path: Path) -> None:
    for name in imported(path):
        if name.split(".")[0] == "workflow_rl":
            target = name.split(".")[1] if "." in name else ""
            assert target in ALLOWED[room(path)], f"{room(path) or 'the package'} must not import {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_each_library_stays_in_its_room(path: Path) -> None:
    for name in imported(path):
        library = name.split(".")[0]
        assert room(path) in LIBRARIES.get(library, {room(path)}), f"{library} does not belong into {room(path)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= 60, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_command_line_prints_and_nobody_uses_a_global_generator_or_edits_the_path(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            printing = ("cli", "printing", "search_view")
            assert called != "print" or room(path) in printing, f"line {node.lineno} prints"
            assert called not in ("np.random.seed", "np.random.rand", "np.random.randint"), f"line {node.lineno}"
        if isinstance(node, ast.Attribute):
            allowed = room(path) == "parallel_train_workflow_rl"
            assert ast.unparse(node) != "sys.path" or allowed, f"line {node.lineno} touches sys.path"


def test_no_number_of_the_challenge_is_repeated_in_the_engine() -> None:
    """Ports, values, host counts and probabilities come from data/cage2.toml."""
    forbidden = {13, 52, 145, 22, 80, 443, 139, 3389, 3390, 21, 25, 4444, 0.75, 0.95}
    for path in (PACKAGE / "engine").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and not isinstance(node.value, bool):
                assert node.value not in forbidden, f"{path.name}, line {node.lineno}: {node.value}"


def test_the_map_of_the_house_names_every_room() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for path in FILES:
        if room(path) not in ("", "engine") and path.name != "__init__.py":
            assert f"`{path.name}`" in text, f"{path.name} is missing from the map in CONTRIBUTING.md"


def test_every_public_name_is_there() -> None:
    for name in workflow_rl.__all__:
        assert getattr(workflow_rl, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = workflow_rl.nothing


def test_every_test_is_named_as_a_sentence_and_asserts_something() -> None:
    for path in TESTS:
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                source = ast.get_source_segment(text, node) or ""
                assert node.name.count("_") >= 3, f"{path.name}: {node.name}"
                assert any(word in source for word in ("assert", "raises", "check_env")), f"{path.name}: {node.name}"
