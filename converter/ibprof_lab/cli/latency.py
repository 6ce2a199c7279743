# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency`: measure and analyse delays of messages between processes."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ibprof.cli.command import command, make_parser, print_document, rename_option
from ibprof.errors import THRESHOLD_CROSSED, need_lab
from ibprof_converter.cli.arguments import (
    Subcommands,
    add_subcommand,
    add_subcommands,
    call_with_options,
    count_in,
    number_in,
    parse_figure,
    parse_share,
    type_of,
)
from ibprof_lab.cli.lab_commands import add_unit, run_on_ranks
from ibprof_lab.lab_choices import BY, LEAST_CHANGE, MODES, NO_CLUSTER, SCHEDULES, STATISTICS
from ibprof_lab.latency.model.typed_quantities import parse_budget, parse_duration, parse_length, parse_lengths

NAME = "ibprof-latency"

_EXAMPLES = """\
examples:
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 -o delays.nc
  ibprof-latency show delays.nc
  ibprof-latency features delays.nc -o features
  ibprof-latency diff monday.nc delays.nc
"""

_MEASURE_EXAMPLES = """\
examples:
  mpirun -n 64 ibprof-latency measure -o delays.nc
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 --max-time 10m -o delays.nc
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 --resume -o delays.nc
  mpirun -n 1000 ibprof-latency measure --few-pairs -o delays.nc
  mpirun -n 64 ibprof-latency measure --mode bandwidth --lengths 1M -o bandwidth.nc
  mpirun -n 64 ibprof-latency measure --schedule sequential --noise-processes 8 --noise-messages 4 \\
      --noise-length 64K -o noisy.nc
"""

_MEASURE_SHOWN = ("--output", "--lengths", "--mode", "--few-pairs", "--resume", "--max-time", "--dry-run")
"""Options in the short help of `measure`."""

_count = count_in(1, 1_000_000)
_number = count_in(0)
_length = type_of(parse_length)
_lengths = type_of(parse_lengths)
_duration = type_of(parse_duration)
_budget = type_of(parse_budget)

_SHOW_EXAMPLES = """\
examples:
  ibprof-latency show delays.nc
  ibprof-latency show delays.nc --length 1M --bandwidth --figure bandwidth.png
"""

_FEATURES_EXAMPLES = """\
examples:
  ibprof-latency features delays.nc
  ibprof-latency features delays.nc -o features --clusters 4 --threshold 0.25
"""

_DIFF_EXAMPLES = """\
examples:
  ibprof-latency diff monday.nc today.nc
  ibprof-latency diff monday.nc today.nc --least 20% --fail -o changed.csv
"""

_CONVERT_EXAMPLES = """\
examples:
  ibprof-latency convert network_median.nc delays.nc
  ibprof-latency convert delays.nc --length 0 delays.csv
  ibprof-latency convert delays.nc --clustbench network
"""

_PIPE_WIDTH = 160
"""Width of tables, in characters, if stdout is not a terminal."""

_print = partial(print_document, indent=1, pipe_width=_PIPE_WIDTH)


