#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a package for Debian 12 or Ubuntu 24.04 and newer, which uses the system's Python, from a wheel of `make wheels`:
#
#     scripts/make-deb.sh WHEEL FOLDER
set -eu
umask 022 # all users must be able to read the package's files

wheel=$1
folder=$2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
packages=$tree/usr/lib/python3/dist-packages
mkdir -p "$folder" "$packages" "$tree/DEBIAN"
case $wheel in *_aarch64.whl) processor=aarch64 machine=arm64 ;; *) processor=x86_64 machine=amd64 ;; esac
python3 -m pip install --quiet --root-user-action ignore --no-deps --no-compile --target "$packages" \
    --only-binary :all: --platform "manylinux_2_17_$processor" "$wheel"
mv "$packages/bin" "$tree/usr/bin"
sed -i '1s,.*,#!/usr/bin/python3,' "$tree"/usr/bin/*
depends=$(sed -n '/extra ==/d; s/pyyaml/yaml/; s/numpy>=/numpy>=1:/; s/^Requires-Dist: \([a-z]*\)>=\(.*\)/, python3-\1 (>= \2)/p' \
    "$packages"/ibprof-*.dist-info/METADATA | tr -d '\n')
version=$(sed -n 's/^Version: //p' "$packages"/ibprof-*.dist-info/METADATA)
cat >"$tree/DEBIAN/control" <<END
Package: ibprof
Version: $version
Architecture: $machine
Maintainer: The ibprof developers
Depends: python3 (>= 3.10)$depends
Description: Profiler of MPI jobs on InfiniBand
 Which network links does an MPI job load, who loads them, and what should be changed?
END
chmod 0755 "$tree" "$tree/DEBIAN"
dpkg-deb --root-owner-group --build "$tree" "$folder/ibprof_${version}_$machine.deb"
