# SPDX-License-Identifier: Apache-2.0
"""Tables of traffic: bytes from rank to rank, and bytes from LID to LID. Traffic of several jobs can be merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.profile_data import Profile
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import format_bytes, printable

ALL = "*"
"""The only name in a list of regions, operations or call sites, if the traffic does not distinguish them."""

NO_RANK = -1

RANK_LIMIT = 1 << 24
"""Largest number of ranks of a job. No machine has more ranks; a damaged file with more could fill the memory."""

SINGLE_RAIL = "single rail"

ONE_SUBNET = "one subnet, several adapters a host"
"""Value of `Traffic.rail_source` for one subnet in which a host has several adapters."""

NO_LID = 0
"""Marks a missing port: InfiniBand reserves LID 0."""


Rows = slice | npt.NDArray[np.intp]
"""Rows of a table. Selected rows; a slice selects all rows without copying long columns."""


@dataclass(frozen=True, slots=True, repr=False)
class RankTraffic(NotebookView):
    """Bytes from rank to rank, before ranks are placed on hosts; arrays of equal length, one row per flow.

    Attributes:
        source, destination: int32, ranks below `ranks`.
        bytes, messages: uint64; `messages` is 0 if the origin does not count messages.
        region, operation: int32, indices into `regions` and `operations`.
        regions, operations: names; a single `ALL` if they are not distinguished.
        ranks: number of ranks, including ranks without traffic.
        unmapped: reason -> bytes whose sending or receiving rank is unknown.
        origin: source of the numbers, as text that every output shows.
        profile: the recorded run; None for traffic that was not recorded.
        site: int32, index into `sites`; empty if `sites` has one name.
        sites: names of call sites; a single `ALL` if they are not distinguished.
        part_of: the whole traffic, if this is the part that the user chose by operation, region or site; else None. The
            `profile` of a part has only the chosen rows.
        layer: text on the software layer that counted the bytes (`Source.layer`); empty for modelled bytes.
        doubts: sentences on unknown file formats and missing operations, for the first lines of a report.
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
    site: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    sites: tuple[str, ...] = (ALL,)
    part_of: RankTraffic | None = None
    layer: str = ""
    doubts: tuple[str, ...] = ()

    @classmethod
    def without_regions(
        cls,
        source: npt.NDArray[np.int32],
        destination: npt.NDArray[np.int32],
        amount: npt.NDArray[np.uint64],
        ranks: int,
        origin: str,
        messages: npt.NDArray[np.uint64] | None = None,
    ) -> RankTraffic:
        """Return traffic without regions and operations.

        Args:
            source, destination, amount: [flow]; `amount` is in bytes.
            ranks, origin: see the attributes.
            messages: [flow], number of messages. If None: one message per flow.
        """
        # Broadcast columns of equal values: this saves memory, since an all-to-all of 10,000 hosts has 100 million
        # rows.
        one, nothing = np.broadcast_to(np.uint64(1), len(source)), np.broadcast_to(np.int32(0), len(source))
        messages = one if messages is None else messages
        return cls(source, destination, amount, messages, nothing, nothing, (ALL,), (ALL,), ranks, {}, origin)

    def __repr__(self) -> str:
        said = f"{len(self.bytes):,} flows of {format_bytes(sum_exactly(self.bytes))} between {self.ranks:,} ranks"
        return printable(f"<RankTraffic {self.origin}: {said}>")

    @property
    def whole(self) -> RankTraffic:
        """The traffic of all calls, from which the user may have chosen a part."""
        return self.part_of or self


@dataclass(frozen=True, slots=True)
class LidFlows:
    """Flows from LID to LID; arrays of equal length, one row per flow.

    Attributes:
        rail: int32, index of the subnet; a LID is unique only within its rail.
        source_lid, destination_lid: int32, LIDs of sender and receiver.
        bytes: uint64.
        region, operation: int32, indices into `Traffic.regions` and `Traffic.operations`.
        source_rank, destination_rank: int32, `NO_RANK` if unknown.
    """

    rail: npt.NDArray[np.int32]
    source_lid: npt.NDArray[np.int32]
    destination_lid: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    source_rank: npt.NDArray[np.int32]
    destination_rank: npt.NDArray[np.int32]


_COLUMNS = tuple(column.name for column in fields(LidFlows))


