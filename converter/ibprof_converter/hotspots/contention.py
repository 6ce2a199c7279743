# SPDX-License-Identifier: Apache-2.0
"""Flows sharing a link direction, compared with flows sharing their hosts' access links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import LIDS
from ibprof_converter.traffic.traffic_data import Traffic


@dataclass(frozen=True, slots=True)
class Contention:
    """Flows that share a link direction.

    Attributes:
        flows: pairs of ports whose bytes pass it.
        host_flows: of these pairs' ports, the most pairs that any one sends or receives.
        ratio: of the two; above 1 more flows meet here than on any of their hosts' own links.
    """

    flows: int
    host_flows: int
    ratio: float


class FlowCounter:
    """Counts pairs of ports by port and rail: int64 [rail, LID] of those that it sends to, and that it hears from."""

    def __init__(self, rails: int) -> None:
        self._sent, self._received = np.zeros((rails, LIDS), np.int64), np.zeros((rails, LIDS), np.int64)

    def add(self, rail: int, source_lid: npt.NDArray[np.int32], destination_lid: npt.NDArray[np.int32]) -> None:
        """Count flows of one rail, none of whose pairs was counted before."""
        pairs = _pairs(source_lid, destination_lid)
        self._sent[rail] += np.bincount(pairs // LIDS, minlength=LIDS)
        self._received[rail] += np.bincount(pairs % LIDS, minlength=LIDS)

    def compare(self, rail: int, flows: Traffic) -> Contention:
        """Compare the flows of one rail that pass a link direction with all that were counted."""
        pairs = _pairs(flows.source_lid, flows.destination_lid)
        most = max(self._sent[rail, pairs // LIDS].max(initial=0), self._received[rail, pairs % LIDS].max(initial=0))
        return Contention(len(pairs), int(most), len(pairs) / max(int(most), 1))


def _pairs(source: npt.NDArray[np.int32], destination: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return each pair of LIDs once, as one number."""
    key = source.astype(np.int64) * LIDS + destination
    # Rows of a pattern are sorted and different already, and may be very many.
    if len(key) < 2 or bool((key[1:] > key[:-1]).all()):
        return key
    # np.unique hashes such numbers since numpy 2.3, which takes many times as long.
    key.sort()
    is_first = np.ones(len(key), np.bool_)
    is_first[1:] = key[1:] != key[:-1]
    return key[is_first]
