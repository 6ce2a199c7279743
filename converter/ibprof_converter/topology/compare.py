# SPDX-License-Identifier: Apache-2.0
"""An inferred topology beside the one that a network should have: what is cabled otherwise.

Source of the similarity: P. S. Bannikov, A. N. Salnikov (see `bannikov_salnikov`), comparison of topologies, step d.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from ibprof.errors import InconsistentError
from ibprof_converter.topology.between_switches import find_other_links, find_rehung, look_between
from ibprof_converter.topology.differences import (
    HIERARCHICAL,
    REGULAR,
    Apart,
    Comparison,
    Misplaced,
    Names,
    Regrouped,
)
from ibprof_converter.topology.infer import Effort, infer
from ibprof_converter.topology.model import InferredTopology
from ibprof_converter.topology.reference import Reference
from ibprof_converter.topology.values import Values

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_OF_PROCESS = re.compile(r"#\d+$")
_ALIKE = 0.5
_AS_NEAR = 0.1
_AS_FAR = 0.2
_ROWS = 512
"""That are looked at at once."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The hosts that an inferred topology and a reference have both.

    Attributes:
        names: of the hosts.
        of_inferred: for each of them the vertices of the inferred topology: one, or one for each process.
        vertex: int64 [host], of the reference.
        not_in_reference, not_measured: as of `Comparison`.
    """

    names: Names
    of_inferred: tuple[tuple[int, ...], ...]
    vertex: Integers
    not_in_reference: Names
    not_measured: Names


def match_hosts(labels: Sequence[str], reference: Reference) -> Matched:
    """Find measured hosts in a reference; where no process is there by its own name, by its host's.

    Raises:
        InconsistentError: the reference has none of them, or two of them are one vertex.
    """
    vertex = reference.find_hosts(labels)
    members: dict[str, list[int]] = {name: [place] for place, name in enumerate(labels)}
    if (vertex < 0).all():
        members = {}
        for place, label in enumerate(labels):
            members.setdefault(_OF_PROCESS.sub("", label), []).append(place)
        vertex = reference.find_hosts(tuple(members))
    if (vertex < 0).all():
        known = ", ".join([reference.names[host] for host in np.flatnonzero(reference.may_be_host)[:5].tolist()])
        raise InconsistentError(
            f"{reference.origin}: none of the {len(labels)} hosts ({', '.join(labels[:5])}) is there, but {known}"
        )
    there = vertex >= 0
    left = reference.is_end.copy()
    left[vertex[there]] = False
    names = tuple(members)
    return Matched(
        names=tuple(name for name, known in zip(names, there, strict=True) if known),
        of_inferred=tuple(tuple(each) for each, known in zip(members.values(), there, strict=True) if known),
        vertex=vertex[there],
        not_in_reference=tuple(name for name, known in zip(names, there, strict=True) if not known),
        not_measured=tuple(reference.names[host] for host in np.flatnonzero(left).tolist()),
    )


def compare(
    found: InferredTopology,
    reference: Reference,
    matched: Matched,
    delays: Floats,
    nearer: Integers | None = None,
) -> Comparison:
    """Compare what was inferred with what should be there.

    Args:
        found: the topology.
        reference: what should be there.
        matched: the hosts that both have.
        delays: float64 [host, host] between these, seconds, nan where there is none.
        nearer: what `find_nearer` tells of the delays as they were measured.

    Raises:
        InconsistentError: the reference does not connect its hosts.
    """
    graph = reduce_graph(reference, matched.vertex)
    chosen = set(matched.vertex.tolist())
    if any(a in chosen and b in chosen for a, b in graph.edges):
        return _compare_links(found, matched, graph)
    return _compare_switches(found, reference, matched, graph, delays, nearer)


def reduce_graph(reference: Reference, hosts: Integers) -> nx.Graph:
    """Give the part of a reference that delays between hosts can show.

    That is without ends that are no hosts, and without switches that join but two links. Where every switch is the own
    one of one host, as in a torus, the host stands for it.
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


