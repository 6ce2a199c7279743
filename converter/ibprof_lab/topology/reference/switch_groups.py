# SPDX-License-Identifier: Apache-2.0
"""Wrong cables: the reference and the delays differ in the hosts of switches, or in the distances between switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from ibprof.text.quantities import count_of
from ibprof_lab.topology.infer.candidate import NORMAL
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.reference.differences import (
    MisplacedHost,
    Names,
    RecabledSwitch,
    SeparatedHosts,
    TopologyDifferences,
    average_processes,
)
from ibprof_lab.topology.reference.reference_topology import Reference

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Links = tuple[tuple[str, str], ...]

_AS_NEAR = 0.1
_CLEAR = 5.0
"""Delays over one and over two links differ clearly if half the difference of their medians exceeds this many scaled
median absolute deviations."""

_AS_FAR = 0.2
_ROWS = 512


@dataclass(frozen=True, slots=True)
class SwitchDistances:
    """The switches of a reference that have hosts, and distances between the switches.

    Attributes:
        vertex: int64 [switch], vertex of each switch in the reference.
        members: names of each switch's hosts.
        hops: float64 [switch, switch], number of links between hosts of the two switches in the reference; inf on the
            diagonal.
        delay: float64 [switch, switch], seconds, mean delay between hosts of the two switches, in the direction with
            the shorter mean; inf on the diagonal and where not measured.
        inside: float64 [switch], seconds, mean delay between the hosts of one switch; nan for a switch with one host.
    """

    vertex: Integers
    names: Names
    members: tuple[Names, ...]
    hops: Floats
    delay: Floats
    inside: Floats


def measure_switch_distances(
    reference: Reference, hosts: tuple[Names, Integers], leaf: Integers, kept: npt.NDArray[np.bool_], delays: Floats
) -> SwitchDistances:
    """Compute the mean delay between the hosts of each pair of switches.

    Args:
        hosts: names of the hosts, and their vertices in the reference.
        leaf: int64 [host], vertex of each host's switch.
        kept: bool [host], False for misplaced and separated hosts, which are left out.
        delays: float64 [host, host], seconds.
    """
    if not kept.any():
        return SwitchDistances(np.zeros(0, np.int64), (), (), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0))
    names, vertex = hosts
    switches = np.unique(leaf[kept])
    members = [np.flatnonzero(kept & (leaf == each)) for each in switches]
    within = [np.nan_to_num(delays[np.ix_(own, own)], posinf=0.0) for own in members]
    hops = reference.count_hops(vertex[[own[0] for own in members]]).astype(np.float64)
    delay = average_processes(delays, [own.tolist() for own in members])
    for each in (hops, delay):
        np.fill_diagonal(each, np.inf)
    delay = np.minimum(np.nan_to_num(delay, nan=np.inf), np.nan_to_num(delay.T, nan=np.inf))
    return SwitchDistances(
        vertex=switches,
        names=tuple(reference.names[each] for each in switches.tolist()),
        members=tuple(tuple(names[host] for host in own.tolist()) for own in members),
        hops=hops,
        delay=delay,
        inside=np.array([each[each > 0].mean() if (each > 0).any() else np.nan for each in within]),
    )


def find_recabled_switches(between: SwitchDistances) -> tuple[RecabledSwitch, ...]:
    """Return the switches of which no nearest switch by the delays is also a nearest switch in the reference."""
    if len(between.names) < 3:
        return ()
    hops, delay, names = between.hops, between.delay, np.array(between.names)
    expected = hops <= hops.min(axis=1, keepdims=True)
    near = delay <= (1 + _AS_NEAR) * delay.min(axis=1, keepdims=True)
    return tuple(
        RecabledSwitch(
            between.names[row],
            between.members[row],
            tuple(names[expected[row]].tolist()),
            tuple(names[near[row]].tolist()),
        )
        for row in np.flatnonzero(~(expected & near).any(axis=1) & np.isfinite(delay).any(axis=1)).tolist()
    )


def compare_switch_links(between: SwitchDistances, graph: nx.Graph) -> tuple[Links, Links] | None:
    """Compare the reference's links between switches with links that delays show.

    The delays of the hosts' links are subtracted. A limit then separates delays over one link from delays over two
    links. Two switches without a link in the reference have an additional link if their delay is below the limit. A
    link of the reference is missing if the delay between its switches is about the delay of the shortest detour.

    Args:
        between: distances between switches, found by the delays between hosts that are not misplaced.
        graph: result of `reduce_graph`.

    Returns:
        Missing links, and additional links. None if delays over one link or over two links were not measured, or do not
        differ clearly.
    """
    half = np.nan_to_num(between.inside, nan=np.nan_to_num(_median(between.inside))) / 2
    apart = between.delay - half[:, None] - half
    count = len(half)
    linked = np.array(
        [[graph.has_edge(one, other) for other in between.vertex.tolist()] for one in between.vertex.tolist()], bool
    ).reshape(count, count)
    above = np.triu(np.isfinite(apart), 1)
    # `hops[1]` is the number of links on a path between two hosts whose switches are two links apart.
    hops = np.unique(between.hops[np.isfinite(between.hops)])
    one_link, more = apart[above & linked], apart[above & ~linked & np.isin(between.hops, hops[1:2])]
    if not one_link.size or not more.size:
        return None
    near, far = float(np.median(one_link)), float(np.median(more))
    middle = (near + far) / 2
    scatter = NORMAL * max(float(np.median(np.abs(values - np.median(values)))) for values in (one_link, more))
    if middle - near <= _CLEAR * scatter:
        return None

    def name(pairs: list[list[int]]) -> Links:
        return tuple((between.names[one], between.names[other]) for one, other in pairs)

    missing = [
        [one, other]
        for one, other in np.argwhere(above & linked & (apart > middle)).tolist()
        if apart[one, other] > near + (_count_around(graph, *between.vertex[[one, other]]) - 1.5) * (far - near)
    ]
    return name(missing), name(np.argwhere(above & ~linked & (apart < middle)).tolist())


def _count_around(graph: nx.Graph, one: int, other: int) -> int:
    """Return the number of links on the shortest detour between two linked switches; 1 if there is no detour."""
    without = nx.restricted_view(graph, [], [(one, other)])
    try:
        return int(nx.shortest_path_length(without, one, other))
    except nx.NetworkXNoPath:
        return 1


def group_by_switch(topology: InferredTopology, hosts: Sequence[int]) -> Integers:
    """Return the index of each host's switch, int64 [host]; a host with no switch or several has a separate index."""
    degree = np.bincount(topology.edge.ravel(), minlength=topology.vertices)
    place = np.arange(topology.vertices)
    for a, b in topology.edge.tolist():
        for host, other in ((a, b), (b, a)):
            if host < len(topology.hosts) <= other and degree[host] == 1:
                place[host] = other
    return np.unique(place[list(hosts)], return_inverse=True)[1].ravel().astype(np.int64)


