# SPDX-License-Identifier: Apache-2.0
"""Find the hosts, switches and links that a traffic uses, for pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import printable
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.fabric.node_names import is_aggregation_node
from ibprof_converter.hotspots.hot_links import LinkGroup, compare_times
from ibprof_converter.layout.positions import FabricLayout
from ibprof_converter.layout.regular_cabling import find_dragonfly_groups
from ibprof_converter.traffic.hosts import NO_HOST, Hosts

_BUSY = 0.5
"""All links of a group are drawn if time of the group / time of the first group is at least this number.

The link directions of a group have about equal load; the first group is the most loaded.
"""

Pairs = npt.NDArray[np.intp]
"""Indices of pairs of units (hosts or switches): intp [pair, 2]."""


@dataclass(frozen=True, slots=True)
class MarkedLink:
    """A thick link of the picture: the most loaded link direction of a group.

    Attributes:
        sender, receiver: indices of the units.
        part: time of the group / time of the first group, 0 to 1.
    """

    sender: int
    receiver: int
    part: float


@dataclass(frozen=True, slots=True)
class UsedPart:
    """Units (a switch, or a host with all adapters) and used links. Idle aggregation nodes are left out.

    Attributes:
        x, y: float64 [unit], mean position of the unit's nodes in a layout.
        is_used: bool [unit], true if any link of the unit carries bytes.
        links: each pair of units whose link carries bytes, once; pairs with the most bytes come first.
        alike: each pair of units whose link is in a group with at least half of the first group's time, once.
        marks: the thick links, one per group, in the groups' order.
        has_levels: true if all rails have levels, so that `y` is the level.
        group: intp [unit], dragonfly group of a switch; -1 for other units.
    """

    names: tuple[str, ...]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    is_host: npt.NDArray[np.bool_]
    is_used: npt.NDArray[np.bool_]
    links: Pairs
    alike: Pairs
    marks: tuple[MarkedLink, ...]
    has_levels: bool
    group: npt.NDArray[np.intp]


def find_used_part(
    fabrics: Sequence[Fabric],
    layouts: Sequence[FabricLayout],
    hosts: Hosts,
    sent: Sequence[npt.NDArray[np.uint64]],
    groups: Sequence[LinkGroup],
) -> UsedPart:
    """Return the used part of the fabrics.

    Args:
        sent: uint64 [link, end] for each rail, bytes that each end of each link sends.
    """
    unit_of, names = _number_units(fabrics, layouts, hosts)
    ends = [unit[fabric.link_node] for fabric, unit in zip(fabrics, unit_of, strict=True)]
    node_unit = np.concatenate(unit_of)
    count = np.maximum(np.bincount(node_unit, minlength=len(names)), 1)
    x, y = (
        np.bincount(node_unit, np.concatenate([getattr(each, axis) for each in layouts]), len(names)) / count
        for axis in ("x", "y")
    )
    is_host = np.zeros(len(names), np.bool_)
    is_host[node_unit] = np.concatenate([each.level for each in layouts]) == 0
    pairs = np.concatenate([end[amount.any(axis=1)] for end, amount in zip(ends, sent, strict=True)])
    amounts = np.concatenate([amount[amount.any(axis=1)].max(axis=1) for amount in sent])
    is_used = np.zeros(len(names), np.bool_)
    is_used[pairs] = True
    members = [_join(ends, group) for group in groups]
    parts = [compare_times(group.busiest, groups[0].busiest) for group in groups]
    busy = [joined for joined, part in zip(members, parts, strict=True) if part >= _BUSY]
    is_kept = is_used | ~np.array([is_aggregation_node(name) for name in names], np.bool_)
    number = np.cumsum(is_kept) - 1
    return UsedPart(
        names=tuple(name for name, kept in zip(names, is_kept, strict=True) if kept),
        x=x[is_kept],
        y=y[is_kept],
        is_host=is_host[is_kept],
        is_used=is_used[is_kept],
        links=number[_once(pairs[np.argsort(~amounts, kind="stable")])],
        alike=number[_once(np.concatenate(busy))] if busy else np.zeros((0, 2), np.intp),
        marks=tuple(
            MarkedLink(int(number[joined[0, 0]]), int(number[joined[0, 1]]), part)
            for joined, part in zip(members, parts, strict=True)
        ),
        has_levels=all(each.has_levels for each in layouts),
        group=_number_groups(fabrics, layouts, unit_of, len(names))[is_kept],
    )


def _number_groups(
    fabrics: Sequence[Fabric], layouts: Sequence[FabricLayout], unit_of: Sequence[npt.NDArray[np.intp]], units: int
) -> npt.NDArray[np.intp]:
    """Return the dragonfly group of each unit, -1 without a group; different rails have different group numbers."""
    group = np.full(units, -1, np.intp)
    for fabric, layout, unit in zip(fabrics, layouts, unit_of, strict=True):
        first = int(group.max(initial=-1)) + 1
        for node, number in ({} if layout.has_levels else find_dragonfly_groups(fabric)).items():
            group[unit[node]] = first + number
    return group


def _number_units(
    fabrics: Sequence[Fabric], layouts: Sequence[FabricLayout], hosts: Hosts
) -> tuple[list[npt.NDArray[np.intp]], list[str]]:
    """Return the unit (host or switch) of each node, for each rail; and the names of all units, hosts first."""
    names = [printable(name) for name in hosts.name]
    unit_of = []
    for fabric, layout, host in zip(fabrics, layouts, hosts.of_node, strict=True):
        is_own = (host == NO_HOST) | (layout.level != 0)
        own = np.flatnonzero(is_own)
        unit = np.where(is_own, 0, host).astype(np.intp)
        unit[own] = len(names) + np.arange(len(own))
        names += [printable(fabric.node_name[node]) or f"0x{int(fabric.node_guid[node]):x}" for node in own.tolist()]
        unit_of.append(unit)
    return unit_of, names


def _join(ends: Sequence[npt.NDArray[np.intp]], group: LinkGroup) -> Pairs:
    """Return the sending and receiving unit of each link direction of a group."""
    rail, link, end = group.members.T
    joined = np.empty((len(rail), 2), np.intp)
    for number, units in enumerate(ends):
        here = rail == number
        joined[here, 0] = units[link[here], end[here]]
        joined[here, 1] = units[link[here], 1 - end[here]]
    return joined


def _once(pairs: Pairs) -> Pairs:
    """Return each unordered pair once, in the order of first occurrence."""
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    once: Pairs = pairs[np.sort(first)]
    return once
