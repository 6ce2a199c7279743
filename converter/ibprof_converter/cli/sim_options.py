# SPDX-License-Identifier: Apache-2.0
"""Options of `ibprof-sim`: how each is written, and the dataclasses that commands get."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.simulation.engine.simulated_network import RANGES, Hardware
from ibprof_converter.simulation.questions.advice import AdviceOptions
from ibprof_converter.simulation.questions.congestion_threshold import ThresholdOptions
from ibprof_converter.simulation.study.efforts import FULL, QUICK
from ibprof_converter.simulation.study.named_hosts import DRAWN
from ibprof_converter.simulation.study.simulated_machine import HOSTS_PER_SERVER, MachineOptions
from ibprof_converter.simulation.study.sizes_and_times import (
    LARGEST,
    UNITS_OF_SIZE,
    UNITS_OF_TIME,
    is_whole,
    parse_quantity,
)
from ibprof_converter.simulation.study.study_file import MOST_SEEDS
from ibprof_converter.simulation.study.study_results import StudyOutput
from ibprof_converter.simulation.workload.roles import JobPlacement, ServerPlacement
from ibprof_converter.traffic.hostlists import expand_hosts


def build_machine(arguments: argparse.Namespace) -> MachineOptions:
    """Return the machine that the options describe."""
    servers, placement = arguments.servers, arguments.server_placement
    return MachineOptions(
        fabric=arguments.fabric,
        servers=tuple(servers) if isinstance(servers, list) else servers,
        server_placement=ServerPlacement(placement) if placement else None,
        job_placement=JobPlacement(arguments.job_placement),
        adaptive=arguments.adaptive,
        hardware=Hardware(
            packet_bytes=arguments.packet, lane_bytes=arguments.lane, switch_ns=arguments.switch_ns, gbps=arguments.gbps
        ),
        effort=QUICK if arguments.quick else FULL if arguments.full else None,
    )


def build_output(arguments: argparse.Namespace) -> StudyOutput:
    """Return where and how a study's results are written."""
    return StudyOutput(arguments.output, arguments.stored, arguments.parquet)


def build_threshold(arguments: argparse.Namespace) -> ThresholdOptions:
    """Return the options of `threshold`."""
    return ThresholdOptions(build_machine(arguments), arguments.size, arguments.share, arguments.seeds)


