# SPDX-License-Identifier: Apache-2.0
"""Options of `ibprof-sim`: how each is written, and the dataclasses that commands get."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from ibprof.errors import InputError, UsageError
from ibprof.text.host_lists import expand_hosts
from ibprof_converter.choices import ROUTE_CHOICES, parse_routes
from ibprof_converter.cli.arguments import count_in, fill_options, number_in, type_of
from ibprof_converter.traffic.hostlists import read_listed_hosts
from ibprof_lab.simulation.engine.simulated_network import RANGES, Hardware
from ibprof_lab.simulation.measure.message_latency import FULL, QUICK, Effort
from ibprof_lab.simulation.questions.advice import AdviceOptions
from ibprof_lab.simulation.questions.congestion_threshold import ThresholdOptions
from ibprof_lab.simulation.questions.replayed_run import ReplayOptions
from ibprof_lab.simulation.study.presets import plan_preset
from ibprof_lab.simulation.study.simulated_machine import DRAWN, HOSTS_PER_SERVER, MachineOptions
from ibprof_lab.simulation.study.sizes_and_times import parse_size
from ibprof_lab.simulation.study.study_file import MOST_SEEDS, StudyPlan, read_study
from ibprof_lab.simulation.study.study_results import StudyOutput
from ibprof_lab.simulation.workload.host_assignment import JobPlacement, ServerPlacement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """Simulations of `run` and `study`, and where results go; with `estimate_workers` the work is only estimated."""

    make_plan: Callable[[], StudyPlan]
    output: StudyOutput
    estimate_workers: int | None = None


@dataclass(frozen=True, slots=True)
class QuestionOptions(Generic[T]):
    """Question of `threshold` or `advise`, the folder for its simulations, and whether the answer is JSON."""

    question: T
    folder: Path | None
    as_json: bool


def _build_machine(arguments: argparse.Namespace) -> MachineOptions:
    servers, placement = arguments.servers, arguments.server_placement
    return MachineOptions(
        fabric=arguments.fabric,
        routes=arguments.routes,
        servers=tuple(servers) if isinstance(servers, list) else servers,
        server_placement=ServerPlacement(placement) if placement else None,
        job_placement=JobPlacement(arguments.job_placement),
        adaptive=arguments.adaptive,
        hardware=_build_hardware(arguments),
        effort=_build_effort(arguments),
    )


def _build_hardware(arguments: argparse.Namespace) -> Hardware:
    return Hardware(
        packet_bytes=arguments.packet,
        lane_bytes=arguments.lane,
        switch_ns=arguments.switch_ns,
        nic_gap_ns=arguments.nic_gap_ns,
        gbps=arguments.gbps,
    )


def _build_effort(arguments: argparse.Namespace) -> Effort | None:
    if not arguments.every_message:
        return QUICK if arguments.quick else FULL if arguments.full else None
    if not arguments.full:
        raise UsageError("--every-message: expected with --full, whose steady states are skipped otherwise")
    return replace(FULL, steady=0.0)


def build_run(arguments: argparse.Namespace) -> StudyOptions:
    """Return the options of `run`."""
    return StudyOptions(partial(read_study, arguments.study), _build_output(arguments))


def build_study(arguments: argparse.Namespace) -> StudyOptions:
    """Return the options of `study`."""
    seeds = range(1, arguments.seeds + 1)
    plan = partial(plan_preset, arguments.name, _build_machine(arguments), seeds, arguments.quick)
    return StudyOptions(plan, _build_output(arguments), arguments.workers if arguments.estimate else None)


def build_replay(arguments: argparse.Namespace) -> QuestionOptions[ReplayOptions]:
    """Return the options of `replay`."""
    machine = MachineOptions(arguments.fabric, routes=arguments.routes, hardware=_build_hardware(arguments))
    return QuestionOptions(fill_options(ReplayOptions, arguments, machine=machine), arguments.output, arguments.json)


def _build_output(arguments: argparse.Namespace) -> StudyOutput:
    return StudyOutput(arguments.output, arguments.stored, arguments.parquet)


def build_threshold(arguments: argparse.Namespace) -> QuestionOptions[ThresholdOptions]:
    """Return the options of `threshold`."""
    machine, reads = _build_machine(arguments), arguments.io_reads
    question = ThresholdOptions(machine, arguments.size, arguments.share, arguments.seeds, reads)
    return QuestionOptions(question, arguments.output, arguments.json)


def build_advice(arguments: argparse.Namespace) -> QuestionOptions[AdviceOptions]:
    """Return the options of `advise`."""
    (mpi, mpi_interval), (io, io_interval) = arguments.mpi, arguments.io
    question = fill_options(
        AdviceOptions,
        arguments,
        machine=_build_machine(arguments),
        mpi=mpi,
        mpi_interval_ns=mpi_interval,
        io=io,
        io_interval_ns=io_interval,
    )
    return QuestionOptions(question, arguments.output, arguments.json)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add what a study writes."""
    parser.add_argument("--stored", action="store_true", help="write tables of stored results; simulate nothing")
    parser.add_argument("--parquet", action="store_true", help="write tables as Parquet too")


