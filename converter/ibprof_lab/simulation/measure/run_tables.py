# SPDX-License-Identifier: Apache-2.0
"""Results of one simulation as rows of tables: links, latencies, operations, clients, slices of time and queues.

Times in the rows are in microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.traffic_data import ALL, NO_LID, Traffic
from ibprof_lab.simulation.engine.packet_engine import Simulation
from ibprof_lab.simulation.measure.run_observer import Counts, Queues, Watch, list_bins

Row = dict[str, Any]

LATENCY_COLUMNS = ("job", "from_us", "to_us", "messages")
CLIENT_COLUMNS = ("job", "guid", "name", "messages", "mean_us", "steps", "bytes", "last_us")
OPERATION_COLUMNS = ("job", "from_us", "to_us", "operations")
TIME_COLUMNS = ("job", "from_us", "to_us", "messages", "mean_us")
QUEUE_COLUMNS = ("time_us", "guid", "name", "port", "bytes")
BUSY_COLUMNS = ("a_busy_us", "b_busy_us")
"""Additional columns of links.csv: for each direction of a link, time in which it transmits bytes of the row's job."""

_FULLEST = 32
"""Number of link directions in the table of queues."""


def load_ends(simulation: Simulation) -> Loads:
    """Return the bytes of each job on each link direction."""
    carried = simulation.look_at_ends().bytes
    jobs = tuple(job.name for job in simulation.jobs)
    state = simulation.state
    return Loads(
        by_rail=(carried.reshape(-1, 2, len(jobs)),),
        groups=((ALL, ALL),) * len(jobs),
        bytes_total=state.bytes_sent,
        bytes_routed=state.bytes_arrived,
        bytes_on_host=0,
        bytes_unrouted={"still on the way": state.bytes_sent - state.bytes_arrived},
        jobs=jobs,
    )


def list_flows(watch: Watch) -> Traffic:
    """Return the traffic of completed messages between LIDs, by job. Bytes of incomplete messages are in `unmapped`."""
    simulation, flows = watch.simulation, watch.flows()
    network, state = simulation.network, simulation.state
    job = simulation.job_of_client[flows.client]
    lid = network.subnet.fabric.port_lid[network.host_port].astype(np.int32)
    client, host = lid[simulation.host_of_client[flows.client]], lid[flows.host]
    reads = np.array([each.reads for each in simulation.jobs], np.uint64)[job]
    asks = reads > 0  # a read: the client sends a request, and the host sends the bytes
    source = np.concatenate([np.where(asks, host, client), client[asks]])
    destination = np.concatenate([np.where(asks, client, host), host[asks]])
    size = np.concatenate([flows.bytes, (reads * flows.messages.astype(np.uint64))[asks]])
    between = int(size[source != destination].sum())  # leave out messages within a host
    return Traffic.without_ranks(
        source,
        destination,
        size,
        rank_lid=np.full((0, 1), NO_LID, np.int32),
        origin="packet simulation",
        unmapped={"of messages that had not arrived yet": state.bytes_sent - between},
        job=np.concatenate([job, job[asks]]).astype(np.int32),
        jobs=tuple(each.name for each in simulation.jobs),
    )


def describe_links(watch: Watch) -> list[tuple[str, npt.NDArray[np.float64]]]:
    """Return the quantities that the viewer shows, as (name, float64 [link direction]): busy times and queues."""
    simulation = watch.simulation
    ends, queues = simulation.look_at_ends(), watch.queues()
    busy = find_busy(simulation) / max(simulation.state.now, 1)
    mean = queues.bytes.mean(axis=0) if len(queues.time_ns) else np.zeros(len(busy))
    by_job = [(f"busy with {job.name}, share of the time", busy[:, n]) for n, job in enumerate(simulation.jobs)]
    return [
        ("busy, share of the time", busy.sum(axis=1)),
        *(by_job if len(by_job) > 1 else ()),
        ("KiB queued, mean", mean / 1024),
        ("KiB queued on one lane, at most", ends.most_queued / 1024),
    ]


def find_busy(simulation: Simulation) -> npt.NDArray[np.float64]:
    """Return the ticks in which each link direction transmits bytes of each job, float64 [link direction, job].

    The engine counts a packet's ticks as soon as the packet enters the queue of a link direction. This function
    subtracts the ticks of queued bytes, because these bytes are not yet sent. Each job's part of these bytes is assumed
    proportional to the job's busy ticks. A packet that waits for the next link direction's buffer is already sent, and
    is not subtracted.
    """
    network, ends = simulation.network, simulation.look_at_ends()
    admitted = ends.busy.sum(axis=1).astype(float)
    waiting = np.bincount(simulation.find_waits().ravel(), minlength=len(admitted)) * network.hardware.packet_bytes
    unsent = np.maximum(ends.queued - waiting.astype(float), 0) * network.end_byte_ticks / 2**32
    sent = np.clip(admitted - unsent, 0, simulation.state.now)
    part = np.divide(sent, admitted, out=np.zeros(len(admitted)), where=admitted > 0)
    busy: npt.NDArray[np.float64] = ends.busy * part[:, None]
    return busy


