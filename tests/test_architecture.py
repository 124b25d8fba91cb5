"""The house rules of CONTRIBUTING.md that a machine can check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import workflow_rl
from tests.conftest import ROOT

PACKAGE = ROOT / "workflow_rl"
FILES = sorted(path for path in PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

# Each folder, and the folders that it may import beside itself and the root. The root's modules import only each other,
# but for the two that hand names on: __init__ and the script of the documents.
BELOW = {
    "engine": "",
    "envs": "engine",
    "fidelity": "envs engine",
    "training": "envs engine",
    "defenders": "training envs engine",
    "search": "training envs engine",
    "report": "fidelity defenders search training envs engine",
    "studies": "defenders search training envs engine",
    "cli": "report studies fidelity defenders search training envs engine",
    "": "",
}
DOORS = ("workflow_rl", "workflow_rl.parallel_train_workflow_rl")
OWN_CODE = "workflow_rl.search.strategies"  # imports users' strategies, as ``python -m`` does
LIBRARIES = {  # folders or modules that may use a library
    "numba": "engine",
    "llvmlite": "engine",
    "gymnasium": "envs",
    "torch": "training defenders search studies cli.train",
    "botorch": "search.gp",
    "gpytorch": "search.gp",
    "scipy": "search studies",
    "safetensors": "runs",
    "stable_baselines3": "envs.sb3_env studies",
    "typer": "cli",
    "rich": "cli",
    "ray": "search.ray_executor",
    "plotly": "report",
    "jinja2": "report",
    "matplotlib": "report.drawing",
    "multiprocessing": "envs studies",
}
TEXTUAL = re.compile(r"^workflow_rl(?:\.[a-z_0-9]+)+")


def module_of(path: Path, root: Path = PACKAGE) -> str:
    """Dotted name of a file."""
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def folder_of(module: str) -> str:
    """The folder of a module; empty for the root."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in BELOW else ""


def imported(path: Path, modules: set[str]) -> set[str]:
    """What a file imports: at its top, late, or named in a string (``python -m``, ``import_module``)."""
    names: set[str] = set()
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}, line {node.lineno}: relative import"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in modules else str(node.module) for name in whole}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = TEXTUAL.match(node.value)
            if found and " " not in node.value:
                name = found[0]
                while name not in modules and "." in name:
                    name = name.rpartition(".")[0]
                names |= {name} - {"workflow_rl"}
    return names


def graph_of(root: Path) -> dict[str, set[str]]:
    """Every module of a package with what it imports of the package and of libraries."""
    files = {module_of(path, root): path for path in root.rglob("*.py")}
    return {module: imported(path, set(files)) for module, path in files.items()}


def complaints(graph: dict[str, set[str]]) -> Iterator[str]:
    """Sentences about imports that the house forbids."""
    own = {module: {name for name in names if name in graph} - {module} for module, names in graph.items()}
    for module, names in own.items():
        if module in DOORS:
            continue
        allowed = {"", folder_of(module), *BELOW[folder_of(module)].split()}
        for name in names:
            if name in DOORS or folder_of(name) not in allowed:
                yield f"{module} must not import {name}"
    try:
        list(TopologicalSorter(own).static_order())
    except CycleError as error:
        yield f"these import each other in a circle: {error.args[1]}"
    for module, names in graph.items():
        for library in {name.split(".")[0] for name in names} & set(LIBRARIES):
            rooms = LIBRARIES[library].split()
            if folder_of(module) not in rooms and module.removeprefix("workflow_rl.") not in rooms:
                yield f"{library} does not belong into {module}"


