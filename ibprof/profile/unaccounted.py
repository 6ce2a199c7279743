# SPDX-License-Identifier: Apache-2.0
"""Find operations with fewer recorded bytes than calls must send, by a comparison of `Demands` with `Counters`.

The comparison uses the least traffic that any algorithm needs. Unaccounted bytes are the unrecorded part of this
minimum. Only bytes between units count. A unit is a rank, or a host if the source does not see messages in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import recording_header
from ibprof.native.libraries import sum_exactly
from ibprof.profile.profile_data import Demands, Direction, Kind, Profile, Source
from ibprof.text.quantities import format_bytes, name_call

_CONSTANTS = recording_header().constants
PARTNER_GROUP = _CONSTANTS["IBP_PARTNER_GROUP"]
"""Smallest value of `Demands.partner` that identifies a group of ranks."""

PARTNER_FAILED = _CONSTANTS["IBP_PARTNER_FAILED"]
"""Value of `Demands.partner` for calls that returned an error. Larger values are unknown partners."""

_MIXED = "may be counted under the operation of an earlier one"
"""Part of the recorder's note on messages that may be counted under another nonblocking collective."""

UNATTRIBUTED = "UNATTRIBUTED"
"""Operation of bytes that may belong to any call."""


Indices = npt.NDArray[np.intp]

Bytes = npt.NDArray[np.uint64]

_WITH_ROOT = ("BCAST", "REDUCE", "GATHER", "GATHERV", "SCATTER", "SCATTERV")

_LOADED = re.compile(r"(lib\w+) is loaded: ")
"""Beginning of the recorder's note on a library with its own transport (recording/other_transports.c)."""

_NAMED = 6
"""Number of operations that the one-line summary names."""


@dataclass(frozen=True, slots=True)
class Unaccounted:
    """An operation in a region: fewer bytes were recorded than the operation's calls must send.

    Attributes:
        calls: number of calls of all ranks.
        least_bytes: bytes that any algorithm must send between units, as the module describes.
        seen_bytes: bytes between units that the source saw.
        on_host: true if the source saw all necessary bytes between hosts: the missing bytes stayed on hosts.
    """

    operation: str
    region: str
    calls: int
    least_bytes: int
    seen_bytes: int
    on_host: bool


def find_unaccounted(run: Profile) -> list[Unaccounted]:
    """Return the operations with less recorded traffic than calls asked for, sorted by missing bytes, descending.

    The result is empty if the calls were not compared with counters; `describe_uncompared` returns the reason.
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
    """Return why calls cannot be compared with counters; None if the comparison is possible."""
    ranks = [rank for rank in run.ranks if rank.rank < run.world_size]
    if len(ranks) < run.world_size:
        return "ranks are missing"
    if not all(rank.has_demands and rank.source not in (Source.NONE, Source.VERBS) for rank in ranks):
        return "a rank's recording lacks the arguments of calls, or MPI's bytes"
    if not all(rank.finalized for rank in ranks):
        return "a rank did not reach MPI_Finalize"
    if any(rank.lost_bytes or rank.lost_messages for rank in ranks):
        return "the recording could not grow"
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
    """Return the nonblocking collectives whose messages may be counted under another nonblocking collective."""
    if not any(_MIXED in note for rank in run.ranks for note in rank.notes):
        return set()
    return {number for number, name in enumerate(run.operations) if is_nonblocking_collective(name)}


def _flag(run: Profile, operations: set[int]) -> list[bool]:
    return [number in operations for number in range(len(run.operations))]


def _least(run: Profile, rows: npt.NDArray[np.intp], units: Units) -> int:
    """Return the minimum number of bytes that calls send between units (ranks or hosts)."""
    operation = run.demands.operation[rows]
    return sum(
        find_least(run.operations[each], run.demands, rows[operation == each], units)
        for each in np.unique(operation).tolist()
    )


# -- recorded bytes ---------------------------------------------------------------------------------------------------


def sees_within_hosts(run: Profile) -> bool:
    """Return whether the source also counts messages between ranks of one host."""
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
    """Return the recorded bytes between units (ranks or hosts), including all bytes to peers without a rank."""
    counters = run.counters
    chosen = np.array(operations, bool)[counters.operation] & (counters.kind == Kind.USER)
    chosen &= counters.direction != Direction.RECEIVED
    if region is not None:
        chosen &= counters.region == region
    rows = np.flatnonzero(chosen)
    unit = np.append(units.of_rank, -1)
    mine, theirs = counters.rank[rows], np.minimum(counters.peer[rows], run.world_size).astype(np.intp)
    return sum_exactly(counters.bytes[rows[unit[mine] != unit[theirs]]])


@dataclass(frozen=True, slots=True)
class Units:
    """Units that a source distinguishes: ranks, or only hosts.

    Attributes:
        of_rank: unit of each rank of MPI_COMM_WORLD.
        members: group number -> ranks of the group, for groups with known members.
    """

    of_rank: Indices
    members: Mapping[int, Indices]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Demands of one operation: each rank's unit, and the partner's unit or group; arrays [row]."""

    rank: Indices
    unit: Indices
    partner: npt.NDArray[np.uint64]
    bytes: Bytes


