# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency`: delays between processes, measured and analysed."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence

from ibprof.cli.command import run_command
from ibprof.cli.parsers import make_parser
from ibprof_converter.cli.subcommands import add_subcommands
from ibprof_lab.cli.latency_measure import add_measure
from ibprof_lab.cli.latency_queries import add_convert, add_diff, add_features, add_show
from ibprof_lab.cli.ranks import run_on_ranks

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
    description = "Measure the delays of messages between all processes of a job, with any MPI; analyse them."
    parser = make_parser(NAME, description, _EXAMPLES)
    commands = add_subcommands(parser)
    add_measure(commands)
    add_show(commands)
    add_features(commands)
    add_diff(commands)
    add_convert(commands)
    return parser