def _compare_links(found: InferredTopology, matched: Matched, graph: nx.Graph) -> Comparison:
    """Give the similarity of regular topologies.

    The sum goes over the pairs of hosts that the reference links, as the paper explains it: each is as alike as the
    probability of its arc, the greatest of those between the processes of both.
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
        ("the reference links hosts with one another, and by the delays there are switches between them",)
        if found.switches
        else ()
    )
    return Comparison(
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
    matched: Matched,
    graph: nx.Graph,
    delays: Floats,
    nearer: Integers | None,
) -> Comparison:
    """Compare who is on a switch with whom, and which switches are near to one another, or linked."""
    hosts = Comparison(HIERARCHICAL, matched.names, matched.not_in_reference, matched.not_measured)
    if len(matched.names) < 3:
        return replace(hosts, unknown=("fewer than three hosts tell nothing of switches",))
    own = [members[0] for members in matched.of_inferred]
    leaf = find_leaves(reference, matched.vertex)
    was = number_groups(leaf)
    names = np.array([reference.names[each] for each in leaf.tolist()])
    circles = are_linked_in_circles(graph, matched.vertex, leaf)
    if not found.switches and not circles:
        return replace(hosts, unknown=("no switches were inferred, so that who is on which cannot be compared",))
    # Hosts of a torus of switches may have been taken for a torus of hosts.
    now = _group(found, own) if found.switches else was
    now = _join_moved(now, was, find_nearer(was, delays) if nearer is None else nearer)
    hosts, moved = _compare_groups(hosts, was, now, names, delays)
    between = look_between(reference, (matched.names, matched.vertex), leaf, ~moved, delays)
    if circles:
        links = find_other_links(between, graph)
        if links is not None:
            return replace(hosts, missing=links[0], extra=links[1])
        unknown = "which switches are linked: delays over one link and over more do not differ clearly"
        return replace(hosts, rehung=find_rehung(between), unknown=(*hosts.unknown, unknown))
    rehung = find_rehung(between)
    for each in rehung:
        moved |= names == each.switch
    hosts = replace(hosts, rehung=rehung)
    expected = _expect(reference, matched, graph)
    kept = np.flatnonzero(~moved).tolist()
    was_part = _restrict(expected, range(len(matched.names)), kept)
    now_part = _restrict(found, own, kept)
    if was_part is None or now_part is None:
        unknown = "there are circles of switches, of which only who is on which switch is compared"
        return replace(hosts, unknown=(*hosts.unknown, unknown))
    merged = [frozenset(np.flatnonzero(np.isin(names, each)).tolist()) for each in hosts.merged]
    return replace(hosts, regrouped=_pair_splits(was_part, now_part, matched.names, merged))


def are_linked_in_circles(graph: nx.Graph, hosts: Integers, leaf: Integers) -> bool:
    """Whether switches that all have hosts are linked in circles: a torus, a hypercube, a dragonfly.

    Args:
        graph: what delays can show of the reference.
        hosts, leaf: int64 [host], vertices of the hosts and of their switches.
    """
    return set(graph) == {*hosts.tolist(), *leaf.tolist()} and not nx.is_tree(graph)


def _expect(reference: Reference, matched: Matched, graph: nx.Graph) -> InferredTopology:
    """Give what a perfect measurement would show: the tree itself, or what is inferred from hops on other graphs."""
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
    return infer(Values(matched.names, hops * 1e-6, "hops", 0, ()), Effort(replicates=0)).topology


def _group(topology: InferredTopology, hosts: Sequence[int]) -> Integers:
    """Number the switch of each host, or the host itself where it has none or several."""
    degree = np.bincount(topology.edge.ravel(), minlength=topology.vertices)
    place = np.arange(topology.vertices)
    for a, b in topology.edge.tolist():
        for host, other in ((a, b), (b, a)):
            if host < len(topology.hosts) <= other and degree[host] == 1:
                place[host] = other
    return np.unique(place[list(hosts)], return_inverse=True)[1].ravel().astype(np.int64)


def number_groups(leaf: Integers) -> Integers:
    """Number hosts' switches from 0 on, int64 [host]."""
    return np.unique(leaf, return_inverse=True)[1].ravel().astype(np.int64)


def _join_moved(now: Integers, was: Integers, nearer: Integers) -> Integers:
    """Put each host that is clearly among those of another switch into their group, where they have one in common."""
    joined = now.copy()
    for host in np.flatnonzero(nearer != was).tolist():
        groups = np.unique(now[(was == nearer[host]) & (nearer == was)])
        if len(groups) == 1:
            joined[host] = groups[0]
    return joined


