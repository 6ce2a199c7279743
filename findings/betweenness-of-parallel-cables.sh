#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: networkx and igraph calculate the same betweenness, "the share of shortest paths through a node", also on multigraphs.
# Seen: igraph counts a path for each parallel edge, and networkx counts one path for each neighbour. On a ring a-b-c-d with two
#   cables a-b, b is on 2/3 of the paths from a to c in igraph, and on 1/2 in networkx. In networkx, both routes from a to c get
#   equal shares; in igraph, the route with two cables gets twice the load of the other route.
# Version: networkx 3.4.2, igraph 0.11.8.
# Matters: betweenness often serves as the expected load under equal-cost multipath. Switches that hash over ports behave as igraph
#   calculates; switches that hash over next hops behave as networkx calculates.
. "$(dirname "$0")/lib.sh"

pip_install networkx==3.4.2 igraph==0.11.8
expect 'betweenness of b: networkx, igraph' "$(
    python - <<'END'
import igraph
import networkx as nx

edges = [(0, 1), (0, 1), (1, 2), (0, 3), (3, 2)]
by_networkx = nx.betweenness_centrality(nx.MultiGraph(edges), normalized=False)[1]
by_igraph = igraph.Graph(edges=edges).betweenness()[1]
print(f"{by_networkx:.3f} {by_igraph:.3f}")
END
)" '0.500 0.667'
