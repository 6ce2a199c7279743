# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency show`, `features`, `diff` and `convert`: delays that were measured, looked at."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from ibprof.errors import THRESHOLD_CROSSED, InconsistentError, UsageError, quote_found
from ibprof_converter.cli import latency_text
from ibprof_converter.cli.arguments import number_between, parse_share
from ibprof_converter.cli.latency_text import MOST_SHOWN, print_document
from ibprof_converter.latency.features.delay_features import FEWEST_LENGTHS, find_features
from ibprof_converter.latency.features.pair_clusters import BY, cluster_pairs, write_compressed
from ibprof_converter.latency.features.slow_processes import LEAST_CHANGE, compare_delays, find_outlying_processes
from ibprof_converter.latency.files.delay_files import read_delays, write_classic_delays, write_delays
from ibprof_converter.latency.files.matrix_files import NO_CLUSTER
from ibprof_converter.latency.files.pair_files import write_pairs
from ibprof_converter.latency.measure.message_lengths import parse_lengths
from ibprof_converter.latency.model.delays import STATISTICS, Delays
from ibprof_converter.latency.outputs.delay_document import (
    describe_change,
    describe_delays,
    describe_features,
    describe_matrix,
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

_MOST_IN_JSON = 512
"""Processes whose matrix `show --json` has unasked."""

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `show`."""
    parser.set_defaults(run=_run_show)
    _add_input(parser)
    parser.add_argument("--length", metavar="BYTES", help="the matrix of this length (default: the shortest)")
    parser.add_argument("--statistic", choices=STATISTICS, default="median")
    parser.add_argument("--bandwidth", action="store_true", help="the matrix as bandwidth")
    parser.add_argument("--png", metavar="FILE", type=Path, help="the matrix as a heat map (png, svg or pdf)")
    parser.add_argument(
        "--json",
        action="store_true",
        help="the same for programs, with the matrix (of up to 512 processes, or with --length)",
    )


def _run_show(arguments: argparse.Namespace) -> None:
    delays = read_delays(arguments.delays, unit=_UNITS[arguments.unit])
    if arguments.statistic not in delays.present:
        raise UsageError(f"--statistic: expected one of {', '.join(delays.present)}, found {arguments.statistic}")
    index = _find_length(delays, arguments.length)
    if arguments.png:
        from ibprof_converter.latency.outputs.delay_pictures import draw_matrix  # noqa: PLC0415  (slow to import)

        draw_matrix(arguments.png, delays, index, arguments.statistic)
    document = describe_delays(delays, arguments.statistic)
    # Of thousands of processes the matrix is gigabytes as text: only when it is asked for.
    unasked = delays.processes <= (_MOST_IN_JSON if arguments.json else MOST_SHOWN)
    if len(delays.lengths) and (unasked or arguments.length or arguments.bandwidth):
        document["matrix"] = describe_matrix(delays, index, arguments.statistic, arguments.bandwidth)
    print_document(document, latency_text.show_delays, arguments.json)


def add_features(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `features`."""
    parser.set_defaults(run=_run_features)
    _add_input(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="DIR", type=Path, help="pictures, clusters.npz (the small form) and features.json")
    add("--threshold", metavar="X", type=_threshold, help="of peaks and steps, such as 0.25 (default: from the data)")
    add("--peak-threshold", metavar="X", type=_threshold, help="of peaks alone")
    add("--step-threshold", metavar="X", type=_threshold, help="of steps alone")
    add("--clusters", metavar="K", type=_cluster_count, help="number of clusters (default: by the elbow of the SSE)")
    add("--by", choices=BY, default=BY[0], help="what is alike in a cluster (default: delays)")
    add("--seed", metavar="N", type=int, default=0, help="of the clusters' first centres (default: 0)")
    add("--json", action="store_true", help="the same for programs")


def _run_features(arguments: argparse.Namespace) -> None:
    delays = read_delays(arguments.delays, ("lower_quartile", "upper_quartile"), _UNITS[arguments.unit])
    features = clusters = compressed = None
    if len(delays.lengths) >= FEWEST_LENGTHS:
        features = find_features(
            delays,
            arguments.threshold if arguments.peak_threshold is None else arguments.peak_threshold,
            arguments.threshold if arguments.step_threshold is None else arguments.step_threshold,
        )
    if features is not None and len(features.pairs):
        clusters = cluster_pairs(features, arguments.clusters, arguments.by, arguments.seed)
        if arguments.output:
            from ibprof_converter.latency.outputs.delay_pictures import draw_all  # noqa: PLC0415  (slow to import)

            arguments.output.mkdir(parents=True, exist_ok=True)
            compressed = write_compressed(arguments.output / "clusters.npz", delays, features, clusters)
            draw_all(arguments.output, delays, features, clusters)
    document = describe_features(delays, features, clusters, compressed, find_outlying_processes(delays))
    if arguments.output and clusters is not None:
        import json  # noqa: PLC0415  (of this branch alone)

        (arguments.output / "features.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print_document(document, latency_text.show_features, arguments.json)


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    parser.set_defaults(run=_run_diff)
    parser.add_argument("before", metavar="BEFORE", type=Path, help="delays, in any format that is read")
    parser.add_argument("after", metavar="AFTER", type=Path, help="delays of the same cluster, later")
    add = parser.add_argument
    add("--least", metavar="SHARE", type=parse_share, default=LEAST_CHANGE, help="that is a change (default: 10%%)")
    add("--fail", action="store_true", help="end with status 1 when a pair changed, vanished or appeared")
    add("-o", "--output", metavar="FILE", type=Path, help="changed pairs as CSV, for `measure --pairs`")
    add("--unit", choices=tuple(_UNITS), default="us", help="of CSV and numpy matrices (default: us)")
    add("--json", action="store_true", help="the same for programs")


def _run_diff(arguments: argparse.Namespace) -> int:
    before, after = (
        read_delays(path, ("lower_quartile", "upper_quartile"), _UNITS[arguments.unit])
        for path in (arguments.before, arguments.after)
    )
    try:
        change = compare_delays(before, after, arguments.least)
    except InconsistentError as error:
        raise InconsistentError(f"{arguments.before}, {arguments.after}: {error}") from error
    if arguments.output:
        write_pairs(arguments.output, change.labels, change.pairs, change.ratios)
    print_document(describe_change(change), latency_text.show_change, arguments.json)
    changed = len(change.pairs) + len(change.vanished) + len(change.appeared)
    return THRESHOLD_CROSSED if arguments.fail and changed else 0


def add_convert(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `convert`."""
    parser.set_defaults(run=_run_convert)
    _add_input(parser)
    parser.add_argument("output", metavar="FILE", type=Path, help="NetCDF-4, or CSV of one length (.csv), or a prefix")
    parser.add_argument("--length", metavar="BYTES", help="this length alone")
    parser.add_argument("--clustbench", action="store_true", help="write clustbench's five files; FILE is their prefix")


def _run_convert(arguments: argparse.Namespace) -> None:
    delays = read_delays(arguments.delays, unit=_UNITS[arguments.unit])
    if arguments.length:
        delays = delays.select(lengths=[_find_length(delays, arguments.length)])
    if arguments.clustbench:
        write_classic_delays(arguments.output, delays)
    else:
        write_delays(arguments.output, delays)


# -- arguments


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("delays", metavar="DELAYS", type=Path, help="delays.nc, clustbench's, a CSV or numpy matrix")
    parser.add_argument("--unit", choices=tuple(_UNITS), default="us", help="of CSV and numpy matrices (default: us)")


def _find_length(delays: Delays, text: str | None) -> int:
    if text is None:
        return 0
    wanted = parse_lengths(text)
    found = np.flatnonzero(np.isin(delays.lengths, wanted))
    if len(wanted) != 1 or len(found) != 1:
        there = ", ".join(map(str, delays.lengths[:12].tolist())) + (", ..." if len(delays.lengths) > 12 else "")
        raise UsageError(f"--length: expected one of {there}, found {quote_found(text)}")
    return int(found[0])


def _threshold(text: str) -> float:
    return number_between(text, 0, 1)


def _cluster_count(text: str) -> int:
    number = number_between(text, 1, NO_CLUSTER)
    if number != int(number):
        raise argparse.ArgumentTypeError(f"expected a whole number, found {quote_found(text)}")
    return int(number)