def find_nearer(was: Integers, delays: Floats) -> Integers:
    """Number the switch of each host: the one that it is expected on, unless it is among the hosts of another one.

    That is where it is nearer to them than to those that it is expected with, and as near as they are to one another.

    Args:
        was: int64 [host], the number of the switch that the reference has it on.
        delays: float64 [host, host], seconds.
    """
    everyone = np.arange(len(was))
    member = np.eye(was.max() + 1)[was]
    mean = np.empty_like(member)
    for begin in range(0, len(was), _ROWS):
        some = delays[begin : begin + _ROWS]
        there = np.isfinite(some) & (some > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean[begin : begin + _ROWS] = (np.where(there, some, 0.0) @ member) / (there @ member)
    own = mean[everyone, was]
    nearest = np.nan_to_num(mean, nan=np.inf).argmin(axis=1)
    among = mean[everyone, nearest]
    inside = np.array([_median(own[was == each]) for each in range(was.max() + 1)])[nearest]
    moved = (among < (1 - _AS_NEAR) * own) & (np.abs(among - inside) < _AS_FAR * inside)
    return np.where(moved, nearest, was).astype(np.int64)


def _median(values: Floats) -> float:
    there = values[np.isfinite(values)]
    return float(np.median(there)) if len(there) else np.nan


def find_leaves(reference: Reference, hosts: Integers) -> Integers:
    """Give the switch of each host in the reference, int64 [host], vertices; one with several links is its own."""
    graph = reference.adjacency()
    leaf = hosts.copy()
    for place, vertex in enumerate(hosts.tolist()):
        near = graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]]
        if len(near) == 1:
            leaf[place] = near[0]
    return leaf


def _compare_groups(
    hosts: Comparison, was: Integers, now: Integers, leaf: npt.NDArray[np.str_], delays: Floats
) -> tuple[Comparison, npt.NDArray[np.bool_]]:
    """Tell hosts that are with others than expected; give which they are, too.

    A host that is alone on its switch is with nobody; it is only told where it is with several of another one.
    """
    names = np.array(hosts.hosts, dtype=object)
    overlap = np.zeros((now.max() + 1, was.max() + 1), np.int64)
    np.add.at(overlap, (now, was), 1)
    taken = dict(zip(*(each.tolist() for each in linear_sum_assignment(overlap, maximize=True)), strict=True))
    size = overlap.sum(axis=0)
    misplaced, apart = [], []
    merged: dict[int, set[str]] = {}
    moved = np.zeros(len(names), bool)
    unsure = []
    for there, expected in np.argwhere(overlap).tolist():
        if taken.get(there) == expected:
            continue
        members = np.flatnonzero((now == there) & (was == expected))
        switch, others = str(leaf[members[0]]), np.flatnonzero((was == expected) & (now != there))
        home = taken.get(there)
        if home is None or not overlap[there, home]:
            if len(others):
                moved[members] = True
                apart.append(Apart(tuple(names[members]), switch, tuple(names[others])))
            continue
        beside = np.flatnonzero((now == there) & (was == home))
        if len(members) == size[expected] > 1 and size[home] > 1:
            merged.setdefault(there, {str(leaf[beside[0]])}).add(switch)
            continue
        for host in members.tolist() if len(beside) > 1 else ():
            moved[host] = True
            if len(others) and not _is_nearer(delays[host], beside, others):
                unsure.append(str(names[host]))
                continue
            found = str(leaf[beside[0]])
            misplaced.append(Misplaced(names[host], switch, tuple(names[others]), found, tuple(names[beside])))
    unknown = (f"which switch {len(unsure)} hosts are on ({', '.join(unsure[:5])})",) if unsure else ()
    together = tuple(tuple(sorted(each)) for each in merged.values())
    return replace(hosts, misplaced=tuple(misplaced), apart=tuple(apart), merged=together, unknown=unknown), moved


def _is_nearer(delay: Floats, these: Integers, those: Integers) -> bool:
    """Whether a host's delays themselves say that it is nearer to some hosts than to others."""
    near, far = (each[np.isfinite(each)] for each in (delay[these], delay[those]))
    return bool(len(near) and len(far) and np.median(near) < (1 - _AS_NEAR / 2) * np.median(far))


def _restrict(topology: InferredTopology, places: Sequence[int], kept: Sequence[int]) -> set[frozenset[int]] | None:
    """Give the splits of a tree as far as some hosts go, each as the side without the first of them; None of no tree.

    Args:
        topology: whose splits they are.
        places: the topology's vertex of each host.
        kept: numbers of hosts, ascending.
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
) -> tuple[Regrouped, ...]:
    """Put parts of the one topology beside those of the other that they are most like."""
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
    return tuple(Regrouped(*(tuple(names[host] for host in sorted(part)) for part in pair)) for pair in pairs)
