#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: a CSR matrix with two entries for one pair (two parallel cables, lengths 3 and 5) has one shortest path, whatever its
#   number type is: 3, or 8, the documented sum of duplicates.
# Seen: with floats, Dijkstra, Bellman-Ford and Johnson return 3. With integers, they return 8 for the same matrix, but
#   Floyd-Warshall returns 3. The conversion to float sums duplicates first.
# Version: scipy 1.15.3.
# Matters: hop counts are integers and delays are floats, so a fabric with a doubled cable gets two different answers.
. "$(dirname "$0")/lib.sh"

pip_install scipy==1.15.3
expect 'length by Dijkstra, Bellman-Ford, Johnson, Floyd-Warshall; floats, then integers' "$(
    python - <<'END'
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

for kind in (float, int):
    lengths, columns, rows = np.array([3, 5], kind), np.array([1, 1]), np.array([0, 2, 2])
    for method in ("D", "BF", "J", "FW"):
        print(int(shortest_path(csr_array((lengths, columns, rows), shape=(2, 2)), method=method)[0, 1]), end=" ")
END
)" '3 3 3 3 8 8 8 3 '
