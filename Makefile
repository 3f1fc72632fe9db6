# One command per habit. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
TORCH := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)
PACKAGES := kernel_gen cost_models db tuner service graph_autofusion
SOURCES := $(PACKAGES) benchmarks examples tests
# Two cores are busy with three workers: a quarter of their time is waiting for other processes.
TEST := $(BIN)/python -m pytest tests -n 3 --dist loadgroup
export RAY_USAGE_STATS_ENABLED := 0
# Tests and searches start many Python processes; each would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo test test-times test-fast check format bench golden soak ablation screenshots openapi clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(MAKEFILE_LIST) | column -t -s:

venv: $(STAMP) ## create .venv with everything installed

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "python3 -m venv failed: install the system's python3-venv package"; exit 1; }
	@$(PIP) install --quiet --upgrade pip
	@echo "Installing PyTorch ($(TORCH))"
	@$(if $(TORCH_INDEX),,$(BIN)/python -m pip install --quiet --dry-run --report - '$(TORCH)' 2>/dev/null \
	  | grep -q '"name": "\(nvidia\|cuda\)' && echo "  This default build brings CUDA and downloads several GB;" \
	  "TORCH_INDEX=<URL of PyTorch's CPU wheels> make venv avoids that." || true)
	@$(PIP) install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) '$(TORCH)'
	@echo "Installing the rest (about a minute)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[server,dev]'
	@touch $@

demo: $(STAMP) ## tune the example over the service and show what came of it
	@$(BIN)/gaf demo

test: $(STAMP) ## all tests, fast ones first
	$(TEST) $(PYTEST_ARGS)

test-times: $(STAMP) ## all tests; rewrites what tests/units.py knows of their times
	$(TEST) --record-seconds tests/unit_seconds.json $(PYTEST_ARGS)

test-fast: $(STAMP) ## what takes less than a minute
	$(TEST) -m "not ray and not browser and not postgres and not slow"

check: $(STAMP) ## lint, types, layers
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## rewrite files to the house style
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

$(VENV)/.bench: $(STAMP)
	@echo "Installing the peers of the suite (ONNX Runtime, OpenVINO, XLA)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[server,dev,bench]'
	@touch $@

bench: $(VENV)/.bench ## the suite against its peers, interleaved; BENCH_ARGS=--resume goes on
	$(BIN)/python -m benchmarks.suite --output docs/benchmarks $(BENCH_ARGS)

ablation: $(VENV)/.bench ## time by kind of fusion; writes docs/benchmarks
	$(BIN)/python -m benchmarks.ablation --output docs/benchmarks $(BENCH_ARGS)

golden: $(STAMP) ## regenerate the golden texts of generated code
	$(BIN)/python -m pytest tests/codegen -q --golden-update

soak: $(STAMP) ## long runs: random graphs (FUZZ_ARGS=--resume goes on), killed drivers, wider vectors
	$(BIN)/python -m tests.soak.fuzz $(FUZZ_ARGS)
	$(BIN)/python -m pytest tests/codegen tests/acceptance -q -n 2 --dist loadgroup --lowered --every-level -k v4
	GAF_SOAK=1 $(BIN)/python -m pytest tests/soak -q -n 2 --dist loadgroup $(PYTEST_ARGS)

screenshots: $(STAMP) ## tune a model twice and take the pictures of docs/dashboard.md
	@folder=$$(mktemp -d) && store="sqlite:///$$folder/store.sqlite" && \
	for how in "--seconds 15 --numerics strict" "--seconds 100"; do \
	  $(BIN)/gaf tune tests/service/pictured_model.py:build $$how --store $$store || exit 1; \
	done; GAF_SCREENSHOTS=$$store $(BIN)/python -m pytest tests/service/test_screenshots.py -q -n0; \
	rm -rf $$folder

openapi: $(STAMP) ## regenerate docs/openapi.json
	$(BIN)/python -m service.openapi > docs/openapi.json

clean: ## remove what was built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
