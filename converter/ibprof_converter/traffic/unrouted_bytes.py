# SPDX-License-Identifier: Apache-2.0
"""Report the bytes without a route: share, reasons, and affected leaf switches or parts of the fabric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import format_bytes
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.routing.spread import Reason, spread
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.lid_traffic import NO_COMMON_RAIL
from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.traffic_data import PortCounters, Traffic

if TYPE_CHECKING:
    from ibprof_converter.fabric.fabric_parts import FabricPart

MOST_UNROUTED = 0.01
"""If a larger share of the bytes has no route, `ibprof-report` exits with status 5."""

_PAIRS = 100
"""Largest number of listed pairs of leaf switches; pairs with the most bytes are listed."""

_NAMED = 3
"""Largest number of pairs, and of parts of the fabric, in `UnroutedBytes.text`."""

_UNKNOWN = "an unknown LID"


@dataclass(frozen=True, slots=True)
class UnroutedPair:
    """Bytes without a route between two leaf switches.

    Attributes:
        source, destination: leaf switches of the sender and the receiver.
    """

    rail: int
    source: str
    destination: str
    reason: str
    bytes: int


@dataclass(frozen=True, slots=True)
class UnroutedBytes:
    """All bytes without a route.

    Attributes:
        bytes, share: bytes without a route; these bytes / all bytes.
        reasons: reason -> bytes without a route.
        parts: for each rail, descriptions of its parts; a part is a connected component.
        pairs: pairs of leaf switches, sorted by bytes, descending; empty if the bytes without a route have no LIDs.
        text: a sentence with the bytes, the reasons, and the parts or pairs.
    """

    bytes: int
    share: float
    reasons: dict[str, int]
    parts: tuple[tuple[str, ...], ...]
    pairs: tuple[UnroutedPair, ...]
    text: str


def find_unrouted(placed: Traffic | PortCounters, subnets: Sequence[Subnet], loads: Loads) -> UnroutedBytes | None:
    """Return the bytes without a route; None if all bytes have a route.

    Args:
        loads: link loads caused by `placed`.
    """
    lost = {reason: amount for reason, amount in loads.bytes_unrouted.items() if amount}
    if not lost:
        return None
    from ibprof_converter.fabric.fabric_parts import list_parts  # noqa: PLC0415  (few fabrics are in parts)

    total, amount = loads.bytes_total, sum(lost.values())
    parts = [list_parts(subnet.fabric) for subnet in subnets]
    pairs = _find_pairs(placed, subnets, loads.reasons) if isinstance(placed, Traffic) else ()
    share = amount / total
    why = "; ".join((*_describe_parts(subnets, parts), *_describe_reasons(lost, pairs, parts)))
    percent = "Less than 1%" if share < 0.01 else f"{share:.0%}"
    return UnroutedBytes(
        bytes=amount,
        share=share,
        reasons=lost,
        parts=tuple(tuple(part.text for part in each) for each in parts),
        pairs=pairs,
        text=f"{percent} of the bytes ({format_bytes(amount)} of {format_bytes(total)}) have no route: "
        f"{why}{'' if why.endswith('...') else '.'}",
    )


def _describe_parts(subnets: Sequence[Subnet], parts: Sequence[Sequence[FabricPart]]) -> Iterator[str]:
    from ibprof_converter.fabric.fabric_parts import count_parts  # noqa: PLC0415  (few fabrics are in parts)

    for rail, each in enumerate(parts):
        if len(each) > 1:
            of_rail = f"rail {rail} has " if len(parts) > 1 else ""
            names = "; ".join([part.text for part in each[:_NAMED]] + (["..."] if len(each) > _NAMED else []))
            yield f"{of_rail}{count_parts(subnets[rail].fabric, each)} ({names})"


def _describe_reasons(
    lost: dict[str, int], pairs: Sequence[UnroutedPair], parts: Sequence[Sequence[FabricPart]]
) -> Iterator[str]:
    has_rails = len(parts) > 1
    for reason, amount in sorted(lost.items(), key=lambda item: -item[1]):
        named = [each for each in pairs if each.reason == reason]
        where = [f"{f'rail {each.rail}: ' if has_rails else ''}{each.source} to {each.destination}" for each in named]
        how_much = f" ({format_bytes(amount)})" if len(lost) > 1 else ""
        between = f" from {show_some(where, _NAMED)}" if where else ""
        if reason == NO_COMMON_RAIL:
            rails = [f"rail {rail}: {each[0].text}" for rail, each in enumerate(parts) if each]
            between = f" ({'; '.join(rails[:_NAMED])}{'; ...' if len(rails) > _NAMED else ''})"
        yield f"{reason}{how_much}{between}"


def _find_pairs(
    traffic: Traffic, subnets: Sequence[Subnet], reasons: Sequence[npt.NDArray[np.uint8]]
) -> tuple[UnroutedPair, ...]:
    """Return the pairs of leaf switches whose flows do not arrive.

    Args:
        reasons: value of `Loads.reasons`; if empty, each flow is followed here.
    """
    found: dict[tuple[int, int, int, int], int] = {}
    ends = [_switches_of_lids(subnet.fabric) for subnet in subnets]
    for part in traffic.parts():
        for rail, subnet in enumerate(subnets):
            rows = np.flatnonzero(part.rail == rail) if len(subnets) > 1 else np.arange(len(part.bytes))
            if not len(rows):
                continue
            source, destination, amount = part.source_lid[rows], part.destination_lid[rows], part.bytes[rows]
            if reasons:
                reason = reasons[rail]
            else:
                reason = spread(subnet.routes, source, destination, amount, np.zeros(len(rows), np.int32), 1).reason
            lost = np.flatnonzero(reason > max(each for each in Reason if each.arrives))
            keys = np.stack([ends[rail][source[lost]], ends[rail][destination[lost]], reason[lost].astype(np.int64)])
            pairs, number = np.unique(keys, axis=1, return_inverse=True)
            sums = np.zeros(pairs.shape[1], np.uint64)
            np.add.at(sums, number.ravel(), amount[lost])
            for (one, other, why), bytes_of in zip(pairs.T.tolist(), sums.tolist(), strict=True):
                key = (rail, one, other, why)
                found[key] = found.get(key, 0) + bytes_of
    largest = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_PAIRS]
    return tuple(
        UnroutedPair(
            rail=rail,
            source=_name(subnets[rail].fabric, one),
            destination=_name(subnets[rail].fabric, other),
            reason=Reason(why).label,
            bytes=amount,
        )
        for (rail, one, other, why), amount in largest
    )


def _switches_of_lids(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the switch to which each LID's port is cabled: int64 [LID], -1 if unknown."""
    from ibprof_converter.fabric.fabric_parts import find_ends  # noqa: PLC0415  (few fabrics are in parts)

    near = find_ends(fabric)
    return np.where(fabric.lid_port >= 0, near[fabric.lid_port] if len(near) else -1, -1)


def _name(fabric: Fabric, node: int) -> str:
    return fabric.node_name[node] if node >= 0 else _UNKNOWN
