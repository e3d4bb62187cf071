# Every verb makes what it needs: a `.venv` in the checkout, installed from requirements.lock.
# Pass more to the tool behind a verb with ARGS, as in: make test ARGS="-k sse -x"

.DEFAULT_GOAL := help
.PHONY: help demo test conform test-services test-agents test-browser test-readme test-install fuzz cover check bench bench-peers dist docs prices lock clean
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

ARGS ?=
FUZZ_SECONDS ?= 300

BIN := .venv/bin
READY := .venv/.ready
UV := $(BIN)/python scripts/uv.py

# GNU make sets MAKE_TERMOUT when it writes to a terminal.
BOLD := $(if $(MAKE_TERMOUT),$(shell printf '\033[1m'))
PLAIN := $(if $(MAKE_TERMOUT),$(shell printf '\033[0m'))
say = @echo "$(BOLD)· $(1)$(PLAIN)"

help:  ## list the verbs
	@sed -nE 's/^([a-z-]+):.*## (.*)/  $(BOLD)make \1$(PLAIN)	\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(READY)  ## run the gateway with a scripted model behind it: no key, no network
	@$(BIN)/dragoman demo $(ARGS)

test: $(READY)  ## run the tests
	$(call say,tests)
	@$(BIN)/pytest -q -n auto $(ARGS)
ifeq ($(ARGS),)
	$(call say,what runs on the event loop once more, on asyncio's own)
	@DRAGOMAN_LOOP=asyncio $(BIN)/pytest -q -n auto tests/transport tests/gateway
endif

test-services: $(READY)  ## test on a real PostgreSQL and a real Valkey or Redis (installs Debian packages as root)
	$(call say,tests on real services)
	@$(BIN)/python scripts/services.py
	@DRAGOMAN_SERVICES=1 $(BIN)/pytest -q -n auto tests/services $(ARGS)

test-agents: $(READY)  ## run real agents and SDKs from npm and PyPI through the gateway (some: ARGS="claude codex")
	$(call say,agents)
	@$(BIN)/python tests/agents $(ARGS)

test-browser: $(READY)  ## test the inspector in headless Chromium (installs it where it can)
	$(call say,tests in a browser)
	@$(UV) pip install --quiet --python $(BIN)/python -r requirements-browser.lock
	@chromium=$$($(BIN)/python scripts/chromium.py) && \
	  DRAGOMAN_CHROMIUM=$$chromium $(BIN)/pytest -q tests/browser $(ARGS)

test-readme: $(READY)  ## run the README's two commands in a fresh clone (only the demo, with a stopwatch: ARGS=--demo)
	$(call say,the two commands of the README)
	@$(BIN)/python tests/fresh_clone.py $(ARGS)

test-install: $(READY)  ## install it as users do (pip, uv, the image's steps) into scratch folders, and use it
	$(call say,installs)
	@$(BIN)/python tests/install $(ARGS)

conform: $(READY)  ## play every recorded case through the gateway, in every protocol
	$(call say,conformance)
	@DRAGOMAN_CONFORM=all $(BIN)/pytest -q -n auto tests/conformance/test_conform_gateway.py $(ARGS)

fuzz: $(READY)  ## run each fuzzer for FUZZ_SECONDS (300)
	$(call say,fuzzing ($(FUZZ_SECONDS) s each))
	@DRAGOMAN_FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/pytest -q -n auto --timeout=0 tests/fuzz $(ARGS)

cover: $(READY)  ## run the tests and report branch coverage
	$(call say,coverage)
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q -n auto $(ARGS)
	@$(BIN)/coverage combine -q && $(BIN)/coverage report

check: $(READY)  ## lint, formatting, types
	$(call say,lint)
	@$(BIN)/ruff check
	$(call say,formatting)
	@$(BIN)/ruff format --check
	$(call say,types)
	@$(BIN)/pyright

bench: $(READY)  ## measure Dragoman beside the floors (quick: ARGS="--only S2 --rounds 3"; instructions: ARGS=--budget)
	@$(BIN)/python -m bench $(ARGS)

bench-peers: $(READY)  ## the same beside LiteLLM, claude-code-router, Portkey and TensorZero, installed below .bench
	@$(BIN)/python -m bench --peers $(ARGS)

dist: $(READY)  ## build the sdist, the wheel, and an SBOM of what the wheel installs, into dist/
	$(call say,packages)
	@rm -rf dist && $(BIN)/python -m hatchling build
	$(call say,SBOM)
	@$(UV) pip install --quiet --python $(BIN)/python -r requirements-release.lock
	@$(BIN)/python -m venv --clear --without-pip .cache/sbom
	@$(UV) pip install --quiet --python .cache/sbom/bin/python --constraint requirements.lock dist/*.whl
	@$(BIN)/cyclonedx-py environment .cache/sbom --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/dragoman.cdx.json

docs: $(READY)  ## build the documentation into site/; a broken link fails
	$(call say,documentation)
	@$(BIN)/zensical build --strict --clean

prices: $(READY)  ## write the table of prices from the data of genai-prices of the lock
	$(call say,prices)
	@$(BIN)/python scripts/prices.py

lock: | $(BIN)/uv  ## rewrite requirements.lock from pyproject.toml (newest: ARGS=--upgrade)
	$(call say,requirements.lock)
	@UV_CUSTOM_COMPILE_COMMAND="make lock" $(UV) pip compile --quiet pyproject.toml \
	  --all-extras --group dev --universal --python-version 3.11 --no-annotate \
	  --output-file requirements.lock $(ARGS)
	@UV_CUSTOM_COMPILE_COMMAND="make lock" $(UV) pip compile --quiet \
	  --group browser --constraint requirements.lock --universal --python-version 3.11 --no-annotate \
	  --output-file requirements-browser.lock $(ARGS)
	@UV_CUSTOM_COMPILE_COMMAND="make lock" $(UV) pip compile --quiet \
	  --group release --constraint requirements.lock --universal --python-version 3.11 --no-annotate \
	  --output-file requirements-release.lock $(ARGS)

clean:  ## remove everything the other verbs made
	@rm -rf .venv .bench .cache .coverage* .hypothesis .pytest_cache .ruff_cache dist site
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first Python that will do makes the environment. It needs neither ensurepip nor an activated
# shell. The lock holds the build backend too, so that nothing unpinned is fetched.
$(BIN)/uv:
	$(call say,making .venv)
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  $$python -c 'import pip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  $$python -m venv --without-pip .venv && \
	  exec $$python -m pip --python $(BIN)/python install --quiet --disable-pip-version-check \
	    --constraint requirements.lock pip uv; \
	done; echo "Python 3.11 or newer with pip is needed; name it with PYTHON=..." >&2; exit 1

$(READY): pyproject.toml requirements.lock | $(BIN)/uv
	$(call say,installing what requirements.lock names)
	@$(UV) pip sync --quiet --python $(BIN)/python requirements.lock || \
	  { echo "uv could not; trying pip" >&2; $(BIN)/python -m pip install --quiet -r requirements.lock; }
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
