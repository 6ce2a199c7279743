# SPDX-License-Identifier: Apache-2.0
"""Advice on two jobs that share a fabric: the question as options state it, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.spread import spread
from ibprof_lab.lab_choices import DRAWN
from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop
from ibprof_lab.simulation.measure.run_tables import find_busy
from ibprof_lab.simulation.questions.congestion_threshold import Simulate
from ibprof_lab.simulation.questions.mitigation import (
    Scenario,
    UndecidedChange,
    compare_scenarios,
    list_cells,
    recommend,
)
from ibprof_lab.simulation.study.cell import Cell, Prepared, Setting, find_assignment, set_up
from ibprof_lab.simulation.study.loaded_fabric import can_route_adaptively, list_fabric_notes
from ibprof_lab.simulation.study.simulated_machine import (
    MachineOptions,
    NamedHosts,
    allocate_named,
    make_setting,
    refuse_option,
    share_rest,
    stay_as_recorded,
)
from ibprof_lab.simulation.workload.darshan_load import DarshanLoad, is_darshan_log, read_darshan_load
from ibprof_lab.simulation.workload.workloads import IO, MPI, Role, Workload, list_run_notes

SERVERS = "servers"
"""Name of the I/O servers among jobs."""

_HOPS = 3e7
"""Packet hops after which loads of links are looked at in any case."""

_MESSAGES = 20
"""Of each client, or a round of a recorded run, after which they are."""

_CHUNK_NS = 1e6

_PARTS = 20
"""Of the time so far: by one of them it goes on at a time, where that is more."""


@dataclass(frozen=True, slots=True)
class AdviceOptions:
    """Options of `ibprof-sim advise`.

    Attributes:
        machine: to simulate.
        mpi: bytes of a message between random pairs, or the path of a profile.
        mpi_interval_ns: from a message to the next; 0: none, or the profile's time line.
        io: bytes of an I/O request; the path of a log of Darshan, or of the profile of a second job.
        io_interval_ns: from a request to the next; 0: none, or as logged, or the profile's time line.
        share: of the compute hosts for MPI.
        mpi_hosts, io_hosts: names of each job's hosts; None: sampled, or those of the recording.
        seeds: number of random seeds.
        io_reads: bytes of what an I/O client sends to be answered with `io`; 0 for writes, or what a log of
            Darshan says.
    """

    machine: MachineOptions
    mpi: int | Path
    mpi_interval_ns: float
    io: int | Path
    io_interval_ns: float
    share: float
    mpi_hosts: Sequence[str] | None
    io_hosts: Sequence[str] | None
    seeds: int
    io_reads: int = 0


@dataclass(frozen=True, slots=True)
class AdviceQuestion:
    """Two jobs whose interference is asked for.

    Attributes:
        setting: of the machine.
        io, mpi: the jobs.
        seeds: of the simulations.
        cells: the simulations that the answer needs.
        notes: on hosts, recordings and the fabric, for the user.
    """

    setting: Setting
    io: Workload
    mpi: Workload
    seeds: Sequence[int]
    cells: Sequence[Cell]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer.

    Attributes:
        scenarios: compared, the present one first.
        best: the recommended change; None where no change is worth it.
        undecided: changes that would be better but for their intervals.
        hosts: for the best change, or as it is without one, names of the servers' hosts and of each job's; those of the
            seed with the quickest MPI messages where hosts are sampled.
        links: link directions that both jobs keep busiest.
        shared: number of link directions that carry both jobs.
    """

    scenarios: Sequence[Scenario]
    best: Scenario | None
    undecided: tuple[UndecidedChange, ...]
    hosts: Mapping[str, Sequence[str]]
    links: Sequence[SharedLink]
    shared: int


