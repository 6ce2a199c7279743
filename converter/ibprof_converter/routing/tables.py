# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables: the egress port of each switch for each LID."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import kernels_headers
from ibprof_converter.fabric.damage import Damage

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
        damage: lines of it that are not used, and entries that are missing.
    """

    name: str
    switch_guid: npt.NDArray[np.uint64]
    port: npt.NDArray[np.uint8]
    warnings: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()


def merge_tables(parts: Sequence[ForwardingTables]) -> ForwardingTables:
    """Return the tables of several files as one; the first file with a switch counts.

    The damage of each file keeps its name.
    """
    guid = np.concatenate([part.switch_guid for part in parts])
    switch_guid, first = np.unique(guid, return_index=True)
    rows = [row for part in parts for row in part.port]
    port = np.full((len(switch_guid), max(len(row) for row in rows)), UNREACHABLE, np.uint8)
    for row, source in enumerate(first.tolist()):
        port[row, : len(rows[source])] = rows[source]
    return ForwardingTables(
        f"{parts[0].name} and {len(parts) - 1} more",
        switch_guid,
        port,
        tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        tuple(replace(damage, file=Path(part.name).name) for part in parts for damage in part.damage),
    )
