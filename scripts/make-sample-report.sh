#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes docs/sample-report.html, the report on the demo's run. Requires root, to give the host a neutral name.
set -e
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unshare --uts sh -ec "hostname node; cd '$folder'; ibprof demo demo"
cp "$folder/demo/report.html" docs/sample-report.html