def add_busy(simulation: Simulation, rows: Iterable[Row]) -> Iterator[Row]:
    """Add `BUSY_COLUMNS` to rows of links.csv."""
    fabric, busy = simulation.network.subnet.fabric, find_busy(simulation)
    end_of = {
        (f"0x{int(fabric.node_guid[node]):016x}", int(port)): end
        for end, (node, port) in enumerate(zip(fabric.link_node.ravel(), fabric.link_port.ravel(), strict=True))
    }
    jobs = {job.name: number for number, job in enumerate(simulation.jobs)}
    for row in rows:
        ticks = (
            busy[end_of[row[f"{end}_guid"], row[f"{end}_port"]], jobs[row["job"]]] if row["job"] in jobs else 0.0
            for end in "ab"
        )
        yield row | {
            column: _us(simulation.network.to_ns(float(each))) for column, each in zip(BUSY_COLUMNS, ticks, strict=True)
        }


def latency_rows(watch: Watch) -> Iterator[Row]:
    """Yield rows of `LATENCY_COLUMNS`: number of messages for each job and each non-empty bin of latencies."""
    for number, job in enumerate(watch.simulation.jobs):
        yield from _bin_rows(job.name, watch.histogram(number), "messages")


def operation_rows(watch: Watch) -> Iterator[Row]:
    """Yield rows of `OPERATION_COLUMNS`: operations of each collective in each non-empty bin of durations."""
    for number, job in enumerate(watch.simulation.jobs):
        if (counts := watch.operations(number)) is not None:
            yield from _bin_rows(job.name, counts, "operations")


def _bin_rows(job: str, counts: Counts, column: str) -> Iterator[Row]:
    for lower, upper, count in list_bins(counts):
        # Seven digits resolve the narrowest bin, which is 1/128 ns wide.
        yield {"job": job, "from_us": round(lower / 1000, 7), "to_us": round(upper / 1000, 7), column: count}


def client_rows(watch: Watch) -> Iterator[Row]:
    """Yield a row of `CLIENT_COLUMNS` for each client.

    `messages` and `mean_us` include only sampled messages to other hosts. `last_us` is the simulated time at which the
    client completed its limit of messages; None if it did not, or has no limit.
    """
    simulation = watch.simulation
    network, fabric = simulation.network, simulation.network.subnet.fabric
    messages, mean = watch.by_client()
    progress = simulation.look_at_clients()
    for client, (job, host) in enumerate(zip(simulation.job_of_client, simulation.host_of_client, strict=True)):
        node = int(fabric.port_node[network.host_port[host]])
        steps, limit = int(progress.steps[client]), simulation.jobs[job].limit
        yield {
            "job": simulation.jobs[job].name,
            "guid": f"0x{int(fabric.node_guid[node]):016x}",
            "name": fabric.node_name[node],
            "messages": int(messages[client]),
            "mean_us": _us(float(mean[client])),
            "steps": steps,
            "bytes": int(progress.bytes[client]),
            "last_us": _us(network.to_ns(int(progress.last[client]))) if 0 < limit <= steps else None,
        }


def time_rows(watch: Watch) -> Iterator[Row]:
    """Yield a row of `TIME_COLUMNS` for each job and each slice of time."""
    for number, job in enumerate(watch.simulation.jobs):
        over = watch.over_time(number)
        for begin, messages, mean in zip(over.begin_ns.tolist(), over.messages.tolist(), over.mean_ns, strict=True):
            yield {
                "job": job.name,
                "from_us": _us(begin),
                "to_us": _us(begin + over.width_ns),
                "messages": messages,
                "mean_us": _us(float(mean)),
            }


def queue_rows(watch: Watch) -> Iterator[Row]:
    """Yield a row of `QUEUE_COLUMNS` for each observation of each link direction in `find_fullest`."""
    fabric, queues = watch.simulation.network.subnet.fabric, watch.queues()
    for end in find_fullest(queues, _FULLEST):
        node, port = int(fabric.link_node[end // 2, end % 2]), int(fabric.link_port[end // 2, end % 2])
        where = {"guid": f"0x{int(fabric.node_guid[node]):016x}", "name": fabric.node_name[node], "port": port}
        for time, size in zip(queues.time_ns.tolist(), queues.bytes[:, end].tolist(), strict=True):
            yield {"time_us": _us(time), **where, "bytes": size}


def find_fullest(queues: Queues, most: int) -> list[int]:
    """Return at most `most` link directions that had queues, sorted by mean queue, the longest first."""
    if not len(queues.time_ns):
        return []
    mean = queues.bytes.mean(axis=0)
    fullest = np.argsort(-mean, kind="stable")[:most]
    return [int(end) for end in fullest[mean[fullest] > 0]]


def name_end(simulation: Simulation, end: int) -> str:
    """Return a name of a link direction for users: sending node, its port, receiving node."""
    fabric = simulation.network.subnet.fabric
    node, other = fabric.link_node[end // 2, end % 2], fabric.link_node[end // 2, 1 - end % 2]
    return f"{fabric.node_name[node]}:{int(fabric.link_port[end // 2, end % 2])} > {fabric.node_name[other]}"


def _us(ns: float) -> float | None:
    return None if math.isnan(ns) else round(ns / 1000, 4)
