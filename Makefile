# Two commands: `make run PROFILE=satcom` and `make test`. `make help` lists the rest.
PROFILE ?= satcom
RUN ?= results/latest
VARIABLES := PROFILE STUDY PROTOCOL QOS PAYLOAD CLIENTS MESSAGES INTERVAL DRAIN SEED REPEATS CHANNEL CAPTURE CONGESTION GATEWAY PAHO_GATEWAY BROKER_IMAGE GATEWAY_IMAGE PAHO_GATEWAY_IMAGE RUNTIME OUT
SYSTEM_PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
PYTHON := .venv/bin/python

# A misspelt variable is an error, not a setting that is passed over in silence.
empty :=
space := $(empty) $(empty)
GIVEN := $(foreach word,$(subst \$(space),,$(MAKEOVERRIDES)),$(if $(findstring =,$(word)),$(firstword $(subst =, ,$(word)))))
UNKNOWN := $(filter-out $(VARIABLES) SYSTEM_PYTHON TESTS BASE_IMAGE $(if $(filter report,$(MAKECMDGOALS)),RUN) $(if $(filter inspect,$(MAKECMDGOALS)),CELL FILTER) $(if $(filter wireshark,$(MAKECMDGOALS)),CELL SIDE) $(if $(filter compare,$(MAKECMDGOALS)),RUNS),$(GIVEN))
ifneq ($(UNKNOWN),)
$(error $(UNKNOWN): no such variable; allowed are $(VARIABLES))
endif

lower = $(shell echo $(1) | tr A-Z_ a-z-)
given = $(filter command environment,$(firstword $(origin $(1))))
options = $(foreach name,$(1),$(if $(call given,$(name)),--$(call lower,$(name)) '$($(name))'))
OPTIONS = --profile '$(PROFILE)' $(call options,$(filter-out PROFILE,$(VARIABLES)))

.PHONY: help setup test-setup docker-kernel run certificate reproduce fit report inspect compare wireshark up down ps image base-image profiles doctor lint test test-docker test-docker-netem bench lock clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20
	@echo; echo "make run takes: $(VARIABLES)"

setup:  ## install what is missing: Debian packages, Python environment, guest kernel
	@$(SYSTEM_PYTHON) -m testbed.setup

test-setup:  ## the same, and what only the tests need: a Docker engine with Compose, Chromium
	@$(SYSTEM_PYTHON) -m testbed.setup tests

docker-kernel:  ## the same, and the guest kernel that runs a Docker engine, for test-docker-netem
	@$(SYSTEM_PYTHON) -m testbed.setup tests docker-kernel

run: setup  ## run a study on a link: make run PROFILE=satcom
	@$(PYTHON) -m testbed.cli run $(OPTIONS)

certificate: setup  ## check what links really do: make certificate, make certificate PROFILE=satcom CHANNEL=both
	@$(PYTHON) -m testbed.cli certificate $(call options,PROFILE STUDY SEED CHANNEL RUNTIME OUT)

reproduce: setup  ## run the cells of the paper's tables and put them beside it: make reproduce, make reproduce PROFILE=satcom
	@$(PYTHON) -m testbed.paper reproduce $(call options,PROFILE STUDY CLIENTS MESSAGES INTERVAL DRAIN SEED REPEATS CHANNEL RUNTIME OUT)

fit: setup  ## search for what the paper does not state: make fit
	@$(PYTHON) -m testbed.paper fit $(call options,STUDY CLIENTS MESSAGES SEED CHANNEL PAYLOAD INTERVAL OUT)

report: setup  ## draw figures and write report.html anew: make report RUN=results/latest
	@$(PYTHON) -m testbed.cli report '$(RUN)'

inspect: setup  ## print a cell's packets: make inspect CELL=satcom-mqtt-qos1-gps-r1 FILTER="mqtt.msgtype == 3"
	@$(PYTHON) -m testbed.cli inspect '$(CELL)' --filter '$(subst ','\'',$(FILTER))'

compare: setup  ## put runs, or the newest of profiles, side by side: make compare RUNS="satcom cnr-10"
	@$(PYTHON) -m testbed.cli compare $(if $(call given,OUT),--out '$(OUT)') -- $(RUNS)

wireshark: setup  ## open a cell's capture: make wireshark CELL=satcom-mqtt-qos1-gps-r1 SIDE=server-side
	@$(PYTHON) -m testbed.cli wireshark '$(CELL)' $(if $(SIDE),--side '$(SIDE)')

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

bench: setup  ## how fast cells run (emulated seconds a second), and captures are analysed (packets a second)
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
