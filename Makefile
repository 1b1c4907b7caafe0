# One command each, from a fresh clone: `make demo`, `make test`. The first one builds the environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint format docs bench reliability mutants clean

# Small models without dropout show what word order is worth in a minute; one thread each is fastest at this size.
DEMO := --hidden-size 64 --vector-size 64 --dropout 0 --no-glorot --optimizer adam --lr 1e-3 --batch-size 32 --epochs 10
DEMO_RUNS ?= runs/demo
ATTACKS := precision spread faults hostile installing

demo: $(READY)  ## Decomposable Attention, with and without word order, on the generated corpus
	OMP_NUM_THREADS=1 $(BIN)/python examples/decomposable_attention.py train $(DEMO) --output $(DEMO_RUNS)/vanilla
	OMP_NUM_THREADS=1 $(BIN)/python examples/decomposable_attention.py train $(DEMO) --output $(DEMO_RUNS)/intra --intra-attention
	$(BIN)/python examples/compare.py $(DEMO_RUNS)/vanilla $(DEMO_RUNS)/intra

test: $(READY)  ## tests, doctests and the README's code
	HYPOTHESIS_PROFILE=$(if $(CI),ci,dev) $(BIN)/python -m pytest $(ARGS)

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## the site, in docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(READY)  ## every benchmark, measured here; writes the tables in benchmarks/
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,bench]'
	$(BIN)/python -m benchmarks

reliability: $(READY)  ## every attack at full size; writes docs/reliability
	for attack in $(ATTACKS); do $(BIN)/python -m reliability.$$attack || exit 1; done
	$(BIN)/python -m reliability.report

mutants: $(READY)  ## every mutant of the library, an hour or more; writes docs/reliability/mutants.md
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,reliability]'
	$(BIN)/python -m reliability.mutants
	$(BIN)/python -m reliability.report

clean:
	rm -rf $(VENV) docs/_build

# The stamp is written last: an interrupted installation starts over.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 10) else "nlilayers needs Python 3.10 or later, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@
