# SPDX-License-Identifier: Apache-2.0
"""Compute and sort the loads of link directions on all rails, and bound the loads of adaptive routing.

The verdict, lists, pictures and files show link directions in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.text.quantities import count_of, format_bytes
from ibprof_converter.choices import RANKINGS
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.route_choice import are_modelled
from ibprof_converter.routing.spread import spread
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.traffic_data import ALL, PortCounters, Traffic

if TYPE_CHECKING:
    from ibprof_converter.routing.adaptive_bounds import AdaptiveBounds, LidFlows

UNKNOWN_PORT = "port is not in the fabric"

Group = tuple[str, str]
"""(region, operation). `ALL` replaces the name if loads are not split by region (operation)."""


STATIC, ESTIMATE = "static", "estimate"
"""Kinds of loads: along the forwarding tables, or estimated for adaptive routing."""

LABEL = (
    "with adaptive routing a link has no single load. `shared` assumes that switches spread traffic evenly over the "
    "ports they may choose. `most` assumes that the link carries all flows that can use it. `estimate` assumes that "
    "packets avoid fuller ports, and decides the order of links and the causes. Static loads follow the forwarding "
    "tables"
)

MODEL_LABEL = (
    "routes are not known. `shared` assumes that all shortest paths are used evenly. `most` assumes that a link "
    "carries all flows that can use it on a shortest path. Other loads follow the modelled routes"
)

_TOP = 10

_LOADS = {"static": "by the tables", "shared": "shared", "estimate": "estimate", "most": "at most"}


@dataclass(frozen=True, slots=True)
class Loads:
    """Loads of the links of all rails.

    bytes_total is always the sum of bytes_routed, bytes_on_host and all values of bytes_unrouted.

    Attributes:
        by_rail: for each rail uint64 [link, end, group], bytes that the node at `end` sends on the link.
        groups: region and operation of each group of flows; a single `(ALL, ALL)` if loads are not split.
        bytes_routed: bytes that arrive over links; for port counters, bytes that were counted on links of the fabric.
        bytes_on_host: bytes between ranks of one host, which load no link.
        bytes_unrouted: reason -> bytes without a route.
        jobs: job of each group; empty if there is only one job.
        sites: call site of each group; empty if call sites are not distinguished.
        reasons: for each rail uint8 [flow of the rail], the `Reason` why each flow's route ended; empty for a matrix
            and for port counters.
    """

    by_rail: tuple[npt.NDArray[np.uint64], ...]
    groups: tuple[Group, ...]
    bytes_total: int
    bytes_routed: int
    bytes_on_host: int
    bytes_unrouted: dict[str, int]
    jobs: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    reasons: tuple[npt.NDArray[np.uint8], ...] = ()


def load_links(
    traffic: Traffic,
    subnets: Sequence[Subnet],
    by_region: bool = False,
    by_operation: bool = False,
    by_site: bool = False,
) -> Loads:
    """Send each flow along the forwarding tables of its rail. Loads are always split by job.

    Args:
        by_region, by_operation, by_site: true to split loads by region, operation or call site.
    """
    grouping = _group(traffic, by_region, by_operation, by_site)
    unrouted = dict(traffic.unmapped)
    by_rail, reasons = [], []
    routed = 0
    on_host = traffic.on_host_bytes
    for rail, subnet in enumerate(subnets):
        here = traffic.rail == rail if len(subnets) > 1 else slice(None)
        loads = spread(
            subnet.routes,
            traffic.source_lid[here],
            traffic.destination_lid[here],
            traffic.bytes[here],
            grouping.of_flow[here],
            len(grouping.names),
        )
        by_rail.append(loads.bytes)
        reasons.append(loads.reason)
        routed += sum_exactly(loads.routed)
        on_host += loads.same_port
        for reason, amount in loads.unrouted.items():
            unrouted[reason.label] = unrouted.get(reason.label, 0) + amount
    return Loads(
        by_rail=tuple(by_rail),
        groups=grouping.names,
        jobs=grouping.jobs,
        sites=grouping.sites,
        bytes_total=sum_exactly(traffic.bytes) + traffic.on_host_bytes + sum(traffic.unmapped.values()),
        bytes_routed=routed,
        bytes_on_host=on_host,
        bytes_unrouted=unrouted,
        reasons=tuple(reasons),
    )


@dataclass(frozen=True, slots=True)
class _Grouping:
    """Groups of flows: `names` as `Loads.groups`; the index of each flow's group: [flow]."""

    names: tuple[Group, ...]
    jobs: tuple[str, ...]
    sites: tuple[str, ...]
    of_flow: npt.NDArray[np.int32]


