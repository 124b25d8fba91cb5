# On a fresh machine with python3 (>= 3.11, with venv) and make:
#   make search     sets up .venv and runs the main job
#   make test       sets up .venv with the development tools; checks, and all tests that take minutes together
#   make test-all   the same and the long tests: live games, kills, clusters, studies, the documents' commands
#   make wheel      builds the package into dist/, to be installed elsewhere: pip install dist/*.whl

PYTHON ?= python3
BIN := .venv/bin
TESTS := -m 'not long'

.PHONY: search test test-all pytest check wheel clean

search: .venv/installed
	$(BIN)/workflow-rl search

test: .venv/installed-dev
	$(MAKE) --jobs=2 check pytest TESTS="$(TESTS)"  # side by side: mypy has one thread and keeps one core busy for a minute

test-all: TESTS :=
test-all: test

pytest: .venv/installed-dev
	$(BIN)/python -m tests.compile_first
	$(BIN)/python -m pytest -n 2 $(TESTS)

check: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

wheel: .venv/installed
	rm -rf build dist  # setuptools would put files that no longer exist into the wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	ls dist

.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "workflow_rl needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/installed-dev: .venv/installed pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
