# SPDX-License-Identifier: Apache-2.0
"""Find oversubscription, and a lower bound for any routing: bytes across a cut / speed of the cut's links.

A cut separates a part of the fabric from all other nodes. A part is a switch with its hosts, a pod (nodes that are
connected below a level), or one side of a bisection. The remedy for oversubscription is faster links across the
narrowest cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import format_bytes, format_seconds
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.fabric_parts import find_ends
from ibprof_converter.fabric.graph_search import find_parts
from ibprof_converter.hotspots.causes.load_cause import LINKS, OVERSUBSCRIPTION, Change, list_some, name_node
from ibprof_converter.hotspots.causes.situation import Situation

_CLEARLY = 1.01
"""A bisection is reported if its bytes need more than 1.01 times as long as the bytes of any cut between levels."""


_BUSY = 0.9
"""Additional links are tried only if largest time of a host link / of a link between switches is at most 0.9."""

SWITCHES_LIMIT = 1200
"""Bisections are searched only in fabrics with at most this number of switches."""

_SMALLEST_GROWTH = 0.05
"""Cables at free ports are advised if the cut becomes at least 5% faster."""

_HALVES = 96
"""`_halve` makes two bisections for each of at most this number of links."""

_EIGENVECTORS = 4

_IMPROVED = 4
"""Number of bisections with the longest times that are improved by moving switches."""

_BY_LEVEL = "levels of the fabric"

HALF = "switches nearer to one end of a link, improved by moving switches"
SWEEP = "sweep along an eigenvector, improved by moving switches"

Floats = npt.NDArray[np.float64]
Sides = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SwitchCut:
    """A part of a fabric, with the links from the part to all other nodes, and the bytes on these links.

    Attributes:
        level: highest level of the part's switches.
        nodes: nodes of the part, including hosts.
        bytes: bytes into the part or out of the part, whichever are more.
        gbps: sum of the speeds of all links that leave the part, in one direction, in Gbit/s.
        inside_gbps: sum of the speeds of the host links within the part, in Gbit/s.
        seconds: `bytes` / `gbps`, in seconds.
        found_by: name of the method that found the part.
    """

    rail: int
    level: int
    nodes: npt.NDArray[np.intp]
    bytes: int
    gbps: float
    inside_gbps: float
    seconds: float
    found_by: str = _BY_LEVEL


def find_routing_bound(situation: Situation) -> float:
    """Return a lower bound, for any forwarding tables, on the largest time of a link direction."""
    cut = narrowest_cut(situation)
    return max(situation.max_host_seconds, cut.seconds if cut else 0.0)


@lru_cache(maxsize=1)
def narrowest_cut(situation: Situation) -> SwitchCut | None:
    """Return the cut, of all rails' cuts, whose bytes need the longest time; None if no bytes cross a cut.

    The result for the last situation is cached: the search takes a second for a thousand switches.
    """
    best: SwitchCut | None = None
    bisections = []
    known: set[bytes] = set()
    for rail, subnet in enumerate(situation.subnets):
        fabric, level = subnet.fabric, situation.levels[rail]
        here = situation.flows.rail == rail
        lids = np.stack([situation.flows.source_lid[here], situation.flows.destination_lid[here]])
        ends = fabric.lid_node[lids]
        # Bytes between unconnected parts of the fabric are left out: more links across a cut would not carry them.
        is_switch = fabric.node_kind == NodeKind.SWITCH
        whole = find_parts(fabric.nodes, fabric.link_node[is_switch[fabric.link_node].all(axis=1)])
        joined = np.ones(len(lids[0]), np.bool_)
        if len(np.unique(whole[is_switch])) > 1:
            part = whole[find_ends(fabric)][fabric.lid_port[lids]]
            joined = part[0] == part[1]
        flows = ends[0, joined], ends[1, joined], situation.flows.bytes[here][joined].astype(np.float64)
        # Planes with equal cabling and equal bytes have the same cuts: search only once.
        arrays = (fabric.node_kind, fabric.link_node, fabric.link_gbps, level, *flows)
        digest = sha256(b"".join(sha256(np.ascontiguousarray(each).data).digest() for each in arrays)).digest()
        if digest in known:
            continue
        known.add(digest)
        for top in range(int(level.max(initial=0)) + 1):
            part = _number_parts(fabric, level, top)
            cut = _narrowest(fabric, rail, top, part, *flows)
            if cut is not None and (best is None or cut.seconds > best.seconds):
                best = cut
        found = find_narrow_bisection(fabric, *flows)
        if found is not None:
            inside, method = found
            cut = _narrowest(fabric, rail, 0, inside.astype(np.int64), *flows)
            bisections += [replace(cut, found_by=method)] if cut else []
    for cut in bisections:
        # A cut between levels is preferred: its switches have a common name, and links are easier to add.
        if cut.seconds > _CLEARLY * (best.seconds if best else 0.0):
            best = cut
    return best


def _number_parts(fabric: Fabric, level: npt.NDArray[np.int32], top: int) -> npt.NDArray[np.int64]:
    """Return the part of each node, int64 [node]: nodes connected through switches up to level `top` form a part.

    For `top` 0, each switch with its hosts is a part, even if leaves are cabled to each other.
    """
    is_switch = fabric.node_kind == NodeKind.SWITCH
    joins = (
        (~is_switch | (level <= top))[fabric.link_node] if top else ~is_switch[fabric.link_node].all(axis=1)[:, None]
    )
    parts = find_parts(fabric.nodes, fabric.link_node[joins.all(axis=1)])
    return np.unique(parts, return_inverse=True)[1].astype(np.int64)


def _list_moves(situation: Situation, cut: SwitchCut) -> list[str]:
    """Return advice without new links: use more parts of the fabric, or place communicating ranks in one part."""
    if cut.found_by != _BY_LEVEL:
        return []
    fabric = situation.subnets[cut.rail].fabric
    part = _number_parts(fabric, situation.levels[cut.rail], cut.level)
    of_node = situation.hosts.of_node[cut.rail]
    has_hosts = np.unique(part[of_node >= 0])
    here = situation.flows.rail == cut.rail
    ends = np.stack([situation.flows.source_lid[here], situation.flows.destination_lid[here]])
    pairs = np.unique(of_node[fabric.lid_node[ends]], axis=1)
    used = np.unique(part[fabric.lid_node[ends]])
    is_leaf = int((fabric.node_kind[cut.nodes] == NodeKind.SWITCH).sum()) == 1
    noun, many = ("leaf", "leaves") if is_leaf else ("pod", "pods")
    capacity = int(np.bincount(part[of_node >= 0])[has_hosts].max())
    partners = int(np.bincount(pairs[0][pairs[0] >= 0]).max(initial=0))
    moves = [f"spread the job over more {many}"] if len(used) < len(has_hosts) else []
    return moves + ([f"place ranks that send to each other on one {noun}"] if partners < capacity else [])


def try_links(situation: Situation) -> Iterator[Change]:
    """Try more or faster links across the narrowest cut: at most as fast as the host links of the cut's part."""
    if situation.max_host_seconds > _BUSY * situation.max_switch_seconds:
        return
    cut = narrowest_cut(situation)
    if cut is None:
        return
    needed = cut.seconds / max(situation.max_host_seconds, 1e-300)
    room = _find_room(situation, cut)
    factor = min(needed, cut.inside_gbps / cut.gbps)
    if 1 + _SMALLEST_GROWTH <= room < factor:
        factor = room
    is_full = room < factor
    if cut.inside_gbps <= cut.gbps:
        why_not = "not tried: the links of the narrowest cut are together as fast as the hosts' links behind the cut"
        yield Change(OVERSUBSCRIPTION, LINKS, "more or faster links", None, why_not=why_not)
        return
    if factor <= 1 or not np.isfinite(factor):
        return
    name = name_cut(situation, cut)
    moves = _list_moves(situation, cut)
    if is_full:
        faster = f"links {factor:.2f} times as fast, on other switches: the present switches have no free ports"
        choices, change = [*moves, faster], f"{faster} ({name}, and all similar parts of the fabric)"
    else:
        if_free = ", if the switches have free ports (their number of ports is not known)" if np.isnan(room) else ""
        choices = [*moves, f"add links: {factor:.2f} times as many{if_free}"]
        change = (
            f"{factor:.2f} times as many links, or links {factor:.2f} times as fast, at {name} and at all similar "
            "parts of the fabric"
        )
    yield Change(
        cause=OVERSUBSCRIPTION,
        kind=LINKS,
        what=f"{factor:.2f} times as many links, or links {factor:.2f} times as fast, at {name} and at all similar "
        "parts of the fabric",
        after=_widen(situation, cut, factor),
        at=(name,),
        evidence=(
            f"{format_bytes(cut.bytes)} need at least {format_seconds(cut.seconds)}, on any routes, across the links "
            f"around {name}: these links have {cut.gbps:g} Gb/s, the hosts' links inside {cut.inside_gbps:g} Gb/s "
            f"({cut.inside_gbps / cut.gbps:.2f} to 1)",
        ),
        advice=join_choices(choices),
        change=change,
    )


