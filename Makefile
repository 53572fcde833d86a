# `make` alone lists every target.
.DEFAULT_GOAL := help
.PHONY: help demo up test test-fast lint format bench bench-engine bench-ingest bench-search bench-pages bench-scrape \
	chaos mutants nightly lock clean parts api-reference schema release-dump pictures compiled

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
COMPILE := $(BIN)/uv pip compile -q pyproject.toml --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --custom-compile-command "make lock"
ARGS ?=

help: ## List every target
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "Harvester needs Python 3.11, 3.12 or 3.13; this is %d.%d. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" % sys.version_info[:2])'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements/runtime.lock pyproject.toml | $(BIN)/python
	@echo "Installing Harvester's dependencies into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements/runtime.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.runtime
	@echo "Installing the test dependencies into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $@

$(VENV)/.peers: requirements/peers.lock $(VENV)/.dev
	@echo "Installing the libraries that the benchmarks compare with into $(VENV) ..."
	@$(PIP) install --require-hashes -r requirements/peers.lock
	@touch $@

demo: $(VENV)/.runtime ## Show Harvester with sample data (ARGS=--once stops after the summary)
	@$(BIN)/harvester demo $(ARGS)

up: $(VENV)/.runtime ## Run portal, worker and scheduler until Ctrl-C
	@$(BIN)/harvester up $(ARGS)

parts: $(VENV)/.dev ## Install a browser and a Redis server for the tests, if possible
	@$(BIN)/python tools/test_parts.py

lint: $(VENV)/.dev ## Check style, types, layers and words
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@HARVESTER_HOME=$(CURDIR)/build/lint $(BIN)/mypy  # its Django plugin loads the settings, which create a key
	@$(BIN)/lint-imports
	@$(BIN)/python tools/plain_words.py

format: $(VENV)/.dev ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

test: $(VENV)/.dev parts ## Run lint and all tests
	@$(MAKE) --no-print-directory -j 2 lint compiled
	@$(BIN)/python -m pytest -n 6 --dist loadfile --no-loadscope-reorder $(ARGS)  # they often wait, so more processes than cores; tests/conftest.py orders them

# Otherwise each process would compile all tests at the same time.
compiled: $(VENV)/.dev
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -q > $(VENV)/collected.txt || { tail -30 $(VENV)/collected.txt; exit 1; }

test-fast: $(VENV)/.dev ## All tests except slow ones and those in a browser
	@$(BIN)/python -m pytest -m "not slow and not browser" $(ARGS)

api-reference: $(VENV)/.runtime ## Write docs/api-reference.md from the API's schema
	@mkdir -p build
	@HARVESTER_HOME=$(CURDIR)/build/lint $(BIN)/python tools/api_reference.py > build/api-reference.md
	@mv build/api-reference.md docs/api-reference.md

schema: $(VENV)/.runtime ## Update docs/schema.md from a new database
	@$(BIN)/python tools/schema.py

release-dump: $(VENV)/.dev ## Write the dump of a version that tests upgrade from (VERSION=0.1.0)
	@$(BIN)/python -m tests.upgrade.make_dump $(or $(VERSION),$(error Name it: make release-dump VERSION=0.1.0))

chaos: $(VENV)/.dev ## Three minutes of killed workers and database restarts (ARGS="--seed N")
	@$(BIN)/python -m tests.chaos $(ARGS)

mutants: $(VENV)/.dev ## Break each rule of feeds once; a test must fail each time (ARGS="7 22" for two rules)
	@$(BIN)/python -m tests.mutants $(ARGS)

nightly: $(VENV)/.dev parts ## Tests that take hours: ten times the generated ones, all mutants, chaos
	@failed=; \
	GENERATED_TIMES=10 $(BIN)/python -m pytest -n 2 --timeout 3600 -m generated || failed="$$failed generated"; \
	$(MAKE) --no-print-directory mutants || failed="$$failed mutants"; \
	$(MAKE) --no-print-directory chaos || failed="$$failed chaos"; \
	[ -z "$$failed" ] || { echo "Failed:$$failed" >&2; exit 1; }

bench: bench-engine bench-ingest bench-search bench-pages bench-scrape ## Every benchmark

bench-engine: $(VENV)/.peers ## Jobs per second, compared with a plain loop, procrastinate and pgqueuer
	@$(BIN)/python -m tests.bench.engine $(ARGS)

bench-ingest: $(VENV)/.peers ## Catalogs of half a million rows, compared with plain COPY, dlt and chunked upserts
	@$(BIN)/python -m tests.bench.ingest $(ARGS)

bench-search: $(VENV)/.dev ## Searches over the API, compared with the plain SQL of the same pages (ARGS="--offers N")
	@$(BIN)/python -m tests.bench.api $(ARGS)

bench-pages: $(VENV)/.dev ## Response time of each page with a million offers (ARGS="--home DIR" keeps them)
	@$(BIN)/python -m tests.bench.pages $(ARGS)

bench-scrape: $(VENV)/.peers ## Pages per second, compared with Scrapy; pace and memory (ARGS="--only speed --targets N")
	@$(BIN)/python -m tests.bench.scrape $(ARGS)

pictures: $(VENV)/.dev ## Update the README's screenshots of the demo
	@$(BIN)/python -m tests.browser.pictures docs/images

lock: $(VENV)/.dev ## Update the pinned versions
	@$(COMPILE) --upgrade --extra build -o requirements/runtime.lock
	@$(COMPILE) --upgrade --extra build --extra dev -c requirements/runtime.lock -o requirements/dev.lock
	@$(COMPILE) --upgrade --extra build --extra dev --extra peers -c requirements/dev.lock -o requirements/peers.lock

clean: ## Remove everything that was built (never data)
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
