#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command, and adds a line to build/test-times: KIND, its seconds, and the user's and the system's processor time.
# Usage: scripts/timed.sh KIND COMMAND...
set -eu

TIMEFORMAT="$1 %R %U %S"
shift
mkdir -p build
exec 3>&2
{ time "$@" 2>&3 3>&-; } 2>>build/test-times
