#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: scipy's maximum_flow accepts capacities of int64, or refuses them with an error, as it refuses floats.
# Seen: maximum_flow cuts capacities to 32 bits without a warning. Two edges of 12.5e9 (bytes per second of 100 Gb/s) have a maximum
#   flow of 0; two edges of 5e9 have 705,032,704.
# Version: scipy 1.15.3.
# Matters: bandwidths in bytes per second do not fit. Choose a unit in which all capacities are below 2^31.
. "$(dirname "$0")/lib.sh"

pip_install scipy==1.15.3
expect 'maximum flow through two edges of 12.5e9, of 5e9, of 12' "$(
    python - <<'END'
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

for capacity in (12_500_000_000, 5_000_000_000, 12):
    graph = csr_array(np.array([[0, capacity, 0], [0, 0, capacity], [0, 0, 0]], dtype=np.int64))
    print(maximum_flow(graph, 0, 2).flow_value, end=" ")
END
)" '0 705032704 12 '
