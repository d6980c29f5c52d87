# `make` alone lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
RUNNABLE := .venv/.runnable
READY := .venv/.ready
PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt $(addprefix --extra-index-url ,$(TORCH_INDEX))
# An index to take torch from, such as PyTorch's own of CPU builds; empty: pip's.
TORCH_INDEX ?=
# Where this is set, each of a hundred processes would compile our code anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: setup
setup: $(READY) ## Make .venv with everything in it; quick when there is nothing to do

# What `hybrid up` needs. Modules are compiled when they are first imported, which is a part of them.
$(RUNNABLE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; say which with: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
		{ echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo 'installing the Python packages' >&2
	@$(PIP_INSTALL) -e '.[embedded,train]'
	@$(BIN)/python -m deploy.torch_build
	@touch $(RUNNABLE)

$(READY): $(RUNNABLE) clients/pyproject.toml
	@echo 'installing the Python packages for tests and clients' >&2
	@$(PIP_INSTALL) -e '.[dev]' -e './clients[client,examples]'
	@touch $(READY)

DASHBOARD := dashboard/dist/index.html
PACKAGES := dashboard/node_modules/.ready

$(PACKAGES): dashboard/package.json dashboard/package-lock.json
	@deploy/find-or-install npm -- nodejs npm >/dev/null
	@node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' || \
		{ echo "Node.js 18 or newer is needed for the dashboard; this is $$(node --version)"; exit 1; }
	cd dashboard && npm ci --no-audit --no-fund --loglevel=error
	@touch $(PACKAGES)

$(DASHBOARD): $(PACKAGES) $(shell find dashboard -type f -not -path '*/node_modules/*' -not -path '*/dist/*')
	cd dashboard && npm run --silent build
	@touch $(DASHBOARD)

.PHONY: dashboard
dashboard: $(DASHBOARD) ## Build the dashboard; quick when there is nothing to do

.PHONY: dashboard-dev
dashboard-dev: $(PACKAGES) ## Serve the dashboard with hot reload beside a running arena (HYBRID_URL)
	cd dashboard && npm run dev

.PHONY: browser
browser: ## Find a Chromium for the dashboard's tests, or install Debian's
	@deploy/find-or-install chromium chromium-browser google-chrome -- chromium

.PHONY: runnable
runnable: $(RUNNABLE)

.PHONY: up
up: ## Start the arena on this machine and a run to watch (Ctrl-C stops it)
	@$(MAKE) --no-print-directory --jobs 2 runnable dashboard
	@$(BIN)/hybrid up $(ARGS)

.PHONY: test
test: browser ## Run every test but the long ones
	$(MAKE) --jobs 2 setup test-page
	$(MAKE) --jobs 2 lint test-small
	$(MAKE) --jobs 3 test-arena test-chaos test-dashboard

.PHONY: test-page
test-page: dashboard
	cd dashboard && npm test --silent

.PHONY: test-small
test-small: setup
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist worksteal tests/unit tests/integration tests/upgrade

# Whole arenas wait about as often as they compute, so several at a time. Those that nobody looks at
# are nice: a browser that gets no time draws nothing. All kinds of tests at once took longer.
.PHONY: test-arena
test-arena: setup
	nice $(BIN)/pytest -m 'not long' tests/e2e

.PHONY: test-chaos
test-chaos: setup
	nice $(BIN)/pytest -m 'not long' tests/chaos

.PHONY: test-dashboard
test-dashboard: setup dashboard browser
	$(BIN)/pytest tests/dashboard

.PHONY: test-long
test-long: setup ## Start, kill and restart whole arenas: determinism, pauses, experiments, back-pressure, a NATS cluster, TLS (a quarter of an hour)
	$(BIN)/pytest -m long tests/e2e tests/chaos

.PHONY: chaos
chaos: setup ## Break everything at random and check every row (ARGS='--minutes 5 --tasks 50000 --seed 1'); prints JSON
	@$(BIN)/python -m tests.chaos $(ARGS)

.PHONY: test-containers
test-containers: setup ## Build the image, start docker-compose.yml, take containers away under load (ten minutes)
	@docker info >/dev/null || { echo "a Docker engine is needed, with docker compose or docker-compose"; exit 1; }
	$(BIN)/pytest tests/containers

.PHONY: fuzz
fuzz: setup ## Send garbage to every subject and call of a real arena (FUZZ_MESSAGES=10000 FUZZ_SEED=1; half an hour)
	FUZZ_MESSAGES=$${FUZZ_MESSAGES:-10000} FUZZ_SEED=$${FUZZ_SEED:-$$RANDOM} $(BIN)/pytest -s tests/integration/test_fuzz_bus.py tests/integration/test_fuzz_interface.py

# The file that `types` writes.
TYPES := dashboard/src/api/generated.ts

.PHONY: types
types: setup $(PACKAGES) ## Generate the dashboard's types from the gateway's interface
	@folder=$$(mktemp -d) && trap "rm -r $$folder" EXIT && $(BIN)/python -m services.gateway.describe $$folder && \
		node dashboard/scripts/generate-types.mjs $$folder $(TYPES)

.PHONY: lint-dashboard
lint-dashboard: setup $(PACKAGES)
	cd dashboard && npm run --silent lint
	@fresh=$$(mktemp) && trap "rm $$fresh" EXIT && $(MAKE) --silent types TYPES=$$fresh && \
		{ cmp --quiet $$fresh $(TYPES) || { echo "$(TYPES) is stale: run make types"; exit 1; }; }

.PHONY: lint
lint: setup lint-dashboard ## Check format, style, types and the import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: screenshots
screenshots: setup dashboard browser ## Take pictures of every view with a real run behind them
	@$(BIN)/python -m tests.dashboard.screenshots $(ARGS)

.PHONY: notebook
notebook: setup ## Renew the outputs of the notebooks, of the analysis from a run of 10,000 tasks
	@$(BIN)/python -m tests.e2e.notebook $(ARGS)

.PHONY: format
format: setup $(PACKAGES) ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cd dashboard && npm run --silent format

.PHONY: bench
bench: setup ## Measure throughput, latency, memory and start; prints JSON (ARGS=--write, as of all that measure: updates docs/benchmarks.md)
	@$(BIN)/python -m tests.bench.throughput $(ARGS)

.PHONY: bench-compare
bench-compare: setup dashboard ## Measure another revision and this one alternately (REV=abc123 ARGS='--rounds 3'): ratios with intervals; prints JSON
	@$(BIN)/python -m tests.bench.compare $(REV) $(ARGS)

.PHONY: bench-stages
bench-stages: setup ## Measure what one run cannot spread over processes: generator, virtual cluster, stream; prints JSON
	@$(BIN)/python -m tests.bench.stages $(ARGS)

.PHONY: bench-scale
bench-scale: setup ## Measure what a decision costs as schedulers, devices and runs grow; prints JSON
	@$(BIN)/python -m tests.bench.scale $(ARGS)

.PHONY: bench-policies
bench-policies: setup ## Measure policies that see their cluster: cost, throughput, replicas, takeover; prints JSON
	@$(BIN)/python -m tests.bench.policies $(ARGS)

.PHONY: bench-learning
bench-learning: setup ## Measure what the learners reach over five seeds (ten minutes); prints JSON
	@$(BIN)/python -m tests.bench.learning $(ARGS)

.PHONY: bench-advice
bench-advice: setup ## Compare all schedulers in the three cases of docs/advice.md, on fresh seeds (ten minutes); prints JSON
	@$(BIN)/python -m tests.bench.advice $(ARGS)

.PHONY: bench-websocket
bench-websocket: setup ## Measure 200 viewers of one run: message sizes, the gateway's CPU; prints JSON
	@$(BIN)/python -m tests.bench.websocket $(ARGS)

.PHONY: bench-dashboard
bench-dashboard: setup dashboard browser ## Feed the page an hour of updates fast: memory and frame time; prints JSON
	@$(BIN)/python -m tests.bench.dashboard $(ARGS)

.PHONY: bench-log
bench-log: setup dashboard browser ## Publish 1,000 events a second while the Log view is open: frames a second; prints JSON
	@$(BIN)/python -m tests.bench.event_log $(ARGS)

.PHONY: bench-trace
bench-trace: setup ## Replay a generated trace of 1 GB: time and memory (ARGS='--megabytes 20'); prints JSON
	@$(BIN)/python -m tests.bench.traces $(ARGS)

.PHONY: bench-bound
bench-bound: setup ## Measure the cluster bound of a million tasks, beside a solver; prints JSON
	@$(BIN)/python -m tests.bench.bound $(ARGS)

.PHONY: bench-gym
bench-gym: setup ## Measure the gym: decisions a second on one core, one environment and many; prints JSON
	@$(BIN)/python -m tests.bench.gym $(ARGS)

.PHONY: bench-gym-curves
bench-gym-curves: setup ## Train both examples of the gym over five seeds: learning curves; prints JSON
	@$(BIN)/python -m tests.bench.gym_curves $(ARGS)

.PHONY: bench-cluster
bench-cluster: setup ## Lose nodes of a NATS cluster under load: the pause, what is lost, the price of copies; prints JSON
	@$(BIN)/python -m tests.bench.cluster $(ARGS)

.PHONY: bench-containers
bench-containers: setup ## Measure the arena in containers: start, and 1, 2, 4 workers of a slow scheduler; prints JSON
	@$(BIN)/python -m tests.bench.containers $(ARGS)

COMPOSE ?= $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)

.PHONY: compose-up
compose-up: ## Start the arena in containers (ARGS='--scale scheduler-greedy=3')
	@deploy/make-env
	$(COMPOSE) up -d --build $(if $(filter docker compose,$(COMPOSE)),--wait) $(ARGS)

.PHONY: compose-down
compose-down: ## Stop the containers and keep the data (ARGS=-v removes it)
	$(COMPOSE) down $(ARGS)

.PHONY: constraints
constraints: ## Renew constraints.txt from the newest releases that pyproject.toml allows
	rm -rf .venv-new && $(PYTHON) -m venv .venv-new
	.venv-new/bin/pip install --quiet --disable-pip-version-check $(addprefix --extra-index-url ,$(TORCH_INDEX)) -e '.[dev]' -e './clients[client,examples]'
	.venv-new/bin/pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.txt
	rm -rf .venv-new

.PHONY: clean
clean: ## Remove the virtual environment and caches
	rm -rf .venv .venv-new .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info \
		dashboard/node_modules dashboard/dist