def build_advice(arguments: argparse.Namespace) -> AdviceOptions:
    """Return the options of `advise`."""
    (mpi, mpi_interval), (io, io_interval) = arguments.mpi, arguments.io
    return AdviceOptions(
        machine=build_machine(arguments),
        mpi=mpi,
        mpi_interval_ns=mpi_interval,
        io_bytes=io,
        io_interval_ns=io_interval,
        share=arguments.share,
        mpi_hosts=arguments.mpi_hosts,
        io_hosts=arguments.io_hosts,
        seeds=arguments.seeds,
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add what a study writes."""
    parser.add_argument("--stored", action="store_true", help="write tables of stored results; simulate nothing")
    parser.add_argument("--parquet", action="store_true", help="write tables as Parquet too")


def add_job_hosts(parser: argparse.ArgumentParser) -> None:
    """Add the hosts of the jobs of `advise`."""
    parser.add_argument(
        "--mpi-hosts", metavar="HOSTS", type=parse_hosts,
        help="hosts of the MPI job, as node[01-04,7],login1, in place of a share. A profile takes as many as "
        f"its run had, in order of their first ranks, or {DRAWN} (default: the recorded ones, if the fabric has them)",
    )  # fmt: skip
    parser.add_argument(
        "--io-hosts", metavar="HOSTS", type=parse_hosts, help="hosts of the I/O job in place of a share"
    )


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
        type=count,
        default=os.cpu_count() or 1,
        help="number of processes (default: all cores)",
    )


def add_machine(parser: argparse.ArgumentParser, seeds: int = 1, needs_fabric: bool = True) -> None:
    """Add the machine to simulate, and the effort."""
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="fewer patterns and messages")
    effort.add_argument("--full", action="store_true", help="50 messages of warm-up and 1,000 measured, however long")
    parser.add_argument(
        "--seeds", metavar="N", type=_seeds, default=seeds, help=f"random seeds of each simulation (default: {seeds})"
    )
    says = "required" if needs_fabric else "default: the study's"
    parser.add_argument(
        "--fabric", metavar="LST", required=needs_fabric,
        help=f"dump of a fabric, or the name of a synthetic one ({says})",
    )  # fmt: skip
    parser.add_argument(
        "--servers", metavar="N|HOSTS", type=parse_servers,
        help="I/O servers: their number, or their hosts as node[01-04,7],login1 "
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
    parser.add_argument("--packet", metavar="B", type=_packet, default=4096, help="bytes of a packet (default: 4096)")
    parser.add_argument(
        "--lane", metavar="B", type=_lane, default=65536, help="buffer of a virtual lane in bytes (default: 65536)"
    )
    parser.add_argument("--switch-ns", metavar="NS", type=_delay, default=90.0, help="delay of a switch (default: 90)")
    parser.add_argument("--gbps", metavar="G", type=_speed, help="speed of all links (default: as in the fabric)")


def count(text: str) -> int:
    """Read a whole number above 0, for argparse."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return int(text)


def parse_hosts(text: str) -> list[str]:
    """Read names of hosts such as `node[01-04,7],login1`, for argparse."""
    try:
        return expand_hosts(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_servers(text: str) -> int | list[str]:
    """Read the number of servers, or the names of their hosts, for argparse."""
    return parse_hosts(text) if re.search("[A-Za-z]", text) else count(text)


def _number(text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"expected a number from {least:g} to {most:g}, found {text!r}")
    return value


def _seeds(text: str) -> int:
    return int(_number(str(count(text)), 1, MOST_SEEDS))


def _packet(text: str) -> int:
    return int(_number(str(count(text)), *RANGES["packet_bytes"]))


def _lane(text: str) -> int:
    return int(_number(str(count(text)), *RANGES["lane_bytes"]))


def _delay(text: str) -> float:
    return _number(text, *RANGES["switch_ns"])


def _speed(text: str) -> float:
    return _number(text, *RANGES["gbps"])


def share(text: str) -> float:
    """Read a part of 1, for argparse."""
    return _number(text, 0, 1)


def parse_size(text: str) -> int:
    """Read a size such as `4 MiB`, for argparse."""
    amount = _parse(text, UNITS_OF_SIZE, "a size such as 4MiB", 1)
    if not is_whole(amount):
        raise argparse.ArgumentTypeError(f"expected whole bytes, found {text!r}")
    return round(amount)


def parse_interval(text: str) -> float:
    """Read a time such as `500us`, for argparse: ns."""
    return 0.0 if text in ("0", "checkpoint") else _parse(text, UNITS_OF_TIME, "a time such as 500us", 0)


def _parse(text: str, units: Mapping[str, float], what: str, least: float) -> float:
    amount = parse_quantity(text, units)
    if amount is None or not least <= amount <= LARGEST:
        raise argparse.ArgumentTypeError(f"expected {what} ({', '.join(units)}), found {text!r}")
    return amount


def parse_pattern(text: str) -> tuple[int, float]:
    """Read `SIZE@INTERVAL`, for argparse; no interval is a checkpoint."""
    size, _, interval = text.partition("@")
    return parse_size(size), parse_interval(interval or "0")


def parse_traffic(text: str) -> tuple[int | Path, float]:
    """Read `SIZE@INTERVAL` or `PROFILE[@INTERVAL]`, for argparse."""
    name, at, interval = text.rpartition("@") if "@" in text else (text, "", "0")
    try:
        return parse_size(name), parse_interval(interval)
    except argparse.ArgumentTypeError:
        whole = Path(text)
        if whole.exists() or not at:
            return whole, 0.0
        return Path(name), parse_interval(interval)
