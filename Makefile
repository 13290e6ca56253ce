# Every target does its own set-up: Python 3.11 or newer is all a machine needs.

PYTHON ?= python3
VENV ?= .venv

BIN := $(VENV)/bin
# Warnings about a machine's own pip settings are noise here; errors still show.
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
SCRIPTS := $(wildcard examples bench tools)

# Stamps: each install adds to the one before it.
CORE := $(VENV)/.core-installed
LAKE := $(VENV)/.lake-installed
DEV := $(VENV)/.dev-installed
SITE := $(VENV)/.site-installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup check test planted spark-tests server-tests browser-tests chromium demo bench race proofs fuzz storm site wheel wheel-tests docs format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(DEV) ## Create the virtual environment with the pinned development tools

check: $(DEV) ## Lint (Python, SQL and Lua), check the format, the types and the import rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src tests $(SCRIPTS)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/lint_sql.py
	$(BIN)/python tools/lint_lua.py

test: $(DEV) ## Run the tests on three processes: one of them for Spark
	$(BIN)/python -m pytest -n 3 --dist loadscope -q --durations=10

planted: $(DEV) ## Plant every known mistake and see that the tests object (four minutes)
	$(BIN)/python -m pytest tests/planted -m "long or not long" -n 3 -q

spark-tests: $(DEV) ## Run the long proofs of the Spark part: crashes, clusters (under 20 minutes)
	$(BIN)/python -m pytest tests/spark tests/examples -m long -q
	$(BIN)/python -m pytest tests/spark_cluster -q --durations=10

browser-tests: $(DEV) chromium ## Drive the dashboard in a real Chromium, the long tests as well (two minutes)
	$(BIN)/python -m pytest tests/browser -m "long or not long" -q --durations=10

chromium: # Debian's browser, where it can be installed; the tests say so where it cannot
	@command -v chromium >/dev/null \
	  || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	       && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } \
	  || echo "Chromium is not here and cannot be installed: its tests will be skipped"

demo: $(LAKE) ## Run the demonstration: jobs, the pipeline on Spark and a report, the dashboard
	@folder=$$(mktemp -d -t headrace-demo-XXXXXX) \
	  && $(BIN)/python examples/demo.py $$folder \
	  && $(BIN)/python examples/lake.py sqlite:///$$folder/jobs.db $$folder/lake \
	  && $(BIN)/python examples/dashboard.py sqlite:///$$folder/jobs.db

bench: $(CORE) ## Measure how fast the stores drain, and print the figures
	$(BIN)/python bench/drain.py

race: $(DEV) ## Race Headrace against its peers on three stores, and write docs/performance.md (half an hour)
	$(BIN)/python -m bench.race

server-tests: $(DEV) ## The manager's suite of the kit through the HTTP client, on every store (3 minutes)
	$(BIN)/python -m pytest tests/server -m "long or not long" -n 2 -q

proofs: $(DEV) ## Run the long proofs: millions of waiting jobs, ten processes (half an hour)
	$(BIN)/python bench/claims.py --sizes 1000 100000 1000000
	$(BIN)/python bench/servers.py postgres bench/claims.py --sizes 1000 100000 1000000
	$(BIN)/python bench/servers.py redis bench/claims.py --sizes 1000 100000 1000000 --settle 20
	$(BIN)/python bench/servers.py postgres tests/processes/drain.py --jobs 50000 --processes 10 --p99-max 100
	$(BIN)/python bench/servers.py redis tests/processes/drain.py --jobs 50000 --processes 10 --p99-max 100
	$(BIN)/python -m tests.stores.postgres.held
	$(MAKE) storm

fuzz: $(DEV) ## Call everything public with anything on each store, 80,000 times, and find what leaks
	$(BIN)/python -m tests.fuzz --url memory:
	$(BIN)/python -m tests.fuzz
	$(BIN)/python bench/servers.py postgres tests/fuzz/__main__.py
	$(BIN)/python bench/servers.py redis tests/fuzz/__main__.py

storm: $(DEV) ## Kill and stop workers at random on each durable store, and check every promise
	$(BIN)/python -m tests.faults.storm
	$(BIN)/python bench/servers.py postgres tests/faults/storm.py
	$(BIN)/python bench/servers.py redis tests/faults/storm.py

site: $(SITE) ## Build the documentation as a site: site/index.html
	$(BIN)/python tools/site.py

wheel: $(CORE) ## Build the wheel into dist/
	rm -rf dist
	$(PIP_INSTALL) build
	$(BIN)/python -m build --wheel --outdir dist . | tail -n 1

wheel-tests: wheel ## Use the wheel in bare environments of every Python at hand (PYTHONS="...")
	$(BIN)/python tools/try_wheel.py dist/*.whl $(PYTHONS)

docs: $(DEV) ## Regenerate the generated parts of the documentation
	$(BIN)/python tools/lifecycle_diagram.py
	$(BIN)/python tools/contract_table.py
	$(BIN)/python tools/manager_reference.py
	$(BIN)/python tools/http_routes.py
	$(BIN)/python tools/spark_tables.py
	$(BIN)/python tools/sync_types.py

format: $(DEV) ## Format the code and apply the safe lint fixes
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist site
	find src tests $(SCRIPTS) -type d -name __pycache__ -prune -exec rm -rf {} +

$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Headrace needs Python 3.11 or newer, and '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name a newer one, for example: make PYTHON=python3.11 $(or $(MAKECMDGOALS),setup)" >&2; \
	  exit 1; }
	@test -x $(BIN)/python || echo "Creating $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Headrace into $(VENV)"
	@$(PIP_INSTALL) -e .
	@touch $@

$(LAKE): $(CORE)
	@echo "Installing Spark into $(VENV) (half a gigabyte, a minute or two)"
	@$(PIP_INSTALL) -e ".[spark,java,report]"
	@touch $@

$(DEV): $(CORE)
	@echo "Installing the development tools into $(VENV)"
	@$(PIP_INSTALL) -e ".[dev,postgres,redis,spark,java,report,crypto,fast,opentelemetry,prometheus]"
	@touch $@

$(SITE): $(DEV)
	@echo "Installing what builds the site into $(VENV)"
	@$(PIP_INSTALL) -e ".[site]"
	@touch $@