def ask_advice(options: AdviceOptions) -> AdviceQuestion:
    """Return the two jobs that the options describe, on their hosts.

    Raises:
        IbprofError: an option is invalid on the fabric, or a simulation is impossible.
    """
    machine = options.machine
    if machine.servers is None and isinstance(options.io, Path) and not is_darshan_log(options.io):
        machine = replace(machine, servers=1)  # two recorded jobs need none
    setting = make_setting(machine)
    io, mpi, notes = _place_jobs(setting, options)
    notes += [*list_run_notes([io, mpi]), *list_fabric_notes(setting.network)]
    if not can_route_adaptively(setting.network):
        notes.append("adaptive routing is not tried: it can deadlock on this fabric")
    seeds = range(1, options.seeds + 1)
    cells = list_cells(setting, io, mpi, seeds)
    for cell in {cell.setting: cell for cell in cells}.values():
        set_up(cell)
    return AdviceQuestion(setting, io, mpi, seeds, cells, tuple(notes))


def answer_advice(question: AdviceQuestion, simulate: Simulate) -> Advice:
    """Simulate both jobs as they are and under each change, and compare."""
    outcomes = simulate(question.cells)
    setting, io, mpi = question.setting, question.io, question.mpi
    scenarios = compare_scenarios(setting, io, mpi, question.seeds, outcomes)
    links, shared = find_shared_links(Cell(setting, (io, mpi), (IO, MPI), MPI, 1))
    best, undecided = recommend(scenarios, MPI)
    return Advice(scenarios, best, undecided, _name_hosts(best or scenarios[0]), links, shared)


def _name_hosts(scenario: Scenario) -> dict[str, list[str]]:
    """Return the hosts of servers and jobs in the sample whose MPI messages were quickest; of the first without any."""
    means = scenario.together[MPI]
    seed = min(means, key=lambda each: means[each].mean, default=1)
    io, mpi = scenario.jobs
    assigned = find_assignment(Cell(scenario.setting, (io, mpi), (IO, MPI), MPI, seed))
    named = NamedHosts(scenario.setting)
    servers = () if io.role is Role.PROFILE else assigned.servers.tolist()
    of_jobs = (jobs.tolist() for jobs in assigned.jobs)
    return {
        name: list(dict.fromkeys(named.name(host) for host in hosts))
        for name, hosts in zip((SERVERS, IO, MPI), (servers, *of_jobs), strict=True)
    }


def _place_jobs(setting: Setting, options: AdviceOptions) -> tuple[Workload, Workload, list[str]]:
    """Return both jobs on the hosts that options or the recording name, and what is sampled instead."""
    io, load = _describe_io(options)
    mpi = _describe_mpi(options)
    named, taken = NamedHosts(setting), dict.fromkeys(setting.server_hosts, "a server")
    is_sampled = options.mpi_hosts == [DRAWN] and mpi.role is Role.PROFILE
    jobs = [
        allocate_named(setting, job, names, named, taken, refuse_option(f"--{job.name}-hosts")) if names else job
        for job, names in ((io, options.io_hosts), (mpi, None if is_sampled else options.mpi_hosts))
    ]
    jobs, notes = stay_as_recorded(setting, jobs, named, [MPI] if is_sampled else [])
    io, mpi = share_rest(jobs, (IO, MPI))
    if load is not None:
        assert isinstance(options.io, Path)
        notes.append(load.describe(options.io))
    hosts = {"--servers": setting.server_hosts, "--mpi-hosts": mpi.hosts, "--io-hosts": io.hosts}
    if io.role is Role.PROFILE:
        del hosts["--servers"]
    if load is not None:
        network = setting.load()
        clients = len(io.hosts) or max(round(io.share * (network.hosts - setting.servers)), 1)
        io = replace(io, window_ns=load.cycle_ns(clients))
    if sampled := [option for option, named_hosts in hosts.items() if not named_hosts]:
        notes.append(f"hosts are sampled where no option names them: {', '.join(sampled)}")
    return io, mpi, notes


def _describe_io(options: AdviceOptions) -> tuple[Workload, DarshanLoad | None]:
    """Return the second job, and the log that it comes from."""
    interval, share = options.io_interval_ns, 1 - options.share
    if not isinstance(options.io, Path):
        return Workload(IO, Role.IO, options.io, interval, share=share, reads=options.io_reads), None
    if not is_darshan_log(options.io):
        return Workload(IO, Role.PROFILE, 1, interval_ns=interval, share=share, profile=str(options.io)), None
    load = read_darshan_load(options.io)
    reads = options.io_reads or load.reads
    return Workload(IO, Role.IO, load.request_bytes, interval, share=share, reads=reads), load


