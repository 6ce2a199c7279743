# SPDX-License-Identifier: Apache-2.0
"""Bounds on the loads of all rails and an estimate of them, for switches that route adaptively."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.adaptive_bounds import AdaptiveBounds, LidFlows, bound_adaptive
from ibprof_converter.routing.adaptive_paths import AdaptivePaths
from ibprof_converter.routing.route_choice import are_modelled
from ibprof_converter.routing.subnet import Subnet
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
