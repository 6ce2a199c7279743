# SPDX-License-Identifier: Apache-2.0
"""Bounds on the loads of all rails and an estimate of them, for switches that route adaptively; as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import format_bytes
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.adaptive_bounds import AdaptiveBounds, LidFlows, bound_adaptive
from ibprof_converter.routing.adaptive_paths import AdaptivePaths
from ibprof_converter.routing.route_choice import are_modelled
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.loaded_links import Loads
from ibprof_converter.traffic.traffic_data import Traffic

STATIC, ESTIMATE = "static", "estimate"
"""Loads that rank links and judge causes: those of the forwarding tables, or the estimate for adaptive routing."""

LABEL = (
    "with adaptive routing loads are not one value: `shared` if every switch spreads evenly over the ports it may "
    "choose, `most` if a link carries all flows that can use it. The `estimate`, for packets that avoid the fuller "
    "ports, ranks links and judges causes. Static loads follow the forwarding tables"
)

MODEL_LABEL = (
    "routes are not known: `shared` if all shortest paths are used evenly, `most` if a link carries all flows that can "
    "use it, whatever shortest routes the subnet has. The other loads are those of the modelled routes"
)

_TOP = 10

_LOADS = {"static": "by the tables", "shared": "shared", "estimate": "estimate", "most": "at most"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on the link loads that adaptive routing, or unknown routes, can cause, and the estimate.

    Attributes:
        by_rail: for each rail.
        reason: why they are computed.
        label: what they mean.
        is_adaptive: whether packets are taken to choose among paths, so that the estimate judges; else routes are only
            unknown.
    """

    by_rail: tuple[AdaptiveBounds, ...]
    reason: str
    label: str = LABEL
    is_adaptive: bool = True

    @property
    def estimates(self) -> tuple[npt.NDArray[np.uint64], ...]:
        """The estimate for each rail, uint64 [link, end], bytes."""
        return tuple(np.rint(each.estimate).astype(np.uint64) for each in self.by_rail)


def bound_loads(traffic: Traffic, subnets: Sequence[Subnet], asked: bool) -> Bounds | None:
    """Return bounds on the loads if the user asks for them, a dump shows adaptive routing, or routes are modelled.

    Args:
        traffic: the flows.
        subnets: the rails.
        asked: whether the user asks for bounds.

    Returns:
        None if none is the case.
    """
    adaptive = [subnet.adaptive for subnet in subnets if subnet.adaptive]
    is_model = are_modelled(subnets)
    if not (asked or adaptive or is_model):
        return None
    reason = "; ".join(f"{each.name}: {each.switches} switches route adaptively" for each in adaptive) or (
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
    """Return the largest loads between switches, static and adaptive, and the ends with the largest estimates."""
    ends = _find_ends(bounds, loads, fabrics)
    return {
        "label": bounds.label,
        "reason": bounds.reason,
        "max_switch_link": {name: max((end[name] for end in ends), default=0) for name in _LOADS},
        "bytes_unrouted": sum(each.unrouted for each in bounds.by_rail),
        "link_ends": sorted(ends, key=_rank)[:_TOP],
    }


def describe_bounds(bounds: Bounds, loads: Loads, fabrics: Sequence[Fabric]) -> Iterator[str]:
    """Yield lines on the loads between switches with adaptive routing, or by routes that are not known."""
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
    """List the link directions between switches that may carry anything."""
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
