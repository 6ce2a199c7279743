# SPDX-License-Identifier: Apache-2.0
"""Lower bound of any routing: bytes that must leave or enter a part of the fabric, over the speed of all its links.

Parts are single switches with their hosts, what hangs together below each level of a tree (leaves, pods), and what a
partitioner finds on any fabric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof.profile.exact_sums import find_distinct
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.hotspots.causes.situation import Situation

_CLEARLY = 1.01
"""Times that a partitioner's cut must need longer than one of the fabric's levels to be named in its place."""


@dataclass(frozen=True, slots=True)
class SwitchCut:
    """A part of a fabric whose border is narrow for what crosses it.

    Attributes:
        rail: the rail.
        level: highest level of its switches.
        nodes: of it; its hosts included.
        bytes: that cross its border, the one way in which they need longer.
        gbps: of all links that cross it, one direction.
        inside_gbps: of the hosts' links within it.
        seconds: that the bytes need on all of these links.
        found_by: how its switches were chosen.
        parts, used_parts: parts at this level that have hosts, and those whose hosts send or receive something.
        needed_parts: parts that would do for all hosts that send or receive.
    """

    rail: int
    level: int
    nodes: npt.NDArray[np.intp]
    bytes: int
    gbps: float
    inside_gbps: float
    seconds: float
    parts: int
    used_parts: int
    needed_parts: int
    found_by: str = "levels of the fabric"


def narrowest_cut(situation: Situation) -> SwitchCut | None:
    """Find the part whose border needs longest, of all rails; None where nothing crosses any."""
    cuts = [cut for rail in range(len(situation.subnets)) for cut in _cuts_of_rail(situation, rail)]
    best = max(cuts, key=lambda cut: cut.seconds, default=None)
    for rail in range(len(situation.subnets)):
        cut = _bisect(situation, rail)
        # Parts of a tree are easier to name, and to widen.
        if cut is not None and cut.seconds > _CLEARLY * (best.seconds if best else 0.0):
            best = cut
    return best


def _bisect(situation: Situation, rail: int) -> SwitchCut | None:
    """Return the narrowest bisection that a partitioner finds."""
    fabric = situation.subnets[rail].fabric
    source, destination, amount = _find_nodes(situation, rail)
    found = find_narrow_bisection(fabric, source, destination, amount)
    if found is None:
        return None
    part = found.inside.astype(np.int64)
    cut = _narrowest(situation, rail, 0, part, source, destination, amount)
    return replace(cut, found_by=found.method) if cut else None


def _find_nodes(
    situation: Situation, rail: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return source node, destination node and bytes of the flows of a rail."""
    fabric = situation.subnets[rail].fabric
    here = situation.flows.rail == rail
    return (
        fabric.lid_node[situation.flows.source_lid[here]],
        fabric.lid_node[situation.flows.destination_lid[here]],
        situation.flows.bytes[here].astype(np.float64),
    )


def _cuts_of_rail(situation: Situation, rail: int) -> list[SwitchCut]:
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    source, destination, amount = _find_nodes(situation, rail)
    cuts = []
    is_switch = fabric.node_kind == NodeKind.SWITCH
    highest = int(level.max(initial=0))
    for top in range(highest + 1):
        # `top` 0: each switch by itself, for fabrics whose leaves are cabled to each other.
        inner = ~is_switch | (level <= top)
        joined = inner[fabric.link_node].all(axis=1)
        if top == 0:
            joined = ~is_switch[fabric.link_node].all(axis=1)
        part = _hang_together(fabric.nodes, fabric.link_node[joined])
        cut = _narrowest(situation, rail, top, part, source, destination, amount)
        if cut is not None:
            cuts.append(cut)
    return cuts


