# SPDX-License-Identifier: Apache-2.0
"""Operations of which less was seen than their calls asked for: the ledger compared with the counters.

What calls asked for is compared with what the source saw by the least that any algorithm must send. A collective may
send more, so only what is below the least is unaccounted for. The source sees bytes between its units: ranks, or only
hosts where ranks of one host exchange messages in its memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import recording_header
from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.least_bytes import Units, find_least, is_nonblocking_collective
from ibprof.profile.profile_data import Direction, Kind, Profile, Source

_CONSTANTS = recording_header().constants
PARTNER_GROUP = _CONSTANTS["IBP_PARTNER_GROUP"]
"""Partners from here on are groups of ranks."""

PARTNER_FAILED = _CONSTANTS["IBP_PARTNER_FAILED"]
"""The partner of calls that returned an error; a larger one is unknown."""

_MIXED = "may be counted under the operation of an earlier one"
"""A part of the recorder's note on nonblocking collectives whose tags it counted wrongly for some time."""

UNATTRIBUTED = "UNATTRIBUTED"
"""Bytes that MPI sent for calls that are unknown, so possibly for any."""


@dataclass(frozen=True, slots=True)
class Unaccounted:
    """An operation in a region of which less was seen than its calls asked for.

    Attributes:
        operation, region: names.
        calls: of all ranks.
        least_bytes: that any algorithm must send for them between ranks; or between hosts, if the source sees no more.
        seen_bytes: that the source saw.
        on_host: what is missing stayed on hosts: at least what must be sent between hosts was seen.
    """

    operation: str
    region: str
    calls: int
    least_bytes: int
    seen_bytes: int
    on_host: bool


def find_unaccounted(run: Profile) -> list[Unaccounted]:
    """Return the operations that do not add up, those with most bytes missing first.

    None are returned where counters are incomplete: `describe_uncompared` returns why.
    """
    if not len(run.demands.calls) or describe_uncompared(run):
        return []
    ranks = _units(run, by_host=False)
    hosts = _units(run, by_host=True)
    seen_units = ranks if sees_within_hosts(run) else hosts
    slack = _seen(run, [name == UNATTRIBUTED for name in run.operations], seen_units)
    mixed = _mixed_operations(run)
    found: list[tuple[int, Unaccounted]] = []
    for operation in np.unique(run.demands.operation).tolist():
        alike = mixed if operation in mixed else {operation}
        mine = np.flatnonzero(np.isin(run.demands.operation, list(alike)))
        if (run.demands.partner[mine] == np.uint64(PARTNER_FAILED)).any():
            continue
        missing = _least(run, mine, seen_units) - _seen(run, _flag(run, alike), seen_units)
        if missing <= slack:
            continue
        on_host = _least(run, mine, hosts) <= _seen(run, _flag(run, alike), hosts)
        found += [(missing, each) for each in _by_region(run, operation, seen_units, on_host=on_host)]
    return [each for _, each in sorted(found, key=lambda pair: -pair[0])]


def describe_uncompared(run: Profile) -> str | None:
    """Return why what calls asked for cannot be compared with what was seen; None where it can."""
    ranks = [rank for rank in run.ranks if rank.rank < run.world_size]
    if len(ranks) < run.world_size:
        return "ranks are missing"
    if not all(rank.has_demands and rank.source not in (Source.NONE, Source.VERBS) for rank in ranks):
        return "it was not recorded on all ranks"
    if not all(rank.finalized for rank in ranks):
        return "a rank did not reach MPI_Finalize"
    if any(rank.lost_bytes or rank.lost_messages for rank in ranks):
        return "the recording was full"
    if any(rank.off_ns for rank in ranks):
        return "recording was switched off for some time"
    return "only some operations were recorded" if run.operations_asked else None


def _by_region(run: Profile, operation: int, units: Units, *, on_host: bool) -> Iterator[Unaccounted]:
    demands = run.demands
    mine = demands.operation == operation
    for region in np.unique(demands.region[mine]).tolist():
        rows = np.flatnonzero(mine & (demands.region == region))
        least = _least(run, rows, units)
        seen = _seen(run, _flag(run, {operation}), units, region)
        if seen < least:
            calls = sum_exactly(demands.calls[rows])
            yield Unaccounted(run.operations[operation], run.regions[region], calls, least, seen, on_host)


def _mixed_operations(run: Profile) -> set[int]:
    """Return the nonblocking collectives of a run in which messages of one may be counted under another."""
    if not any(_MIXED in note for rank in run.ranks for note in rank.notes):
        return set()
    return {number for number, name in enumerate(run.operations) if is_nonblocking_collective(name)}


def _flag(run: Profile, operations: set[int]) -> list[bool]:
    return [number in operations for number in range(len(run.operations))]


def _least(run: Profile, rows: npt.NDArray[np.intp], units: Units) -> int:
    """Return the bytes that calls must send between units."""
    operation = run.demands.operation[rows]
    return sum(
        find_least(run.operations[each], run.demands, rows[operation == each], units)
        for each in np.unique(operation).tolist()
    )


# -- what the source saw ---------------------------------------------------------------------------------------------


def sees_within_hosts(run: Profile) -> bool:
    """Return whether messages between ranks of one host are seen too."""
    return all(rank.sees_host for rank in run.ranks if rank.rank < run.world_size)


def _units(run: Profile, *, by_host: bool) -> Units:
    of_rank = np.arange(run.world_size)
    if by_host:
        for rank in run.ranks:
            if rank.rank < run.world_size:
                of_rank[rank.rank] = rank.host
    demands = run.demands
    is_group = (demands.partner >= np.uint64(PARTNER_GROUP)) & (demands.partner < np.uint64(PARTNER_FAILED))
    members = {}
    for group in np.unique(demands.partner[is_group]).tolist():
        found = np.unique(demands.rank[demands.partner == np.uint64(group)])
        if len(found) == _size(group):
            members[group] = found.astype(np.intp)
    return Units(of_rank, members)


def _size(group: int) -> int:
    return group >> _CONSTANTS["IBP_PARTNER_SIZE_SHIFT"] & _CONSTANTS["IBP_PARTNER_SIZE_MASK"]


def _seen(run: Profile, operations: list[bool], units: Units, region: int | None = None) -> int:
    """Return the bytes that were seen between units; to peers that are no rank, all."""
    counters = run.counters
    chosen = np.array(operations, bool)[counters.operation] & (counters.kind == Kind.USER)
    chosen &= counters.direction != Direction.RECEIVED
    if region is not None:
        chosen &= counters.region == region
    rows = np.flatnonzero(chosen)
    unit = np.append(units.of_rank, -1)
    mine, theirs = counters.rank[rows], np.minimum(counters.peer[rows], run.world_size).astype(np.intp)
    return sum_exactly(counters.bytes[rows[unit[mine] != unit[theirs]]])
