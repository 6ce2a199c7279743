# SPDX-License-Identifier: Apache-2.0
"""Ports that the lines of a list contradict each other about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.listing import PORTS, Listing


def drop_contradicting_links(listing: Listing) -> Listing:
    """Return a listing without the rows of ports that have several links: any of them may be wrong.

    The rows become damage. Where nothing else would be left, all rows stay, and `assemble` reports the contradiction.
    """
    guids, node = np.unique(listing.node_guid, return_inverse=True)
    end = node.reshape(listing.port.shape).astype(np.int64) * PORTS + listing.port
    low, high = end.min(axis=1), end.max(axis=1)
    links = np.unique(np.stack([low, high], axis=1), axis=0)
    ports, number = np.unique(links, return_counts=True)
    several = ports[number > 1]
    dropped = np.isin(end, several).any(axis=1)
    if not len(several) or dropped.all():
        return listing
    log = DamageLog(listing.path)
    for port, count in zip(several.tolist(), number[number > 1].tolist(), strict=True):
        lines = listing.line[(end == port).any(axis=1)].tolist()
        what = f"port {port % PORTS} has {count} different links, none of them is used"
        log.miss(what, int(guids[port // PORTS]), lines)
    return replace(listing.select(np.flatnonzero(~dropped)), damage=(*listing.damage, *log.report()))
