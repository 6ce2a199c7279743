# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency`: delays between processes, measured and analysed."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence

from ibprof.cli.command import run_command
from ibprof_converter.cli import latency_measure, latency_queries
from ibprof_converter.cli.ranks import run_on_ranks

NAME = "ibprof-latency"

_EXAMPLES = """\
examples:
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 -o delays.nc
  ibprof-latency show delays.nc
  ibprof-latency features delays.nc -o features
  ibprof-latency diff monday.nc delays.nc
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-latency`."""
    return run_command(NAME, _run, argv)


def _run(argv: Sequence[str] | None) -> int | None:
    logging.basicConfig(format=f"{NAME}: %(message)s", level=logging.WARNING)
    return run_on_ranks(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Measure the delays of messages between all processes of a job, with any MPI; analyse them.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    queries = latency_queries
    for name, add, summary, examples in (
        ("measure", latency_measure.add_measure, "measure, on all processes of an MPI job", latency_measure.EXAMPLES),
        ("show", queries.add_show, "ranges of what was measured, and one matrix", queries.SHOW_EXAMPLES),
        ("features", queries.add_features, "peaks, steps, clusters, outlying processes", queries.FEATURES_EXAMPLES),
        ("diff", queries.add_diff, "which pairs changed", queries.DIFF_EXAMPLES),
        ("convert", queries.add_convert, "from one format of delays to another", queries.CONVERT_EXAMPLES),
    ):
        description = summary[0].upper() + summary[1:] + "."
        add(commands.add_parser(name, help=summary, description=description, epilog=examples, formatter_class=raw))
    return parser
