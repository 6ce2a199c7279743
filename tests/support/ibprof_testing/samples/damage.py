# SPDX-License-Identifier: Apache-2.0
"""Fabrics and runs with one damaged item: removed, doubled, slowed, zeroed or split.

The output must name the damage, or equal the output for the undamaged input. Any other output is a silent loss.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from ibprof.archive.otf2_archive import write_archive
from ibprof.errors import IbprofError
from ibprof.load import load_profile
from ibprof.native.headers import recording_header
from ibprof.profile.profile_data import Direction, MessageSamples
from ibprof.text.quantities import name_call, printable
from ibprof_converter.analysis.pipeline_options import FabricOptions, TrafficOptions
from ibprof_converter.analysis.pipeline_stages import load_fabric
from ibprof_converter.checks.fabric_check import check_fabric_files, describe_health
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.hotspots.causes import diagnosis
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.reports.job_report import report_on_loads
from ibprof_converter.reports.provenance import describe_provenance
from ibprof_converter.reports.report_text import describe_in_brief
from ibprof_converter.routing import subnet
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_lab.topology.outputs.inferred_fabric import write_fdbs
from ibprof_testing.samples.recordings import OPERATIONS, PAGE, Process, counter, make_recording
from ibprof_testing.samples.spoilt_dumps import (
    LISTED_ONCE,
    MANY_PLACES,
    WHOLE_LINES,
    Dumps,
    lacks_whole_links,
    spoil_text,
)

_CONSTANTS = recording_header().constants

_KINDS = {NodeKind.CA: "CA", NodeKind.SWITCH: "SW", NodeKind.ROUTER: "Rt"}
_LEAST_ALIKE = 3
"""ibprof names swapped cables only if at least this number of switches have the same neighbours on the level above."""

_WIDE = 1_000_000
"""Width of the output in columns, so large that no line is cut."""


@dataclass(frozen=True, slots=True)
class ListedEnd:
    """One end of a listed link."""

    node: int
    port: int
    lid: int


@dataclass(frozen=True, slots=True)
class ListedLink:
    """A link as a `.lst` lists it: one line from each end.

    `back_speed` is the speed in the second line, or empty for the same speed.
    """

    a: ListedEnd
    b: ListedEnd
    width: str = "4x"
    state: str = "ACT"
    speed: str = "25"
    times: tuple[int, int] = (1, 1)
    back_speed: str = ""


@dataclass(frozen=True, slots=True)
class ListedFabric:
    """A fabric as its dumps list it: links and, if not None, forwarding tables. `spoil` damages the text of a file."""

    fabric: Fabric
    links: tuple[ListedLink, ...]
    tables: ForwardingTables | None
    spoil: tuple[str, Callable[[bytes], bytes]] | None = None

    @classmethod
    def of(cls, fabric: Fabric, tables: ForwardingTables | None) -> ListedFabric:
        """Return a fabric's nodes and links, with one rate for all links."""
        lids = {
            (node, port): lid
            for node, port, lid in zip(
                fabric.port_node.tolist(), fabric.port_number.tolist(), fabric.port_lid.tolist(), strict=True
            )
        }

        def end(node: int, port: int) -> ListedEnd:
            return ListedEnd(node, port, lids.get((node, port), lids.get((node, 0), 0)))

        links = tuple(
            ListedLink(end(a, a_port), end(b, b_port))
            for (a, b), (a_port, b_port) in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True)
        )
        return cls(fabric, links, tables)

    def name(self, node: int) -> str:
        """Return the first word of a node's description: the name of a switch or of an adapter's host."""
        return self.fabric.node_name[node].split()[0]

    def is_switch(self, node: int) -> bool:
        """Return whether a node is a switch."""
        return bool(self.fabric.node_kind[node] == NodeKind.SWITCH)

    def write(self, folder: Path) -> Path:
        """Write the dumps, and return the list of links."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "opensm-subnet.lst"
        lines = []
        for link in self.links:
            directions = (link.a, link.b, link.speed), (link.b, link.a, link.back_speed or link.speed)
            for count, (near, far, speed) in zip(link.times, directions, strict=True):
                tail = f"PHY={link.width} LOG={link.state} SPD={speed}"
                lines += [f"{self._end(near)} {self._end(far)} {tail}\n"] * count
        path.write_text("".join(lines))
        if self.tables is not None:
            with (folder / "opensm.fdbs").open("w") as file:
                write_fdbs(file, self.tables)
        if self.spoil:
            spoilt = folder / self.spoil[0]
            spoilt.write_bytes(self.spoil[1](spoilt.read_bytes()))
        return path

    def _end(self, end: ListedEnd) -> str:
        kind, guid = NodeKind(self.fabric.node_kind[end.node]), int(self.fabric.node_guid[end.node])
        port_guid = guid if kind == NodeKind.SWITCH else guid + end.port
        return (
            f"{{ {_KINDS[kind]} Ports:40 SystemGUID:{guid:016x} NodeGUID:{guid:016x} PortGUID:{port_guid:016x} "
            f"VenID:000002C9 DevID:D2F20000 Rev:000000A1 "
            f"{{{self.fabric.node_name[end.node]}}} LID:{end.lid:04x} PN:{end.port:02x} }}"
        )


PLANES = 4


def copy_to_planes(right: ListedFabric, folder: Path) -> ListedFabric:
    """Return an XDR fabric. Each of four planes has a copy of the switches and cables. Planes share the adapters.

    Args:
        right: the fabric of one plane. Adapters have one port.
        folder: folder for the fabric's files, which are written and read.
    """
    fabric, nodes = right.fabric, right.fabric.nodes
    switches = np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)
    lids = 1 + max(end.lid for link in right.links for end in (link.a, link.b))
    copies = [switches] * (PLANES - 1)
    place = {int(switch): number for number, switch in enumerate(switches)}
    listed = replace(
        fabric,
        node_guid=np.concatenate(
            [fabric.node_guid, *(fabric.node_guid[each] + np.uint64(at) for at, each in enumerate(copies, 1))]
        ),
        node_kind=np.concatenate([fabric.node_kind, *(fabric.node_kind[each] for each in copies)]),
        system_guid=np.concatenate([fabric.system_guid, *(fabric.system_guid[each] for each in copies)]),
        node_ports=np.zeros(nodes + len(switches) * (PLANES - 1), np.uint8),
        node_name=(
            *fabric.node_name,
            *(f"{fabric.node_name[each]}-p{at}" for at, some in enumerate(copies, 1) for each in some),
        ),
    )

    def end(old: ListedEnd, plane: int) -> ListedEnd:
        lid = old.lid + plane * lids
        if old.node not in place:
            return replace(old, port=plane + 1, lid=lid)
        return replace(old, lid=lid, node=nodes + (plane - 1) * len(switches) + place[old.node] if plane else old.node)

    links = tuple(
        ListedLink(end(link.a, plane), end(link.b, plane), "1x", speed="200")
        for plane in range(PLANES)
        for link in right.links
    )
    read = read_fabric(ListedFabric(listed, links, None).write(folder))
    return replace(
        ListedFabric.of(read, None),
        links=tuple(replace(link, width="1x", speed="200") for link in ListedFabric.of(read, None).links),
    )


@dataclass(frozen=True, slots=True)
class DamagedFabric:
    """A fabric with one damage.

    Attributes:
        kind: the damage, in words.
        names: words. The output must contain at least one of these words.
        listed: the fabric.
        renamed: changed description of a node -> correct description. Only this text may change in an output.
    """

    kind: str
    names: tuple[str, ...]
    listed: ListedFabric | Dumps
    renamed: Mapping[str, str] = field(default_factory=dict)


def damage_dumps(right: Dumps) -> Iterator[DamagedFabric]:
    """Yield dumps of a fabric, each time with one file damaged at one place."""
    names = (*(name.split()[0] for name in right.nodes if name), *right.files)
    for number, file in enumerate(right.files):
        text = "forwarding tables" if number else "list of links"
        for kind, spoil in spoil_text(MANY_PLACES):
            spoilt = right.spoil(file, spoil)
            is_once = len(right.files) == 1 and file in LISTED_ONCE and kind in WHOLE_LINES
            if not is_once and not (kind in WHOLE_LINES and lacks_whole_links(right, spoilt)):
                yield DamagedFabric(f"captured {text} {kind}", names, spoilt)


def damage_fabric(right: ListedFabric) -> Iterator[DamagedFabric]:
    """Yield fabrics, each time with one damaged cable, LID, switch, table or host."""
    for damage in (
        _damage_cables,
        _damage_lids,
        _damage_switches,
        _split_switches,
        _damage_tables,
        _damage_names,
        _damage_whole,
        _cut_off_leaves,
    ):
        yield from damage(right)


def _with(right: ListedFabric, change: Callable[[ListedLink], ListedLink | None]) -> ListedFabric:
    """Return a fabric with each link replaced by `change(link)`, or removed if `change` returns None."""
    return replace(right, links=tuple(kept for link in right.links if (kept := change(link)) is not None))


def _damage_cables(right: ListedFabric) -> Iterator[DamagedFabric]:
    changes: tuple[tuple[str, dict[str, object]], ...] = (
        ("cable listed from one end", {"times": (1, 0)}),
        ("cable listed twice from each end", {"times": (2, 2)}),
        ("cable slowed", {"speed": "10"}),
        ("cable narrowed to one lane", {"width": "1x"}),
        ("cable of unknown speed", {"speed": "?"}),
        ("cable of unknown width", {"width": "?"}),
        ("cable whose one direction has no speed", {"back_speed": "?"}),
        ("cable whose one direction is slower", {"back_speed": "10"}),
        ("cable not active", {"state": "INI"}),
    )
    if all(link.width == "4x" for link in right.links):
        changes += (
            ("cable narrowed to two lanes", {"width": "2x"}),
            ("cable of two lanes at twice the speed", {"width": "2x", "speed": "50"}),
        )
    trunks = [link for link in right.links if is_trunk(right, link)]
    for link in right.links:
        names = right.name(link.a.node), right.name(link.b.node)
        between = is_trunk(right, link)
        if between or right.tables is not None:
            # Dumps without tables do not show that a host is missing.
            lost = tuple(f"LID {end.lid:#06x}" for end in (link.a, link.b))
            yield DamagedFabric("cable removed", (*names, *lost), _exchange(right, {id(link): None}))
        for kind, fields in changes:
            changed = replace(link, **fields)  # type: ignore[arg-type]
            yield DamagedFabric(kind, names, _exchange(right, {id(link): changed}))
        # Swapping two cables of one switch would not change the fabric.
        others = (each for each in trunks if not nodes_of(each) & nodes_of(link))
        if between and _count_alike(right, link) >= _LEAST_ALIKE and (other := next(others, None)):
            swapped: dict[int, ListedLink | None]
            swapped = {id(link): replace(link, b=other.b), id(other): replace(other, b=link.b)}
            both = (*names, right.name(other.a.node), right.name(other.b.node))
            yield DamagedFabric("two cables swapped", both, _exchange(right, swapped))


def _count_alike(right: ListedFabric, trunk: ListedLink) -> int:
    """Count the switches, a trunk's lower switch included, with that switch's neighbours on the level above."""
    level = find_levels(right.fabric)
    above: dict[int, set[int]] = {}
    for link in right.links:
        if is_trunk(right, link):
            low, high = sorted(nodes_of(link), key=lambda node: int(level[node]))
            above.setdefault(low, set()).add(high)
    own = above[min(nodes_of(trunk), key=lambda node: int(level[node]))]
    return sum(each == own for each in above.values())


def _exchange(right: ListedFabric, changed: Mapping[int, ListedLink | None]) -> ListedFabric:
    """Return the fabric with changed links (id of the old link -> new link; None to remove the link)."""
    return _with(right, lambda each: changed.get(id(each), each))


def nodes_of(link: ListedLink) -> set[int]:
    """Return the nodes at the ends of a link."""
    return {link.a.node, link.b.node}


def is_trunk(right: ListedFabric, link: ListedLink) -> bool:
    """Return whether a link joins two switches."""
    return all(map(right.is_switch, nodes_of(link)))


def _set_lid(right: ListedFabric, wanted: Callable[[int], bool], lid: int) -> ListedFabric:
    def end(old: ListedEnd) -> ListedEnd:
        return replace(old, lid=lid) if wanted(old.node) else old

    return _with(right, lambda link: replace(link, a=end(link.a), b=end(link.b)))


def _damage_lids(right: ListedFabric) -> Iterator[DamagedFabric]:
    lids = {end.node: end.lid for link in right.links for end in (link.a, link.b)}
    hosts = [node for node in lids if not right.is_switch(node)]
    for node, lid in lids.items():
        names = (right.name(node), f"{lid:#06x}")
        yield DamagedFabric("LID of a node zeroed", names, _set_lid(right, {node}.__contains__, 0))
        taken = lids[hosts[0] if node != hosts[0] else hosts[1]]
        yield DamagedFabric("LID of another node", names, _set_lid(right, {node}.__contains__, taken))
        guids = right.fabric.node_guid.copy()
        peer = next(each for each in lids if each != node and right.is_switch(each) == right.is_switch(node))
        guids[node] = guids[peer]
        both = (*names, right.name(peer), f"{int(guids[peer]):#018x}")
        yield DamagedFabric("GUID of another node", both, replace(right, fabric=replace(right.fabric, node_guid=guids)))
    for switch in filter(right.is_switch, lids):
        below = {
            end.node
            for link in right.links
            for end, far in ((link.a, link.b), (link.b, link.a))
            if far.node == switch and not right.is_switch(end.node)
        }
        if below:
            all_names = (right.name(switch), *(right.name(node) for node in below))
            yield DamagedFabric("LIDs of a leaf's hosts zeroed", all_names, _set_lid(right, below.__contains__, 0))
            everything = {switch, *below}
            yield DamagedFabric(
                "LIDs of a leaf and its hosts zeroed", all_names, _set_lid(right, everything.__contains__, 0)
            )


def _damage_switches(right: ListedFabric) -> Iterator[DamagedFabric]:
    for switch in np.flatnonzero(right.fabric.node_kind == NodeKind.SWITCH).tolist():

        def at(link: ListedLink, node: int = switch) -> bool:
            return node in (link.a.node, link.b.node)

        name = right.name(switch)
        peers = tuple(right.name(end.node) for link in right.links if at(link) for end in (link.a, link.b))
        guid = f"{int(right.fabric.node_guid[switch]):#018x}"
        if right.tables is not None:
            yield DamagedFabric("switch removed", (*peers, guid), _with(right, lambda link: None if at(link) else link))
            kept = right.tables.switch_guid != right.fabric.node_guid[switch]
            tables = replace(right.tables, switch_guid=right.tables.switch_guid[kept], port=right.tables.port[kept])
            yield DamagedFabric("table of a switch removed", (name,), replace(right, tables=tables))
        for kind, fields in (("slowed", {"speed": "14"}), ("narrowed", {"width": "1x"})):

            def change(link: ListedLink, fields: dict[str, str] = fields) -> ListedLink:
                return replace(link, **fields) if at(link) and is_trunk(right, link) else link  # type: ignore[arg-type]

            named = (f"links of {name} to switches run at",)
            yield DamagedFabric(f"all links between a switch and others {kind}", named, _with(right, change))
        if sum(at(link) and is_trunk(right, link) for link in right.links) > 2:
            half = [each for each in right.links if at(each) and is_trunk(right, each)][1::2]
            gone = _exchange(right, dict.fromkeys(map(id, half)))
            yield DamagedFabric("half of a switch's links to others removed", peers, gone)


def _split_switches(right: ListedFabric) -> Iterator[DamagedFabric]:
    """Move half of a switch's links to a new switch with another GUID and LID, and yield the fabric.

    Without tables, ibprof cannot distinguish the new switch from a real switch.
    """
    if right.tables is None:
        return
    fabric, new = right.fabric, right.fabric.nodes
    free = 1 + max(end.lid for link in right.links for end in (link.a, link.b))
    for switch in np.flatnonzero(fabric.node_kind == NodeKind.SWITCH).tolist():
        name = fabric.node_name[switch]
        copied: dict[str, Any] = {
            column: np.append(getattr(fabric, column), getattr(fabric, column)[switch])
            for column in ("node_kind", "node_ports", "system_guid")
            if hasattr(fabric, column)
        }
        split = replace(
            fabric,
            node_guid=np.append(fabric.node_guid, fabric.node_guid[switch] + np.uint64(0x5000)),
            node_name=(*fabric.node_name, f"{name}-half"),
            **copied,
        )
        of_switch = [link for link in right.links if switch in nodes_of(link)]
        half = {id(link) for link in of_switch[1::2]}

        def end(old: ListedEnd, switch: int = switch) -> ListedEnd:
            return replace(old, node=new, lid=free) if old.node == switch else old

        links = tuple(replace(link, a=end(link.a), b=end(link.b)) if id(link) in half else link for link in right.links)
        peers = tuple(right.name(node) for link in of_switch for node in nodes_of(link))
        yield DamagedFabric("switch split in two", peers, replace(right, fabric=split, links=links))


def _damage_tables(right: ListedFabric) -> Iterator[DamagedFabric]:
    if right.tables is None:
        return
    tables, fabric = right.tables, right.fabric
    ends = {int(lid): int(node) for lid, node in zip(fabric.port_lid, fabric.port_node, strict=True)}
    names = {int(guid): name for guid, name in zip(fabric.node_guid, fabric.node_name, strict=True)}
    for lid in range(1, tables.port.shape[1]):
        if right.is_switch(ends[lid]):
            continue
        found = (right.name(ends[lid]), f"LID {lid:#06x}")
        port = tables.port.copy()
        port[:, lid] = UNREACHABLE
        yield DamagedFabric("LID removed from all tables", found, replace(right, tables=replace(tables, port=port)))
        for row in range(len(tables.port)):
            at_switch = (*found, names[int(tables.switch_guid[row])])
            for kind, value in (("LID removed from a table", UNREACHABLE), ("LID sent to an unused port", 60)):
                port = tables.port.copy()
                port[row, lid] = value
                yield DamagedFabric(kind, at_switch, replace(right, tables=replace(tables, port=port)))


_ODD_NAMES = (
    'ho"st,1;{}',
    "h\u00f6st-\u4e3b\u6a5f\u2603",
    "host PN:01 LID:0007",
    "<script>alert(1)</script>",
    "\u202ehost\u05d0",
    "x" * 200,
)
"""Names of hosts with characters that are special in CSV, HTML or other formats."""


def _damage_names(right: ListedFabric) -> Iterator[DamagedFabric]:
    """Yield fabrics with empty, foreign or odd descriptions of hosts, or with cables at wrong ports."""
    fabric = right.fabric

    def rename(kind: str, names: tuple[str, ...], changed: Mapping[int, str]) -> DamagedFabric:
        described = tuple(changed.get(node, name) for node, name in enumerate(fabric.node_name))
        return DamagedFabric(kind, names, replace(right, fabric=replace(fabric, node_name=described)))

    uplinks = {end.node: (link, end, far) for link, end, far in _list_ends(right) if not right.is_switch(end.node)}
    hosts = list(uplinks)
    for host in hosts:
        guid = f"{int(fabric.node_guid[host]):#018x}"
        other = hosts[hosts.index(host) - 1]
        yield rename("host without a description", (guid,), {host: ""})
        yield rename("description of another host", (guid,), {host: fabric.node_name[other]})
        for name in _ODD_NAMES:
            odd = rename("odd description", (), {host: f"{name} HCA-1"})
            yield replace(odd, renamed={f"{name} HCA-1": fabric.node_name[host]})
    leaves = {far.node for _, _, far in uplinks.values()}
    for leaf in sorted(leaves):
        below = [host for host in hosts if uplinks[host][2].node == leaf]
        guids = tuple(f"{int(fabric.node_guid[host]):#018x}" for host in below)
        for name in ("MT4123 ConnectX6 Mellanox Technologies", "localhost HCA-1"):
            yield rename("descriptions of a leaf's hosts lost", guids, dict.fromkeys(below, name))
    for host in hosts:
        link, end, far = uplinks[host]
        other = next(each for each in hosts if uplinks[each][2].node != far.node)
        swapped, near, place = uplinks[other]
        names = (right.name(host), right.name(other), right.name(far.node), right.name(place.node))
        both: dict[int, ListedLink | None] = {
            id(link): replace(link, a=end, b=place),
            id(swapped): replace(swapped, a=near, b=far),
        }
        free = replace(place, port=39)
        moved: dict[int, ListedLink | None] = {id(link): replace(link, a=end, b=free)}
        if right.tables is not None:
            # Dumps without tables do not show that hosts were swapped or moved.
            yield DamagedFabric("two hosts swapped", names, _exchange(right, both))
            yield DamagedFabric("host moved to another leaf", names, _exchange(right, moved))
        yield DamagedFabric("port listed twice", names, _exchange(right, {id(link): replace(link, a=end, b=place)}))
        beyond = replace(link, a=end, b=replace(far, port=200))
        yield DamagedFabric("port that the switch lacks", names, _exchange(right, {id(link): beyond}))
    for leaf in sorted(leaves):
        loop = next(far for _, _, far in uplinks.values() if far.node == leaf)
        looped = ListedLink(replace(loop, port=38), replace(loop, port=39))
        ports = (f"{right.name(leaf)}' port 38",)
        yield DamagedFabric("cable with both ends in a switch", ports, replace(right, links=(*right.links, looped)))


def _list_ends(right: ListedFabric) -> Iterator[tuple[ListedLink, ListedEnd, ListedEnd]]:
    """Yield (link, end, other end) twice for each link, once from each end."""
    for link in right.links:
        yield link, link.a, link.b
        yield link, link.b, link.a


def _damage_whole(right: ListedFabric) -> Iterator[DamagedFabric]:
    everywhere = tuple(map(right.name, range(right.fabric.nodes)))
    yield DamagedFabric("all LIDs zeroed", ("LID", *everywhere), _set_lid(right, lambda _: True, 0))
    not_active = _with(right, lambda link: replace(link, state="INI"))
    yield DamagedFabric("no link active", ("active", *everywhere), not_active)
    both = _set_lid(not_active, lambda _: True, 0)
    yield DamagedFabric("before the subnet manager ran", ("LID", *everywhere), both)
    for file, text in (("opensm-subnet.lst", "list of links"), ("opensm.fdbs", "forwarding tables")):
        if file == "opensm.fdbs" and right.tables is None:
            continue
        for kind, spoil in spoil_text():
            # Each link has a line at both ends. Without tables, outputs cannot name the damage if both are missing.
            if right.tables is not None or kind not in WHOLE_LINES:
                yield DamagedFabric(f"{text} {kind}", (*everywhere, file), replace(right, spoil=(file, spoil)))
    switches = np.flatnonzero(right.fabric.node_kind == NodeKind.SWITCH).tolist()
    leaves = {
        end.node
        for link in right.links
        for end, far in ((link.a, link.b), (link.b, link.a))
        if not right.is_switch(far.node)
    }
    for cut in range(1, len(switches)):
        inside = {*switches[:cut]}

        def crosses(link: ListedLink, inside: set[int] = inside) -> bool:
            return is_trunk(right, link) and (link.a.node in inside) != (link.b.node in inside)

        # Each part needs leaves. If a part is only a spine without cables, no traffic is lost.
        if leaves & inside and leaves - inside:
            split = _with(right, lambda link: None if crosses(link) else link)
            yield DamagedFabric("fabric split", everywhere, split)
            yield DamagedFabric("fabric split, with the same LIDs in both parts", everywhere, _reuse_lids(split))


def _cut_off_leaves(right: ListedFabric) -> Iterator[DamagedFabric]:
    leaves = {far.node for _, end, far in _list_ends(right) if not right.is_switch(end.node)}
    for leaf in sorted(leaves):
        gone = [link for link in right.links if leaf in nodes_of(link) and is_trunk(right, link)]
        alone = _exchange(right, dict.fromkeys(map(id, gone)))
        yield DamagedFabric("leaf without links to switches", (right.name(leaf),), alone)


def _reuse_lids(split: ListedFabric) -> ListedFabric:
    """Return a fabric of separate parts. The LIDs of each part begin with 1."""
    part = {node: node for link in split.links for node in nodes_of(link)}
    for _ in part:
        for link in split.links:
            part[link.a.node] = part[link.b.node] = min(part[link.a.node], part[link.b.node])
    members: dict[int, list[int]] = {}
    for node in sorted(part):
        members.setdefault(part[node], []).append(node)
    lids = {node: lid for nodes in members.values() for lid, node in enumerate(nodes, 1)}

    def end(old: ListedEnd) -> ListedEnd:
        return replace(old, lid=lids[old.node])

    return _with(split, lambda link: replace(link, a=end(link.a), b=end(link.b)))


@dataclass(frozen=True, slots=True)
class Answer:
    """The output of ibprof's commands for a fabric.

    Attributes:
        lines: the output of `--check`, and the first lines of a report.
        loads: (node name, port) -> bytes of each used link direction.
        head: the first paragraph of the report.
        lost_share: fraction of the bytes that have no route.
    """

    lines: tuple[str, ...]
    loads: dict[tuple[str, int], int]
    head: str = ""
    lost_share: float = 0.0
    hosts: int = 0


TRAFFIC = "pattern:all-to-all:1000000"


def answer(links: Path) -> Answer:
    """Return the output of a report and a check on a fabric. The fabric is parsed only once."""
    with patch.object(subnet, "read_fabric", cache(read_fabric)):
        return _answer(links)


def _answer(links: Path) -> Answer:
    lines: list[str] = []
    options = FabricOptions((str(links),))
    loads, head, share, hosts = {}, "", 0.0, 0
    try:
        found = load_fabric(options, TrafficOptions((TRAFFIC,)))
        # Do not search for better placements: a placement cannot remedy a damaged fabric.
        with patch.object(diagnosis, "_find_change", lambda *_: None):
            report = report_on_loads(found, describe_provenance("", ()))
        lines += describe_in_brief(report, (), _WIDE)
        lines += found.warnings
        head = report.verdict.text
        share = sum(found.loads.bytes_unrouted.values()) / max(found.loads.bytes_total, 1)
        hosts = len(found.fabric.hosts.name)
        for row in found.rows(only_used=True):
            for end in "ab":
                loads[str(row[f"{end}_name"]), int(str(row[f"{end}_port"]))] = int(str(row[f"{end}_bytes"]))
    except IbprofError as error:
        lines.append(str(error))
    try:
        lines += describe_health(check_fabric_files(find_rails([links])))
    except IbprofError as error:
        lines.append(str(error))
    return Answer(tuple(line.replace(str(links.parent), "") for line in lines), loads, head, share, hosts)


_SAYS_LOSS = ("left out", "cannot be used", "The forwarding tables lead to", "from one end only")
"""Texts that report missing hosts in the first lines of the output."""

NAMED, UNCHANGED, SILENT = "named", "unchanged", "silent"

_NO_TRACE = ("cable removed", "switch removed", "list of links cut")
"""Kinds of damage after which a list of links shows no trace of the missing hosts."""


def _without_name(answer: Answer, odd: str, name: str) -> Answer:
    """Return an answer with a node renamed and rank numbers removed. Rank numbers depend on hosts' names."""

    def change(text: str) -> str:
        return re.sub(r"rank \d+", "a rank", text.replace(printable(odd), name))

    loads = {(name if node == odd else node, port): amount for (node, port), amount in answer.loads.items()}
    return replace(answer, lines=tuple(map(change, answer.lines)), loads=loads, head=change(answer.head))


