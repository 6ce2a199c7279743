# SPDX-License-Identifier: Apache-2.0
"""Advice on two jobs that interfere on a fabric (`ibprof-sim advise`): simulations for the question, and the answer."""

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
from ibprof_lab.simulation.study.cell import (
    Cell,
    Prepared,
    Setting,
    can_route_adaptively,
    find_assignment,
    list_fabric_notes,
    set_up,
)
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
"""Key of the I/O servers in mappings from names of jobs to hosts."""

_HOPS = 3e7
"""Largest number of packet hops in the simulation that measures the loads of links."""

_MESSAGES = 20
"""Number of messages that each client must complete while the loads of links are measured. A client of a recorded run
that follows its time line must complete one round."""

_CHUNK_NS = 1e6

_PARTS = 20
"""The loads of links are measured in pieces of simulated time. Each piece lasts at least 1 / `_PARTS` of the time
simulated so far."""


@dataclass(frozen=True, slots=True)
class AdviceOptions:
    """Options of `ibprof-sim advise`.

    Attributes:
        mpi: bytes of each message between random pairs of hosts, or the path of a profile to replay.
        mpi_interval_ns: pause between messages. If 0: no pause; for a profile, its recorded times.
        io: bytes of each I/O request, the path of a Darshan log, or the path of a second job's profile.
        io_interval_ns: pause between requests. If 0: no pause; for a log or a profile, its recorded times.
        share: fraction of the compute hosts for the MPI job.
        mpi_hosts, io_hosts: names of each job's hosts. If None: the recorded hosts, if possible; else random hosts.
        seeds: number of random seeds; each simulation is repeated with each seed.
        io_reads: bytes of a read request, which a server answers with `io` bytes; 0 for writes, or as in the Darshan
            log.
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
    """Two jobs, and the simulations that show their interference.

    Attributes:
        io, mpi: the two jobs; `io` may also be a second recorded run.
        cells: the simulations.
        notes: sentences for the user on hosts, recordings and the fabric.
    """

    setting: Setting
    io: Workload
    mpi: Workload
    seeds: Sequence[int]
    cells: Sequence[Cell]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer to an `AdviceQuestion`.

    Attributes:
        scenarios: the compared scenarios; the first is the present scenario.
        best: scenario with the recommended change; None if no change is recommended.
        undecided: changes whose mean gain is larger than that of `best`, but whose 95% intervals are too wide.
        hosts: `SERVERS` or name of a job -> host names in `best`, or in the present scenario if `best` is None. Random
            hosts are those for the seed with the fastest MPI messages.
        links: the busiest link directions that both jobs use.
        shared: number of link directions that both jobs use.
    """

    scenarios: Sequence[Scenario]
    best: Scenario | None
    undecided: tuple[UndecidedChange, ...]
    hosts: Mapping[str, Sequence[str]]
    links: Sequence[SharedLink]
    shared: int


def ask_advice(options: AdviceOptions) -> AdviceQuestion:
    """Return the two jobs and the simulations for a set of options.

    Raises:
        IbprofError: an option is invalid on the fabric, or a simulation is impossible.
    """
    machine = options.machine
    if machine.servers is None and isinstance(options.io, Path) and not is_darshan_log(options.io):
        machine = replace(machine, servers=1)  # not used: two recorded jobs have no servers
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
    """Simulate the jobs in the present scenario and with each change, compare the scenarios, and recommend a change."""
    outcomes = simulate(question.cells)
    setting, io, mpi = question.setting, question.io, question.mpi
    scenarios = compare_scenarios(setting, io, mpi, question.seeds, outcomes)
    links, shared = find_shared_links(Cell(setting, (io, mpi), (IO, MPI), MPI, 1))
    best, undecided = recommend(scenarios, MPI)
    return Advice(scenarios, best, undecided, _name_hosts(best or scenarios[0]), links, shared)


def _name_hosts(scenario: Scenario) -> dict[str, list[str]]:
    """Return `Advice.hosts` for the seed with the fastest MPI messages; for seed 1 if no mean settled."""
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
    """Return both jobs with their named or recorded hosts, and notes for the user."""
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
        notes.append(f"hosts are sampled, since these options are missing: {', '.join(sampled)}")
    return io, mpi, notes


def _describe_io(options: AdviceOptions) -> tuple[Workload, DarshanLoad | None]:
    """Return the second job, and the load from its Darshan log (None without a log)."""
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
    """A link direction that all jobs use.

    Attributes:
        end: index of the link direction.
        name, port: name of the sending node, and its port.
        to: name of the receiving node.
        busy: name of a job -> fraction of time in which the link direction transmits the job's bytes.
    """

    end: int
    name: str
    port: int
    to: str
    busy: Mapping[str, float]


def find_shared_links(cell: Cell, most: int = 5) -> tuple[list[SharedLink], int]:
    """Find the link directions that all jobs use; return the busiest of them, and their total number.

    With forwarding tables, a job uses all links on the routes of its messages. With adaptive routing, a job uses the
    links that its messages crossed in a simulation.

    Args:
        cell: simulation of all jobs.
        most: largest number of link directions to return.
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
    """Return True for link directions on the routes of a job's messages, bool [link direction, job]."""
    simulation = prepared.simulation
    network = simulation.network
    flows = [(client.job, client.host, host) for client in prepared.clients for host in client.destinations()]
    job, source, destination = np.array(flows, np.int64).reshape(-1, 3).T
    lid = network.subnet.fabric.port_lid[network.host_port]
    ones = np.ones(len(job), np.uint64)
    loads = spread(network.subnet.routes, lid[source], lid[destination], ones, job, len(simulation.jobs))
    return loads.bytes.reshape(-1, len(simulation.jobs)) > 0


def _find_busy_parts(simulation: Simulation) -> npt.NDArray[np.float64]:
    """Return the fraction of time in which each link direction sends bytes of each job, float64 [link direction, job].
    The measured time begins when all clients have begun, or at 0 if a client never begins.
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
