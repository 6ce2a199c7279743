#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks a kernel with soft-RoCE from Debian's or Ubuntu's packages into a folder, without installing it:
#
#     scripts/guest-kernel.sh FOLDER
#
# tests/support/ibprof_testing/guest.py boots it.
set -eu

folder=$1
if [ -e "$folder/unpacked" ]; then exit 0; fi

named() { # PACKAGE: prints the package of the kernel version that this package depends on
    apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: \(linux-[a-z-]*[0-9].*\)/\1/p' | head -n 1
}

find_packages() {
    kernel=$(named linux-image-amd64) # Debian's; its cloud kernel lacks soft-RoCE
    if [ -n "$kernel" ]; then
        packages=$kernel
    else
        kernel=$(named linux-image-generic)
        version=${kernel#linux-image-}
        packages="$kernel linux-modules-$version linux-modules-extra-$version"
    fi
    [ -n "$kernel" ]
}

# The lists of packages may be missing, or too old: the servers no longer have the packages that the lists name.
download() {
    # shellcheck disable=SC2086  # a list of packages
    find_packages && (cd "$folder" && apt-get download -q $packages)
}

rm -rf "$folder"
mkdir -p "$folder"
download || {
    apt-get update -q
    download
}
for package in "$folder"/*.deb; do dpkg-deb -x "$package" "$folder"; done
rm "$folder"/*.deb
touch "$folder/unpacked"
