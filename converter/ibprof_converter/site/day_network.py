# SPDX-License-Identifier: Apache-2.0
"""Render the network view of a day, with the day's jobs; compute the day's bytes by port counters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise
from os import fspath
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from ibprof.errors import InputError, UsageError
from ibprof.profile.profile_data import Intervals, IntervalTimes
from ibprof_converter.analysis.loads_view import NamedLoads, NetworkView, render_view
from ibprof_converter.analysis.pipeline_options import TrafficOptions
from ibprof_converter.analysis.pipeline_stages import load_demands
from ibprof_converter.fabric.fabric_graph import LIDS
from ibprof_converter.site.fabric_days import FabricCalendar
from ibprof_converter.site.job_store import JobStore
from ibprof_converter.site.job_summary import Row
from ibprof_converter.traffic.port_counters import subtract_counters
from ibprof_converter.traffic.traffic_data import SINGLE_RAIL, PortCounters, Traffic
from ibprof_converter.traffic.traffic_reader import read_traffic
from ibprof_converter.viewer.time_arrays import RegionVisits, RunTimes

_MOST_BYTES = 2.0**63
"""Upper limit of the sum of all bytes in a view: link loads have 64 bits."""

_LONGEST_NAME = 64

_SPAN = ("began", "ended")
_COLUMNS = ("pair_source", "pair_destination", "pair_bytes", "pair_rail")


def view_day(store: JobStore, day: date, jobs: int) -> NetworkView:
    """Return the network view of a day, with the traffic of its largest jobs.

    Args:
        day: day on which the jobs began, UTC.
        jobs: number of shown jobs, those with most bytes; the view has separate loads for each job.

    Raises:
        UsageError: the day has no fabric, no jobs, or no job with pairs of ports.
    """
    fabric = FabricCalendar(store.folder).find(day)
    found = store.read_day(day) if day in store.days() else None
    if fabric is None or found is None:
        raise UsageError(f"the store has no {'jobs' if fabric else 'fabric'} of {day}")
    placed = found.filter(pc.greater(pc.fill_null(pc.list_value_length(found["pair_bytes"]), 0), 0))
    rows = placed.sort_by([("bytes", "descending"), ("key", "ascending")])[:jobs].to_pylist()
    if not rows:
        raise UsageError(
            f"no job of {day} has pairs of ports: summaries were made without --store, or hosts are not in the fabric"
        )
    traffic = _join_pairs(rows, len(fabric.routed.fabrics), f"jobs of {day}, the {len(rows)} with most bytes")
    loads = load_demands(fabric.routed, [traffic], TrafficOptions((traffic.origin,)))
    return render_view(NamedLoads(loads, times=_list_times(rows)))


def _join_pairs(rows: Sequence[Row], rails: int, origin: str) -> Traffic:
    """Return the traffic of jobs from LID to LID; pairs with impossible ports or bytes count as unmapped."""
    columns = (np.concatenate([row[name] for row in rows]).astype(np.int64) for name in _COLUMNS)
    source, destination, amount, rail = columns
    job = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row["pair_bytes"]) for row in rows])
    kept = np.ones(len(job), np.bool_)
    for column, limit in ((source, LIDS), (destination, LIDS), (rail, rails)):
        kept &= (column >= 0) & (column < limit)
    kept &= np.cumsum(np.where(kept, amount, 0), dtype=np.float64) < _MOST_BYTES
    names = [f"{row['job'] or row['key']} {row['user'] or ''}"[:_LONGEST_NAME].strip() for row in rows]
    jobs = [f"{name} {row['key']}" if names.count(name) > 1 else name for name, row in zip(names, rows, strict=True)]
    return Traffic.without_ranks(
        source[kept].astype(np.int32),
        destination[kept].astype(np.int32),
        amount[kept].astype(np.uint64),
        np.zeros((0, rails), np.int32),
        origin,
        rail[kept].astype(np.int32),
        "measured" if rails > 1 else SINGLE_RAIL,
        {"no such port in any fabric": sum(amount[~kept].tolist())} if not kept.all() else None,
        job=job[kept],
        jobs=tuple(jobs),
    )


def _list_times(rows: Sequence[Row]) -> RunTimes:
    """Return the bytes of jobs in each interval. A job without intervals is assumed to send at a constant rate."""
    intervals = []
    for number, row in enumerate(rows):
        began_ns, ended_ns = ((row[name] - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000 for name in _SPAN)
        sent = row["bin_bytes"] or []
        if not sum(sent):
            intervals.append((number, began_ns, ended_ns, row["bytes"]))
            continue
        # Cut intervals at the end of the job: users can write wrong summaries.
        since_ns = np.minimum(np.arange(len(sent) + 1) * row["bin_s"] * 1e9, ended_ns - began_ns)
        edges = began_ns + np.rint(since_ns).astype(np.int64)
        intervals += [(number, *span, amount) for span, amount in zip(pairwise(edges.tolist()), sent, strict=True)]
    job, begin, end, amount = (np.array(column) for column in zip(*intervals, strict=True))
    ends = (job.astype(np.uint32), job.astype(np.uint32))
    moments = (begin.astype(np.uint64), end.astype(np.uint64))
    nothing = np.zeros(0, np.int32)
    none = np.zeros(0, np.uint64)
    return RunTimes(
        Intervals(job.astype(np.int32), *moments, *ends, amount.astype(np.uint64), np.ones(len(job), np.uint64)),
        IntervalTimes(nothing, none, none, none),
        RegionVisits(nothing, nothing, none, none),
        (),
    )


def subtract_counted(
    store: Path, before: Path, after: Path, day: date
) -> tuple[dict[tuple[str, int], int], tuple[str, ...]]:
    """Return (NODE GUID, port number) -> bytes that the port sent between two files of counters; and notes.

    Notes name counters that were reset, that are at their limit, or that belong to no port of the fabric.

    Raises:
        InputError: a file has no port counters.
        UsageError: the store has no fabric that is valid on the day.
    """
    fabric = FabricCalendar(store).find(day)
    if fabric is None:
        raise UsageError(f"the store has no fabric of {day}; ibprof-site fabric adds one")
    read = []
    for path in (before, after):
        counters = read_traffic(fspath(path), None, fabric.routed.fabrics)
        if not isinstance(counters, PortCounters):
            raise InputError(path, None, "port counters", counters.origin)
        read.append(counters)
    sent = subtract_counters(read[1], read[0])
    ports = zip(sent.node_guid.tolist(), sent.port.tolist(), sent.bytes.tolist(), strict=True)
    return {(f"0x{guid:016x}", port): amount for guid, port, amount in ports}, sent.notes
