# SPDX-License-Identifier: Apache-2.0
"""Running one simulation of a study, from its description to its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_lab.simulation.engine.packet_engine import Client, Simulation, Stop
from ibprof_lab.simulation.engine.simulated_network import SimulatedNetwork
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.study.cell import Cell, Outcome
from ibprof_lab.simulation.study.loaded_fabric import load_network, refuse_adaptive_routing
from ibprof_lab.simulation.workload.host_assignment import HostAssignment, assign_hosts
from ibprof_lab.simulation.workload.job_clients import make_clients
from ibprof_lab.simulation.workload.workloads import Workload

_MOST_TICKS = float(1 << 53)
"""Ticks that a message and the time to the next one may take: 64-bit counters hold 2,000 times as many."""

_CHUNK_NS = 5e6


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cell's simulation before its first tick.

    Attributes:
        simulation: of its running jobs.
        clients: of its running jobs.
        measured: bool [client], those of the measured job.
        starts: int64 [client], ticks.
    """

    simulation: Simulation
    clients: Sequence[Client]
    measured: npt.NDArray[np.bool_]
    starts: npt.NDArray[np.int64]


def refuse_long_times(network: SimulatedNetwork, workload: Workload) -> None:
    """Refuse what the engine's clock would come round with.

    Raises:
        InconsistentError: a message, its interval and window take too many ticks.
    """
    ticks = (workload.interval_ns + workload.window_ns) / network.tick_ns
    ticks += workload.bytes * float(network.end_byte_ticks.max()) / 2**32
    if ticks > _MOST_TICKS:
        raise InconsistentError(
            f"job {workload.name}: a message, its interval and window take {ticks:.1e} ticks of {network.tick_ns:g} "
            f"ns, more than {_MOST_TICKS:.1e}"
        )


def find_assignment(cell: Cell) -> HostAssignment:
    """Return the hosts of a cell's servers, and those of each of its jobs.

    Raises:
        InputError: the fabric cannot be read.
        InconsistentError: the jobs do not fit on it.
    """
    setting = cell.setting
    return assign_hosts(
        load_network(setting.network, setting.hardware)[1],
        cell.workloads,
        setting.servers,
        setting.server_placement,
        setting.job_placement,
        np.random.default_rng(cell.seed),
        setting.server_hosts,
    )


def set_up(cell: Cell, sampled: Sequence[str] = (), skip_hops: bool = False) -> Prepared:
    """Make a cell's simulation.

    Args:
        cell: that is run.
        sampled: names of jobs whose messages are looked at, in addition to those of the measured job.
        skip_hops: loads of link directions are not wanted, so that packets may skip hops.

    Raises:
        InputError: the fabric cannot be read.
        InconsistentError: the jobs do not fit on it, or their times are too long, or its routes deadlock.
    """
    setting = cell.setting
    _, network, lanes = load_network(setting.network, setting.hardware)
    for each in cell.workloads:
        refuse_long_times(network, each)
    if setting.adaptive:
        refuse_adaptive_routing(setting.network)
    assigned = find_assignment(cell)
    chosen = [number for number, each in enumerate(cell.workloads) if each.name in cell.running]
    kept = HostAssignment(assigned.servers, tuple(assigned.jobs[number] for number in chosen))
    workloads = [cell.workloads[number] for number in chosen]
    jobs, clients = make_clients(network, workloads, kept, (cell.measured, *sampled), cell.seed)
    return Prepared(
        simulation=Simulation(network, jobs, clients, cell.seed, setting.adaptive, lanes, skip_hops),
        clients=clients,
        measured=np.array([jobs[client.job].name == cell.measured for client in clients]),
        starts=np.array([client.start for client in clients], np.int64),
    )


def run_cell(cell: Cell) -> Outcome:
    """Simulate: until the latency is known, and on until the clients that are to end have ended."""
    begin = time.process_time()
    prepared = set_up(cell, skip_hops=True)
    simulation = prepared.simulation
    latency = measure(simulation, prepared.measured, cell.setting.effort, whole=cell.is_measured_whole)
    chunk, hops = simulation.network.ticks(_CHUNK_NS), cell.setting.effort.hops
    run_to_limits(simulation, hops, lambda now: simulation.run(now + chunk, hops))
    return Outcome(
        key=cell.key,
        latency=latency,
        packet_hops=simulation.state.packet_hops,
        cpu_seconds=time.process_time() - begin,
        whole_ns=_find_whole_times(prepared),
    )


def run_to_limits(simulation: Simulation, hops: float, go_on: Callable[[int], object]) -> None:
    """Continue until the clients with a limit have ended, or up to a number of packet hops.

    Args:
        simulation: as it is now.
        hops: packet hops after which it is given up.
        go_on: for a while, from a tick.
    """
    limit = _limit_clients(simulation)
    while (simulation.look_at_clients().steps < limit).any():
        state = simulation.state
        if state.stop in {Stop.DONE, Stop.DEADLOCK} or state.packet_hops >= hops:
            break
        go_on(state.now)


def _limit_clients(simulation: Simulation) -> npt.NDArray[np.uint64]:
    return np.array([job.limit for job in simulation.jobs], np.uint64)[simulation.job_of_client]


def _find_whole_times(prepared: Prepared) -> dict[str, list[float]]:
    """Return the time of each client from its first start, of jobs all of whose clients have ended."""
    simulation = prepared.simulation
    progress, limit = simulation.look_at_clients(), _limit_clients(simulation)
    whole = {}
    for number, job in enumerate(simulation.jobs):
        of_job = simulation.job_of_client == number
        if limit[of_job].any() and (progress.steps[of_job] >= limit[of_job]).all():
            ticks = progress.last[of_job].astype(np.int64) - prepared.starts[of_job]
            whole[job.name] = [round(simulation.network.to_ns(each), 1) for each in ticks.tolist()]
    return whole
