# SPDX-License-Identifier: Apache-2.0
"""A cell is one simulation of a study, with its network, description, key and outcome."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.profile.missing_data import StageAccount
from ibprof_converter.hotspots.coverage import describe_lost
from ibprof_converter.routing.route_choice import describe_routes, read_routed_subnet
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import account_for_fabrics, find_hosts
from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.deadlock import assign_lanes, refuse_adaptive_deadlock
from ibprof_lab.simulation.engine.packet_engine import Client, Simulation, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork, index_network
from ibprof_lab.simulation.measure.latency_measurement import measure
from ibprof_lab.simulation.measure.message_latency import Effort, Latency
from ibprof_lab.simulation.workload.host_assignment import HostAssignment, assign_hosts, make_clients
from ibprof_lab.simulation.workload.workloads import Role, Workload, digest_messages

RESULT_SCHEMA = 4
"""Version of stored results. Increase it when ibprof describes or computes the same simulation differently."""

_MOST_TICKS = float(1 << 53)
"""Largest sum of a message's time and pause, in ticks. The engine's 64-bit counters can store 2,000 times this
number."""

_CHUNK_NS = 5e6


@dataclass(frozen=True, slots=True)
class Setting:
    """Properties that the simulations of a study share.

    Attributes:
        fabric: path of a dump, or the name of a synthetic fabric.
        hardware: properties of the network that dumps do not contain.
        adaptive: True for adaptive routing: packets choose among shortest routes.
        servers: number of I/O servers.
        server_hosts: indices of the servers' hosts; empty to place the servers by `server_placement`.
        server_placement, job_placement: placement of servers, and of jobs without fixed hosts.
        effort: precision and limits of each simulation.
        routes: see `NetworkSource`.
    """

    fabric: str
    hardware: Hardware = field(default_factory=Hardware)
    adaptive: bool = False
    servers: int = 0
    server_hosts: tuple[int, ...] = ()
    server_placement: ServerPlacement = ServerPlacement.ISOLATED
    job_placement: JobPlacement = JobPlacement.RANDOM_NODE
    effort: Effort = field(default_factory=Effort)
    routes: str | None = None

    @property
    def network(self) -> NetworkSource:
        """The simulated network."""
        return NetworkSource(self.fabric, self.routes)

    def load(self) -> SimulatedNetwork:
        """Return the network; it is read once and cached."""
        return load_network(self.network, self.hardware)


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulation.

    Attributes:
        workloads: all jobs. A job that does not run gets hosts too, so that the hosts of each job are the same in all
            simulations.
        running: names of the running jobs.
        measured: name of the job whose latency is measured.
        seed: random seed of placements, communication partners, start times and jitter.
    """

    setting: Setting
    workloads: tuple[Workload, ...]
    running: tuple[str, ...]
    measured: str
    seed: int

    @property
    def is_alone(self) -> bool:
        """True if only the measured job runs (a baseline)."""
        return self.running == (self.measured,)

    @property
    def is_measured_whole(self) -> bool:
        """True if all `Effort.messages` are measured, even if the mean has the required precision earlier. With
        adaptive routing, queues may fill after tens of messages, and the mean then grows. In a recorded run, rare large
        messages may come late.
        """
        (measured,) = (each for each in self.workloads if each.name == self.measured)
        return self.setting.adaptive or (measured.role is Role.PROFILE and not measured.follows_time_line)

    def describe(self) -> dict[str, Any]:
        """Return all inputs on which the outcome depends, as JSON.

        For a job that does not run (is not in `running`), only the properties that determine its hosts are included.
        Studies that differ only in the traffic of this job thus have the same baseline.
        """
        setting = asdict(self.setting)
        del setting["fabric"]  # `network` identifies the content of the file
        del setting["routes"]  # `network` includes the routes
        for later in ("nic_gap_ns", "message_step_bytes"):
            if not setting["hardware"][later]:
                del setting["hardware"][later]  # earlier versions computed `Cell.key` without it
        if not self.setting.effort.steady:
            del setting["effort"]["steady"]
        return {
            "schema": RESULT_SCHEMA,
            "network": digest_network(self.setting.network),
            **setting,
            "jobs": [_describe_workload(each, each.name in self.running) for each in self.workloads],
            "running": self.running,
            "measured": self.measured,
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """Identifier of the simulation: a digest of `describe`."""
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def _describe_workload(workload: Workload, runs: bool) -> dict[str, Any]:
    described = asdict(workload)
    if not workload.adapters:
        del described["adapters"]  # earlier versions computed `Cell.key` without it
    if workload.role is not Role.REPLAY:
        del described["byte_ns"], described["waits_late"]  # earlier versions computed `Cell.key` without them
    if workload.profile:
        described["profile"] = digest_messages(workload)  # the digest identifies the content of the file
    return described if runs else {name: described[name] for name in ("name", "role", "share", "profile", "hosts")}


def make_cells(setting: Setting, workloads: Sequence[Workload], measured: str, seeds: Sequence[int]) -> list[Cell]:
    """Return two simulations per seed: of the measured job alone, and of all jobs."""
    everyone = tuple(each.name for each in workloads)
    return [
        Cell(setting, tuple(workloads), running, measured, seed)
        for seed in seeds
        for running in ((measured,), everyone)
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a simulation.

    Attributes:
        key: `Cell.key` of the simulation.
        latency: latency of the measured job.
        packet_hops, cpu_seconds: work of the simulation.
        whole_ns: job that sent all its messages -> for each client, time from its start to the end of its last message,
            ns.
    """

    key: str
    latency: Latency
    packet_hops: int
    cpu_seconds: float
    whole_ns: dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A simulation that has not run yet.

    Attributes:
        measured: bool [client], True for clients of the measured job.
    """

    simulation: Simulation
    clients: Sequence[Client]
    measured: npt.NDArray[np.bool_]


def refuse_long_times(network: SimulatedNetwork, workload: Workload) -> None:
    """Refuse times that would overflow the engine's clock.

    Raises:
        InconsistentError: a message, its interval and its window take too many ticks together.
    """
    ticks = (workload.interval_ns + workload.window_ns) / network.tick_ns
    ticks += workload.bytes * float(network.end_byte_ticks.max()) / 2**32
    if ticks > _MOST_TICKS:
        raise InconsistentError(
            f"job {workload.name}: a message, its interval and window take {ticks:.1e} ticks of {network.tick_ns:g} "
            f"ns, more than {_MOST_TICKS:.1e}"
        )


def find_assignment(cell: Cell) -> HostAssignment:
    """Return the hosts of the servers and of each job in a simulation.

    Raises:
        InputError: the fabric cannot be read.
        InconsistentError: the jobs do not fit on the fabric.
    """
    setting = cell.setting
    return assign_hosts(
        setting.load(),
        cell.workloads,
        setting.servers,
        setting.server_placement,
        setting.job_placement,
        np.random.default_rng(cell.seed),
        setting.server_hosts,
    )


def set_up(cell: Cell, sampled: Sequence[str] = (), skip_hops: bool = False) -> Prepared:
    """Return a simulation that is ready to run.

    Args:
        sampled: names of further jobs whose messages are sampled; messages of the measured job are always sampled.
        skip_hops: True if the engine may skip hops; loads of link directions are then not known.

    Raises:
        InputError: the fabric cannot be read.
        InconsistentError: the jobs do not fit on the fabric, their times are too long, or routes can deadlock.
    """
    setting = cell.setting
    network, lanes = setting.load(), load_lanes(setting.network)
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
    )


def run_cell(cell: Cell) -> Outcome:
    """Simulate until the measured job's latency is known, and all clients with a limit have sent all messages."""
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
    """Continue a simulation until all clients with a limit have sent all messages; end earlier at `hops` or a deadlock.

    Args:
        hops: largest number of packet hops since the start of the simulation.
        go_on: function that continues the simulation for some time; it receives the current tick.
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
    simulation = prepared.simulation
    progress, limit = simulation.look_at_clients(), _limit_clients(simulation)
    starts = np.array([client.start for client in prepared.clients], np.int64)
    whole = {}
    for number, job in enumerate(simulation.jobs):
        of_job = simulation.job_of_client == number
        if limit[of_job].any() and (progress.steps[of_job] >= limit[of_job]).all():
            ticks = progress.last[of_job].astype(np.int64) - starts[of_job]
            whole[job.name] = [round(simulation.network.to_ns(each), 1) for each in ticks.tolist()]
    return whole


@dataclass(frozen=True, slots=True)
class NetworkSource:
    """The sources of a simulated network.

    Attributes:
        fabric: path of a dump, or the name of a synthetic fabric.
        routes: source of the routes, from `parse_routes`; None for the fabric's tables, or for a model if the fabric
            has none.
    """

    fabric: str
    routes: str | None = None


Lanes = npt.NDArray[np.uint8]
"""uint8 [switch, switch], virtual lane of packets from the first leaf switch to the second."""


@lru_cache(maxsize=4)
def _read_network(source: NetworkSource) -> tuple[Subnet, Lanes | None, str]:
    """Return a fabric, the result of `assign_lanes`, and a digest of the fabric's links, their speeds and routes."""
    subnet = read_routed_subnet(source.fabric, source.routes)
    network = index_network(subnet, Hardware(gbps=1.0))  # lanes depend only on routes
    digest = hashlib.sha256()
    for array in (network.end_to, network.port_end, network.egress, network.host_end, subnet.fabric.link_gbps):
        digest.update(np.ascontiguousarray(array).tobytes())
    return subnet, assign_lanes(network), digest.hexdigest()[:16]


def digest_network(source: NetworkSource) -> str:
    """Return a digest of a fabric's links, their speeds and routes."""
    return _read_network(source)[2]


@lru_cache(maxsize=4)
def load_network(source: NetworkSource, hardware: Hardware) -> SimulatedNetwork:
    """Return a fabric as arrays; each process reads the fabric only once."""
    return index_network(_read_network(source)[0], hardware)


def load_lanes(source: NetworkSource) -> Lanes | None:
    """Return the virtual lanes with which a fabric's routes cannot deadlock; None if one lane is enough."""
    return _read_network(source)[1]


def count_lanes(source: NetworkSource) -> int:
    """Return the number of virtual lanes in `load_lanes`, 1 without lanes."""
    lanes = load_lanes(source)
    return 1 if lanes is None else int(lanes.max()) + 1


@lru_cache(maxsize=4)
def refuse_adaptive_routing(source: NetworkSource) -> None:
    """Refuse adaptive routing if it can deadlock on a fabric.

    Raises:
        InconsistentError: adaptive routing can deadlock.
    """
    refuse_adaptive_deadlock(load_network(source, Hardware(gbps=1.0)))


def can_route_adaptively(source: NetworkSource) -> bool:
    """Return True if adaptive routing cannot deadlock on a fabric."""
    try:
        refuse_adaptive_routing(source)
    except InconsistentError:
        return False
    return True


def list_fabric_notes(source: NetworkSource) -> list[str]:
    """Return sentences on a fabric: left-out parts of its dumps, source of routes, warnings, and virtual lanes."""
    subnet = _read_network(source)[0]
    lost = describe_lost([subnet], find_hosts([subnet.fabric]))
    notes = [*lost, *filter(None, [describe_routes([subnet])]), *subnet.warnings]
    if (lanes := count_lanes(source)) > 1:
        notes.append(
            f"routes form cycles, so packets could deadlock. {lanes} virtual lanes for pairs of leaf switches "
            "prevent deadlocks; SLs in a dump are ignored"
        )
    return notes


def account_for_network(source: NetworkSource) -> list[StageAccount]:
    """Count a fabric's links, adapters and hosts: those read, and those left out."""
    fabrics = [_read_network(source)[0].fabric]
    return list(account_for_fabrics(fabrics, find_hosts(fabrics)))


def name_route_source(source: NetworkSource) -> str:
    """Return the source from which routes were read or computed: `tables`, `modelled:MODEL` or `opensm:ENGINE`."""
    return _read_network(source)[0].route_source
