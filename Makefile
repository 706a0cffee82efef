# The verbs people and CI share. What a verb needs is set up on first use, into .venv, .tools and
# vscode-extension/node_modules and nowhere else, with what is downloaded in the caches that uv, pip and npm already have
# in your home folder, or else in .tools; once it is there, set-up costs nothing. Needed on the machine: Python 3.11+,
# git, make, and a package registry.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := setup
.PHONY: setup help demo demo-vscode test test-quick test-without test-vscode test-neovim-versions check bench bench-faces bench-tasks soak vsix site generate facts format lock clean vsix-platforms image feature

PYTHON ?= $(shell command -v python3.11 || command -v python3)
# Tests of processes wait for a third of their time: on two cores five are done 12 % sooner than three.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 2) + 1)')
BIN := .venv/bin
SOURCES := $(shell find server protocol -name '*.py')
# pip asks `rustc` for its version, to tell the index, and rustup's would leave settings in the home folder.
NO_RUSTUP := RUSTUP_AUTO_INSTALL=0 RUSTUP_HOME="$(CURDIR)/.venv/rustup"
# Our lists are complete. Left to resolve, pip refuses them by their hashes as soon as an index has a newer version of
# what one of them wants with an extra (google-auth[requests]).
PIP_THAT_BUILDS := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps
PIP := $(NO_RUSTUP) $(PIP_THAT_BUILDS)
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm
EXTENSION := vscode-extension/node_modules/.installed
PEERS := .tools/mcp/.installed .tools/acp/.installed .tools/acp-python/.installed
TSC := $(BIN)/node .tools/typescript/node_modules/typescript/bin/tsc
CACHES := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
export UV_CACHE_DIR ?= $(or $(wildcard $(CACHES)/uv),$(CURDIR)/.tools/caches/uv)
export PIP_CACHE_DIR ?= $(or $(wildcard $(CACHES)/pip),$(CURDIR)/.tools/caches/pip)
export npm_config_cache ?= $(or $(wildcard $(HOME)/.npm),$(CURDIR)/.tools/caches/npm)
export PYRIGHT_PYTHON_CACHE_DIR := $(CURDIR)/.tools/pyright
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

setup: .venv/.compiled  ## .venv/bin/amanu, ready to run
	@$(if $(filter-out setup,$(MAKECMDGOALS)),:,echo "ready: .venv/bin/amanu")

help:  ## these verbs
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1	\2/p' Makefile | expand -t 24

demo: setup  ## the main job on a small sample project, with a scripted model and no key
	@$(BIN)/amanu demo

demo-vscode: setup  ## the same in VS Code, in your browser
	@test -f $(EXTENSION) || echo "getting what builds the extension (once; 110 MB, 220 MB on the disk)"
	@$(MAKE) --no-print-directory $(EXTENSION)
	@test -f .tools/vscode/.installed || echo "getting VS Code as a web page (once; 100 MB, 270 MB on the disk)"
	@$(MAKE) --no-print-directory vsix .tools/vscode/.installed
	@AMANU_VSCODE="$(CURDIR)/.tools/vscode" PYTHONPATH=tests $(BIN)/python -m support.browser_demo

test: setup $(PEERS) $(EXTENSION)  ## all tests; what is skipped is listed
	@cd vscode-extension && $(NPM) test --silent
	@.ci/strace
	@.ci/bubblewrap
	@.ci/openssh
	@.ci/emacs/install
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -rfEs \
	  --ignore-glob='tests/editors/test_vscode*.py'
	@$(MAKE) --no-print-directory test-vscode

test-quick: setup  ## the tests that your change touches most likely, in a minute; ROOMS="shell tools": those of these rooms
	@tests=$$(PYTHONPATH=tests $(BIN)/python -m support.touched_tests $(ROOMS)); \
	  if [ -n "$$tests" ]; then $(BIN)/python -m pytest -n 2 --dist worksteal -q $$tests; fi
	@git diff --quiet HEAD -- vscode-extension || $(MAKE) --no-print-directory $(EXTENSION)
	@git diff --quiet HEAD -- vscode-extension || { cd vscode-extension && $(NPM) exec vitest -- run --changed HEAD; }

