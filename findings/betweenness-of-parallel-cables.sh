#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Expected: betweenness, "the share of shortest paths through a node", is the same in networkx and igraph, on multigraphs too.
# Seen: igraph counts each parallel edge as a path of its own, networkx counts one path a neighbour. On a ring a-b-c-d with a doubled
#   cable a-b, b has 2/3 of the paths from a to c in igraph and 1/2 in networkx. In networkx the edges next to the doubled one get
#   equal shares; in igraph the route with two cables gets twice the load of the other.
# Version: networkx 3.4.2, igraph 0.11.8.
# Matters: betweenness is often taken as expected load under equal-cost multipath. Switches that hash over ports do what igraph says,
#   those that hash over next hops what networkx says.
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
