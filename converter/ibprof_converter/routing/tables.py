# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables: the egress port of each switch for each LID."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import kernels_headers

UNREACHABLE = kernels_headers().constants["IBP_NO_PORT"]


@dataclass(frozen=True, slots=True)
class ForwardingTables:
    """The linear forwarding tables of one subnet's switches.

    Attributes:
        name: file they were read from, for messages.
        switch_guid: uint64 [switch], ascending NODE GUIDs of the switches that have a table.
        port: uint8 [switch, LID], egress port; `UNREACHABLE` for none; 0 is the switch itself. LIDs beyond the table of
            a switch are `UNREACHABLE`. The second axis is as long as the longest table.
        warnings: anomalies of the file, a sentence each.
    """

    name: str
    switch_guid: npt.NDArray[np.uint64]
    port: npt.NDArray[np.uint8]
    warnings: tuple[str, ...] = ()
