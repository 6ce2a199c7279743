# SPDX-License-Identifier: Apache-2.0
"""Matching of an inferred topology's hosts with those of a reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_lab.topology.reference.differences import Names
from ibprof_lab.topology.reference.reference_topology import Reference

Integers = npt.NDArray[np.int64]

_OF_PROCESS = re.compile(r"#\d+$")


@dataclass(frozen=True, slots=True)
class MatchedHosts:
    """The hosts that an inferred topology and a reference share.

    Attributes:
        names: of the hosts.
        of_inferred: for each of them the vertices of the inferred topology: one, or one for each process.
        vertex: int64 [host], of the reference.
        not_in_reference, not_measured: as in `TopologyDifferences`.
    """

    names: Names
    of_inferred: tuple[tuple[int, ...], ...]
    vertex: Integers
    not_in_reference: Names
    not_measured: Names


def match_hosts(labels: Sequence[str], reference: Reference) -> MatchedHosts:
    """Find measured hosts in a reference by their names; where none is found, processes by their hosts' names.

    Raises:
        InconsistentError: the reference has none of them, or two of them are one vertex.
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
            f"{reference.origin}: none of the {len(labels)} hosts ({', '.join(labels[:5])}) is there, but {known}"
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
