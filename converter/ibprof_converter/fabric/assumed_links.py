# SPDX-License-Identifier: Apache-2.0
"""A listing of links from names alone: what links switches and hosts is known, but no GUIDs, LIDs, ports or speeds are.

Hosts' links are assumed to have `HOST_GBPS`. A link upwards is assumed to be as fast as the links of all hosts that it
leads to, divided evenly where a switch has several links upwards: nothing is oversubscribed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike

from ibprof.errors import InputError
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.fabric_graph import NodeKind, Origin
from ibprof_converter.fabric.listing import LAST_UNICAST_LID, Listing
from ibprof_converter.fabric.listing_rows import End, LinkRow, list_rows

HOST_GBPS = 100.0

_MOST_PORTS = 254
"""Ports of a switch that forwarding tables can name."""

_FIRST_GUID = 0x5000 << 48


@dataclass(frozen=True, slots=True)
class NamedLink:
    """A link between a switch and a host or another switch.

    Attributes:
        line: of the file.
        switch: name of the switch.
        other: name of the host or of the other switch.
    """

    line: int
    switch: str
    other: str


def list_assumed(
    path: str | PathLike[str], switches: Sequence[str], links: Sequence[NamedLink], log: DamageLog, remark: str
) -> Listing:
    """Return a listing of links between named switches and hosts. Hosts have the LIDs from 1 on, in their order.

    Args:
        path: for messages.
        switches: names of all switches; all other names are hosts.
        links: a link between two switches may be listed from both ends.
        log: lines that are not used.
        remark: what the format lacks.

    Raises:
        InputError: a switch has more links than ports can have, a host is at two switches, or there are no links.
    """
    is_switch = set(switches)
    links = _list_once(links)
    hosts = list(dict.fromkeys(link.other for link in links if link.other not in is_switch))
    lid = {name: number for number, name in enumerate([*hosts, *dict.fromkeys(switches)], 1)}
    if len(lid) > LAST_UNICAST_LID:
        raise InputError(path, None, f"at most {LAST_UNICAST_LID} hosts and switches", str(len(lid)))
    gbps = _assume_speeds(links, is_switch)
    ports: dict[str, int] = {}
    rows = []
    for link, speed in zip(links, gbps, strict=True):
        ends = []
        for name in (link.switch, link.other):
            ports[name] = port = ports.get(name, 0) + 1
            most = _MOST_PORTS if name in is_switch else 1
            if port > most:
                what = "links of a switch" if name in is_switch else "link of a host"
                raise InputError(path, link.line, f"at most {most} {what}", f"one more, of {name!r}")
            guid = _FIRST_GUID + lid[name]
            kind = NodeKind.SWITCH if name in is_switch else NodeKind.CA
            ends.append(End(kind, most, guid, guid, guid, name, lid[name], port, 0))
        rows.append(LinkRow(link.line, ends[0], ends[1], True, 0, speed))
    return replace(list_rows(rows, log), remarks=(remark,), origin=Origin.NAMES)


def _list_once(links: Sequence[NamedLink]) -> list[NamedLink]:
    """Leave out links that were listed before, from either end, and those of a switch to itself."""
    seen: set[frozenset[str]] = set()
    kept = []
    for link in links:
        pair = frozenset((link.switch, link.other))
        if pair in seen or len(pair) == 1:
            continue
        seen.add(pair)
        kept.append(link)
    return kept


def _assume_speeds(links: Sequence[NamedLink], is_switch: set[str]) -> list[float]:
    """Return the assumed data rate of each link, in Gb/s."""
    neighbours: dict[str, list[str]] = {}
    behind = dict.fromkeys(is_switch, 0.0)
    for link in links:
        if link.other not in is_switch:
            behind[link.switch] += 1
            continue
        neighbours.setdefault(link.switch, []).append(link.other)
        neighbours.setdefault(link.other, []).append(link.switch)
    level = {name: 0 for name in is_switch if behind[name]}
    order = list(level)
    for name in order:
        for other in neighbours.get(name, ()):
            if other not in level:
                level[other] = level[name] + 1
                order.append(other)
    share: dict[frozenset[str], float] = {}
    for name in order:
        above = [other for other in neighbours.get(name, ()) if level[other] > level[name]]
        for other in above:
            share[frozenset((name, other))] = behind[name] / len(above)
            behind[other] += behind[name] / len(above)
    found = []
    for link in links:
        pair = frozenset((link.switch, link.other))
        # Links between switches of one level are as fast as the larger one's hosts.
        hosts = 1.0 if link.other not in is_switch else share.get(pair) or max(behind[name] for name in pair) or 1.0
        found.append(HOST_GBPS * hosts)
    return found
