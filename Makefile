# Every target works from any folder (make -C path/to/thaikit demo) and twice in a row; paths are relative to this one, whose
# own path may so hold a space.
ROOT := $(CURDIR)
PYTHON ?= python3
# PyTorch goes in first, so that nothing else chooses its build. TORCH=... picks another (see README, Set-up).
TORCH ?= torch==2.13.0
PARITY_ITEMS ?=
VENV := .venv
BIN := .venv/bin
.PHONY: demo test lab parity bench drill report replay
.DEFAULT_GOAL := demo

$(VENV)/.base: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "thaikit needs Python 3.11 or newer, found " + sys.version.split()[0] + "; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/python -m pip install --quiet -e ".[test]"
	touch $@

# A model that cannot be had is told and its leaf fails below; the other one goes on, and the status is not 0.
demo: $(VENV)/.base
	-$(BIN)/python -m thaikit fetch
	$(BIN)/python -m thaikit run params/suites/demo.yaml -j 2
	@echo "Report: $(ROOT)/outputs/demo/report/report.html"

test: $(VENV)/.test
	$(BIN)/python -m thaikit fetch
	$(BIN)/ruff check .
	$(BIN)/python -m pytest

lab: $(VENV)/.base
	$(BIN)/jupyter lab notebooks

# Items a task: make parity PARITY_ITEMS=2 (0: all). English rows too where THAIKIT_REAL_DATA names their folder.
parity: $(VENV)/.test
	$(BIN)/python -m thaikit fetch
	PARITY_ITEMS="$(PARITY_ITEMS)" $(BIN)/python -m thaikit.parity

# The bundled recordings: what the replay model repeats and what 90_report shows by default.
replay: $(VENV)/.base
	$(BIN)/python -m thaikit fetch
	$(BIN)/python -m thaikit.recording

report: $(VENV)/.base
	$(BIN)/python -m thaikit run params/suites/demo.yaml --only report
	@echo "Report: $(ROOT)/outputs/demo/report/report.html"

bench: $(VENV)/.test
	$(BIN)/python -m thaikit fetch
	$(BIN)/python -m thaikit run params/suites/bench.yaml
	@echo "Table: $(ROOT)/outputs/bench/benchmark/gemma3-270m/tables/benchmark.csv"

# Faults, kills and money through the notebook that judges; KILLS=50 make drill is the long form.
drill: $(VENV)/.test
	cd tests && ../$(BIN)/python drill.py
