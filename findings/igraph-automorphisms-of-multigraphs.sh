#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: count_automorphisms returns 1 for a path a=b-c with a doubled first link: no exchange of nodes preserves the graph.
#   isomorphic() of igraph respects multiplicities.
# Seen: count_automorphisms returns 2, the number for the simple path a-b-c. It ignores multiplicities, and reports no error.
# Version: igraph 0.11.8 (C library 0.10).
# Matters: a program that uses the symmetry of a fabric to test fewer cases takes different hosts for interchangeable.
. "$(dirname "$0")/lib.sh"

pip_install igraph==0.11.8
expect 'automorphisms of a=b-c; a=b-c isomorphic to a-b=c, and to a-b-c' "$(
    python - <<'END'
from igraph import Graph

doubled = Graph(edges=[(0, 1), (0, 1), (1, 2)])
print(
    doubled.count_automorphisms(),
    doubled.isomorphic(Graph(edges=[(0, 1), (1, 2), (1, 2)])),
    doubled.isomorphic(Graph(edges=[(0, 1), (1, 2)])),
)
END
)" '2 True False'