def _find_room(situation: Situation, cut: SwitchCut) -> float:
    """Return (links + free ports) / links across a cut: the largest possible growth of the cut; nan if unknown."""
    rooms = []
    for subnet, level in zip(situation.subnets, situation.levels, strict=True):
        fabric = subnet.fabric
        wide = _find_wide(fabric, level, cut)
        used = np.bincount(fabric.link_node.ravel(), minlength=fabric.nodes)
        crossing = np.bincount(fabric.link_node[wide].ravel(), minlength=fabric.nodes)
        if (fabric.node_ports[crossing > 0] == 0).any():
            return float("nan")
        free = np.where(crossing > 0, fabric.node_ports - used, 0)
        part = find_parts(fabric.nodes, fabric.link_node[~wide])
        links, ports = (np.bincount(part, weights=each) for each in (crossing, free))
        rooms.append(float((1 + ports[links > 0] / links[links > 0]).min(initial=np.inf)))
    return min(rooms)


def join_choices(choices: Sequence[str]) -> str:
    """Return choices as text, such as "a, b, or c"."""
    return f"{', '.join(choices[:-1])}, or {choices[-1]}" if len(choices) > 1 else choices[0]


def _widen(situation: Situation, cut: SwitchCut, factor: float) -> Situation:
    subnets = []
    for subnet, level in zip(situation.subnets, situation.levels, strict=True):
        fabric = subnet.fabric
        wide = _find_wide(fabric, level, cut)
        gbps = np.where(wide, fabric.link_gbps * factor, fabric.link_gbps)
        subnets.append(replace(subnet, fabric=replace(fabric, link_gbps=gbps)))
    return situation.changed(subnets=subnets)


