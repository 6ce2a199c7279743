#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: on a MultiGraph, networkx counts parallel edges to find how many edges separate two nodes, or refuses the graph, as
#   stoer_wagner and maximum_flow do.
# Seen: for two nodes with two parallel edges, edge_connectivity(G) is 2, but edge_connectivity(G, a, b) is 1. There is one
#   edge-disjoint path, and minimum_edge_cut returns one edge without a key. The functions contradict each other, and none raises an
#   error.
# Version: networkx 3.4.2.
# Matters: the number of cables that must fail before a leaf is cut off is reported as the number of neighbours.
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
