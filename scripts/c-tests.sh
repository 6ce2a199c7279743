#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the C tests under the sanitizers.
set -eu

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