@command(NAME)
def main(argv: Sequence[str] | None) -> int | None:
    """Run `ibprof-latency`."""
    logging.basicConfig(format=f"{NAME}: %(message)s", level=logging.WARNING)
    return run_on_ranks(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    description = "Measure delays of messages between all processes of an MPI job, and analyse these delays."
    parser = make_parser(NAME, description, _EXAMPLES)
    commands = add_subcommands(parser)
    _add_measure(commands)
    _add_show(commands)
    _add_features(commands)
    _add_diff(commands)
    _add_convert(commands)
    return parser


def _add_measure(commands: Subcommands) -> None:
    summary = "measure delays, on all processes of an MPI job"
    parser = add_subcommand(commands, "measure", summary, _MEASURE_EXAMPLES, build=_build_measure, shown=_MEASURE_SHOWN)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=Path, required=True, help="file for the delays (NetCDF-4), "
        "such as delays.nc")  # fmt: skip
    add("--lengths", metavar="LIST", type=_lengths, default="0", help="bytes of messages, such as 0,64,1K:1M:x2 "
        "or 1K:64K:1K (default: 0)")  # fmt: skip
    add("--mode", choices=MODES, default=MODES[0], help="message pattern of a pair, as in network_tests2 "
        "(default: one_to_one)")  # fmt: skip
    add("--schedule", choices=SCHEDULES, default="rounds", help="rounds: disjoint pairs at the same time; sequential: "
        "one pair at a time; halving: pairs between two halves of the processes (Bufe); shift: all processes send at "
        "the same time (default: rounds)")  # fmt: skip
    add("--repetitions", metavar="N", type=_count, default=11, help="number of batches per pair and length "
        "(default: 11)")  # fmt: skip
    add("--batch-time", metavar="T", type=_duration, default=1e-3, help="minimum time of a batch (default: 1ms)")
    add("--one-way", action="store_true", help="answer with empty messages, to measure each direction of a pair")
    add("--window", metavar="N", type=_count, default=64, help="with --mode bandwidth: messages in flight "
        "(default: 64)")  # fmt: skip
    add("--noise-processes", metavar="N", type=_number, default=0, help="number of other processes (even) that "
        "exchange messages during a measurement (default: 0)")  # fmt: skip
    add("--noise-messages", metavar="N", type=_count, default=1, help="messages in a burst of noise (default: 1)")
    add("--noise-length", metavar="BYTES", type=_length, default="64K", help="bytes of a noise message (default: 64K)")
    add("--seed", metavar="N", type=_number, default=0, help="seed of random choices (default: 0)")
    add("--again", metavar="BUDGET", type=_budget, default=(0.05, None), help="limit for repeated "
        "measurements of outlying pairs: a share of the pairs, or a time (default: 5%%)")  # fmt: skip
    add("--pairs", metavar="FILE", type=Path, help="measure again only the pairs in FILE; each line is sender,receiver")
    add("--few-pairs", action="store_true", help="measure one process per host, and only the pairs that "
        "`ibprof-topology infer` needs. If nested switches do not explain the delays, measure all pairs")  # fmt: skip
    add("--resume", action="store_true", help="keep the delays in FILE, and measure the missing delays")
    add("--max-time", metavar="T", type=_duration, help="stop after this time, such as 90s, 10m or 2h; --resume "
        "continues")  # fmt: skip
    add("--save-every", metavar="T", type=_duration, default=30.0, help="interval between saves (default: 30s)")
    add("--dry-run", action="store_true", help="only print how long the measurement would take")


def _build_measure(arguments: argparse.Namespace) -> Callable[[], int]:
    if not arguments.dry_run:
        netcdf = () if arguments.output.suffix == ".csv" else ("netCDF4",)
        need_lab(*netcdf, *(("scipy",) if arguments.few_pairs else ()))
    # --help and invalid options need no numpy, here and below.
    from ibprof_lab.latency.measure import delay_measurement, measurement_plan  # noqa: PLC0415
    from ibprof_lab.latency.measure.mpi_job import work_together  # noqa: PLC0415
    from ibprof_lab.latency.measure.timed_loops import Sampling  # noqa: PLC0415

    noise = arguments.noise_processes, arguments.noise_messages, arguments.noise_length
    plan = call_with_options(
        measurement_plan.MeasurementPlan,
        arguments,
        sampling=Sampling(arguments.repetitions, arguments.batch_time),
        noise=measurement_plan.BackgroundNoise(*noise),
        save_every_s=arguments.save_every,
        limit_s=arguments.max_time,
        again=arguments.again[0],
        again_s=arguments.again[1],
    )

    def start_search(hosts: int) -> delay_measurement.PairChooser:
        from ibprof_lab.topology.infer.few_pairs import PairSearch  # noqa: PLC0415  (each rank would load scipy)

        return PairSearch(hosts, plan.seed)

    others = {"plan": plan, "search": start_search}
    measure = delay_measurement.measure_delays
    return lambda: work_together(lambda module: call_with_options(measure, arguments, module=module, **others))


def _add_show(commands: Subcommands) -> None:
    summary = "print ranges of delays, and the matrix of one message length"
    parser = add_subcommand(commands, "show", summary, _SHOW_EXAMPLES, build=_build_show)
    _add_input(parser)
    add = parser.add_argument
    add("--length", metavar="BYTES", type=_length, help="length of the matrix's messages (default: the shortest)")
    add("--statistic", choices=STATISTICS, default="median", help="statistic of a pair's samples (default: median)")
    add("--bandwidth", action="store_true", help="show the matrix as bandwidth")
    add("--figure", dest="png", metavar="FILE", type=parse_figure, help="draw the matrix (png, svg or pdf)")
    rename_option(parser, "--png", "--figure")
    add("--json", action="store_true", help="print JSON; above 512 processes, a matrix needs --length or --bandwidth")


