# SPDX-License-Identifier: Apache-2.0
"""One simulation of a study, from its description to its figures."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_converter.routing.subnet import Subnet, read_subnet
from ibprof_converter.simulation.engine.deadlock import assign_lanes, refuse_adaptive_deadlock
from ibprof_converter.simulation.engine.packet_engine import Client, Simulation, Stop
from ibprof_converter.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_converter.simulation.measure.latency_measurement import measure
from ibprof_converter.simulation.measure.message_latency import Effort, Latency
from ibprof_converter.simulation.workload.roles import (
    SCHEDULES,
    JobPlacement,
    Role,
    Seats,
    ServerPlacement,
    Workload,
    digest_messages,
    make_clients,
    seat,
)

MODEL = 3
"""Of the engine, the roles and the way of measuring: raised where the same cell gives other figures than before."""

_MOST_TICKS = float(1 << 53)
"""That a message and the time to the next one may take: 64 bits count them two thousand times over."""

_CHUNK_NS = 5e6


@dataclass(frozen=True, slots=True)
class Setting:
    """What the simulations of a study have in common.

    Attributes:
        fabric: a LST, or the name of a fabric that is made up.
        hardware: what the fabric does not say.
        adaptive: whether packets choose among shortest ways.
        servers, server_placement, job_placement: who sits where, but those whose hosts are named.
        server_hosts: numbers of the servers' hosts; none: they are drawn.
        effort: how long each is measured.
    """

    fabric: str
    hardware: Hardware = field(default_factory=Hardware)
    adaptive: bool = False
    servers: int = 72
    server_hosts: tuple[int, ...] = ()
    server_placement: ServerPlacement = ServerPlacement.ISOLATED
    job_placement: JobPlacement = JobPlacement.RANDOM_NODE
    effort: Effort = field(default_factory=Effort)


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulation.

    Attributes:
        setting: of it.
        workloads: all jobs that have seats, whether they run or not: so a job sits where it sits with the others.
        running: names of those that run.
        measured: the name of the one whose latency is wanted.
        seed: of seats, partners, starts, jitter.
        labels: what it stands for in its study.
    """

    setting: Setting
    workloads: tuple[Workload, ...]
    running: tuple[str, ...]
    measured: str
    seed: int
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def is_alone(self) -> bool:
        """Whether the measured job runs alone: a baseline."""
        return self.running == (self.measured,)

    @property
    def is_measured_whole(self) -> bool:
        """Whether all messages that the effort asks for are measured, also where their mean looks settled before.

        Ways that are chosen by queues fill them up slowly: means hold still for tens of messages, and go on to grow.
        Large messages of a recorded run are rare: means hold still before the first of them.
        """
        (measured,) = (each for each in self.workloads if each.name == self.measured)
        return self.setting.adaptive or (measured.role is Role.PROFILE and not measured.follows_time_line)

    def describe(self) -> dict[str, Any]:
        """Give all that the outcome depends on, as JSON has it; what is 0 or nothing is left out.

        Of a job that does not run, that is who it is and how many seats it holds: so baselines are shared.
        """
        jobs = [_describe_workload(each, each.name in self.running) for each in self.workloads]
        setting = asdict(self.setting)
        del setting["fabric"]  # a path, which says nothing of what is there
        whole = {
            "model": MODEL,
            **setting,
            "network": digest_network(self.setting.fabric),
            "jobs": jobs,
            "running": self.running,
            "measured": self.measured,
            "seed": self.seed,
        }
        described: dict[str, Any] = _leave_out_nothing(whole)
        return described

    @property
    def key(self) -> str:
        """A name that is the same for the same simulation."""
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def _describe_workload(workload: Workload, runs: bool) -> dict[str, Any]:
    described = asdict(workload)
    if workload.profile:
        described["profile"] = digest_messages(workload)  # as with the fabric, what is there counts
    # What differs from earlier versions for these roles alone has its place here: a new `MODEL` would be for all.
    if workload.follows_time_line:
        described["jitter"] = 0.0
    if workload.role is Role.PROFILE:
        described["measured"] = "whole"  # rounds of a time line; else all messages that the effort asks for
    if workload.role in SCHEDULES:
        described["starts"] = "together"
        described["pauses"] = "alike"
    return described if runs else {name: described[name] for name in ("name", "role", "share", "profile", "hosts")}