def add_job_hosts(parser: argparse.ArgumentParser) -> None:
    """Add the hosts of the jobs of `advise`."""
    parser.add_argument(
        "--mpi-hosts", metavar="HOSTS", type=type_of(read_hosts),
        help="hosts of the MPI job, as node[01-04,7],login1 or a file of such lines, in place of a share. A profile "
        "takes as many as "
        f"its run had, in order of their first ranks, or {DRAWN} (default: the recorded ones, if the fabric has them)",
    )  # fmt: skip
    parser.add_argument(
        "--io-hosts", metavar="HOSTS", type=type_of(read_hosts), help="hosts of the I/O job in place of a share"
    )


def add_reads(parser: argparse.ArgumentParser) -> None:
    """Add the direction of I/O."""
    parser.add_argument(
        "--io-reads", metavar="SIZE", type=type_of(parse_size), default=0,
        help="I/O reads: a client sends a request of SIZE, the server answers with the I/O size (default: I/O writes)",
    )  # fmt: skip


def add_running(parser: argparse.ArgumentParser, output: Path | None) -> None:
    """Add the folder of results and the number of processes."""
    default = f"default: {output}" if output else "default: not kept"
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, default=output,
        help=f"folder of results; a study begun in it is continued ({default})",
    )  # fmt: skip
    parser.add_argument(
        "--workers",
        metavar="N",
        type=count_in(1),
        default=os.cpu_count() or 1,
        help="number of processes (default: all cores)",
    )


def add_machine(parser: argparse.ArgumentParser, seeds: int = 1, needs_fabric: bool = True) -> None:
    """Add the machine to simulate, and the effort."""
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="fewer patterns and messages")
    effort.add_argument("--full", action="store_true", help="50 messages of warm-up and 1,000 measured, however long, "
        "with steady states skipped")  # fmt: skip
    parser.add_argument("--every-message", action="store_true", help="with --full: skip no steady states")
    parser.add_argument(
        "--seeds", metavar="N", type=count_in(1, MOST_SEEDS), default=seeds,
        help=f"random seeds of each simulation (default: {seeds})",
    )  # fmt: skip
    _add_network(parser, needs_fabric)
    parser.add_argument(
        "--servers", metavar="N|HOSTS", type=_parse_servers,
        help="I/O servers: their number, or their hosts as node[01-04,7],login1 or in a file "
        f"(default: one for every {HOSTS_PER_SERVER} hosts)",
    )  # fmt: skip
    parser.add_argument(
        "--server-placement", choices=[each.value for each in ServerPlacement],
        help="of servers that are not named: on whole leaf switches, one per leaf switch, random (default: isolated)",
    )  # fmt: skip
    parser.add_argument(
        "--job-placement", choices=[each.value for each in JobPlacement], default="random-node",
        help="of jobs without named hosts: hosts sampled one by one, or whole leaf switches (default: random-node)",
    )  # fmt: skip
    parser.add_argument("--adaptive", action="store_true", help="packets choose among shortest routes")
    _add_hardware(parser)


