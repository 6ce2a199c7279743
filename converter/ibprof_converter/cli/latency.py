# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency`: delays between processes, measured and looked at."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence

from ibprof.cli.command import run_command
from ibprof_converter.cli import latency_look, latency_measure
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
        description="Delays of messages between all processes of a job: measured with any MPI, kept, looked at.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, add, summary, examples in (
        ("measure", latency_measure.add_measure, "measure, on all processes of an MPI job", latency_measure.EXAMPLES),
        ("show", latency_look.add_show, "what was measured, and one matrix", latency_look.SHOW_EXAMPLES),
        (
            "features",
            latency_look.add_features,
            "peaks, steps, clusters, odd processes",
            latency_look.FEATURES_EXAMPLES,
        ),
        ("diff", latency_look.add_diff, "which pairs changed", latency_look.DIFF_EXAMPLES),
        ("convert", latency_look.add_convert, "from one format of delays to another", latency_look.CONVERT_EXAMPLES),
    ):
        description = summary[0].upper() + summary[1:] + "."
        add(commands.add_parser(name, help=summary, description=description, epilog=examples, formatter_class=raw))
    return parser
