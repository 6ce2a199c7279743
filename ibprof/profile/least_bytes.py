# SPDX-License-Identifier: Apache-2.0
"""The least that any algorithm must send for calls, between units: ranks, or hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.profile_data import Demands

Indices = npt.NDArray[np.intp]
Bytes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Units:
    """Units that a source distinguishes: ranks, or only hosts.

    Attributes:
        of_rank: unit of each rank of MPI_COMM_WORLD.
        members: ranks of each group, by its number, where all of them are known.
    """

    of_rank: Indices
    members: Mapping[int, Indices]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Demands of one operation: the unit of each rank and, of its partner, the unit or the group; arrays [row]."""

    rank: Indices
    unit: Indices
    partner: npt.NDArray[np.uint64]
    bytes: Bytes


def find_least(operation: str, demands: Demands, rows: Indices, units: Units) -> int:
    """Return the bytes that calls of one operation must send between units.

    Args:
        operation: its name.
        demands: of all operations.
        rows: those of this operation.
        units: between which bytes are counted.
    """
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
            # A rank may have several rows, of different regions.
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
    """Return what must pass between a rank and its root or peer on another unit; in a tree once for each unit."""
    known = np.flatnonzero(rows.partner < np.uint64(len(units.of_rank)))
    partner = rows.partner[known].astype(np.intp)
    apart = units.of_rank[partner] != rows.unit[known]
    known, partner = known[apart], partner[apart]
    if not is_tree:
        return sum_exactly(rows.bytes[known])
    # A rank may have several rows, of different regions.
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
    """Each unit must send its own contribution, as it must receive the result."""
    return sum_exactly(_largest(unit, amount)) if len(np.unique(members)) > 1 else 0


def _least_of_scan(unit: Indices, amount: Bytes, members: Indices) -> int:
    """Each unit but the last one must send its contribution."""
    largest = _largest(unit, amount)
    return sum_exactly(largest) - int(largest.max()) if len(np.unique(members)) > 1 else 0


def _least_of_blocks(_unit: Indices, amount: Bytes, members: Indices) -> int:
    """Each block must reach each other unit (MPI_Allgather), or each unit contributes to it (MPI_Reduce_scatter)."""
    return sum_exactly(amount) * (len(np.unique(members)) - 1)


def _least_of_alltoall(unit: Indices, amount: Bytes, members: Indices) -> int:
    """A block for each member on another unit."""
    size = np.bincount(members)
    return sum(int(block) * (len(members) - int(size[own])) for own, block in zip(unit.tolist(), amount, strict=True))


def _least_of_vectors(_unit: Indices, amount: Bytes, members: Indices) -> int:
    """Everything, if each member has its own unit; otherwise it is not known which of it.

    A lone member may send to threads of its process, which are ranks of MPICH's MPIX_Threadcomm.
    """
    units = len(np.unique(members))
    return sum_exactly(amount) if units == len(members) and units > 1 else 0


_WITH_ROOT = ("BCAST", "REDUCE", "GATHER", "GATHERV", "SCATTER", "SCATTERV")

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
"""The least of operations without a root: from the unit and the bytes of each row, and the units of the members."""
