# SPDX-License-Identifier: Apache-2.0
"""Levels of switches that have no hosts yet: as of those that are cabled like them.

A leaf switch without hosts is three steps from the nearest host, as far as a core switch. Its cabling differs: it is
linked to the same switches above it as leaves with hosts are. So are the lower switches of a pod without hosts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind

_ALIKE = 0.5
"""Share of common neighbours among all neighbours of two switches (Jaccard's index) from which they are alike."""


def lower_hostless(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return levels in which switches without hosts below them are on the level of those cabled like them.

    Args:
        fabric: the nodes and links.
        level: int32 [node], distance from the hosts.
    """
    level = level.copy()
    is_switch = fabric.node_kind == NodeKind.SWITCH
    links = fabric.link_node[is_switch[fabric.link_node].all(axis=1)]
    count = _count_links(links, fabric.nodes)
    linked = (count > 0).astype(np.int32)
    for base in range(1, int(level.max(initial=0)) - 1):
        known = np.flatnonzero(is_switch & (level == base))
        far = np.flatnonzero(is_switch & (level >= base + 2))
        above = level == base + 1
        # Below the leaves is nothing, so all neighbours of a leaf without hosts are above it.
        if base == 1:
            far = far[np.asarray(linked[far] @ above).ravel() == np.diff(linked.indptr)[far]]
        alike = far[_are_alike(linked, count, far, known, above)]
        _lower(level, linked, alike, base)
    return level


def _count_links(links: npt.NDArray[np.int32], nodes: int) -> sparse.csr_array:
    pairs = np.concatenate([links, links[:, ::-1]])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    shape = nodes, nodes
    return sparse.csr_array((np.ones(len(pairs), np.int32), (pairs[:, 0], pairs[:, 1])), shape=shape)


def _are_alike(
    linked: sparse.csr_array,
    count: sparse.csr_array,
    far: npt.NDArray[np.intp],
    known: npt.NDArray[np.intp],
    above: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Return which far switches share most neighbours above with a known one, and have no more links to them."""
    if not len(far) or not len(known):
        return np.zeros(len(far), np.bool_)
    upper = np.flatnonzero(above)
    of_far, of_known = linked[far][:, upper], linked[known][:, upper]
    common = (of_far @ of_known.T).toarray()
    total = of_far.sum(axis=1)[:, np.newaxis] + of_known.sum(axis=1)[np.newaxis, :] - common
    most_links = count[known][:, upper].sum(axis=1).max()
    fits = count[far][:, upper].sum(axis=1) <= most_links
    return np.asarray(((common / np.maximum(total, 1)).max(axis=1) >= _ALIKE) & fits)


def _lower(level: npt.NDArray[np.int32], linked: sparse.csr_array, nodes: npt.NDArray[np.intp], base: int) -> None:
    """Set switches to a level, and the switches that hang below them to the levels below."""
    below = level[nodes]
    level[nodes] = base
    while len(nodes) and base > 1:
        base -= 1
        at = int(below.max())
        reached = np.flatnonzero(np.asarray(linked[nodes].sum(axis=0)).ravel())
        nodes = reached[level[reached] > at]
        below = level[nodes]
        level[nodes] = base
