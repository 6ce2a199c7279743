# SPDX-License-Identifier: Apache-2.0
"""Store links in the order of a file, as arrays, and check them. `assemble` makes a Fabric from this listing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import fspath
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError
from ibprof_converter.fabric.damage import Damage, DamageLog
from ibprof_converter.fabric.fabric_graph import NodeKind, Origin

PORTS = 256
"""Number of possible port numbers: a port number has 8 bits."""

LAST_UNICAST_LID = 0xBFFF

NOT_CONFIGURED_LID = 0xFFFF
"""The permissive LID: the LID of a port that the subnet manager has not configured yet."""

NOT_GIVEN = -1

AnyInteger = TypeVar("AnyInteger", bound=np.integer)


PORTS_NOT_GIVEN = 255


@dataclass(frozen=True, slots=True)
class Listing:
    """Links in the order of a file. A link has one row, or one row for each end.

    Attributes:
        line: int [row], line number of each row.
        kind: uint8 [row, 2], values of `NodeKind`.
        ports: uint8 [row, 2], number of ports of the node, 0 or `PORTS_NOT_GIVEN` if unknown.
        system_guid, node_guid, port_guid: uint64 [row, 2].
        name: int32 [row, 2], index into `names`.
        lid: int [row, 2], base LID of the port, or of a switch's port 0; 0 if there is no LID yet.
        port: int [row, 2], port number.
        active: bool [row], true if the link's logical state is active.
        lanes: uint8 [row], width of the link, 0 if unknown.
        gbps: float64 [row], data rate of one direction in Gb/s, nan if unknown.
        lmc: int [row, 2], LMC of the port, `NOT_GIVEN` if the format lacks LMCs.
        top_speed: the fastest lane speed in a `.lst`, as text; empty for other formats, which can show every speed.
        remarks: sentences on data that the format lacks.
        both_ends: true for formats that list every link from both ends.
    """

    path: str
    line: npt.NDArray[np.integer]
    kind: npt.NDArray[np.uint8]
    ports: npt.NDArray[np.uint8]
    system_guid: npt.NDArray[np.uint64]
    node_guid: npt.NDArray[np.uint64]
    port_guid: npt.NDArray[np.uint64]
    name: npt.NDArray[np.int32]
    lid: npt.NDArray[np.integer]
    port: npt.NDArray[np.integer]
    active: npt.NDArray[np.bool_]
    lanes: npt.NDArray[np.uint8]
    gbps: npt.NDArray[np.float64]
    lmc: npt.NDArray[np.integer]
    names: tuple[str, ...]
    top_speed: str = ""
    remarks: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()
    origin: Origin = Origin.SUBNET
    both_ends: bool = False

    def select(self, rows: npt.NDArray[np.integer]) -> Listing:
        """Return a listing with the given rows only."""
        return replace(
            self,
            line=self.line[rows],
            kind=self.kind[rows],
            ports=self.ports[rows],
            system_guid=self.system_guid[rows],
            node_guid=self.node_guid[rows],
            port_guid=self.port_guid[rows],
            name=self.name[rows],
            lid=self.lid[rows],
            port=self.port[rows],
            active=self.active[rows],
            lanes=self.lanes[rows],
            gbps=self.gbps[rows],
            lmc=self.lmc[rows],
        )

    def node_names(self, chosen: npt.NDArray[np.bool_]) -> dict[int, str]:
        """Return NODE GUID -> name. If rows have different names of a node, the alphabetically last name is used.

        Args:
            chosen: bool [row, 2], true for ends whose node names are returned.
        """
        pairs = np.stack([self.node_guid[chosen], self.name[chosen].astype(np.uint64)])
        pairs = pairs[:, np.lexsort(pairs[::-1])]
        differs = np.ones(pairs.shape[1], np.bool_)
        differs[1:] = (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)
        names: dict[int, str] = {}
        for guid, name in pairs[:, differs].T.tolist():
            names[guid] = max(names.get(guid, ""), self.names[name])
        return names

    def describe_end(self, row: int, end: int) -> str:
        """Return text with node name and port of an end of a link."""
        return f"{self.names[self.name[row, end]]!r} port {self.port[row, end]}"

    def describe_link(self, row: int) -> str:
        """Return text with both ends and the line number of a link."""
        return f"{self.describe_end(row, 0)} to {self.describe_end(row, 1)} (line {self.line[row]})"


def drop_invalid_rows(listing: Listing) -> Listing:
    """Remove rows that are impossible in any fabric, and note these rows as damage.

    Raises:
        InputError: no row is valid. The error names the first removed row.
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
        (
            (listing.ports > 0) & (listing.port > listing.ports),
            "port numbers up to the node's number of ports",
            "a larger number",
        ),
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
    """Return the NODE GUID of the only switch in a row; if there are two switches or none, of the row's first end."""
    end = 1 if listing.kind[row, 1] == NodeKind.SWITCH != listing.kind[row, 0] else 0
    return int(listing.node_guid[row, end])


