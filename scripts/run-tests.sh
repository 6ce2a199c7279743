#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all tests: C, the view's TypeScript, then pytest on the installed wheel. pytest uses IBPROF_TEST_WORKERS workers,
# by default one for each processor, at most four. tests/support/ibprof_testing/scheduling.py decides which tests run at
# the same time. The end of the output lists the time of each kind. Arguments go to pytest.
set -eu

root=$PWD
PATH=$root/.venv-dev/bin:$PATH
export PATH

scripts/timed.sh 'C tests' scripts/c-tests.sh
scripts/timed.sh 'npm test' npm --prefix viewer --silent test

# Tests, and the programs that they start, import the installed package, not the sources in this folder.
unset PYTHONPATH
# pytest compiles each test module. The next run should find it compiled.
unset PYTHONDONTWRITEBYTECODE
cd build
IBPROF_TEST_TIMES=$root/build/test-times exec pytest -c "$root/pyproject.toml" --rootdir "$root" "$root/tests" \
    "$root/studies" -n "${IBPROF_TEST_WORKERS:-auto}" --maxprocesses 4 --dist loadgroup --no-loadscope-reorder "$@"
