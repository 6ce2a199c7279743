# SPDX-License-Identifier: Apache-2.0
"""Links as files list them, and what can be wrong with such a list. `assemble` makes a Fabric of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError

PORTS = 256
"""Port numbers are 8 bits wide."""

LAST_UNICAST_LID = 0xBFFF

NOT_TOLD = -1

AnyInteger = TypeVar("AnyInteger", bound=np.integer)


@dataclass(frozen=True, slots=True)
class Listing:
    """Links as a file lists them, once or once from each end.

    Attributes:
        path: for messages.
        line: int [row], where each row stands.
        kind: uint8 [row, 2], of `NodeKind`.
        ports: uint8 [row, 2], how many ports the node has.
        system_guid, node_guid, port_guid: uint64 [row, 2].
        name: NodeDescriptions, a pair a row.
        lid: int [row, 2], base LID of the port (a switch's is that of port 0), 0 for none yet.
        port: int [row, 2], port number.
        active: bool [row], whether the link's logical state is active.
        lanes: uint8 [row], width of the link, 0 where unknown.
        gbps: float64 [row], data rate of one direction, nan where unknown.
        lmc: int [row, 2], LMC of the port, `NOT_TOLD` where the format does not say.
        top_speed: the fastest lane speed as a `.lst` prints it; empty for formats that show every speed.
        remarks: what the format leaves open, a sentence each.
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

    def select(self, rows: npt.NDArray[np.integer]) -> Listing:
        """Keep some rows."""
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
        """Name the link of a row for a message."""
        (a, b), (a_port, b_port) = self.name[row], self.port[row]
        return f"{a!r} port {a_port} to {b!r} port {b_port} (line {self.line[row]})"


def check_ranges(listing: Listing) -> None:
    """Look at each row by itself.

    Raises:
        InputError: a LID is no unicast LID, a port number is none of its node, or both ends are one port.
    """
    same = (listing.node_guid[:, 0] == listing.node_guid[:, 1]) & (listing.port[:, 0] == listing.port[:, 1])
    for wrong, expected, found in (
        (listing.lid > LAST_UNICAST_LID, f"LIDs up to {LAST_UNICAST_LID:#06x}", "a multicast LID"),
        (listing.port == 0, "a port number from 1", "port 0"),
        (listing.port > listing.ports, "port numbers up to the node's number of ports", "a greater one"),
        (same[:, np.newaxis], "a link between two ports", "one port at both ends"),
    ):
        bad = np.flatnonzero(wrong.any(axis=1))
        if len(bad):
            raise InputError(listing.path, int(listing.line[bad[0]]), expected, found)


def take_equal(
    listing: Listing, key: npt.NDArray[np.integer], values: npt.NDArray[AnyInteger], what: str
) -> npt.NDArray[AnyInteger]:
    """Give the one value that all ends of equal key share.

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
            f"{listing.path}:{listing.line[other]}: {what} is not what it is on line {line}: "
            f"{listing.name[other][end]!r} port {listing.port[other, end]}"
        )
    return flat[first]