test-without: setup  ## types and tests of all but one part, in a copy: PART=hooks
	@.ci/without $(PART)

test-vscode: vsix .tools/vscode/.installed .tools/playwright/.installed .tools/wheelhouse/.installed  ## of these, the ones in a real VS Code
	@.ci/vscode/chromium
	@tests() { AMANU_VSCODE="$(CURDIR)/.tools/vscode" AMANU_WHEELHOUSE="$(CURDIR)/.tools/wheelhouse" \
	    PYTHONPATH="$(CURDIR)/.tools/playwright" $(BIN)/python -m pytest -q -rfEs "$$@" tests/editors/test_vscode*.py; }; \
	  tests -n 2 --dist worksteal || { echo "what failed in a window that tests share, once more:"; tests --last-failed --last-failed-no-failures none; }

test-neovim-versions: setup  ## the Neovim tests with 0.10, 0.11 and 0.12; a version that cannot be had is skipped
	@.ci/neovim/test

check: setup .tools/typescript/.installed $(EXTENSION)  ## formatting, lints, types, layers, generated files, wheels
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@.ci/together '$(BIN)/pyright' \
	  '$(BIN)/python -m pytest -q tests/unit/test_layers.py && $(BIN)/python protocol/generate.py --check' \
	  '$(TSC) --project .ci/typescript && cd vscode-extension && $(NPM) run --silent check' \
	  '.ci/platforms'
	@echo "check: all is well"

bench: setup .tools/typescript/.installed $(EXTENSION)  ## speed, as ratios within one run; how well loops are seen and edits placed
	@$(BIN)/python -m bench.loops
	@$(BIN)/python -m bench.edits
	@$(BIN)/python -m bench.consent
	@$(BIN)/python -m bench.endings || echo "bench: a goal is missed, see bench/endings/results.md"
	@$(BIN)/python -m bench.cache || echo "bench: a goal is missed, see bench/cache.md"
	@$(BIN)/python -m bench.sandbox || echo "bench: a goal is missed, see bench/sandbox.md"
	@$(BIN)/python -m bench.storing || echo "bench: a goal is missed, see bench/storing.md"
	@$(BIN)/python -m bench.terminal || echo "bench: the terminal is not measured"
	@$(BIN)/python -m bench.search || echo "bench: a goal is missed, see bench/search.md"
	@$(BIN)/python -m bench.questions
	@if [ -f bench/__main__.py ]; then $(BIN)/python -m bench; else echo "bench: nothing to measure yet"; fi

bench-faces: vsix .tools/vscode/.installed .tools/playwright/.installed .tools/wheelhouse/.installed  ## what drawing costs in the editors, for short sessions and long ones
	@.ci/vscode/chromium
	@AMANU_VSCODE="$(CURDIR)/.tools/vscode" AMANU_WHEELHOUSE="$(CURDIR)/.tools/wheelhouse" \
	  PYTHONPATH="$(CURDIR)/.tools/playwright:$(CURDIR)/tests" $(BIN)/python -m bench.faces

bench-tasks: vsix .tools/vscode/.installed .tools/playwright/.installed .tools/wheelhouse/.installed  ## ten tasks in VS Code by pointer and keyboard
	@.ci/vscode/chromium
	@AMANU_VSCODE="$(CURDIR)/.tools/vscode" AMANU_WHEELHOUSE="$(CURDIR)/.tools/wheelhouse" \
	  PYTHONPATH="$(CURDIR)/.tools/playwright:$(CURDIR)/tests" $(BIN)/python -m bench.tasks

soak: setup  ## hours of turns; memory, threads and files must stay flat; the sweeps of which make test takes a sample
	@AMANU_SWEEPS=whole $(BIN)/python -m pytest --hypothesis-profile=default -n $(WORKERS) --dist worksteal -q -rfEs $$(grep -rlE "from support.(vendor_)?sweeps" tests --include='test_*.py')
	@if [ -f bench/soak.py ]; then $(BIN)/python -m bench.soak; else echo "soak: nothing to run yet"; fi