def _leave_out_nothing(value: Any) -> Any:
    """So a description stays what it was when a new property is off."""
    if isinstance(value, dict):
        return {name: _leave_out_nothing(each) for name, each in value.items() if each}
    if isinstance(value, (list, tuple)):
        return [_leave_out_nothing(each) for each in value]
    return value.value if isinstance(value, Enum) else value


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation gave.

    Attributes:
        key: of the cell.
        latency: of the measured job.
        packet_hops, cpu_seconds: what it took.
        whole_ns: for each running job whose clients end, how long each client took for all of its messages.
    """

    key: str
    latency: Latency
    packet_hops: int
    cpu_seconds: float
    whole_ns: dict[str, list[float]]


@lru_cache(maxsize=4)
def _read_network(fabric: str) -> tuple[Subnet, npt.NDArray[np.uint8] | None, str]:
    """Read a fabric, the virtual lanes that its routes need, and a digest of what packets depend on."""
    subnet = read_subnet(fabric)
    network = index_network(subnet, Hardware(gbps=1.0))  # lanes depend on routes alone
    digest = hashlib.sha256()
    for array in (network.end_to, network.port_end, network.egress, network.host_end, subnet.fabric.link_gbps):
        digest.update(np.ascontiguousarray(array).tobytes())
    return subnet, assign_lanes(network), digest.hexdigest()[:16]


def digest_network(fabric: str) -> str:
    """Give a name for how a fabric is wired and routed, so that a dump that was changed is another fabric."""
    return _read_network(fabric)[2]


@lru_cache(maxsize=4)
def load_network(fabric: str, hardware: Hardware) -> tuple[Subnet, SimulatedNetwork, npt.NDArray[np.uint8] | None]:
    """Read a fabric, and find the virtual lanes that it needs; kept for the next simulations of this process."""
    subnet, lanes, _ = _read_network(fabric)
    return subnet, index_network(subnet, hardware), lanes


def count_lanes(fabric: str) -> int:
    """Give how many virtual lanes keep the routes of a fabric from closing circles."""
    lanes = _read_network(fabric)[1]
    return 1 if lanes is None else int(lanes.max()) + 1


@lru_cache(maxsize=4)
def _refuse_adaptive_deadlock(fabric: str) -> None:
    refuse_adaptive_deadlock(load_network(fabric, Hardware(gbps=1.0))[1])


def can_route_adaptively(fabric: str) -> bool:
    """Whether packets of a fabric may choose among its shortest ways and cannot block each other in a circle."""
    try:
        _refuse_adaptive_deadlock(fabric)
    except InconsistentError:
        return False
    return True


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


def set_up(cell: Cell, sampled: Sequence[str] = ()) -> Prepared:
    """Make a cell's simulation; `sampled` names jobs whose messages are looked at besides those of the measured one.

    Raises:
        InputError: the fabric cannot be read.
        InconsistentError: the jobs do not fit on it, or their times are too long, or its routes deadlock.
    """
    setting = cell.setting
    _, network, lanes = load_network(setting.fabric, setting.hardware)
    for each in cell.workloads:
        refuse_long_times(network, each)
    if setting.adaptive:
        _refuse_adaptive_deadlock(setting.fabric)
    seats = seat(
        network,
        cell.workloads,
        setting.servers,
        setting.server_placement,
        setting.job_placement,
        np.random.default_rng(cell.seed),
        setting.server_hosts,
    )
    chosen = [number for number, each in enumerate(cell.workloads) if each.name in cell.running]
    kept = Seats(seats.servers, tuple(seats.jobs[number] for number in chosen))
    workloads = [cell.workloads[number] for number in chosen]
    jobs, clients = make_clients(network, workloads, kept, (cell.measured, *sampled), cell.seed)
    return Prepared(
        simulation=Simulation(network, jobs, clients, cell.seed, setting.adaptive, lanes),
        clients=clients,
        measured=np.array([jobs[client.job].name == cell.measured for client in clients]),
        starts=np.array([client.start for client in clients], np.int64),
    )


def run_cell(cell: Cell) -> Outcome:
    """Simulate: until the latency is known, and on until the clients that are to end have ended."""
    begin = time.process_time()
    prepared = set_up(cell)
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
    """Go on until the clients that are to end have ended, or there were so many packet hops.

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
    """Give how long each client of a job took from its first start; none where one of them has not come to its end."""
    simulation = prepared.simulation
    progress, limit = simulation.look_at_clients(), _limit_clients(simulation)
    whole = {}
    for number, job in enumerate(simulation.jobs):
        of_job = simulation.job_of_client == number
        if limit[of_job].any() and (progress.steps[of_job] >= limit[of_job]).all():
            ticks = progress.last[of_job].astype(np.int64) - prepared.starts[of_job]
            whole[job.name] = [round(simulation.network.to_ns(each), 1) for each in ticks.tolist()]
    return whole
