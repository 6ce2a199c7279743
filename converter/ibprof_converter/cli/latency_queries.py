# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency show`, `features`, `diff` and `convert`: queries on measured delays."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from ibprof.errors import THRESHOLD_CROSSED
from ibprof_converter.cli.arguments import count_in, fill_options, number_in, parse_share
from ibprof_converter.cli.printing import print_captured, print_json
from ibprof_converter.latency.features.outlying_processes import LEAST_CHANGE
from ibprof_converter.latency.features.pair_clusters import BY
from ibprof_converter.latency.files.matrix_files import NO_CLUSTER
from ibprof_converter.latency.model.delays import STATISTICS
from ibprof_converter.latency.outputs import delay_tables
from ibprof_converter.latency.outputs.delay_document import Document, describe_change
from ibprof_converter.latency.outputs.delay_queries import (
    UNITS,
    ConvertDelaysOptions,
    DiffDelaysOptions,
    FeaturesOptions,
    ShowDelaysOptions,
    convert_delays,
    query_changes,
    query_delays,
    query_features,
)

SHOW_EXAMPLES = """\
examples:
  ibprof-latency show delays.nc
  ibprof-latency show delays.nc --length 1M --bandwidth --png bandwidth.png
"""
FEATURES_EXAMPLES = """\
examples:
  ibprof-latency features delays.nc
  ibprof-latency features delays.nc -o features --clusters 4 --threshold 0.25
"""
DIFF_EXAMPLES = """\
examples:
  ibprof-latency diff monday.nc today.nc
  ibprof-latency diff monday.nc today.nc --least 20% --fail -o changed.csv
"""
CONVERT_EXAMPLES = """\
examples:
  ibprof-latency convert network_median.nc delays.nc
  ibprof-latency convert delays.nc --length 0 delays.csv
  ibprof-latency convert delays.nc --clustbench network
"""


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `show`."""
    parser.set_defaults(options=lambda arguments: fill_options(ShowDelaysOptions, arguments), run=_show)
    _add_input(parser)
    add = parser.add_argument
    add("--length", metavar="BYTES", help="the matrix of this length (default: the shortest)")
    add("--statistic", choices=STATISTICS, default="median", help="of the repetitions (default: median)")
    add("--bandwidth", action="store_true", help="the matrix as bandwidth")
    add("--png", metavar="FILE", type=Path, help="the matrix as a heat map (png, svg or pdf)")
    add("--json", action="store_true", help="for programs, with the matrix (of up to 512 processes, or with --length)")


def _show(options: ShowDelaysOptions) -> None:
    _print(query_delays(options), delay_tables.show_delays, options.json)


def add_features(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `features`."""
    parser.set_defaults(options=lambda arguments: fill_options(FeaturesOptions, arguments), run=_find_features)
    _add_input(parser)
    add, threshold = parser.add_argument, number_in(0, 1)
    add("-o", "--output", metavar="DIR", type=Path, help="pictures, clusters.npz (compressed delays), features.json")
    add("--threshold", metavar="X", type=threshold, help="of peaks and steps, such as 0.25 (default: from the data)")
    add("--peak-threshold", metavar="X", type=threshold, help="of peaks alone")
    add("--step-threshold", metavar="X", type=threshold, help="of steps alone")
    add("--clusters", metavar="K", type=count_in(1, NO_CLUSTER), help="number of clusters (default: elbow of the SSE)")
    add("--by", choices=BY, default=BY[0], help="what the pairs of a cluster share (default: delays)")
    add("--seed", metavar="N", type=int, default=0, help="of the clusters' first centres (default: 0)")
    add("--json", action="store_true", help="the same for programs")


def _find_features(options: FeaturesOptions) -> None:
    _print(query_features(options), delay_tables.show_features, options.json)


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    parser.set_defaults(options=lambda arguments: fill_options(DiffDelaysOptions, arguments), run=_diff)
    add = parser.add_argument
    add("before", metavar="BEFORE", type=Path, help="delays, in any format that is read")
    add("after", metavar="AFTER", type=Path, help="delays of the same cluster, later")
    add("--least", metavar="SHARE", type=parse_share, default=LEAST_CHANGE, help="that is a change (default: 10%%)")
    add("--fail", action="store_true", help="exit with status 1 when a pair changed, vanished or appeared")
    add("-o", "--output", metavar="FILE", type=Path, help="changed pairs as CSV, for `measure --pairs`")
    add("--unit", choices=tuple(UNITS), default="us", help="of CSV and numpy matrices (default: `us`)")
    add("--json", action="store_true", help="the same for programs")


def _diff(options: DiffDelaysOptions) -> int:
    change = query_changes(options)
    _print(describe_change(change), delay_tables.show_change, options.json)
    return THRESHOLD_CROSSED if options.fail and change.count else 0


def add_convert(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `convert`."""
    parser.set_defaults(options=lambda arguments: fill_options(ConvertDelaysOptions, arguments), run=convert_delays)
    _add_input(parser)
    parser.add_argument("output", metavar="FILE", type=Path, help="NetCDF-4, or CSV of one length (.csv), or a prefix")
    parser.add_argument("--length", metavar="BYTES", help="this length alone")
    parser.add_argument("--clustbench", action="store_true", help="write clustbench's five files; FILE is their prefix")


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("delays", metavar="DELAYS", type=Path, help="delays.nc, clustbench's, a CSV or numpy matrix")
    parser.add_argument("--unit", choices=tuple(UNITS), default="us", help="of CSV and numpy matrices (default: `us`)")


def _print(document: Document, show: Callable[[Console, Document], None], as_json: bool) -> None:
    if as_json:
        print_json(document, indent=1)
    else:
        print_captured(lambda console: show(console, document), delay_tables.PIPE_WIDTH)
