#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: count_automorphisms of a path a=b-c, whose first link is doubled, is 1: no exchange of nodes keeps it. isomorphic() of
#   igraph respects multiplicities.
# Seen: it is 2, the number of the simple path a-b-c; multiplicities are ignored, without an error.
# Version: igraph 0.11.8 (C library 0.10).
# Matters: hosts look interchangeable that are not, when symmetry of a fabric is used to test fewer cases.
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
