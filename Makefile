# Needs Python 3.11+ and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
OLDEST := .venv-oldest-sklearn
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
# One worker per core, with the tests of each external server on one of them (tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8
# Write .pyc files even where the environment forbids it: without them, each worker spends 7 s more on collecting tests.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-oldest-sklearn simulations lint paper bench bench-peers clean

demo: $(VENV)/.core  ## set everything up, judge three forecasters, and write the report into truthcal-demo/
	$(BIN)/truthcal demo

test: $(VENV)/.dev  ## set everything up and run all tests but the simulations
	$(PYTEST) -m "not simulation" --hypothesis-profile=fast $(PYTEST_ARGS)

test-oldest-sklearn: $(OLDEST)/.installed  ## tests of truthcal.sklearn with the oldest supported scikit-learn
	$(OLDEST)/bin/python -m pytest tests/integrations/test_sklearn_*.py src/truthcal/sklearn -m "not simulation" $(PYTEST_ARGS)

simulations: $(VENV)/.dev  ## size of tests and coverage of intervals; TRUTHCAL_SIMULATIONS=2000 for more repeats than 300
	$(PYTEST) -m simulation $(PYTEST_ARGS)

lint: $(VENV)/.dev  ## style, complexity, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/make_tables.py --check

paper: $(VENV)/.dev  ## recompute every numbered item of the paper, and write docs/theory/paper.md and its figures
	$(BIN)/python docs/make_paper.py

bench: $(VENV)/.dev  ## measure, and write docs/benchmarks/*.md
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/linear_time.py
	$(BIN)/python benchmarks/threads.py
	$(BIN)/python benchmarks/measures.py
	$(BIN)/python benchmarks/inference.py
	$(BIN)/python benchmarks/power.py
	$(BIN)/python benchmarks/intervals.py
	$(BIN)/python benchmarks/truthfulness.py
	$(BIN)/python benchmarks/best_response.py
	$(BIN)/python benchmarks/segments.py
	$(BIN)/python benchmarks/change.py
	$(BIN)/python benchmarks/multiclass.py
	$(BIN)/python benchmarks/recalibration.py
	$(BIN)/python benchmarks/bands.py
	$(BIN)/python benchmarks/sklearn_models.py
	$(BIN)/python benchmarks/cli.py

bench-peers: $(PEERS)/.installed  ## compare with other packages, and write docs/benchmarks/peers.md, goals.md, monitor.md and training.md; PEERS_ARGS=--quick to try
	$(PEERS)/bin/python benchmarks/peers.py $(PEERS_ARGS)
	$(PEERS)/bin/python benchmarks/goals.py
	$(PEERS)/bin/python benchmarks/monitor.py
	$(PEERS)/bin/python benchmarks/train_with_atb.py

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "truthcal needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml
	$(PIP) --editable '.[report]'
	@touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.core

# torch is pinned to a version that installs as a CPU build. Dependency groups need a newer pip than Python 3.11 brings.
$(PEERS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0' --group bench-peers --editable '.[report]'
	@touch $@

# Newer versions of scipy deprecate what scikit-learn 1.5 uses, and the tests turn warnings into errors.
$(OLDEST)/.installed: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check 'scikit-learn==1.5.*' 'scipy==1.14.*' 'numpy==2.0.*' \
	  'pandas<3' hypothesis pytest pytest-xdist --editable '.[plot]'
	@touch $@

clean:
	find src tests -name __pycache__ -prune -exec rm -rf {} +
	rm -rf truthcal-demo $(VENV) $(PEERS) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks .coverage
