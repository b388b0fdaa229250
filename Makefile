# Two commands matter: `make demo` and `make test`. Both set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

DEMO := $(VENV)/.demo
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
TRIAL := $(or $(TRIAL),$(shell mktemp -u -d -t feasible-package-XXXXXX))

# Sources are compiled to bytecode once, not by every process that imports them, even where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test suite test-slow lint format package docs bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --no-compile --editable '.[dev]'  # what is imported is compiled then
	touch $@

# A demonstration needs little of what development needs, and is set up sooner.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --no-compile --editable '.[mujoco]'
	touch $@

demo: $(if $(wildcard $(READY)),$(READY),$(DEMO))
	$(BIN)/feasible demo --out demo

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

test: lint
	$(MAKE) suite

suite: $(READY)
	$(BIN)/python -m pytest -n auto

# The wheel as a user gets it: built from the sdist, installed without extras into a fresh environment elsewhere, tried.
package: $(READY)
	$(BIN)/python -m build --no-isolation --outdir $(TRIAL)/dist .
	$(PYTHON) -m venv $(TRIAL)/environment
	$(TRIAL)/environment/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt $(TRIAL)/dist/*.whl
	cp tests/package.py $(TRIAL)
	cd $(TRIAL) && env -u PYTHONPATH environment/bin/python package.py
	rm -rf $(TRIAL)

# PyTorch, Stable-Baselines3 and cvxpylayers are for these tests only: why is said in tests/packages.py.
test-slow: $(READY)
	$(INSTALL) --editable '.[sb3,torch]' cvxpylayers
	$(BIN)/python -m pytest -n auto -m slow

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/zensical build --strict --clean

bench: $(READY)
	$(INSTALL) --editable '.[bench]'
	$(BIN)/python -m benchmarks.projection

clean:
	rm -rf $(VENV) demo site .pytest_cache .ruff_cache
