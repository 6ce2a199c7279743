# SPDX-License-Identifier: Apache-2.0
"""What differs between an inferred topology and the one that a network should have."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

Names = tuple[str, ...]

REGULAR, HIERARCHICAL = "regular", "hierarchical"


@dataclass(frozen=True, slots=True)
class MisplacedHost:
    """A host that is measured at another switch than the reference says: a wrong cable, or names exchanged.

    Attributes:
        host: its name.
        switch, peers: where the reference has it, and the other hosts there.
        found_switch, found_peers: the switch in the reference of those it is measured with, and these.
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
    """A switch that is measured near to other switches than the reference says: a wrong cable of a switch.

    Attributes:
        switch: its name in the reference.
        hosts: on it.
        near: the switches with hosts that are nearest to it by the reference.
        found_near: those that are by the delays; none of them is in `near`.
    """

    switch: str
    hosts: Names
    near: Names
    found_near: Names


@dataclass(frozen=True, slots=True)
class RegroupedHosts:
    """Hosts that are near to one another in the one topology and not in the other.

    Attributes:
        expected: hosts of a part of the reference; empty where there is none like it.
        found: hosts of a part of what was measured; empty where there is none like it.
    """

    expected: Names
    found: Names

    @property
    def differing(self) -> Names:
        """Hosts of one of both alone."""
        return tuple(sorted({*self.expected} ^ {*self.found}))


@dataclass(frozen=True, slots=True)
class TopologyDifferences:
    """What differs.

    Attributes:
        kind: `REGULAR`, hosts that are linked with one another; or `HIERARCHICAL`, by way of switches.
        hosts: that both have.
        not_in_reference: measured hosts that the reference lacks.
        not_measured: hosts of the reference that nobody measured; no difference.
        similarity: share of the reference's links that were found, weighed by their probability; nan for hierarchical
            ones.
        missing: links of the reference that were not found: between hosts, or between switches that all have hosts.
        extra: links that were found and the reference lacks.
        misplaced: wrong cables of hosts.
        separated: hosts away from their switch.
        merged: switches of the reference that delays do not tell apart; no difference.
        recabled: wrong cables of switches.
        regrouped: parts that differ in another way.
        unknown: what cannot be told, a sentence each.
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
        """How many there are."""
        found = (self.not_in_reference, self.missing, self.extra, self.misplaced, self.separated)
        return sum(map(len, found)) + len(self.recabled) + len(self.regrouped)
