# SPDX-License-Identifier: Apache-2.0
"""The hosts of I/O servers and of each job.

Source: K. A. Brown, "Resource Contention due to Data Movement on HPC Systems", doctoral thesis, Tokyo Institute of
Technology, 2018, chapters 5 and 6.
"""

from __future__ import annotations

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
from ibprof_lab.simulation.engine.simulated_network import SimulatedNetwork
from ibprof_lab.simulation.workload.goal_trace import load_goal
from ibprof_lab.simulation.workload.workloads import SCHEDULES, Role, Workload, load_recorded

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HostAssignment:
    """Hosts by use.

    Attributes:
        servers: int64 [server], hosts of the servers.
        jobs: int64 [client], hosts of each job; no host is in two jobs.
    """

    servers: Ints
    jobs: tuple[Ints, ...]


def order_leaves(network: SimulatedNetwork) -> list[Ints]:
    """Return the hosts of each leaf by port; leaves in drawing order (pods together), or in file order."""
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
"""Smallest number of hosts of a role, if it is not one."""


def assign_hosts(
    network: SimulatedNetwork,
    workloads: Sequence[Workload],
    servers: int,
    server_placement: ServerPlacement,
    job_placement: JobPlacement,
    random: np.random.Generator,
    server_hosts: Sequence[int] = (),
) -> HostAssignment:
    """Assign named hosts to servers and jobs, and to each other job its share of the remaining hosts.

    Raises:
        InconsistentError: there are not enough hosts, or a host is named twice.
    """
    leaves = order_leaves(network)
    if sum(workload.share for workload in workloads) > 1 + 1e-9:
        raise InconsistentError("the jobs' shares of the hosts add up to more than 1")
    named = [host for workload in workloads for host in workload.hosts]
    if len({*named, *server_hosts}) < len(named) + len(server_hosts):
        raise InconsistentError("a named host has more than one use")
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
            raise InconsistentError(f"job {name}: it needs {size} hosts, and {left} are free of {compute}")
    assigned, begin = [], 0
    for number, workload in enumerate(workloads):
        # Jobs with a share leave the minimum for the others.
        left = len(order) - begin - sum(sized[number + 1 :])
        count = _count_hosts(workload, sizes[number], compute, left)
        if workload.hosts:
            assigned.append(np.array(workload.hosts, np.int64))
            continue
        assigned.append(order[begin : begin + count].astype(np.int64))
        begin += count
    return HostAssignment(at_servers, tuple(assigned))


def _find_size(workload: Workload) -> int | None:
    """Return the number of hosts of a recorded or traced run; None for other jobs."""
    if workload.is_recorded:
        return int(load_recorded(workload).host.max()) + 1
    return load_goal(Path(workload.profile)).ranks if workload.role is Role.GOAL else None


def _count_hosts(workload: Workload, size: int | None, compute: int, left: int) -> int:
    """Return the number of hosts for a job, out of `compute` hosts for all jobs and `left` free hosts.

    Raises:
        InconsistentError: there are too few hosts for the job's role or size, or an odd number for pairs.
    """
    if size is not None:
        if workload.role is Role.GOAL and workload.hosts and len(workload.hosts) != size:
            raise InconsistentError(f"job {workload.name}: {len(workload.hosts)} hosts for {size} ranks")
        if workload.hosts and not workload.adapters and len(workload.hosts) < size:
            raise InconsistentError(f"job {workload.name}: {len(workload.hosts)} of {size}")
        return size
    # Two halves of an odd number, rounded up, exceed the number.
    count = len(workload.hosts) or min(round(workload.share * compute), left)
    needed = _NEEDED.get(workload.role, 1)
    if workload.role is Role.PAIRS:
        if len(workload.hosts) % 2:
            raise InconsistentError(f"job {workload.name}: {count_of(count, 'host')} are not pairs")
        count -= count % 2
    if count < needed:
        of = "" if workload.hosts else f"its share of {compute} hosts is too small for its role: "
        raise InconsistentError(f"job {workload.name}: {of}{count} of {needed}")
    return count


def choose_servers(
    network: SimulatedNetwork,
    servers: int,
    placement: ServerPlacement,
    random: np.random.Generator,
    named: Sequence[int] = (),
    taken: Sequence[int] = (),
) -> Ints:
    """Return the hosts of the I/O servers: the named hosts, or the first ones that `assign_hosts` samples.

    Args:
        servers: number of servers.
        placement: placement of servers without names.
        random: random generator.
        named: hosts of all servers, or empty.
        taken: hosts named for jobs.

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
        # The last port of every leaf first, then the port before it.
        depth = max(len(leaf) for leaf in leaves)
        turns = [leaf[-1 - turn] for turn in range(depth) for leaf in leaves if turn < len(leaf)]
        return np.array(turns[:servers], np.int64)
    # Whole leaves, evenly spread: the last leaf of each part of the machine.
    needed = 1
    while True:
        chosen = [leaves[(part + 1) * len(leaves) // needed - 1] for part in range(needed)]
        hosts = np.concatenate(chosen)
        if len(hosts) >= servers or needed == len(leaves):
            return hosts[:servers].astype(np.int64)
        needed += 1