def find_least(operation: str, demands: Demands, rows: Indices, units: Units) -> int:
    """Return a lower bound of the bytes that calls of one operation send between units."""
    name = operation.removesuffix("_INIT")
    of_group = _OF_GROUP.get(name) or _OF_GROUP.get(name.removeprefix("I"))
    rank = demands.rank[rows].astype(np.intp)
    table = _Rows(rank, units.of_rank[rank], demands.partner[rows], demands.bytes[rows])
    if of_group is None:
        return _least_with_root(table, units, is_tree=name.removeprefix("I") in ("BCAST", "REDUCE"))
    total = 0
    for group, members in units.members.items():
        chosen = table.partner == np.uint64(group)
        if chosen.any():
            # Sum a rank's rows over regions and sites.
            found, place = np.unique(table.rank[chosen], return_inverse=True)
            asked = np.zeros(len(found), np.uint64)
            np.add.at(asked, place.ravel(), table.bytes[chosen])
            total += of_group(units.of_rank[found], asked, units.of_rank[members])
    return total


def is_nonblocking_collective(operation: str) -> bool:
    """Return whether an operation is a nonblocking collective that moves data."""
    name = operation.removeprefix("I")
    return operation.startswith("I") and (name in _OF_GROUP or name in _WITH_ROOT)


def _least_with_root(rows: _Rows, units: Units, *, is_tree: bool) -> int:
    """Return a lower bound of the bytes that ranks exchange with roots or peers in other units.

    If a tree can combine or forward data (`is_tree`), only one rank of each unit counts: the rank with most bytes.
    """
    known = np.flatnonzero(rows.partner < np.uint64(len(units.of_rank)))
    partner = rows.partner[known].astype(np.intp)
    apart = units.of_rank[partner] != rows.unit[known]
    known, partner = known[apart], partner[apart]
    if not is_tree:
        return sum_exactly(rows.bytes[known])
    # Sum the rows of a rank and its root over regions and sites.
    ranks = len(units.of_rank)
    pair, place = np.unique(partner * ranks + rows.rank[known], return_inverse=True)
    of_pair = np.zeros(len(pair), np.uint64)
    np.add.at(of_pair, place.ravel(), rows.bytes[known])
    root, rank = np.divmod(pair, ranks)
    _, unit = np.unique(root * ranks + units.of_rank[rank], return_inverse=True)
    return sum_exactly(_largest(unit.ravel(), of_pair))


def _largest(group: Indices, values: Bytes) -> Bytes:
    """Return the largest value of each group."""
    largest = np.zeros(int(group.max(initial=-1)) + 1, np.uint64)
    np.maximum.at(largest, group, values)
    return largest


def _least_of_allreduce(unit: Indices, amount: Bytes, members: Indices) -> int:
    """Sum each unit's largest contribution, which the other units need to compute the result."""
    return sum_exactly(_largest(unit, amount)) if len(np.unique(members)) > 1 else 0


def _least_of_scan(unit: Indices, amount: Bytes, members: Indices) -> int:
    """Sum the largest contribution of each unit, without the unit that contributes most: one unit need not send."""
    largest = _largest(unit, amount)
    return sum_exactly(largest) - int(largest.max()) if len(np.unique(members)) > 1 else 0


def _least_of_blocks(_unit: Indices, amount: Bytes, members: Indices) -> int:
    """Return the bytes of all blocks times (number of units - 1): each block passes between a unit and all others."""
    return sum_exactly(amount) * (len(np.unique(members)) - 1)


def _least_of_alltoall(unit: Indices, amount: Bytes, members: Indices) -> int:
    """Return the bytes of the blocks that ranks send to members of other units."""
    size = np.bincount(members)
    return sum(int(block) * (len(members) - int(size[own])) for own, block in zip(unit.tolist(), amount, strict=True))


