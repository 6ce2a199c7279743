# SPDX-License-Identifier: Apache-2.0
"""Times of a rank placement where switches route adaptively: those of the estimated loads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.placement.placement_problem import PlacementProblem, SlotOfRank
from ibprof_converter.routing.adaptive_bounds import estimate_adaptive
from ibprof_converter.routing.adaptive_paths import AdaptivePaths
from ibprof_converter.routing.subnet import Subnet


class AdaptiveTimes:
    """Estimated times of the placements of one problem.

    Args:
        problem: the ranks to place.
        subnets: of each column of its slots' LIDs. Several columns can be adapters in one subnet.
    """

    def __init__(self, problem: PlacementProblem, subnets: Sequence[Subnet]) -> None:
        self._problem = problem
        self._distinct = list({id(subnet): subnet for subnet in subnets}.values())
        self._columns = [[rail for rail, other in enumerate(subnets) if other is each] for each in self._distinct]
        self._paths = [AdaptivePaths(subnet.routes.network, subnet.adaptive) for subnet in self._distinct]

    def max_seconds(self, slot_of_rank: SlotOfRank) -> float:
        """Return the largest time of a link direction between switches."""
        neighbours, slots = self._problem.neighbours, self._problem.slots
        port = slots.port_of_slot[slot_of_rank]
        source, destination = port[neighbours.owner()], port[neighbours.rank]
        row = neighbours.row_of_rails[slots.rails[source] & slots.rails[destination]]
        sent = neighbours.sent[np.arange(len(row)), row].astype(np.uint64)
        largest = 0.0
        for subnet, columns, paths in zip(self._distinct, self._columns, self._paths, strict=True):
            flows = [(slots.lid[source, rail], slots.lid[destination, rail], sent[:, rail]) for rail in columns]
            fabric = subnet.fabric
            between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
            seconds_per_byte = 8e-9 / np.nan_to_num(fabric.link_gbps, nan=np.inf)
            seconds = estimate_adaptive(paths, flows) * seconds_per_byte[:, np.newaxis]
            largest = max(largest, float(seconds[between].max(initial=0.0)))
        return largest
