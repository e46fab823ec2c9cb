# Two commands do everything on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RIVAL := .venv-rival

.PHONY: demo test test-all lint types bench bench-rival lock clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py --out demo

# Tests of one file mostly stay on one core, where they share fits and compiled code.
test: lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow or not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(STAMP)
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m bench

# AIM and MST next to hedgerow. They live in an environment of their own: bench/rival/README.md.
bench-rival: $(STAMP) $(RIVAL)/.installed
	$(BIN)/python -m bench.rival.ours --corrected
	OMP_NUM_THREADS=1 $(RIVAL)/bin/python -m bench.rival.rival
	$(BIN)/python -m bench.rival.table

$(RIVAL)/.installed: bench/rival/requirements.txt
	$(PYTHON) -m venv $(RIVAL)
	$(RIVAL)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Everything is installed at the versions of requirements.lock, then hedgerow itself and the studies in place.
$(STAMP): requirements.lock pyproject.toml studies/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./studies
	touch $@

# Resolve the newest versions pyproject.toml allows and write their names and versions.
lock:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager hatchling editables -e ".[programs]" --group dev
	$(BIN)/python -m pip freeze --exclude-editable > requirements.lock

clean:
	rm -rf $(VENV) $(RIVAL) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache demo
