# Every target that runs something prepares what it needs in .venv, from the hash-locked files in
# requirements/, and does nothing there when nothing changed.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV ?= .venv
PY := $(VENV)/bin/python
VARIANT ?= demo
PUSH =
OUT =
SIGN =
NOTATION =
T ?=
ARGS ?=

# pip reads these from the environment; what is installed must not depend on them. Where packages
# come from (an index, a mirror, a proxy) stays the machine's affair.
PIP := env -u PIP_CONSTRAINT -u PIP_REQUIRE_VIRTUALENV -u PIP_USER -u PIP_TARGET $(PY) -m pip \
	--disable-pip-version-check --quiet --no-input

UV_VERSION := 0.13.9

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' \
		$(firstword $(MAKEFILE_LIST))
	@echo
	@echo '  VARIANT=NAME which variant; PUSH=REF, OUT=DIR where it goes; SIGN=KEY who signs it there'
	@echo '  (1: the key named release), NOTATION=CERT for notation, too; T=PATH which tests;'
	@echo '  ARGS=... passed on; PYTHON=... which Python (3.11 or newer) makes .venv; VENV=DIR where it'
	@echo '  stands'

# --- use ---------------------------------------------------------------------------------------

.PHONY: venv
venv: $(VENV)/.bytecode ## prepare .venv for running builder

# One word of the shell, whatever is in it.
quoted = '$(subst ','\'',$(1))'

.PHONY: image
image: venv ## bake a variant: make image VARIANT=demo; PUSH=REF or OUT=DIR, and SIGN=1
	@$(VENV)/bin/builder build $(VARIANT) $(if $(PUSH),--push $(call quoted,$(PUSH))) \
		$(if $(OUT),--out $(call quoted,$(OUT))) \
		$(if $(SIGN),--sign $(if $(filter-out 1,$(SIGN)),$(call quoted,$(SIGN)),release)) \
		$(if $(NOTATION),--notation $(call quoted,$(NOTATION))) $(ARGS)

.PHONY: demo
demo: venv ## bake, sign and verify the demo, offline, from the files in this repository alone
	@sh tools/demo.sh $(VENV)/bin/builder $(ARGS)

.PHONY: nightly
nightly: venv ## try every pin that follows something; ARGS=--propose for pull requests
	@$(VENV)/bin/builder nightly $(ARGS)

# --- check -------------------------------------------------------------------------------------

.PHONY: check
check: dev ## everything that CI checks: format, lint, types, architecture, tests
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(PY) tools/budgets.py builder
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PY) -m pytest -n auto --dist loadfile $(ARGS) $(T)

.PHONY: test
test: dev ## the tests: make test T=tests/test_image.py ARGS='-k env'
	@$(PY) -m pytest $(ARGS) $(T)

.PHONY: fmt
fmt: dev ## format, and mend what the linter can mend
	$(VENV)/bin/ruff check --fix-only
	$(VENV)/bin/ruff format

.PHONY: golden
golden: dev ## accept the present output, in tests/golden/ and on the pages; review the diff
	$(PY) -m pytest -m golden --rewrite-golden $(ARGS) $(T)
	git status --short -- tests/golden builder/cli/help.txt README.md docs

.PHONY: real
real: dev ## bake and push real input: the vLLM wheel, a real diff, a real registry
	@$(PY) -m tests.real $(ARGS)

.PHONY: bench
bench: dev ## measure, beside the peers that are installed
	@$(PY) -m tests.bench $(ARGS)

.PHONY: reproduce
reproduce: dev ## build under other umasks, users, zones, directories, Pythons: one digest
	@$(PY) -m tests.reproduce $(ARGS)

# --- keep house --------------------------------------------------------------------------------

.PHONY: clean
clean: ## remove .venv and everything else that make made
	rm -rf $(VENV) $(VENV)-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A release has to be a week old before it is locked: most poisoned ones do not live that long.
LOCK = $(VENV)-lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --exclude-newer '7 days' \
	--custom-compile-command 'make lock-requirements' $(ARGS)

.PHONY: lock-requirements
lock-requirements: $(VENV)/.python ## renew all that is locked for pip; ARGS=--upgrade for newer releases
	$(PY) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip --quiet install uv==$(UV_VERSION)
	$(LOCK) -o requirements/run.txt pyproject.toml requirements/build.in
	$(LOCK) -o requirements/dev.txt --extra dev -c requirements/run.txt \
		pyproject.toml requirements/build.in
	$(LOCK) -o tests/real/model_signing.txt tests/real/model_signing.in
	$(LOCK) -o tests/real/hub_library.txt tests/real/hub_library.in
	rm -rf $(VENV)-lock

# --- .venv -------------------------------------------------------------------------------------

# Another PYTHON than the one that made .venv makes it anew.
ifneq ($(origin PYTHON),undefined)
ifneq ($(shell cat $(VENV)/.python 2>/dev/null),$(PYTHON))
.PHONY: $(VENV)/.python
endif
endif

$(VENV)/.python:
	@sh tools/venv.sh "$(VENV)" "$(PYTHON)"

$(VENV)/.run: requirements/run.txt pyproject.toml $(VENV)/.python
	@echo 'preparing $(VENV): what builder needs' >&2
	@$(PIP) install --require-hashes -r requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@touch $@

.PHONY: dev
dev: $(VENV)/.dev $(VENV)/.bytecode ## prepare .venv for the checks, too

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@echo 'preparing $(VENV): what the checks need' >&2
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

# Python writes no bytecode where PYTHONDONTWRITEBYTECODE is set, and would compile the program at
# every start.
$(VENV)/.bytecode: $(VENV)/.run $(shell find builder -name '*.py')
	@env -u PYTHONDONTWRITEBYTECODE -u PYTHONPYCACHEPREFIX $(PY) -m compileall -q builder
	@touch $@
