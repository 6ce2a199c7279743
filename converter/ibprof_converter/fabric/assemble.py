# SPDX-License-Identifier: Apache-2.0
"""Make a Fabric from a list of links, for all formats that list links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError
from ibprof.text.quantities import count_of
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind, Origin
from ibprof_converter.fabric.listing import (
    LAST_UNICAST_LID,
    NOT_CONFIGURED_LID,
    NOT_GIVEN,
    PORTS,
    Groups,
    Listing,
    drop_invalid_rows,
)
from ibprof_converter.fabric.node_names import show_some

NOT_ACTIVE = "link not active"
"""Reason why an adapter with a LID is left out: it has no active link."""

_OLD_TOP_SPEED = "10"

_PORTS_ASSUMED = 254
"""A stated number of ports of at least this may be the format's maximum: the true number is unknown."""


class DuplicateLidError(InconsistentError):
    """A LID belongs to more than one port."""


def assemble(listing: Listing) -> Fabric:
    """Return the Fabric, with each node, port and link once, in the order of GUIDs.

    Inactive links, and nodes without an active link, are left out with a warning. If no port has a LID, as in a plan,
    all ports get synthetic LIDs. In this case, or if no link is active, all links count as active.

    Raises:
        InputError: no link is valid.
        InconsistentError: two lines contradict each other.
    """
    listing = _drop_unconfigured_lids(drop_invalid_rows(listing))
    is_plan = not listing.lid.any()
    if is_plan:
        listing = _give_lids(listing)
    elif not listing.active.any():
        listing = _make_active(listing, "no link is active: all links are assumed to become active")
    links = _Links.match(listing)
    if kept := _drop_contradicting_links(listing, links):
        listing = kept
        links = _Links.match(listing)
    links.ports.take_equal(listing, np.stack([links.of_row, links.of_row], axis=1), "the link of a port")
    if not links.active.any():  # no link is active at both ends
        listing = _make_active(listing, "no link is active at both ends: all links are assumed to become active")
        links = _Links.match(listing)
    active, nodes = listing, links.nodes
    if not links.active.all():
        active = listing.select(np.flatnonzero(links.active[links.of_row]))
        nodes = Groups.by(active.node_guid)
    node_guid = nodes.key.astype(np.uint64)
    number, port_guid, port_lid, lmc = _collect_ports(active, nodes.of_end)
    has_lid = port_lid > 0
    lmc_known = not (lmc == NOT_GIVEN).any()
    ends = links.ends[links.active]
    names = active.node_names(np.ones(active.name.shape, np.bool_))
    return Fabric(
        name=listing.path,
        node_guid=node_guid,
        node_kind=nodes.take_equal(active, active.kind, "the type of a node"),
        node_name=tuple(names.values()),
        system_guid=nodes.take_equal(active, active.system_guid, "the SystemGUID of a node"),
        link_node=np.searchsorted(nodes.key, links.nodes.key[ends // PORTS]).astype(np.int32),
        link_port=(ends % PORTS).astype(np.int32),
        link_gbps=links.gbps[links.active],
        port_node=(number // PORTS)[has_lid].astype(np.int32),
        port_number=(number % PORTS)[has_lid].astype(np.int32),
        port_guid=port_guid[has_lid],
        port_lid=port_lid[has_lid].astype(np.int32),
        port_lmc=lmc[has_lid].astype(np.int32) if lmc_known else np.zeros(int(has_lid.sum()), np.int32),
        warnings=tuple(_warn(listing, links, node_guid)),
        link_lanes=links.lanes[links.active],
        link_half=links.half[links.active],
        inactive=tuple(listing.describe_link(row) for row in sorted(links.row[~links.active])),
        lmc_known=lmc_known,
        origin=listing.origin,
        damage=listing.damage,
        link_unequal=links.rates_differ[links.active],
        unequal=tuple(_describe_unequal(listing, links, link) for link in np.flatnonzero(links.rates_differ).tolist()),
        left_out=tuple(_find_left_out(listing, node_guid)),
        synthetic_lids=is_plan,
        node_ports=_count_ports(active, nodes),
        assumed_speeds=_explain_assumed_speeds(listing, links),
    )


def _explain_assumed_speeds(listing: Listing, links: _Links) -> str:
    """Return the reason why speeds are assumed; empty if the list has speeds."""
    if listing.origin is Origin.NAMES:
        return "a scheduler's topology has no speeds"
    if (links.listed == 1).all() and listing.top_speed == _OLD_TOP_SPEED:
        return "ibdiagnet 1.x shows none above 10 Gb/s per lane"
    return ""


def _count_ports(listing: Listing, nodes: Groups) -> npt.NDArray[np.uint8]:
    """Return the number of ports of each node: uint8 [node], 0 if no line states a number."""
    given = np.where(listing.ports < _PORTS_ASSUMED, listing.ports, 0)
    ports = np.zeros(len(nodes.key), np.uint8)
    np.maximum.at(ports, nodes.of_end, given)
    return ports


def _make_active(listing: Listing, remark: str) -> Listing:
    return replace(listing, active=np.ones(len(listing.active), np.bool_), remarks=(*listing.remarks, remark))


def _give_lids(listing: Listing) -> Listing:
    """Return the listing with synthetic LIDs, in the order of GUIDs and port numbers."""
    is_switch = listing.kind == NodeKind.SWITCH
    ports = Groups.by(Groups.by(listing.node_guid).of_end * PORTS + np.where(is_switch, 0, listing.port))
    if len(ports.key) > LAST_UNICAST_LID:
        raise InputError(listing.path, None, f"at most {LAST_UNICAST_LID} ports", f"{len(ports.key)}")
    remark = "no port has a LID: a plan, or no subnet manager has run. LIDs are synthetic, and routes are modelled"
    return replace(_make_active(listing, remark), lid=(ports.of_end + 1).astype(np.int32))


def _find_left_out(listing: Listing, kept_guid: npt.NDArray[np.uint64]) -> Iterator[tuple[str, str]]:
    """Yield (description, reason) for each adapter that has no active link or no LID."""
    addressed = np.unique(listing.node_guid[listing.lid > 0])
    is_lost = ~np.isin(listing.node_guid, np.intersect1d(kept_guid, addressed))
    seen: set[int] = set()
    for row, end in np.argwhere(is_lost & (listing.kind == NodeKind.CA)).tolist():
        guid = int(listing.node_guid[row, end])
        if guid in seen:
            continue
        seen.add(guid)
        peer = listing.names[listing.name[row, 1 - end]]
        has_lid = listing.lid[row, end] > 0
        reason = "no LID" if not has_lid else f"{peer} has no LID" if not listing.lid[row, 1 - end] else NOT_ACTIVE
        yield listing.names[listing.name[row, end]], reason


def _drop_unconfigured_lids(listing: Listing) -> Listing:
    """Return the listing without the LIDs of unconfigured ports; the links of these ports become inactive."""
    unconfigured = listing.lid == NOT_CONFIGURED_LID
    if not unconfigured.any():
        return listing
    active = listing.active & ~unconfigured.any(axis=1)
    return replace(listing, lid=np.where(unconfigured, 0, listing.lid), active=active)


@dataclass(frozen=True, slots=True)
class _Links:
    """Each link once, sorted by (node, port) of the first end, then of the second end. Nodes are in the order of GUIDs.

    Attributes:
        nodes: ends of links, grouped by node.
        ports: ends of links, grouped by port; the key is node * PORTS + port.
        ends: int64 [link, 2], keys of the link's two ports.
        row: int64 [link], the first row that lists the link.
        of_row: int64 [row], the row's link.
        listed: int64 [link], number of ends (1 or 2) from which the link is listed.
        both_ends: true for a format that lists every link from both ends.
        active: bool [link], true if all rows of the link are active.
        gbps: float64 [link], data rate of the link's slowest row.
        lanes: uint8 [link], width of the link's slowest row.
        rates_differ: bool [link], true where the link's rows have different widths or speeds.
    """

    nodes: Groups
    ports: Groups
    ends: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    of_row: npt.NDArray[np.int64]
    listed: npt.NDArray[np.int64]
    active: npt.NDArray[np.bool_]
    gbps: npt.NDArray[np.float64]
    lanes: npt.NDArray[np.uint8]
    rates_differ: npt.NDArray[np.bool_]
    both_ends: bool

    @classmethod
    def match(cls, listing: Listing) -> _Links:
        """Return the links. Two rows that list one link, from its two ends, become one link."""
        nodes = Groups.by(listing.node_guid)
        end = nodes.of_end * PORTS + listing.port
        ends = np.sort(end, axis=1)
        _, row, of_row = np.unique(ends[:, 0] << 32 | ends[:, 1], return_index=True, return_inverse=True)
        from_ends = np.zeros((len(row), 2), np.bool_)
        from_ends[of_row, (end[:, 0] != ends[:, 0]).astype(np.intp)] = True
        active = np.ones(len(row), np.bool_)
        np.logical_and.at(active, of_row, listing.active)
        slowest = np.full(len(row), np.inf)
        fastest = np.zeros(len(row))
        with np.errstate(invalid="ignore"):  # an unknown rate, nan, remains nan
            np.minimum.at(slowest, of_row, listing.gbps)
            np.maximum.at(fastest, of_row, listing.gbps)
        widest, narrowest = np.zeros(len(row), np.uint8), np.full(len(row), 255, np.uint8)
        np.maximum.at(widest, of_row, listing.lanes)
        np.minimum.at(narrowest, of_row, listing.lanes)
        differ = (slowest < fastest) | (narrowest < widest)
        ports = Groups.by(end)
        listed = from_ends.sum(axis=1)
        return cls(nodes, ports, ends[row], row, of_row, listed, active, slowest, narrowest, differ, listing.both_ends)

    @property
    def half(self) -> npt.NDArray[np.bool_]:
        """True for links that the file lists from one end only: bool [link].

        All values are false if the format allows one row per link, and the file has one row for each link.
        """
        once = self.listed == 1
        return once if self.both_ends or not once.all() else np.zeros(len(once), np.bool_)


def _drop_contradicting_links(listing: Listing, links: _Links) -> Listing | None:
    """Return the listing without the rows of ports that have several links, since any of these rows may be wrong.

    The removed rows are noted as damage. Return None if no port has several links, or if no row would remain.
    """
    ports, number = np.unique(links.ends, return_counts=True)
    several = ports[number > 1]
    if not len(several):
        return None
    end = links.ends[links.of_row]
    dropped = np.isin(end, several).any(axis=1)
    if dropped.all():
        return None
    log = DamageLog(listing.path)
    for port, count in zip(several.tolist(), number[number > 1].tolist(), strict=True):
        lines = listing.line[(end == port).any(axis=1)].tolist()
        what = f"port {port % PORTS} has {count} different links, and none of these links is used"
        names = sorted({listing.names[name] for name in listing.name[end == port].tolist()})
        if len(names) > 1:
            what += f"; {show_some([repr(name) for name in names])} have the same GUID"
        log.miss(what, int(links.nodes.key[port // PORTS]), lines)
    return replace(listing.select(np.flatnonzero(~dropped)), damage=(*listing.damage, *log.report()))


def _describe_unequal(listing: Listing, links: _Links, link: int) -> str:
    rows = np.flatnonzero(links.of_row == link)[:2].tolist()
    rates = [f"{listing.lanes[row]}x {listing.gbps[row]:.4g} Gb/s" for row in rows]
    a, b = (listing.describe_end(rows[0], end) for end in (0, 1))
    return f"{a} has {rates[0]}, {b} has {rates[-1]}"


def _collect_ports(
    listing: Listing, node: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.uint64], npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    """Return key (node * PORTS + number), GUID, base LID and LMC of each adapter port, and of each switch's port 0."""
    ports = Groups.by(node * PORTS + np.where(listing.kind == NodeKind.SWITCH, 0, listing.port))
    guid = ports.take_equal(listing, listing.port_guid, "the PortGUID of a port")
    lid = ports.take_equal(listing, listing.lid, "the LID of a port")
    used, count = np.unique(lid[lid > 0], return_counts=True)
    if (count > 1).any():
        raise DuplicateLidError(_describe_twice(listing, int(used[count > 1][0])))
    return ports.key, guid, lid, ports.take_equal(listing, listing.lmc, "the LMC of a port")


def _describe_twice(listing: Listing, lid: int) -> str:
    places = sorted({listing.describe_end(row, end) for row, end in np.argwhere(listing.lid == lid)})
    return f"{listing.path}: LID {lid:#06x} belongs to more than one port: {show_some(places)}"


def _warn(listing: Listing, links: _Links, kept_guid: npt.NDArray[np.uint64]) -> Iterable[str]:
    yield from listing.remarks
    if not links.active.all():
        yield f"{_links(listing, links.row[~links.active])}: not active, left out"
    lost = np.flatnonzero(~np.isin(listing.node_guid.ravel(), kept_guid))
    if len(lost):
        names = sorted({repr(listing.names[name]) for name in listing.name.ravel()[lost].tolist()})
        yield f"{_count(names, 'node')}: no active link, left out"
    if links.half.any():
        yield f"{_links(listing, links.row[links.half])}: listed from one end only; the file may be truncated"
    if links.rates_differ.any():
        differing = _links(listing, links.row[links.rates_differ])
        yield f"{differing}: width or speed of the two ends differ, the lower rate is used"
    if np.isnan(links.gbps).any():
        yield f"{_links(listing, links.row[np.isnan(links.gbps)])}: unknown speed"


def _links(listing: Listing, rows: npt.NDArray[np.int64]) -> str:
    return _count([listing.describe_link(row) for row in sorted(rows)], "link")


def _count(items: Sequence[str], noun: str) -> str:
    return f"{count_of(len(items), noun)} ({show_some(items)})"
