# SPDX-License-Identifier: Apache-2.0
"""Bounds on the loads of all rails, where switches route adaptively."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ibprof_converter.routing.adaptive_bounds import AdaptiveBounds, LidFlows, bound_adaptive
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.traffic_data import Traffic

LABEL = (
    "with adaptive routing loads are bounds, not one answer: `shared` if every switch spreads over all its minimal "
    "egress ports alike, `most` if all that can come by a link does; the static answer is that of the forwarding tables"
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on what adaptive switches may make of a traffic.

    Attributes:
        by_rail: for each rail.
        reason: why they are asked for.
    """

    by_rail: tuple[AdaptiveBounds, ...]
    reason: str


def bound_loads(traffic: Traffic, subnets: Sequence[Subnet], asked: bool) -> Bounds | None:
    """Bound the loads where the user asks for it, or a dump says that switches route adaptively.

    Args:
        traffic: the flows.
        subnets: the rails.
        asked: whether the user does.

    Returns:
        None where neither is so.
    """
    told = [subnet.adaptive for subnet in subnets if subnet.adaptive]
    if not (asked or told):
        return None
    reason = "; ".join(f"{each.name}: {len(each.group)} switches route adaptively" for each in told) or "--adaptive"
    by_rail = (bound_adaptive(subnet.routes.network, _parts(traffic, rail)) for rail, subnet in enumerate(subnets))
    return Bounds(tuple(by_rail), reason)


def _parts(traffic: Traffic, rail: int) -> Iterator[LidFlows]:
    for part in traffic.parts():
        here = np.flatnonzero(part.rail == rail)
        yield part.source_lid[here], part.destination_lid[here], part.bytes[here]
