"""A user's own search strategy: found, checked, used, resumed; its faults are sentences."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.helpers import assert_refused, run
from workflow_rl.config import SearchConfig, check_search_config
from workflow_rl.errors import UserError
from workflow_rl.presets import make_search_config
from workflow_rl.runs import read_search_config
from workflow_rl.search.run_search import ParallelWorkflowRLTrainer
from workflow_rl.search.strategies import make_search

ITEMS = ("a", "b", "c")
SMALL = {
    "n_workflows": 2, "replicates": 1, "n_envs": 10, "max_episodes": 5, "min_episodes": 1, "warm_updates": 1,
    "n_eval_episodes": 10, "finish": False,
}  # fmt: skip
OPTIONS = ["--no-finish" if value is False else f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
HEAD = "from workflow_rl import OrderSearch, Suggestion\n\n\nclass Mine(OrderSearch):\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory; modules and places of an import are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [place for place in __import__("sys").path if place])
    return tmp_path


def example() -> str:
    """The strategy of docs/search.md."""
    text = (ROOT / "docs" / "search.md").read_text("utf-8")
    found: list[str] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return next(code for code in found if "OrderSearch" in code)


def test_the_example_of_the_documents_is_ten_lines_and_swaps_neighbours_of_the_best(here: Path) -> None:
    code = example()
    assert len(code[code.index("class") :].splitlines()) <= 10
    (here / "swapping.py").write_text(code, "utf-8")
    search = make_search("swapping:Neighbour", ITEMS, 3)
    assert search.suggest(1)[0].order in {("b", "a", "c"), ("a", "c", "b")}
    search.observe(("c", "b", "a"), 1.0, 0.1)
    search.observe(("a", "b", "c"), 0.0, 0.1)
    found = search.suggest(2)
    assert {one.order for one in found} <= {("b", "c", "a"), ("c", "a", "b")}
    assert found[0].reason.startswith("swap at place")
    assert search.suggest(2) == found


@pytest.mark.long
def test_a_search_with_an_own_strategy_is_run_from_its_directory_and_resumed_only_where_the_class_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "resumable.py").write_text(example(), "utf-8")
    options = ["--strategy=resumable:Neighbour", *OPTIONS, f"--run-dir={tmp_path / 'run'}", "--no-report"]
    done = run("search", *options, cwd=tmp_path, PYTHONSAFEPATH="1", PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    assert "swap at place" in (tmp_path / "run" / "suggestions.csv").read_text("utf-8")
    assert read_search_config(tmp_path / "run").strategy == "resumable:Neighbour"
    before = (tmp_path / "run" / "ranking.csv").read_text("utf-8")
    (tmp_path / "run" / "result.json").unlink()
    elsewhere = run("search", "--resume", tmp_path / "run", cwd=ROOT)
    assert_refused(elsewhere, "there is no module 'resumable'")
    again = run("search", "--resume", tmp_path / "run", "--no-report", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "run" / "ranking.csv").read_text("utf-8") == before


@pytest.mark.parametrize("name", ["", "mine", "mine:", ":Mine", "mine:Mine:Other", "a b:C", "mine.py:Mine!", "../x:Y"])
def test_a_name_that_is_none_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(UserError, match=r"unknown strategy .*gp-ucb, random.* your own as package\.module:Class"):
        check_search_config(SearchConfig(strategy=name))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("    def propose(self, pending):\n        return 1 / 0\n", "failed .*wrong0.py, line 6.: ZeroDivisionError"),
        ("    def propose(self, pending):\n        return 'abc'\n", "must suggest an order of a, b, c, not 'abc'"),
        ("    def propose(self, pending):\n        return Suggestion(('a', 'a', 'b'))\n", "an order of a, b, c, not"),
        ("    def propose(self, pending):\n        return Suggestion(3)\n", "must suggest an order of a, b, c, not 3"),
        ("    pass\n", "failed .*abstract"),
        ("    def __init__(self): pass\n    propose = None\n", "failed .*TypeError"),
        ("    propose = None\nraise SystemExit(3)\n", "cannot be imported .*SystemExit: 3"),
        ("    propose = None\nimport not_there\n", "cannot be imported .*No module named 'not_there'"),
        ("    propose = None\nMine = 3\n", "must be a subclass of workflow_rl.OrderSearch, not 3"),
        ("    propose = None\ndel Mine\n", "must be a subclass of workflow_rl.OrderSearch, not None"),
        ("    def propose(self, pending):\n", "cannot be imported .*IndentationError"),
    ],
)  # fmt: skip
def test_a_faulty_strategy_is_one_sentence(body: str, sentence: str, here: Path, request: Any) -> None:
    name = f"wrong{request.node.callspec.indices['body']}"
    (here / f"{name}.py").write_text(HEAD + body, "utf-8")
    with pytest.raises(UserError, match=sentence) as error:
        make_search(f"{name}:Mine", ITEMS).suggest(1)
    assert "\n" not in str(error.value)


def test_a_strategy_that_fails_when_told_an_outcome_is_one_sentence(here: Path) -> None:
    body = "    propose = None\n    def observe(self, order, value, error):\n        raise ValueError('two\\nlines')\n"
    (here / "deaf.py").write_text(HEAD + body, "utf-8")
    with pytest.raises(UserError, match=r"deaf:Mine failed .*deaf.py, line 7\): ValueError: two lines\.$"):
        make_search("deaf:Mine", ITEMS).observe(ITEMS, 1.0, 0.1)


def test_predictions_of_an_own_strategy_are_kept_if_they_are_numbers(here: Path) -> None:
    body = "    def propose(self, pending):\n        return Suggestion(list(self.items), 5, *self.guess)\n"
    (here / "guessing.py").write_text(HEAD + "    guess = (1, 2, 3)\n" + body, "utf-8")
    (here / "unsure.py").write_text(HEAD + "    guess = (1, float('nan'), 3)\n" + body, "utf-8")
    (found,) = make_search("guessing:Mine", ITEMS).suggest(1)
    assert (found.order, found.reason, found.mean, found.sigma, found.bound) == (ITEMS, "5", 1.0, 2.0, 3.0)
    (found,) = make_search("unsure:Mine", ITEMS).suggest(1)
    assert found.mean is found.sigma is found.bound is None


@pytest.mark.parametrize("module", ["not_there", "os.not_there", "not_there.at_all"])
def test_a_strategy_that_is_nowhere_is_refused_before_a_run_is_made(module: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"there is no module '{module}'"):
        ParallelWorkflowRLTrainer(strategy=f"{module}:Mine", run_dir=tmp_path / "run")
    assert make_search_config(strategy=f"{module}:Mine").strategy == f"{module}:Mine"
    assert not (tmp_path / "run").exists()
