# SPDX-License-Identifier: Apache-2.0
"""Distances between the switches that hosts are on, by a reference and by the delays, and the cables that differ."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.reference.differences import Names, RecabledSwitch
from ibprof_lab.topology.reference.link_times import average_processes
from ibprof_lab.topology.reference.reference_topology import Reference

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Links = tuple[tuple[str, str], ...]

_AS_NEAR = 0.1
_SCALED = 1.4826
_CLEAR = 5.0
"""Scaled median deviations between neighbours and other switches, so that hundreds of pairs are distinguished."""


@dataclass(frozen=True, slots=True)
class SwitchDistances:
    """Switches of a reference with hosts, and their distances.

    Attributes:
        vertex: int64 [switch], of the reference.
        names: of the switches.
        members: for each of them its hosts' names.
        hops: float64 [switch, switch], links between their hosts by the reference; inf on the diagonal.
        delay: float64 [switch, switch], seconds, the mean of their hosts', the shorter one of both directions; inf on
            the diagonal and where not measured.
        inside: float64 [switch], seconds, the mean delay between the hosts of each; nan for one host.
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
    """Average the delays of hosts to those of their switches.

    Args:
        reference: the expected topology.
        hosts: their names and vertices of the reference.
        leaf: int64 [host], the vertex of each host's switch.
        kept: bool [host], those that are where the reference has them.
        delays: float64 [host, host], seconds.
    """
    if not kept.any():
        return SwitchDistances(np.zeros(0, np.int64), (), (), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0))
    names, vertex = hosts
    switches = np.unique(leaf[kept])
    members = [np.flatnonzero(kept & (leaf == each)) for each in switches]
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
        inside=np.array([_mean_inside(delays[np.ix_(own, own)]) for own in members]),
    )


def _mean_inside(delays: Floats) -> float:
    there = np.isfinite(delays) & (delays > 0)
    return float(delays[there].mean()) if there.any() else np.nan


def find_recabled_switches(between: SwitchDistances) -> tuple[RecabledSwitch, ...]:
    """Return the switches whose nearest ones are not the expected ones."""
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
    """Find links between switches that the delays lack, and links that they have in addition to the reference's.

    Neighbours are one link apart and all others at least two, which is a gap in the delays without the hosts' links. A
    link is missing where the delay is that of the path around it; a shorter one is a slow link.

    Args:
        between: all switches of the reference, except those whose hosts are elsewhere.
        graph: of the reference.

    Returns:
        Missing links, and additional ones; None where the delays scatter too much.
    """
    half = np.nan_to_num(between.inside, nan=_median(between.inside)) / 2
    apart = between.delay - half[:, None] - half
    count = len(half)
    linked = np.array(
        [[graph.has_edge(one, other) for other in between.vertex.tolist()] for one in between.vertex.tolist()], bool
    ).reshape(count, count)
    above = np.triu(np.isfinite(apart), 1)
    one_link, more = apart[above & linked], apart[above & ~linked & (between.hops == _second(between.hops))]
    if not one_link.size or not more.size:
        return None
    near, far = float(np.median(one_link)), float(np.median(more))
    middle = (near + far) / 2
    scatter = _SCALED * max(float(np.median(np.abs(values - np.median(values)))) for values in (one_link, more))
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
    """Return the links of a shortest path between neighbours without their own link; 1 where there is none."""
    without = nx.restricted_view(graph, [], [(one, other)])
    try:
        return int(nx.shortest_path_length(without, one, other))
    except nx.NetworkXNoPath:
        return 1


def _second(hops: Floats) -> float:
    """Return the hops between switches with one other between them; nan where all are neighbours."""
    values = np.unique(hops[np.isfinite(hops)])
    return float(values[1]) if len(values) > 1 else np.nan


def _median(values: Floats) -> float:
    there = values[np.isfinite(values)]
    return float(np.median(there)) if there.size else 0.0
