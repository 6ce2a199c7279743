# SPDX-License-Identifier: Apache-2.0
"""The network of a day: its view with the jobs of the day, and its port counters as bytes."""

from __future__ import annotations

import re
from datetime import date
from os import fspath
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc

from ibprof.errors import InputError, UsageError
from ibprof_converter.analysis.loads_view import NamedLoads, NetworkView, render_view
from ibprof_converter.analysis.pipeline_options import TrafficOptions
from ibprof_converter.analysis.pipeline_stages import load_traffic
from ibprof_converter.site.fabric_days import FabricCalendar
from ibprof_converter.site.job_store import JobStore
from ibprof_converter.traffic.port_counters import subtract_counters
from ibprof_converter.traffic.traffic_data import PortCounters
from ibprof_converter.traffic.traffic_reader import read_traffic

_COLUMNS = ("pair_source", "pair_destination", "pair_bytes", "pair_rail")


def view_day(store: JobStore, day: date, jobs: int) -> NetworkView:
    """Return the view of a day's network with the traffic of the day's jobs.

    Args:
        store: the store of all jobs.
        day: first day of the jobs, UTC.
        jobs: number of jobs, those with most bytes first; each job is a layer.

    Raises:
        UsageError: no job of the day has pairs of ports on a fabric of the store.
    """
    fabric = FabricCalendar(store.folder).find(day)
    found = store.read_day(day) if day in store.days() else None
    if fabric is None or found is None:
        raise UsageError(f"the store has no {'jobs' if fabric else 'fabric'} of {day}")
    placed = found.filter(pc.greater(pc.fill_null(pc.list_value_length(found["pair_bytes"]), 0), 0))
    rows = placed.sort_by([("bytes", "descending"), ("key", "ascending")])[:jobs].to_pylist()
    if not rows:
        raise UsageError(f"no job of {day} has pairs of ports: summaries were made without --store")
    with TemporaryDirectory(prefix="ibprof-site-") as folder:
        files = []
        for row in rows:
            # The view names jobs by files, since names of users and jobs are untrusted text.
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{row['job'] or row['key']}-{row['user'] or ''}")[:64]
            files.append(Path(folder, f"{name}-{row['key'][-4:]}.csv"))
            lines = zip(*(row[column] for column in _COLUMNS), strict=True)
            text = "".join(f"{','.join(map(str, line))}\n" for line in lines)
            files[-1].write_text(f"src_lid,dst_lid,bytes,rail\n{text}", encoding="utf-8")
        loads = load_traffic(fabric.routed, TrafficOptions(tuple(map(str, files))))
        return render_view(NamedLoads(loads, tuple(file.stem for file in files)))


def subtract_counted(store: Path, before: Path, after: Path, day: date) -> dict[tuple[str, int], int]:
    """Return the bytes that ports sent between two files of counters, by the GUID of the node and the port number.

    Raises:
        InputError: a file does not hold port counters.
        UsageError: the store has no fabric for the day.
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
    return {(f"0x{guid:016x}", port): amount for guid, port, amount in ports}