def judge_answer(right: Answer, found: Answer, damage: DamagedFabric | DamagedRun) -> str:
    """Classify an output as NAMED, UNCHANGED or SILENT.

    NAMED: new lines contain one of `damage.names`. The head reports missing hosts, and lost bytes above 1%, if any.
    """
    for odd, name in damage.renamed.items():
        right, found = _without_name(right, name, name), _without_name(found, odd, name)
    if found == right:
        return UNCHANGED
    # The list of the most loaded links contains names of nodes, but does not report damage.
    news = "\n".join(
        re.sub(r"The most loaded link, .*", "", line)
        for line in found.lines
        if line not in right.lines and not re.match(r" *\d+ .* -> ", line)
    )
    if not any(name in news for name in damage.names):
        return SILENT
    if found.lost_share > 0.01 and "have no route" not in found.head[:200]:
        return SILENT
    loses_hosts = 0 < found.hosts < right.hosts and damage.kind not in _NO_TRACE
    return SILENT if loses_hosts and not any(words in found.head for words in _SAYS_LOSS) else NAMED


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A recording with one damage.

    Attributes:
        kind, names, renamed: as in `DamagedFabric`.
        write: writes the recording to a folder.
    """

    kind: str
    names: tuple[str, ...]
    write: Callable[[Path], None]
    renamed: Mapping[str, str] = field(default_factory=dict)


RANKS_A_HOST = 2
_FLAGS = sum(_CONSTANTS[f"IBP_PROCESS_{name}"] for name in ("FINALIZED", "SEES_HOST", "DEMANDS"))
PAGES_OF_HOST = 11
"""Number of pages in the file that `write_run` writes for each host."""
_GROUP = 16
"""Number of the communicator of all ranks, in the demands of the synthetic run."""


def record_run(hosts: Sequence[str]) -> dict[str, list[Process]]:
    """Return host -> processes, two on each host. Each rank sends to the next rank, and all ranks call MPI_Alltoall."""
    ranks = RANKS_A_HOST * len(hosts)
    everyone = ranks << _CONSTANTS["IBP_PARTNER_SIZE_SHIFT"] | _GROUP | _CONSTANTS["IBP_PARTNER_GROUP"]
    alltoall, send = OPERATIONS.index("ALLTOALL"), OPERATIONS.index("SEND")

    def process(rank: int) -> Process:
        after = (rank + 1) % ranks
        counters = [counter((rank + step) % ranks, 1000, operation=alltoall) for step in range(1, ranks)]
        received = [{**each, "direction": int(Direction.RECEIVED)} for each in counters]
        received.append(
            counter((rank - 1) % ranks, 5000, operation=send, messages=5, direction=int(Direction.RECEIVED))
        )
        asked = {"operation": alltoall, "partner": everyone, "bytes": 1000, "calls": 1}
        sent = {"operation": send, "partner": after, "bytes": 5000, "calls": 5}
        return Process(
            rank,
            ranks,
            {"flags": _FLAGS},
            counters=[[*counters, counter(after, 5000, operation=send, messages=5), *received]],
            demands=[[asked, sent]],
        )

    return {host: [process(RANKS_A_HOST * at + each) for each in range(RANKS_A_HOST)] for at, host in enumerate(hosts)}


def write_run(run: Mapping[str, Sequence[Process]], folder: Path) -> None:
    """Write the recording of a run, one file for each host."""
    for host, processes in run.items():
        make_recording(folder, processes, host=host)


def _write_twice(run: Mapping[str, Sequence[Process]], host: str, again: Sequence[Process], folder: Path) -> None:
    """Write a run, and a second file of `host` with the processes `again`, whose ranks the first file has too."""
    write_run(run, folder)
    make_recording(folder, again, host=host, name=f"{host}-again.ibprof")


def damage_run(right: Mapping[str, Sequence[Process]]) -> Iterator[DamagedRun]:
    """Yield runs, each time with one damaged rank, host, file, operation or counter."""
    for number, operation in enumerate(OPERATIONS):
        if any(each["operation"] == number for processes in right.values() for each in processes[0].counters[0]):
            for what, kept in (("removed", ()), ("counted as control", ("control",))):
                yield DamagedRun(
                    f"operation of all ranks {what}",
                    (f"Bytes of {name_call(operation)} are missing",),
                    partial(
                        write_run,
                        {
                            host: [_change(each, number, kept) for each in processes]
                            for host, processes in right.items()
                        },
                    ),
                )
    foreign = {f"node{number}": processes for number, processes in enumerate(right.values())}
    yield DamagedRun("hosts of another cluster", ("'node0'",), partial(write_run, foreign))
    more = {host: [replace(each, world_size=9) for each in processes] for host, processes in right.items()}
    yield DamagedRun("one rank more in the job", ("1 of 9 ranks (11.1%): not recorded",), partial(write_run, more))
    for host, processes in right.items():
        others = {name: each for name, each in right.items() if name != host}
        ranks = tuple(f"{process.rank}" for process in processes)
        in_part = (host, "of 8 ranks", *(f"Rank {rank}" for rank in ranks))

        def write_with(folder: Path, change: Callable[[Path], object], host: str = host) -> None:
            write_run(right, folder)
            (path,) = folder.glob(f"{host}-*")
            change(path)

        yield DamagedRun("file of a host removed", ("2 of 8 ranks (25.0%): not recorded",), partial(write_run, others))
        for part in np.linspace(0.02, 0.98, 20).tolist():
            cut = partial(write_with, change=partial(_cut_file, part=part))
            yield DamagedRun("file of a host cut", in_part, cut)
        for page in range(1, PAGES_OF_HOST):
            zero_page = partial(write_with, change=partial(_zero_page, page=page))
            yield DamagedRun("page of a file of a host zeroed", in_part, zero_page)
        zero = partial(write_with, change=lambda path: path.write_bytes(bytes(path.stat().st_size)))
        yield DamagedRun("file of a host zeroed", (host, f"ranks were not recorded: {ranks[0]}-"), zero)
        double = partial(write_with, change=lambda path: shutil.copy(path, path.with_name(f"copy-{path.name}")))
        yield DamagedRun("file of a host doubled", (host, *(f"rank {rank}" for rank in ranks)), double)
        again = [replace(each, fields={"flags": _FLAGS, "start_ns": 2}) for each in processes]
        yield DamagedRun(
            "host recorded again",
            (host, *(f"rank {rank}" for rank in ranks)),
            partial(_write_twice, right, host, again),
        )
        renamed = others | {"elsewhere": processes}
        yield DamagedRun("host renamed", ("'elsewhere'",), partial(write_run, renamed))
        for process in processes:

            def write(folder: Path, changed: Process | None, host: str = host, rank: int = process.rank) -> None:
                kept = [changed if each.rank == rank else each for each in right[host]]
                write_run({**right, host: [each for each in kept if each is not None]}, folder)

            counters = process.counters[0]
            gone = partial(write, changed=None)
            yield DamagedRun("rank removed", ("1 of 8 ranks (12.5%): not recorded",), gone)
            for kind, fields in (
                ("rank killed", {"stop_ns": 0, "flags": 0}),
                ("recording of a rank full", {"lost_bytes": 900, "lost_messages": 3}),
                ("recording of a rank off", {"off_ns": 10}),
            ):
                yield DamagedRun(
                    kind,
                    (f"Rank {process.rank} ", f"rank {process.rank}.", "the recording could not grow"),
                    partial(write, changed=replace(process, fields={"flags": _FLAGS} | fields)),
                )
            for number, operation in enumerate(OPERATIONS):
                of_it = [each for each in counters if each["operation"] == number]
                if not of_it:
                    continue
                rest = [each for each in counters if each["operation"] != number]
                half = [*rest, *({**each, "bytes": each["bytes"] // 2} for each in of_it)]
                other = [*rest, *({**each, "kind": 1} for each in of_it)]
                called = (f"Bytes of {name_call(operation)} are missing",)
                for what, counted in (("removed", rest), ("halved", half), ("counted as control", other)):
                    changed = replace(process, counters=[counted])
                    yield DamagedRun(f"operation of a rank {what}", called, partial(write, changed=changed))
            for at, each in enumerate(counters):
                if "direction" in each:
                    continue
                for what, fields in (("zeroed", {"bytes": 0}), ("sent to no rank", {"peer": 77})):
                    changed = replace(process, counters=[[*counters[:at], {**each, **fields}, *counters[at + 1 :]]])
                    named = (f"Bytes of {name_call(OPERATIONS[int(each['operation'])])} are missing", "MPI_COMM_WORLD")
                    yield DamagedRun(f"counter {what}", named, partial(write, changed=changed))


def write_profile(run: Mapping[str, Sequence[Process]], folder: Path) -> None:
    """Write the archive of a run, with samples."""
    folder.mkdir()
    write_run(run, folder / "run.ibprof")
    columns = {name: np.zeros(5, column) for name, column in MessageSamples.column_types().items()}
    profile = replace(load_profile(folder / "run.ibprof"), message_samples=MessageSamples(**columns))
    shutil.rmtree(folder / "run.ibprof")
    write_archive(profile, folder / "profile.otf2")


def damage_profile(right: Path) -> Iterator[DamagedRun]:
    """For each file of an archive, yield the archive with this file removed, cut or zeroed."""

    def write(folder: Path, name: Path, change: Callable[[Path], object]) -> None:
        shutil.copytree(right, folder)
        change(folder / name)

    for path in sorted(path for path in right.rglob("*") if path.is_file()):
        changes: list[tuple[str, Callable[[Path], object]]] = [
            ("removed", Path.unlink),
            ("zeroed", lambda path: path.write_bytes(bytes(path.stat().st_size))),
            *(("cut", partial(_cut_file, part=part)) for part in np.linspace(0.0, 0.98, 5).tolist()),
        ]
        for what, change in changes:
            damaged = partial(write, name=path.relative_to(right), change=change)
            yield DamagedRun(f"file of a profile {what}", ("expected ",), damaged)


def _change(process: Process, operation: int, kept: Sequence[str]) -> Process:
    """Return a process with the counters of an operation removed, or changed to control messages."""
    changed = [
        {**each, "kind": 1} if each["operation"] == operation else each
        for each in process.counters[0]
        if each["operation"] != operation or kept
    ]
    return replace(process, counters=[changed])


def _zero_page(path: Path, page: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: page * PAGE] + bytes(PAGE) + whole[(page + 1) * PAGE :])


def _cut_file(path: Path, part: float) -> None:
    os.truncate(path, int(part * path.stat().st_size))


def answer_run(recording: Path, links: Path) -> Answer:
    """Return the output of a report on a recorded run and a fabric."""
    lines: list[str] = []
    try:
        found = load_fabric(FabricOptions((str(links),)), TrafficOptions((str(recording),)))
        with patch.object(diagnosis, "_find_change", lambda *_: None):
            report = report_on_loads(found, describe_provenance("", ()))
        lines += describe_in_brief(report, (), _WIDE)
        lines += found.warnings
        share = sum(found.loads.bytes_unrouted.values()) / max(found.loads.bytes_total, 1)
        head = report.verdict.text
    except IbprofError as error:
        lines, share, head = [str(error)], 0.0, ""
    return Answer(tuple(line.replace(str(recording), "") for line in lines), {}, head, share)
