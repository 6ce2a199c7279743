#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all tests: the C ones under the sanitizers, then pytest on the installed wheel. Arguments go to pytest.
set -eu

root=$PWD
PATH=$root/.venv-dev/bin:$PATH
export PATH

c_tests() { # SANITIZERS FOLDER TARGET TESTS
    cmake -S . -B "$2" -DCMAKE_BUILD_TYPE=Debug -DIBPROF_TESTS=ON -DIBPROF_SANITIZE="$1" >build/cmake.log || {
        cat build/cmake.log
        exit 1
    }
    cmake --build "$2" --parallel --target "$3"
    ctest --test-dir "$2" -R "$4" --output-on-failure --no-tests=error
}

mkdir -p build
c_tests ON build/tests all .
# Those that run threads, once more: two sanitizers cannot be in one program.
c_tests thread build/tests-threads test_verbs '^verbs$'

# Tests, and the programs that they start, import what is installed: not from here, where the sources lie.
unset PYTHONPATH
cd build
exec pytest -c "$root/pyproject.toml" --rootdir "$root" "$root/tests" "$@"
