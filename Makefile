# make demo   fit, predict and draw on the data that come with the library
# make test   ruff, mypy, pytest
# make docs   the site, with its pictures, into docs/_build/html; warnings are errors
# make bench  speed and memory, as ratios measured in one run
# Each makes its own virtual environment in .venv on first use, and reuses it until pyproject.toml or constraints.txt change.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test docs bench clean

demo: $(VENV)/installed
	$(BIN)/gramian demo

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest || { \
	  echo "Some failed beside others on a busy machine, perhaps for want of time or memory: once more, alone."; \
	  $(BIN)/pytest -n 0 --last-failed --last-failed-no-failures none; }

docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build -b html -E -W --keep-going -q docs docs/_build/html
	@echo "the site is in docs/_build/html/index.html"

bench: $(VENV)/installed-test
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) gramian-demo docs/_build docs/api docs/examples .nox build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .jax_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "gramian needs Python 3.11 or later; try: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/installed-test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	@touch $@ $(VENV)/installed

$(VENV)/installed-docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[mcmc,docs]"
	@touch $@
