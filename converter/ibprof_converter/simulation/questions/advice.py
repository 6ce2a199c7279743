# SPDX-License-Identifier: Apache-2.0
"""Advice on two jobs that share a fabric: the question as options state it, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.simulation.questions.congestion_threshold import Simulate
from ibprof_converter.simulation.questions.mitigation import Scenario, compare_scenarios, list_cells, recommend
from ibprof_converter.simulation.questions.shared_links import SharedLink, find_shared_links
from ibprof_converter.simulation.study.cell import Cell, Setting
from ibprof_converter.simulation.study.cell_run import set_up
from ibprof_converter.simulation.study.loaded_fabric import can_route_adaptively, list_fabric_notes
from ibprof_converter.simulation.study.named_hosts import DRAWN, NamedHosts, give_named, share_rest, stay_as_recorded
from ibprof_converter.simulation.study.run_notes import list_run_notes
from ibprof_converter.simulation.study.simulated_machine import MachineOptions, make_setting, refuse_option
from ibprof_converter.simulation.study.sizes_and_times import parse_interval, parse_size
from ibprof_converter.simulation.workload.workloads import IO, MPI, Role, Workload


@dataclass(frozen=True, slots=True)
class AdviceOptions:
    """Options of `ibprof-sim advise`.

    Attributes:
        machine: to simulate.
        mpi: bytes of a message between random pairs, or the path of a profile.
        mpi_interval_ns: from a message to the next; 0: none, or the profile's time line.
        io_bytes: of an I/O request.
        io_interval_ns: from a request to the next; 0: none.
        share: of the compute hosts for MPI.
        mpi_hosts, io_hosts: names of each job's hosts; None: sampled, or those of the recording.
        seeds: number of random seeds.
        io_reads: bytes of what an I/O client sends to be answered with `io_bytes`; 0 for writes.
    """

    machine: MachineOptions
    mpi: int | Path
    mpi_interval_ns: float
    io_bytes: int
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
        is_open: whether another change would be better but for its interval.
        links: link directions that both jobs keep busiest.
        shared: number of link directions that carry both jobs.
    """

    scenarios: Sequence[Scenario]
    best: Scenario | None
    is_open: bool
    links: Sequence[SharedLink]
    shared: int


def parse_requests(text: str) -> tuple[int, float]:
    """Read `SIZE@INTERVAL`: bytes and ns; no interval is a checkpoint.

    Raises:
        UsageError: it is something else.
    """
    size, _, interval = text.partition("@")
    return parse_size(size), parse_interval(interval or "0")


def parse_messages(text: str) -> tuple[int | Path, float]:
    """Read `SIZE@INTERVAL` or `PROFILE[@INTERVAL]`: bytes or a path, and ns.

    Raises:
        UsageError: it is something else.
    """
    name, at, interval = text.rpartition("@") if "@" in text else (text, "", "0")
    try:
        return parse_size(name), parse_interval(interval)
    except UsageError:
        whole = Path(text)
        if whole.exists() or not at:
            return whole, 0.0
        return Path(name), parse_interval(interval)


def ask_advice(options: AdviceOptions) -> AdviceQuestion:
    """Return the two jobs that the options describe, on their hosts.

    Raises:
        IbprofError: an option is invalid on the fabric, or a simulation is impossible.
    """
    setting = make_setting(options.machine)
    io, mpi, notes = _place_jobs(setting, options)
    notes += [*list_run_notes([mpi]), *list_fabric_notes(setting.network)]
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
    return Advice(scenarios, *recommend(scenarios, MPI), links, shared)


def _place_jobs(setting: Setting, options: AdviceOptions) -> tuple[Workload, Workload, list[str]]:
    """Return both jobs on the hosts that options or the recording name, and what is sampled instead."""
    io = Workload(
        IO, Role.IO, options.io_bytes, options.io_interval_ns, share=1 - options.share, reads=options.io_reads
    )
    mpi = _describe_mpi(options)
    named, taken = NamedHosts(setting), dict.fromkeys(setting.server_hosts, "a server")
    is_sampled = options.mpi_hosts == [DRAWN] and mpi.role is Role.PROFILE
    jobs = [
        give_named(setting, job, names, named, taken, refuse_option(f"--{job.name}-hosts")) if names else job
        for job, names in ((io, options.io_hosts), (mpi, None if is_sampled else options.mpi_hosts))
    ]
    jobs, notes = stay_as_recorded(setting, jobs, named, [MPI] if is_sampled else [])
    io, mpi = share_rest(jobs, (IO, MPI))
    hosts = {"--servers": setting.server_hosts, "--mpi-hosts": mpi.hosts, "--io-hosts": io.hosts}
    if sampled := [option for option, named_hosts in hosts.items() if not named_hosts]:
        notes.append(f"hosts are sampled where no option names them: {', '.join(sampled)}")
    return io, mpi, notes


def _describe_mpi(options: AdviceOptions) -> Workload:
    interval, share = options.mpi_interval_ns, options.share
    if isinstance(options.mpi, Path):
        return Workload(MPI, Role.PROFILE, 1, interval_ns=interval, share=share, profile=str(options.mpi))
    return Workload(MPI, Role.PAIRS, options.mpi, interval_ns=interval, share=share)