@dataclass(frozen=True, slots=True, repr=False)
class Traffic(LidFlows, NotebookView):
    """Bytes from LID to LID: the flows, and data that all flows share.

    Attributes:
        regions, operations: names; a single `ALL` if they are not distinguished.
        on_host_bytes: bytes between ranks of one host, which load no link.
        unmapped: reason -> bytes whose sender or receiver has no LID, for example because its host is not in the
            fabric.
        rail_source: one of "measured (...)", "modelled (POLICY)", "assumed (first fabric)", `SINGLE_RAIL` and
            `ONE_SUBNET`.
        origin: source of the numbers, as text that every output shows.
        rank_lid: int32 [rank, rail], LID of each rank's first port on each rail, `NO_LID` without a port; no rows if
            the traffic has no ranks.
        notes: sentences on the source of the ranks' ports.
        moved: true if `--placement` moved the ranks of a run to other hosts.
        job: int32, index into `jobs`; empty if there is only one job.
        jobs: job names; a single `ALL` if there is only one job.
        first_rank: for each job, the number of its rank 0; ranks of all jobs are numbered consecutively.
        nic: source of the adapters, one of "measured", "recorded" and "modelled:POLICY"; None if no rank has several
            adapters in a subnet.
        site: int32, index into `sites`; empty if `sites` has one name.
        sites: names of call sites; a single `ALL` if they are not distinguished.
        in_parts: function that yields the flows in parts, if not all flows fit in memory; then the columns are empty.
        layer: as in `RankTraffic`.
    """

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
    nic: str | None = None
    site: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    sites: tuple[str, ...] = (ALL,)
    in_parts: Callable[[], Iterator[Traffic]] | None = None
    layer: str = ""

    @classmethod
    def without_ranks(
        cls,
        source: npt.NDArray[np.int32],
        destination: npt.NDArray[np.int32],
        amount: npt.NDArray[np.uint64],
        rank_lid: npt.NDArray[np.int32],
        origin: str,
        rail: npt.NDArray[np.int32] | None = None,
        rail_source: str = SINGLE_RAIL,
        unmapped: dict[str, int] | None = None,
        **others: Any,
    ) -> Traffic:
        """Return traffic without ranks, regions and operations.

        Args:
            source, destination, amount: [flow], LIDs and bytes.
            rank_lid, origin, rail_source, unmapped, others: see the attributes; `unmapped` None means no bytes.
            rail: int32 [flow], rail of each flow. If None: the first rail for all flows.
        """
        nothing = np.zeros(len(source), np.int32)
        return cls(
            rail=nothing if rail is None else rail,
            source_lid=source,
            destination_lid=destination,
            bytes=amount,
            region=nothing,
            operation=nothing,
            source_rank=nothing + NO_RANK,
            destination_rank=nothing + NO_RANK,
            regions=(ALL,),
            operations=(ALL,),
            on_host_bytes=0,
            rail_source=rail_source,
            origin=origin,
            rank_lid=rank_lid,
            unmapped=unmapped or {},
            **others,
        )

    def __repr__(self) -> str:
        said = f"{len(self.bytes):,} flows of {format_bytes(sum_exactly(self.bytes))} between LIDs"
        return printable(f"<Traffic {self.origin}: {'flows in parts' if self.in_parts else said}>")

    def parts(self) -> Iterator[Traffic]:
        """Yield all flows, in parts that fit in memory. All flows of a pair of LIDs are in one part."""
        yield from self.in_parts() if self.in_parts else (self,)

    def take(self, rows: npt.NDArray[np.intp]) -> Traffic:
        """Return the traffic of the given rows."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        several = {"job": self.jobs, "site": self.sites}
        columns |= {name: getattr(self, name)[rows] for name, names in several.items() if len(names) > 1}
        return replace(self, **columns)

    def job_of_rank(self, rank: int) -> tuple[int, int]:
        """Return the job of a rank, and the rank's number within the job."""
        job = max(index for index, first in enumerate(self.first_rank) if first <= max(rank, 0))
        return job, rank - self.first_rank[job]

    @property
    def rank_names(self) -> tuple[str, ...]:
        """Name of each row of `rank_lid`: the rank, preceded by the job's number if there are several jobs."""
        if len(self.jobs) == 1:
            return tuple(map(str, range(len(self.rank_lid))))
        return tuple("{}:{}".format(*self.job_of_rank(rank)) for rank in range(len(self.rank_lid)))


