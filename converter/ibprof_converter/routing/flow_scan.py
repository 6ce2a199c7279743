# SPDX-License-Identifier: Apache-2.0
"""Find the flows on a few link directions in one pass over all flows. `FlowIndex` suits repeated queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.subnet_routes import Integers, SubnetRoutes, as_lids

_FLOWS = 1 << 21
"""Flows that are followed at a time, so that millions of them take no more memory."""

_NOT_WANTED = -1


def scan_flows(
    routes: SubnetRoutes, source_lid: Integers, destination_lid: Integers, ends: Sequence[int]
) -> list[npt.NDArray[np.intp]]:
    """Return the flows that load some link directions.

    Args:
        routes: of the subnet.
        source_lid, destination_lid: int [flow].
        ends: distinct link directions, 2 * link + end each.

    Returns:
        For each link direction the rows of its flows, intp, ascending.
    """
    source, destination = as_lids(source_lid), as_lids(destination_lid)
    index = np.full(2 * routes.network.fabric.links, _NOT_WANTED, np.int32)
    index[list(ends)] = np.arange(len(ends))
    found: list[list[npt.NDArray[np.intp]]] = [[] for _ in ends]
    for begin in range(0, len(source), _FLOWS):
        # One destination after the other keeps its tables in the processor's cache.
        flow = begin + np.argsort(destination[begin : begin + _FLOWS].astype(np.uint16), kind="stable")
        paths = routes.find_paths(source[flow], destination[flow])
        wanted = index[paths.end]
        passed = np.flatnonzero(wanted != _NOT_WANTED)
        passing = flow[np.searchsorted(paths.offset, passed, side="right") - 1]
        for number, rows in enumerate(found):
            rows.append(np.sort(passing[wanted[passed] == number]))
    return [np.concatenate([np.zeros(0, np.intp), *rows]) for rows in found]