def _find_wide(fabric: Fabric, level: npt.NDArray[np.int32], cut: SwitchCut) -> npt.NDArray[np.bool_]:
    """Return the links between switches that reach above the cut's level; for level 0, all links between switches."""
    upper = np.maximum(level[fabric.link_node[:, 0]], level[fabric.link_node[:, 1]])
    between: npt.NDArray[np.bool_] = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    return between & (upper > cut.level) if cut.level else between


def name_cut(situation: Situation, cut: SwitchCut) -> str:
    """Return text that names the first three switches of a cut."""
    fabric = situation.subnets[cut.rail].fabric
    switches = [name_node(fabric, int(node)) for node in cut.nodes if fabric.node_kind[node] == NodeKind.SWITCH]
    return list_some(switches, 3)


def _narrowest(
    fabric: Fabric,
    rail: int,
    level: int,
    part: npt.NDArray[np.int64],
    source: npt.NDArray[np.int32],
    destination: npt.NDArray[np.int32],
    amount: npt.NDArray[np.float64],
) -> SwitchCut | None:
    """Return the part whose cut needs the longest time; None if no bytes cross a cut. `part`: int64 [node]."""
    parts = int(part.max(initial=0)) + 1
    gbps = np.nan_to_num(fabric.link_gbps)
    of_ends = part[fabric.link_node]
    crossing = of_ends[:, 0] != of_ends[:, 1]
    border = np.bincount(of_ends[crossing].ravel(), weights=np.repeat(gbps[crossing], 2), minlength=parts)
    host_link = (fabric.node_kind[fabric.link_node] == NodeKind.CA).any(axis=1)
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
    return SwitchCut(
        rail=rail,
        level=level,
        nodes=np.flatnonzero(part == worst),
        bytes=int(most[worst]),
        gbps=float(border[worst]),
        inside_gbps=float(inside[worst]),
        seconds=float(seconds[worst]),
    )


