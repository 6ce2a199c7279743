#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all tests: the C ones under the sanitizers, those of the view's TypeScript, then pytest on the installed wheel, on
# all processors up to four. Which tests run at the same time is said in tests/support/ibprof_testing/scheduling.py.
# Arguments go to pytest.
set -eu

root=$PWD
PATH=$root/.venv-dev/bin:$PATH
export PATH

processors=$(nproc)

c_tests() { # SANITIZERS FOLDER TARGET TESTS
    cmake -S . -B "$2" -DCMAKE_BUILD_TYPE=Debug -DIBPROF_TESTS=ON -DIBPROF_SANITIZE="$1" >"$2-cmake.log" || {
        cat "$2-cmake.log"
        exit 1
    }
    cmake --build "$2" --parallel "$processors" --target "$3"
    ctest --test-dir "$2" -R "$4" --parallel "$processors" --output-on-failure --no-tests=error
}

mkdir -p build
c_tests ON build/tests all .
# Tests with threads run once more: the thread sanitizer cannot be combined with the others.
c_tests thread build/tests-threads test_verbs '^verbs$'

npm --prefix viewer --silent test

# Tests, and the programs that they start, import the installed package, not the sources in this folder.
unset PYTHONPATH
cd build
exec pytest -c "$root/pyproject.toml" --rootdir "$root" "$root/tests" "$root/studies" \
    -n auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder "$@"