def number_groups(leaf: Integers) -> Integers:
    """Return a consecutive index, from 0, for each host's switch, int64 [host]."""
    return np.unique(leaf, return_inverse=True)[1].ravel().astype(np.int64)


def join_moved(now: Integers, was: Integers, nearer: Integers) -> Integers:
    """Move each host that is nearer to another switch into that switch's group; return `now` with these changes."""
    joined = now.copy()
    for host in np.flatnonzero(nearer != was).tolist():
        groups = np.unique(now[(was == nearer[host]) & (nearer == was)])
        if len(groups) == 1:
            joined[host] = groups[0]
    return joined


def find_nearer(was: Integers, delays: Floats) -> Integers:
    """Return the index of each host's switch by the delays, int64 [host]. The result is not the expected switch but a
    nearer switch if the host's mean delay to the nearer switch's hosts is clearly shorter than to the expected switch's
    hosts. This mean delay must also be about the usual delay within the nearer switch. `was`: int64 [host], the
    expected indices. `delays`: float64 [host, host], seconds.
    """
    every_host = np.arange(len(was))
    member = np.eye(was.max() + 1)[was]
    mean = np.empty_like(member)
    for begin in range(0, len(was), _ROWS):
        some = delays[begin : begin + _ROWS]
        there = np.isfinite(some) & (some > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean[begin : begin + _ROWS] = (np.where(there, some, 0.0) @ member) / (there @ member)
    own = mean[every_host, was]
    nearest = np.nan_to_num(mean, nan=np.inf).argmin(axis=1)
    among = mean[every_host, nearest]
    inside = np.array([_median(own[was == each]) for each in range(was.max() + 1)])[nearest]
    moved = (among < (1 - _AS_NEAR) * own) & (np.abs(among - inside) < _AS_FAR * inside)
    return np.where(moved, nearest, was).astype(np.int64)


def _median(values: Floats) -> float:
    there = values[np.isfinite(values)]
    return float(np.median(there)) if len(there) else np.nan


def find_leaves(reference: Reference, hosts: Integers) -> Integers:
    """Return the vertex of each host's switch in the reference, int64 [host].

    The result for a host with several links is the vertex of the host.
    """
    graph = reference.adjacency()
    leaf = hosts.copy()
    for place, vertex in enumerate(hosts.tolist()):
        near = graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]]
        if len(near) == 1:
            leaf[place] = near[0]
    return leaf


def compare_groups(
    hosts: TopologyDifferences, was: Integers, now: Integers, leaf: npt.NDArray[np.str_], delays: Floats
) -> tuple[TopologyDifferences, npt.NDArray[np.bool_]]:
    """Compare the groups of hosts on each switch.

    A host is misplaced only if the delays group it with at least two hosts of another switch of the reference.

    Args:
        hosts: the comparison's result; this function adds differences.
        was, now: int64 [host], each host's group: in the reference, and by the delays.
        leaf: name of each host's switch in the reference.
        delays: float64 [host, host], seconds.

    Returns:
        The differences, and bool [host], True for hosts that are misplaced or separated.
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
                apart.append(SeparatedHosts(tuple(names[members]), switch, tuple(names[others])))
            continue
        neighbours = np.flatnonzero((now == there) & (was == home))
        if len(members) == size[expected] > 1 and size[home] > 1:
            merged.setdefault(there, {str(leaf[neighbours[0]])}).add(switch)
            continue
        for host in members.tolist() if len(neighbours) > 1 else ():
            moved[host] = True
            if len(others) and not _is_nearer(delays[host], neighbours, others):
                unsure.append(str(names[host]))
                continue
            found = str(leaf[neighbours[0]])
            misplaced.append(MisplacedHost(names[host], switch, tuple(names[others]), found, tuple(names[neighbours])))
    unknown = (f"the switch of {count_of(len(unsure), 'host')} ({', '.join(unsure[:5])})",) if unsure else ()
    together = tuple(tuple(sorted(each)) for each in merged.values())
    return replace(hosts, misplaced=tuple(misplaced), separated=tuple(apart), merged=together, unknown=unknown), moved


def _is_nearer(delay: Floats, these: Integers, those: Integers) -> bool:
    """Return True if a host's median delay to `these` hosts is clearly shorter than to `those` hosts."""
    near, far = (each[np.isfinite(each)] for each in (delay[these], delay[those]))
    return bool(len(near) and len(far) and np.median(near) < (1 - _AS_NEAR / 2) * np.median(far))
