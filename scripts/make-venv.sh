#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a virtual environment and runs pip install in it:
#
#     scripts/make-venv.sh FOLDER [PIP'S ARGUMENTS...]
set -eu

python=${PYTHON:-python3}
folder=$1
shift
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "ibprof needs Python 3.10 or newer, $python is $("$python" --version 2>&1): name another one in PYTHON" >&2
    exit 1
}
[ -x "$folder/bin/pip" ] || "$python" -m venv --clear "$folder"
[ $# = 0 ] || "$folder/bin/pip" install --quiet "$@"
