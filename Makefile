# One command each, from a fresh clone: `make demo`, `make test`. The first one builds the environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint format docs bench clean

demo: $(READY)  ## train both Decomposable Attention models on the generated corpus
	$(BIN)/python examples/demo.py

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

bench: $(READY)  ## the figures of benchmarks/README.md, measured here
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) docs/_build

# The stamp is written last: an interrupted installation starts over.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 10) else "nlilayers needs Python 3.10 or later, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@
