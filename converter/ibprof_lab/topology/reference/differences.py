# SPDX-License-Identifier: Apache-2.0
"""Hosts that a measured topology and its reference share, and the differences between the two topologies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_lab.topology.reference.reference_topology import Reference

Names = tuple[str, ...]

REGULAR, HIERARCHICAL = "regular", "hierarchical"

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_OF_PROCESS = re.compile(r"#\d+$")


@dataclass(frozen=True, slots=True)
class MisplacedHost:
    """A host on a different switch than in the reference: a wrong cable, or exchanged names.

    Attributes:
        switch, peers: the host's switch in the reference, and the other hosts on this switch.
        found_switch: switch of `found_peers` in the reference.
        found_peers: hosts to which this host has clearly shorter delays than to `peers`.
    """

    host: str
    switch: str
    peers: Names
    found_switch: str
    found_peers: Names


@dataclass(frozen=True, slots=True)
class SeparatedHosts:
    """Hosts with longer delays than the other hosts of their switch: slow links, or a different switch.

    Attributes:
        switch: switch of the hosts in the reference.
        others: the other hosts on this switch.
    """

    hosts: Names
    switch: str
    others: Names


@dataclass(frozen=True, slots=True)
class RecabledSwitch:
    """A switch whose nearest switches are different from the reference: a wrong cable between switches.

    Attributes:
        switch: switch in the reference.
        hosts: hosts on the switch.
        near: the nearest switches with hosts, in the reference.
        found_near: nearest switches by the delays; none of them is in `near`.
    """

    switch: str
    hosts: Names
    near: Names
    found_near: Names


@dataclass(frozen=True, slots=True)
class RegroupedHosts:
    """A group of hosts that are near each other in only one of the two topologies.

    Attributes:
        expected: hosts of a group in the reference; empty if the reference has no similar group.
        found: hosts of a group in the measured topology; empty if the measured topology has no similar group.
    """

    expected: Names
    found: Names

    @property
    def differing(self) -> Names:
        """Hosts that occur in only one of the two groups."""
        return tuple(sorted({*self.expected} ^ {*self.found}))


@dataclass(frozen=True, slots=True)
class CableCount:
    """Two linked vertices with a different number of cables than in the reference.

    Attributes:
        a, b: names of the vertices in the reference.
        cables: number of cables found.
        reference: number of cables in the reference.
    """

    a: str
    b: str
    cables: int
    reference: int


@dataclass(frozen=True, slots=True)
class TopologyDifferences:
    """All differences of cabling.

    Attributes:
        kind: `REGULAR` for directly linked hosts, `HIERARCHICAL` for hosts on switches.
        hosts: hosts that occur in both topologies.
        not_in_reference: measured hosts that are not in the reference.
        not_measured: hosts of the reference that were not measured; they do not count as differences.
        similarity: mean of the inferred probabilities of the reference's links, 0 to 1; nan if `HIERARCHICAL`.
        missing: links of the reference that the delays do not show.
        extra: links that the delays show, but that are not in the reference.
        misplaced: hosts on a different switch than in the reference.
        separated: hosts with longer delays than the other hosts of their switch.
        merged: switches of the reference that delays do not distinguish; they do not count as differences.
        recabled: switches whose nearest switches are different from the reference.
        regrouped: groups of hosts that only one topology has.
        cables: links whose number of cables differs from the reference's, if both topologies have numbers of cables.
        unknown: sentences on details that the delays do not determine.
    """

    kind: str
    hosts: Names
    not_in_reference: Names
    not_measured: Names
    similarity: float = nan
    missing: tuple[tuple[str, str], ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    misplaced: tuple[MisplacedHost, ...] = ()
    separated: tuple[SeparatedHosts, ...] = ()
    merged: tuple[Names, ...] = ()
    recabled: tuple[RecabledSwitch, ...] = ()
    regrouped: tuple[RegroupedHosts, ...] = ()
    unknown: Names = ()
    cables: tuple[CableCount, ...] = ()

    @property
    def differences(self) -> int:
        """Number of differences."""
        found = (self.not_in_reference, self.missing, self.extra, self.misplaced, self.separated)
        return sum(map(len, found)) + len(self.recabled) + len(self.regrouped) + len(self.cables)


@dataclass(frozen=True, slots=True)
class MatchedHosts:
    """The hosts that an inferred topology and a reference share.

    Attributes:
        of_inferred: vertices of each host in the inferred topology: one vertex, or one per process.
        vertex: int64 [host], vertex of each host in the reference.
        not_in_reference, not_measured: as in `TopologyDifferences`.
    """

    names: Names
    of_inferred: tuple[tuple[int, ...], ...]
    vertex: Integers
    not_in_reference: Names
    not_measured: Names


def match_hosts(labels: Sequence[str], reference: Reference) -> MatchedHosts:
    """Find measured hosts in a reference by name. If no name is found, a process `HOST#N` is searched for as `HOST`.

    Raises:
        InconsistentError: no host is in the reference, or two names belong to one vertex.
    """
    vertex = reference.find_hosts(labels)
    members: dict[str, list[int]] = {name: [place] for place, name in enumerate(labels)}
    if (vertex < 0).all():
        members = {}
        for place, label in enumerate(labels):
            members.setdefault(_OF_PROCESS.sub("", label), []).append(place)
        vertex = reference.find_hosts(tuple(members))
    if (vertex < 0).all():
        known = ", ".join([reference.names[host] for host in np.flatnonzero(reference.may_be_host)[:5].tolist()])
        raise InconsistentError(
            f"{reference.origin}: expected one of {len(labels)} measured hosts ({', '.join(labels[:5])}), found {known}"
        )
    there = vertex >= 0
    left = reference.is_end.copy()
    left[vertex[there]] = False
    names = tuple(members)
    return MatchedHosts(
        names=tuple(name for name, known in zip(names, there, strict=True) if known),
        of_inferred=tuple(tuple(each) for each, known in zip(members.values(), there, strict=True) if known),
        vertex=vertex[there],
        not_in_reference=tuple(name for name, known in zip(names, there, strict=True) if not known),
        not_measured=tuple(reference.names[host] for host in np.flatnonzero(left).tolist()),
    )


_MOST_PAIRS = 300_000


def choose_pairs(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the pairs of hosts with a delay, int64 [pair, 2]; of more than `_MOST_PAIRS`, a random sample."""
    hosts = len(matrix)
    if hosts * (hosts - 1) > _MOST_PAIRS:
        draw = np.unique(np.random.default_rng(0).integers(hosts * hosts, size=_MOST_PAIRS))
        pair = np.stack(np.divmod(draw, hosts), axis=1)
        pair = pair[pair[:, 0] != pair[:, 1]]
    else:
        pair = np.argwhere(~np.eye(hosts, dtype=bool))
    value = matrix[tuple(pair.T)]
    there: npt.NDArray[np.int64] = pair[np.isfinite(value) & (value > 0)]
    return there


def average_processes(matrix: npt.NDArray[np.floating], members: Sequence[Sequence[int]]) -> Floats:
    """Return the mean delay between the processes of each pair of hosts, float64 [host, host]. Source: formula (3)."""
    order = np.concatenate([np.asarray(each, np.int64) for each in members])
    values: Floats = matrix[np.ix_(order, order)].astype(np.float64)
    if len(order) == len(members):
        return values
    there = np.isfinite(values)
    first = np.cumsum([0, *map(len, members[:-1])])
    sums, count = (
        np.add.reduceat(np.add.reduceat(each, first, axis=0), first, axis=1)
        for each in (np.where(there, values, 0.0), there.astype(np.float64))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = sums / count
    np.fill_diagonal(means, 0.0)
    return means