def add_replayed(parser: argparse.ArgumentParser) -> None:
    """Add the network that a run was recorded on, and where its time is wanted."""
    _add_network(parser, needs_fabric=True)
    add, hosts = parser.add_argument, type_of(read_hosts)
    add("--to-fabric", metavar="LST", help="another network for it (default: the one of --fabric)")
    add("--to-routes", metavar="HOW", type=type_of(parse_routes), help=f"other routes: {ROUTE_CHOICES}")
    add("--to-hosts", metavar="HOSTS", type=hosts, help="other hosts, as node[01-04,7],login1 or a file of such lines, "
        "in the order of the run's first ranks")  # fmt: skip
    add("--next-to", metavar="OTHER", type=Path, help="profile of a job that runs there too")
    add("--next-to-hosts", metavar="HOSTS", type=hosts, help="its hosts (default: the recorded ones)")
    add("--seeds", metavar="N", type=count_in(1, MOST_SEEDS), default=3, help="random starts of that job (default: 3)")
    _add_hardware(parser)


def _add_network(parser: argparse.ArgumentParser, needs_fabric: bool) -> None:
    says = "required" if needs_fabric else "default: the study's"
    parser.add_argument(
        "--fabric", metavar="LST", required=needs_fabric,
        help=f"dump of a fabric, or the name of a synthetic one ({says})",
    )  # fmt: skip
    parser.add_argument(
        "--routes", metavar="HOW", type=type_of(parse_routes),
        help=f"where its routes come from: {ROUTE_CHOICES} (default: tables, or else modelled)",
    )  # fmt: skip


def _add_hardware(parser: argparse.ArgumentParser) -> None:
    """Add what dumps do not state of packets, switches and links."""
    add, delay, speed = parser.add_argument, number_in(*RANGES["switch_ns"]), number_in(*RANGES["gbps"])
    add("--packet", metavar="B", type=_bytes_in("packet_bytes"), default=4096, help="bytes of a packet (default: 4096)")
    add("--lane", metavar="B", type=_bytes_in("lane_bytes"), default=65536, help="buffer of a virtual lane in bytes "
        "(default: 65536)")  # fmt: skip
    add("--switch-ns", metavar="NS", type=delay, default=90.0, help="delay of a switch (default: 90)")
    add("--nic-gap-ns", metavar="NS", type=number_in(*RANGES["nic_gap_ns"]), default=0.0,
        help="pause of a host's adapter between packets (default: 0)")  # fmt: skip
    add("--gbps", metavar="G", type=speed, help="speed of all links (default: as in the fabric)")


def _bytes_in(name: str) -> Callable[[str], int]:
    """Return the `type` of a property of `Hardware` in bytes."""
    least, most = RANGES[name]
    return count_in(int(least), int(most))


def read_hosts(text: str) -> list[str]:
    """Return the hosts that a Slurm expression names, or a file in any form of `hostlists`, each once.

    Raises:
        UsageError: the expression is invalid.
        InputError: a line of the file is, or it has no host.
    """
    path = Path(text)
    if not path.is_file():
        return expand_hosts(text)
    hosts = list(dict.fromkeys(each.name for each in read_listed_hosts(path)))
    if not hosts:
        raise InputError(path, 1, "hosts, a line each", "none")
    return hosts


def _parse_servers(text: str) -> int | list[str]:
    """Read the number of servers, or the names of their hosts."""
    return type_of(read_hosts)(text) if re.search("[A-Za-z]", text) else count_in(1)(text)
