# How this project is shown, built and checked. Every target works in a fresh clone.
SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PLAIN := $(VENV)/plain/.installed

# Where compiled code may not be kept, each process of the tests compiles all of it again: a second each.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := quick
.PHONY: demo test test-all agents quick lint format bench fuzz clean

demo: $(STAMP)  ## a whole run, with scripted agents, in a repository of its own
	$(BIN)/redfirst demo

# Tests wait for processes and limits much of their time: three workers for each core.
WORKERS ?= $(shell cores=$$(nproc); echo $$((cores < 6 ? 3 * cores : 12)))

# Style and types are looked at beside the tests. Where nothing was compiled yet, that is done once, and not by each
# worker: the tests are compiled by collecting them.
# pytest comes last: its closing line is the last line of the log.
test: $(PLAIN)  ## seven minutes on two idle cores; the tests of real agents need `make agents` once, and say so (docs/testing.md)
	scripts/system-packages.sh --require
	scripts/agent-clis.sh --show
	scripts/js-runners.sh --show
	@$(MAKE) --no-print-directory lint >$(VENV)/lint.log 2>&1 & lint=$$!; \
	$(BIN)/python -m compileall -q redfirst.py pipeline todo; \
	[ -d tests/house/__pycache__ ] || $(BIN)/pytest --collect-only -qq >/dev/null; \
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder; tests=$$?; \
	wait $$lint || { cat $(VENV)/lint.log; echo 'make test: style, types or import contracts (above)'; exit 1; }; \
	exit $$tests

test-all: $(STAMP)  ## the same with all broad cases (tests/conftest.py): hours on two cores
	TESTS_BROAD=all $(MAKE) --no-print-directory test

agents:  ## the real coding agents (1.6 GB from npm, into .agents-cache) and JavaScript test runners that tests drive
	scripts/agent-clis.sh --require
	scripts/js-runners.sh --require

quick: $(PLAIN)  ## in less than a minute: style, and every test that is not slow
	$(BIN)/ruff check
	$(BIN)/pytest -q -n auto --dist loadfile -m "not slow"

lint: $(STAMP)  ## style, types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: $(STAMP)  ## what a run costs over bare git and pytest, and a dispatch over its command or agent
	$(BIN)/python bench/pipeline.py
	$(BIN)/python -P bench/dispatch.py
	$(BIN)/python -P bench/agents.py
	$(BIN)/python -P bench/evidence.py
	$(BIN)/python -P bench/reading.py

fuzz: $(STAMP)  ## texts and edits led by coverage; FUZZ_SECONDS for each target, FUZZ_TARGETS names some
	$(BIN)/python tests/fuzz/run.py --seconds $(or $(FUZZ_SECONDS),20) $(FUZZ_TARGETS)

clean:  ## what tools left behind; the environment stays (rm -r .venv)
	rm -rf dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find $(wildcard pipeline todo tests bench) -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml scripts/make-venv.sh
	scripts/make-venv.sh $(VENV)
	touch $@

# Projects that tests make are tested by pytest alone, whatever plugins our own tests have.
$(PLAIN): $(STAMP)
	$(BIN)/python -m venv --without-pip $(@D)
	$(BIN)/python -m pip --python $(@D)/bin/python install --quiet --disable-pip-version-check \
	  "pytest==$$($(BIN)/python -c 'import pytest; print(pytest.__version__)')"
	touch $@
