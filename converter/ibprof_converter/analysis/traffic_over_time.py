# SPDX-License-Identifier: Apache-2.0
"""Compute traffic over time: sums of recorded intervals, and the use of the most loaded link directions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import UNKNOWN_PEER, Intervals, IntervalTimes
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.outputs.trace_events import LinkUse
from ibprof_converter.routing.subnet_routes import scan_flows
from ibprof_converter.traffic.traffic_data import NO_RANK, Traffic

LINKS = 16
"""Number of link directions whose use is computed."""

_MOST_STEPS = 2000

_CELLS_AT_ONCE = 1 << 22


def follow_links(loads: FabricLoads, intervals: Intervals) -> tuple[LinkUse, ...]:
    """Return the use over time of the most loaded link directions; the most loaded comes first.

    A rank's bytes to a group of peers in an interval are spread evenly over the interval. These bytes are divided among
    link directions as in the whole run. A link direction's bytes in all intervals sum to its load along the forwarding
    tables.

    Args:
        loads: loads of one job with known ranks.
        intervals: intervals of the job's run, not empty.
    """
    traffic = loads.traffic
    if traffic is None:
        return ()
    first, last = int(intervals.begin_ns.min()), int(intervals.end_ns.max())
    lengths = (intervals.end_ns - intervals.begin_ns).astype(np.float64)
    step = max(float(np.median(lengths)), (last - first) / _MOST_STEPS, 1.0)
    edges = np.arange(0, max(last - first, 1) + step, step)
    busiest = find_busiest(loads)
    if not busiest:
        return ()
    sent = np.column_stack([_bytes_of_rows(traffic, loads, intervals, each) for each in busiest])
    per_step = np.diff(sum_until(intervals, sent, first, edges), axis=0)
    found = []
    for number, (rail, link, end) in enumerate(busiest):
        gbps = float(loads.fabric.fabrics[rail].link_gbps[link])
        share = per_step[:, number] * 8.0 / (gbps * np.diff(edges))
        found.append(LinkUse(name_end(loads, rail, link, end), first, edges, np.append(share, 0.0)))
    return tuple(found)


def find_busiest(loads: FabricLoads) -> list[tuple[int, int, int]]:
    """Return rail, link and end of the `LINKS` link directions with the largest times at line rate."""
    found = []
    for rail, (by_link, fabric) in enumerate(zip(loads.by_rail, loads.fabric.fabrics, strict=True)):
        seconds = by_link.sum(axis=2) / fabric.link_gbps[:, np.newaxis]
        for end in np.argsort(-seconds, axis=None, kind="stable")[:LINKS].tolist():
            if seconds.flat[end] > 0:
                found.append((-float(seconds.flat[end]), rail, *divmod(end, 2)))
    return [(rail, link, end) for _, rail, link, end in sorted(found)[:LINKS]]


def _bytes_of_rows(
    traffic: Traffic, loads: FabricLoads, intervals: Intervals, direction: tuple[int, int, int]
) -> npt.NDArray[np.float64]:
    """Return the bytes of each interval on a link direction: float64 [row of the intervals]."""
    rail, link, end = direction
    # Leave out measured bytes with unknown ranks: intervals are per rank.
    is_named = (traffic.source_rank != NO_RANK) & (traffic.destination_rank != NO_RANK)
    here = np.flatnonzero((traffic.rail == rail) & is_named)
    routes = loads.fabric.subnets[rail].routes
    (rows,) = scan_flows(routes, traffic.source_lid[here], traffic.destination_lid[here], [2 * link + end])
    flows = here[rows]
    ranks = len(traffic.rank_lid)
    of_pair = np.zeros((ranks, ranks + 1))  # [rank, peer + 1], bytes from the rank to the peer
    np.add.at(of_pair[:, 1:], (traffic.source_rank[flows], traffic.destination_rank[flows]), traffic.bytes[flows])
    upto = of_pair.cumsum(axis=1)
    is_known = intervals.last_peer != UNKNOWN_PEER
    begin = np.where(is_known, intervals.first_peer, 0).astype(np.int64).clip(0, ranks)
    after = np.where(is_known, intervals.last_peer.astype(np.int64) + 1, ranks).clip(0, ranks)
    on_link = upto[intervals.rank, after] - upto[intervals.rank, begin]
    # Divide the link's bytes of each rank and group of peers among intervals, in proportion to the intervals' bytes.
    key = (intervals.rank.astype(np.int64) * (ranks + 1) + begin) * (ranks + 1) + after
    _, group = np.unique(key, return_inverse=True)
    total = np.bincount(group, weights=intervals.bytes.astype(np.float64))[group]
    sent = on_link * intervals.bytes / np.maximum(total, 1.0)
    load = float(loads.by_rail[rail][link, end].sum())
    scaled: npt.NDArray[np.float64] = sent * (load / sent.sum()) if sent.sum() else sent
    return scaled


def name_end(loads: FabricLoads, rail: int, link: int, end: int) -> str:
    """Return the name of a link direction: sending node and port, then receiving node."""
    fabric = loads.fabric.fabrics[rail]
    node, port = fabric.link_node[link], fabric.link_port[link]
    rail_of = f"rail {rail}: " if len(loads.fabric.fabrics) > 1 else ""
    return f"{rail_of}{fabric.node_name[node[end]]} port {int(port[end])} -> {fabric.node_name[node[1 - end]]}"


def sum_until(
    intervals: Intervals | IntervalTimes,
    amounts: npt.NDArray[np.uint64] | npt.NDArray[np.float64],
    first: int,
    edges: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return the sums of the intervals' amounts from the first edge (a time) to each edge.

    Args:
        intervals: intervals of a run.
        amounts: [row], one amount per interval; or [row, kind], one amount per interval and kind.
        first: Unix time of the first edge, in ns.
        edges: float64 [edge], times in ns after `first`; the first time is 0.

    Returns:
        Sums, float64 [edge] or [edge, kind].
    """
    sums = np.zeros((len(edges), *amounts.shape[1:]))
    rows_at_once = max(1, _CELLS_AT_ONCE // len(edges))
    for begin in range(0, len(amounts), rows_at_once):
        rows = slice(begin, begin + rows_at_once)
        starts = (intervals.begin_ns[rows] - np.uint64(first)).astype(np.float64)
        lengths = (intervals.end_ns[rows] - intervals.begin_ns[rows]).astype(np.float64)
        part = (edges[1:, None] - starts) / np.maximum(lengths, 1.0)
        sums[1:] += np.clip(part, 0.0, 1.0) @ amounts[rows].astype(np.float64)
    return sums
