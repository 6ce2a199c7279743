# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables (egress port of each switch for each LID), and groups of ports for adaptive routing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import kernels_headers
from ibprof_converter.fabric.damage import Damage

UNREACHABLE = kernels_headers().constants["IBP_NO_PORT"]


NO_GROUP = -1


@dataclass(frozen=True, slots=True)
class ForwardingTables:
    """The linear forwarding tables of one subnet's switches.

    Attributes:
        name: name of the file, for messages.
        switch_guid: uint64 [switch], NODE GUIDs of the switches with a table, ascending.
        port: uint8 [switch, LID], egress port; 0 if the LID is the switch itself. `UNREACHABLE` without a route, and if
            the switch's table ends before the LID. The second axis is as long as the longest table.
        warnings: sentences on anomalies of the file.
        damage: unused lines of the file, and missing entries.
    """

    name: str
    switch_guid: npt.NDArray[np.uint64]
    port: npt.NDArray[np.uint8]
    warnings: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()


def merge_tables(parts: Sequence[ForwardingTables]) -> ForwardingTables:
    """Return the tables of several files as one. If several files have the same switch, the first table is used.

    Each `Damage` in `damage` gets the name of the damaged file.
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


class LidState(IntEnum):
    """How a switch forwards packets to a LID."""

    STATIC = 0
    """The switch forwards by its forwarding table."""
    FREE = 1
    """For each packet, the switch chooses the port of a group by the fill levels of the group's ports."""
    HASHED = 2
    """The switch chooses a port from a group of ports by a hash of the packet's flow (hash-based forwarding)."""


@dataclass(frozen=True, slots=True)
class SubGroup:
    """A part of a group of ports.

    Attributes:
        number: number of the sub-group in its group, from 0.
        weight: the value in column WHBF.
        ports: port numbers, ascending.
    """

    number: int
    weight: int
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AdaptiveRouting:
    """Adaptive routing of switches, from one file.

    Attributes:
        tables: the static ports of LIDs, from the same file.
        state: uint8 [switch, LID], `LidState` of each entry; same axes as `tables.port`.
        group: int32 [switch, LID], group of ports for the LID; `NO_GROUP` if the LID has only a static port.
        groups: (NODE GUID, group) -> sub-groups, sorted by number.
        warnings: sentences on unused parts of the file.
        damage: unused lines of the file.
    """

    name: str
    tables: ForwardingTables
    state: npt.NDArray[np.uint8]
    group: npt.NDArray[np.int32]
    groups: dict[tuple[int, int], tuple[SubGroup, ...]]
    warnings: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()

    @property
    def switches(self) -> int:
        """Number of switches that choose among ports for any LID."""
        return int((self.group != NO_GROUP).any(axis=1).sum())

    def group_of(self, switch_guid: int, lid: int) -> int:
        """Return a switch's group of ports for a LID; `NO_GROUP` for a static port and for an unknown switch."""
        row = int(np.searchsorted(self.tables.switch_guid, np.uint64(switch_guid)))
        known = row < len(self.tables.switch_guid) and int(self.tables.switch_guid[row]) == switch_guid
        return int(self.group[row, lid]) if known and lid < self.group.shape[1] else NO_GROUP
