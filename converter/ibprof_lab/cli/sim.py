# SPDX-License-Identifier: Apache-2.0
"""`ibprof-sim`: simulate jobs that share a fabric, packet by packet."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ibprof.cli.command import command, make_parser, rename_option
from ibprof.errors import InputError
from ibprof.text.host_lists import expand_hosts
from ibprof_converter.choices import ROUTE_CHOICES, parse_routes
from ibprof_converter.cli.arguments import Subcommands, add_subcommand, add_subcommands, count_in, number_in, type_of
from ibprof_lab.lab_choices import (
    DRAWN,
    HOSTS_PER_SERVER,
    MOST_SEEDS,
    RANGES,
    STUDY_EXAMPLE,
    STUDY_WORDS,
    JobPlacement,
    ServerPlacement,
)
from ibprof_lab.simulation.study.presets import PRESETS
from ibprof_lab.simulation.study.sizes_and_times import parse_messages, parse_size

NAME = "ibprof-sim"

_EXAMPLES = """\
examples:
  ibprof-sim study placement --quick -o placement
  ibprof-sim study interference --fabric ibdiagnet.lst --seeds 5 -o survey
  ibprof-sim run study.yaml -o mine
  mpirun -n 8 ibprof-sim study interference -o survey
  ibprof-sim charts survey placement -o figures
  ibprof-sim threshold --fabric ibdiagnet.lst --size 4MiB
  ibprof-sim advise --fabric ibdiagnet.lst --mpi profile.otf2 --io 4MiB
  ibprof-sim replay profile.otf2 --fabric ibdiagnet.lst --to-hosts 'node[17-48]'
"""

_STUDY_EXAMPLES = """\
examples:
  ibprof-sim study placement --quick -o placement
  ibprof-sim study interference --dry-run
"""

_RUN_EXAMPLES = f"""\
examples:
  ibprof-sim run study.yaml -o mine

study.yaml:
{STUDY_EXAMPLE}
{STUDY_WORDS}"""

_THRESHOLD_EXAMPLES = """\
examples:
  ibprof-sim threshold --fabric ibdiagnet.lst --servers 8 --size 1MiB --share 0.25 --json
"""

_ADVISE_EXAMPLES = """\
examples:
  ibprof-sim advise --fabric ibdiagnet.lst --mpi 4KiB@500us --io 4MiB --quick
  ibprof-sim advise --fabric ibdiagnet.lst --servers 'io[1-8]' --mpi profile.otf2@100us --io 1MiB@5ms --json
  ibprof-sim advise --fabric ibdiagnet.lst --mpi profile.otf2 --io job.darshan --io-hosts 'node[17-48]'
  ibprof-sim advise --fabric ibdiagnet.lst --mpi one.otf2 --io other.otf2 --mpi-hosts 'node[01-16]'
"""

_REPLAY_EXAMPLES = """\
examples:
  ibprof-sim replay profile.otf2 --fabric ibdiagnet.lst --to-hosts 'node[17-48]'
  ibprof-sim replay profile.otf2 --fabric ibdiagnet.lst --to-routes opensm:ftree --json
  ibprof-sim replay profile.otf2 --fabric ibdiagnet.lst --next-to other.otf2
"""

_CHARTS_EXAMPLES = """\
examples:
  ibprof-sim charts survey placement throttle -o figures
"""

_SHOWN = ("--quick", "--seeds", "--fabric", "--servers", "--adaptive", "--output", "--workers")
"""Options that the short helps of `threshold`, `advise` and `study` share."""

_THRESHOLD_SHOWN = ("--size", "--share", *_SHOWN, "--json")
_ADVISE_SHOWN = ("--mpi", "--io", "--share", "--mpi-hosts", "--io-hosts", *_SHOWN, "--json")
_REPLAY_SHOWN = (
    "--to-fabric",
    "--to-routes",
    "--to-hosts",
    "--next-to",
    "--fabric",
    "--routes",
    "--seeds",
    "--output",
    "--json",
)


@command(NAME)
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof-sim`."""
    arguments = _make_parser().parse_args(argv)
    # --help and invalid options need no numpy.
    from ibprof_lab.cli.sim_commands import build_command  # noqa: PLC0415
    from ibprof_lab.simulation.study.sweep import open_pool  # noqa: PLC0415

    run = build_command(arguments)
    with open_pool(arguments.workers) as pool:
        if pool is not None:  # without a pool, this rank was a worker of rank 0 and is done
            run(pool)


