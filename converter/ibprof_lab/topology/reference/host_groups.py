# SPDX-License-Identifier: Apache-2.0
"""Groups of hosts on one switch, by a reference and by delays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.reference.differences import MisplacedHost, SeparatedHosts, TopologyDifferences
from ibprof_lab.topology.reference.reference_topology import Reference

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_AS_NEAR = 0.1
_AS_FAR = 0.2
_ROWS = 512
"""Number of rows that are processed at the same time."""


def group_by_switch(topology: InferredTopology, hosts: Sequence[int]) -> Integers:
    """Return the number of each host's switch, int64 [host]; of the host itself where it has none or several."""
    degree = np.bincount(topology.edge.ravel(), minlength=topology.vertices)
    place = np.arange(topology.vertices)
    for a, b in topology.edge.tolist():
        for host, other in ((a, b), (b, a)):
            if host < len(topology.hosts) <= other and degree[host] == 1:
                place[host] = other
    return np.unique(place[list(hosts)], return_inverse=True)[1].ravel().astype(np.int64)


def number_groups(leaf: Integers) -> Integers:
    """Number hosts' switches from 0 on, int64 [host]."""
    return np.unique(leaf, return_inverse=True)[1].ravel().astype(np.int64)


def join_moved(now: Integers, was: Integers, nearer: Integers) -> Integers:
    """Put each host that is clearly among those of another switch into their group, where they share one."""
    joined = now.copy()
    for host in np.flatnonzero(nearer != was).tolist():
        groups = np.unique(now[(was == nearer[host]) & (nearer == was)])
        if len(groups) == 1:
            joined[host] = groups[0]
    return joined


def find_nearer(was: Integers, delays: Floats) -> Integers:
    """Return the number of each host's switch: the expected one, unless the host is among those of another one.

    That is where it is nearer to them than to its expected group, and as near as they are to one another.

    Args:
        was: int64 [host], the number of the switch that the reference has it on.
        delays: float64 [host, host], seconds.
    """
    every_host = np.arange(len(was))
    member = np.eye(was.max() + 1)[was]
    mean = np.empty_like(member)
    for begin in range(0, len(was), _ROWS):
        some = delays[begin : begin + _ROWS]
        there = np.isfinite(some) & (some > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean[begin : begin + _ROWS] = (np.where(there, some, 0.0) @ member) / (there @ member)
    own = mean[every_host, was]
    nearest = np.nan_to_num(mean, nan=np.inf).argmin(axis=1)
    among = mean[every_host, nearest]
    inside = np.array([_median(own[was == each]) for each in range(was.max() + 1)])[nearest]
    moved = (among < (1 - _AS_NEAR) * own) & (np.abs(among - inside) < _AS_FAR * inside)
    return np.where(moved, nearest, was).astype(np.int64)


def _median(values: Floats) -> float:
    there = values[np.isfinite(values)]
    return float(np.median(there)) if len(there) else np.nan


def find_leaves(reference: Reference, hosts: Integers) -> Integers:
    """Return the vertex of each host's switch in the reference, int64 [host]; the host's where it has several links."""
    graph = reference.adjacency()
    leaf = hosts.copy()
    for place, vertex in enumerate(hosts.tolist()):
        near = graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]]
        if len(near) == 1:
            leaf[place] = near[0]
    return leaf


def compare_groups(
    hosts: TopologyDifferences, was: Integers, now: Integers, leaf: npt.NDArray[np.str_], delays: Floats
) -> tuple[TopologyDifferences, npt.NDArray[np.bool_]]:
    """Compare the groups of hosts on each switch.

    A host that is alone on its switch has no group; it is only reported where it is with several hosts of another
    switch.

    Args:
        hosts: the differences so far.
        was, now: int64 [host], numbers of the groups by the reference and by the delays.
        leaf: names of the reference's switch of each host.
        delays: float64 [host, host], seconds.

    Returns:
        The differences, and which hosts are elsewhere, bool [host].
    """
    names = np.array(hosts.hosts, dtype=object)
    overlap = np.zeros((now.max() + 1, was.max() + 1), np.int64)
    np.add.at(overlap, (now, was), 1)
    taken = dict(zip(*(each.tolist() for each in linear_sum_assignment(overlap, maximize=True)), strict=True))
    size = overlap.sum(axis=0)
    misplaced, apart = [], []
    merged: dict[int, set[str]] = {}
    moved = np.zeros(len(names), bool)
    unsure = []
    for there, expected in np.argwhere(overlap).tolist():
        if taken.get(there) == expected:
            continue
        members = np.flatnonzero((now == there) & (was == expected))
        switch, others = str(leaf[members[0]]), np.flatnonzero((was == expected) & (now != there))
        home = taken.get(there)
        if home is None or not overlap[there, home]:
            if len(others):
                moved[members] = True
                apart.append(SeparatedHosts(tuple(names[members]), switch, tuple(names[others])))
            continue
        neighbours = np.flatnonzero((now == there) & (was == home))
        if len(members) == size[expected] > 1 and size[home] > 1:
            merged.setdefault(there, {str(leaf[neighbours[0]])}).add(switch)
            continue
        for host in members.tolist() if len(neighbours) > 1 else ():
            moved[host] = True
            if len(others) and not _is_nearer(delays[host], neighbours, others):
                unsure.append(str(names[host]))
                continue
            found = str(leaf[neighbours[0]])
            misplaced.append(MisplacedHost(names[host], switch, tuple(names[others]), found, tuple(names[neighbours])))
    unknown = (f"the switch of {len(unsure)} hosts ({', '.join(unsure[:5])})",) if unsure else ()
    together = tuple(tuple(sorted(each)) for each in merged.values())
    return replace(hosts, misplaced=tuple(misplaced), separated=tuple(apart), merged=together, unknown=unknown), moved


def _is_nearer(delay: Floats, these: Integers, those: Integers) -> bool:
    """Return whether a host's delays show that it is nearer to some hosts than to others."""
    near, far = (each[np.isfinite(each)] for each in (delay[these], delay[those]))
    return bool(len(near) and len(far) and np.median(near) < (1 - _AS_NEAR / 2) * np.median(far))
