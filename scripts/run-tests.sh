#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all tests: the C ones under the sanitizers, then pytest on the installed wheel. Arguments go to pytest.
set -eu

root=$PWD
PATH=$root/.venv-dev/bin:$PATH
export PATH

mkdir -p build
cmake -S . -B build/tests -DCMAKE_BUILD_TYPE=Debug -DIBPROF_TESTS=ON -DIBPROF_SANITIZE=ON >build/cmake.log || {
    cat build/cmake.log
    exit 1
}
cmake --build build/tests --parallel
ctest --test-dir build/tests --output-on-failure --no-tests=error

# Tests, and the programs that they start, import what is installed: not from here, where the sources lie.
unset PYTHONPATH
cd build
exec pytest -c "$root/pyproject.toml" --rootdir "$root" "$root/tests" "$@"