def _make_parser() -> argparse.ArgumentParser:
    description = (
        "Simulate jobs that share a fabric, packet by packet along the forwarding tables. Report how much the jobs "
        "slow each other down, and remedies."
    )
    parser = make_parser(NAME, description, _EXAMPLES)
    commands = add_subcommands(parser)
    _add_study(commands)
    _add_run(commands)
    _add_threshold(commands)
    _add_advise(commands)
    _add_replay(commands)
    _add_charts(commands)
    return parser


def _add_study(commands: Subcommands) -> None:
    summaries = "\n".join(f"  {name:14}{summary}" for name, summary in PRESETS.items())
    summary, description = (
        "run an included study of MPI jobs next to I/O",
        f"Studies of MPI jobs next to I/O:\n{summaries}",
    )
    parser = add_subcommand(commands, "study", summary, _STUDY_EXAMPLES, description, shown=("--dry-run", *_SHOWN))
    parser.add_argument("name", metavar="NAME", choices=tuple(PRESETS), help="one of these studies")
    parser.add_argument("--dry-run", action="store_true", help="only print the number of simulations, and their "
                        "estimated work")  # fmt: skip
    rename_option(parser, "--estimate", "--dry-run")
    _add_machine(parser, needs_fabric=False)
    _add_running(parser, Path("results"))
    _add_output(parser)


def _add_run(commands: Subcommands) -> None:
    summary, description = "run a study from a file", "Simulate the jobs in a study file."
    parser = add_subcommand(commands, "run", summary, _RUN_EXAMPLES, description)
    parser.add_argument("study", metavar="STUDY.yaml", type=Path, help="the study file, in the format below")
    _add_running(parser, Path("results"))
    _add_output(parser)


def _add_threshold(commands: Subcommands) -> None:
    summary = "find the interval below which I/O requests delay each other"
    description = (
        "Find the I/O-congestion threshold: if a client's requests follow each other in less than this interval, the\n"
        "requests of the job's clients delay each other."
    )
    parser = add_subcommand(commands, "threshold", summary, _THRESHOLD_EXAMPLES, description, shown=_THRESHOLD_SHOWN)
    add = parser.add_argument
    add("--size", metavar="SIZE", type=type_of(parse_size), default=1 << 22, help="bytes of a request (default: 4MiB)")
    add("--share", metavar="S", type=number_in(0, 1), default=0.5, help="share of the compute hosts that run the "
        "job (default: 0.5)")  # fmt: skip
    _add_question(parser)


def _add_advise(commands: Subcommands) -> None:
    description = (
        "Report how much an MPI job and a second job slow each other down on a fabric. The second job is an I/O job\n"
        "or a recorded MPI job. Report remedies and their gain: hosts for servers and jobs, a throttle, or routing."
    )
    summary = "report the interference of two jobs, and remedies"
    parser = add_subcommand(commands, "advise", summary, _ADVISE_EXAMPLES, description, shown=_ADVISE_SHOWN)
    add = parser.add_argument
    add("--mpi", metavar="TRAFFIC", type=type_of(parse_messages), required=True, help="messages of the MPI job: "
        "SIZE@INTERVAL between random pairs; a PROFILE, at the recorded times or as PROFILE@INTERVAL; or a step of a "
        "training job, such as pattern:nccl-ring:tp=8,dp=16@INTERVAL")  # fmt: skip
    add("--io", metavar="LOAD", type=type_of(parse_messages), required=True, help="requests of the I/O job: "
        "SIZE@INTERVAL, or SIZE for a checkpoint without pauses, or a log of Darshan (*.darshan). Instead of an I/O "
        "job: the profile of a second MPI job")  # fmt: skip
    add("--share", metavar="S", type=number_in(0, 1), default=0.5, help="share of the compute hosts for MPI; the rest "
        "is for I/O (default: 0.5). Named hosts of one job can reduce the other job's share")  # fmt: skip
    parser.add_argument(
        "--mpi-hosts", metavar="HOSTS", type=type_of(read_hosts),
        help="hosts of the MPI job in place of a share: node[01-04,7],login1 or a file of such lines. For a profile, "
             "name the run's number of hosts, in the order of their first ranks, "
             f"or {DRAWN} for random hosts (default: the recorded hosts, if the fabric has them)",
    )  # fmt: skip
    parser.add_argument(
        "--io-hosts", metavar="HOSTS", type=type_of(read_hosts), help="hosts of the I/O job, in the same forms"
    )
    _add_question(parser)


