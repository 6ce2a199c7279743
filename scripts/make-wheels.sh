#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds wheels for any Linux with glibc 2.17 (2012) or newer and any Python from 3.10 on, with zig's C compiler:
#
#     scripts/make-wheels.sh FOLDER [MACHINE...]      x86_64 and aarch64 if none is named
set -eu

folder=$1
shift
[ $# != 0 ] || set -- x86_64 aarch64
tools=$PWD/.venv-wheels
scripts/make-venv.sh "$tools" 'ziglang==0.13.0' 'scikit-build-core>=0.10' 'cffi>=1.15' 'auditwheel>=6' 'wheel>=0.45' ninja cmake
mkdir -p "$folder" build/wheels
for machine in "$@"; do
    compiler=$PWD/build/wheels/cc-$machine
    printf '#!/bin/sh\nexec %s/bin/python -m ziglang cc -target %s-linux-gnu.2.17 "$@"\n' "$tools" "$machine" >"$compiler"
    chmod +x "$compiler"
    rm -rf "build/wheels/$machine"
    # The linker strips the libraries, because the machine's own strip supports only one kind of processor.
    PATH=$tools/bin:$PATH CC=$compiler LDFLAGS=-Wl,-s "$tools/bin/pip" wheel --quiet --no-deps --no-build-isolation \
        --config-settings install.strip=false \
        --config-settings cmake.define.CMAKE_SYSTEM_NAME=Linux \
        --config-settings "cmake.define.CMAKE_SYSTEM_PROCESSOR=$machine" \
        --wheel-dir "build/wheels/$machine" .
    "$tools/bin/wheel" tags --remove --platform-tag "manylinux_2_17_$machine.manylinux2014_$machine" build/wheels/"$machine"/*.whl
    "$tools/bin/auditwheel" show build/wheels/"$machine"/*.whl | tr '\n' ' ' | grep -q "manylinux_2_17_$machine" || {
        "$tools/bin/auditwheel" show build/wheels/"$machine"/*.whl >&2
        exit 1
    }
    mv build/wheels/"$machine"/*.whl "$folder"
done
ls -l "$folder"
