# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency show`, `features`, `diff` and `convert`: queries on measured delays."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from ibprof.errors import THRESHOLD_CROSSED
from ibprof_converter.cli.arguments import count_in, number_in, parse_share, type_of
from ibprof_converter.cli.printing import print_document
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_lab.cli.delay_unit import add_unit
from ibprof_lab.latency.features.outlying_processes import LEAST_CHANGE
from ibprof_lab.latency.features.pair_clusters import BY
from ibprof_lab.latency.files.matrix_files import NO_CLUSTER
from ibprof_lab.latency.model.delays import STATISTICS
from ibprof_lab.latency.model.message_lengths import parse_length
from ibprof_lab.latency.outputs import delay_tables
from ibprof_lab.latency.outputs.delay_document import describe_change
from ibprof_lab.latency.outputs.delay_queries import (
    ConvertDelaysOptions,
    DiffDelaysOptions,
    FeaturesOptions,
    ShowDelaysOptions,
    convert_delays,
    query_changes,
    query_delays,
    query_features,
)
from ibprof_lab.latency.outputs.steps_page import write_steps_page

_SHOW_EXAMPLES = """\
examples:
  ibprof-latency show delays.nc
  ibprof-latency show delays.nc --length 1M --bandwidth --png bandwidth.png
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

_length = type_of(parse_length)

_print = partial(print_document, indent=1, pipe_width=delay_tables.PIPE_WIDTH)


def add_show(commands: Subcommands) -> None:
    """Add the command `show`."""
    summary = "ranges of what was measured, and one matrix"
    parser = add_subcommand(commands, "show", summary, _SHOW_EXAMPLES, ShowDelaysOptions, _show)
    _add_input(parser)
    add = parser.add_argument
    add("--length", metavar="BYTES", type=_length, help="the matrix of this length (default: the shortest)")
    add("--statistic", choices=STATISTICS, default="median", help="of the repetitions (default: median)")
    add("--bandwidth", action="store_true", help="the matrix as bandwidth")
    add("--png", metavar="FILE", type=Path, help="the matrix as a heat map (png, svg or pdf)")
    add("--json", action="store_true", help="for programs, with the matrix (of up to 512 processes, or with --length)")


def _show(options: ShowDelaysOptions) -> None:
    _print(query_delays(options), delay_tables.show_delays, options.json)


def add_features(commands: Subcommands) -> None:
    """Add the command `features`."""
    summary = "peaks, steps, clusters, outlying processes"
    parser = add_subcommand(commands, "features", summary, _FEATURES_EXAMPLES, FeaturesOptions, _find_features)
    _add_input(parser)
    add, threshold = parser.add_argument, number_in(0, 1)
    add("-o", "--output", metavar="DIR", type=Path, help="pictures, steps.html, clusters.npz (compressed "
        "delays), features.json")  # fmt: skip
    add("--threshold", metavar="X", type=threshold, help="of peaks and steps, such as 0.25 (default: from the data)")
    add("--peak-threshold", metavar="X", type=threshold, help="of peaks alone")
    add("--step-threshold", metavar="X", type=threshold, help="of steps alone")
    add("--clusters", metavar="K", type=count_in(1, NO_CLUSTER), help="number of clusters (default: elbow of the SSE)")
    add("--by", choices=BY, default=BY[0], help="what the pairs of a cluster share (default: delays)")
    add("--seed", metavar="N", type=int, default=0, help="of the clusters' first centres (default: 0)")
    add("--json", action="store_true", help="the same for programs")


def _find_features(options: FeaturesOptions) -> None:
    _print(query_features(options, write_steps_page), delay_tables.show_features, options.json)


def add_diff(commands: Subcommands) -> None:
    """Add the command `diff`."""
    parser = add_subcommand(commands, "diff", "which pairs changed", _DIFF_EXAMPLES, DiffDelaysOptions, _diff)
    add = parser.add_argument
    add("before", metavar="BEFORE", type=Path, help="delays, in any format that is read")
    add("after", metavar="AFTER", type=Path, help="delays of the same cluster, later")
    add("--least", metavar="SHARE", type=parse_share, default=LEAST_CHANGE, help="that is a change (default: 10%%)")
    add("--fail", action="store_true", help="exit with status 1 when a pair changed, vanished or appeared")
    add("-o", "--output", metavar="FILE", type=Path, help="changed pairs as CSV, for `measure --pairs`")
    add_unit(parser)
    add("--json", action="store_true", help="the same for programs")


def _diff(options: DiffDelaysOptions) -> int:
    change = query_changes(options)
    _print(describe_change(change), delay_tables.show_change, options.json)
    return THRESHOLD_CROSSED if options.fail and change.count else 0


def add_convert(commands: Subcommands) -> None:
    """Add the command `convert`."""
    summary = "from one format of delays to another"
    parser = add_subcommand(commands, "convert", summary, _CONVERT_EXAMPLES, ConvertDelaysOptions, convert_delays)
    _add_input(parser)
    parser.add_argument("output", metavar="FILE", type=Path, help="NetCDF-4, or CSV of one length (.csv), or a prefix")
    parser.add_argument("--length", metavar="BYTES", type=_length, help="this length alone")
    parser.add_argument("--clustbench", action="store_true", help="write clustbench's five files; FILE is their prefix")


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("delays", metavar="DELAYS", type=Path, help="delays.nc, clustbench's, a CSV or numpy matrix")
    add_unit(parser)
