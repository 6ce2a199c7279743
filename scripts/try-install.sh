#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a wheel on minimal systems without a compiler, and runs the doctor and the demo there. As root, with debootstrap:
#
#     scripts/try-install.sh WHEELS FOLDER SUITE[=MIRROR]...
#
# WHEELS is a folder with ibprof's wheels. FOLDER gets one system for each SUITE: trixie (Debian 13, Python 3.13),
# sid (Python 3.14), noble=http://archive.ubuntu.com/ubuntu (Ubuntu 24.04, Python 3.12).
set -eu

wheels=$1
folder=$2
shift 2
mkdir -p "$folder"
for suite; do
    mirror=http://deb.debian.org/debian
    case $suite in *=*) mirror=${suite#*=} suite=${suite%%=*} ;; esac
    root=$(realpath "$folder")/$suite
    [ -e "$root/made" ] || {
        rm -rf "$root"
        debootstrap --variant=minbase --components=main,universe --include=python3-venv,ca-certificates \
            "$suite" "$root" "$mirror" >"$root.log" 2>&1 || {
            tail "$root.log" >&2
            exit 1
        }
        touch "$root/made"
    }
    # The names of hosts and the certificates are this machine's, so that pip finds the same package index.
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    rm -rf "$root/wheels" "$root/root/env" "$root/root/ibprof-demo"
    mkdir "$root/wheels"
    cp "$wheels"/ibprof-*"_$(uname -m).whl" "$root/wheels"
    # Mount in a new namespace, so that the mounts end with the shell.
    unshare --mount sh -euc '
        root=$1
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount -t sysfs sys "$root/sys"
        exec chroot "$root" sh -euc "
            ! command -v cc
            cd /root
            python3 -m venv env
            PATH=/root/env/bin:\$PATH
            pip install --quiet --only-binary :all: \"\$(echo /wheels/ibprof-*.whl)[mpi]\"
            pip list --format freeze
            python3 --version
            ibprof doctor
            ibprof demo"
    ' sh "$root"
done