vsix: setup $(EXTENSION)  ## the VS Code extension as a package, dist/amanu.vsix
	@$(BIN)/python vscode-extension/bundle.py vscode-extension/dist/daemon
	@cd vscode-extension && $(NPM) run --silent build && $(NPM) run --silent package

site: setup .tools/site/.installed  ## the documents as a site, dist/site/index.html, which needs no web server
	@rm -rf dist/site
	@PYTHONPATH="$(CURDIR)/.tools/site" $(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going \
	  --conf-dir .ci/site --doctree-dir .tools/site/doctrees . dist/site
	@$(BIN)/python .ci/site/check.py dist/site

# The wheels are some 270 MB, fetched once. PLATFORMS=linux-x64: for that one alone.
vsix-platforms: setup $(EXTENSION)  ## likewise, one for each platform, which brings all packages: dist/amanu-linux-x64.vsix, …
	@cd vscode-extension && $(NPM) run --silent build
	@for platform in $${PLATFORMS:-$$($(BIN)/python vscode-extension/bundle.py --platforms)}; do \
	  $(BIN)/python vscode-extension/bundle.py vscode-extension/dist/daemon $$platform; \
	  (cd vscode-extension && $(NPM) run --silent package -- $$platform); \
	done
	@$(BIN)/python vscode-extension/bundle.py vscode-extension/dist/daemon
	@ls -l dist/amanu-*.vsix | awk '{printf "%5.1f MB  %s\n", $$5 / 1e6, $$NF}'

image: setup  ## a container image, amanu:local, built by docker or podman
	@$(BIN)/python vscode-extension/bundle.py .tools/image/daemon
	@$$(command -v docker || echo podman) build --tag amanu:local --file .ci/container/Dockerfile .tools/image

feature: setup  ## a dev container feature, dist/feature/amanu, to copy into .devcontainer
	@rm -rf dist/feature && mkdir -p dist/feature && cp -R .ci/container/feature/amanu dist/feature/
	@$(BIN)/python vscode-extension/bundle.py dist/feature/amanu/daemon

generate: setup  ## write what is derived: from protocol/amanu_protocol, tables of documents, docs/config.md, completions, man page, notices
	@$(BIN)/python .ci/release/version.py
	@$(BIN)/python protocol/generate.py
	@PYTHONPATH=tests $(BIN)/python -m support.vendor_matrix
	@PYTHONPATH=tests $(BIN)/python -m support.settings_page
	@PYTHONPATH=tests $(BIN)/python -m support.places_page
	@PYTHONPATH=tests $(BIN)/python -m support.notices_page
	@PYTHONPATH=tests $(BIN)/python -m support.privacy_page
	@PYTHONPATH=tests $(BIN)/python -m support.shell_files

# Newest, and beside .venv: a second opinion on what we ship, which nothing that is shipped imports.
facts: setup  ## where the newest SDKs and price lists differ from our table of models; offline, those kept from the last time
	@mkdir -p .tools/facts
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --retries 1 --timeout 10 \
	  --target .tools/facts/packages 'anthropic<3' 'google-genai<4' 'openai<4' 'genai-prices<1' 2>.tools/facts/log \
	  || echo "facts: no package could be had (.tools/facts/log); those kept from the last time are used"
	@PYTHONPATH=.tools/facts/packages:tests $(BIN)/python -m support.model_facts

.PHONY: release release-check publish
# They import bundle.py of the extension.
release: setup .tools/release/.installed  ## all that is published, from the last commit, into dist/release (docs/releasing.md)
	@PYTHONPATH=vscode-extension $(BIN)/python .ci/release/build.py

release-check: setup $(EXTENSION) .tools/release/.installed  ## install dist/release in every way, each in a new home; PYTHONS="python3.11 python3.14"
	@PYTHONPATH=vscode-extension $(BIN)/python .ci/release/check.py $(PYTHONS)

publish: setup $(EXTENSION) .tools/ovsx/.installed  ## publish dist/release; needs the accounts, asks first; DRY_RUN=1 only says what it would do
	@PYTHONPATH=vscode-extension $(BIN)/python .ci/release/publish.py $(if $(DRY_RUN),--dry-run)

format: setup
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lock: setup  ## choose the newest allowed versions again
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --extra dev \
	  --custom-compile-command "make lock" pyproject.toml -o requirements.lock
	@echo 'playwright>=1.65,<2' | $(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes \
	  --custom-compile-command "make lock" - -o .ci/vscode/requirements.txt
	@echo 'agent-client-protocol==0.12.1' | $(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes \
	  --custom-compile-command "make lock" - -o .ci/acp/requirements.txt
	@printf 'furo>=2025.12\nmyst-parser>=5,<6\nsphinx>=9,<10\n' | $(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes \
	  --python-version 3.11 --custom-compile-command "make lock" - -o .ci/site/requirements.txt
	@printf '%s\n' 'cyclonedx-python-lib[json-validation]>=11,<12' 'pipx>=1.18,<2' | $(BIN)/uv pip compile --quiet --upgrade \
	  --universal --generate-hashes --custom-compile-command "make lock" - -o .ci/release/requirements.txt

clean:  ## remove what the verbs above made
	@rm -rf .venv .tools dist vscode-extension/node_modules vscode-extension/dist vscode-extension/ThirdPartyNotices.txt .pytest_cache .ruff_cache .hypothesis
	@find server protocol tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Amanu needs Python 3.11 or newer; set PYTHON=…")'
	@echo "setting up .venv (once; a minute or two)"
	@$(NO_RUSTUP) $(PYTHON) -m venv .venv
	@awk '/^uv==/ {on = 1} on && /# via/ {exit} on' requirements.lock > .venv/uv.lock
	@$(PIP) --requirement .venv/uv.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode --requirement requirements.lock \
	  || { echo "uv could not; pip does it, slower"; $(PIP_THAT_BUILDS) --requirement requirements.lock; }
	@$(NO_RUSTUP) $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Explicitly, and after every change: a start-up that compiles what it imports takes three times as long, and
# PYTHONDONTWRITEBYTECODE may be set.
.venv/.compiled: .venv/.installed $(SOURCES)
	@$(BIN)/python -m compileall -q server protocol
	@touch $@

.tools/%/.installed: .ci/%/package-lock.json .venv/.installed
	@mkdir -p .tools/$* && cp .ci/$*/package.json .ci/$*/package-lock.json .tools/$*/
	@$(BIN)/npm ci --prefix .tools/$* --silent --no-audit --no-fund
	@touch $@

# Beside the SDK of .ci/acp/package.json, and apart from .venv: its own copy of pydantic is for test programs alone.
.tools/acp-python/.installed: .ci/acp/requirements.txt .venv/.installed
	@$(PIP) --target .tools/acp-python --upgrade --requirement .ci/acp/requirements.txt
	@touch $@

.tools/site/.installed: .ci/site/requirements.txt .venv/.installed
	@$(PIP) --target .tools/site --upgrade --requirement .ci/site/requirements.txt
	@touch $@

# Programs of their own, with what they need: pipx, and the schema of bills of materials.
.tools/release/.installed: .ci/release/requirements.txt .venv/.installed
	@$(PYTHON) -m venv --clear --without-pip .tools/release
	@PIP_PYTHON=.tools/release $(PIP) --requirement .ci/release/requirements.txt
	@touch $@

$(EXTENSION): vscode-extension/package.json vscode-extension/package-lock.json .venv/.installed
	@cd vscode-extension && $(NPM) ci --silent --no-audit --no-fund
	@touch $@

.tools/vscode/.installed: .ci/vscode/install .venv/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" .ci/vscode/install "$(CURDIR)/.tools/vscode"
	@touch $@

.tools/playwright/.installed: .ci/vscode/requirements.txt .venv/.installed
	@$(PIP) --target .tools/playwright --upgrade --requirement .ci/vscode/requirements.txt
	@touch $@

# What the extension installs, for the test that lets it: no test needs the network.
.tools/wheelhouse/.installed: requirements.lock pyproject.toml vscode-extension/bundle.py .venv/.installed
	@rm -rf .tools/wheelhouse && $(BIN)/python vscode-extension/bundle.py .tools/wheelhouse
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
	  --requirement .tools/wheelhouse/requirements.txt --dest .tools/wheelhouse
	@rm .tools/wheelhouse/amanu-*.whl && touch $@