def _group(traffic: Traffic, by_region: bool, by_operation: bool, by_site: bool) -> _Grouping:
    """Return a group for each combination of job, region, operation and site in the traffic, sorted in this order."""
    several = len(traffic.jobs) > 1
    if not (by_region or by_operation or by_site or several) or not len(traffic.bytes):
        nothing = np.broadcast_to(np.int32(0), len(traffic.bytes))
        return _Grouping(((ALL, ALL),), (ALL,) if several else (), (ALL,) if by_site else (), nothing)
    columns = (
        (traffic.job, traffic.jobs, several),
        (traffic.region, traffic.regions, by_region),
        (traffic.operation, traffic.operations, by_operation),
        (traffic.site, traffic.sites, by_site),
    )
    key = np.zeros(len(traffic.bytes), np.int64)
    for column, names, chosen in columns:
        if chosen and len(names) > 1:
            key = key * len(names) + column
    keys, group = np.unique(key, return_inverse=True)
    jobs, regions, operations, sites = _name_groups(keys, [names if chosen else (ALL,) for _, names, chosen in columns])
    return _Grouping(
        names=tuple(zip(regions, operations, strict=True)),
        jobs=jobs if several else (),
        sites=sites if by_site else (),
        of_flow=group.astype(np.int32),
    )


