# toprung: every target sets up what it needs in .venv first, so that a fresh clone is enough.
# Settings: PYTHON (the Python to build .venv with), ARGS (more arguments for pytest).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check docs clean

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The version that everything here was tested with. Installed first, so that no other requirement
# brings a newer one.
TORCH := torch==2.13.0
# One stamp per set of packages; a change of pyproject.toml installs again.
USER_READY := .venv/.ready-user
DEV_READY := .venv/.ready-dev

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup: $(DEV_READY) ## Make .venv with toprung and everything for working on it

$(USER_READY): pyproject.toml
	@python="$$(.ci/prerequisites)"; [ -x $(BIN)/pip ] || "$$python" -m venv --clear .venv
	@echo "installing $(TORCH) and toprung into .venv" >&2
	@$(PIP) install "$(TORCH)"
	@$(PIP) install -e ".[tune]"
	@touch $@

$(DEV_READY): $(USER_READY)
	@echo "installing the tools for tests and documentation into .venv" >&2
	@$(PIP) install -e ".[tune,dev,docs]"
	@touch $@

demo: $(USER_READY) ## Optimise the softmax example on the CPU from nothing; ends with report.html
	$(BIN)/toprung optimize examples/softmax --minutes 1 --attempts 8
	$(BIN)/toprung report --output report.html

test: $(DEV_READY) ## Run every test that this machine can run
	.ci/prerequisites --browser >/dev/null
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

check: $(DEV_READY) ## Format, lint, types, layers, and docs equal to code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/mkdocs build --quiet --strict --site-dir build/site

docs: $(DEV_READY) ## Write the generated parts of the docs, then build them into build/site
	$(BIN)/python docs/generate.py
	$(BIN)/mkdocs build --quiet --strict --site-dir build/site

clean: ## Remove .venv, caches, builds and the demo's leavings
	rm -rf .venv .toprung build dist report.html .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
