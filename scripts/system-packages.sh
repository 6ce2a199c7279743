#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks for programs of the operating system, and installs missing ones by their Debian packages:
#
#     scripts/system-packages.sh compiler venv           what `make demo` needs
#     scripts/system-packages.sh compiler venv node tests     what `make test` needs
#
# Only root on Debian or Ubuntu can install packages. Otherwise the script names missing programs and exits with 1.
set -eu

python=${PYTHON:-python3}
missing=

need() { # PACKAGES COMMAND...: counts these packages as missing unless the command succeeds
    packages=$1
    shift
    "$@" >/dev/null 2>&1 && return
    for package in $packages; do
        case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
    done
}

has() { # PROGRAM: searches the system administrators' folders too
    PATH="$PATH:/usr/sbin:/sbin" command -v "$1"
}

has_library() { # FILE: a library that the dynamic linker finds
    PATH="$PATH:/usr/sbin:/sbin" ldconfig -p | grep -q "$1"
}

compiles() { # a compiler alone is not enough: the C library's headers are another package
    echo 'int main(void) { return 0; }' | cc -include stdio.h -x c -o /dev/null -
}

has_libpython() { # of the interpreter that runs the tests, for programs that open it
    "$python" -c '
import ctypes.util, pathlib, sys, sysconfig
version = sysconfig.get_config_var("py_version_short")
built = pathlib.Path(sysconfig.get_config_var("LIBDIR"), f"libpython{version}.so.1.0")
sys.exit(not built.exists() and not ctypes.util.find_library(f"python{version}"))'
}

compiles_cpp() {
    echo 'int main() { return 0; }' | c++ -include stdexcept -x c++ -o /dev/null -
}

compiles_verbs() {
    echo '#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
int main(void) { return !ibv_get_device_list(0); }' | cc -x c -o /dev/null - -libverbs
}

has_node() { # at least the version in viewer/package.json; Ubuntu 22.04's is older
    node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)'
}

has_browser() { # by the names that tests/viewer looks for
    has chromium || has chromium-browser || has google-chrome
}

name_browser() { # Ubuntu's package brings a snap, which needs snapd
    if grep -qx 'ID=ubuntu' /etc/os-release; then echo chromium-browser; else echo chromium; fi
}

has_soft_roce() { # the library that lets programs use it
    ls /usr/lib/*/libibverbs/librxe-*.so /usr/lib*/libibverbs/librxe-*.so | grep -q rxe
}

for group in "$@"; do
    case $group in
    compiler)
        need "gcc libc6-dev" compiles
        ;;
    venv)
        need python3-venv "$python" -c 'import ensurepip, venv'
        ;;
    node) # the tools that check and build the page of ibprof-view
        need nodejs has_node
        need npm has npm
        ;;
    tests)
        need "openmpi-bin libopenmpi-dev" has mpicc
        need openmpi-bin has mpirun
        # MPICH's programs get a suffix, because Debian prefers Open MPI for the names without one.
        need "mpich libmpich-dev" has mpicc.mpich
        need gfortran has gfortran
        need g++ compiles_cpp
        need opensm has opensm
        need ibsim-utils has ibsim
        need infiniband-diags has ibtracert
        need otf2-tools has otf2-print
        need iproute2 has ip
        need binutils has objdump
        need dwz has dwz
        need valgrind has valgrind
        need groff-base has groff
        need man-db has lexgrog
        need zsh has zsh
        need fish has fish
        need debuginfod has debuginfod-find
        need util-linux has unshare
        # A guest with verbs: see tests/support/ibprof_testing/guest.py.
        need libibverbs-dev compiles_verbs
        need ibverbs-providers has_soft_roce
        need qemu-system-x86 has qemu-system-x86_64
        need busybox-static has busybox
        need quota has setquota
        need e2fsprogs has mkfs.ext4
        need bindfs has bindfs
        need debootstrap has debootstrap
        need qemu-user has qemu-aarch64
        need libc6-arm64-cross test -d /usr/aarch64-linux-gnu/lib
        need musl-tools has musl-gcc
        need munge has munged
        need slurmctld has slurmctld
        need slurmd has slurmd
        need slurm-client has salloc
        need slurmdbd has slurmdbd
        need mariadb-server-core has mariadbd
        need mariadb-client-core has my_print_defaults
        need charliecloud has ch-run
        need libslurm-dev ls /usr/include/slurm/spank.h
        need prometheus has promtool
        need prometheus-node-exporter has prometheus-node-exporter
        need "$(name_browser)" has_browser
        need fonts-dejavu-core ls /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf  # the font of the view's golden pictures
        need libpython3-dev has_libpython
        need libjemalloc2 has_library libjemalloc.so.2
        ;;
    *)
        echo "$0: no group '$group'" >&2
        exit 2
        ;;
    esac
done

[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && has apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    # shellcheck disable=SC2086  # a list of packages
    apt-get install -q -y --no-install-recommends $missing
    case $missing in *nodejs*)
        has_node || {
            echo "node 18 or newer is needed; this system's is $(node --version): install one from nodejs.org" >&2
            exit 1
        }
        ;;
    esac
else
    echo "These packages are missing (names as on Debian and Ubuntu):$missing" >&2
    echo "Install them first:  sudo apt-get install$missing" >&2
    exit 1
fi
