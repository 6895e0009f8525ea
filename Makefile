# Five commands, each of which first prepares .venv if it is missing or out of date. `make` alone lists them.
#
#   PYTHON=python3.12       the interpreter to build the environment from
#   VENV=/elsewhere         where the environment lies
#   PYTEST_FLAGS="-x -k …"  what to tell pytest instead of running on every core

PYTHON ?= python3
VENV ?= .venv
PYTEST_FLAGS ?= -n auto

# What runs once more with the JIT off: the rooms whose code is compiled. The others call that code or never load it.
INTERPRETED ?= tests/kernels tests/store tests/damage tests/faults tests/threads

BIN := $(VENV)/bin
READY := $(VENV)/ready

# numba's cache notices a change in a kernel's own file only, not in the decisions that the kernel calls. One cache per
# content of core/ keeps old machine code from being tested in the place of new source.
export NUMBA_CACHE_DIR := $(CURDIR)/.cache/numba/$(firstword $(shell cat core/*.py | sha256sum))

.PHONY: help test nightly proofs demo lint format clean

help:
	@echo "make test      linters, the whole test suite, and the core's tests once more with the JIT off"
	@echo "make nightly   every test with every example, and all of it with the JIT off too"
	@echo "make proofs    check every claim with its tool, and that its twin is refuted"
	@echo "make demo      watch a training job crash and come back"
	@echo "make lint      linters, types and import rules only"
	@echo "make format    rewrite the sources in the house format"

test: lint
	$(BIN)/pytest $(PYTEST_FLAGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest $(PYTEST_FLAGS) $(INTERPRETED)

# Every test, every example, and all of it interpreted too: hours.
nightly: $(READY)
	LASTGOOD_PROFILE=nightly $(BIN)/pytest $(PYTEST_FLAGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest $(PYTEST_FLAGS) --ignore=tests/packaging --ignore=tests/tidy

proofs: $(READY)
	$(BIN)/python -m proofs.check

demo: $(READY)
	$(BIN)/lastgood demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

# The build tool is installed first and used without isolation, so that it too has the version in constraints.txt.
# The links are there in a checkout; an unpacked source distribution cannot hold them.
$(READY): pyproject.toml constraints.txt
	@echo "preparing $(VENV); the first time this downloads PyTorch and takes minutes"
	@for room in core models crashsim; do ln -sfn ../../$$room src/lastgood/$$room; done
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt hatchling
	$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[test]'
	@touch $@
