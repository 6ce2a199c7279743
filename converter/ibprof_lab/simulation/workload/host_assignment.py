# SPDX-License-Identifier: Apache-2.0
"""The choice of hosts for I/O servers and for each job, and the engine's clients on these hosts.

Source: K. A. Brown, "Resource Contention due to Data Movement on HPC Systems", doctoral thesis, Tokyo Institute of
Technology, 2018, chapters 5 and 6.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.text.quantities import count_of
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.routing.subnet_routes import NONE
from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.packet_engine import NOBODY, Client, Job, Step
from ibprof_lab.simulation.engine.simulated_network import SimulatedNetwork
from ibprof_lab.simulation.workload.goal_trace import load_goal
from ibprof_lab.simulation.workload.recorded_messages import steps_of
from ibprof_lab.simulation.workload.workloads import SCHEDULES, Role, Workload, load_recorded, load_steps

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HostAssignment:
    """Indices of the hosts of servers and jobs.

    Attributes:
        servers: int64 [server], host of each server.
        jobs: for each job, int64 [host of the job]; no host is in two jobs.
    """

    servers: Ints
    jobs: tuple[Ints, ...]


def order_leaves(network: SimulatedNetwork) -> list[Ints]:
    """Return the hosts of each leaf switch, sorted by port.

    Leaf switches are ordered by pod, as in drawings of the fabric. If the fabric has no levels, the order is the
    file's.
    """
    layout = lay_out([network.subnet.fabric])[0]
    fabric = network.subnet.fabric
    host_node = fabric.port_node[network.host_port]
    leaves = np.unique(network.host_leaf)
    switch_node = np.full(network.switches, NONE, np.int64)
    for switch, ends in enumerate(network.port_end):
        wired = ends[ends != NONE]
        if len(wired):
            switch_node[switch] = fabric.link_node[wired[0] // 2, wired[0] % 2]
    place = layout.x[switch_node[leaves]] if layout.has_levels else np.zeros(len(leaves))
    by_place = leaves[np.lexsort((leaves, place))].tolist()
    port = network.egress[network.host_leaf, np.arange(network.hosts)]
    return [
        np.array(sorted(np.flatnonzero(network.host_leaf == leaf), key=lambda host: (port[host], host_node[host])), int)
        for leaf in by_place
    ]


_NEEDED = dict.fromkeys((Role.PAIRS, *SCHEDULES), 2)
"""Role -> smallest number of hosts of a job with this role; 1 for other roles."""


def assign_hosts(
    network: SimulatedNetwork,
    workloads: Sequence[Workload],
    servers: int,
    server_placement: ServerPlacement,
    job_placement: JobPlacement,
    random: np.random.Generator,
    server_hosts: Sequence[int] = (),
) -> HostAssignment:
    """Assign hosts to servers and jobs. A job without fixed hosts gets free hosts; their number is the job's share of
    all hosts without a server.

    Raises:
        InconsistentError: there are not enough hosts, or a host has two uses.
    """
    leaves = order_leaves(network)
    if sum(workload.share for workload in workloads) > 1 + 1e-9:
        raise InconsistentError("the jobs' shares of the hosts add up to more than 1")
    named = [host for workload in workloads for host in workload.hosts]
    if len({*named, *server_hosts}) < len(named) + len(server_hosts):
        raise InconsistentError("a host is named more than once among the jobs and servers")
    at_servers = choose_servers(network, servers, server_placement, random, server_hosts, named)
    free = [leaf[~np.isin(leaf, [*at_servers, *named])] for leaf in leaves]
    compute = network.hosts - len(at_servers)
    if job_placement is JobPlacement.RANDOM_SWITCH:
        order = np.concatenate([free[leaf] for leaf in random.permutation(len(free))])
    else:
        order = random.permutation(np.concatenate(free))
    sizes = [_find_size(each) for each in workloads]
    sized = [0 if each.hosts else size or 0 for each, size in zip(workloads, sizes, strict=True)]
    for number, size in enumerate(sized):
        if size > (left := len(order) - sum(sized[:number])):
            name = workloads[number].name
            raise InconsistentError(f"job {name} needs {size} hosts, but {left} of {compute} hosts are free")
    assigned, begin = [], 0
    for number, workload in enumerate(workloads):
        # Keep enough hosts free for the recorded and traced runs among the later jobs.
        left = len(order) - begin - sum(sized[number + 1 :])
        count = _count_hosts(workload, sizes[number], compute, left)
        if workload.hosts:
            assigned.append(np.array(workload.hosts, np.int64))
            continue
        assigned.append(order[begin : begin + count].astype(np.int64))
        begin += count
    return HostAssignment(at_servers, tuple(assigned))


def _find_size(workload: Workload) -> int | None:
    """Return the number of hosts that a recorded or traced run needs; None for other jobs."""
    if workload.is_recorded:
        return int(load_recorded(workload).host.max()) + 1
    return load_goal(Path(workload.profile)).ranks if workload.role is Role.GOAL else None


def _count_hosts(workload: Workload, size: int | None, compute: int, left: int) -> int:
    """Return the number of hosts for a job. `compute`: number of hosts without a server. `left`: number of free hosts.

    Raises:
        InconsistentError: the number of hosts is too small for the job, or odd for the role PAIRS.
    """
    if size is not None:
        if workload.role is Role.GOAL and workload.hosts and len(workload.hosts) != size:
            raise InconsistentError(
                f"job {workload.name}: expected {size} hosts, one per rank, found {len(workload.hosts)}"
            )
        if workload.hosts and not workload.adapters and len(workload.hosts) < size:
            raise InconsistentError(f"job {workload.name}: expected {size} hosts or more, found {len(workload.hosts)}")
        return size
    # Two shares of 1/2 of an odd number of hosts can both be rounded up, so that the second one exceeds `left`.
    count = len(workload.hosts) or min(round(workload.share * compute), left)
    needed = _NEEDED.get(workload.role, 1)
    if workload.role is Role.PAIRS:
        if len(workload.hosts) % 2:
            raise InconsistentError(f"job {workload.name}: expected pairs of hosts, found {count_of(count, 'host')}")
        count -= count % 2
    if count < needed:
        of = "" if workload.hosts else f"its share of {compute} hosts is too small for its role: "
        raise InconsistentError(f"job {workload.name}: {of}expected at least {count_of(needed, 'host')}, found {count}")
    return count


def choose_servers(
    network: SimulatedNetwork,
    servers: int,
    placement: ServerPlacement,
    random: np.random.Generator,
    named: Sequence[int] = (),
    taken: Sequence[int] = (),
) -> Ints:
    """Return the hosts of the I/O servers, int64 [server]: `named`, or hosts chosen by `placement`.

    Args:
        servers: number of servers.
        placement: placement of servers if `named` is empty.
        random: random generator for `RANDOM`.
        named: hosts of all servers; empty to choose hosts.
        taken: fixed hosts of jobs, which are not chosen.

    Raises:
        InconsistentError: there are not enough hosts.
    """
    if named:
        return np.array(named, np.int64)
    if not 0 <= servers < network.hosts:
        raise InconsistentError(f"expected fewer than {network.hosts} servers, one per host, found {servers}")
    if servers > network.hosts - len(taken):
        raise InconsistentError(
            f"{servers} servers need more than the {network.hosts - len(taken)} hosts without a job"
        )
    leaves = [free for leaf in order_leaves(network) if len(free := leaf[~np.isin(leaf, taken)])]
    if not leaves:
        return np.zeros(0, np.int64)
    if placement is ServerPlacement.RANDOM:
        return random.permutation(np.concatenate(leaves))[:servers].astype(np.int64)
    if placement is ServerPlacement.SPREAD:
        # Take the hosts on the last ports of all leaf switches, then the hosts on the last ports but one, and so on.
        depth = max(len(leaf) for leaf in leaves)
        turns = [leaf[-1 - turn] for turn in range(depth) for leaf in leaves if turn < len(leaf)]
        return np.array(turns[:servers], np.int64)
    # Divide the leaf switches into `needed` equal parts; take all hosts of the last leaf switch of each part.
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
    assigned: HostAssignment,
    sampled: Sequence[str],
    seed: int,
) -> tuple[list[Job], list[Client]]:
    """Return jobs and clients for the packet engine.

    Each client starts at a random time between 0 and about an interval plus the time of a message. All ranks of a
    collective start at the same time, since a rank that starts late could stay late forever. A job's random values
    depend only on the seed and on the job's name, not on other jobs.

    Raises:
        InconsistentError: an I/O job has no servers.
    """
    jobs: list[Job] = []
    clients: list[Client] = []
    for number, (workload, hosts) in enumerate(zip(workloads, assigned.jobs, strict=True)):
        round_ticks = 0
        if workload.follows_time_line:
            round_ticks = max(network.ticks(load_recorded(workload).duration_ns), 1)
        jobs.append(
            Job(
                name=workload.name,
                interval=network.ticks(workload.interval_ns),
                window=network.ticks(workload.window_ns),
                # Time lines and programs get no jitter: jitter would separate messages sent together, or delay whole
                # collectives.
                jitter=0.0 if workload.follows_time_line or workload.is_program else workload.jitter,
                collective=workload.role in SCHEDULES or workload.is_program,
                limit=workload.limit,
                round=round_ticks,
                sampled=workload.name in sampled,
                reads=workload.reads,
            )
        )
        random = np.random.default_rng([seed, zlib.crc32(workload.name.encode())])
        gbps = 8 / (float(network.end_byte_ticks.min()) / 2**32 * network.tick_ns)
        spread_ns = max(workload.interval_ns, workload.window_ns) + workload.bytes * 8 / gbps + 1000
        starts = random.integers(max(network.ticks(spread_ns), 1), size=len(hosts))
        clients += _clients_of(network, workload, number, hosts, starts, assigned.servers, len(clients), random)
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
    if workload.is_program:
        return _run_program(network, workload, job, hosts, int(starts[0]), first)
    return _clients_of_collective(workload, job, hosts, int(starts[0]), first, network.ticks(workload.interval_ns))


def _clients_of_collective(
    workload: Workload, job: int, hosts: Ints, start: int, first: int, interval: int
) -> list[Client]:
    count = len(hosts)
    parts = [SCHEDULES[workload.role](rank, count, workload.bytes) for rank in range(count)]
    # A rank that sends no messages, for example a leaf of a broadcast's tree, is not a client.
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


def _run_program(
    network: SimulatedNetwork, workload: Workload, job: int, hosts: Ints, start: int, first: int
) -> list[Client]:
    program = load_steps(workload)
    machine, host = np.arange(program.ranks), hosts
    if workload.is_recorded:
        machine = load_recorded(workload).host
        host = hosts[_index_hosts(workload, machine)]
    clients = []
    for number, rank in enumerate(program.rank):
        steps = program.steps[number].copy()
        # A message between ranks of one recorded host stays on the sender's simulated host.
        steps["host"] = np.where(machine[steps["host"]] == machine[rank], host[rank], host[steps["host"]])
        steps["client"] = np.where(steps["client"] == NOBODY, NOBODY, first + steps["client"].astype(np.int64))
        steps["pause"] = np.rint(steps["pause"] / network.tick_ns)
        if number < program.ranks:
            steps["pause"][0] = network.ticks(workload.interval_ns)
        clients.append(Client(int(host[rank]), job, steps, arrivals=program.arrivals[number], start=start))
    return clients


def _index_hosts(workload: Workload, machine: Ints) -> Ints:
    """Return the index of each rank's host in the job's hosts. `machine`: index of each rank's recorded host."""
    return np.array(workload.adapters, np.int64) if workload.adapters else machine


def _replay(network: SimulatedNetwork, workload: Workload, job: int, hosts: Ints, starts: Ints) -> list[Client]:
    recorded = load_recorded(workload)
    index = _index_hosts(workload, recorded.host)
    host = hosts[index]
    clients = []
    for rank in range(len(host)):
        steps = steps_of(recorded, rank, network.ticks(workload.interval_ns), network.tick_ns)
        if not len(steps):
            continue
        # A message between ranks of one recorded host crosses no link, even if the ranks use different adapters.
        is_near = recorded.host[steps["host"]] == recorded.host[rank]
        steps["host"] = np.where(is_near, host[rank], host[steps["host"]])
        start = int(steps["window"][0]) if workload.follows_time_line else int(starts[index[rank]])
        clients.append(Client(int(host[rank]), job, steps, start=start))
    return clients
