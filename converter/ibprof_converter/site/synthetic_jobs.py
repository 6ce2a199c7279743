# SPDX-License-Identifier: Apache-2.0
"""Generate synthetic summaries of jobs, for demonstrations, tests and benchmarks of the store.

Questions to the store must find two known facts on these jobs. Ranks on `SLOW_HOST` are late in every
third job. The first two jobs of each day share links. The first job's time in MPI calls correlates with the second
job's traffic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ibprof.errors import InconsistentError
from ibprof_converter.analysis.pipeline_options import FabricOptions
from ibprof_converter.routing.spread import spread
from ibprof_converter.site.fabric_days import DatedFabric, FabricCalendar, add_fabric
from ibprof_converter.site.job_store import Ingested, JobStore
from ibprof_converter.site.job_summary import Row, parse_lines, write_line

FABRIC = "xgft:2:18,36:1,18"
"""A synthetic fabric with 648 hosts, 36 leaf switches, 18 spine switches and 2,592 link directions."""

SLOW_HOST = 7
"""Index of the host whose ranks are often late."""

VICTIM, AGGRESSOR = "victim", "aggressor"
"""Names of the first two jobs of a day, which share links."""

BINS = 24

_USERS = 200
_DAY_S = 86_400
_LONGEST_S = 6 * 3600
_VERDICTS = ("waiting", "switch-links", "host-links", "small-messages", "slow-transfer", "on-host")
_GB = 10**9
_MOST_IN_EXCHANGE = 16
_ROUTED_AT_ONCE = 512
"""Number of jobs that are routed at once. On the fabric `FABRIC`, the loads of these jobs need 20 MB."""


def make_jobs(
    day: date, jobs: int, fabric: str, directions: int, hosts: tuple[str, ...], links: int = 100, seed: int = 0
) -> Iterator[Row]:
    """Yield the summaries of a day's jobs, with random link directions and random start times.

    Args:
        day: day on which the jobs start.
        fabric: name of the fabric in the store.
        directions: number of the fabric's link directions.
        links: number of link directions that each job uses.
    """
    random = np.random.default_rng([seed, day.toordinal()])
    midnight = datetime.combine(day, time())
    links = min(links, directions)
    starts = random.integers(0, _DAY_S * 10**6, jobs).tolist()
    spans = np.minimum(random.lognormal(7.5, 1.2, jobs), _LONGEST_S).tolist()
    sizes = np.minimum(2 ** random.integers(0, 7, jobs), len(hosts)).tolist()
    first_host = random.integers(0, len(hosts), jobs).tolist()
    owners = random.zipf(1.5, jobs) % _USERS
    shares = random.random((jobs, 4)).tolist()
    parts = min(directions, 2 * links)
    for number in range(jobs):
        run_s, nodes = spans[number], sizes[number]
        if number < 2:
            starts[number], run_s, nodes, first_host[number] = 0, 3600.0, 16, 0
        began = midnight + timedelta(microseconds=starts[number])
        names = [hosts[(first_host[number] + each) % len(hosts)] for each in range(nodes)]
        # Jobs choose from short ranges of link directions, so that the choice is fast, and some jobs share links.
        at = 0 if number < 2 else int(random.integers(0, directions - parts + 1))
        chosen = np.sort(random.permutation(parts)[:links]) if number > 1 else np.arange(links)
        sent = (random.pareto(1.2, links) * _GB).astype(np.int64) + 1
        mpi, wait, gain, late = shares[number]
        row: Row = {
            "key": f"{(seed * 10**6 + day.toordinal()) * 10**6 + number:016x}",
            "job": str(day.toordinal() * 10**5 + number),
            "step": "0",
            "name": (VICTIM, AGGRESSOR)[number] if number < 2 else f"app{number % 50}",
            "user": f"user{int(owners[number])}",
            "partition": "batch",
            "began": began.isoformat(timespec="microseconds"),
            "ended": (began + timedelta(seconds=run_s)).isoformat(timespec="microseconds"),
            "finished": True,
            "ranks": 32 * nodes,
            "nodes": nodes,
            "hosts": sorted(names),
            "calls": number * 1000,
            "bytes": int(sent.sum()),
            "run_s": run_s,
            "mpi_s": run_s * mpi,
            "wait_s": run_s * mpi * wait,
            "split_error_s": 0.01 * run_s,
            "transfer_s": run_s * mpi * (1 - wait),
            "unsplit_s": 0.0,
            "line_rate_s": float(sent.max()) * 8e-11,
            "gain_s": run_s * mpi * gain * 0.1,
            "placement_gain_s": run_s * mpi * gain * 0.1 if gain > 0.8 else 0.0,
            "verdict": _VERDICTS[number % len(_VERDICTS)],
            "lines": [
                {
                    "operation": "ALLREDUCE",
                    "site": f"solver.c:{212 + number % 9}",
                    "calls": number * 1000,
                    "time_s": run_s * mpi * 32 * nodes,
                    "wait_s": run_s * mpi * wait * 32 * nodes,
                    "transfer_s": run_s * mpi * (1 - wait) * 32 * nodes,
                    "bytes": int(sent.sum()),
                }
            ],
            "fabric": fabric,
            "links": (at + chosen).tolist(),
            "link_bytes": sent.tolist(),
            "unrouted_bytes": 0,
        }
        is_slow = hosts[SLOW_HOST] in names and number % 3 == 0
        if is_slow or late > 0.98:
            name = hosts[SLOW_HOST] if is_slow else names[number % nodes]
            row["late"] = [{"rank": 32 * names.index(name), "host": name, "wait_s": run_s * wait, "share": 0.9}]
        if number < 2 or number % 10 == 0:
            # The first two jobs have the same random series, so that they correlate.
            source = np.random.default_rng([seed, day.toordinal()]) if number < 2 else random
            base = source.random(BINS)
            row["bin_s"] = run_s / BINS
            row["bin_bytes"] = (base * _GB).astype(np.int64).tolist()
            noise = random.normal(0, 0.1, BINS)
            row["bin_mpi_s"] = np.maximum(base + noise, 0).tolist()
        yield row


def route_jobs(jobs: Iterable[Row], dated: DatedFabric, seed: int = 0) -> Iterator[Row]:
    """Replace the random link directions of each job by those on routes between the job's hosts; yield the jobs.

    A job's traffic is a ring, a shift by half of its hosts, or (in small jobs) an all-to-all. The fabric must have one
    rail.
    """
    subnet = dated.routed.subnets[0]
    fabric, hosts = subnet.fabric, dated.routed.hosts
    lids = np.flatnonzero(fabric.lid_node >= 0)
    host_of_lid = hosts.of_node[0][fabric.lid_node[lids]]
    lid_of = {hosts.name[host]: int(lid) for lid, host in zip(lids, host_of_lid, strict=True) if host >= 0}
    number = np.array(
        [
            [dated.number[0, f"0x{fabric.node_guid[nodes[end]]:016x}", ports[end]] for end in (0, 1)]
            for nodes, ports in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True)
        ]
    )
    random = np.random.default_rng(seed)
    rest = iter(jobs)
    while rows := list(islice(rest, _ROUTED_AT_ONCE)):
        pairs = [_choose_pairs(np.array([lid_of[host] for host in row["hosts"]]), at) for at, row in enumerate(rows)]
        source, destination = np.concatenate(pairs, axis=1)
        job = np.repeat(np.arange(len(rows)), [each.shape[1] for each in pairs])
        sent = (random.pareto(1.2, len(rows)) * _GB).astype(np.int64)[job] // 8 + 1
        loads = spread(subnet.routes, source, destination, sent.astype(np.uint64), job, len(rows)).bytes
        for at, row in enumerate(rows):
            used = loads[:, :, at] > 0
            order = np.argsort(number[used])
            own = job == at
            row |= {
                "links": number[used][order].tolist(),
                "link_bytes": loads[:, :, at][used][order].tolist(),
                "bytes": int(sent[own].sum()),
                "line_rate_s": float(loads[:, :, at].max(initial=0)) * 8e-11,
                "pair_rail": [0] * int(own.sum()),
                "pair_source": source[own].tolist(),
                "pair_destination": destination[own].tolist(),
                "pair_bytes": sent[own].tolist(),
            }
            row["lines"][0]["bytes"] = row["bytes"]
            yield row


def _choose_pairs(lids: npt.NDArray[np.int64], number: int) -> npt.NDArray[np.int64]:
    """Return source and destination LIDs of a job's traffic: [2, pair], without pairs for a job on one host."""
    count = len(lids)
    one, other = np.divmod(np.arange(count**2), count)
    distance = (other - one) % count
    if number < 2 or (number % 3 == 2 and count <= _MOST_IN_EXCHANGE):
        chosen = distance > 0
    else:
        chosen = (distance > 0) & (distance == (1 if number % 3 else max(count // 2, 1)))
    return np.stack([lids[one[chosen]], lids[other[chosen]]])


def make_store(folder: Path, first: date, days: int, jobs: int, links: int | None = None) -> Ingested:
    """Make a store of synthetic jobs on a synthetic fabric.

    Args:
        jobs: number of jobs per day.
        links: number of random link directions that each job uses. If None: the link directions on routes between the
            job's hosts.

    Raises:
        OSError: the store cannot be written.
    """
    store = JobStore(folder, make=True)
    fabric = add_fabric(folder, FabricOptions((FABRIC,)), first)
    return sum(
        (
            store.add(table)
            for number in range(days)
            for table in make_day(store, fabric, first + timedelta(days=number), jobs, links)
        ),
        Ingested(),
    )


def make_day(store: JobStore, fabric: str, day: date, jobs: int, links: int | None = None) -> Iterator[pa.Table]:
    """Yield tables with the jobs of a day, in the form of `read_lines`."""
    dated = FabricCalendar(store.folder).find(day)
    if dated is None:
        raise InconsistentError(f"{store.folder}: no fabric is valid on {day}")
    rows = make_jobs(day, jobs, fabric, len(dated.number), dated.routed.hosts.name, links or 1)
    lines = map(write_line, rows if links else route_jobs(rows, dated))
    yield from parse_lines(Path("synthetic"), [f"{line}\n".encode() for line in lines], 1)
