#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: pyarrow compares a column of int64 with a float for all values, as numpy and polars do.
# Seen: the comparison works if all values are at most 2^53. If a value is larger, the comparison raises ArrowInvalid. The
#   column's type is the same in both cases.
# Version: pyarrow 26.0.1, polars 2.1.0.
# Matters: a filter such as `bytes > 1.5e9` passes every test with small data, but fails on GUIDs or on sums of a site's bytes. Cast
#   the column to float64 with safe=False, or compare with an integer.
. "$(dirname "$0")/lib.sh"

pip_install pyarrow==26.0.1 polars==2.1.0 numpy==2.4.6
expect 'values below 1.5 among 2^53, and among 2^53 + 1' "$(
    python - <<'END'
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

for value in (2**53, 2**53 + 1):
    print("numpy", (np.array([value]) < 1.5).tolist(), end=" ")
    print("polars", (pl.Series([value]) < 1.5).to_list(), end=" ")
    try:
        print("pyarrow", pc.less(pa.array([value]), 1.5).to_pylist(), end="; ")
    except pa.ArrowInvalid:
        print("pyarrow ArrowInvalid", end="; ")
END
)" 'numpy [False] polars [False] pyarrow [False]; numpy [False] polars [False] pyarrow ArrowInvalid; '
