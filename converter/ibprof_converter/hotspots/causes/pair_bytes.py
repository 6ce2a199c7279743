# SPDX-License-Identifier: Apache-2.0
"""Bytes from port to port, added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.exact_sums import add_by_key
from ibprof_converter.traffic.traffic_data import Traffic


@dataclass(frozen=True, slots=True)
class PairBytes:
    """Bytes from LID to LID, each pair of a rail once; arrays of one length.

    Attributes:
        rail, source_lid, destination_lid: int32.
        bytes: uint64.
    """

    rail: npt.NDArray[np.int32]
    source_lid: npt.NDArray[np.int32]
    destination_lid: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]

    @classmethod
    def add_up(
        cls,
        rail: npt.NDArray[np.integer],
        source_lid: npt.NDArray[np.integer],
        destination_lid: npt.NDArray[np.integer],
        bytes: npt.NDArray[np.uint64],
    ) -> PairBytes:
        """Add up rows of the same rail and LIDs."""
        key = (rail.astype(np.int64) << 32) | (source_lid.astype(np.int64) << 16) | destination_lid.astype(np.int64)
        keys, total = add_by_key(key, bytes)
        return cls(
            (keys >> 32).astype(np.int32),
            (keys >> 16 & 0xFFFF).astype(np.int32),
            (keys & 0xFFFF).astype(np.int32),
            total,
        )

    @classmethod
    def of_traffic(cls, traffic: Traffic) -> PairBytes:
        """Take the flows of a traffic."""
        return cls.add_up(traffic.rail, traffic.source_lid, traffic.destination_lid, traffic.bytes)
