# The project from a clean clone: every target installs what it needs, and installs nothing twice.
#   make demo   the main job on real data        make test    the whole suite, lint first
#   make lint   ruff, mypy, import-linter         make bench   figures beside the peers
#   make mutants   which small changes of the code no test notices
#   make interop   tests with delta-spark and other engines, which it installs for itself
# PYTHON=python3.12 make test   uses another interpreter (3.10 or newer) for new environments.

PYTHON ?= python3
VENV := .venv
VENV40 := .venv-spark40
RUN := $(VENV)/bin

.PHONY: demo test test-fast test-spark40 matrix matrix-python interop torture histories fuzz lint format bench mutants wheel clean install install-spark40 readers stores system
.DEFAULT_GOAL := help

.PHONY: help
help:
	@sed -n '1,6s/^# \{0,1\}//p' Makefile

system:
	@scripts/install.sh system

install: system
	@PYTHON=$(PYTHON) scripts/install.sh venv $(VENV) requirements/dev.txt

install-spark40: system
	@PYTHON=$(PYTHON) scripts/install.sh venv $(VENV40) requirements/spark40.txt

# Other readers of Delta tables get an environment of their own.
readers: system
	@PYTHON=$(PYTHON) scripts/install.sh readers

# Servers of object stores, too.
stores: system
	@PYTHON=$(PYTHON) scripts/install.sh stores

demo: install
	@$(RUN)/python scripts/demo.py $(ARGS)

lint: install
	@scripts/lint.sh $(RUN)

format: install
	$(RUN)/ruff check --fix --quiet
	$(RUN)/ruff format --quiet

# All phases; a summary of them and the totals stand at the end.
test:
	@$(MAKE) --no-print-directory -j4 install install-spark40 readers stores
	@$(RUN)/python scripts/test.py $(ARGS)

# Lint and the tests without a JVM, one variant of each, but for a few long ones: the feedback of a minute.
test-fast: install
	@$(RUN)/python scripts/test.py lint fast $(ARGS)

test-spark40: install install-spark40
	@$(RUN)/python scripts/test.py spark40 $(ARGS)

# By other versions of Spark; no part of the suite: make matrix VERSIONS="4.1 4.2" ARGS=tests/api/sql
VERSIONS ?= 4.1 4.2
matrix: system
	@PYTHON=$(PYTHON) scripts/matrix.sh "$(VERSIONS)" $(ARGS)

# The tests without a JVM by other versions of Python, by the oldest libraries that are allowed, and by pandas 3.
PYTHONS ?= 3.10 3.12 3.13 3.14 oldest pandas3
matrix-python: system
	@scripts/pythons.sh "$(PYTHONS)" $(ARGS)

# The reference engines get an environment of their own, by ../shared/reference/setup where that exists.
interop: install readers
	@scripts/install.sh reference
	@ALLUVIUM_RECORDED=check $(RUN)/python scripts/test.py interop

# Random sequences of all verbs by random engines for MINUTES; goes on where the last call ended (docs/trust.md).
MINUTES ?= 5
ENGINES ?= python
FORMAT ?= delta
torture: install
	@$(RUN)/python scripts/torture.py --minutes $(MINUTES) --engines $(ENGINES) --format $(FORMAT) $(ARGS)

# Writers of several engines on one table, killed at random, for MINUTES: is it a serial order? (docs/trust.md)
WRITERS ?= python:6,deltalake:2
histories: install readers
	@$(RUN)/python scripts/histories.py --minutes $(MINUTES) --writers $(WRITERS) $(ARGS)

# Inputs by coverage (Atheris) for all that reads bytes from outside, for MINUTES; goes on where the last call ended.
fuzz: install
	@$(RUN)/python -c "import atheris" 2>/dev/null || $(RUN)/python -m pip install --quiet "atheris>=3.0"
	@$(RUN)/python scripts/fuzz.py run --minutes $(MINUTES) $(ARGS)

wheel: install
	@scripts/wheel_check.sh $(RUN)/python

bench: install
	@$(RUN)/python benchmarks/run.py $(ARGS)

# Small changes of the code, one at a time: which of them no test notices (docs/mutants.md).
mutants: install
	@$(RUN)/python scripts/mutants.py --map $(VENV)/callers.jsonl $(ARGS)

clean:
	rm -rf $(VENV) $(VENV40) .venv-spark41 .venv-spark42 .venv-py3* .venv-oldest .venv-pandas3 .bench .demo .torture .fuzz dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache spark-warehouse metastore_db derby.log
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +
