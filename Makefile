# Two commands: `make run PROFILE=satcom` and `make test`. `make help` lists the rest.
PROFILE ?= satcom
RUN ?= results/latest
VARIABLES := PROFILE STUDY PROTOCOL QOS PAYLOAD CLIENTS MESSAGES INTERVAL DRAIN SEED REPEATS CHANNEL CAPTURE CONGESTION GATEWAY PAHO_GATEWAY BROKER_IMAGE GATEWAY_IMAGE PAHO_GATEWAY_IMAGE RUNTIME OUT
SYSTEM_PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
PYTHON := .venv/bin/python

# A misspelt variable is an error, not a setting that is passed over in silence.
GIVEN := $(foreach word,$(MAKEOVERRIDES),$(if $(findstring =,$(word)),$(firstword $(subst =, ,$(word)))))
UNKNOWN := $(filter-out $(VARIABLES) SYSTEM_PYTHON TESTS BASE_IMAGE $(if $(filter report,$(MAKECMDGOALS)),RUN),$(GIVEN))
ifneq ($(UNKNOWN),)
$(error $(UNKNOWN): no such variable; allowed are $(VARIABLES))
endif

lower = $(shell echo $(1) | tr A-Z_ a-z-)
given = $(filter command environment,$(firstword $(origin $(1))))
OPTIONS = --profile '$(PROFILE)' $(foreach name,$(filter-out PROFILE,$(VARIABLES)),$(if $(call given,$(name)),--$(call lower,$(name)) '$($(name))'))

.PHONY: help setup test-setup docker-kernel run report up down ps image base-image profiles doctor lint test test-docker test-docker-netem bench lock clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20
	@echo; echo "make run takes: $(VARIABLES)"

setup:  ## install what is missing: Debian packages, Python environment, guest kernel
	@$(SYSTEM_PYTHON) -m testbed.setup

test-setup:  ## the same, and a Docker engine with Compose for the tests
	@$(SYSTEM_PYTHON) -m testbed.setup tests

docker-kernel:  ## the same, and the guest kernel that runs a Docker engine, for test-docker-netem
	@$(SYSTEM_PYTHON) -m testbed.setup tests docker-kernel

run: setup  ## run a study on a link: make run PROFILE=satcom
	@$(PYTHON) -m testbed.cli run $(OPTIONS)

report: setup  ## draw figures and write report.html anew: make report RUN=results/latest
	@$(PYTHON) -m testbed.cli report '$(RUN)'
up: setup  ## start a cell's containers and leave them running: make up PROFILE=lan
	@$(PYTHON) -m testbed.cli run --keep $(OPTIONS)

down ps image base-image: setup
	@$(PYTHON) -m compose $@
down:  ## remove the containers of make up, and what killed runs left
ps:  ## show the containers of all runs
image:  ## build the containers' image: make image BASE_IMAGE=debian:bookworm-slim
base-image:  ## make the image's base from a Debian mirror, where none can be pulled (root)

profiles: setup  ## list the links
	@$(PYTHON) -m testbed.cli profiles

doctor:  ## what this machine can do and lacks, and how to mend it; installs nothing
	@$(SYSTEM_PYTHON) -m testbed.doctor

bench: setup  ## emulated seconds for each second of wall time, a cell of each protocol
	@$(PYTHON) -m testbed.bench

lint: setup  ## check style and types
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m mypy

test: test-setup  ## run all tests: make test TESTS=tests/unit runs some
	@$(PYTHON) -m pytest $(TESTS)

test-docker: test-setup  ## run the tests of RUNTIME=docker
	@$(PYTHON) -m pytest -rs tests/e2e/test_docker.py

test-docker-netem: docker-kernel  ## containers on a shaped link, in a guest: make test-docker-netem CLIENTS=27
	@NETEM_CLIENTS=$(or $(CLIENTS),27) $(PYTHON) -m pytest -rs tests/e2e/test_docker_netem.py

lock:  ## pin the Python packages anew
	$(PYTHON) -m pip install --quiet pip-tools
	$(PYTHON) -m piptools compile --quiet --strip-extras --generate-hashes --extra dev --no-header \
	  --no-emit-find-links --no-emit-index-url -o requirements.lock pyproject.toml

clean:  ## remove results and caches of the checkout; the guest kernel stays in its cache
	rm -rf results .mypy_cache .pytest_cache .ruff_cache .hypothesis
