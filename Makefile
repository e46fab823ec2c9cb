# Two commands do everything on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RIVAL := .venv-rival
STAN := .venv-stan
LOCK := .venv-lock
COMPILE = $(LOCK)/bin/pip-compile --quiet --upgrade --generate-hashes --unsafe-package pip --strip-extras --no-header \
	--no-annotate --no-emit-options

.PHONY: demo test test-all lint types docs docs-links bench bench-rival lock clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py --out demo

# Tests of one file mostly stay on one core, where they share fits and compiled code.
test: $(STAMP)
	$(MAKE) --no-print-directory -j2 lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: lint types docs
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow or not slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(STAMP)
	$(BIN)/mypy

# The documentation site, in site/: open site/index.html. No network; a link inside that leads nowhere is an error.
docs: $(STAMP) $(VENV)/.docs
	rm -rf docs/api
	$(BIN)/python -m sphinx -c docs -b html -d site/.doctrees -W --keep-going -q . site

# Links to other sites as well, which needs a network.
docs-links: docs
	$(BIN)/python -m sphinx -c docs -b linkcheck -d site/.doctrees -q . site/.links

$(VENV)/.docs: requirements-docs.lock $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	touch $@

# Limits of the machine, every standard, bound and strict up to BENCH_MOST records, and other people's samplers
# where they install: one table, one picture. Ten minutes, half of them Stan's; BENCH_MOST=1e8 takes hours.
BENCH_MOST ?= 1e6
bench: $(STAMP)
	-$(MAKE) --no-print-directory $(STAN)/.installed
	$(BIN)/python -m bench --most $(BENCH_MOST)

$(STAN)/.installed: bench/stan/requirements.txt
	$(PYTHON) -m venv $(STAN)
	$(STAN)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# AIM and MST next to hedgerow. They live in an environment of their own: bench/rival/README.md.
bench-rival: $(STAMP) $(RIVAL)/.installed
	$(BIN)/python -m bench.rival.ours --corrected
	OMP_NUM_THREADS=1 $(RIVAL)/bin/python -m bench.rival.rival
	$(BIN)/python -m bench.rival.table

$(RIVAL)/.installed: bench/rival/requirements.txt
	$(PYTHON) -m venv $(RIVAL)
	$(RIVAL)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Everything is installed as requirements.lock has it, which names the hash of every file that may be
# installed; then hedgerow itself and the studies in place. Its kernels are compiled once, into numba's cache.
$(STAMP): requirements.lock pyproject.toml studies/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hedgerow needs Python 3.11 or newer, and $(PYTHON) is %d.%d. Name another: make PYTHON=python3.11 $(MAKECMDGOALS)" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./studies
	$(BIN)/python -c "from hedgerow.numerics.kernels import renyi, scoring_numba; renyi.compile_all(); scoring_numba.compile_all()"
	touch $@

# Resolve the newest versions pyproject.toml allows, and write them with the hashes of all their files, those
# for other platforms included; what builds the site goes into a file of its own. Names, versions and hashes only:
# where the files come from is pip's to know.
lock:
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1" setuptools
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager hatchling editables -e ".[excel,programs]" --group dev
	$(PYTHON) -m venv $(LOCK)
	$(LOCK)/bin/python -m pip install --quiet "pip-tools>=7.5"
	$(BIN)/python -m pip freeze --all --exclude pip --exclude wheel --exclude-editable > $(LOCK)/requirements.in
	$(COMPILE) $(LOCK)/requirements.in --output-file requirements.lock
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["docs"], sep="\n")' > $(LOCK)/docs.in
	$(COMPILE) $(LOCK)/docs.in --constraint $(LOCK)/requirements.in --output-file requirements-docs.lock

clean:
	rm -rf $(VENV) $(RIVAL) $(STAN) $(LOCK) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache demo site docs/api dist
