# SPDX-License-Identifier: Apache-2.0
"""The network's bandwidth from its fabric."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ibprof.errors import InconsistentError
from ibprof_converter.fabric.model import NodeKind
from ibprof_converter.routing.subnet import read_subnet


def slowest_host_link(listing: Path) -> float:
    """Give the data rate of the slowest link between a host and a switch, in Byte/s.

    Raises:
        InputError: the file is no fabric.
        InconsistentError: it has no such link whose speed is known.
    """
    fabric = read_subnet(str(listing), None).fabric
    at_host = (fabric.node_kind[fabric.link_node] == NodeKind.CA).any(axis=1)
    speeds = fabric.link_gbps[at_host]
    if not len(speeds) or np.isnan(speeds).all():
        raise InconsistentError(f"{listing}: no link of a host has a known speed; give --bandwidth")
    return float(np.nanmin(speeds)) * 1e9 / 8
