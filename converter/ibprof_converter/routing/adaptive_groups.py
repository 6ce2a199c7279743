# SPDX-License-Identifier: Apache-2.0
"""Adaptive routing of switches: for which LIDs a switch chooses among a group of ports, and which ports these are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.damage import Damage
from ibprof_converter.routing.tables import ForwardingTables

NO_GROUP = -1


class LidState(IntEnum):
    """How a switch forwards packets to a LID."""

    STATIC = 0
    """By its forwarding table."""
    FREE = 1
    """By the fill level of the ports of a group, for each packet."""
    HASHED = 2
    """By a hash of the packet's flow, over the ports of a group (hash-based forwarding)."""


@dataclass(frozen=True, slots=True)
class SubGroup:
    """A part of a group of ports.

    Attributes:
        number: of the sub-group in its group, from 0.
        weight: what the column WHBF says of it.
        ports: in ascending order, each once.
    """

    number: int
    weight: int
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AdaptiveRouting:
    """Adaptive routing of switches, as one file has it.

    Attributes:
        name: file it was read from, for messages.
        tables: the static port of each LID, in the same file.
        state: uint8 [switch, LID], of `LidState`; rows and LIDs are those of `tables`.
        group: int32 [switch, LID], group of ports for a LID, `NO_GROUP` where the switch does not choose.
        groups: (switch, group) -> its sub-groups, in ascending order; `switch` is a NODE GUID.
        warnings: what is not used, a sentence each.
        damage: lines of the file that are not used.
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
        """Number of switches that choose among ports for at least one LID."""
        return int((self.group != NO_GROUP).any(axis=1).sum())

    def group_of(self, switch_guid: int, lid: int) -> int:
        """Return the group for a LID; `NO_GROUP` where the switch does not choose, or is unknown."""
        row = int(np.searchsorted(self.tables.switch_guid, np.uint64(switch_guid)))
        known = row < len(self.tables.switch_guid) and int(self.tables.switch_guid[row]) == switch_guid
        return int(self.group[row, lid]) if known and lid < self.group.shape[1] else NO_GROUP