@dataclass(frozen=True, slots=True)
class Groups:
    """Ends of links, grouped by a key such as the node or the port.

    Attributes:
        key: [group], the key of each group, ascending.
        first: int [group], the first end of each group; end e of row r is 2 * r + e.
        of_end: int [row, 2], the group of each end.
    """

    key: npt.NDArray[np.integer]
    first: npt.NDArray[np.intp]
    of_end: npt.NDArray[np.intp]

    @classmethod
    def by(cls, key: npt.NDArray[np.integer]) -> Groups:
        """Group ends by a key.

        Args:
            key: int [row, 2].
        """
        keys, first, group = np.unique(key, return_index=True, return_inverse=True)
        return cls(keys, first, group.reshape(key.shape))

    def take_equal(self, listing: Listing, values: npt.NDArray[AnyInteger], what: str) -> npt.NDArray[AnyInteger]:
        """Return, for each group, the value that its ends have in common: [group]. `values` is [row, 2].

        Raises:
            InconsistentError: ends of a group have different values.
        """
        shared = values.ravel()[self.first]
        differing = np.argwhere(shared[self.of_end] != values)
        if len(differing):
            row, end = differing[0].tolist()
            line = listing.line[self.first[self.of_end[row, end]] // 2]
            place = f"{listing.path}:{listing.line[row]}"
            raise InconsistentError(f"{place}: {what} differs from line {line}: {listing.describe_end(row, end)}")
        return shared


class End(NamedTuple):
    """One end of a link, with the columns of `Listing`."""

    kind: NodeKind
    ports: int
    system_guid: int
    node_guid: int
    port_guid: int
    name: str
    lid: int
    port: int
    lmc: int = NOT_GIVEN


class LinkRow(NamedTuple):
    """A link in one line or stanza of a file."""

    line: int
    a: End
    b: End
    active: bool
    lanes: int
    gbps: float


def list_rows(rows: Sequence[LinkRow], log: DamageLog) -> Listing:
    """Return a listing of rows, with the damage that the log collected.

    Raises:
        InputError: there are no rows. The error names the first unused line, if any.
    """
    if not rows:
        raise log.first_error or InputError(log.path, None, "at least one link", "none")
    ends = [(row.a, row.b) for row in rows]
    number: dict[str, int] = {}

    def column(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return np.array([(getattr(a, name), getattr(b, name)) for a, b in ends], dtype)

    return Listing(
        path=fspath(log.path),
        line=np.array([row.line for row in rows]),
        kind=column("kind", np.uint8),
        ports=column("ports", np.uint8),
        system_guid=column("system_guid", np.uint64),
        node_guid=column("node_guid", np.uint64),
        port_guid=column("port_guid", np.uint64),
        name=np.array([[number.setdefault(end.name, len(number)) for end in pair] for pair in ends], np.int32),
        lid=column("lid", np.int32),
        port=column("port", np.int32),
        active=np.array([row.active for row in rows]),
        lanes=np.array([row.lanes for row in rows], np.uint8),
        gbps=np.array([row.gbps for row in rows]),
        lmc=column("lmc", np.int32),
        names=tuple(number),
        damage=log.report(),
    )
