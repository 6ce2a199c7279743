# SPDX-License-Identifier: Apache-2.0
"""Traffic: who sends how much to whom: first from rank to rank, then in the fabric's own addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Profile

ALL = "*"
"""The one name of the regions, or operations, of a traffic that tells none apart."""

NO_RANK = -1

RANK_LIMIT = 1 << 24
"""Ranks of a job; beyond any machine, and low enough that arrays by rank stay small, whatever a damaged file says."""

NO_LID = 0
"""LID 0 is reserved, so it can stand for a port that is not there."""


@dataclass(frozen=True, slots=True)
class RankTraffic:
    """Bytes from rank to rank, wherever the ranks are; arrays of one length, a row a flow.

    Attributes:
        source, destination: int32, ranks below `ranks`.
        bytes, messages: uint64; messages are 0 where the origin counts none.
        region, operation: int32, indices into the names.
        regions, operations: names; a traffic without them has the one name `ALL`.
        ranks: number of ranks, those without traffic included.
        unmapped: reason -> bytes whose other end is no rank.
        origin: where the numbers come from, in words, for every output.
        profile: the run they were recorded in; None where it was no run.
    """

    source: npt.NDArray[np.int32]
    destination: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]
    messages: npt.NDArray[np.uint64]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    regions: tuple[str, ...]
    operations: tuple[str, ...]
    ranks: int
    unmapped: dict[str, int]
    origin: str
    profile: Profile | None = None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes from LID to LID; arrays of one length, a row a flow.

    Attributes:
        rail: int32, index of the subnet; a LID means something within its rail alone.
        source_lid, destination_lid: int32.
        bytes: uint64.
        region, operation: int32, indices into the names.
        source_rank, destination_rank: int32, `NO_RANK` where the traffic knows no ranks.
        regions, operations: names; a traffic without them has the one name `ALL`.
        on_host_bytes: of rank pairs that share a host, so load no link.
        unmapped: reason -> bytes that found no LID (unknown peer, host not in the fabric, ...).
        rail_source: "measured (...)", "modelled (POLICY)", "assumed (first fabric)" or "single rail".
        origin: where the numbers come from, in words, for every output.
        rank_lid: int32 [rank, rail], the port of each rank, `NO_LID` for none; no rows where there are no ranks.
        notes: what a reader must know of how ranks found their ports, a sentence each.
        moved: whether ranks of a run are put elsewhere than they ran.
        job: int32, index into the jobs; no elements where there is but one.
        jobs: names; one `ALL` where there is but one.
        first_rank: for each job the number that its rank 0 has here, where ranks of all jobs are counted on.
        in_parts: makes the flows a part at a time, where they are too many to be held; the columns are empty then.
    """

    rail: npt.NDArray[np.int32]
    source_lid: npt.NDArray[np.int32]
    destination_lid: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    source_rank: npt.NDArray[np.int32]
    destination_rank: npt.NDArray[np.int32]
    regions: tuple[str, ...]
    operations: tuple[str, ...]
    on_host_bytes: int
    unmapped: dict[str, int]
    rail_source: str
    origin: str
    rank_lid: npt.NDArray[np.int32]
    notes: tuple[str, ...] = ()
    moved: bool = False
    job: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    jobs: tuple[str, ...] = (ALL,)
    first_rank: tuple[int, ...] = (0,)
    in_parts: Callable[[], Iterator[Traffic]] | None = None

    def parts(self) -> Iterator[Traffic]:
        """Give all flows, in parts that can be held; no pair of LIDs is in two of them."""
        yield from self.in_parts() if self.in_parts else (self,)

    def take(self, rows: npt.NDArray[np.intp]) -> Traffic:
        """Give some of the flows."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return replace(self, job=self.job[rows] if len(self.jobs) > 1 else self.job, **columns)

    def job_of_rank(self, rank: int) -> tuple[int, int]:
        """Give the job of a rank, and its number in the job's own count."""
        job = max(index for index, first in enumerate(self.first_rank) if first <= max(rank, 0))
        return job, rank - self.first_rank[job]

    @property
    def rank_names(self) -> tuple[str, ...]:
        """A name for each row of `rank_lid`: the rank, where there are several jobs with the job's number before it."""
        if len(self.jobs) == 1:
            return tuple(map(str, range(len(self.rank_lid))))
        return tuple("{}:{}".format(*self.job_of_rank(rank)) for rank in range(len(self.rank_lid)))


_COLUMNS = (
    "rail",
    "source_lid",
    "destination_lid",
    "bytes",
    "region",
    "operation",
    "source_rank",
    "destination_rank",
)
"""Of a traffic, each with a row a flow; `job` has none where there is but one job."""


def join_parts(parts: Sequence[Traffic]) -> Traffic:
    """Put parts of one traffic, at least one, together again."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in (*_COLUMNS, "job")
    }
    return replace(parts[0], in_parts=None, **columns)


@dataclass(frozen=True, slots=True)
class PortCounters:
    """Bytes that ports sent, as counted at the ports: loads of link ends without any routing; arrays of one length.

    Attributes:
        node_guid: uint64.
        port: int32, from 1.
        bytes: uint64.
        origin: where the numbers come from, in words, for every output.
        notes: what is odd about the rows, a sentence each.
    """

    node_guid: npt.NDArray[np.uint64]
    port: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]
    origin: str
    notes: tuple[str, ...] = ()


def no_counters(origin: str, notes: tuple[str, ...] = ()) -> PortCounters:
    """Give counters of no port, for loads that were neither counted here nor routed."""
    return PortCounters(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.uint64), origin, notes)


Rows = slice | npt.NDArray[np.intp]
"""Some rows of a table; all of them are a slice, which takes no copy of columns that may be very long."""


def choose_rows(chosen: npt.NDArray[np.bool_]) -> Rows:
    """Give the rows where `chosen` is true."""
    return slice(None) if chosen.all() else np.flatnonzero(chosen)


def total_bytes(values: npt.NDArray[np.uint64]) -> int:
    """Add up bytes exactly: numpy alone wraps around silently at 2**64."""
    low = int((values & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64))
    high = int((values >> np.uint64(32)).sum(dtype=np.uint64))
    return (high << 32) + low
