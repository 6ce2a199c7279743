#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: on a MultiGraph, networkx counts parallel edges when it asks how many edges separate two nodes, or refuses the graph, as
#   stoer_wagner and maximum_flow do.
# Seen: two nodes with two parallel edges have edge_connectivity(G) 2, but edge_connectivity(G, a, b) 1, a minimum_edge_cut of one edge
#   without a key, and one edge-disjoint path. The functions contradict each other, and none raises an error.
# Version: networkx 3.4.2.
# Matters: "how many cables must fail before this leaf is cut off" gets the number of neighbours, not of cables.
. "$(dirname "$0")/lib.sh"

pip_install networkx==3.4.2
expect 'connectivity of two nodes with two edges: whole, pair, cut, disjoint paths' "$(
    python - <<'END'
import networkx as nx

graph = nx.MultiGraph([("a", "b"), ("a", "b")])
print(
    nx.edge_connectivity(graph),
    nx.edge_connectivity(graph, "a", "b"),
    len(nx.minimum_edge_cut(graph)),
    len(list(nx.edge_disjoint_paths(graph, "a", "b"))),
)
END
)" '2 1 1 1'
