# SPDX-License-Identifier: Apache-2.0
"""Options that commands of `ibprof-sim` share, and how sizes, times and traffic are written in them."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from ibprof.errors import UsageError, quote_found
from ibprof_converter.simulation.engine.simulated_network import RANGES
from ibprof_converter.simulation.study.job_patterns import THESIS_FABRIC
from ibprof_converter.simulation.study.named_hosts import DRAWN, Refuse
from ibprof_converter.simulation.study.study_file import MOST_SEEDS
from ibprof_converter.simulation.study.study_reader import UNITS_OF_SIZE, UNITS_OF_TIME, is_whole
from ibprof_converter.simulation.workload.roles import JobPlacement, ServerPlacement
from ibprof_converter.traffic.hostlists import expand_hosts

HOSTS_A_SERVER = 18
"""The thesis has 1,296 hosts and 72 servers."""


def add_job_hosts(parser: argparse.ArgumentParser) -> None:
    """Add where the jobs of `advise` are."""
    parser.add_argument(
        "--mpi-hosts", metavar="HOSTS", type=parse_hosts,
        help="the MPI job's hosts, as node[01-04,7],login1, instead of a share; of a profile as many as its run had, "
        f"in the order of their first ranks, or {DRAWN} (default: those of the recording, where the fabric has them)",
    )  # fmt: skip
    parser.add_argument("--io-hosts", metavar="HOSTS", type=parse_hosts, help="the I/O job's hosts, instead of a share")


def add_running(parser: argparse.ArgumentParser, output: Path | None) -> None:
    """Add where results go, and how many processes simulate."""
    says = f"default: {output}" if output else "default: they are not kept"
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, default=output, help=f"results ({says}); gone on with if begun"
    )
    parser.add_argument("--workers", metavar="N", type=count, default=os.cpu_count() or 1, help="processes at once")


def add_machine(parser: argparse.ArgumentParser, seeds: int = 1) -> None:
    """Add what is simulated, and how thoroughly."""
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="fewer patterns and messages")
    effort.add_argument("--full", action="store_true", help="50 messages of warm-up and 1,000 measured, however long")
    parser.add_argument(
        "--seeds", metavar="N", type=_seeds, default=seeds, help=f"runs of each, drawn anew (default: {seeds})"
    )
    parser.add_argument("--fabric", metavar="LST", help=f"default: {THESIS_FABRIC}")
    parser.add_argument(
        "--servers",
        metavar="N|HOSTS",
        type=parse_servers,
        help="I/O servers: how many, or their hosts as node[01-04,7],login1 "
        f"(default: one for {HOSTS_A_SERVER} hosts, as 72 of 1,296)",
    )
    parser.add_argument(
        "--server-placement", choices=[each.value for each in ServerPlacement],
        help="of servers that are not named: on whole leaves, one a leaf, anywhere (default: isolated)",
    )  # fmt: skip
    parser.add_argument(
        "--job-placement", choices=[each.value for each in JobPlacement], default="random-node",
        help="of jobs without hosts of their own: drawn one by one, or by whole leaves (default: random-node)",
    )  # fmt: skip
    parser.add_argument("--adaptive", action="store_true", help="packets choose among shortest ways")
    parser.add_argument("--packet", metavar="B", type=_packet, default=4096, help="bytes of a packet (default: 4096)")
    parser.add_argument(
        "--lane", metavar="B", type=_lane, default=65536, help="room of a virtual lane (default: 65536)"
    )
    parser.add_argument("--switch-ns", metavar="NS", type=_delay, default=90.0, help="delay of a switch (default: 90)")
    parser.add_argument("--gbps", metavar="G", type=_speed, help="speed of all links (default: as the fabric says)")


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


def refuse_option(name: str) -> Refuse:
    """Give what makes the errors of an option's value."""
    return lambda expected, found: UsageError(f"{name}: expected {expected}, found {quote_found(found)}")


def parse_servers(text: str) -> int | list[str]:
    """Read how many servers there are, or their hosts' names, for argparse."""
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
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)", text)
    if not match or match[2] not in units or not least <= (amount := float(match[1]) * units[match[2]]) <= 2**50:
        raise argparse.ArgumentTypeError(f"expected {what} ({', '.join(units)}), found {text!r}")
    return float(amount)


def format_size(size: int) -> str:
    """Say a size as it may be written: in the largest unit that it has a whole number or a few hundredths of."""
    for unit, factor in sorted(UNITS_OF_SIZE.items(), key=lambda each: -each[1]):
        if size >= factor and 100 * size % factor == 0:
            return f"{size / factor:.15g} {unit}"
    return f"{size} B"


def format_time(nanoseconds: float) -> str:
    """Say a time as it may be written, to four digits."""
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if nanoseconds >= unit:
            return f"{nanoseconds / unit:.4g} {name}"
    return f"{nanoseconds:.4g} ns"


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