def _add_replay(commands: Subcommands) -> None:
    summary = "predict the time of a recorded run on other hosts, routes or fabrics"
    description = (
        "Predict the time of a recorded run on other hosts, with other forwarding tables, or next to another job. The\n"
        "ranks compute as long as in the recording, and wait for the messages that they receive. Record the\n"
        "run to its end with IBPROF_TIME=1 and IBPROF_INTERVAL=10."
    )
    parser = add_subcommand(commands, "replay", summary, _REPLAY_EXAMPLES, description, shown=_REPLAY_SHOWN)
    parser.add_argument(
        "profile", metavar="PROFILE", type=Path, help="profile or recording, with times and a time line"
    )
    _add_replayed(parser)
    _add_running(parser, None)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_question(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--io-reads", metavar="SIZE", type=type_of(parse_size), default=0,
        help="simulate reads: a client sends a request of SIZE, the server answers with the bytes (default: writes)",
    )  # fmt: skip
    _add_machine(parser, seeds=3)
    _add_running(parser, None)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_charts(commands: Subcommands) -> None:
    summary, description = "draw charts of results", "Draw the means of studies, one chart for each measured job."
    parser = add_subcommand(commands, "charts", summary, _CHARTS_EXAMPLES, description)
    parser.set_defaults(workers=1)
    parser.add_argument(
        "results", metavar="RESULTS", type=Path, nargs="+", help="folders of studies, or their means.csv"
    )
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, default=Path("figures"), help="folder of the "
                        "charts (default: figures)")  # fmt: skip
    parser.add_argument(
        "--format", choices=("png", "svg", "pdf"), default="png", help="format of charts (default: png)"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stored", action="store_true", help="write tables of stored results; simulate nothing")
    parser.add_argument("--parquet", action="store_true", help="also write tables as Parquet")


def _add_running(parser: argparse.ArgumentParser, output: Path | None) -> None:
    """Add the options for the folder of results and the number of processes."""
    default = f"default: {output}" if output else "default: not kept"
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, default=output,
        help=f"folder of results; an unfinished study in it is continued ({default})",
    )  # fmt: skip
    parser.add_argument(
        "--workers",
        metavar="N",
        type=count_in(1),
        default=os.cpu_count() or 1,
        help="number of processes (default: all cores)",
    )


def _add_machine(parser: argparse.ArgumentParser, seeds: int = 1, needs_fabric: bool = True) -> None:
    effort = parser.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="fewer patterns and messages")
    effort.add_argument("--full", action="store_true", help="50 messages of warm-up, then 1,000 measured "
                        "messages, or fewer if the mean latency is steady")  # fmt: skip
    parser.add_argument("--every-message", action="store_true", help="with --full: always measure 1,000 messages")
    parser.add_argument(
        "--seeds", metavar="N", type=count_in(1, MOST_SEEDS), default=seeds,
        help=f"number of random seeds of each simulation (default: {seeds})",
    )  # fmt: skip
    _add_network(parser, needs_fabric)
    parser.add_argument(
        "--servers", metavar="N|HOSTS", type=_parse_servers,
        help="I/O servers: a number, or hosts as node[01-04,7],login1 or in a file "
        f"(default: one for every {HOSTS_PER_SERVER} hosts)",
    )  # fmt: skip
    parser.add_argument(
        "--server-placement", choices=[each.value for each in ServerPlacement],
        help="hosts of servers without named hosts. isolated: whole leaf switches; spread: one host per leaf switch; "
        "random: random hosts (default: isolated)",
    )  # fmt: skip
    parser.add_argument(
        "--job-placement", choices=[each.value for each in JobPlacement], default="random-node",
        help="hosts of jobs without named hosts. random-node: hosts sampled one by one; random-switch: whole leaf "
        "switches (default: random-node)",
    )  # fmt: skip
    parser.add_argument("--adaptive", action="store_true", help="adaptive routing among the shortest routes")
    _add_hardware(parser)


