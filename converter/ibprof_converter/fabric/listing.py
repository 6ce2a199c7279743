# SPDX-License-Identifier: Apache-2.0
"""Links as files list them, and checks of such a list. `assemble` makes a Fabric of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError
from ibprof_converter.fabric.damage import Damage, DamageLog
from ibprof_converter.fabric.fabric_graph import NodeKind, Origin

PORTS = 256
"""Port numbers are 8 bits wide."""

LAST_UNICAST_LID = 0xBFFF

NOT_CONFIGURED_LID = 0xFFFF
"""LID of a port that the subnet manager has not configured yet, the permissive LID."""

NOT_GIVEN = -1

AnyInteger = TypeVar("AnyInteger", bound=np.integer)


@dataclass(frozen=True, slots=True)
class Listing:
    """Links as a file lists them, once or once from each end.

    Attributes:
        path: for messages.
        line: int [row], line number of each row.
        kind: uint8 [row, 2], of `NodeKind`.
        ports: uint8 [row, 2], number of ports of the node.
        system_guid, node_guid, port_guid: uint64 [row, 2].
        name: NodeDescriptions, a pair per row.
        lid: int [row, 2], base LID of the port (port 0 of a switch), 0 for none yet.
        port: int [row, 2], port number.
        active: bool [row], true if the link's logical state is active.
        lanes: uint8 [row], width of the link, 0 where unknown.
        gbps: float64 [row], data rate of one direction, nan where unknown.
        lmc: int [row, 2], LMC of the port, `NOT_GIVEN` where the format lacks it.
        top_speed: the fastest lane speed as a `.lst` prints it; empty for formats that show every speed.
        remarks: limitations of the format, a sentence each.
        damage: lines of the file that are not used.
        origin: the kind of list.
    """

    path: str
    line: npt.NDArray[np.integer]
    kind: npt.NDArray[np.uint8]
    ports: npt.NDArray[np.uint8]
    system_guid: npt.NDArray[np.uint64]
    node_guid: npt.NDArray[np.uint64]
    port_guid: npt.NDArray[np.uint64]
    name: list[tuple[str, str]]
    lid: npt.NDArray[np.integer]
    port: npt.NDArray[np.integer]
    active: npt.NDArray[np.bool_]
    lanes: npt.NDArray[np.uint8]
    gbps: npt.NDArray[np.float64]
    lmc: npt.NDArray[np.integer]
    top_speed: str = ""
    remarks: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()
    origin: Origin = Origin.SUBNET

    def select(self, rows: npt.NDArray[np.integer]) -> Listing:
        """Return a listing of some rows."""
        return replace(
            self,
            line=self.line[rows],
            kind=self.kind[rows],
            ports=self.ports[rows],
            system_guid=self.system_guid[rows],
            node_guid=self.node_guid[rows],
            port_guid=self.port_guid[rows],
            name=[self.name[row] for row in rows],
            lid=self.lid[rows],
            port=self.port[rows],
            active=self.active[rows],
            lanes=self.lanes[rows],
            gbps=self.gbps[rows],
            lmc=self.lmc[rows],
        )

    def describe_link(self, row: int) -> str:
        """Return a link's name for a message."""
        (a, b), (a_port, b_port) = self.name[row], self.port[row]
        return f"{a!r} port {a_port} to {b!r} port {b_port} (line {self.line[row]})"


def drop_invalid_rows(listing: Listing) -> Listing:
    """Return a listing without the rows that no fabric can have; they become damage.

    Raises:
        InputError: nothing is left. The error names the first row.
    """
    same = (listing.node_guid[:, 0] == listing.node_guid[:, 1]) & (listing.port[:, 0] == listing.port[:, 1])
    invalid = np.zeros(len(listing.line), np.bool_)
    log = DamageLog(listing.path)
    for wrong, expected, found in (
        (
            (listing.lid > LAST_UNICAST_LID) & (listing.lid != NOT_CONFIGURED_LID),
            f"LIDs up to {LAST_UNICAST_LID:#06x}",
            "a multicast LID",
        ),
        (listing.port == 0, "a port number from 1", "port 0"),
        (listing.port > listing.ports, "port numbers up to the node's number of ports", "a larger one"),
        (same[:, np.newaxis], "a link between two ports", "one port at both ends"),
    ):
        for row in np.flatnonzero(wrong.any(axis=1) & ~invalid).tolist():
            line = int(listing.line[row])
            log.lose(line, InputError(listing.path, line, expected, found), _switch_of(listing, row))
            invalid[row] = True
    if not invalid.any():
        return listing
    if invalid.all() and log.first_error:
        raise log.first_error
    return replace(listing.select(np.flatnonzero(~invalid)), damage=(*listing.damage, *log.report()))


def _switch_of(listing: Listing, row: int) -> int:
    """Return the NODE GUID of a row's switch, or of its first end."""
    end = 1 if listing.kind[row, 1] == NodeKind.SWITCH != listing.kind[row, 0] else 0
    return int(listing.node_guid[row, end])


def take_equal(
    listing: Listing, key: npt.NDArray[np.integer], values: npt.NDArray[AnyInteger], what: str
) -> npt.NDArray[AnyInteger]:
    """Return the value that all ends of equal key share.

    Args:
        listing: for messages.
        key: int [row, 2].
        values: int [row, 2].
        what: the value's name, for the message.

    Returns:
        A value for each distinct key, in ascending order of the keys.

    Raises:
        InconsistentError: ends of equal key have different values.
    """
    flat = values.ravel()
    _, first, inverse = np.unique(key.ravel(), return_index=True, return_inverse=True)
    differing = np.flatnonzero(flat[first][inverse] != flat)
    if len(differing):
        other, end = divmod(int(differing[0]), 2)
        line = listing.line[first[inverse[differing[0]]] // 2]
        raise InconsistentError(
            f"{listing.path}:{listing.line[other]}: {what} differs from line {line}: "
            f"{listing.name[other][end]!r} port {listing.port[other, end]}"
        )
    return flat[first]
