# SPDX-License-Identifier: Apache-2.0
"""Differences between an inferred topology and its reference."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

Names = tuple[str, ...]

REGULAR, HIERARCHICAL = "regular", "hierarchical"


@dataclass(frozen=True, slots=True)
class MisplacedHost:
    """A host that is measured at another switch than in the reference: a wrong cable, or exchanged names.

    Attributes:
        host: its name.
        switch, peers: where the reference has it, and the other hosts there.
        found_switch, found_peers: the reference's switch of the hosts that it is measured with, and these hosts.
    """

    host: str
    switch: str
    peers: Names
    found_switch: str
    found_peers: Names


@dataclass(frozen=True, slots=True)
class SeparatedHosts:
    """Hosts that are measured farther away than the others of their switch: slow links, or another switch.

    Attributes:
        hosts: their names.
        switch: where the reference has them.
        others: the other hosts there.
    """

    hosts: Names
    switch: str
    others: Names


@dataclass(frozen=True, slots=True)
class RecabledSwitch:
    """A switch that is measured near to other switches than in the reference: a wrong cable of a switch.

    Attributes:
        switch: its name in the reference.
        hosts: on it.
        near: the switches with hosts that are nearest to it by the reference.
        found_near: those that are nearest by the delays; none of them is in `near`.
    """

    switch: str
    hosts: Names
    near: Names
    found_near: Names


@dataclass(frozen=True, slots=True)
class RegroupedHosts:
    """Hosts that are near to one another in only one of both topologies.

    Attributes:
        expected: hosts of a part of the reference; empty where it has no similar part.
        found: hosts of a part of the measured topology; empty where it has no similar part.
    """

    expected: Names
    found: Names

    @property
    def differing(self) -> Names:
        """Hosts of only one of both."""
        return tuple(sorted({*self.expected} ^ {*self.found}))


@dataclass(frozen=True, slots=True)
class TopologyDifferences:
    """All differences of cabling.

    Attributes:
        kind: `REGULAR`, hosts that are linked with one another; or `HIERARCHICAL`, by switches.
        hosts: that both have.
        not_in_reference: measured hosts that the reference lacks.
        not_measured: hosts of the reference without delays; no difference.
        similarity: share of the reference's links that were found, weighted by their probability; nan for hierarchical
            ones.
        missing: links of the reference that were not found: between hosts, or between switches that all have hosts.
        extra: links that were found and the reference lacks.
        misplaced: wrong cables of hosts.
        separated: hosts away from their switch.
        merged: switches of the reference that delays do not distinguish; no difference.
        recabled: wrong cables of switches.
        regrouped: parts that differ otherwise.
        unknown: what the delays do not determine, a sentence each.
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

    @property
    def differences(self) -> int:
        """Number of differences."""
        found = (self.not_in_reference, self.missing, self.extra, self.misplaced, self.separated)
        return sum(map(len, found)) + len(self.recabled) + len(self.regrouped)