def _hang_together(nodes: int, links: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Number what hangs together by links: int64 [node], from 0."""
    label = np.arange(nodes)
    while True:
        low = label.copy()
        np.minimum.at(low, links[:, 0], label[links[:, 1]])
        np.minimum.at(low, links[:, 1], label[links[:, 0]])
        low = low[low]
        if (low == label).all():
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        label = low


def _narrowest(
    situation: Situation,
    rail: int,
    level: int,
    part: npt.NDArray[np.int64],
    source: npt.NDArray[np.int32],
    destination: npt.NDArray[np.int32],
    amount: npt.NDArray[np.float64],
) -> SwitchCut | None:
    fabric = situation.subnets[rail].fabric
    parts = int(part.max(initial=0)) + 1
    gbps = np.nan_to_num(fabric.link_gbps)
    of_ends = part[fabric.link_node]
    crossing = of_ends[:, 0] != of_ends[:, 1]
    border = np.bincount(of_ends[crossing].ravel(), weights=np.repeat(gbps[crossing], 2), minlength=parts)
    is_host = fabric.node_kind == NodeKind.CA
    host_link = is_host[fabric.link_node].any(axis=1)
    inside = np.bincount(of_ends[host_link, 0], weights=gbps[host_link], minlength=parts)
    apart = part[source] != part[destination]
    out = np.bincount(part[source[apart]], weights=amount[apart], minlength=parts)
    into = np.bincount(part[destination[apart]], weights=amount[apart], minlength=parts)
    most = np.maximum(out, into)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where((border > 0) & (most > 0), most * 8e-9 / border, 0.0)
    worst = int(seconds.argmax())
    if seconds[worst] <= 0:
        return None
    talking = find_distinct(source[source >= 0], destination[destination >= 0])
    hosts_of_part = np.bincount(part[is_host], minlength=parts)
    in_order = np.sort(hosts_of_part)[::-1]
    return SwitchCut(
        rail=rail,
        level=level,
        nodes=np.flatnonzero(part == worst),
        bytes=int(most[worst]),
        gbps=float(border[worst]),
        inside_gbps=float(inside[worst]),
        seconds=float(seconds[worst]),
        parts=int((hosts_of_part > 0).sum()),
        used_parts=len(np.unique(part[talking])),
        needed_parts=1 + int(np.searchsorted(np.cumsum(in_order), len(talking))),
    )


SWITCHES_LIMIT = 1200
"""Switches beyond which no bisections are looked for."""

_HALVES = 96
"""Links whose nearer halves are tried."""

_EIGENVECTORS = 4

_IMPROVED = 4
"""Best candidates that are improved."""

HALF = "nearer half of a link, improved by moving switches"
SWEEP = "sweep along an eigenvector, improved by moving switches"

Floats = npt.NDArray[np.float64]
Sides = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bisection:
    """A set of nodes: bool [node], hosts with their switches; and how it was found."""

    inside: Sides
    method: str


@dataclass(frozen=True, slots=True)
class _CutGraph:
    """Switches with the speed of their links, and the bytes between their hosts; float64 [switch, switch] each."""

    gbps: Floats
    bytes: Floats

    def measure(self, side: Floats) -> Floats:
        """Return the bytes over the speed of cuts, of the direction in which more cross: float64 [cut].

        Args:
            side: float64 [cut, switch], 1 inside and 0 outside.
        """
        far = 1 - side
        speed = np.einsum("cs,cs->c", side @ self.gbps, far)
        out = np.einsum("cs,cs->c", side @ self.bytes, far)
        into = np.einsum("cs,cs->c", far @ self.bytes, side)
        return np.where(speed > 0, np.maximum(out, into) / np.maximum(speed, 1e-300), 0.0)

    def improve(self, side: Floats) -> tuple[float, Floats]:
        """Move the switch that helps most to the other side, as long as one helps."""
        best = float(self.measure(side[np.newaxis])[0])
        for _ in range(2 * len(side)):
            moved = self._measure_moves(side)
            chosen = int(moved.argmax())
            if not moved[chosen] > best * (1 + 1e-9):
                break
            best = float(moved[chosen])
            side = side.copy()
            side[chosen] = 1 - side[chosen]
        return best, side

    def _measure_moves(self, side: Floats) -> Floats:
        """Return what `measure` returns after moving each switch: float64 [switch]."""
        far = 1 - side
        sign = far - side  # 1 for those that would move in
        speed_in, speed_far = self.gbps @ side, self.gbps @ far
        speed = float(side @ speed_far) + sign * (speed_far - speed_in)
        to_in, to_far = self.bytes @ side, self.bytes @ far
        from_in, from_far = side @ self.bytes, far @ self.bytes
        out = float(side @ to_far) + sign * (to_far - from_in)
        into = float(far @ to_in) + sign * (from_far - to_in)
        size = side.sum() + sign
        valid = (speed > 1e-9) & (size > 0) & (size < len(side))
        return np.where(valid, np.maximum(out, into) / np.maximum(speed, 1e-300), 0.0)


def find_narrow_bisection(
    fabric: Fabric,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    amount: Floats,
) -> Bisection | None:
    """Return the cut of the longest time that the search finds; None where there is none, or too many switches.

    Args:
        fabric: nodes and links.
        source, destination: int [flow], nodes.
        amount: float64 [flow], bytes.
    """
    switches = np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)
    if not 2 < len(switches) <= SWITCHES_LIMIT or not len(source):
        return None
    number = np.full(fabric.nodes + 1, -1)
    number[switches] = np.arange(len(switches))
    of_node = _find_switches(fabric, number)
    graph = _make_graph(fabric, of_node, number, len(switches), source, destination, amount)
    candidates = [*_halve(graph), *_sweep(graph)]
    if not candidates:
        return None
    candidates.sort(key=lambda each: -each[0])
    best = max(((*graph.improve(side), method) for _, side, method in candidates[:_IMPROVED]), key=lambda each: each[0])
    inside = np.append(best[1], 0.0)[of_node[:-1]] > 0
    return Bisection(inside, best[2])


def _find_switches(fabric: Fabric, number: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the switch of each node, its own or the one that it is cabled to: int64 [node + 1], -1 for none."""
    of_node = number.astype(np.int64).copy()
    for end in (0, 1):
        near, far = fabric.link_node[:, end], fabric.link_node[:, 1 - end]
        is_host = (number[near] < 0) & (number[far] >= 0)
        of_node[near[is_host]] = number[far[is_host]]
    return of_node


def _make_graph(
    fabric: Fabric,
    of_node: npt.NDArray[np.int64],
    number: npt.NDArray[np.integer],
    count: int,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    amount: Floats,
) -> _CutGraph:
    gbps, between = np.zeros((count, count)), np.zeros((count, count))
    ends = number[fabric.link_node]
    inner = (ends >= 0).all(axis=1)
    np.add.at(gbps, (ends[inner, 0], ends[inner, 1]), np.nan_to_num(fabric.link_gbps)[inner])
    one, other = of_node[source], of_node[destination]
    known = (one >= 0) & (other >= 0) & (one != other)
    np.add.at(between, (one[known], other[known]), amount[known])
    np.fill_diagonal(gbps, 0)
    return _CutGraph(gbps + gbps.T, between)


def _halve(graph: _CutGraph) -> list[tuple[float, Floats, str]]:
    """Return the nearer halves of links; switches that are as near to both ends are tried on either side."""
    from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415  (slow to import)

    edges = np.argwhere(np.triu(graph.gbps) > 0)
    if not len(edges):
        return []
    edges = edges[np.unique(np.linspace(0, len(edges) - 1, _HALVES).astype(np.intp))]
    hops = shortest_path(graph.gbps > 0, unweighted=True, indices=np.unique(edges))
    row = {int(node): index for index, node in enumerate(np.unique(edges))}
    near = hops[[row[int(each)] for each in edges[:, 0]]]
    far = hops[[row[int(each)] for each in edges[:, 1]]]
    sides = np.concatenate([near < far, near <= far]).astype(np.float64)
    return [(float(time), side, HALF) for time, side in zip(graph.measure(sides), sides, strict=True)]


def _sweep(graph: _CutGraph) -> list[tuple[float, Floats, str]]:
    """Return the best cut along each of the first eigenvectors of the Laplacian."""
    count = len(graph.gbps)
    laplacian = np.diag(graph.gbps.sum(axis=1)) - graph.gbps
    _, vectors = np.linalg.eigh(laplacian)
    found = []
    for vector in vectors[:, 1 : 1 + _EIGENVECTORS].T:
        order = np.argsort(vector, kind="stable")
        gbps, sent = graph.gbps[np.ix_(order, order)], graph.bytes[np.ix_(order, order)]
        within = np.cumsum(2 * np.tril(gbps).sum(axis=1))
        speed = np.cumsum(gbps.sum(axis=1)) - within
        inner = np.cumsum(np.tril(sent).sum(axis=1) + np.tril(sent.T, -1).sum(axis=1))
        most = np.maximum(np.cumsum(sent.sum(axis=1)), np.cumsum(sent.sum(axis=0))) - inner
        times = np.where(speed[:-1] > 1e-9, most[:-1] / np.maximum(speed[:-1], 1e-9), 0.0)
        best = int(times.argmax())
        side = np.zeros(count)
        side[order[: best + 1]] = 1
        found.append((float(times[best]), side, SWEEP))
    return found
