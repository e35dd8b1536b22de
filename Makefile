# Every target sets up .venv by itself; a machine needs Python 3.11 or newer and make, nothing else.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin/python -m
OLDEST := .venv-oldest
# one more than there are cores: tests of servers and browsers wait more than they compute
WORKERS := $(shell expr $$(nproc 2> /dev/null || sysctl -n hw.ncpu 2> /dev/null || echo 2) + 1)
ALONE := .venv-alone
SMOKE := tests/test_import.py tests/streams/run/test_loop.py tests/streams/policies/test_storage.py tests/plants/model/test_model.py \
	tests/plants/data/test_reading.py tests/cli/test_main.py tests/cli/test_calibrate.py tests/cli/test_identify.py \
	tests/cli/test_reproduce.py tests/cli/test_report.py

.DEFAULT_GOAL := check
.PHONY: check demo live reproduce test test-kernels test-oldest test-slow lint format bench build docs reference picture clean

check: test lint            ## before every commit

demo: $(VENV)/.all          ## from a plant's CSV files to its wrong sensors, then a search to watch; output in demo/
	$(VENV)/bin/eccaht example --kind concealed --out demo
	$(VENV)/bin/eccaht calibrate demo/history.csv --out demo/plant.model
	$(VENV)/bin/eccaht identify --model demo/plant.model --data demo/incident.csv \
		--plot demo/incident.png --html demo/incident.html
	cat demo/truth.json
	$(VENV)/bin/eccaht demo --out demo

live: $(VENV)/.live         ## the service with a simulated plant whose sensors fail now and then: open the URL that it prints
	$(VENV)/bin/eccaht serve --demo --port $(or $(PORT),8765)

reproduce: $(VENV)/.all     ## every experiment of the paper; tables and figures go to results/
	$(VENV)/bin/eccaht reproduce all --out results

test: $(VENV)/.test         ## all tests except the long statistical ones
	$(RUN) pytest -n $(WORKERS) --dist worksteal

test-kernels: $(VENV)/.test ## the numerical tests with the arithmetic of every processor that this one can stand for
	$(RUN) tests.kernels -n $(WORKERS) --dist worksteal

test-oldest: $(OLDEST)/.done ## a search, a calibration, a reproduction and a report with the oldest versions we allow
	$(OLDEST)/bin/python -m pytest -W default $(SMOKE)  # old versions warn of their newer neighbours

test-slow: $(VENV)/.test    ## the long statistical checks
	$(RUN) pytest -n $(WORKERS) --dist worksteal -m slow

lint: $(VENV)/.lint         ## style, types, import layers, spelling
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/codespell src tests benchmarks docs deploy .github *.md

format: $(VENV)/.lint
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

bench: $(VENV)/.bench       ## side by side with general-purpose solvers; tables and figures go to bench/
	$(RUN) benchmarks --out bench

build:                      ## a wheel in dist/, installed into an empty environment: a search with the library alone, then with everything
	$(PYTHON) -m venv --clear $(ALONE)
	rm -rf dist
	$(ALONE)/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(ALONE)/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	cd $(ALONE) && bin/python -I ../tests/library_alone.py
	! $(ALONE)/bin/eccaht policies  # one line says what is missing
	$(ALONE)/bin/pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[all]"
	cd $(ALONE) && bin/eccaht --version && bin/eccaht policies && bin/eccaht demo --help
	cd $(ALONE) && bin/eccaht example --out plant && bin/eccaht calibrate plant/history.csv --out plant/plant.model
	@ls -l dist/*.whl

docs: $(VENV)/.docs         ## the site, in site/
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict --quiet
	@echo "open site/index.html, or with its search: python3 -m http.server --directory site"

reference: $(VENV)/.live    ## the generated parts of docs/reference, made again from the code
	$(RUN) docs.generate

picture: $(VENV)/.all       ## the pictures of docs, drawn again
	$(VENV)/bin/python docs/pictures.py

clean:
	rm -rf $(VENV) $(OLDEST) $(ALONE) demo bench dist site

$(VENV)/bin/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'eccaht needs Python 3.11 or newer: make PYTHON=/path/to/python3.11')"
	$(PYTHON) -m venv $(VENV)

# .venv/.all is there once '.[all]' is installed, and so for every other extra of pyproject.toml
$(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

# pyproject says what the oldest versions are: "numpy>=2.0" is installed as "numpy==2.0".
$(OLDEST)/.done: pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
		extras = project['optional-dependencies']; everything = extras['all'][0][len('eccaht['):-1].split(','); \
		needed = project['dependencies'] + [package for extra in everything for package in extras[extra]]; \
		print(*(package.replace('>=', '==') for package in needed), sep='\n')" > $(OLDEST)/versions.txt
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check --editable '.[all]' 'pytest>=8' 'hypothesis>=6.100' \
		--requirement $(OLDEST)/versions.txt
	@touch $@