@dataclass(frozen=True, slots=True)
class _CutGraph:
    """Speed of the links, and bytes between the hosts, of each pair of switches: float64 [switch, switch] each."""

    gbps: Floats
    bytes: Floats

    def measure(self, side: Floats) -> Floats:
        """Return the time (bytes / speed) of each cut, in the direction with more bytes: float64 [cut].

        Args:
            side: float64 [cut, switch], the switch's side of the cut: 0 or 1.
        """
        far = 1 - side
        speed = np.einsum("cs,cs->c", side @ self.gbps, far)
        out = np.einsum("cs,cs->c", side @ self.bytes, far)
        into = np.einsum("cs,cs->c", far @ self.bytes, side)
        return np.where(speed > 0, np.maximum(out, into) / np.maximum(speed, 1e-9), 0.0)

    def improve(self, side: Floats) -> tuple[float, Floats]:
        """Change the side of the best switch, one switch at a time, until no change lengthens the cut's time."""
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
        """Return the time of the cut after a single switch changes sides, for each switch: float64 [switch]."""
        far = 1 - side
        sign = far - side  # 1: the switch would move to side 1; -1: to side 0
        speed_in, speed_far = self.gbps @ side, self.gbps @ far
        speed = float(side @ speed_far) + sign * (speed_far - speed_in)
        to_in, to_far = self.bytes @ side, self.bytes @ far
        from_in, from_far = side @ self.bytes, far @ self.bytes
        out = float(side @ to_far) + sign * (to_far - from_in)
        into = float(far @ to_in) + sign * (from_far - to_in)
        size = side.sum() + sign
        valid = (speed > 1e-9) & (size > 0) & (size < len(side))
        return np.where(valid, np.maximum(out, into) / np.maximum(speed, 1e-9), 0.0)


def find_narrow_bisection(
    fabric: Fabric,
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    amount: Floats,
) -> tuple[Sides, str] | None:
    """Search for the cut of the switches whose bytes need the longest time; None if no cut is found.

    The search needs flows, and between 3 and `SWITCHES_LIMIT` switches.

    Args:
        fabric: nodes and links.
        source, destination: int [flow], source and destination node of each flow.
        amount: float64 [flow], bytes of each flow.

    Returns:
        The nodes on one side of the cut, bool [node]; and the method that found the cut.
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
    return inside, best[2]


def _find_switches(fabric: Fabric, number: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the index of each switch, and of the switch of each host: int64 [node + 1], -1 if unknown."""
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
    """Return two bisections, with times and method, for each of at most `_HALVES` links.

    Side 1 contains the switches nearer to the link's first end; in the second bisection, also equidistant switches.
    """
    edges = np.argwhere(np.triu(graph.gbps) > 0)
    if not len(edges):
        return []
    edges = edges[np.unique(np.linspace(0, len(edges) - 1, _HALVES).astype(np.intp))]
    ends, row = np.unique(edges, return_inverse=True)
    near, far = _count_hops(graph.gbps > 0, ends)[row.reshape(edges.shape)].swapaxes(0, 1)
    sides = np.concatenate([near < far, near <= far]).astype(np.float64)
    return [(float(time), side, HALF) for time, side in zip(graph.measure(sides), sides, strict=True)]


def _count_hops(is_linked: npt.NDArray[np.bool_], start: npt.NDArray[np.intp]) -> Floats:
    """Return the number of hops from each of `start` to each switch: float64 [start, switch], infinite without a path.

    This breadth-first search avoids scipy, whose import is slow.
    """
    linked = is_linked.astype(np.float32)
    hops = np.full((len(start), len(linked)), np.inf)
    front = np.zeros(hops.shape, np.bool_)
    front[np.arange(len(start)), start] = True
    distance = 0
    while front.any():
        hops[front] = distance
        distance += 1
        front = (front @ linked > 0) & np.isinf(hops)
    return hops


def _sweep(graph: _CutGraph) -> list[tuple[float, Floats, str]]:
    """Sort the switches by each of the Laplacian's first eigenvectors; return the longest cut of each order."""
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
