# SPDX-License-Identifier: Apache-2.0
"""How many flows meet on a link end, beside how many meet on the own links of the hosts that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.model import LIDS
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.model import Traffic


@dataclass(frozen=True, slots=True)
class Contention:
    """What a link end is to the flows that pass it.

    Attributes:
        flows: pairs of ports whose bytes pass it.
        host_flows: of these pairs' ports, the most pairs that any one sends or receives.
        ratio: of the two; above 1 more flows meet here than on any of their hosts' own links.
    """

    flows: int
    host_flows: int
    ratio: float


class FlowCounter:
    """Counts pairs of ports by port and rail."""

    def __init__(self, subnets: Sequence[Subnet], traffic: Traffic) -> None:
        self._subnets = subnets
        self._traffic = traffic
        self._counts: dict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}

    def count(self, rail: int, flows: npt.NDArray[np.intp]) -> Contention:
        """Count for the flows of one rail that pass a link end."""
        traffic = self._traffic
        if rail not in self._counts:
            here = traffic.rail == rail
            pairs = _pairs(traffic.source_lid[here], traffic.destination_lid[here])
            self._counts[rail] = (
                np.bincount(pairs // LIDS, minlength=LIDS),
                np.bincount(pairs % LIDS, minlength=LIDS),
            )
        sent, received = self._counts[rail]
        pairs = _pairs(traffic.source_lid[flows], traffic.destination_lid[flows])
        most = int(max(sent[pairs // LIDS].max(initial=0), received[pairs % LIDS].max(initial=0)))
        return Contention(len(pairs), most, len(pairs) / max(most, 1))


def _pairs(source: npt.NDArray[np.int32], destination: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Give each pair of LIDs once, as one number."""
    key = source.astype(np.int64) * LIDS + destination
    # Rows of a pattern are sorted and different already, and may be very many.
    return key if len(key) < 2 or bool((key[1:] > key[:-1]).all()) else np.unique(key)
