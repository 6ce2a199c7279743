# SPDX-License-Identifier: Apache-2.0
"""Clients of each job for the packet engine: senders, receivers, messages and start times."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_lab.simulation.engine.packet_engine import NOBODY, Client, Job, Step
from ibprof_lab.simulation.engine.simulated_network import SimulatedNetwork
from ibprof_lab.simulation.workload.host_assignment import HostAssignment
from ibprof_lab.simulation.workload.recorded_messages import steps_of
from ibprof_lab.simulation.workload.workloads import SCHEDULES, Role, Workload, load_recorded, load_steps

Ints = npt.NDArray[np.int64]


def make_clients(
    network: SimulatedNetwork,
    workloads: Sequence[Workload],
    assigned: HostAssignment,
    sampled: Sequence[str],
    seed: int,
) -> tuple[list[Job], list[Client]]:
    """Return the engine's jobs and clients of workloads; starts are sampled within one interval and one message's time.

    Ranks of a collective start together. If a rank only receives from earlier ranks, a lag at the start would remain.

    Random values of a job depend only on the seed and the job's name, so that other jobs do not change them.

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
                # Messages that ranks sent together stay together, and a collective begins late if one rank begins late.
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
    # Ranks without messages are no clients: the leaves of a broadcast's tree.
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
        # As in `_replay`.
        steps["host"] = np.where(machine[steps["host"]] == machine[rank], host[rank], host[steps["host"]])
        steps["client"] = np.where(steps["client"] == NOBODY, NOBODY, first + steps["client"].astype(np.int64))
        steps["pause"] = np.rint(steps["pause"] / network.tick_ns)
        if number < program.ranks:
            steps["pause"][0] = network.ticks(workload.interval_ns)
        clients.append(Client(int(host[rank]), job, steps, arrivals=program.arrivals[number], start=start))
    return clients


def _index_hosts(workload: Workload, machine: Ints) -> Ints:
    """Return each rank's index of a recorded run's host, by the machine of the rank."""
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
        # Messages within a host of the run cross no link, for any adapters of the two ranks.
        is_near = recorded.host[steps["host"]] == recorded.host[rank]
        steps["host"] = np.where(is_near, host[rank], host[steps["host"]])
        start = int(steps["window"][0]) if workload.follows_time_line else int(starts[index[rank]])
        clients.append(Client(int(host[rank]), job, steps, start=start))
    return clients
