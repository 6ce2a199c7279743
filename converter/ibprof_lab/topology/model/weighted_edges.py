# SPDX-License-Identifier: Apache-2.0
"""Weighted edges as a sparse matrix; parallel edges become one edge of the smallest weight.

scipy adds duplicate entries: two cables of 1 µs would become one of 2 µs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix


def weigh_edges(
    edge: npt.NDArray[np.integer], weight: npt.NDArray[np.floating], vertices: int, *, directed: bool = False
) -> csr_matrix:
    """Return the smallest weight among the edges between two vertices.

    Args:
        edge: int [edge, 2], vertices; loops are left out.
        weight: float [edge], above 0, since scipy treats 0 as no edge.
        directed: True if an edge leads only from its first vertex to its second.

    Returns:
        float64 [vertex, vertex]; symmetric unless `directed`.
    """
    a, b = np.asarray(edge, np.int64).reshape(-1, 2).T
    value = np.asarray(weight, np.float64)
    if not directed:
        a, b, value = np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([value, value])
    order = np.lexsort((value, b, a))
    order = order[a[order] != b[order]]
    a, b, value = a[order], b[order], value[order]
    is_first = np.ones(len(a), np.bool_)
    is_first[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return csr_matrix((value[is_first], (a[is_first], b[is_first])), (vertices, vertices))