def test_imports_go_downwards_without_circles_and_libraries_stay_in_their_rooms() -> None:
    assert list(complaints(graph_of(PACKAGE))) == []


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("engine/bits.py", "import workflow_rl.envs.env", "engine.bits must not import workflow_rl.envs.env"),
        ("training/ppo.py", "def late() -> None:\n    import workflow_rl.search.gp", "training.ppo must not import"),
        ("search/gp.py", "NAME = 'workflow_rl.defenders.expert'", "must not import workflow_rl.defenders.expert"),
        ("search/gp.py", "START = ['-m', 'workflow_rl.cli']", "search.gp must not import workflow_rl.cli"),
        ("search/gp.py", "from workflow_rl.defenders.expert import advise", "search.gp must not import"),
        ("config.py", "from workflow_rl.runs import Run", "in a circle"),
        ("training/workflow.py", "import workflow_rl.training.trainer", "in a circle"),
        ("errors.py", "import workflow_rl", "errors must not import workflow_rl"),
        ("report/compare.py", "import typer", "typer does not belong into workflow_rl.report.compare"),
    ],
)  # fmt: skip
def test_a_planted_wrong_import_is_found(file: str, line: str, complaint: str, tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text((PACKAGE / file).read_text("utf-8") + f"\n{line}\n", "utf-8")
    graph = graph_of(PACKAGE)
    graph[module_of(PACKAGE / file)] = imported(planted, set(graph))
    assert any(complaint in sentence for sentence in complaints(graph))


def test_no_chain_of_imports_is_longer_than_fifteen() -> None:
    graph = graph_of(PACKAGE)
    depth: dict[str, int] = {}
    for module in TopologicalSorter(
        {m: {n for n in names if n in graph} - {m} for m, names in graph.items()}
    ).static_order():
        depth[module] = 1 + max((depth[name] for name in graph[module] if name in graph and name != module), default=0)
    assert max(depth.values()) <= 15, max(depth.items(), key=lambda item: item[1])


def test_every_folder_can_be_seen_at_a_glance() -> None:
    for folder in (PACKAGE, *(PACKAGE / name for name in BELOW if name)):
        entries = [path.name for path in folder.iterdir() if path.name != "__pycache__"]
        assert len(entries) <= 16, f"{folder.name} has {len(entries)} entries"
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"} == set(BELOW) - {""}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= 350
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= 50, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_command_line_prints_and_nobody_uses_a_global_generator_or_edits_the_path(path: Path) -> None:
    module = module_of(path)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called != "print" or folder_of(module) == "cli", f"line {node.lineno} prints"
            assert called not in ("np.random.seed", "np.random.rand", "np.random.randint"), f"line {node.lineno}"
        if isinstance(node, ast.Attribute):
            assert ast.unparse(node) != "sys.path" or module in (*DOORS, OWN_CODE), (
                f"line {node.lineno} touches sys.path"
            )


def test_functions_take_few_arguments_and_values_instead_of_many() -> None:
    """But for commands, whose options are arguments, and the engine's hot loop, where a tuple of arrays costs time."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and folder_of(module_of(path)) != "cli" and node.name != "step_envs":
                names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
                assert len(set(names) - {"self", "cls"}) <= 8, f"{path.name}: {node.name} has {len(names)} arguments"


def test_data_has_types_and_dictionaries_only_enter_and_leave() -> None:
    found = {path: path.read_text("utf-8").count("dict[str, Any]") for path in FILES}
    assert sum(found.values()) < 60, sorted(((n, path.name) for path, n in found.items() if n > 1), reverse=True)


def test_only_commands_load_a_network() -> None:
    """Everybody else is given one; public constructors have the path of the bundled one as their default."""
    for path in FILES:
        module = module_of(path).removeprefix("workflow_rl.")
        if folder_of(module_of(path)) == "cli" or module == "engine.network_file":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called != "load_network", f"{module} loads a network"


def test_no_number_of_the_challenge_is_repeated_in_the_engine() -> None:
    """Ports, values, host counts and probabilities come from engine/networks/cage2.toml."""
    forbidden = {13, 52, 145, 22, 80, 443, 139, 3389, 3390, 21, 25, 4444, 0.75, 0.95}
    for path in (PACKAGE / "engine").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and not isinstance(node.value, bool):
                assert node.value not in forbidden, f"{path.name}, line {node.lineno}: {node.value}"


def test_the_map_of_the_house_has_every_folder_and_every_file_of_the_root() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for path in PACKAGE.iterdir():
        if path.name not in ("__pycache__", "__init__.py", "py.typed"):
            name = f"`{path.name}/`" if path.is_dir() else f"`{path.name}`"
            assert name in text, f"{name} is missing from the map in CONTRIBUTING.md"


def test_every_file_that_the_contributors_guide_names_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`([\w/]+\.(?:py|toml|html))`", text)
    assert len(named) > 30
    for name in named:
        found = [folder / name for folder in (ROOT, PACKAGE, *(PACKAGE / below for below in BELOW))]
        assert any(path.exists() for path in found), f"{name} is named in CONTRIBUTING.md and does not exist"


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
