# One command each, from a fresh clone: `make demo`, `make test`. The first one builds the environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint format docs browser bench reliability mutants study clean

# Small models without dropout show what word order is worth in a minute; one thread each is fastest at this size, and
# at that of the documentation's models, which two threads make no faster with twice the work.
DEMO := --hidden-size 64 --vector-size 64 --dropout 0 --no-glorot --optimizer adam --lr 1e-3 --batch-size 32 --epochs 10
DEMO_RUNS ?= runs/demo
DATA ?= data
BUDGET ?= cpu
WORKERS ?= 2
HYPOTHESIS_PROFILE ?= $(if $(CI),ci,dev)
INSTALL := pip install --quiet $(INSTALL_OPTIONS) -c constraints.txt
PYTEST := python -m pytest -n auto --maxprocesses 4 --dist worksteal
ATTACKS := precision spread portable faults hostile installing

demo: $(READY)  ## Decomposable Attention, with and without word order, on the generated corpus
	OMP_NUM_THREADS=1 $(BIN)/python examples/decomposable_attention.py train $(DEMO) --output $(DEMO_RUNS)/vanilla
	OMP_NUM_THREADS=1 $(BIN)/python examples/decomposable_attention.py train $(DEMO) --output $(DEMO_RUNS)/intra \
		--intra-attention --distances two-sided --max-distance 3
	$(BIN)/python examples/compare.py $(DEMO_RUNS)/vanilla $(DEMO_RUNS)/intra

test: $(READY)  ## tests, doctests and the code of README and pages; a process for each core, up to four
	OMP_NUM_THREADS=1 HYPOTHESIS_PROFILE=$(HYPOTHESIS_PROFILE) $(BIN)/$(PYTEST) $(ARGS)

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## the site, in docs/_build/html; a warning is an error, and so is a link that leads nowhere
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python -m pytest -q docs/checks

browser: docs  ## the site in Chromium, which has to be there
	$(BIN)/python -m $(INSTALL) -e '.[dev,browser]'
	$(BIN)/python -m pytest -q docs/browser

bench: $(READY)  ## every benchmark, measured here; writes docs/speed and the tables in benchmarks/
	$(BIN)/python -m $(INSTALL) -e '.[dev,bench]'
	$(BIN)/python -m benchmarks

reliability: $(READY)  ## every attack at full size; writes docs/reliability
	for attack in $(ATTACKS); do $(BIN)/python -m reliability.$$attack || exit 1; done
	$(BIN)/python -m reliability.report

mutants: $(READY)  ## every mutant of the library, which takes long; writes docs/reliability/mutants.md
	$(BIN)/python -m $(INSTALL) -e '.[dev,reliability]'
	$(BIN)/python -m reliability.mutants
	$(BIN)/python -m reliability.report

study: $(READY)  ## every model on the real pairs in DATA, on ENCODER too, days; goes on where it stopped; writes docs/study
	$(BIN)/python -m study --data $(DATA) --budget $(BUDGET) --workers $(WORKERS) $(if $(ENCODER),--encoder $(ENCODER))

clean:
	rm -rf $(VENV) docs/_build

# The stamp is written last: an interrupted installation starts over.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 10) else "nlilayers needs Python 3.10 or later, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m $(INSTALL) -e '.[dev]'
	touch $@
