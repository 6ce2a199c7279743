# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts of this folder: a temporary folder, packages in it, and a comparison with the behaviour seen before.
set -eu

findings=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Install packages of PyPI in a virtual environment in the temporary folder. `python` then runs in this environment.
pip_install() {
    python3 -m venv venv
    venv/bin/pip install --quiet --disable-pip-version-check "$@"
    PATH=$folder/venv/bin:$PATH
    printf 'versions:'
    printf ' %s' "$@"
    printf '\n'
}

# Unpack packages of Debian 12 below the temporary folder, and add their programs and libraries to the search paths.
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

# Print a result, and exit with 1 if it differs from the result seen before.
expect() { # WHAT SEEN BEFORE
    printf '%s: %s\n' "$1" "$2"
    [ "$2" = "$3" ] || {
        printf 'changed; before it was: %s\n' "$3"
        exit 1
    }
}
