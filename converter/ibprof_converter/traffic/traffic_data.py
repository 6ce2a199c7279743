# SPDX-License-Identifier: Apache-2.0
"""Traffic: bytes from rank to rank, then from LID to LID; several jobs on one network, merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.profile_data import Profile
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import format_bytes, printable

ALL = "*"
"""The only name of the regions, or operations, of traffic that distinguishes none."""

NO_RANK = -1

RANK_LIMIT = 1 << 24
"""Largest number of ranks of a job.

It is beyond any machine, and keeps arrays by rank small, even for a damaged file.
"""

SINGLE_RAIL = "single rail"

ONE_SUBNET = "one subnet, several adapters a host"
"""In place of `SINGLE_RAIL`, where each adapter of a host is a rail."""

NO_LID = 0
"""LID 0 is reserved, so it stands for a missing port."""


Rows = slice | npt.NDArray[np.intp]
"""Rows of a table; all rows are a slice, which does not copy long columns."""


@dataclass(frozen=True, slots=True, repr=False)
class RankTraffic(NotebookView):
    """Bytes from rank to rank, independent of the placement; arrays of one length, a row per flow.

    Attributes:
        source, destination: int32, ranks below `ranks`.
        bytes, messages: uint64; messages are 0 where the origin does not count them.
        region, operation: int32, indices into the names.
        regions, operations: names; traffic without them has the only name `ALL`.
        ranks: number of ranks, including those without traffic.
        unmapped: reason -> bytes whose other end is no rank.
        origin: source of the numbers, in words, for every output.
        profile: the run they were recorded in; None if there is none.
        site: int32, index into the call sites; empty if there is only one name.
        sites: names of call sites; traffic without them has the only name `ALL`.
        part_of: what this was chosen from, by operation, region or site; None if it is the whole. `profile` then has
            the chosen rows alone.
        layer: where bytes were counted, in words (`Source.layer`); empty if they were not.
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
        """Return a traffic that knows no regions and operations.

        Args:
            source, destination, amount: [flow]; `amount` is the bytes.
            ranks, origin: as in the attributes.
            messages: [flow]; None for one each.
        """
        # Constant columns take no memory: all-to-all over 10,000 hosts has 100 million rows.
        one, nothing = np.broadcast_to(np.uint64(1), len(source)), np.broadcast_to(np.int32(0), len(source))
        messages = one if messages is None else messages
        return cls(source, destination, amount, messages, nothing, nothing, (ALL,), (ALL,), ranks, {}, origin)

    def __repr__(self) -> str:
        said = f"{len(self.bytes):,} flows of {format_bytes(sum_exactly(self.bytes))} between {self.ranks:,} ranks"
        return printable(f"<RankTraffic {self.origin}: {said}>")

    @property
    def whole(self) -> RankTraffic:
        """The traffic of all calls, from which this was chosen."""
        return self.part_of or self


@dataclass(frozen=True, slots=True)
class LidFlows:
    """Flows from LID to LID; arrays of one length, a row per flow.

    Attributes:
        rail: int32, index of the subnet; a LID is unique only within its rail.
        source_lid, destination_lid: int32.
        bytes: uint64.
        region, operation: int32, indices into the names.
        source_rank, destination_rank: int32, `NO_RANK` where the traffic has no ranks.
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
    """Bytes from LID to LID: flows, and what belongs to all of them.

    Attributes:
        regions, operations: names; traffic without them has the only name `ALL`.
        on_host_bytes: bytes between ranks of one host, which load no link.
        unmapped: reason -> bytes without a LID (unknown peer, host not in the fabric, ...).
        rail_source: "measured (...)", "modelled (POLICY)", "assumed (first fabric)", `SINGLE_RAIL` or `ONE_SUBNET`.
        origin: source of the numbers, in words, for every output.
        rank_lid: int32 [rank, rail], the port of each rank, `NO_LID` for none; no rows if there are no ranks. Of a rank
            that uses several ports of a rail it is the first.
        notes: how the ports of ranks were found, a sentence each.
        moved: ranks of a run are placed on other hosts than they ran on.
        job: int32, index into the jobs; empty if there is only one.
        jobs: names; a single `ALL` if there is only one.
        first_rank: for each job the number of its rank 0, where ranks are numbered through all jobs.
        nic: how the adapters that bytes take in a subnet are known: "measured", "recorded" or "modelled:POLICY"; None
            if no rank has a choice among several.
        site: int32, index into the call sites; empty if there is only one name.
        sites: names of call sites; traffic without them has the only name `ALL`.
        in_parts: yields the flows in parts, where they are too many for the memory; the columns are empty then.
        layer: where bytes were counted, as in `RankTraffic`.
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
        """Return a traffic that knows no ranks, regions and operations of its flows.

        Args:
            source, destination, amount: [flow], LIDs and bytes.
            rank_lid, origin, rail_source, unmapped, others: as in the attributes; None for no unmapped bytes.
            rail: int32 [flow]; None for the first.
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
        """Yield all flows, in parts that fit in memory; no pair of LIDs is in two of them."""
        yield from self.in_parts() if self.in_parts else (self,)

    def take(self, rows: npt.NDArray[np.intp]) -> Traffic:
        """Return some of the flows."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        several = {"job": self.jobs, "site": self.sites}
        columns |= {name: getattr(self, name)[rows] for name, names in several.items() if len(names) > 1}
        return replace(self, **columns)

    def job_of_rank(self, rank: int) -> tuple[int, int]:
        """Return the job of a rank, and its number within the job."""
        job = max(index for index, first in enumerate(self.first_rank) if first <= max(rank, 0))
        return job, rank - self.first_rank[job]

    @property
    def rank_names(self) -> tuple[str, ...]:
        """A name for each row of `rank_lid`: the rank, after the job's number if there are several jobs."""
        if len(self.jobs) == 1:
            return tuple(map(str, range(len(self.rank_lid))))
        return tuple("{}:{}".format(*self.job_of_rank(rank)) for rank in range(len(self.rank_lid)))


