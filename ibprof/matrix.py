# SPDX-License-Identifier: Apache-2.0
"""Who sent how much to whom: the communication matrix of a profile, by rank, host or port."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile import ACTIVE, Direction, Kind, MarkKind, Profile, Source

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which bytes of a profile are meant.

    Attributes:
        operation, region: names; None for all.
        since_start: with a region that a mark closed, what was sent until then.
        kind: the user's bytes or MPI's own.
        received: what receivers saw, in place of what senders and fetchers did.
    """

    operation: str | None = None
    region: str | None = None
    since_start: bool = False
    kind: Kind = Kind.USER
    received: bool = False


@dataclass(frozen=True, slots=True)
class Matrix:
    """Bytes by pair, those that are not zero, in order.

    Attributes:
        rows: source, destination, bytes, messages.
        notes: what is not in the rows, a sentence each.
    """

    rows: list[tuple[str, str, int, int]]
    notes: list[str]


def build_matrix(run: Profile, by: str, selection: Selection) -> Matrix:
    """Add up what ranks, hosts or ports sent one another.

    Args:
        run: the profile.
        by: "rank", "host" or "port".
        selection: which bytes.

    Raises:
        UsageError: there is no such operation or region, or ports cannot be told.
    """
    chosen = _choose(run, selection)
    counters = run.counters
    notes = []
    sources = np.unique(counters.source[chosen])
    if len(sources) > 1:
        # They see the same bytes at two depths; the one next to the MPI calls knows ranks and operations.
        chosen &= counters.source == sources[0]
        notes.append(f"bytes are those seen by {Source(sources[0]).name.lower()}")
    names = _name_ranks(run, by)
    known = np.zeros(run.world_size + 1, bool)
    known[list(names)] = True
    peer = np.minimum(counters.peer, run.world_size).astype(np.int64)
    nowhere = chosen & ~(known[peer] & known[counters.rank])
    if lost := sum(counters.bytes[nowhere].tolist()):
        notes.append(f"{lost} bytes are left out: the {by} at the other end is not known")
    rows = np.flatnonzero(chosen & ~nowhere)
    mine, theirs = counters.rank[rows].astype(np.int64), peer[rows]
    outward = counters.direction[rows] == Direction.SENT
    pair = np.where(outward, mine, theirs) * run.world_size + np.where(outward, theirs, mine)
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for number, amount, messages in zip(
        pair.tolist(), counters.bytes[rows].tolist(), counters.messages[rows].tolist(), strict=True
    ):
        ends = names[number // run.world_size], names[number % run.world_size]
        before = sums.get(ends, (0, 0))
        sums[ends] = before[0] + amount, before[1] + messages
    if by == "port":
        # What stays on a host does not touch its port.
        sums = {ends: total for ends, total in sums.items() if ends[0] != ends[1]}
    order = sorted(sums, key=lambda ends: (int(ends[0]), int(ends[1]))) if by == "rank" else sorted(sums)
    return Matrix([(*ends, *sums[ends]) for ends in order if any(sums[ends])], notes)


def _choose(run: Profile, selection: Selection) -> Flags:
    counters = run.counters
    chosen: Flags = counters.kind == selection.kind
    chosen &= (counters.direction == Direction.RECEIVED) == selection.received
    if selection.operation is not None:
        name = selection.operation.upper().removeprefix("MPI_")
        used = {run.operations[number] for number in np.unique(counters.operation)}
        chosen &= counters.operation == _find("operation", name, run.operations, used)
    if selection.region is not None:
        region = _find("region", selection.region, run.regions, run.regions)
        chosen &= _closed_until(run, region) if selection.since_start else counters.region == region
    elif selection.since_start:
        raise UsageError("--since-start needs the --region until whose end bytes are meant")
    return chosen


def _find(what: str, name: str, names: Sequence[str], known: Collection[str]) -> int:
    if name not in names:
        raise UsageError(f"the profile has no {what} {name!r}; it has {', '.join(sorted(known)) or 'none'}")
    return names.index(name)


def _closed_until(run: Profile, region: int) -> Flags:
    """Choose the counters of the regions that each rank closed until it closed this one for the last time."""
    closed: dict[int, list[int]] = {}
    for mark in run.marks:
        if mark.kind == MarkKind.CLOSE:
            closed.setdefault(mark.rank, []).append(mark.region)
    included = np.zeros((run.world_size, len(run.regions)), bool)
    for rank, regions in closed.items():
        if region in regions:
            last = len(regions) - regions[::-1].index(region)
            included[rank, regions[:last]] = True
    if not included.any():
        raise UsageError(f"region {run.regions[region]!r} was not closed by a mark, so it has no bytes since the start")
    return included[run.counters.rank, run.counters.region]


def _name_ranks(run: Profile, by: str) -> dict[int, str]:
    """Name the row of each rank; ranks whose host was not recorded have none, unless it is by rank."""
    if by == "rank":
        return {rank: str(rank) for rank in range(run.world_size)}
    if by == "host":
        return {rank.rank: run.hosts[rank.host].name for rank in run.ranks}
    ports = []
    for host in run.hosts:
        active = [port for port in host.ports if port.state == ACTIVE]
        if len(active) != 1:
            raise UsageError(
                f"host {host.name} has {len(active)} active ports, and which one carried the bytes was not measured: "
                "use --by host"
            )
        ports.append(active[0].port_guid)
    return {rank.rank: ports[rank.host] for rank in run.ranks}
