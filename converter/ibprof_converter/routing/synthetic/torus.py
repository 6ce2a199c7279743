# SPDX-License-Identifier: Apache-2.0
"""Tori of any dimensions with dimension-order routes, along the shorter direction of each ring.

Source: W. J. Dally, B. Towles, "Principles and Practices of Interconnection Networks", 2004, section 8.4.2 (e-cube).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ibprof.errors import UsageError
from ibprof_converter.routing.synthetic.build import SyntheticPlan, SyntheticSubnet, build


def generate_torus(
    name: str, sizes: Sequence[int], hosts_each: int, gbps: float = 100.0, rail: int = 0
) -> SyntheticSubnet:
    """Return a torus. A ring of two switches has one cable.

    Ports of a switch: hosts from 1 on, then for each dimension the cable to the next switch, then to the previous one.
    At half distance on a ring of even size, packets go to the next switch.

    Args:
        name: as the user wrote it.
        sizes: of the dimensions; the last varies fastest.
        hosts_each: hosts per switch.
        gbps: of each link, one direction.
        rail: number of the rail.

    Raises:
        UsageError: the numbers describe no torus.
    """
    if not sizes or min(sizes) < 2 or hosts_each < 1:
        raise UsageError(f"{name}: expected dimensions of 2 or more, and hosts on each switch from 1")
    switches = prod(sizes)
    position = np.stack(np.unravel_index(np.arange(switches), sizes), axis=1)
    egress_to = np.zeros((switches, switches), np.int64)
    cables = []
    # The first dimension that differs decides. So the last one is handled first, and overwritten.
    for dimension in reversed(range(len(sizes))):
        size = sizes[dimension]
        onward, back = hosts_each + 1 + 2 * dimension, hosts_each + 2 + 2 * dimension
        ahead = (position[np.newaxis, :, dimension] - position[:, np.newaxis, dimension]) % size
        egress_to = np.where(ahead == 0, egress_to, np.where((2 * ahead <= size), onward, back))
        neighbour = position.copy()
        neighbour[:, dimension] = (position[:, dimension] + 1) % size
        other = np.ravel_multi_index(tuple(neighbour.T), sizes)
        own = np.arange(switches)
        if size == 2:
            own, other = own[position[:, dimension] == 0], other[position[:, dimension] == 0]
        ports = np.full(len(own), onward), np.full(len(own), onward if size == 2 else back)
        cables.append(np.stack([own, ports[0], other, ports[1]], axis=1))
    host = np.arange(switches * hosts_each)
    home = host // hosts_each
    local = 1 + host % hosts_each
    egress = np.where(np.arange(switches)[:, np.newaxis] == home[np.newaxis], local, egress_to[:, home])
    names = ["sw" + "-".join(map(str, coordinates)) for coordinates in position.tolist()]
    return build(SyntheticPlan(name, names, home, local, np.concatenate(cables), egress.astype(np.uint8)), gbps, rail)