def join_parts(parts: Sequence[Traffic]) -> Traffic:
    """Join parts of one traffic, at least one."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in (*_COLUMNS, "job", "site")
    }
    return replace(parts[0], in_parts=None, **columns)


@dataclass(frozen=True, slots=True, repr=False)
class PortCounters(NotebookView):
    """Bytes that ports sent, as counted at the ports: loads of link directions without routing; arrays of one length.

    Attributes:
        node_guid: uint64.
        port: int32, from 1.
        bytes: uint64.
        origin: source of the numbers, in words, for every output.
        notes: anomalies of the rows, a sentence each.
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
    """Return the source of the numbers, and where bytes were counted."""
    layer = "" if isinstance(traffic, PortCounters) else traffic.layer
    return f"{traffic.origin}, measured in {layer}" if layer else traffic.origin


def no_counters(origin: str, notes: tuple[str, ...] = ()) -> PortCounters:
    """Return counters of no port, for loads that were neither counted nor routed."""
    return PortCounters(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.uint64), origin, notes)


def choose_rows(chosen: npt.NDArray[np.bool_]) -> Rows:
    """Return the rows where `chosen` is true."""
    return slice(None) if chosen.all() else np.flatnonzero(chosen)


def merge_jobs(names: Sequence[str], traffics: Sequence[Traffic]) -> Traffic:
    """Merge the traffic of several jobs; flows and ranks keep their job.

    Args:
        names: of the jobs; equal names get numbers.
        traffics: one per job, on the same rails.
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
    """Return a distinct name for each job: with its number where another has the same name."""
    return tuple(name if names.count(name) == 1 else f"{name}#{number}" for number, name in enumerate(names))


def _merge_names(
    parts: Sequence[tuple[tuple[str, ...], npt.NDArray[np.int32]]],
) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return all names once, and for each flow the index of its name."""
    merged = tuple(dict.fromkeys(name for names, _ in parts for name in names))
    number = {name: index for index, name in enumerate(merged)}
    columns = [np.array([number[name] for name in names], np.int32)[index] for names, index in parts]
    return merged, np.concatenate(columns).astype(np.int32)


def _sites_of_flows(traffic: Traffic) -> npt.NDArray[np.int32]:
    """Return the site of each flow, also where there is only one."""
    return traffic.site if len(traffic.sites) > 1 else np.zeros(len(traffic.bytes), np.int32)


def _count_shared_ports(traffics: Sequence[Traffic]) -> int:
    """Return the number of ports, by rail and LID, that ranks of several jobs use."""
    used: dict[tuple[int, int], int] = {}
    for traffic in traffics:
        for rail in range(traffic.rank_lid.shape[1]):
            for lid in np.unique(traffic.rank_lid[:, rail]).tolist():
                if lid != NO_LID:
                    used[rail, lid] = used.get((rail, lid), 0) + 1
    return sum(count > 1 for count in used.values())
