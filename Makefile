# make setup       the environment in .venv
# make quickstart  environment, SCAN from its grammar, our SQ-Transformer and a plain one, a page
# make test        environment with test tools, the test suite
# make test-fast   the tests that neither train nor run commands
# make lint        ruff, mypy and shellcheck
# make gpu-check   checks an installation: with a GPU its tests, speed and a training (20 minutes);
#                  without one what can be checked. OUT=runs/gpu-check is where figures go
#
# PYTHON=python3.13 chooses the Python (3.11 to 3.13), VENV=FOLDER where the environment goes.
# TORCH is what pip installs as PyTorch. PyPI's needs CUDA's libraries, 5 GB in all; of PyTorch's
# own index for CPUs it is 0.2 GB:
#   make setup TORCH='torch==2.13.0 torchaudio --extra-index-url https://download.pytorch.org/whl/cpu'

PYTHON ?= python3
unexport PYTHON # the scripts run the environment's
VENV ?= .venv
TORCH ?= torch==2.13.0
FAIRSEQ ?= fairseq-fixed==0.12.3.1
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:

.PHONY: setup setup-dev quickstart test test-fast lint gpu-check clean

setup: $(VENV)/.installed
	@echo "setup: the environment in $(VENV) is ready (for another PYTHON or TORCH: make clean first)"

setup-dev: $(VENV)/.installed-dev
	@echo "setup: the test tools in $(VENV) are ready"

# fairseq's build imports torch and numpy. With them installed first, and without build isolation,
# pip builds against them; otherwise it would download a second PyTorch, with CUDA, for the build.
$(VENV)/.installed: setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "setup: fairseq needs Python 3.11 to 3.13, $(PYTHON) is " + sys.version.split()[0] + ": name another, such as PYTHON=python3.13, or use the Dockerfile")'
	command -v $${CXX:-c++} >/dev/null || { echo "setup: there is no C++ compiler, $${CXX:-c++}, to build fairseq with" >&2; exit 1; }
	$(PYTHON) -c 'import os, sys, sysconfig; header = sysconfig.get_path("include") + "/Python.h"; sys.exit(not os.path.exists(header) and f"setup: fairseq is built with the headers of Python, and there is no {header}; on Debian: apt install python3-dev")'
	echo "setup 1/4: a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)
	echo "setup 2/4: $(TORCH) and what building needs"
	$(PIP) 'numpy>=2.4.6' 'cython>=3.1' 'setuptools>=77.0.3,<82' wheel $(TORCH)
	echo "setup 3/4: $(FAIRSEQ), built here (some minutes)"
	$(PIP) --no-build-isolation $(FAIRSEQ)
	echo "setup 4/4: compgen_fairseq"
	$(PIP) --no-build-isolation --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed setup.py
	@echo "setup: test tools"
	$(PIP) --no-build-isolation --editable '.[dev]'
	touch $@

quickstart: setup
	@PATH="$(abspath $(BIN)):$$PATH" bash examples/scan/quickstart.sh

test: setup-dev
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_FLAGS)

test-fast: PYTEST_FLAGS = -m 'not slow'
test-fast: test

lint: setup-dev
	@$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/shellcheck -x -P SCRIPTDIR .ci/run prepare/*.sh examples/*.sh examples/*/*.sh benchmarks/*.sh
	$(BIN)/mypy compgen compgen_cli compgen_fairseq benchmarks

gpu-check: OUT = runs/gpu-check
gpu-check: setup-dev
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python benchmarks/gpu_check.py $(OUT)

clean:
	rm -rf $(VENV) build *.egg-info