def _name_groups(keys: npt.NDArray[np.int64], names: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the name that each key encodes, for each column of `names`.

    A key is a number with one digit per column: the index of a name in the column.
    """
    found: list[tuple[str, ...]] = []
    for column in reversed(names):
        keys, digit = np.divmod(keys, len(column))
        found.append(tuple(column[index] for index in digit.tolist()))
    return found[::-1]


def match_counters(
    counters: PortCounters, fabrics: Sequence[Fabric]
) -> tuple[tuple[npt.NDArray[np.uint64], ...], tuple[npt.NDArray[np.bool_], ...], npt.NDArray[np.bool_]]:
    """Match counters with link directions, by port number and NODE GUID or PORT GUID.

    Returns:
        Three values. For each rail uint64 [link, end]: the counted bytes. For each rail bool [link, end]: true if the
        link direction has a counter. bool [counter]: true if the counter's port has a link.
    """
    counted, known = [], []
    matched = np.zeros(len(counters.bytes), bool)
    wanted = list(zip(counters.node_guid.tolist(), counters.port.tolist(), strict=True))
    for fabric in fabrics:
        numbers = fabric.link_port.ravel().tolist()
        nodes = fabric.link_node.ravel()
        ends = dict(zip(zip(_port_guids(fabric), numbers, strict=True), range(len(numbers)), strict=True))
        ends |= dict(zip(zip(fabric.node_guid[nodes].tolist(), numbers, strict=True), range(len(numbers)), strict=True))
        end = np.array([ends.get(key, -1) for key in wanted], np.intp)
        here = (end >= 0) & ~matched
        sums, seen = np.zeros(2 * fabric.links, np.uint64), np.zeros(2 * fabric.links, np.bool_)
        np.add.at(sums, end[here], counters.bytes[here])
        seen[end[here]] = True
        counted.append(sums.reshape(-1, 2))
        known.append(seen.reshape(-1, 2))
        matched |= here
    return tuple(counted), tuple(known), matched


def _port_guids(fabric: Fabric) -> list[int]:
    """Return the PORT GUID at each end of each link; for a switch, the GUID of its port 0."""
    guid = dict(
        zip(
            zip(fabric.port_node.tolist(), fabric.port_number.tolist(), strict=True),
            fabric.port_guid.tolist(),
            strict=True,
        )
    )
    ends = zip(fabric.link_node.ravel().tolist(), fabric.link_port.ravel().tolist(), strict=True)
    return [guid.get((node, port), guid.get((node, 0), 0)) for node, port in ends]


def load_counted(counters: PortCounters, fabrics: Sequence[Fabric]) -> Loads:
    """Return the counted bytes as link loads."""
    counted, _, matched = match_counters(counters, fabrics)
    unknown = sum_exactly(counters.bytes[~matched])
    total = sum_exactly(counters.bytes)
    return Loads(
        by_rail=tuple(each[:, :, np.newaxis] for each in counted),
        groups=((ALL, ALL),),
        bytes_total=total,
        bytes_routed=total - unknown,
        bytes_on_host=0,
        bytes_unrouted={UNKNOWN_PORT: unknown} if unknown else {},
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds and estimates of link loads with adaptive or unknown routes.

    Attributes:
        reason: text on why bounds are computed.
        label: text on the meaning of the bounds.
        is_adaptive: true if switches choose a path for each packet; false if paths are fixed but unknown.
    """

    by_rail: tuple[AdaptiveBounds, ...]
    reason: str
    label: str = LABEL
    is_adaptive: bool = True

    @property
    def estimates(self) -> tuple[npt.NDArray[np.uint64], ...]:
        """The estimated load of each link direction: for each rail uint64 [link, end], bytes."""
        return tuple(np.rint(each.estimate).astype(np.uint64) for each in self.by_rail)


def bound_loads(traffic: Traffic, subnets: Sequence[Subnet], asked: bool) -> Bounds | None:
    """Return bounds on the traffic's link loads with adaptive or unknown routes.

    Args:
        asked: true if the user asked for bounds.

    Returns:
        None if the user did not ask for bounds, no dump shows adaptive routing, and no routes are modelled.
    """
    adaptive = [subnet.adaptive for subnet in subnets if subnet.adaptive]
    is_model = are_modelled(subnets)
    if not (asked or adaptive or is_model):
        return None
    from ibprof_converter.routing.adaptive_bounds import bound_adaptive  # noqa: PLC0415  (few switches route adaptively)
    from ibprof_converter.routing.adaptive_paths import AdaptivePaths  # noqa: PLC0415  (few switches route adaptively)

    reason = "; ".join(f"{each.name}: {count_of(each.switches, 'adaptive switch')}" for each in adaptive) or (
        "routes are modelled" if is_model and not asked else "--adaptive"
    )
    by_rail = (
        bound_adaptive(AdaptivePaths(subnet.routes.network, subnet.adaptive), _parts(traffic, rail))
        for rail, subnet in enumerate(subnets)
    )
    is_adaptive = bool(asked or adaptive)
    return Bounds(tuple(by_rail), reason, LABEL if is_adaptive else MODEL_LABEL, is_adaptive)


def _parts(traffic: Traffic, rail: int) -> Iterator[LidFlows]:
    for part in traffic.parts():
        here = np.flatnonzero(part.rail == rail)
        yield part.source_lid[here], part.destination_lid[here], part.bytes[here]


def bounds_as_json(bounds: Bounds, loads: Loads, fabrics: Sequence[Fabric]) -> dict[str, object]:
    """Return the JSON object `adaptive`: the largest loads between switches, and the most loaded link directions."""
    ends = _find_ends(bounds, loads, fabrics)
    return {
        "label": bounds.label,
        "reason": bounds.reason,
        "max_switch_link": {name: max((end[name] for end in ends), default=0) for name in _LOADS},
        "bytes_unrouted": sum(each.unrouted for each in bounds.by_rail),
        "link_ends": sorted(ends, key=_rank)[:_TOP],
    }


def describe_bounds(bounds: Bounds, loads: Loads, fabrics: Sequence[Fabric]) -> Iterator[str]:
    """Yield lines of text with the bounds on loads between switches."""
    ends = _find_ends(bounds, loads, fabrics)
    yield f"{'Adaptive routing' if bounds.is_adaptive else 'Unknown routes'} ({bounds.reason})"
    yield f"  {bounds.label}"
    yield "  largest load of a link direction between switches:"
    for name, words in _LOADS.items():
        yield f"    {words:<14}{format_bytes(max((int(end[name]) for end in ends), default=0))}"
    for end in sorted(ends, key=_rank)[:_TOP]:
        yield (
            f"  rail {end['rail']}: {end['name']} port {end['port']}: by the tables {format_bytes(end['static'])}, "
            f"shared {format_bytes(end['shared'])}, estimate {format_bytes(end['estimate'])}, "
            f"at most {format_bytes(end['most'])}"
        )


def _find_ends(bounds: Bounds, loads: Loads, fabrics: Sequence[Fabric]) -> list[dict[str, Any]]:
    """Return, as JSON objects, the link directions between switches that may carry bytes."""
    ends = []
    for rail, (fabric, bound, loaded) in enumerate(zip(fabrics, bounds.by_rail, loads.by_rail, strict=True)):
        static = loaded.sum(axis=2, dtype=np.uint64)
        between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
        for link, end in np.argwhere(((bound.most > 0) | (static > 0)) & between[:, np.newaxis]).tolist():
            node = fabric.link_node[link, end]
            ends.append(
                {
                    "rail": rail,
                    "guid": f"0x{int(fabric.node_guid[node]):016x}",
                    "name": fabric.node_name[node],
                    "port": int(fabric.link_port[link, end]),
                    "static": int(static[link, end]),
                    "shared": round(float(bound.shared[link, end])),
                    "estimate": round(float(bound.estimate[link, end])),
                    "most": int(bound.most[link, end]),
                }
            )
    return ends


def _rank(end: dict[str, Any]) -> tuple[int, int]:
    return -end["estimate"], -end["most"]


BY_TIME, BY_BYTES = RANKINGS

ALIKE = 0.99
"""Smallest load / largest load of a group of link directions is at least this number."""


def measure_line_rate_s(
    amounts: npt.NDArray[np.integer] | npt.NDArray[np.floating], gbps: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the seconds that the bytes in `amounts` need at line rate; 0 where the speed is unknown.

    The division by the speed comes before any rounding, so that equal times at different speeds compare as equal.
    """
    seconds: npt.NDArray[np.float64] = amounts / np.nan_to_num(gbps, nan=np.inf) * 8e-9
    return seconds


def rank_directions(
    fabrics: Sequence[Fabric], amounts: Sequence[npt.NDArray[np.uint64]], by_bytes: bool = False
) -> npt.NDArray[np.intp]:
    """Return the link directions that carry bytes, sorted by load, descending.

    The load is the time at line rate, or bytes if no speed is known. Of equal loads, host links come first: other
    routes cannot relieve host links. Further sort keys: bytes, sender's GUID, port.

    Args:
        amounts: uint64 [link, end] for each rail, bytes that the node at `end` sends.
        by_bytes: true to sort by bytes first, then by time.

    Returns:
        intp [direction]: 2 * link + end; links of all rails are numbered consecutively.
    """
    flat = np.concatenate([each.reshape(-1) for each in amounts])
    used = np.flatnonzero(flat)
    sent = flat[used]
    gbps = np.concatenate([np.repeat(each.link_gbps, 2) for each in fabrics])[used]
    between_switches = np.concatenate([np.repeat(joins_switches(each), 2) for each in fabrics])[used]
    guid = np.concatenate([each.node_guid[each.link_node].reshape(-1) for each in fabrics])[used]
    port = np.concatenate([each.link_port.reshape(-1) for each in fabrics])[used]
    seconds, most_bytes = -measure_line_rate_s(sent, gbps), ~sent
    loads = (most_bytes, seconds) if by_bytes or not seconds.any() else (seconds, most_bytes)
    return used[np.lexsort((port, guid, loads[1], between_switches, loads[0]))]


def joins_switches(fabric: Fabric) -> npt.NDArray[np.bool_]:
    """Return the links that join two switches: bool [link]."""
    joins: npt.NDArray[np.bool_] = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    return joins


def group_alike(
    amounts: npt.NDArray[np.float64], kind: npt.NDArray[np.integer], groups: int
) -> list[npt.NDArray[np.intp]]:
    """Return groups of link directions with nearly equal load; the most loaded group comes first.

    Args:
        amounts: float64 [direction], time at line rate or bytes, sorted in descending order.
        kind: int [direction]; each group has directions of one kind.
        groups: largest number of groups.

    Returns:
        Ascending indices of the directions of each group; the first index is the group's most loaded direction.
    """
    left = np.ones(len(amounts), np.bool_)
    found: list[npt.NDArray[np.intp]] = []
    while len(found) < groups and left.any():
        first = int(left.argmax())
        members = np.flatnonzero(left & (kind == kind[first]) & (amounts >= ALIKE * amounts[first]))
        left[members] = False
        found.append(members)
    return found
