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

# The rooms of the house, and which rooms each may look into beside its own and the root; downwards only.
ROOMS = {
    "root": "config errors presets run_store",
    "engine": "engine scenario scenario_file",
    "envs": """backends blue cyborg_env cyborg_processes cyborg_scenario cyborg_sim env game memory parent_watch
        registration sb3_env takeover views""",
    "fidelity": "cyborg_recorder lockstep meander_check replay traces",
    "training": """actor buffer collect compliance guard keys limits policy policy_evaluation policy_file ppo
        rollout tensorboard_log train_task trainer workflow""",
    "defenders": "evaluate_command evaluation expert export exported_agent imitation improve playbook teacher",
    "search": """cluster executor finalists order_gp ranking remote_training run_search search search_evaluation
        search_result worker worker_pool workflow_search""",
    "report": """answer report_arrows report_command report_compare report_data report_figures report_page report_paper
        report_sections runs_command story""",
    "studies": "bench bench_cyborg bench_search bench_train results studies workflow_table",
    "cli": """bench_command cli command_options playbook_command printing replay_command search_command search_view
        study_command train_command watch_command watch_view""",
    "package": "parallel_train_workflow_rl",
}
BELOW = {
    "root": "", "engine": "", "envs": "engine", "fidelity": "engine envs", "training": "engine envs",
    "defenders": "engine envs training", "search": "engine envs training",
    "report": "engine envs fidelity training defenders search", "studies": "engine envs training defenders search",
    "cli": "engine envs fidelity training defenders search report studies package",
    "package": "engine envs training search cli",
}  # fmt: skip
HOME = {module: name for name, modules in ROOMS.items() for module in modules.split()} | {"": "package"}
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
    """Modules that a file imports, also late ones."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def own_imports(path: Path) -> set[str]:
    """Modules of the package that a file imports; the package itself, for its version, is the empty name."""
    own = {name for name in imported(path) if name.split(".")[0] == "workflow_rl"}
    return {name.split(".")[1] if "." in name else "" for name in own} - {room(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path: Path) -> None:
    own = room(path)
    allowed = {HOME[own], "root", *BELOW[HOME[own]].split()}
    for target in own_imports(path):
        if target:
            assert HOME[target] in allowed, f"{own} ({HOME[own]}) must not import {target} ({HOME[target]})"


def test_no_import_leads_back_to_where_it_came_from() -> None:
    needs = {room(path): set[str]() for path in FILES if room(path)}
    for path in FILES:
        if room(path):
            needs[room(path)] |= own_imports(path) - {""}
    while needs:
        free = {name for name, others in needs.items() if not others & needs.keys()}
        assert free, f"these import each other in a circle: {sorted(needs)}"
        needs = {name: others for name, others in needs.items() if name not in free}


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