def _describe_mpi(options: AdviceOptions) -> Workload:
    interval, share = options.mpi_interval_ns, options.share
    if isinstance(options.mpi, Path):
        return Workload(MPI, Role.PROFILE, 1, interval_ns=interval, share=share, profile=str(options.mpi))
    return Workload(MPI, Role.PAIRS, options.mpi, interval_ns=interval, share=share)


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link direction that several jobs send on.

    Attributes:
        end: index of the link direction.
        name, port: the node that sends, and by which port.
        to: the node that receives.
        busy: part of the time that each job keeps it sending.
    """

    end: int
    name: str
    port: int
    to: str
    busy: Mapping[str, float]


def find_shared_links(cell: Cell, most: int = 5) -> tuple[list[SharedLink], int]:
    """Return the link directions that are busiest with all jobs of a cell, and how many all of them send on.

    By the forwarding tables, that is for each message of each client, however seldom it sends; with adaptive routing
    for those that were sent while it was looked at.

    Args:
        cell: all of whose jobs run.
        most: link directions to list.
    """
    prepared = set_up(cell)
    simulation = prepared.simulation
    fabric = simulation.network.subnet.fabric
    busy = _find_busy_parts(simulation)
    sends = simulation.look_at_ends().bytes > 0 if cell.setting.adaptive else _trace(prepared)
    shared = np.flatnonzero(sends.all(axis=1))
    worst = shared[np.argsort(-busy[shared].min(axis=1), kind="stable")][:most]
    links = [
        SharedLink(
            end=int(end),
            name=str(fabric.node_name[fabric.link_node[end // 2, end % 2]]),
            port=int(fabric.link_port[end // 2, end % 2]),
            to=str(fabric.node_name[fabric.link_node[end // 2, 1 - end % 2]]),
            busy={job.name: float(busy[end, number]) for number, job in enumerate(simulation.jobs)},
        )
        for end in worst
    ]
    return links, len(shared)


def _trace(prepared: Prepared) -> npt.NDArray[np.bool_]:
    """Return which link directions lie on the routes of a job's messages: bool [link direction, job]."""
    simulation = prepared.simulation
    network = simulation.network
    flows = [(client.job, client.host, host) for client in prepared.clients for host in client.destinations()]
    job, source, destination = np.array(flows, np.int64).reshape(-1, 3).T
    lid = network.subnet.fabric.port_lid[network.host_port]
    ones = np.ones(len(job), np.uint64)
    loads = spread(network.subnet.routes, lid[source], lid[destination], ones, job, len(simulation.jobs))
    return loads.bytes.reshape(-1, len(simulation.jobs)) > 0


def _find_busy_parts(simulation: Simulation) -> npt.NDArray[np.float64]:
    """Return the part of the time that each link direction sends each job's bytes, once all clients have begun.

    Where they do not begin within `_HOPS` packet hops, it is that of the time since the beginning.
    """
    network = simulation.network
    of_rounds = np.array([job.round > 0 for job in simulation.jobs])[simulation.job_of_client]
    wanted = np.where(of_rounds, simulation.steps_of_client, _MESSAGES)
    began, before = 0, np.zeros((len(network.end_to), len(simulation.jobs)))
    while (state := simulation.state).packet_hops < _HOPS and state.stop not in {Stop.DONE, Stop.DEADLOCK}:
        simulation.run(state.now + max(network.ticks(_CHUNK_NS), state.now // _PARTS), _HOPS)
        progress = simulation.look_at_clients()
        if (progress.steps >= wanted).all():
            break
        if not began and ((progress.steps > 0) | progress.busy).all():
            began, before = simulation.state.now, find_busy(simulation)
    busy: npt.NDArray[np.float64] = (find_busy(simulation) - before) / max(simulation.state.now - began, 1)
    return busy.clip(0, 1)
