# SPDX-License-Identifier: Apache-2.0
"""Jobs and their hosts: MPI pairs, I/O clients and servers, collectives, recorded runs; and where each is placed.

Source: K. A. Brown, "Resource Contention due to Data Movement on HPC Systems", doctoral thesis, Tokyo Institute of
Technology, 2018, chapters 5 and 6.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.routing.indexed_network import NONE
from ibprof_converter.simulation.engine.packet_engine import NOBODY, Client, Job, Step
from ibprof_converter.simulation.engine.simulated_network import SimulatedNetwork
from ibprof_converter.simulation.workload import collective_schedules
from ibprof_converter.simulation.workload.recorded_messages import Recorded, load_messages, steps_of

Ints = npt.NDArray[np.int64]


class JobPlacement(str, Enum):
    """How compute hosts are assigned to jobs."""

    RANDOM_NODE = "random-node"
    RANDOM_SWITCH = "random-switch"


class ServerPlacement(str, Enum):
    """Where I/O servers are."""

    ISOLATED = "isolated"
    SPREAD = "spread"
    RANDOM = "random"


class Role(str, Enum):
    """The task of a job's clients.

    PAIRS: each exchanges messages with a random partner. IO: each writes to (or reads from) all servers in
    turn, beginning with a random one. PROFILE: each rank of a recorded run sends what it sent. RING: each sends
    to its neighbour. The others are collectives, message by message.
    """

    PAIRS = "pairs"
    IO = "io"
    PROFILE = "profile"
    RING = "ring"
    ALL_TO_ALL = "all-to-all"
    ALL_GATHER = "allgather"
    ALL_REDUCE = "allreduce"
    BROADCAST = "bcast"
    BARRIER = "barrier"


MPI, IO = "mpi", "io"
"""Names of the two jobs whose interference is asked for."""

SCHEDULES: dict[Role, collective_schedules.Schedule] = {
    Role.RING: collective_schedules.send_to_neighbour,
    Role.ALL_TO_ALL: collective_schedules.all_to_all,
    Role.ALL_GATHER: collective_schedules.all_gather,
    Role.ALL_REDUCE: collective_schedules.all_reduce,
    Role.BROADCAST: collective_schedules.broadcast,
    Role.BARRIER: collective_schedules.barrier,
}


@dataclass(frozen=True, slots=True)
class Workload:
    """A job's part of the machine and its traffic. Times in ns.

    Attributes:
        name: of the job.
        role: what its clients do.
        bytes: of a message or request; not of a profile's, which has its own.
        interval_ns: from completion to the next start; of a collective from its end to the next. A profile without one
            goes by its time line.
        window_ns: from start to start at least (a throttle); 0 for none.
        jitter: part by which both vary, evenly; times of a time line do not.
        share: of the compute hosts.
        limit: messages of a client; 0 for no end.
        reads: bytes of a request that is answered with `bytes`; 0 for writes.
        profile: a profile or recording, for the role of that name.
        hosts: numbers of those that it is on, of a profile one for each host of the run; none: they are sampled.
    """

    name: str
    role: Role
    bytes: int
    interval_ns: float = 0.0
    window_ns: float = 0.0
    jitter: float = 0.05
    share: float = 0.5
    limit: int = 0
    reads: int = 0
    profile: str = ""
    hosts: tuple[int, ...] = ()

    @property
    def follows_time_line(self) -> bool:
        """Return whether messages begin when they began in a recorded run."""
        return self.role is Role.PROFILE and not self.interval_ns


@dataclass(frozen=True, slots=True)
class Seats:
    """Hosts by what they are used for.

    Attributes:
        servers: int64 [server], hosts.
        jobs: int64 [client] hosts of each job; a host is in one at most.
    """

    servers: Ints
    jobs: tuple[Ints, ...]


def order_leaves(network: SimulatedNetwork) -> list[Ints]:
    """Return the hosts of each leaf by port, leaves from left to right as they are laid out (pods together)."""
    layout = lay_out([network.subnet.fabric])[0]
    fabric = network.subnet.fabric
    host_node = fabric.port_node[network.host_port]
    leaves = np.unique(network.host_leaf)
    switch_node = np.full(network.switches, NONE, np.int64)
    for switch, ends in enumerate(network.port_end):
        wired = ends[ends != NONE]
        if len(wired):
            switch_node[switch] = fabric.link_node[wired[0] // 2, wired[0] % 2]
    by_place = sorted(leaves.tolist(), key=lambda leaf: (float(layout.x[switch_node[leaf]]), leaf))
    port = network.egress[network.host_leaf, np.arange(network.hosts)]
    return [
        np.array(sorted(np.flatnonzero(network.host_leaf == leaf), key=lambda host: (port[host], host_node[host])), int)
        for leaf in by_place
    ]


_NEEDED = dict.fromkeys((Role.PAIRS, *SCHEDULES), 2)
"""Hosts that a role takes at least, where it is not one."""


def seat(
    network: SimulatedNetwork,
    workloads: Sequence[Workload],
    servers: int,
    server_placement: ServerPlacement,
    job_placement: JobPlacement,
    random: np.random.Generator,
    server_hosts: Sequence[int] = (),
) -> Seats:
    """Return hosts to servers, and to jobs: those that are named, and of the others their shares.

    Raises:
        InconsistentError: there are not enough hosts, or one is named twice.
    """
    leaves = order_leaves(network)
    if sum(workload.share for workload in workloads) > 1 + 1e-9:
        raise InconsistentError("the jobs' shares of the hosts add up to more than 1")
    named = [host for workload in workloads for host in workload.hosts]
    if len({*named, *server_hosts}) < len(named) + len(server_hosts):
        raise InconsistentError("a named host has more than one use")
    at_servers = seat_servers(network, servers, server_placement, random, server_hosts, named)
    free = [leaf[~np.isin(leaf, [*at_servers, *named])] for leaf in leaves]
    compute = network.hosts - len(at_servers)
    if job_placement is JobPlacement.RANDOM_SWITCH:
        order = np.concatenate([free[leaf] for leaf in random.permutation(len(free))])
    else:
        order = random.permutation(np.concatenate(free))
    seats, begin = [], 0
    for workload in workloads:
        # Two halves of an odd number are rounded up to more than there are.
        count = len(workload.hosts) or min(round(workload.share * compute), len(order) - begin)
        needed = _NEEDED.get(workload.role, 1)
        if workload.role is Role.PAIRS:
            if len(workload.hosts) % 2:
                raise InconsistentError(f"job {workload.name}: {count} hosts are not pairs")
            count -= count % 2
        elif workload.role is Role.PROFILE:
            needed = int(load_recorded(workload).host.max()) + 1
        if count < needed:
            of = "" if workload.hosts else f"its share of {compute} hosts is too small for its role: "
            raise InconsistentError(f"job {workload.name}: {of}{count} of {needed}")
        if workload.hosts:
            seats.append(np.array(workload.hosts, np.int64))
            continue
        if workload.role is Role.PROFILE:
            count = needed
        seats.append(order[begin : begin + count].astype(np.int64))
        begin += count
    return Seats(at_servers, tuple(seats))


def seat_servers(
    network: SimulatedNetwork,
    servers: int,
    placement: ServerPlacement,
    random: np.random.Generator,
    named: Sequence[int] = (),
    taken: Sequence[int] = (),
) -> Ints:
    """Return the hosts of the I/O servers: those that are named, or else the first that `seat` draws.

    Args:
        network: the hosts.
        servers: how many.
        placement: where those are that are not named.
        random: draws.
        named: all of them, or none.
        taken: hosts that are named for jobs.

    Raises:
        InconsistentError: there are not enough hosts.
    """
    if named:
        return np.array(named, np.int64)
    if not 0 <= servers < network.hosts:
        raise InconsistentError(f"expected fewer than {network.hosts} servers, one a host, found {servers}")
    if servers > network.hosts - len(taken):
        raise InconsistentError(f"{servers} servers are more than the {network.hosts - len(taken)} hosts of no job")
    leaves = [free for leaf in order_leaves(network) if len(free := leaf[~np.isin(leaf, taken)])]
    if not leaves:
        return np.zeros(0, np.int64)
    if placement is ServerPlacement.RANDOM:
        return random.permutation(np.concatenate(leaves))[:servers].astype(np.int64)
    if placement is ServerPlacement.SPREAD:
        # The last port of every leaf first, then the one before it.
        depth = max(len(leaf) for leaf in leaves)
        turns = [leaf[-1 - turn] for turn in range(depth) for leaf in leaves if turn < len(leaf)]
        return np.array(turns[:servers], np.int64)
    # Whole leaves, spread evenly: the last leaf of each part of the machine.
    needed = 1
    while True:
        chosen = [leaves[(part + 1) * len(leaves) // needed - 1] for part in range(needed)]
        hosts = np.concatenate(chosen)
        if len(hosts) >= servers or needed == len(leaves):
            return hosts[:servers].astype(np.int64)
        needed += 1


def make_clients(
    network: SimulatedNetwork,
    workloads: Sequence[Workload],
    seats: Seats,
    sampled: Sequence[str],
    seed: int,
) -> tuple[list[Job], list[Client]]:
    """Turn workloads into what the engine runs; starts are sampled within one interval and one message's time.

    Ranks of a collective start together. Where one only receives from those before it, a lag at the start would stay.

    What is sampled for a job depends on the seed and its name alone, so that it does the same with and without others.

    Raises:
        InconsistentError: an I/O job has no servers.
    """
    jobs: list[Job] = []
    clients: list[Client] = []
    for number, (workload, hosts) in enumerate(zip(workloads, seats.jobs, strict=True)):
        jobs.append(
            Job(
                name=workload.name,
                interval=network.ticks(workload.interval_ns),
                window=network.ticks(workload.window_ns),
                # What ranks sent together is sent together; and a collective that one of them begins late is late.
                jitter=0.0 if workload.follows_time_line else workload.jitter,
                collective=workload.role in SCHEDULES,
                limit=workload.limit,
                round=_round_of(workload, network),
                sampled=workload.name in sampled,
                reads=workload.reads,
            )
        )
        random = np.random.default_rng([seed, zlib.crc32(workload.name.encode())])
        gbps = 8 / (float(network.end_byte_ticks.min()) / 2**32 * network.tick_ns)
        spread_ns = max(workload.interval_ns, workload.window_ns) + workload.bytes * 8 / gbps + 1000
        starts = random.integers(network.ticks(spread_ns), size=len(hosts))
        clients += _clients_of(network, workload, number, hosts, starts, seats.servers, len(clients), random)
    return jobs, clients


def _clients_of(
    network: SimulatedNetwork,
    workload: Workload,
    job: int,
    hosts: Ints,
    starts: Ints,
    servers: Ints,
    first: int,
    random: np.random.Generator,
) -> list[Client]:
    count = len(hosts)
    if workload.role is Role.IO:
        if not len(servers):
            raise InconsistentError(f"job {workload.name} needs servers, and there are none")
        steps = [Step(int(server), workload.bytes) for server in servers]
        begins = random.integers(len(steps), size=count)
        return [
            Client(int(host), job, steps, next=int(begin), start=int(start))
            for host, begin, start in zip(hosts, begins, starts, strict=True)
        ]
    if workload.role is Role.PAIRS:
        order = random.permutation(count)
        partner = np.empty(count, np.int64)
        partner[order[::2]], partner[order[1::2]] = order[1::2], order[::2]
        return [
            Client(int(hosts[i]), job, [Step(int(hosts[partner[i]]), workload.bytes)], start=int(starts[i]))
            for i in range(count)
        ]
    if workload.role is Role.PROFILE:
        return _replay(network, workload, job, hosts, starts)
    return _clients_of_collective(workload, job, hosts, int(starts[0]), first, network.ticks(workload.interval_ns))


def _clients_of_collective(
    workload: Workload, job: int, hosts: Ints, start: int, first: int, interval: int
) -> list[Client]:
    count = len(hosts)
    parts = [SCHEDULES[workload.role](rank, count, workload.bytes) for rank in range(count)]
    # Who sends nothing is no client: the leaves of a broadcast's tree.
    acts = np.array([len(part.steps) > 0 for part in parts])
    client = np.where(acts, first + np.cumsum(acts) - 1, NOBODY)
    clients = []
    for rank in np.flatnonzero(acts):
        steps = parts[rank].steps
        to = steps["client"]
        steps["host"], steps["client"] = hosts[to], client[to]
        steps["pause"][0] = interval
        clients.append(Client(int(hosts[rank]), job, steps, arrivals=parts[rank].arrivals, start=start))
    return clients


def load_recorded(workload: Workload) -> Recorded:
    """Return the messages of a job that is a recorded run.

    Raises:
        InputError: it is no profile.
        InconsistentError: none is named, or it has no messages, or no times where it goes by them.
    """
    if not workload.profile:
        raise InconsistentError(f"job {workload.name}: a profile is needed")
    return load_messages(Path(workload.profile), with_times=workload.follows_time_line)


def _round_of(workload: Workload, network: SimulatedNetwork) -> int:
    return max(network.ticks(load_recorded(workload).duration_ns), 1) if workload.follows_time_line else 0


def digest_messages(workload: Workload) -> str:
    """Return a name for what a profile's ranks send, so that a profile that was recorded anew is another."""
    recorded = load_recorded(workload)
    digest = hashlib.sha256(repr((recorded.duration_ns, recorded.one_of)).encode())
    for array in (recorded.host, recorded.source, recorded.destination, recorded.bytes, recorded.begin_ns):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _replay(network: SimulatedNetwork, workload: Workload, job: int, hosts: Ints, starts: Ints) -> list[Client]:
    recorded = load_recorded(workload)
    host = hosts[recorded.host]
    clients = []
    for rank in range(len(host)):
        steps = steps_of(recorded, rank, network.ticks(workload.interval_ns), network.tick_ns)
        if not len(steps):
            continue
        steps["host"] = host[steps["host"]]
        start = int(steps["window"][0]) if workload.follows_time_line else int(starts[recorded.host[rank]])
        clients.append(Client(int(host[rank]), job, steps, start=start))
    return clients
