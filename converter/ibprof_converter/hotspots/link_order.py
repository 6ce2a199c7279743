# SPDX-License-Identifier: Apache-2.0
"""The order of link directions, the most loaded first, and groups of equally loaded ones.

The verdict, lists, pictures and files share this order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof_converter.choices import RANKINGS
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind

BY_TIME, BY_BYTES = RANKINGS

ALIKE = 0.99
"""A link direction is equally busy if it needs at least this share of the busiest time of its kind."""


def measure_line_rate_s(
    amounts: npt.NDArray[np.integer] | npt.NDArray[np.floating], gbps: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the seconds that bytes need at line rate; 0 if the speed is unknown.

    Bytes are divided by the speed before any rounding. So directions of different speeds with the same time compare as
    equal.
    """
    seconds: npt.NDArray[np.float64] = amounts / np.nan_to_num(gbps, nan=np.inf) * 8e-9
    return seconds


def rank_directions(
    fabrics: Sequence[Fabric], amounts: Sequence[npt.NDArray[np.uint64]], by_bytes: bool = False
) -> npt.NDArray[np.intp]:
    """Return the link directions that carry bytes, the most loaded first.

    Directions are sorted by time at line rate, or by bytes if no speed is known. Among equals, a host's own link comes
    first, since no other route relieves it. Further ties are sorted by bytes, then by the sender's GUID and port.

    Args:
        fabrics: the rails' fabrics.
        amounts: uint64 [link, end] for each rail, bytes that the node at this end sends.
        by_bytes: true to compare bytes before times.

    Returns:
        intp [direction]: 2 * link + end, numbered through all rails.
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
    """Return the busiest groups, the busiest first.

    Args:
        amounts: float64 [direction], time at line rate or bytes, the largest first.
        kind: int [direction], equal for directions that may share a group.
        groups: largest number of groups.

    Returns:
        Indices of each group, ascending; the first index is the group's busiest direction.
    """
    left = np.ones(len(amounts), np.bool_)
    found: list[npt.NDArray[np.intp]] = []
    while len(found) < groups and left.any():
        first = int(left.argmax())
        members = np.flatnonzero(left & (kind == kind[first]) & (amounts >= ALIKE * amounts[first]))
        left[members] = False
        found.append(members)
    return found
