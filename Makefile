# Two commands matter: `make demo` and `make test`. Both set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test test-slow lint format docs bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/feasible demo --out demo

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

test: lint
	$(BIN)/python -m pytest -n auto

# PyTorch, Stable-Baselines3 and cvxpylayers are for these tests only: why is said in tests/packages.py.
test-slow: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[sb3,torch]' cvxpylayers
	$(BIN)/python -m pytest -n auto -m slow

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/mkdocs build --strict

bench: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks.projection

clean:
	rm -rf $(VENV) demo site .pytest_cache .ruff_cache
