# SPDX-License-Identifier: Apache-2.0
"""The lower end of each link: every output calls that end `a`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.layout.positions import FabricLayout


def lower_ends(fabric: Fabric, layout: FabricLayout) -> npt.NDArray[np.intp]:
    """Return the end (0 or 1) of each link that is nearer to the hosts.

    Of two ends on one level it is the one with the smaller NODE GUID, then the smaller port.

    Returns:
        intp [link].
    """
    node = fabric.link_node
    keys = np.stack([layout.level[node].astype(np.uint64), fabric.node_guid[node], fabric.link_port.astype(np.uint64)])
    lower = np.zeros(fabric.links, np.intp)
    decided = np.zeros(fabric.links, bool)
    for first, second in zip(keys[:, :, 0], keys[:, :, 1], strict=True):
        lower[~decided & (second < first)] = 1
        decided |= first != second
    return lower


def order_of_links(fabric: Fabric, layout: FabricLayout) -> npt.NDArray[np.intp]:
    """Return the order in which outputs list links: from the hosts up, then by GUID and port of the lower end.

    Returns:
        intp [link], a permutation.
    """
    links = np.arange(fabric.links)
    end = lower_ends(fabric, layout)
    node = fabric.link_node[links, end]
    return np.lexsort((fabric.link_port[links, end], fabric.node_guid[node], layout.level[node]))