def _add_replayed(parser: argparse.ArgumentParser) -> None:
    """Add options for the network on which a run was recorded, and for the network of the prediction."""
    _add_network(parser, needs_fabric=True)
    add, hosts = parser.add_argument, type_of(read_hosts)
    add("--to-fabric", metavar="LST", help="fabric of the prediction (default: --fabric)")
    add("--to-routes", metavar="HOW", type=type_of(parse_routes), help=f"routes of the prediction: {ROUTE_CHOICES}")
    add("--to-hosts", metavar="HOSTS", type=hosts, help="hosts of the prediction: node[01-04,7],login1 or a file of "
        "such lines, in the order of their first ranks")  # fmt: skip
    add("--next-to", metavar="OTHER", type=Path, help="profile of another job that runs at the same time")
    add("--next-to-hosts", metavar="HOSTS", type=hosts, help="hosts of OTHER (default: its recorded hosts)")
    add("--seeds", metavar="N", type=count_in(1, MOST_SEEDS), default=3, help="number of random start times of "
        "OTHER (default: 3)")  # fmt: skip
    _add_hardware(parser)


def _add_network(parser: argparse.ArgumentParser, needs_fabric: bool) -> None:
    says = "required" if needs_fabric else "default: the study's"
    parser.add_argument(
        "--fabric", metavar="LST", required=needs_fabric,
        help=f"dump of a fabric, or the name of a synthetic one ({says})",
    )  # fmt: skip
    parser.add_argument(
        "--routes", metavar="HOW", type=type_of(parse_routes),
        help=f"source of the fabric's routes: {ROUTE_CHOICES} (default: tables, or else modelled)",
    )  # fmt: skip


def _add_hardware(parser: argparse.ArgumentParser) -> None:
    """Add options for hardware properties that dumps of the fabric do not state."""
    add, delay, speed = parser.add_argument, number_in(*RANGES["switch_ns"]), number_in(*RANGES["gbps"])
    add("--packet", metavar="B", type=_bytes_in("packet_bytes"), default=4096, help="bytes of a packet (default: 4096)")
    add("--lane", metavar="B", type=_bytes_in("lane_bytes"), default=65536, help="buffer of a virtual lane in bytes "
        "(default: 65536)")  # fmt: skip
    add("--switch-ns", metavar="NS", type=delay, default=90.0, help="delay of a switch in ns (default: 90)")
    add("--nic-gap-ns", metavar="NS", type=number_in(*RANGES["nic_gap_ns"]), default=0.0,
        help="pause of a host's adapter between packets in ns (default: 0)")  # fmt: skip
    add("--gbps", metavar="G", type=speed, help="speed of all links in Gb/s (default: as in the fabric)")


def _bytes_in(name: str) -> Callable[[str], int]:
    """Return an argparse `type` that parses the `Hardware` property `name`, in bytes."""
    least, most = RANGES[name]
    return count_in(int(least), int(most))


def read_hosts(text: str) -> list[str]:
    """Return the hosts in a Slurm expression or in a host file (see `hostlists`), without duplicates.

    Raises:
        UsageError: the expression is invalid.
        InputError: a line of the file is invalid, or the file has no host.
    """
    path = Path(text)
    if not path.is_file():
        return expand_hosts(text)
    from ibprof_converter.traffic.hostlists import read_listed_hosts  # noqa: PLC0415  (--help needs no numpy)

    hosts = list(dict.fromkeys(each.name for each in read_listed_hosts(path)))
    if not hosts:
        raise InputError(path, 1, "hosts, a line each", "none")
    return hosts


def _parse_servers(text: str) -> int | list[str]:
    return type_of(read_hosts)(text) if re.search("[A-Za-z]", text) else count_in(1)(text)