def join_parts(parts: Sequence[Traffic]) -> Traffic:
    """Join the parts of one traffic; `parts` is not empty."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in (*_COLUMNS, "job", "site")
    }
    return replace(parts[0], in_parts=None, **columns)


@dataclass(frozen=True, slots=True, repr=False)
class PortCounters(NotebookView):
    """Bytes that ports sent, by the ports' counters; arrays of equal length.

    Attributes:
        node_guid: uint64, the port's NODE GUID.
        port: int32, port number from 1.
        bytes: uint64, sent bytes.
        origin: source of the numbers, as text that every output shows.
        notes: sentences on anomalies in the rows.
    """

    node_guid: npt.NDArray[np.uint64]
    port: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]
    origin: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        said = f"{format_bytes(sum_exactly(self.bytes))} sent by {len(self.bytes):,} ports"
        return printable(f"<PortCounters {self.origin}: {said}>")


def describe_origin(traffic: RankTraffic | Traffic | PortCounters) -> str:
    """Return text on the source of the numbers, and on the layer that counted the bytes."""
    layer = "" if isinstance(traffic, PortCounters) else traffic.layer
    return f"{traffic.origin}, measured in {layer}" if layer else traffic.origin


def no_counters(origin: str, notes: tuple[str, ...] = ()) -> PortCounters:
    """Return empty counters, for link loads whose traffic is unknown."""
    return PortCounters(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.uint64), origin, notes)


def choose_rows(chosen: npt.NDArray[np.bool_]) -> Rows:
    """Return the rows where `chosen` is true."""
    return slice(None) if chosen.all() else np.flatnonzero(chosen)


def merge_jobs(names: Sequence[str], traffics: Sequence[Traffic]) -> Traffic:
    """Merge the traffic of several jobs; the result has the job of each flow and rank.

    Args:
        names: the jobs' names; equal names become `NAME#NUMBER`.
        traffics: the traffic of each job, on the same rails.
    """
    if len(traffics) == 1:
        return traffics[0]
    jobs = _distinct_names(names)
    first = np.concatenate([[0], np.cumsum([len(traffic.rank_lid) for traffic in traffics])]).tolist()
    regions, region = _merge_names([(traffic.regions, traffic.region) for traffic in traffics])
    operations, operation = _merge_names([(traffic.operations, traffic.operation) for traffic in traffics])
    sites, site = _merge_names([(traffic.sites, _sites_of_flows(traffic)) for traffic in traffics])
    unmapped: dict[str, int] = {}
    for traffic in traffics:
        for reason, amount in traffic.unmapped.items():
            unmapped[reason] = unmapped.get(reason, 0) + amount
    notes = [f"job {job}: {note}" for job, traffic in zip(jobs, traffics, strict=True) for note in traffic.notes]
    if shared := _count_shared_ports(traffics):
        notes.append(f"{shared} port(s) are used by more than one job")

    def ranks(name: str) -> npt.NDArray[np.int32]:
        columns = [getattr(traffic, name) for traffic in traffics]
        moved = [
            np.where(column == NO_RANK, NO_RANK, column + base) for column, base in zip(columns, first, strict=False)
        ]
        return np.concatenate(moved).astype(np.int32)

    return replace(
        join_parts(traffics),
        region=region,
        operation=operation,
        site=site if len(sites) > 1 else np.zeros(0, np.int32),
        sites=sites,
        source_rank=ranks("source_rank"),
        destination_rank=ranks("destination_rank"),
        regions=regions,
        operations=operations,
        on_host_bytes=sum(traffic.on_host_bytes for traffic in traffics),
        unmapped=unmapped,
        rail_source="; ".join(dict.fromkeys(traffic.rail_source for traffic in traffics)),
        nic="; ".join(dict.fromkeys(traffic.nic for traffic in traffics if traffic.nic)) or None,
        origin="; ".join(f"job {job}: {traffic.origin}" for job, traffic in zip(jobs, traffics, strict=True)),
        layer=" and ".join(dict.fromkeys(traffic.layer for traffic in traffics if traffic.layer)),
        rank_lid=np.concatenate([traffic.rank_lid for traffic in traffics]),
        notes=tuple(notes),
        moved=any(traffic.moved for traffic in traffics),
        job=np.repeat(np.arange(len(traffics), dtype=np.int32), [len(traffic.bytes) for traffic in traffics]),
        jobs=jobs,
        first_rank=tuple(first[:-1]),
    )


def _distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return a distinct name for each job; equal names become `NAME#NUMBER`."""
    return tuple(name if names.count(name) == 1 else f"{name}#{number}" for number, name in enumerate(names))


def _merge_names(
    parts: Sequence[tuple[tuple[str, ...], npt.NDArray[np.int32]]],
) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return all distinct names, and the index of each flow's name."""
    merged = tuple(dict.fromkeys(name for names, _ in parts for name in names))
    number = {name: index for index, name in enumerate(merged)}
    columns = [np.array([number[name] for name in names], np.int32)[index] for names, index in parts]
    return merged, np.concatenate(columns).astype(np.int32)


def _sites_of_flows(traffic: Traffic) -> npt.NDArray[np.int32]:
    return traffic.site if len(traffic.sites) > 1 else np.zeros(len(traffic.bytes), np.int32)


def _count_shared_ports(traffics: Sequence[Traffic]) -> int:
    """Return the number of ports (rail and LID) that ranks of several jobs use."""
    used: dict[tuple[int, int], int] = {}
    for traffic in traffics:
        for rail in range(traffic.rank_lid.shape[1]):
            for lid in np.unique(traffic.rank_lid[:, rail]).tolist():
                if lid != NO_LID:
                    used[rail, lid] = used.get((rail, lid), 0) + 1
    return sum(count > 1 for count in used.values())
