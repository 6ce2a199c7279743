# SPDX-License-Identifier: Apache-2.0
# What the scripts of this folder share: a temporary folder, packages in it, and the comparison with what was seen.
set -eu

findings=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Install packages of PyPI in a virtual environment of the temporary folder, which `python` then runs.
pip_install() {
    python3 -m venv venv
    venv/bin/pip install --quiet --disable-pip-version-check "$@"
    PATH=$folder/venv/bin:$PATH
    printf 'versions:'
    printf ' %s' "$@"
    printf '\n'
}

# Unpack packages of Debian 12 below the temporary folder, and find their programs and libraries there.
debian_unpack() {
    apt-get download --quiet=2 "$@" 2>/dev/null
    for package in *.deb; do dpkg-deb --extract "$package" debian; done
    PATH=$folder/debian/usr/sbin:$folder/debian/usr/bin:$PATH
    LD_LIBRARY_PATH=$folder/debian/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    printf 'versions:'
    printf ' %s' "$@"
    printf '\n'
}

# Print what was seen, and end with 1 unless it is what was seen before.
expect() { # WHAT SEEN BEFORE
    printf '%s: %s\n' "$1" "$2"
    [ "$2" = "$3" ] || {
        printf 'changed; before it was: %s\n' "$3"
        exit 1
    }
}
