# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
#
# Every target works from any checkout folder and makes what it needs. Nothing outside the checkout is written.
# hack/gate.py holds the logic of the checks; this file only says what depends on what.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

# The first Python that is new enough. `make venv PYTHON=/path/to/python` takes another one.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell \
	$(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && command -v $(p))))

VENV := .venv
VENV_KEY := $(shell cat requirements/*.txt hack/make_venv.py | sha256sum | cut -c1-16)
READY := $(VENV)/.ready-$(VENV_KEY)
GATE = $(VENV)/bin/python hack/gate.py

.PHONY: help venv quickstart test lint sanity units integration bench fuzz soak kills chaos contract build wheelhouse molecule format proto clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 22

venv: $(READY) ## Make .venv from the pinned requirements (nothing to do when they did not change)
	@:

$(READY):
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found. On Debian 12: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) hack/make_venv.py $(VENV) requirements/dev.txt $@

quickstart: $(READY) ## The whole flow on this machine, told step by step
	@$(GATE) quickstart

test: $(READY) ## lint + sanity + units + integration, and molecule where a container engine is
	@SANITY=$${SANITY:-short} $(GATE) lint sanity units integration molecule

lint: $(READY) ## ruff, mypy, ansible-lint, changelog and docs checks
	@$(GATE) lint

sanity: $(READY) ## ansible-test sanity on every Python that is found
	@$(GATE) sanity

units: $(READY) ## pytest, and the layers for managed nodes on Python 3.9
	@$(GATE) units

integration: $(READY) ## ansible-test integration (TARGETS="a b" for some)
	@TARGETS="$(TARGETS)" $(GATE) integration

bench: $(READY) ## Measure speed and memory, print a table
	@$(GATE) bench

fuzz: $(READY) ## Long run of the fuzzers
	@$(GATE) fuzz

soak: $(READY) ## 2000 random histories of a cluster with controllers that fail and die
	@$(GATE) soak

kills: $(READY) ## Kill processes at every step, then the node agent under load (AGENT_KILLS=500); print the counts
	@AGENT_KILLS="$(AGENT_KILLS)" $(GATE) kills

chaos: $(READY) ## Let everything fail around the node agent: what it told, how it recovered, its memory (some need root)
	@$(GATE) chaos

# From the command line only: nobody should test against a cluster because of a variable of the shell.
contract: $(READY) ## Contract of an API server: the embedded one, or that of a cluster (KUBECONFIG=FILE)
	@CONTRACT_KUBECONFIG='$(if $(filter command,$(firstword $(origin KUBECONFIG))),$(KUBECONFIG))' $(GATE) contract

build: $(READY) ## Collection archive, archive for nodes and dra-checkpoint.pyz in dist/
	@$(GATE) build

wheelhouse: $(READY) ## Wheels for nodes without an index in dist/wheelhouse (WHEEL_PYTHONS, WHEEL_PLATFORM)
	@WHEEL_PYTHONS="$(WHEEL_PYTHONS)" WHEEL_PLATFORM="$(WHEEL_PLATFORM)" $(GATE) wheelhouse

molecule: $(READY) ## The roles in containers that run systemd (SCENARIO=agent for one), with the time of each
	@SCENARIOS="$(SCENARIO)$(SCENARIOS)" $(GATE) molecule

format: $(READY) ## Let ruff put the sources in shape
	@$(VENV)/bin/ruff check --quiet --fix --unsafe-fixes --exit-zero --select UP,I . && $(VENV)/bin/ruff format --quiet .

proto: $(READY) ## Generate the message descriptors again
	@$(GATE) proto

clean: ## Remove everything that was made here, .venv too
	@rm -rf $(VENV) .build .ansible .ansible_test dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
