#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make docs/sample-report.html: the report on the demo's run, from a host with a neutral name (so as root).
set -e
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unshare --uts sh -ec "hostname node; cd '$folder'; ibprof demo demo"
cp "$folder/demo/report.html" docs/sample-report.html
