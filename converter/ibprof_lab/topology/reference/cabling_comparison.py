# SPDX-License-Identifier: Apache-2.0
"""Comparison of an inferred topology with its reference: differences of cabling.

Source of the similarity: P. S. Bannikov, A. N. Salnikov (see `published_methods`), comparison of topologies, step d.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import networkx as nx
import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.reference.differences import (
    HIERARCHICAL,
    REGULAR,
    MatchedHosts,
    Names,
    RegroupedHosts,
    TopologyDifferences,
)
from ibprof_lab.topology.reference.reference_topology import Reference
from ibprof_lab.topology.reference.switch_groups import (
    compare_groups,
    compare_switch_links,
    find_leaves,
    find_nearer,
    find_recabled_switches,
    group_by_switch,
    join_moved,
    measure_switch_distances,
    number_groups,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ALIKE = 0.5


def compare_cabling(
    found: InferredTopology,
    reference: Reference,
    matched: MatchedHosts,
    delays: Floats,
    nearer: Integers | None = None,
) -> TopologyDifferences:
    """Compare an inferred topology with its reference.

    Args:
        matched: hosts that occur in both topologies.
        delays: float64 [host, host] between the matched hosts, seconds, nan where not measured.
        nearer: result of `find_nearer`; None to compute it from `delays`.

    Raises:
        InconsistentError: the reference's links do not connect the matched hosts.
    """
    graph = reduce_graph(reference, matched.vertex)
    chosen = set(matched.vertex.tolist())
    if any(a in chosen and b in chosen for a, b in graph.edges):
        return _compare_links(found, matched, graph)
    return _compare_switches(found, reference, matched, graph, delays, nearer)


def reduce_graph(reference: Reference, hosts: Integers) -> nx.Graph:
    """Return the part of a reference that delays between hosts can show.

    Of the vertices that are not in `hosts`, vertices with at most one link are left out, and a link replaces each
    vertex with two links. If each switch has exactly one host, as in a torus, the host also represents the switch.
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(reference.vertices))
    graph.add_edges_from((a, b) for a, b in reference.link.tolist() if a != b)
    chosen = set(hosts.tolist())
    ends = [vertex for vertex in graph if vertex not in chosen and graph.degree[vertex] <= 1]
    while ends:
        vertex = ends.pop()
        near = list(graph[vertex])
        graph.remove_node(vertex)
        ends.extend(each for each in near if each not in chosen and graph.degree[each] <= 1)
    own = {next(iter(graph[host])): host for host in chosen if graph.degree[host] == 1}
    if len(own) == len(chosen) == graph.number_of_nodes() - len(own) and not own.keys() & chosen:
        return nx.relabel_nodes(graph.subgraph(own), own)
    for vertex in [vertex for vertex in graph if vertex not in chosen and graph.degree[vertex] == 2]:
        if graph.degree[vertex] == 2:
            a, b = graph[vertex]
            graph.remove_node(vertex)
            graph.add_edge(a, b)
    return graph


# -- direct networks


def _compare_links(found: InferredTopology, matched: MatchedHosts, graph: nx.Graph) -> TopologyDifferences:
    """Compare the links of direct networks.

    Each link of the reference has the probability of the arc between its hosts, or 0 without an arc. The similarity is
    the mean of these probabilities, as in the paper's text; the paper's formula is a sum. Of several arcs between two
    hosts' processes, the largest probability is used.
    """
    host_of = np.full(found.vertices, -1, np.int64)
    for host, members in enumerate(matched.of_inferred):
        host_of[list(members)] = host
    vertex_of = {int(vertex): host for host, vertex in enumerate(matched.vertex)}
    wanted = {
        (min(pair), max(pair))
        for a, b in graph.edges
        if a in vertex_of and b in vertex_of and (pair := (vertex_of[a], vertex_of[b]))
    }
    probability: dict[tuple[int, int], float] = {}
    for (a, b), share in zip(host_of[found.edge].tolist(), found.probability.tolist(), strict=True):
        if a != b and min(a, b) >= 0:
            pair = (min(a, b), max(a, b))
            probability[pair] = max(probability.get(pair, 0.0), share)

    def name(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[str, str], ...]:
        return tuple((matched.names[a], matched.names[b]) for a, b in sorted(pairs))

    unknown = (
        ("the reference links hosts directly, but the delays show switches between them",) if found.switches else ()
    )
    return TopologyDifferences(
        kind=REGULAR,
        hosts=matched.names,
        not_in_reference=matched.not_in_reference,
        not_measured=matched.not_measured,
        similarity=sum(probability.get(pair, 0.0) for pair in wanted) / len(wanted),
        missing=name(wanted - probability.keys()),
        extra=name(probability.keys() - wanted),
        unknown=unknown,
    )


# -- networks of switches


