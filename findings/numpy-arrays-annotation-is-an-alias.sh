#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: the annotation `NDArray[np.int64]` is `np.ndarray` with the arguments shape and dtype, in every version of numpy.
# Seen: this holds up to numpy 2.4. From 2.5 on, `NDArray` is an alias of PEP 695: get_origin() returns the alias, which is no
#   class, and get_args() returns only the scalar type. get_type_hints() does not expand the alias.
# Version: numpy 2.4.6 and 2.5.5, Python 3.12 or newer. numpy 2.5 requires Python 3.12, so tests on older Pythons do not show the
#   change.
# Matters: a program that reads the types of its columns from annotations ends with a traceback, but only on new Pythons.
. "$(dirname "$0")/lib.sh"

python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))' || {
    echo 'numpy 2.5 needs Python 3.12 or newer'
    exit 2
}

for version in 2.4.6 2.5.5; do
    rm -rf venv
    pip_install numpy==$version
    case $version in
    2.4.6) before='class ndarray, 2 arguments, the last one dtype[int64]' ;;
    2.5.5) before='no class: NDArray, 1 arguments, the last one int64' ;;
    esac
    expect 'NDArray[np.int64]' "$(
        python - <<'END'
from typing import get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt


class Rows:
    count: npt.NDArray[np.int64]


hint = get_type_hints(Rows)["count"]
origin, arguments = get_origin(hint), get_args(hint)
kind = f"class {origin.__name__}" if isinstance(origin, type) else f"no class: {origin}"
last = get_args(arguments[-1])  # of dtype[scalar]
named = f"dtype[{last[0].__name__}]" if last else arguments[-1].__name__
print(f"{kind}, {len(arguments)} arguments, the last one {named}")
END
    )" "$before"
done