def _least_of_vectors(_unit: Indices, amount: Bytes, members: Indices) -> int:
    """Return all bytes if each member is a unit; otherwise 0, because the receiving units are unknown.

    Return 0 for a single member too: in MPICH's MPIX_Threadcomm, ranks are threads of one process.
    """
    units = len(np.unique(members))
    return sum_exactly(amount) if units == len(members) and units > 1 else 0


_OF_GROUP: dict[str, Callable[[Indices, Bytes, Indices], int]] = {
    "ALLREDUCE": _least_of_allreduce,
    "SCAN": _least_of_scan,
    "EXSCAN": _least_of_scan,
    "ALLGATHER": _least_of_blocks,
    "ALLGATHERV": _least_of_blocks,
    "REDUCE_SCATTER": _least_of_blocks,
    "REDUCE_SCATTER_BLOCK": _least_of_blocks,
    "ALLTOALL": _least_of_alltoall,
    "ALLTOALLV": _least_of_vectors,
    "ALLTOALLW": _least_of_vectors,
}
"""Operation without a root -> function that returns a lower bound of the bytes between units.

The function's arguments are each row's unit, each row's bytes, and the units of the group's members.
"""


@dataclass(frozen=True, slots=True)
class _Sum:
    """Unrecorded bytes of one operation: the sum of its `Unaccounted` over regions."""

    operation: str
    regions: tuple[str, ...]
    calls: int
    least_bytes: int
    seen_bytes: int
    on_host: bool


def describe_unaccounted(run: Profile) -> Iterator[str]:
    """Yield a sentence for each operation with less recorded traffic than calls asked for."""
    between = "ranks" if sees_within_hosts(run) else "hosts"
    loaded = list_other_transports(run)
    for each in _sum_by_operation(find_unaccounted(run)):
        where = f" (in {', '.join(each.regions)})" if len(run.regions) > 1 else ""
        calls = "call" if each.calls == 1 else "calls"
        yield (
            f"{name_call(each.operation)}: {each.calls:,} {calls} must send at least {format_bytes(each.least_bytes)} "
            f"between {between}; {format_bytes(each.seen_bytes)} were seen{where}; {_explain(each, loaded)}"
        )


def describe_no_comparison(run: Profile) -> Iterator[str]:
    """Yield a sentence on why calls were not compared with counters; none if they were compared."""
    if len(run.demands.calls) and (why := describe_uncompared(run)):
        yield f"the bytes that calls asked for were not compared with the recorded bytes: {why}"


def summarize_unaccounted(run: Profile) -> Iterator[str]:
    """Yield a line on all operations with less recorded traffic than calls asked for; no line if there are none."""
    sums = _sum_by_operation(find_unaccounted(run))
    if not sums:
        return
    named = [
        f"{name_call(each.operation)} {format_bytes(each.seen_bytes)} of {format_bytes(each.least_bytes)}"
        for each in sums
    ]
    if len(named) > _NAMED:
        named[_NAMED:] = [f"{len(named) - _NAMED} more"]
    why = f"; {_explain(sums[0], list_other_transports(run))}" if len({each.on_host for each in sums}) == 1 else ""
    yield f"fewer bytes were seen than calls must send: {', '.join(named)}{why}"


def _sum_by_operation(found: list[Unaccounted]) -> list[_Sum]:
    by_operation: dict[str, list[Unaccounted]] = {}
    for each in found:
        by_operation.setdefault(each.operation, []).append(each)
    return [
        _Sum(
            operation,
            tuple(each.region for each in parts),
            sum(each.calls for each in parts),
            sum(each.least_bytes for each in parts),
            sum(each.seen_bytes for each in parts),
            parts[0].on_host,
        )
        for operation, parts in by_operation.items()
    ]


def list_other_transports(run: Profile) -> list[str]:
    """Return the names of a run's loaded libraries that move data outside MPI messages."""
    notes = (note for rank in run.ranks for note in rank.notes)
    return sorted({match[1] for note in notes if (match := _LOADED.match(note))})


def _explain(operation: _Sum, loaded: list[str]) -> str:
    if operation.on_host:
        return "the rest stayed on hosts: MPI moved it through memory (as coll/sm does)"
    by_whom = f", perhaps {' or '.join(loaded)}" if loaded else ""
    return f"MPI sent the rest by a path that ibprof does not see{by_whom}"