def _compare_switches(
    found: InferredTopology,
    reference: Reference,
    matched: MatchedHosts,
    graph: nx.Graph,
    delays: Floats,
    nearer: Integers | None,
) -> TopologyDifferences:
    """Compare which hosts share a switch, and which switches are near each other or linked."""
    hosts = TopologyDifferences(HIERARCHICAL, matched.names, matched.not_in_reference, matched.not_measured)
    if len(matched.names) < 3:
        return replace(hosts, unknown=("delays between fewer than three hosts do not show switches",))
    own = [members[0] for members in matched.of_inferred]
    leaf = find_leaves(reference, matched.vertex)
    was = number_groups(leaf)
    names = np.array([reference.names[each] for each in leaf.tolist()])
    cycles = are_linked_in_cycles(graph, matched.vertex, leaf)
    if not found.switches and not cycles:
        return replace(hosts, unknown=("which hosts share a switch: no switches were inferred",))
    # If no switches were inferred, each host stands for a switch of the torus: use the reference's groups.
    now = group_by_switch(found, own) if found.switches else was
    now = join_moved(now, was, find_nearer(was, delays) if nearer is None else nearer)
    hosts, moved = compare_groups(hosts, was, now, names, delays)
    between = measure_switch_distances(reference, (matched.names, matched.vertex), leaf, ~moved, delays)
    if cycles:
        links = compare_switch_links(between, graph)
        if links is not None:
            return replace(hosts, missing=links[0], extra=links[1])
        unknown = "which switches are linked: delays over one link and over two links do not differ clearly"
        return replace(hosts, recabled=find_recabled_switches(between), unknown=(*hosts.unknown, unknown))
    rehung = find_recabled_switches(between)
    for each in rehung:
        moved |= names == each.switch
    hosts = replace(hosts, recabled=rehung)
    expected = _expect(reference, matched, graph)
    kept = np.flatnonzero(~moved).tolist()
    was_part = _restrict(expected, range(len(matched.names)), kept)
    now_part = _restrict(found, own, kept)
    if was_part is None or now_part is None:
        unknown = "which switches are near each other: switches are linked in cycles, so only their hosts are compared"
        return replace(hosts, unknown=(*hosts.unknown, unknown))
    merged = [frozenset(np.flatnonzero(np.isin(names, each)).tolist()) for each in hosts.merged]
    return replace(hosts, regrouped=_pair_splits(was_part, now_part, matched.names, merged))


def are_linked_in_cycles(graph: nx.Graph, hosts: Integers, leaf: Integers) -> bool:
    """Return True if all switches have hosts and are linked in cycles, as in a torus, a hypercube or a dragonfly.

    Args:
        graph: result of `reduce_graph`.
        hosts, leaf: int64 [host], vertices of each host and of its switch.
    """
    return set(graph) == {*hosts.tolist(), *leaf.tolist()} and not nx.is_tree(graph)


def _expect(reference: Reference, matched: MatchedHosts, graph: nx.Graph) -> InferredTopology:
    """Return the topology that exact delays show: `graph` if it is a tree, else one inferred from hop counts."""
    number = {int(vertex): place for place, vertex in enumerate(matched.vertex)}
    if nx.is_tree(graph):
        switches = [vertex for vertex in graph if vertex not in number]
        number |= {vertex: len(number) + place for place, vertex in enumerate(switches)}
        edge = np.array([[number[a], number[b]] for a, b in graph.edges], np.int32).reshape(-1, 2)
        return InferredTopology(
            method="reference",
            hosts=matched.names,
            switches=tuple(reference.names[vertex] for vertex in switches),
            edge=np.sort(edge, axis=1),
            latency_seconds=np.ones(len(edge)),
            support=np.ones(len(edge)),
            probability=np.ones(len(edge)),
        )
    hops = reference.count_hops(matched.vertex)
    if not np.isfinite(hops).all():
        raise InconsistentError(f"{reference.origin}: its links do not connect all hosts that were measured")
    return infer(PairDelays(matched.names, hops * 1e-6, "hops", 0, ()), InferenceEffort(replicates=0)).topology


def _restrict(topology: InferredTopology, places: Sequence[int], kept: Sequence[int]) -> set[frozenset[int]] | None:
    """Return for each edge the set of `kept` hosts (ascending) on the side without the first `kept` host; None if
    the topology is not a tree. Edges with fewer than two `kept` hosts on a side are omitted. `places`: hosts' vertices.
    """
    host_of = {places[host]: host for host in kept}
    found = set()
    for split in topology.find_splits():
        if split is None:
            return None
        if len(split) == 1:
            continue
        inside = frozenset(host_of[vertex] for vertex in split if vertex in host_of)
        if kept and kept[0] in inside:
            inside = frozenset(kept) - inside
        if 1 < len(inside) < len(kept) - 1:
            found.add(inside)
    return found


def _pair_splits(
    expected: set[frozenset[int]], found: set[frozenset[int]], names: Names, merged: Sequence[frozenset[int]]
) -> tuple[RegroupedHosts, ...]:
    """Return the groups that only one topology has; similar groups of the two topologies are paired."""
    missing, extra = (sorted(each, key=sorted) for each in (expected - found, found - expected))
    pairs = []
    for part in missing:
        if any(part <= each for each in merged):
            continue
        like = max(extra, key=lambda each: len(part & each) / len(part | each), default=frozenset())
        if like and len(part & like) / len(part | like) > _ALIKE:
            extra.remove(like)
            pairs.append((part, like))
        else:
            pairs.append((part, frozenset()))
    pairs += [(frozenset(), part) for part in extra]
    return tuple(RegroupedHosts(*(tuple(names[host] for host in sorted(part)) for part in pair)) for pair in pairs)