def _build_show(arguments: argparse.Namespace) -> Callable[[], None]:
    from ibprof_lab.latency.outputs import delay_queries, delay_tables  # noqa: PLC0415  (slow to import)

    query, show = delay_queries.query_delays, delay_tables.show_delays
    return lambda: _print(call_with_options(query, arguments), show, arguments.json)


def _add_features(commands: Subcommands) -> None:
    summary = "find peaks, steps and clusters of delays, and outlying processes"
    parser = add_subcommand(commands, "features", summary, _FEATURES_EXAMPLES, build=_build_features)
    _add_input(parser)
    add, threshold = parser.add_argument, number_in(0, 1)
    add("-o", "--output", metavar="DIR", type=Path, help="folder for pictures, steps.html, clusters.npz (compressed "
        "delays) and features.json")  # fmt: skip
    add("--threshold", metavar="X", type=threshold, help="smallest correlation of peaks and steps, such as 0.25 "
        "(default: from the data)")  # fmt: skip
    add("--peak-threshold", metavar="X", type=threshold, help="smallest correlation of peaks")
    add("--step-threshold", metavar="X", type=threshold, help="smallest correlation of steps")
    add("--clusters", metavar="K", type=count_in(1, NO_CLUSTER), help="number of clusters (default: found at the "
        "elbow of the squared errors)")  # fmt: skip
    add("--by", choices=BY, default=BY[0], help="quantity that clusters the pairs (default: delays)")
    add("--seed", metavar="N", type=int, default=0, help="seed of the clusters' first centres (default: 0)")
    add("--json", action="store_true", help="print JSON")


def _build_features(arguments: argparse.Namespace) -> Callable[[], None]:
    from ibprof_lab.latency.outputs import delay_queries, delay_tables  # noqa: PLC0415  (slow to import)

    query, show = delay_queries.query_features, delay_tables.show_features
    return lambda: _print(call_with_options(query, arguments), show, arguments.json)


def _add_diff(commands: Subcommands) -> None:
    parser = add_subcommand(commands, "diff", "list pairs whose delays changed", _DIFF_EXAMPLES, build=_build_diff)
    add = parser.add_argument
    add("before", metavar="BEFORE", type=Path, help="delays, in any format")
    add("after", metavar="AFTER", type=Path, help="later delays of the same cluster")
    add("--least", metavar="SHARE", type=parse_share, default=LEAST_CHANGE, help="report pairs whose delay changed by "
        "more than this (default: 10%%)")  # fmt: skip
    add("--fail", action="store_true", help="exit with status 1 when a pair changed, vanished or appeared")
    add("-o", "--output", metavar="FILE", type=Path, help="file of the changed pairs as CSV, for `measure --pairs`")
    add_unit(parser)
    add("--json", action="store_true", help="print JSON")


def _build_diff(arguments: argparse.Namespace) -> Callable[[], int]:
    from ibprof_lab.latency.outputs import delay_queries, delay_tables  # noqa: PLC0415  (slow to import)

    def run() -> int:
        change = call_with_options(delay_queries.query_changes, arguments)
        _print(delay_tables.describe_change(change), delay_tables.show_change, arguments.json)
        return THRESHOLD_CROSSED if arguments.fail and change.count else 0

    return run


def _add_convert(commands: Subcommands) -> None:
    summary = "write delays in another format"
    parser = add_subcommand(commands, "convert", summary, _CONVERT_EXAMPLES, build=_build_convert)
    _add_input(parser)
    parser.add_argument("output", metavar="FILE", type=Path, help="output: NetCDF-4, or a .csv of one length; "
                        "with --clustbench, the prefix of the names")  # fmt: skip
    parser.add_argument("--length", metavar="BYTES", type=_length, help="write only this length")
    parser.add_argument("--clustbench", action="store_true", help="write clustbench's five files")


def _build_convert(arguments: argparse.Namespace) -> Callable[[], None]:
    from ibprof_lab.latency.outputs import delay_queries  # noqa: PLC0415  (slow to import)

    return partial(call_with_options, delay_queries.convert_delays, arguments)


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("delays", metavar="DELAYS", type=Path, help="delays.nc, a file of clustbench, or a "
        "matrix (CSV or numpy)")  # fmt: skip
    add_unit(parser)
